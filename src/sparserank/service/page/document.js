// The whole text of a document, with the words that the search found.

import { readDocument } from "./api.js";
import { button, byId, element, failure, loading } from "./elements.js";
import { foundWords, linkOf, marked, thumbs, wordMarks } from "./results.js";
import { addressOf } from "./state.js";

const HIDDEN_FIELDS = ["url"];

function metadataList(metadata) {
  const entries = Object.entries(metadata ?? {}).filter(([field]) => !HIDDEN_FIELDS.includes(field));
  return entries.length > 0 && element("dl", { class: "metadata" }, ...entries.map(([field, value]) =>
    element("div", {}, element("dt", {}, field), element("dd", {}, [value].flat().join(", ")))));
}

/** A part of the text, and a button for the rest of a long one. */
function textParts(id, found, words) {
  const part = element("div", { class: "full-text" }, ...marked(found.text, wordMarks(found.text, words)));
  if (!found.next) return [part];
  const more = button("Show more of the text", {
    class: "again",
    onclick: async () => {
      try {
        more.replaceWith(...textParts(id, await readDocument(id, found.next), words));
      } catch (trouble) {
        more.before(failure(trouble));
      }
    },
  });
  return [part, more];
}

/** Show a document. `result` is the result that led to it, if any; act: {back(), vote, judge}. */
export async function showDocument(id, state, result, act) {
  const view = byId("document-view");
  const backLink = element("a", {
    class: "back", href: addressOf({ ...state, document: null }),
    onclick: (event) => { event.preventDefault(); act.back(); },
  }, state.query ? "‹ Back to the results" : "‹ Back to search");
  const title = element("h2", { id: "document-title", tabindex: "-1" }, result?.title || id);
  const body = element("div", { class: "document-body" }, loading());
  view.replaceChildren(backLink, title, body); // the title keeps the focus when the text arrives
  title.focus({ preventScroll: true });
  let content;
  try {
    const found = await readDocument(id);
    const words = result ? foundWords(result) : new Map();
    const url = linkOf(found.metadata);
    title.textContent = found.title || id;
    content = [
      element("p", { class: "where" }, element("span", { class: "id" }, id), url && element("a", { href: url.href, rel: "noreferrer" }, "Open the original")),
      metadataList(found.metadata),
      result && element("div", { class: "card-foot" }, element("span", {}, `Is it a good result for “${state.query}”?`), ...thumbs(result, act)),
      ...textParts(id, found, words)];
  } catch (trouble) {
    content = [failure(trouble)];
  }
  body.replaceChildren(...content.filter(Boolean));
}
