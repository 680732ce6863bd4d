// Changes of pairs, the served version, and rollback.

import { pairWords } from "./bars.js";
import { ago, button, byId, pluralize, element, openSheet, signed } from "./elements.js";
import { changes, model, rollback } from "./api.js";
import { openWord } from "./words.js";

const PERIODS = [[1, "since yesterday"], [7, "in the last week"], [30, "in the last month"], [365, "in the last year"]];

function changeRow(change, most) {
  const step = change.after - change.before;
  const track = element("span", { class: "track step", "aria-hidden": "true" });
  const bar = element("span", { class: step < 0 ? "bar away" : "bar" });
  bar.style.left = `${50 + Math.min(0, (50 * step) / most)}%`;
  bar.style.width = `${Math.max((50 * Math.abs(step)) / most, 0.6)}%`;
  track.append(bar);
  return element("tr", { class: "learned" },
    element("th", { scope: "row" }, pairWords(change, openWord)),
    element("td", { class: "value" }, change.before ? signed(change.before) : "–"),
    element("td", { class: "value" }, change.after ? signed(change.after) : "removed"),
    element("td", { class: "bar-cell" }, track));
}

function changeTable(response) {
  const most = Math.max(...response.changes.map((one) => Math.abs(one.after - one.before)), 1e-9);
  return element("table", { class: "change-table" },
    element("thead", {}, element("tr", {}, ...["pair", "before", "now", "step"].map((name) => element("th", { scope: "col" }, name)))),
    element("tbody", {}, ...response.changes.map((one) => changeRow(one, most))));
}

/** Show the pairs that changed most in the last days. */
export async function openChanges(days = 1) {
  const when = PERIODS.find(([length]) => length === days)?.[1] ?? `in ${days} days`;
  const select = element("select", { id: "period", onchange: (event) => openChanges(Number(event.target.value)) },
    ...PERIODS.map(([length, name]) => element("option", { value: length, selected: length === days }, name)));
  const chooser = element("div", { class: "chooser" }, element("label", { for: "period" }, "Changes"), select);
  let inside;
  try {
    const response = await changes(days, 50);
    const text = response.changes.length
      ? `Version ${response.before} → version ${response.after}: the ${pluralize(response.changes.length, "pair")} that changed most.`
      : `No changes ${when}: version ${response.after} is still served.`;
    inside = [element("p", { role: "status" }, text), response.changes.length ? changeTable(response) : null];
  } catch (trouble) {
    inside = [element("p", { class: "empty", role: "alert" }, trouble.message)];
  }
  openSheet(byId("changes"), "What changed", chooser, ...inside);
}

function facts(response) {
  const rows = [["documents", response.documents], ["words", response.words], ["word pairs", response.pairs]];
  return element("dl", { class: "facts" }, ...rows.map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, Number(value ?? 0).toLocaleString("en")))));
}

function versionItem(version, current, act) {
  const own = version.number === current;
  const back = button(`Restore version ${version.number}`, {
    onclick: () => {
      const sure = button(`Serve version ${version.number}`, { class: "sure", onclick: () => act.goBack(version.number) });
      back.replaceWith(sure);
      sure.focus();
    },
  }, "Restore");
  return element("li", { class: own ? "current" : null, "aria-current": own ? "true" : null },
    element("div", {}, element("strong", {}, `Version ${version.number}`), own && " is served",
      element("time", { datetime: version.made, title: version.made }, ago(version.made))),
    element("p", {}, version.why), !own && back);
}

/** The outcome of the last learning round. */
function learnerText(learner) {
  const last = learner?.last;
  if (!last?.said) return null;
  return element("p", { class: "learner", role: "status" }, element("strong", {}, learner.working ? "Learning now. " : "Last round: "), last.said,
    last.at && element("time", { datetime: last.at, title: last.at }, ago(last.at)));
}

/** Show the model and its versions, newest first. act: {onError(trouble, again), onChange()} */
export async function openModel(act) {
  let inside;
  try {
    const response = await model();
    const goBack = async (number) => {
      try {
        await rollback(number);
        byId("model").close();
        act.onChange();
      } catch (trouble) {
        byId("model").close();
        act.onError(trouble, () => openModel(act));
      }
    };
    inside = [facts(response), learnerText(response.learner),
      element("ol", { class: "versions", reversed: true }, ...[...response.versions].reverse().map((one) => versionItem(one, response.version, { goBack })))];
  } catch (trouble) {
    inside = [element("p", { class: "empty", role: "alert" }, trouble.message)];
  }
  openSheet(byId("model"), "Served model", ...inside);
}

/** The start page, before the first search. */
export async function drawWelcome(section, act) {
  let response;
  try {
    response = await model();
  } catch (trouble) {
    return void act.onError(trouble);
  }
  section.replaceChildren(
    element("p", { class: "lead" }, "Search with explanations: every result shows which query word met which document word, and what the pair added. Your votes improve the ranking."),
    facts(response),
    element("div", { class: "ways" },
      button("Explore a word", { onclick: act.words }), button("What changed since yesterday", { onclick: act.changes })));
}
