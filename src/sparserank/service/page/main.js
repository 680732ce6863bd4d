// The page: a box, an answer, and everything that can be asked about it.

import { drawBeside, linkLines } from "./beside.js";
import { drawWelcome, openChanges, openModel } from "./changes.js";
import { openCompare } from "./compare.js";
import { button, byId, counted, element, openSheet } from "./elements.js";
import { clear, note } from "./notes.js";
import { drawResults, walkResults } from "./results.js";
import { explain, health, search, setToken, takeToken } from "./service.js";
import { Teacher } from "./teach.js";
import { openWord } from "./words.js";

const PAUSE = 80; // milliseconds without a key before a search: below what a hand notices
const LOOK = 4000; // milliseconds between two looks at the service
const MOST = 100;

const box = byId("query");
const list = byId("results");
const judged = new Map(); // "query\ndocument" -> grade
const clicked = new Set();
const withToken = new Set(); // what is asked again when a token is given
let k = 10;
let answer = null; // what is shown
let version = null;
let typing = null;
let running = null;
let looking = null;
let gone = false;

// ---- trouble, said kindly

function failed(trouble, again) {
  if (trouble.name === "AbortError") return;
  if (trouble.kind === "token") return void askToken(trouble.message, again);
  if (trouble.kind === "gone") lost();
  note("trouble", trouble.message, { trouble: true, actions: again ? [["Try again", again]] : [] });
  if (trouble.kind === "busy" && again) setTimeout(() => { clear("trouble"); again(); }, trouble.wait * 1000);
}

function lost() {
  gone = true;
  document.body.classList.add("gone");
  byId("version").textContent = "not there";
}

function askToken(sentence, again) {
  if (again) withToken.add(again);
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
  }, element("label", { for: "token-input" }, "Token"), input, element("button", { type: "submit" }, "Use it"));
  openSheet(dialog, "The service asks for its token", element("p", {}, sentence),
    element("p", { class: "small" }, "It was printed where the service was started, and is kept for this tab only."), form);
  input.focus();
}

// ---- search

function countText(found) {
  const unknown = unknownText(found);
  if (!found.results.length) return `Nothing found for “${found.query}”${unknown ? `: ${unknown}` : ""}. Fewer or other words may help.`;
  return `${counted(found.results.length, "result")} in ${Math.max(1, Math.round(found.milliseconds))} ms${unknown && ` – ${unknown}`}`;
}

function unknownText(found) {
  if (!found.unknown.length) return "";
  const words = found.unknown.map((word) => `“${word}”`).join(", ");
  return `no document has ${found.unknown.length === 1 ? `the word ${words} itself` : `the words ${words} themselves`}`;
}

function draw(found) {
  const same = answer && answer.query === found.query && answer.version !== found.version;
  const before = same ? new Map(answer.results.map((one, place) => [one.id, place])) : null;
  const focused = document.activeElement?.dataset?.document;
  answer = found;
  list.classList.remove("stale");
  list.dataset.query = found.query;
  drawResults(list, found, {
    opened, judge, whole: (id) => everyPair(found, id), compare: (first, second) => openCompare(answer, first, second), word: openWord,
    judged: (id) => judged.get(`${found.query}\n${id}`) ?? 0,
  }, before);
  if (focused) [...list.querySelectorAll(".title")].find((one) => one.dataset.document === focused)?.focus();
  drawBeside(found, { show: showResult, compare: (id) => openCompare(answer, answer.results[0].id, id) });
  byId("to-beside").hidden = byId("beside").hidden;
  byId("legend").hidden = !found.results.length;
  byId("welcome").hidden = true;
  byId("more").hidden = found.results.length < k || k >= MOST;
  byId("count").textContent = countText(found);
  byId("count").classList.toggle("nothing", !found.results.length);
  served(found.version);
}

/** All pairs of a result; null where they cannot be had, or another version made them. */
async function everyPair(found, id) {
  try {
    const told = await explain(found.query, id);
    return told.version === found.version ? told.pairs : null;
  } catch (trouble) {
    failed(trouble);
    return null;
  }
}

