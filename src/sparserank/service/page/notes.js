// What the page has to say beside the results: one note of a kind at a time, quiet or in trouble.

import { button, byId, element } from "./elements.js";

/** Show (or replace) the note called `name`. actions: [label, run] … */
export function note(name, text, { trouble = false, actions = [], seconds = 0 } = {}) {
  const made = element("div", { class: trouble ? "note trouble" : "note", "data-note": name, role: trouble ? "alert" : null },
    element("p", {}, text),
    ...actions.map(([label, run]) => button(label, { onclick: () => { clear(name); run(); } })),
    button("Dismiss this note", { class: "close", onclick: () => clear(name) }, "×"));
  const before = find(name);
  if (before?.textContent === made.textContent) return;
  if (before) before.replaceWith(made);
  else byId("notes").append(made);
  if (seconds) setTimeout(() => made.remove(), seconds * 1000);
}

export function clear(name) {
  find(name)?.remove();
}

function find(name) {
  return byId("notes").querySelector(`[data-note="${name}"]`);
}
