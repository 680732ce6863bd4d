// The token: asked for only where the user wants something that needs it, and never while the user types.

import { setToken } from "./api.js";
import { byId, element, isTyping, openSheet } from "./elements.js";
import { note } from "./notes.js";

/** A form for the token; `given` runs when the user has entered one. */
export function tokenForm(id, given) {
  const input = element("input", { id, type: "password", autocomplete: "off", required: true });
  return element("form", {
    class: "token-form",
    onsubmit: (event) => {
      event.preventDefault();
      setToken(input.value);
      given();
    },
  }, element("label", { for: id }, "Token"), input, element("button", { type: "submit" }, "Use token"));
}

/** Ask in a dialog that can be closed; while the user types or another dialog is open, only a message offers it. */
export function askToken(sentence, given, cancelled = () => {}) {
  if (isTyping() || document.querySelector("dialog[open]")) {
    note("token", sentence, { actions: [["Enter the token", () => open(sentence, given, cancelled)]], closed: cancelled });
    return;
  }
  open(sentence, given, cancelled);
}

function open(sentence, given, cancelled) {
  const dialog = byId("token");
  let done = false;
  const form = tokenForm("token-input", () => {
    done = true;
    dialog.close();
    given();
  });
  openSheet(dialog, "This needs a token", element("p", {}, sentence),
    element("p", { class: "small" }, "The service prints it when it starts; your administrator has it. This tab forgets it when you close it."), form);
  dialog.addEventListener("close", () => { if (!done) cancelled(); }, { once: true });
  byId("token-input").focus();
}