function rest() {
  answer = null;
  list.replaceChildren();
  for (const id of ["beside", "to-beside", "legend", "more"]) byId(id).hidden = true;
  byId("count").textContent = "";
  byId("welcome").hidden = false;
}

async function run() {
  running?.abort();
  const query = box.value.trim();
  remember(query);
  if (!query) return void rest();
  const own = new AbortController();
  running = own;
  const slow = setTimeout(() => list.classList.add("stale"), 250);
  try {
    const found = await search(query, k, own.signal);
    if (own.signal.aborted) return;
    back();
    draw(found);
  } catch (trouble) {
    if (!own.signal.aborted) failed(trouble, run);
  } finally {
    clearTimeout(slow);
  }
}

/** The address keeps the query, so that a reload or a bookmark comes back to it. */
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

// ---- teaching

const teacher = new Teacher(({ sent, waiting, trouble }) => {
  const parts = [];
  if (sent) parts.push(`${counted(sent, "lesson")} taught.`);
  if (waiting) parts.push(`${counted(waiting, "lesson")} kept here until the service takes ${waiting === 1 ? "it" : "them"}.`);
  byId("taught").textContent = parts.join(" ") || "Thumbs and clicks teach the ranking.";
  if (trouble?.kind === "token") askToken(trouble.message, sendAgain);
  else if (trouble?.kind === "asked") note("trouble", trouble.message, { trouble: true });
});

const sendAgain = () => teacher.send();
const shown = () => answer.results.map((one) => one.id);

function judge(id, grade) {
  judged.set(`${answer.query}\n${id}`, grade);
  teacher.judge(answer.query, id, shown(), grade);
}

/** A press on a title is a click on the result, once a query. */
function opened(id) {
  const key = `${answer.query}\n${id}`;
  if (clicked.has(key)) return;
  clicked.add(key);
  teacher.click(answer.query, id, shown());
}

// ---- the version being served

function served(number) {
  byId("version").textContent = `version ${number}`;
  if (version !== null && number !== version) {
    const again = answer && answer.version !== number ? [["Search again", run]] : [];
    note("version", `Version ${number} is being served now.`, { actions: [...again, ["What changed", () => openChanges(1)]], seconds: again.length ? 0 : 12 });
  }
  version = number;
}

function back() {
  clear("trouble");
  if (!gone) return;
  gone = false;
  document.body.classList.remove("gone");
  note("back", "The service is back.", { seconds: 4 });
  teacher.send();
  if (byId("welcome").childElementCount === 0) welcome();
}

async function look() {
  if (document.visibilityState === "visible") {
    try {
      const told = await health();
      const was = gone;
      if (was) back();
      served(told.version);
      if (was && box.value.trim() && answer?.query !== box.value.trim()) run();
    } catch (trouble) {
      if (trouble.kind === "gone" && !gone) failed(trouble, run);
    }
  }
  clearTimeout(looking); // whoever looks between two looks does not begin a second row of them
  looking = setTimeout(look, LOOK);
}

const welcome = () => drawWelcome(byId("welcome"), {
  words: () => openWord(), changes: () => openChanges(1),
  failed: (trouble) => { if (trouble.kind === "token") failed(trouble, welcome); }, // the rest is said by whoever looks
});

// ---- beginning

takeToken();
box.value = new URLSearchParams(location.search).get("q") ?? "";
box.addEventListener("input", () => {
  k = 10;
  clearTimeout(typing);
  typing = setTimeout(run, PAUSE);
});
box.addEventListener("keydown", (event) => {
  if (event.key === "Enter") { clearTimeout(typing); run(); }
  if (event.key === "Escape" && box.value) { event.preventDefault(); box.value = ""; run(); }
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, select, textarea, dialog")) return;
  event.preventDefault();
  box.focus();
  box.select();
});
byId("more").addEventListener("click", () => { k = Math.min(MOST, k + 20); run(); });
byId("open-words").addEventListener("click", () => openWord());
byId("open-changes").addEventListener("click", () => openChanges(1));
byId("open-model").addEventListener("click", () => openModel({ failed, changed: look }));
walkResults(list, box);
linkLines(list);
welcome();
run();
look();
teacher.send();
