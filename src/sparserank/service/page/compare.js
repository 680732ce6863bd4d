// Two results side by side: one sentence with the fewest pairs that put one above the other, and a table of all.

import { compare } from "./api.js";
import { byId, element, failure, loading, openSheet, pluralize, signed, sum } from "./elements.js";
import { pairText } from "./why.js";

const SHOWN = 12;
const NAMED = 3;

/** A comparison adds up the lexical and the learned pair of a word with itself; show it as the word. */
const asPair = (pair) => ({ ...pair, learned: pair.query !== pair.document });
const kind = (pair) => (pair.query === pair.document ? "lexical" : "learned");
const pairChip = (pair) => element("span", { class: `chip ${kind(pair)}` }, pairText(asPair(pair)));

/** "A is above B because of x, y and 2 more pairs: without them, B would be above." */
function sentence(response, above, below) {
  const strong = (name) => element("strong", {}, name);
  if (response.swap === null) {
    return element("p", { class: "verdict", role: "status" }, strong(above), " is above ", strong(below), ", whichever pairs you leave out.");
  }
  const named = response.swap.slice(0, response.swap.length > NAMED + 1 ? NAMED : NAMED + 1);
  const more = response.swap.length - named.length;
  const list = named.flatMap((pair, place) => [place === 0 ? "" : place === named.length - 1 && !more ? " and " : ", ", pairChip(pair)]);
  return element("p", { class: "verdict", role: "status" }, strong(above), " is above ", strong(below), " because of ", ...list,
    more > 0 && ` and ${pluralize(more, "more pair")}`, `: without ${response.swap.length === 1 ? "it" : "them"}, it would be below.`);
}

function butterfly(pairs) {
  const most = Math.max(...pairs.flatMap((pair) => [Math.abs(pair.first), Math.abs(pair.second)]), 1e-9);
  const wing = (value, side) => {
    const bar = element("span", { class: `${value < 0 ? "bar away" : "bar"}` });
    bar.style.width = `${(100 * Math.abs(value)) / most}%`;
    return element("span", { class: `wing ${side}`, "aria-hidden": "true" }, bar);
  };
  const cell = (value, side) => element("td", { class: `value ${side}` }, value ? signed(value) : "–");
  return pairs.map((pair) => element("tr", { class: kind(pair) },
    cell(pair.first, "one"), element("td", { class: "wing-cell" }, wing(pair.first, "one")),
    element("th", { scope: "row" }, pairText(asPair(pair))),
    element("td", { class: "wing-cell" }, wing(pair.second, "other")), cell(pair.second, "other")));
}

function table(response, name) {
  const shown = response.pairs.slice(0, SHOWN);
  const rest = response.pairs.slice(SHOWN);
  const total = (side) => signed(sum(rest.map((pair) => pair[side])));
  return element("table", { class: "butterfly" },
    element("caption", { class: "hidden" }, "What each pair adds to each result"),
    element("thead", {}, element("tr", {},
      element("th", { scope: "col", colspan: "2" }, name(response.first.id)), element("th", { scope: "col" }, "pair"),
      element("th", { scope: "col", colspan: "2" }, name(response.second.id)))),
    element("tbody", {}, ...butterfly(shown),
      rest.length > 0 && element("tr", { class: "rest" }, element("td", { class: "value one" }, total("first")), element("td"),
        element("th", { scope: "row" }, `${rest.length} more`), element("td"), element("td", { class: "value other" }, total("second")))),
    element("tfoot", {}, element("tr", {}, element("td", { class: "value one" }, response.first.score.toFixed(2)), element("td"),
      element("th", { scope: "row" }, "score"), element("td"), element("td", { class: "value other" }, response.second.score.toFixed(2)))));
}

function chooser(label, id, chosen, choices, name, change) {
  const select = element("select", { id, onchange: (event) => change(event.target.value) },
    ...choices.map((one) => element("option", { value: one, selected: one === chosen }, name(one))));
  return element("div", { class: "chooser" }, element("label", { for: id }, label), select);
}

/** Compare two documents for a query; the user can choose other results. */
export async function openCompare(answer, first, second) {
  const found = [...answer.results, ...(answer.lexical ?? [])];
  const titles = new Map(found.map((one) => [one.id, one.title || one.id]));
  const name = (id) => titles.get(id) ?? id;
  const choices = [...new Set(found.map((one) => one.id))];
  const choosers = element("div", { class: "choosers" },
    chooser("Compare", "first", first, choices.filter((one) => one !== second), name, (id) => openCompare(answer, id, second)),
    chooser("with", "second", second, choices.filter((one) => one !== first), name, (id) => openCompare(answer, first, id)));
  const result = element("div", { class: "compared" }, loading());
  openSheet(byId("compare"), `Two results for “${answer.query}”`, choosers, result);
  try {
    const response = await compare(answer.query, first, second);
    const [above, below] = response.difference >= 0 ? [first, second] : [second, first];
    result.replaceChildren(sentence(response, name(above), name(below)),
      element("details", {}, element("summary", {}, "What each pair adds"), table(response, name)));
  } catch (trouble) {
    result.replaceChildren(failure(trouble));
  }
}
