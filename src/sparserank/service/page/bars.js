// A bar for every contribution: from a common zero to the right what adds, to the left what takes away.

import { button, element, heard, signed, sum } from "./elements.js";

/** The two words of a pair, each a way to its picture. */
export function pairWords(pair, openWord) {
  const word = (text) => button(`Picture of ${text}`, { class: "word", onclick: () => openWord(text) }, text);
  if (pair.learned === false) return element("span", { class: "words" }, word(pair.document));
  return element("span", { class: "words" },
    word(pair.query), element("span", { class: "arrow", "aria-hidden": "true" }, "→"), heard(" looks for "),
    word(pair.document));
}

export const kindOf = (pair) => (pair.learned === false ? "lexical" : "learned");

/** A bar of `value`, where the track shows from `low` (≤ 0) to `high`. Widths go through the style object: CSP allows that. */
export function bar(value, low, high) {
  const span = high - low || 1;
  const made = element("span", { class: value < 0 ? "bar away" : "bar" });
  made.style.left = `${(100 * (Math.min(value, 0) - low)) / span}%`;
  made.style.width = `${Math.max((100 * Math.abs(value)) / span, 0.6)}%`;
  return element("span", { class: "track", "aria-hidden": "true" }, made);
}

export function range(pairs) {
  const values = pairs.map((pair) => pair.contribution);
  return [Math.min(0, ...values), Math.max(0, ...values)];
}

/** The largest pairs as bars, the rest as one line that asks for them. `show(on)` shows them all, or the largest again. */
export function contributions(pairs, openWord, ask, shown = 5) {
  const numbered = pairs.map((pair, number) => ({ ...pair, number }));
  numbered.sort((a, b) => Math.abs(b.contribution) - Math.abs(a.contribution));
  const [low, high] = range(numbered);
  const row = (pair) => element("li", { class: `pair ${kindOf(pair)}`, "data-pair": pair.number },
    pairWords(pair, openWord), bar(pair.contribution, low, high),
    element("span", { class: "value" }, signed(pair.contribution)));
  const first = numbered.slice(0, shown).map(row);
  const rest = numbered.slice(shown);
  const list = element("ol", { class: "pairs" }, ...first);
  const show = (on) => {
    const end = rest.length ? [on ? fewer(ask) : theRest(rest, ask)] : [];
    list.replaceChildren(...first, ...(on ? rest.map(row) : []), ...end);
  };
  show(false);
  return { list, show };
}

function theRest(rest, ask) {
  const total = signed(sum(rest.map((pair) => pair.contribution)));
  return element("li", { class: "rest" }, button(`${rest.length} smaller`, { onclick: () => ask(true) }), element("span", { class: "value" }, total));
}

function fewer(ask) {
  return element("li", { class: "rest" }, button("Show fewer", { onclick: () => ask(false) }));
}

/** A whole score in three parts: words themselves, what pairs add, what they take away. `most` is the widest strip. */
export function strip(pairs, most) {
  const part = (chosen) => sum(pairs.filter(chosen).map((pair) => Math.abs(pair.contribution)));
  const parts = [
    ["lexical", part((pair) => !pair.learned && pair.contribution > 0)],
    ["learned", part((pair) => pair.learned && pair.contribution > 0)],
    ["away", part((pair) => pair.contribution < 0)],
  ];
  const made = element("span", { class: "strip", "aria-hidden": "true" });
  for (const [kind, size] of parts) {
    const piece = element("span", { class: `piece ${kind}` });
    piece.style.width = `${(100 * size) / (most || 1)}%`;
    made.append(piece);
  }
  const text = `words themselves ${signed(parts[0][1])}, learned pairs ${signed(parts[1][1])}, taken away ${signed(-parts[2][1])}`;
  return element("div", { class: "strip-line", title: text }, made, heard(text));
}

export const stripLength = (pairs) => sum(pairs.map((pair) => Math.abs(pair.contribution)));
