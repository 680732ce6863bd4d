// Links to the pages of results.

import { byId, element } from "./elements.js";
import { addressOf, go } from "./state.js";

export const PAGE_SIZE = 10;

function pageLink(state, page, label, name, own) {
  return element("li", {}, element("a", {
    href: addressOf({ ...state, page }), "aria-current": own ? "page" : null, "aria-label": name,
    onclick: (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      go({ page });
    },
  }, label));
}

/** Draw the links; if the number of all results is not known, a full page may have a next one. */
export function drawPages(state, answer) {
  const { page } = state;
  const isFull = answer.results.length === PAGE_SIZE;
  const more = isFull && !(answer.total_is_exact && answer.total <= page * PAGE_SIZE);
  byId("pages").hidden = page === 1 && !more;
  const numbers = [...new Set([1, page - 2, page - 1, page, ...(more ? [page + 1] : [])])].filter((one) => one >= 1).sort((a, b) => a - b);
  byId("page-links").replaceChildren(
    ...(page > 1 ? [pageLink(state, page - 1, "‹ Previous", "Previous page")] : []),
    ...numbers.flatMap((one, place) => [
      ...(place && one > numbers[place - 1] + 1 ? [element("li", { class: "gap", "aria-hidden": "true" }, "…")] : []),
      pageLink(state, one, String(one), `Page ${one}`, one === page)]),
    ...(more ? [pageLink(state, page + 1, "Next ›", "Next page")] : []));
}
