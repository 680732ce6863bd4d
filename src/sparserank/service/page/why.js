// Why a result is there: how much same words and learned pairs add, the largest of both, and the rest in two sums.
// Learned pairs are in groups: a query word with the document words that it finds.

import { explain } from "./api.js";
import { asTyped, button, byId, element, failure, loading, openSheet, percent, pluralize, roving, screenReaderText, signed, spelled, sum } from "./elements.js";

const SHOWN = 5;
const LOADED = 20;

export const kindOf = (pair) => (pair.learned === false ? "lexical" : "learned");

/** The two words of a pair: the query word as the user spelled it, the other as documents do. */
export function pairText(pair) {
  if (pair.note && kindOf(pair) === "lexical") {
    const typed = `${asTyped(pair.query)}${pair.note.startsWith("begins with") ? "…" : ""}`;
    return element("span", { class: "words", title: pair.note }, typed, element("span", { class: "arrow", "aria-hidden": "true" }, "→"), screenReaderText(" stands for "), spelled(pair.document));
  }
  if (pair.query === pair.document) return element("span", { class: "words" }, asTyped(pair.query), kindOf(pair) === "learned" && element("small", {}, " learned"));
  return element("span", { class: "words" }, asTyped(pair.query), element("span", { class: "arrow", "aria-hidden": "true" }, "→"),
    screenReaderText(" looks for "), spelled(pair.document));
}

/** A query word as the user spelled it, and the document words that it finds. */
function groupText({ query, documents }) {
  if (documents.length === 1) return pairText({ query, document: documents[0], learned: true });
  return element("span", { class: "words" }, asTyped(query), element("span", { class: "arrow", "aria-hidden": "true" }, "→"), screenReaderText(" looks for "), documents.map(spelled).join(", "));
}

/** A bar of `value` in a track from `low` (≤ 0) to `high`. The CSP allows widths in the style object only. */
export function bar(value, low, high) {
  const span = high - low || 1;
  const fill = element("span", { class: value < 0 ? "bar away" : "bar" });
  fill.style.left = `${(100 * (Math.min(value, 0) - low)) / span}%`;
  fill.style.width = `${Math.max((100 * Math.abs(value)) / span, 0.6)}%`;
  return element("span", { class: "track", "aria-hidden": "true" }, fill);
}

/** What same words and learned pairs add, and what lowers the score (positive). */
const parts = ({ split }) => ({ lexical: split.lexical, learned: split.learned, away: -split.away });

/** The small bar of a result, and its parts in words. */
export function splitBar(result) {
  const found = parts(result);
  const total = found.lexical + found.learned || 1;
  const segments = element("span", { class: "split", "aria-hidden": "true" });
  for (const kind of ["lexical", "learned"]) {
    const piece = element("span", { class: `piece ${kind}` });
    piece.style.width = `${(100 * found[kind]) / total}%`;
    segments.append(piece);
  }
  return { segments, text: `${percent(found.lexical / total)} same words, ${percent(found.learned / total)} learned pairs`, away: found.away };
}

/** What the words and groups that are not shown add, by the sums of both parts. */
function restText(result, lexical, groups) {
  const add = (shown) => sum(shown.map((one) => one.contribution));
  const words = result.split.lexical - add(lexical);
  const rest = [["same words", words], ["learned pairs", result.score - add([...lexical, ...groups]) - words]].filter(([, value]) => Math.abs(value) >= 0.005);
  return rest.length > 0 && element("span", { class: "rest" }, ` All others add: ${rest.map(([name, value]) => `${name} ${signed(value)}`).join(", ")}.`);
}

/** The panel under a result; its pairs are loaded when it opens. act: {word(word), compare()}; compare is null for the only result. */
export function whyPanel(result, answer, act) {
  const panel = element("div", { class: "why-panel", role: "group", "aria-label": `Why ${result.title || result.id} is here` }, loading());
  const draw = async () => {
    try {
      const more = result.version ? { version: result.version } : {};
      result.why ??= await explain(answer.query, result.id, { pairs: LOADED, ...more });
      panel.replaceChildren(...whyContent({ ...result, ...result.why, score: result.score }, answer, act));
    } catch (trouble) {
      panel.replaceChildren(failure(trouble));
    }
  };
  draw();
  return panel;
}

function whyContent(result, answer, act) {
  const name = result.title || result.id;
  const lexical = result.pairs.filter((pair) => !pair.learned).slice(0, SHOWN);
  const groups = result.groups.slice(0, SHOWN);
  const shown = [...lexical.map((pair) => [pair, "lexical", pairText(pair)]), ...groups.map((group) => [group, "learned", groupText(group)])];
  const values = shown.map(([one]) => one.contribution);
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  const row = ([one, kind, text]) => element("li", { class: `pair ${kind}` },
    element("button", { type: "button", class: "pair-words", title: "What does this word look for?", onclick: () => act.word(asTyped(one.query)) }, text),
    bar(one.contribution, low, high), element("span", { class: "value" }, signed(one.contribution)));
  const split = splitBar(result);
  const count = groups.length === 1 ? "This group is" : `These ${groups.length} groups are`;
  return [
    element("p", { class: "split-text" }, `Score ${result.score.toFixed(2)}: `, split.text,
      split.away > 0.005 ? `; other pairs take ${split.away.toFixed(2)} away.` : "."),
    shown.length > 0 && roving(element("ol", { class: "pairs", "aria-label": "Same words, and the largest groups of learned pairs" }, ...shown.map(row)), ".pair-words"),
    shown.length > 0 && element("p", { class: "share" }, groups.length > 0 && `${count} ${percent(result.explained_share)} of the learned part.`, restText(result, lexical, groups)),
    element("div", { class: "why-more" },
      act.compare && button(`Compare ${name} with another result`, { onclick: act.compare }, "Compare with another result"),
      result.pairs.length + result.rest.pairs > lexical.length && button(`All pairs of ${name}`, { onclick: () => openAllPairs(result, answer) }, "All pairs"))].filter(Boolean);
}

/** Every pair of a score, as a table without controls. */
async function openAllPairs(result, answer) {
  const fill = openSheet(byId("pairs"), `All pairs of “${result.title || result.id}”`, loading());
  try {
    const { pairs, score } = await explain(answer.query, result.id, result.version ? { version: result.version } : {});
    const values = pairs.map((pair) => pair.contribution);
    const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
    fill(element("p", {}, `${pluralize(pairs.length, "pair")} for “${answer.query}” add up to a score of ${score.toFixed(2)}.`),
      element("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": "All pairs" },
        element("table", {},
          element("thead", {}, element("tr", {}, ...["pair", "adds", ""].map((name) => (name ? element("th", { scope: "col" }, name) : element("td"))))),
          element("tbody", {}, ...pairs.map((pair) => element("tr", { class: kindOf(pair) },
            element("th", { scope: "row" }, pairText(pair)), element("td", { class: "value" }, signed(pair.contribution)),
            element("td", { class: "bar-cell" }, bar(pair.contribution, low, high))))))));
  } catch (trouble) {
    fill(failure(trouble));
  }
}
