// The judging view: a list of queries, a grade for each of the best results, progress, and export.

import { exactSearch } from "./api.js";
import { button, element, failure, loading, pluralize, roving, screenReaderText } from "./elements.js";
import { beirQrels, beirQueries, download, loadGrades, normalized, trecQrels } from "./qrels.js";
import { linkOf, passage } from "./results.js";
import { tokenForm } from "./token.js";

const KEY = "sparserank.queries";
const DEPTH = 10;
const GRADES = [["No", -1], ["A little", 1], ["Good", 2], ["Perfect", 3]]; // to the service, 0 is a grade taken back
const EXPORTS = [["qrels.tsv", beirQrels, "Judgments (BEIR)"], ["queries.jsonl", beirQueries, "Queries (BEIR)"], ["qrels.txt", trecQrels, "Judgments (TREC)"]];

let grades = null; // as `loadGrades` returns it
let chosen = null; // normalized query on the right

/** Queries that this browser judges: [{text, shown: ids of the results}]. */
function ownQueries() {
  try {
    const found = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(found) ? found.filter((one) => typeof one?.text === "string") : [];
  } catch {
    return [];
  }
}

const keep = (queries) => localStorage.setItem(KEY, JSON.stringify(queries));

/** The user's list, and queries that others judged. */
function allQueries() {
  const own = ownQueries();
  const known = new Set(own.map((one) => normalized(one.text)));
  return [...own, ...[...grades].filter(([key, one]) => !known.has(key) && one.grades.size).map(([, one]) => ({ text: one.text, shown: null }))];
}

function progressOf({ text, shown }) {
  const given = grades.get(normalized(text))?.grades ?? new Map();
  return shown === null ? [given.size, given.size] : [shown.filter((id) => given.has(id)).length, shown.length];
}

function setGrade(answer, document, grade, queue) {
  const key = normalized(answer.query);
  if (!grades.has(key)) grades.set(key, { text: answer.query, grades: new Map() });
  grades.get(key).grades.set(document, grade);
  queue.judge(answer, document, grade);
}

/** Draw the view. act: {queue} */
export async function drawJudging(view, act) {
  const status = element("div", {}, loading());
  view.replaceChildren(element("h2", { class: "view-title" }, "Judge results"), status);
  try {
    grades = await loadGrades();
  } catch (trouble) {
    if (trouble.kind !== "token") return void status.replaceChildren(failure(trouble), button("Try again", { class: "again", onclick: () => drawJudging(view, act) }));
    return void status.replaceChildren(element("div", { class: "ask-token" },
      element("p", {}, "Grades change the results for everybody, so judging needs a token."), tokenForm("judge-token", () => drawJudging(view, act))));
  }
  const progress = element("div", { class: "progress", role: "status" });
  const list = element("div", { class: "query-list" });
  const results = element("section", { class: "to-judge", "aria-label": "Results to judge" });
  status.replaceChildren(
    element("p", {}, "Give the best results of each query a grade. The grades teach the ranking, and you can export them to measure it."),
    progress, element("div", { class: "judging" }, element("div", {}, list, addForm((texts) => { addQueries(texts); redraw(); choose(texts[0]); }), exportButtons()), results));

  const redraw = () => {
    drawProgress(progress);
    drawQueries(list, choose, (text) => { keep(ownQueries().filter((one) => one.text !== text)); chosen = null; redraw(); results.replaceChildren(hint()); });
  };
  const choose = async (text) => {
    chosen = normalized(text);
    redraw();
    await drawResultsToJudge(results, text, act.queue, redraw);
  };
  redraw();
  const first = allQueries().find((one) => normalized(one.text) === chosen) ?? allQueries().find((one) => { const [done, all] = progressOf(one); return done < all || !all; });
  if (first) choose(first.text);
  else results.replaceChildren(hint());
}

const hint = () => element("p", { class: "empty" }, allQueries().length ? "Choose a query." : "Add the queries that matter to you, one on each line.");

function drawProgress(progress) {
  const queries = allQueries();
  const counts = queries.map(progressOf);
  const done = counts.reduce((total, [number]) => total + number, 0);
  const complete = counts.filter(([number, all]) => all && number === all).length;
  const all = queries.reduce((total, one, place) => total + (one.shown?.length === 0 ? DEPTH : counts[place][1]), 0);
  progress.replaceChildren(
    element("progress", { value: done, max: Math.max(all, 1), "aria-label": "Results judged" }),
    element("span", {}, `${pluralize(done, "result")} judged, ${complete} of ${pluralize(queries.length, "query", "queries")} complete`));
}

