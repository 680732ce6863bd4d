// The results: title, where it is, passage with marks, votes, and why it is there.

import { button, element, screenReaderText, svgElement } from "./elements.js";
import { kindOf, splitBar, whyPanel } from "./why.js";

/** Text with the parts in `marks` marked; marks: {start, end, class, title}, by code points. */
export function marked(text, marks) {
  const letters = Array.from(text);
  const out = [];
  let at = 0;
  for (const { start, end, ...properties } of marks) {
    out.push(letters.slice(at, start).join(""), element("mark", properties, letters.slice(start, end).join("")));
    at = end;
  }
  out.push(letters.slice(at).join(""));
  return out;
}

// Han, kana, Thai, Lao, Khmer and Myanmar write no blanks: there, words are found by pairs of neighbouring characters.
const SEGMENTED = "(?:(?=[\\p{L}\\p{N}])[\\p{scx=Han}\\p{scx=Hiragana}\\p{scx=Katakana}]|[\\p{Script=Thai}\\p{Script=Lao}\\p{Script=Khmer}\\p{Script=Myanmar}])";
const RUNS = new RegExp(`(${SEGMENTED}+|(?:(?!${SEGMENTED})[\\p{L}\\p{N}_])+)`, "u");
const IS_SEGMENTED = new RegExp(`^${SEGMENTED}{2,}$`, "u");
const folded = (text) => text.normalize("NFKC").toLowerCase();

/** The words of a run with their places: the run, or its pairs of characters if its script writes no blanks. */
function wordsOf(run) {
  const letters = Array.from(run);
  if (!IS_SEGMENTED.test(run)) return [{ word: folded(run), start: 0, end: letters.length }];
  return letters.slice(1).map((letter, at) => ({ word: folded(letters[at] + letter), start: at, end: at + 2 }));
}

/** The marks of some words in a text, whole words only; pairs of characters that overlap share a mark. */
export function wordMarks(text, words) {
  const marks = [];
  let at = 0;
  for (const part of text.split(RUNS)) {
    for (const { word, start, end } of wordsOf(part)) {
      const [kind, last] = [words.get(word), marks.at(-1)];
      if (kind && last && last.end > at + start) last.end = at + end;
      else if (kind) marks.push({ start: at + start, end: at + end, class: kind });
    }
    at += Array.from(part).length;
  }
  return marks;
}

/** Marked words of a passage, folded, with their kind, for the title and the whole text. */
export function foundWords(result) {
  const letters = Array.from(result.passage?.text ?? "");
  return new Map((result.passage?.marks ?? []).flatMap((mark) =>
    wordsOf(letters.slice(mark.start, mark.end).join("")).map(({ word }) => [word, kindOf(mark)])));
}

/** The passage of a result with its marks. */
export function passage(result) {
  const marks = result.passage.marks.map((mark) => ({ start: mark.start, end: mark.end, class: kindOf(mark) }));
  return element("p", { class: "passage" }, ...marked(result.passage.text, marks));
}

/** The address of a document, if it is one that a browser may follow. */
export function linkOf(metadata) {
  try {
    const url = new URL(metadata?.url);
    return ["http:", "https:"].includes(url.protocol) ? url : null;
  } catch {
    return null;
  }
}

/** "example.org › docs › page" */
const placeText = (url) => [url.host, ...decodeURI(url.pathname).split("/").filter(Boolean)].join(" › ");

/** A thumb as SVG: not every font has the symbol. */
function thumbPicture() {
  return svgElement("svg", { viewBox: "0 0 24 24", width: 19, height: 19, "aria-hidden": "true" },
    svgElement("path", { d: "M3.5 11h3.6v9H3.5z" }),
    svgElement("path", { d: "M7.1 11l4-7.6c1.5 0 2.6 1.1 2.6 2.6L13.2 9.2h5.5c1.2 0 2.1 1.1 1.9 2.3l-1.1 6.6c-.2 1.1-1.1 1.9-2.2 1.9H7.1z" }));
}

/** Two buttons that vote; act: {vote(id), judge(id, grade)} */
export function thumbs(result, act) {
  const name = result.title || result.id;
  const thumb = (label, grade) => button(label, {
    class: `thumb ${grade > 0 ? "up" : "down"}`, title: grade > 0 ? "Good result" : "Bad result", "data-vote": result.id,
    "data-grade": grade, "aria-pressed": String(act.vote(result.id) === grade),
    onclick: (event) => act.judge(result.id, event.currentTarget.getAttribute("aria-pressed") === "true" ? 0 : grade),
  }, thumbPicture());
  return [thumb(`Good result: ${name}`, 1), thumb(`Bad result: ${name}`, -1)];
}

/** Show a vote on every thumb of a document. */
export function showVote(id, grade) {
  for (const one of document.querySelectorAll(".thumb")) {
    if (one.dataset.vote === id) one.setAttribute("aria-pressed", String(Number(one.dataset.grade) === grade && grade !== 0));
  }
}

