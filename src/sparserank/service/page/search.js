// A search: its request, its results with filters and pages, what it changed in the query, and what it says if it fails.

import { search } from "./api.js";
import { button, byId, element, pluralize } from "./elements.js";
import { completeCounts, drawChips, drawFacets, hasFilters, toggled } from "./facets.js";
import { clear } from "./notes.js";
import { drawPages, PAGE_SIZE } from "./pages.js";
import { drawResults } from "./results.js";
import { drawSlopegraph } from "./slopegraph.js";
import { go, searchKey } from "./state.js";
import { tokenForm } from "./token.js";

const list = byId("results");

/** Runs searches and draws them. act: {answered(answer), failed(trouble), card: {…}, compare(first, second), show(id)} */
export class Search {
  constructor(act) {
    this.act = act;
    this.answer = null; // the response on the page
    this.key = null; // of the state that it answers
    this.fields = [];
    this.current = null;
  }

  /** Search for a state; results that are on the page already stay. */
  async run(state, { again = false } = {}) {
    const key = searchKey(state);
    if (!again && key === this.key) return;
    this.current?.abort();
    const own = new AbortController();
    this.current = own;
    const slow = setTimeout(() => list.classList.add("stale"), 250);
    const filter = hasFilters(state.filters) ? { filter: state.filters } : {};
    const request = { query: state.query, k: PAGE_SIZE, offset: (state.page - 1) * PAGE_SIZE, lexical: state.bm25, facets: this.fields, ...filter };
    try {
      const answer = await search(request, own.signal);
      if (own.signal.aborted) return;
      this.draw(answer, state, key);
      if (!answer.facets) return;
      const counts = await completeCounts(answer, state, own.signal);
      if (!own.signal.aborted) drawFacets(counts, state.filters, this.choices(state));
    } catch (trouble) {
      if (own.signal.aborted) return;
      if (this.key !== key) this.fail(trouble, state); // without the counts the results are still right
      this.act.failed(trouble);
    } finally {
      clearTimeout(slow);
    }
  }

  choices(state) {
    return {
      choose: (field, value) => go({ filters: toggled(state.filters, field, value), page: 1 }),
      clear: () => go({ filters: {}, page: 1 }),
    };
  }

  draw(answer, state, key) {
    const same = this.answer && this.key === key && this.answer.version !== answer.version;
    const before = same ? new Map(this.answer.results.map((one, place) => [one.id, place])) : null;
    const focused = document.activeElement?.dataset?.document;
    const from = ["pages", "chips"].find((id) => byId(id).contains(document.activeElement)); // these are drawn again
    [this.answer, this.key] = [answer, key];
    this.hideAll();
    list.dataset.query = answer.query;
    drawResults(list, answer, { ...this.act.card, fields: this.fields, offset: (state.page - 1) * PAGE_SIZE }, before);
    if (focused) [...list.querySelectorAll(".title")].find((one) => one.dataset.document === focused)?.focus();
    if (from === "pages") list.querySelector(".title")?.focus({ preventScroll: true });
    if (from === "chips") byId("main").focus({ preventScroll: true });
    drawSlopegraph(answer, { show: this.act.show, compare: (id) => this.act.compare(answer.results[0].id, id) });
    byId("tools").hidden = !answer.results.length;
    drawPages(state, answer);
    drawChips(state.filters, ...Object.values(this.choices(state)));
    byId("count").textContent = countText(answer, state);
    byId("count").classList.toggle("nothing", !answer.results.length);
    drawCorrections(answer);
    if (!answer.results.length && hasFilters(state.filters)) offerWithoutFilters(this.choices(state).clear);
    this.act.answered(answer);
  }

