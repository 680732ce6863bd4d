// What a user teaches is kept in this browser until the service has acknowledged it. Every lesson has an id made here,
// and is sent again under the same id when the network fails: the service stores it once.

import { feedback, Trouble } from "./service.js";

const KEY = "sparserank.waiting";
const LONGEST_WAIT = 30;

function waiting() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(kept) ? kept : [];
  } catch {
    return [];
  }
}

/** A random id; where the page came over plain HTTP from elsewhere, browsers make no UUIDs. */
function newId() {
  if (crypto.randomUUID) return crypto.randomUUID();
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function keep(lessons) {
  if (lessons.length) localStorage.setItem(KEY, JSON.stringify(lessons));
  else localStorage.removeItem(KEY);
}

/** `tell` hears {sent, waiting, trouble} after every change. */
export class Teacher {
  constructor(tell) {
    this.tell = tell;
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

  /** A thumb: 1 good, -1 bad, 0 taken back. */
  judge(query, document, shown, grade) {
    this.add({ kind: "judgment", query, document, shown, grade });
  }

  add(lesson) {
    keep([...waiting(), { id: newId(), ...lesson }]);
    this.send();
  }

  /** Send all that waits, one after another; after a failure, later again. */
  async send() {
    clearTimeout(this.timer);
    if (this.busy) return;
    this.busy = true;
    let trouble = null;
    try {
      for (let lesson = waiting()[0]; lesson; lesson = waiting()[0]) {
        trouble = (await this.deliver(lesson)) ?? trouble;
      }
      this.wait = 1;
    } catch (error) {
      trouble = error;
    } finally {
      this.busy = false;
    }
    this.tell({ sent: this.sent, waiting: waiting().length, trouble });
    if (waiting().length && trouble?.kind !== "token") this.later(trouble);
  }

  /** Acknowledged or refused for good: it waits no longer. Anything else is thrown, and the lesson stays. */
  async deliver(lesson) {
    let refused = null;
    try {
      await feedback(lesson);
      this.sent += 1;
    } catch (error) {
      if (!(error instanceof Trouble) || error.kind !== "asked") throw error;
      refused = error;
    }
    keep(waiting().filter((one) => one.id !== lesson.id));
    return refused;
  }

  later(trouble) {
    const seconds = Math.max(this.wait, trouble?.wait ?? 0);
    this.wait = Math.min(2 * this.wait, LONGEST_WAIT);
    this.timer = setTimeout(() => this.send(), seconds * 1000);
  }
}
