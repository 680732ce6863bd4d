// The page: the search box, views by address, feedback, and the state of the service.

import { health, model, takeToken } from "./api.js";
import { openCompare } from "./compare.js";
import { showDocument } from "./document.js";
import { button, byId, element } from "./elements.js";
import { facetFields } from "./facets.js";
import { FeedbackQueue } from "./feedback.js";
import { drawJudging } from "./judge.js";
import { drawModel } from "./model.js";
import { clear, note } from "./notes.js";
import { showVote, walkResults } from "./results.js";
import { Search } from "./search.js";
import { linkLines } from "./slopegraph.js";
import { addressOf, followState, go, readState, restoreScroll } from "./state.js";
import { askToken } from "./token.js";
import { openWord } from "./words.js";

const TYPING_PAUSE_MS = 80; // a search starts when no key was pressed for this time
const SETTLED_MS = 1500; // after this pause, the query is an entry of the history of its own
const PREPARE_MS = 500;
const HEALTH_INTERVAL_MS = 4000;

const box = byId("query");
const list = byId("results");
const votes = new Map(); // "query\ndocument" -> grade
const clicked = new Set();
let version = null;
let offline = false;
let settled = true; // the next key begins an entry of the history
let cameFrom = null; // the result that led to the document on the page
let showing = 0; // number of the last state to show
const timers = {};

// ---- views

const search = new Search({
  answered: (answer) => { goOnline(); showVersion(answer.version); },
  failed: (trouble) => { if (trouble.kind === "offline") goOffline(); },
  compare: (first, second) => openCompare(search.answer, first, second),
  show: showResult,
  card: {
    click, judge: (id, grade) => judge(search.answer, id, grade), vote: (id) => votes.get(`${search.answer.query}\n${id}`) ?? 0,
    documentAddress: (id) => addressOf({ ...readState(), document: id }),
    openDocument: (id) => { cameFrom = id; go({ document: id }); },
    compare: (first, second) => openCompare(search.answer, first, second), word: openWord,
  },
});