  /** Old results under a new query would be wrong, so they go. */
  fail(trouble, state) {
    this.forget();
    const again = () => this.run(state, { again: true });
    const content = trouble.kind === "token"
      ? [element("h2", {}, "This search needs a token"), element("p", {}, "The service prints it when it starts; your administrator has it."), tokenForm("search-token", again)]
      : [element("h2", {}, trouble.kind === "offline" ? "The search service does not answer" : "The search did not work"),
        element("p", {}, trouble.kind === "offline" ? `Your query “${state.query}” is kept. This page tries again by itself.` : trouble.message),
        button("Try again", { class: "again", onclick: again })];
    byId("failure").replaceChildren(...content);
    byId("failure").hidden = false;
    if (trouble.kind === "rejected") drawChips(state.filters, ...Object.values(this.choices(state))); // a filter may be the reason
    if (trouble.kind === "busy") setTimeout(() => { if (byId("failure").contains(content[0])) again(); }, trouble.wait * 1000);
  }

  /** Clear the results. */
  forget() {
    [this.answer, this.key] = [null, null];
    this.hideAll();
    list.replaceChildren();
    delete list.dataset.query;
    byId("count").textContent = "";
  }

  hideAll() {
    list.classList.remove("stale");
    for (const id of ["failure", "welcome", "bm25", "tools", "pages", "corrections", "chips"]) byId(id).hidden = true;
    if (!this.answer) byId("filters").hidden = true;
    clear("trouble");
  }
}

function countText(answer, state) {
  const unknown = unknownText(answer);
  if (!answer.results.length && state.page > 1) return "There are no more results.";
  if (!answer.results.length) return `Nothing found for “${answer.query}”${unknown ? `: ${unknown}` : ""}. Try fewer or other words.`;
  const first = (state.page - 1) * PAGE_SIZE + 1;
  const many = answer.results.length === PAGE_SIZE || state.page > 1;
  const of = answer.total === null ? "" : ` of ${answer.total_is_exact ? "" : "about "}${answer.total.toLocaleString("en")}`;
  const number = many ? `Results ${first} to ${first + answer.results.length - 1}${of}` : pluralize(answer.results.length, "result");
  return `${number} in ${Math.max(1, Math.round(answer.milliseconds))} ms${unknown && ` – ${unknown}`}`;
}

function unknownText(answer) {
  const corrected = new Set((answer.corrections ?? []).map((one) => one.word.toLowerCase()));
  const completed = new Set((answer.completed ?? []).map((word) => word.toLowerCase()));
  const unknown = answer.unknown.filter((word) => !corrected.has(word.toLowerCase()) && !completed.has(word.toLowerCase()));
  if (!unknown.length) return "";
  const words = unknown.map((word) => `“${word}”`).join(", ");
  return `no document contains the ${unknown.length === 1 ? "word" : "words"} ${words}`;
}

/** A word that no document has was replaced; beside a rare word, a frequent one was searched for as well. */
function drawCorrections(answer) {
  const unknown = new Set(answer.unknown.map((word) => word.toLowerCase()));
  const corrections = answer.corrections ?? [];
  const replaced = corrections.filter((one) => unknown.has(one.word.toLowerCase()));
  const added = corrections.filter((one) => !unknown.has(one.word.toLowerCase()));
  const content = [];
  if (replaced.length) {
    const query = corrected(answer.query, replaced);
    content.push(element("p", {}, "Did you mean ", button(`Search for ${query}`, { onclick: () => go({ query, page: 1 }) }, query), "? No document contains ",
      replaced.map((one) => `“${one.word}”`).join(" or "), ", so these are the results for it."));
  }
  if (added.length) {
    content.push(element("p", {}, "Also searched for ", ...added.flatMap((one, place) => [place ? ", " : "", element("strong", {}, one.replacement)]), ", because few documents contain ",
      added.map((one) => `“${one.word}”`).join(" or "), "."));
  }
  byId("corrections").replaceChildren(...content);
  byId("corrections").hidden = !content.length;
}

function corrected(query, corrections) {
  const used = new Map(corrections.map((one) => [one.word.toLowerCase(), one.replacement]));
  return query.split(/([\p{L}\p{N}_]+)/u).map((part) => used.get(part.toLowerCase()) ?? part).join("");
}

function offerWithoutFilters(remove) {
  byId("corrections").hidden = false;
  byId("corrections").append(element("p", {}, button("Search without the filters", { class: "again", onclick: remove })));
}
