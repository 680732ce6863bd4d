// The page: the search box, the results, and the dialogs.

import { drawSlopegraph, linkLines } from "./slopegraph.js";
import { drawWelcome, openChanges, openModel } from "./changes.js";
import { openCompare } from "./compare.js";
import { button, byId, pluralize, element, openSheet } from "./elements.js";
import { clear, note } from "./notes.js";
import { drawResults, walkResults } from "./results.js";
import { explain, health, search, setToken, takeToken } from "./api.js";
import { FeedbackQueue } from "./feedback.js";
import { openWord } from "./words.js";

const TYPING_PAUSE_MS = 80; // a search starts when no key was pressed for this time
const HEALTH_INTERVAL_MS = 4000;
const MAX_RESULTS = 100;

const box = byId("query");
const list = byId("results");
const votes = new Map(); // "query\ndocument" -> grade
const clicked = new Set();
const withToken = new Set(); // what runs again when the user gives a token
let k = 10;
let answer = null; // the response on the page
let version = null;
let typingTimer = null;
let currentSearch = null;
let healthTimer = null;
let offline = false;

// ---- errors

function showError(trouble, again) {
  if (trouble.name === "AbortError") return;
  if (trouble.kind === "token") return void askToken(trouble.message, again);
  if (trouble.kind === "offline") goOffline();
  note("trouble", trouble.message, { trouble: true, actions: again ? [["Try again", again]] : [] });
  if (trouble.kind === "busy" && again) setTimeout(() => { clear("trouble"); again(); }, trouble.wait * 1000);
}

function goOffline() {
  offline = true;
  document.body.classList.add("offline");
  byId("version").textContent = "offline";
}

function askToken(sentence, again) {
  if (again) withToken.add(again);
  if (byId("token").open) return void (byId("token").querySelector("p").textContent = sentence); // keeps what is typed
  const input = element("input", { id: "token-input", type: "password", autocomplete: "off", required: true });
  const dialog = byId("token");
  const form = element("form", {
    class: "token-form",
    onsubmit: (event) => {
      event.preventDefault();
      setToken(input.value);
      dialog.close();
      const waiting = [...withToken];
      withToken.clear();
      for (const run of waiting) run();
    },
  }, element("label", { for: "token-input" }, "Token"), input, element("button", { type: "submit" }, "Use token"));
  openSheet(dialog, "Enter the token", element("p", {}, sentence),
    element("p", { class: "small" }, "The service printed it when it started. This tab forgets it when you close it."), form);
  input.focus();
}

// ---- search

function countText(response) {
  const unknown = unknownText(response);
  if (!response.results.length) return `No results for “${response.query}”${unknown ? `: ${unknown}` : ""}. Try fewer or other words.`;
  return `${pluralize(response.results.length, "result")} in ${Math.max(1, Math.round(response.milliseconds))} ms${unknown && ` – ${unknown}`}`;
}

function unknownText(response) {
  if (!response.unknown.length) return "";
  const words = response.unknown.map((word) => `“${word}”`).join(", ");
  return `no document contains the ${response.unknown.length === 1 ? "word" : "words"} ${words}`;
}

function draw(response) {
  const same = answer && answer.query === response.query && answer.version !== response.version;
  const before = same ? new Map(answer.results.map((one, place) => [one.id, place])) : null;
  const focused = document.activeElement?.dataset?.document;
  answer = response;
  list.classList.remove("stale");
  list.dataset.query = response.query;
  drawResults(list, response, {
    sendClick, judge, allPairs: (id) => allPairs(response, id), compare: (first, second) => openCompare(answer, first, second), word: openWord,
    vote: (id) => votes.get(`${response.query}\n${id}`) ?? 0,
  }, before);
  if (focused) [...list.querySelectorAll(".title")].find((one) => one.dataset.document === focused)?.focus();
  drawSlopegraph(response, { show: showResult, compare: (id) => openCompare(answer, answer.results[0].id, id) });
  byId("to-bm25").hidden = byId("bm25").hidden;
  byId("legend").hidden = !response.results.length;
  byId("welcome").hidden = true;
  byId("more").hidden = response.results.length < k || k >= MAX_RESULTS;
  byId("count").textContent = countText(response);
  byId("count").classList.toggle("nothing", !response.results.length);
  showVersion(response.version);
}

/** Fetch all pairs of a result; null after an error, or if another version answers. */
async function allPairs(shown, id) {
  try {
    const explanation = await explain(shown.query, id);
    return explanation.version === shown.version ? explanation.pairs : null;
  } catch (trouble) {
    showError(trouble);
    return null;
  }
}

function showWelcome() {
  answer = null;
  list.replaceChildren();
  for (const id of ["bm25", "to-bm25", "legend", "more"]) byId(id).hidden = true;
  byId("count").textContent = "";
  byId("welcome").hidden = false;
}