function drawQueries(list, choose, remove) {
  const own = new Set(ownQueries().map((one) => one.text));
  const focused = list.contains(document.activeElement) ? document.activeElement.dataset.query : null;
  const items = allQueries().map((one) => {
    const [done, all] = progressOf(one);
    return element("li", {}, element("button", {
      type: "button", "data-query": one.text, "aria-current": normalized(one.text) === chosen ? "true" : null, onclick: () => choose(one.text),
    }, element("span", {}, one.text), element("span", { class: all && done === all ? "done" : "count" }, all ? `${done}/${all}` : "new", all && done === all ? " ✓" : "")),
    own.has(one.text) && button(`Remove ${one.text}`, { class: "close", onclick: () => remove(one.text) }, "×"));
  });
  list.replaceChildren(items.length ? roving(element("ul", { "aria-label": "Queries" }, ...items), "button") : "");
  if (focused) [...list.querySelectorAll("[data-query]")].find((one) => one.dataset.query === focused)?.focus();
}

function addQueries(texts) {
  const known = new Set(ownQueries().map((one) => normalized(one.text)));
  keep([...ownQueries(), ...texts.filter((text) => !known.has(normalized(text))).map((text) => ({ text, shown: [] }))]);
}

function addForm(add) {
  const area = element("textarea", { id: "new-queries", rows: "3", maxlength: "20000", spellcheck: "false" });
  return element("form", {
    class: "add-queries",
    onsubmit: (event) => {
      event.preventDefault();
      const texts = [...new Set(area.value.split("\n").map((line) => line.trim().slice(0, 1000)).filter(Boolean))];
      if (!texts.length) return;
      area.value = "";
      add(texts);
    },
  }, element("label", { for: "new-queries" }, "Add queries, one on each line"), area, element("button", { type: "submit" }, "Add"));
}

function exportButtons() {
  return element("details", { class: "export" }, element("summary", {}, "Export"),
    ...EXPORTS.map(([name, write, label]) => button(`Download ${name}`, { onclick: () => download(name, write(grades)) }, `${label}: `, element("code", {}, name))));
}

async function drawResultsToJudge(section, text, queue, redraw) {
  section.replaceChildren(loading());
  let answer;
  try {
    answer = await exactSearch({ query: text, k: DEPTH, split: false, total: false });
  } catch (trouble) {
    return void section.replaceChildren(failure(trouble));
  }
  if (chosen !== normalized(text)) return;
  keep(ownQueries().map((one) => (normalized(one.text) === chosen ? { ...one, shown: answer.results.map((result) => result.id) } : one)));
  redraw();
  const items = answer.results.map((result, place) => judgedResult(result, place, answer, queue, redraw));
  section.replaceChildren(element("h3", {}, text),
    element("p", { class: "small" }, items.length ? "The keys 0 to 3 give a grade and go to the next result." : "Nothing found for this query."),
    element("ol", {}, ...items));
}

function judgedResult(result, place, answer, queue, redraw) {
  const name = result.title || result.id;
  const url = linkOf(result.metadata);
  const given = grades.get(normalized(answer.query))?.grades.get(result.id);
  const inputs = GRADES.map(([, grade]) => element("input", {
    type: "radio", name: `grade-${place}`, id: `grade-${place}-${grade}`, value: grade, checked: given !== undefined && (grade === given || (grade === 3 && given > 3)),
    onchange: () => { setGrade(answer, result.id, grade, queue); redraw(); },
  }));
  const item = element("li", { class: "card" },
    element("fieldset", {}, element("legend", {}, url ? element("a", { href: url.href, target: "_blank", rel: "noreferrer noopener" }, name, screenReaderText(" (in a new tab)")) : name),
      result.passage.text && passage(result),
      element("div", { class: "grades" }, ...GRADES.map(([label], number) => element("label", { for: inputs[number].id }, inputs[number], `${number} ${label}`)))));
  item.addEventListener("keydown", (event) => {
    const input = inputs[Number(event.key)];
    if (event.key === " " || !input || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    input.click();
    const next = item.nextElementSibling;
    (next?.querySelector("input:checked") ?? next?.querySelector("input") ?? input).focus();
  });
  return item;
}
