// Feedback waits in this browser until the service acknowledges it. Each item has an id made here and is sent again
// under the same id when the network fails; the service stores it once.

import { feedback, ServiceError } from "./api.js";

const KEY = "sparserank.waiting";
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

function store(items) {
  if (items.length) localStorage.setItem(KEY, JSON.stringify(items));
  else localStorage.removeItem(KEY);
}

/** Sends feedback; calls onChange({sent, waiting, trouble}) after every change. */
export class FeedbackQueue {
  constructor(onChange) {
    this.onChange = onChange;
    this.sent = 0;
    this.wait = 1;
    this.timer = null;
    this.busy = false;
    addEventListener("online", () => this.send());
  }

  /** A click on one of the results shown. */
  click(query, document, shown) {
    this.add({ kind: "click", query, document, shown, grade: 1 });
  }

  /** A vote: 1 good, -1 bad, 0 withdrawn. */
  judge(query, document, shown, grade) {
    this.add({ kind: "judgment", query, document, shown, grade });
  }

  add(item) {
    store([...waiting(), { id: newId(), ...item }]);
    this.send();
  }

  /** Send all waiting items, one after another; retry later after a failure. */
  async send() {
    clearTimeout(this.timer);
    if (this.busy) return;
    this.busy = true;
    let trouble = null;
    try {
      for (let item = waiting()[0]; item; item = waiting()[0]) {
        trouble = (await this.deliver(item)) ?? trouble;
      }
      this.wait = 1;
    } catch (error) {
      trouble = error;
    } finally {
      this.busy = false;
    }
    this.onChange({ sent: this.sent, waiting: waiting().length, trouble });
    if (waiting().length && trouble?.kind !== "token") this.later(trouble);
  }

  /** Send one item. It leaves the queue when it is stored or rejected; any other error is thrown. */
  async deliver(item) {
    let rejection = null;
    try {
      await feedback(item);
      this.sent += 1;
    } catch (error) {
      if (!(error instanceof ServiceError) || error.kind !== "rejected") throw error;
      rejection = error;
    }
    store(waiting().filter((one) => one.id !== item.id));
    return rejection;
  }

  later(trouble) {
    const seconds = Math.max(this.wait, trouble?.wait ?? 0);
    this.wait = Math.min(2 * this.wait, MAX_WAIT_S);
    this.timer = setTimeout(() => this.send(), seconds * 1000);
  }
}
