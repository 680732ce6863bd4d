// The learned pairs of a word: on the left query words that look for it, on the right document words it looks for.

import { related } from "./api.js";
import { button, byId, svgElement, element, failure, loading, openSheet, roving, signed, spelled } from "./elements.js";
import { bar } from "./why.js";

const ROW = 30;
const MAX_NEIGHBOURS = 12;
let trail = [];
let drawing = null;

/** Shorten a word to a width in pixels; the label of its node has the whole word. */
function fit(word, width) {
  const letters = Math.max(4, Math.floor(width / 7.2));
  return word.length > letters ? `${word.slice(0, letters - 1)}…` : word;
}

function node(word, weight, x, y, left, width, label) {
  const open = () => openWord(word);
  return svgElement("g", {
    class: "node", role: "button", tabindex: "-1", "aria-label": label, "data-word": word, onclick: open,
    onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(); } },
  },
  svgElement("title", {}, label),
  svgElement("rect", { x, y: y - ROW / 2 + 2, width, height: ROW - 4, rx: 6 }),
  width > 140 && svgElement("text", { class: "weight", x: left ? x + 9 : x + width - 9, y: y + 4.5, "text-anchor": left ? "start" : "end" }, signed(weight)),
  svgElement("text", { x: left ? x + width - 9 : x + 9, y: y + 5, "text-anchor": left ? "end" : "start" }, fit(word, width - (width > 140 ? 66 : 16))));
}

function side(response, left, geometry, most) {
  const { width, height, centre, label } = geometry;
  const top = (height - response.rows.length * ROW) / 2;
  return response.rows.flatMap(({ word: stem, weight }, i) => {
    const word = spelled(stem);
    const y = top + i * ROW + ROW / 2;
    const [from, to] = left ? [label, width / 2 - centre / 2] : [width / 2 + centre / 2, width - label];
    const [start, end] = left ? [y, height / 2] : [height / 2, y];
    const middle = (from + to) / 2;
    const description = left ? `${word} looks for ${response.word}, ${signed(weight)}` : `${response.word} looks for ${word}, ${signed(weight)}`;
    return [
      svgElement("path", {
        class: weight < 0 ? "link away" : "link", d: `M${from} ${start} C${middle} ${start} ${middle} ${end} ${to} ${end}`,
        "stroke-width": (1 + (7 * Math.abs(weight)) / most).toFixed(2),
      }),
      node(word, weight, left ? 1 : width - label - 1, y, left, label, description),
    ];
  });
}

function picture(response, width) {
  const centre = Math.min(Math.max(70, response.word.length * 10 + 28), width * 0.34);
  const label = Math.min(220, (width - centre) / 2 - (width < 500 ? 34 : 90));
  const rows = Math.max(response.related.length, response.looked_for_by.length, 3);
  const geometry = { width, height: rows * ROW + 12, centre, label };
  const most = Math.max(...[...response.related, ...response.looked_for_by].map((one) => Math.abs(one.weight)), 1e-9);
  const { height } = geometry;
  const parts = [
    ...side({ word: response.word, rows: response.looked_for_by }, true, geometry, most),
    ...side({ word: response.word, rows: response.related }, false, geometry, most),
  ];
  const svg = svgElement("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `Learned pairs of ${response.word}` },
    ...parts.filter((part) => part.tagName === "path"), ...parts.filter((part) => part.tagName !== "path"),
    svgElement("g", { class: "centre" },
      svgElement("rect", { x: (width - centre) / 2, y: height / 2 - 20, width: centre, height: 40, rx: 20 }),
      svgElement("text", { x: width / 2, y: height / 2 + 6, "text-anchor": "middle" }, fit(response.word, centre - 20))));
  return roving(svg, ".node");
}

function table(response) {
  const values = [...response.related, ...response.looked_for_by].map((one) => one.weight);
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  const rows = [
    ...response.looked_for_by.map(({ word, weight }) => [spelled(word), response.word, weight]),
    ...response.related.map(({ word, weight }) => [response.word, spelled(word), weight])];
  return element("details", { class: "as-table" }, element("summary", {}, "Show as a table"),
    element("table", {},
      element("thead", {}, element("tr", {}, ...["query word", "looks for", "weight", ""].map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, ...rows.map(([query, document, weight]) => element("tr", { class: "learned" },
        element("td", {}, query), element("td", {}, document), element("td", { class: "value" }, signed(weight)),
        element("td", { class: "bar-cell" }, bar(weight, low, high)))))));
}

function wordForm(word) {
  const input = element("input", { id: "word", type: "text", value: word ?? "", autocomplete: "off", autocapitalize: "off", spellcheck: "false", maxlength: "100" });
  const form = element("form", { class: "word-form", onsubmit: (event) => { event.preventDefault(); if (input.value.trim()) openWord(input.value.trim()); } },
    element("label", { for: "word" }, "Word"), input, element("button", { type: "submit" }, "Show"));
  return form;
}

function path() {
  return trail.length < 2 ? null : element("nav", { class: "trail", "aria-label": "Words seen before" },
    ...trail.slice(-6, -1).map((word) => button(`Back to ${word}`, { onclick: () => openWord(word) }, word)));
}

function nothing(sentence) {
  return element("p", { class: "empty", role: "status" }, sentence);
}

async function content(word) {
  if (!word) return [nothing("Type a word to see which words of the documents it looks for.")];
  if (word === "." || word === "..") return [nothing(`“${word}” is not a word.`)]; // in a URL it would be a relative path
  let response;
  try {
    response = await related(word, MAX_NEIGHBOURS);
  } catch (trouble) {
    return [failure(trouble)];
  }
  if (!response.related.length && !response.looked_for_by.length) {
    return [nothing(`Nothing was learned about “${response.word}”: it finds only itself.`)];
  }
  const frame = element("div", { class: "picture" });
  const heads = element("div", { class: "picture-heads" }, element("span", {}, "words in queries that look for it"), element("span", {}, "words in documents that it looks for"));
  const draw = () => frame.clientWidth && frame.replaceChildren(picture(response, Math.max(frame.clientWidth, 240)));
  drawing = new ResizeObserver(draw);
  drawing.observe(frame);
  return [heads, frame, element("p", { class: "small" }, "Each word stands for all its forms. A thick line counts more; a dashed line counts against. Choose a word to see its own picture."), table(response)];
}

/** Show what a word looks for, or a form to type one. */
export async function openWord(word) {
  drawing?.disconnect();
  if (word && trail.at(-1) !== word) trail = [...trail.filter((one) => one !== word), word];
  const title = word ? `What “${word}” looks for` : "What a word looks for";
  const form = wordForm(word);
  const fill = openSheet(byId("words"), title, form, path(), word ? loading() : null);
  if (!word) byId("word").focus();
  const inside = await content(word);
  const typing = document.activeElement === byId("word");
  fill(form, path(), ...inside);
  if (typing) byId("word").focus();
}
