// The address is the state of the page: query, filters, page of results, document and view. Back and reload work by it.

const VIEWS = ["search", "judge", "model"];
const FILTER = "f.";
const MAX_PAGE = 1000;

/** The state that an address describes. */
export function readState(search = location.search) {
  const given = new URLSearchParams(search);
  const filters = {};
  for (const [name, value] of given) {
    if (name.startsWith(FILTER) && name.length > FILTER.length) (filters[name.slice(FILTER.length)] ??= []).push(value);
  }
  const page = Math.trunc(Number(given.get("page")));
  return {
    query: (given.get("q") ?? "").trim(), filters, page: page > 1 ? Math.min(page, MAX_PAGE) : 1, document: given.get("doc"),
    view: VIEWS.includes(given.get("view")) ? given.get("view") : "search", bm25: given.has("bm25"),
  };
}

/** The address of a state. */
export function addressOf(state) {
  const given = new URLSearchParams();
  if (state.view !== "search") given.set("view", state.view);
  if (state.query) given.set("q", state.query);
  for (const [field, values] of Object.entries(state.filters)) for (const value of values) given.append(FILTER + field, value);
  if (state.page > 1) given.set("page", state.page);
  if (state.bm25) given.set("bm25", "1");
  if (state.document !== null) given.set("doc", state.document);
  const text = given.toString();
  return location.pathname + (text ? `?${text}` : "");
}

/** What decides the results; a document or another view beside them changes nothing. */
export const searchKey = (state) => JSON.stringify([state.query, state.filters, state.page, state.bm25]);

let listener = () => {};

/** Call run(state, how) for each new state; how is "load", "back", "link" or "typing". */
export function followState(run) {
  listener = run;
  history.scrollRestoration = "manual"; // results arrive later than the browser would scroll
  addEventListener("popstate", () => run(readState(), "back"));
  addEventListener("scrollend", keepScroll);
  addEventListener("click", keepScroll, true); // a link may leave the page
  run(readState(), "load");
}

/** Go to a state that differs from this one by `changes`, as a new entry of the history or in place of this one. */
export function go(changes, { replace = false, how = "link" } = {}) {
  const state = { ...readState(), ...changes };
  const address = addressOf(state);
  if (address !== location.pathname + location.search) {
    if (replace) history.replaceState(null, "", address);
    else {
      keepScroll();
      history.pushState(null, "", address);
    }
  }
  listener(state, how);
}

function keepScroll() {
  history.replaceState({ scroll: scrollY }, "");
}

/** Scroll to where this entry of the history was left. */
export function restoreScroll() {
  scrollTo(0, history.state?.scroll ?? 0);
}