/** Show the state of the address. */
async function show(state, how) {
  const own = (showing += 1);
  if (how !== "typing") [box.value, settled] = [state.query, true];
  const part = state.view === "search" && state.document !== null ? "document" : state.view;
  for (const name of ["search", "document", "judge", "model"]) byId(`${name}-view`).hidden = name !== part;
  for (const link of document.querySelectorAll("nav [data-view]")) {
    if (link.dataset.view === state.view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const titles = { judge: "Judge", model: "Model", document: state.document };
  document.title = [titles[part] ?? state.query, "SparseRank"].filter(Boolean).join(" – ");
  byId("toggle-bm25").setAttribute("aria-pressed", String(state.bm25));
  if (how === "link") scrollTo(0, 0);
  if (part === "judge") drawJudging(byId("judge-view"), { queue: feedbackQueue, go });
  if (part === "model") drawModel(byId("model-view"), { changed: checkHealth });
  if (part === "search" || (part === "document" && state.query)) await runSearch(state);
  if (own !== showing) return;
  if (part === "document") showText(state);
  if (how === "back" || how === "load") restoreScroll();
  if (part === "search" && how === "back" && cameFrom !== null) {
    titleOf(cameFrom)?.focus({ preventScroll: true });
    cameFrom = null;
  }
}

async function runSearch(state) {
  if (state.query) await search.run(state);
  else {
    search.current?.abort();
    search.forget();
    byId("welcome").hidden = false;
  }
}

function showText(state) {
  const answer = search.answer;
  const result = answer?.results.find((one) => one.id === state.document);
  showDocument(state.document, state, result, {
    back: () => (cameFrom === state.document ? history.back() : go({ document: null })),
    vote: (id) => votes.get(`${answer.query}\n${id}`) ?? 0, judge: (id, grade) => judge(answer, id, grade),
  });
}

const titleOf = (id) => [...list.querySelectorAll(".title")].find((one) => one.dataset.document === id);

function showResult(id) {
  titleOf(id)?.focus({ preventScroll: true });
  titleOf(id)?.scrollIntoView({ block: "center", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
}

/** Load example queries and the fields to filter by. */
async function prepare() {
  let found;
  try {
    found = await model();
  } catch {
    return; // the search and `checkHealth` say what is wrong
  }
  search.fields = facetFields(found);
  drawCollections(found);
  if (search.fields.length && search.answer && !search.answer.facets) search.run(readState(), { again: true });
  const words = found.examples ?? [];
  byId("welcome").replaceChildren(
    element("p", { class: "lead" }, `Search ${found.documents.toLocaleString("en")} documents${found.collection ? ` of ${found.collection}` : ""}. Every result can tell you why it is there.`),
    words.length > 0 && element("ul", { class: "examples", "aria-label": "Example queries" },
      ...words.map((text) => element("li", {}, button(text, { onclick: () => { go({ query: text, page: 1 }); box.focus(); } })))));
}

/** Links to the other collections of the service; the query stays. */
function drawCollections({ collection, collections }) {
  const link = (name) => element("a", {
    href: `/${name}/`, "aria-current": name === collection ? "true" : null,
    onclick: (event) => { event.currentTarget.href = `/${name}/${box.value.trim() ? `?${new URLSearchParams({ q: box.value.trim() })}` : ""}`; },
  }, name);
  byId("collections").replaceChildren(...(collections ?? []).map(link));
  byId("collections").hidden = !collections?.length;
}

// ---- feedback

const feedbackQueue = new FeedbackQueue(({ sent, waiting, trouble, refused }) => {
  const parts = [];
  if (sent) parts.push(`Thank you: ${sent} sent.`);
  if (waiting) parts.push(`${waiting} waiting to be sent.`);
  byId("feedback-status").textContent = parts.join(" ") || "Votes and visits make the results better.";
  if (refused.length) askToken("Only people with a token can vote.", () => feedbackQueue.send(), withdrawVotes);
  else if (trouble?.kind === "rejected") note("trouble", trouble.message, { trouble: true });
});

function judge(answer, id, grade) {
  votes.set(`${answer.query}\n${id}`, grade);
  showVote(id, grade);
  feedbackQueue.judge(answer, id, grade);
}

/** The user does not give a token: the votes are not kept. */
function withdrawVotes() {
  for (const { query, document } of feedbackQueue.forget()) {
    votes.delete(`${query}\n${document}`);
    if (search.answer?.query === query) showVote(document, 0);
  }
}

/** The user follows a result: a click, once per query. */
function click(id) {
  const key = `${search.answer.query}\n${id}`;
  if (clicked.has(key)) return;
  clicked.add(key);
  feedbackQueue.click(search.answer, id);
}

// ---- the service

function showVersion(number) {
  byId("version").textContent = `version ${number}`;
  if (version !== null && number !== version) {
    const again = search.answer && search.answer.version !== number ? [["Search again", () => search.run(readState(), { again: true })]] : [];
    note("version", `The results have learned: version ${number} is now served.`,
      { actions: [...again, ["What changed", () => go({ view: "model" })]], seconds: again.length ? 0 : 12 });
  }
  version = number;
}

function goOffline() {
  offline = true;
  document.body.classList.add("offline");
  byId("version").textContent = "not reached";
}

function goOnline() {
  if (!offline) return;
  offline = false;
  document.body.classList.remove("offline");
  clear("trouble");
  feedbackQueue.send();
}

async function checkHealth() {
  if (document.visibilityState === "visible") {
    try {
      const found = await health();
      const wasOffline = offline;
      goOnline();
      showVersion(found.version);
      if (wasOffline) await recover();
    } catch (trouble) {
      if (trouble.kind === "offline" && !offline) {
        goOffline();
        if (!search.answer && byId("failure").hidden) note("trouble", trouble.message, { trouble: true });
      }
    }
  }
  clearTimeout(timers.health); // a call between two timer events must not start a second timer
  timers.health = setTimeout(checkHealth, HEALTH_INTERVAL_MS);
}

/** The service is back: load what was missed, and search again if a search failed. */
async function recover() {
  await prepare();
  const state = readState();
  if (state.query && !search.answer && state.view === "search") await search.run(state, { again: true });
}

// ---- start

box.addEventListener("input", () => {
  clearTimeout(timers.typing);
  timers.typing = setTimeout(typed, TYPING_PAUSE_MS);
});

function typed() {
  clearTimeout(timers.typing);
  const query = box.value.trim();
  if (query !== readState().query || readState().view !== "search" || readState().document !== null) {
    const replace = !settled;
    settled = false;
    go({ query, page: 1, document: null, view: "search" }, { replace, how: "typing" });
  }
  clearTimeout(timers.settled);
  timers.settled = setTimeout(() => { settled = true; }, SETTLED_MS);
}

box.addEventListener("keydown", (event) => {
  if (event.key === "Enter") { typed(); settled = true; }
  if (event.key === "Escape" && box.value) { event.preventDefault(); box.value = ""; typed(); }
});
box.addEventListener("blur", () => { settled = true; });
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input:not([type=checkbox], [type=radio]), select, textarea, dialog")) return;
  event.preventDefault();
  box.focus();
  box.select();
});
for (const link of document.querySelectorAll("[data-view]")) {
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go({ view: link.dataset.view, document: null });
  });
}
byId("open-words").addEventListener("click", () => openWord());
byId("toggle-bm25").addEventListener("click", () => go({ bm25: !readState().bm25 }));
const wide = matchMedia("(min-width: 961px)");
wide.addEventListener("change", () => { byId("filters").open = wide.matches; });
byId("filters").open = wide.matches;
walkResults(list, box);
linkLines(list);
takeToken();
await Promise.race([prepare(), new Promise((done) => { setTimeout(done, PREPARE_MS); })]); // a slow answer delays no search
if (box.value.trim()) typed(); // what was typed while the page was loading
followState(show);
checkHealth();
feedbackQueue.send();