async function run() {
  currentSearch?.abort();
  const query = box.value.trim();
  remember(query);
  if (!query) return void showWelcome();
  const own = new AbortController();
  currentSearch = own;
  const slow = setTimeout(() => list.classList.add("stale"), 250);
  try {
    const response = await search(query, k, own.signal);
    if (own.signal.aborted) return;
    goOnline();
    draw(response);
  } catch (trouble) {
    if (!own.signal.aborted) showError(trouble, run);
  } finally {
    clearTimeout(slow);
  }
}

/** Keep the query in the address, for reloads and bookmarks. */
function remember(query) {
  const address = query ? `${location.pathname}?q=${encodeURIComponent(query)}` : location.pathname;
  if (address !== location.pathname + location.search) history.replaceState(null, "", address);
  document.title = query ? `${query} – SparseRank` : "SparseRank";
}

function showResult(id) {
  const item = [...list.children].find((one) => one.dataset.id === id);
  item?.querySelector(".title").focus();
  item?.scrollIntoView({ block: "center", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
}

// ---- feedback

const feedbackQueue = new FeedbackQueue(({ sent, waiting, trouble }) => {
  const parts = [];
  if (sent) parts.push(`Feedback sent: ${sent}.`);
  if (waiting) parts.push(`Waiting to be sent: ${waiting}.`);
  byId("feedback-status").textContent = parts.join(" ") || "Votes and clicks improve the ranking.";
  if (trouble?.kind === "token") askToken(trouble.message, sendAgain);
  else if (trouble?.kind === "rejected") note("trouble", trouble.message, { trouble: true });
});

const sendAgain = () => feedbackQueue.send();
const shownIds = () => answer.results.map((one) => one.id);

function judge(id, grade) {
  votes.set(`${answer.query}\n${id}`, grade);
  feedbackQueue.judge(answer.query, id, shownIds(), grade);
}

/** Send a click when a title is opened, once per query. */
function sendClick(id) {
  const key = `${answer.query}\n${id}`;
  if (clicked.has(key)) return;
  clicked.add(key);
  feedbackQueue.click(answer.query, id, shownIds());
}

// ---- the served version

function showVersion(number) {
  byId("version").textContent = `version ${number}`;
  if (version !== null && number !== version) {
    const again = answer && answer.version !== number ? [["Search again", run]] : [];
    note("version", `Version ${number} is now served.`, { actions: [...again, ["What changed", () => openChanges(1)]], seconds: again.length ? 0 : 12 });
  }
  version = number;
}

function goOnline() {
  clear("trouble");
  if (!offline) return;
  offline = false;
  document.body.classList.remove("offline");
  note("back", "The service is online again.", { seconds: 4 });
  feedbackQueue.send();
  if (byId("welcome").childElementCount === 0) welcome();
}

async function checkHealth() {
  if (document.visibilityState === "visible") {
    try {
      const response = await health();
      const wasOffline = offline;
      if (wasOffline) goOnline();
      showVersion(response.version);
      if (wasOffline && box.value.trim() && answer?.query !== box.value.trim()) run();
    } catch (trouble) {
      if (trouble.kind === "offline" && !offline) showError(trouble, run);
    }
  }
  clearTimeout(healthTimer); // a call between two timer events must not start a second timer
  healthTimer = setTimeout(checkHealth, HEALTH_INTERVAL_MS);
}

const welcome = () => drawWelcome(byId("welcome"), {
  words: () => openWord(), changes: () => openChanges(1),
  onError: (trouble) => { if (trouble.kind === "token") showError(trouble, welcome); }, // `checkHealth` reports other errors
});

// ---- start

takeToken();
box.value = new URLSearchParams(location.search).get("q") ?? "";
box.addEventListener("input", () => {
  k = 10;
  clearTimeout(typingTimer);
  typingTimer = setTimeout(run, TYPING_PAUSE_MS);
});
box.addEventListener("keydown", (event) => {
  if (event.key === "Enter") { clearTimeout(typingTimer); run(); }
  if (event.key === "Escape" && box.value) { event.preventDefault(); box.value = ""; run(); }
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, select, textarea, dialog")) return;
  event.preventDefault();
  box.focus();
  box.select();
});
byId("more").addEventListener("click", () => { k = Math.min(MAX_RESULTS, k + 20); run(); });
byId("open-words").addEventListener("click", () => openWord());
byId("open-changes").addEventListener("click", () => openChanges(1));
byId("open-model").addEventListener("click", () => openModel({ onError: showError, onChange: checkHealth }));
walkResults(list, box);
linkLines(list);
welcome();
run();
checkHealth();
feedbackQueue.send();
