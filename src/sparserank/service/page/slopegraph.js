// A slopegraph of the learned ranking and the ranking by BM25.

import { button, byId, svgElement, element, screenReaderText } from "./elements.js";

const ROW = 34;
const WIDTH = 92;
const LEFT = 24;

function ordinalText(place) {
  return place < 0 ? "not shown" : `rank ${place + 1}`;
}

function line(from, to, kind, id) {
  const [y1, y2] = [from, to].map((place) => place * ROW + ROW / 2);
  const [x1, x2] = [LEFT, WIDTH - 6];
  const middle = (x1 + x2) / 2;
  return svgElement("path", { class: `rank-line ${kind}`, d: `M${x1} ${y1} C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`, "data-line": id });
}

function picture(answer, rows) {
  const ids = answer.results.map((one) => one.id);
  const before = answer.lexical.map((one) => one.id);
  const svg = svgElement("svg", { width: WIDTH, height: rows * ROW, viewBox: `0 0 ${WIDTH} ${rows * ROW}`, "aria-hidden": "true" });
  ids.forEach((id, place) => {
    const old = before.indexOf(id);
    const y = place * ROW + ROW / 2;
    const kind = old < 0 ? "new" : old > place ? "up" : old < place ? "down" : "same";
    if (old >= 0 && old < rows) svg.append(line(place, old, kind, id));
    else svg.append(svgElement("path", { class: "rank-line new", d: `M${LEFT} ${y} h16`, "data-line": id }));
    svg.append(svgElement("text", { class: `rank-place ${kind}`, x: LEFT - 8, y: y + 4, "text-anchor": "end" }, String(place + 1)));
  });
  before.forEach((id, place) => {
    if (ids.includes(id)) return;
    const y = place * ROW + ROW / 2;
    svg.append(svgElement("path", { class: "rank-line gone", d: `M${WIDTH - 22} ${y} h16`, "data-line": id }));
  });
  return svg;
}

function summaryText(answer) {
  const before = answer.lexical.map((one) => one.id);
  const places = answer.results.map((one) => before.indexOf(one.id));
  const stayed = places.filter((old, place) => old === place).length;
  const fresh = places.filter((old) => old < 0).length;
  if (stayed === places.length && before.length === places.length) return "Both rankings are the same.";
  const parts = [`${places.length - stayed - fresh} moved`, `${stayed} stayed`];
  if (fresh) parts.push(before.length < places.length ? `${fresh} not found by BM25` : `${fresh} not among the first ${before.length} of BM25`);
  return `${parts.join(", ")}.`;
}

/** Draw it. act.show(id) moves to a result; act.compare(id) compares a BM25 result with the best learned one. */
export function drawSlopegraph(answer, act) {
  const panel = byId("bm25");
  panel.hidden = !answer.results.length || !answer.lexical?.length;
  if (panel.hidden) return;
  byId("bm25-text").textContent = summaryText(answer);
  const ids = answer.results.map((one) => one.id);
  const list = element("ol", { class: "rank-list", "aria-label": "Ranking by BM25" }, ...answer.lexical.map((one, place) => {
    const now = ids.indexOf(one.id);
    const name = one.title || one.id;
    return element("li", { "data-row": one.id, class: now < 0 ? "gone" : now < place ? "up" : now > place ? "down" : "same" },
      element("span", { class: "rank-number", "aria-hidden": "true" }, String(place + 1)),
      button(name, { title: name, onclick: () => (now < 0 ? act.compare(one.id) : act.show(one.id)) }, name,
        screenReaderText(`, BM25 ${ordinalText(place)}, learned ${ordinalText(now)}`)));
  }));
  for (const one of list.querySelectorAll("button")) one.removeAttribute("aria-label");
  byId("rank-lines").replaceChildren(
    element("div", { class: "rank-heads", "aria-hidden": "true" }, element("span", {}, "learned"), element("span", {}, "BM25")),
    element("div", { class: "rank-body" }, picture(answer, Math.max(ids.length, answer.lexical.length)), list));
}

/** Highlight the line of a result or row under the pointer. */
export function linkLines(list) {
  const light = (id, on) => {
    for (const one of document.querySelectorAll("[data-line], [data-row]")) {
      if ((one.dataset.line ?? one.dataset.row) === id) one.classList.toggle("lit", on);
    }
  };
  for (const [root, key] of [[list, "id"], [byId("rank-lines"), "row"]]) {
    for (const [name, on] of [["pointerover", true], ["pointerout", false], ["focusin", true], ["focusout", false]]) {
      root.addEventListener(name, (event) => {
        const item = event.target.closest(`[data-${key}]`);
        if (item) light(item.dataset[key], on);
      });
    }
  }
}
