// Messages above the results, one per name.

import { button, byId, element } from "./elements.js";

/** Show or replace the message `name`. actions: [label, run] … */
export function note(name, text, { trouble = false, actions = [], seconds = 0 } = {}) {
  const made = element("div", { class: trouble ? "note trouble" : "note", "data-note": name, role: trouble ? "alert" : null },
    element("p", {}, text),
    ...actions.map(([label, run]) => button(label, { onclick: () => { clear(name); run(); } })),
    button("Close this message", { class: "close", onclick: () => clear(name) }, "×"));
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
