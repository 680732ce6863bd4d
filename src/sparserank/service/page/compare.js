// Comparison of two results: their pairs, and the fewest pairs that would swap them.

import { pairWords } from "./bars.js";
import { byId, pluralize, element, openSheet, signed, sum } from "./elements.js";
import { compare } from "./api.js";
import { openWord } from "./words.js";

const SHOWN = 12;
const SWAP_SHOWN = 8;

/** A comparison adds up the lexical and the learned pair of a word with itself; show it as the word. */
const asPair = (pair) => ({ ...pair, learned: pair.query !== pair.document });

function butterfly(pairs) {
  const most = Math.max(...pairs.flatMap((pair) => [Math.abs(pair.first), Math.abs(pair.second)]), 1e-9);
  const wing = (value, side) => {
    const bar = element("span", { class: `${value < 0 ? "bar away" : "bar"}` });
    bar.style.width = `${(100 * Math.abs(value)) / most}%`;
    return element("span", { class: `wing ${side}`, "aria-hidden": "true" }, bar);
  };
  const cell = (value, side) => element("td", { class: `value ${side}` }, value ? signed(value) : "–");
  return pairs.map((pair) => element("tr", { class: pair.query === pair.document ? "lexical" : "learned" },
    cell(pair.first, "one"), element("td", { class: "wing-cell" }, wing(pair.first, "one")),
    element("th", { scope: "row" }, pairWords(asPair(pair), openWord)),
    element("td", { class: "wing-cell" }, wing(pair.second, "other")), cell(pair.second, "other")));
}

function swapText(response, above, below) {
  if (response.swap === null) {
    return element("p", { class: "swap" }, `“${above}” stays above “${below}” without any set of pairs.`);
  }
  const shown = response.swap.slice(0, SWAP_SHOWN).map((pair) => element("li", { class: pair.query === pair.document ? "lexical" : "learned" },
    pairWords(asPair(pair), openWord), element("span", { class: "value" }, signed(pair.difference))));
  const more = response.swap.length - shown.length;
  return element("div", { class: "swap" },
    element("p", {}, "Without ", element("strong", {}, pluralize(response.swap.length, "pair")), `, “${below}” would rank above “${above}”:`),
    element("ul", {}, ...shown, more > 0 && element("li", { class: "rest" }, `and ${more} more`)));
}

function table(response, name) {
  const shown = response.pairs.slice(0, SHOWN);
  const rest = response.pairs.slice(SHOWN);
  const total = (side) => signed(sum(rest.map((pair) => pair[side])));
  return element("table", { class: "butterfly" },
    element("caption", { class: "hidden" }, "What each pair adds to each document"),
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
  const titles = new Map([...answer.lexical, ...answer.results].map((one) => [one.id, one.title || one.id]));
  const name = (id) => titles.get(id) ?? id;
  const choices = [...new Set([...answer.results, ...answer.lexical].map((one) => one.id))];
  const dialog = byId("compare");
  const choosers = element("div", { class: "choosers" },
    chooser("Document", "first", first, choices.filter((one) => one !== second), name, (id) => openCompare(answer, id, second)),
    chooser("and document", "second", second, choices.filter((one) => one !== first), name, (id) => openCompare(answer, first, id)));
  let inside;
  try {
    const response = await compare(answer.query, first, second);
    const [above, below] = response.difference >= 0 ? [first, second] : [second, first];
    inside = [
      element("p", { class: "verdict", role: "status" }, element("strong", {}, name(above)), " is above ", element("strong", {}, name(below)),
        ` by ${Math.abs(response.difference).toFixed(2)} for “${answer.query}”.`),
      swapText(response, name(above), name(below)), table(response, name)];
  } catch (trouble) {
    inside = [element("p", { class: "empty", role: "alert" }, trouble.message)];
  }
  openSheet(dialog, "Compare two results", choosers, ...inside);
}
