// Feedback waits in this browser until the service acknowledges it. Each item has an id made here and is sent again
// under the same id when the network fails; the service stores it once. Clicks that the service does not allow are
// dropped silently; votes and grades wait for a token.

import { BASE, feedback, ServiceError, token } from "./api.js";

const KEY = `sparserank.waiting${BASE === "/" ? "" : BASE}`; // of this collection
const VISITOR = "sparserank.visitor";
const MAX_WAIT_S = 30;

function waiting() {
  try {
    const items = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(items) ? items : [];
  } catch {
    return [];
  }
}

/** A random id; browsers make no UUIDs on pages over plain HTTP. */
function newId() {
  if (crypto.randomUUID) return crypto.randomUUID();
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A random id of this browser, which says nothing about its user. */
function visitorId() {
  const known = localStorage.getItem(VISITOR) ?? newId();
  localStorage.setItem(VISITOR, known);
  return known;
}

function store(items) {
  if (items.length) localStorage.setItem(KEY, JSON.stringify(items));
  else localStorage.removeItem(KEY);
}

/** What the service needs to know about the results that the user saw. */
function about(answer, document) {
  const signed = answer.impression === undefined ? {} : { impression: answer.impression, visitor: visitorId() };
  return { query: answer.query, document, shown: answer.results.map((one) => one.id), ...signed };
}

/** Sends feedback; calls onChange({sent, waiting, trouble, refused}) after every change. */
export class FeedbackQueue {
  constructor(onChange) {
    this.onChange = onChange;
    this.sent = 0;
    this.wait = 1;
    this.timer = null;
    this.busy = false;
    this.own = new Set(); // ids of this page; what an earlier page left waits without asking
    this.clicksRefusedWith = null; // the token that does not allow clicks
    addEventListener("online", () => this.send());
  }

  /** The user followed a result. */
  click(answer, document) {
    if (this.clicksRefusedWith !== token()) this.add({ kind: "click", ...about(answer, document), grade: 1 });
  }

  /** A vote or grade: positive is good, -1 bad, 0 withdrawn. */
  judge(answer, document, grade) {
    this.add({ kind: "judgment", ...about(answer, document), grade });
  }

  add(item) {
    const id = newId();
    this.own.add(id);
    store([...waiting(), { id, ...item }]);
    this.send();
  }

  /** Forget the items that wait for a token, and return them. */
  forget() {
    const held = waiting().filter((one) => one.kind === "judgment" && this.own.has(one.id));
    store(waiting().filter((one) => !held.includes(one) && !held.some((other) => other.id === one.id)));
    this.tell(null, []);
    return held;
  }

  /** Send all waiting items, one after another; retry later after a failure. */
  async send() {
    clearTimeout(this.timer);
    if (this.busy) return void (this.again = true);
    this.busy = true;
    let trouble = null;
    const refused = new Set();
    try {
      for (let item; (item = waiting().find((one) => !refused.has(one.id))); ) {
        trouble = (await this.deliver(item, refused)) ?? trouble;
      }
      this.wait = 1;
    } catch (error) {
      trouble = error;
    } finally {
      this.busy = false;
    }
    this.tell(trouble, [...refused].filter((id) => this.own.has(id)));
    if (this.again) {
      this.again = false;
      this.send();
    } else if (waiting().length > refused.size) this.later(trouble);
  }

  /** Send one item. It leaves the queue when it is stored, rejected, or a click that is not allowed; other errors are thrown. */
  async deliver(item, refused) {
    let rejection = null;
    try {
      await feedback(item);
      this.sent += 1;
    } catch (error) {
      if (!(error instanceof ServiceError) || !["rejected", "token"].includes(error.kind)) throw error;
      if (error.kind === "token" && item.kind === "judgment") return void refused.add(item.id);
      if (error.kind === "token") this.clicksRefusedWith = token();
      else if (item.kind === "judgment") rejection = error;
    }
    store(waiting().filter((one) => one.id !== item.id));
    return rejection;
  }

  tell(trouble, refused) {
    this.onChange({ sent: this.sent, waiting: waiting().length, trouble, refused });
  }

  later(trouble) {
    const seconds = Math.max(this.wait, trouble?.wait ?? 0);
    this.wait = Math.min(2 * this.wait, MAX_WAIT_S);
    this.timer = setTimeout(() => this.send(), seconds * 1000);
  }
}
