// A bar per contribution: positive to the right, negative to the left.

import { button, element, screenReaderText, signed, spelled, sum } from "./elements.js";

/** The two words of a pair, as buttons that open their pairs. */
export function pairWords(pair, openWord) {
  const word = (stem) => button(`Pairs of ${spelled(stem)}`, { class: "word", onclick: () => openWord(spelled(stem)) }, spelled(stem));
  if (pair.learned === false) return element("span", { class: "words" }, word(pair.document));
  return element("span", { class: "words" },
    word(pair.query), element("span", { class: "arrow", "aria-hidden": "true" }, "→"), screenReaderText(" looks for "),
    word(pair.document));
}

export const kindOf = (pair) => (pair.learned === false ? "lexical" : "learned");

/** A bar of `value` in a track from `low` (≤ 0) to `high`. The CSP allows widths in the style object only. */
export function bar(value, low, high) {
  const span = high - low || 1;
  const fill = element("span", { class: value < 0 ? "bar away" : "bar" });
  fill.style.left = `${(100 * (Math.min(value, 0) - low)) / span}%`;
  fill.style.width = `${Math.max((100 * Math.abs(value)) / span, 0.6)}%`;
  return element("span", { class: "track", "aria-hidden": "true" }, fill);
}

export function range(pairs) {
  const values = pairs.map((pair) => pair.contribution);
  return [Math.min(0, ...values), Math.max(0, ...values)];
}

/**
 * The largest pairs as bars, and one line for the others. `show(on)` shows all pairs, or the largest only;
 * `allPairs()` fetches pairs that the result does not contain.
 */
export function contributions(result, openWord, ask, allPairs, shown = 5) {
  let { pairs, rest } = result;
  let opened = false;
  const list = element("ol", { class: "pairs" });
  const draw = () => {
    const [low, high] = range(pairs);
    const row = (pair, number) => element("li", { class: `pair ${kindOf(pair)}`, "data-pair": number },
      pairWords(pair, openWord), bar(pair.contribution, low, high),
      element("span", { class: "value" }, signed(pair.contribution)));
    const end = [];
    const hidden = opened ? [] : pairs.slice(shown);
    if (hidden.length || rest.pairs) end.push(theRest(hidden, rest, opened ? null : ask));
    if (opened && pairs.length + rest.pairs > shown) end.push(fewer(ask));
    list.replaceChildren(...(opened ? pairs : pairs.slice(0, shown)).map(row), ...end);
  };
  const show = async (on) => {
    opened = on;
    draw();
    if (!on || !rest.pairs) return;
    const all = await allPairs();
    if (!all) return;
    [pairs, rest] = [all, { pairs: 0, lexical: 0, learned: 0, away: 0 }];
    draw();
  };
  draw();
  return { list, show };
}

function theRest(hidden, rest, ask) {
  const total = signed(sum(hidden.map((pair) => pair.contribution)) + rest.lexical + rest.learned + rest.away);
  const text = `${hidden.length + rest.pairs} smaller`;
  const name = ask ? button(text, { onclick: () => ask(true) }) : element("span", {}, text);
  return element("li", { class: "rest" }, name, element("span", { class: "value" }, total));
}

function fewer(ask) {
  return element("li", { class: "rest" }, button("Show fewer", { onclick: () => ask(false) }));
}

const sizes = ({ pairs, rest }) => {
  const part = (chosen) => sum(pairs.filter(chosen).map((pair) => Math.abs(pair.contribution)));
  return [
    ["lexical", part((pair) => !pair.learned && pair.contribution > 0) + rest.lexical],
    ["learned", part((pair) => pair.learned && pair.contribution > 0) + rest.learned],
    ["away", part((pair) => pair.contribution < 0) - rest.away],
  ];
};

/** A score in three parts: same words, learned pairs, negative contributions. `most` is the widest strip. */
export function strip(result, most) {
  const parts = sizes(result);
  const segments = element("span", { class: "strip", "aria-hidden": "true" });
  for (const [kind, size] of parts) {
    const piece = element("span", { class: `piece ${kind}` });
    piece.style.width = `${(100 * size) / (most || 1)}%`;
    segments.append(piece);
  }
  const text = `same words ${signed(parts[0][1])}, learned pairs ${signed(parts[1][1])}, negative ${signed(-parts[2][1])}`;
  return element("div", { class: "strip-line", title: text }, segments, screenReaderText(text));
}

export const stripLength = (result) => sum(sizes(result).map(([, size]) => size));