/** The title as a link: to its address, or to its text on this page. act: {click(id), documentAddress(id), openDocument(id)} */
function titleLink(result, titleId, act) {
  const name = result.title || result.id;
  const url = linkOf(result.metadata);
  const link = element("a", { class: "title", id: titleId, "data-document": result.id, href: url ? url.href : act.documentAddress(result.id), rel: url ? "noreferrer" : null },
    ...marked(name, wordMarks(name, foundWords(result))));
  link.addEventListener("click", (event) => {
    act.click(result.id);
    if (url || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    act.openDocument(result.id);
  });
  link.addEventListener("auxclick", (event) => { if (event.button === 1) act.click(result.id); });
  return link;
}

/** The rank of a document by BM25, compared with its rank here; only if BM25 was asked for. */
function movedBadge(result, place, answer) {
  if (!answer.lexical) return null;
  const before = answer.lexical.findIndex((one) => one.id === result.id);
  const [kind, sign, text] = before < 0 ? ["new", "✦ new", "not among these by BM25"]
    : before === place ? ["same", "=", "same rank by BM25"]
      : before > place ? ["up", `▲ ${before - place}`, `rank ${before + 1} by BM25`] : ["down", `▼ ${place - before}`, `rank ${before + 1} by BM25`];
  return element("span", { class: `moved ${kind}`, title: text }, element("span", { "aria-hidden": "true" }, sign), screenReaderText(text));
}

function facts(result, fields) {
  const url = linkOf(result.metadata);
  const text = (field, value) => (value === true ? field : [value].flat().slice(0, 3).join(", "));
  const values = fields.map((field) => [field, result.metadata?.[field]]).filter(([, value]) => value !== undefined && value !== false).map(([field, value]) => [field, text(field, value)]);
  return element("p", { class: "where" }, (url || (result.title && result.title !== result.id)) && element("span", { class: "id" }, url ? placeText(url) : result.id),
    ...values.map(([field, value]) => element("span", { class: "fact", title: field }, value)));
}

/** The card of one result. `before`: places of the same query in an earlier version. */
function card(result, place, answer, act, before) {
  const name = result.title || result.id;
  const titleId = `result-${place}`;
  const rank = act.offset + place + 1;
  const was = before?.get(result.id);
  const split = splitBar(result);
  const others = answer.results.length > 1;
  const other = answer.results[place + 1] ?? answer.results[place - 1];
  let panel = null;
  const why = element("button", {
    type: "button", class: "why", "aria-expanded": "false", title: split.text,
    onclick: () => {
      const open = panel === null;
      why.setAttribute("aria-expanded", String(open));
      panel?.remove();
      panel = open ? whyPanel(result, answer, { word: act.word, compare: others ? () => act.compare(result.id, other.id) : null }) : null;
      if (open) article.append(panel);
    },
  }, "Why?", screenReaderText(` ${name}: ${split.text}`), split.segments);
  const article = element("article", { class: "card", "aria-labelledby": titleId },
    element("div", { class: "card-head" },
      element("span", { class: "place", "aria-hidden": "true" }, String(rank)),
      element("h2", {}, titleLink(result, titleId, act)),
      before && was !== place && element("span", { class: "previous-rank" }, was === undefined ? "new in this version" : `was ${was + 1}`),
      movedBadge(result, place, answer)),
    facts(result, act.fields), result.passage.text && passage(result),
    element("div", { class: "card-foot" }, ...thumbs(result, act), why));
  return element("li", { "data-id": result.id }, article);
}

/** Draw results; those that moved since the last version are animated. */
export function drawResults(list, answer, act, before) {
  const tops = new Map([...list.children].map((item) => [item.dataset.id, item.getBoundingClientRect().top]));
  list.start = act.offset + 1;
  list.replaceChildren(...answer.results.map((result, place) => card(result, place, answer, act, before)));
  if (!before || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  for (const item of list.children) {
    const from = tops.get(item.dataset.id);
    const distance = from === undefined ? 0 : from - item.getBoundingClientRect().top;
    if (distance) item.animate([{ transform: `translateY(${distance}px)` }, { transform: "none" }], { duration: 450, easing: "ease-out" });
  }
}

/** Arrow keys move between results; up from the first one, or Escape, returns to the search box. */
export function walkResults(list, box) {
  const titles = () => [...list.querySelectorAll(".title")];
  box.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown" || !titles()[0]?.checkVisibility()) return;
    event.preventDefault();
    titles()[0].focus();
  });
  list.addEventListener("keydown", (event) => {
    const here = titles().indexOf(event.target.closest("li[data-id]")?.querySelector(".title"));
    const to = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: titles().length - 1, Escape: -1 }[event.key];
    if (to === undefined || here < 0) return;
    event.preventDefault();
    (to < 0 ? box : titles()[Math.min(to, titles().length - 1)]).focus();
  });
}
