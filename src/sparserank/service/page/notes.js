// Messages above the results, one per name.

import { button, byId, element } from "./elements.js";

/** Show or replace the message `name`. actions: [label, run] …; `closed` runs if the user closes it. */
export function note(name, text, { trouble = false, actions = [], seconds = 0, closed = () => {} } = {}) {
  const message = element("div", { class: trouble ? "note trouble" : "note", "data-note": name, role: trouble ? "alert" : null },
    element("p", {}, text),
    ...actions.map(([label, run]) => button(label, { onclick: () => { clear(name); run(); } })),
    button("Close this message", { class: "close", onclick: () => { clear(name); closed(); } }, "×"));
  const before = find(name);
  if (before?.textContent === message.textContent) return;
  if (before) before.replaceWith(message);
  else byId("notes").append(message);
  if (seconds) setTimeout(() => message.remove(), seconds * 1000);
}

export function clear(name) {
  find(name)?.remove();
}

function find(name) {
  return byId("notes").querySelector(`[data-note="${name}"]`);
}
