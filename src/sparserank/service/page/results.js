// The results: passage, contributions, rank by BM25, and voting buttons.

import { contributions, kindOf, strip, stripLength } from "./bars.js";
import { button, svgElement, element, screenReaderText, signed, spelled } from "./elements.js";

/** A passage with marks; the colour of a mark and its tooltip show the pairs that matched the word. */
function passage(result, openWord) {
  const letters = Array.from(result.passage.text); // marks count code points
  const part = (start, end) => letters.slice(start, end).join("");
  const paragraph = element("p", { class: "passage" });
  const most = Math.max(...result.pairs.filter((pair) => pair.learned).map((pair) => Math.abs(pair.contribution)), 1e-9);
  let at = 0;
  for (const mark of result.passage.marks) {
    const pairs = mark.pairs.map((number) => result.pairs[number]);
    const kinds = new Set(pairs.map(kindOf));
    const total = pairs.reduce((sum, pair) => sum + pair.contribution, 0);
    const tooltip = pairs.map((pair) => `${pair.learned ? `${spelled(pair.query)} → ` : ""}${spelled(pair.document)} ${signed(pair.contribution)}`);
    const word = element("mark", {
      class: `${[...kinds].join(" ")}${total < 0 ? " away" : ""}`, title: tooltip.join("\n"),
      "data-pairs": mark.pairs.join(" "), onclick: () => openWord(spelled(pairs[0].document)),
    }, part(mark.start, mark.end));
    word.style.setProperty("--strength", `${Math.round(100 * Math.min(1, Math.abs(total) / most))}%`);
    paragraph.append(part(at, mark.start), word);
    at = mark.end;
  }
  paragraph.append(part(at));
  return paragraph;
}

/** The rank of a document by BM25, compared with its rank here. */
function moved(place, before, answer) {
  const shown = answer.lexical.length;
  if (before < 0) return { kind: "new", sign: "✦ new", text: shown < answer.results.length ? "BM25 does not find it" : `not among the first ${shown} of BM25` };
  if (before === place) return { kind: "same", sign: "=", text: "same rank by BM25" };
  const kind = before > place ? "up" : "down";
  return { kind, sign: `${kind === "up" ? "▲" : "▼"} ${Math.abs(before - place)}`, text: `rank ${before + 1} by BM25` };
}

/** Highlight the words of a bar in the passage, and the bars of a word. */
function linkPairs(card) {
  const light = (event, on) => {
    const source = event.target.closest("[data-pair], [data-pairs]");
    if (!source) return;
    const numbers = new Set((source.dataset.pair ?? source.dataset.pairs).split(" "));
    for (const other of card.querySelectorAll("[data-pair], [data-pairs]")) {
      const own = (other.dataset.pair ?? other.dataset.pairs).split(" ");
      other.classList.toggle("lit", on && own.some((number) => numbers.has(number)));
    }
  };
  for (const [name, on] of [["pointerover", true], ["pointerout", false], ["focusin", true], ["focusout", false]]) {
    card.addEventListener(name, (event) => light(event, on));
  }
}

/** A thumb as SVG: not every font has the symbol. */
function thumbPicture() {
  return svgElement("svg", { viewBox: "0 0 24 24", width: 19, height: 19, "aria-hidden": "true" },
    svgElement("path", { d: "M3.5 11h3.6v9H3.5z" }),
    svgElement("path", { d: "M7.1 11l4-7.6c1.5 0 2.6 1.1 2.6 2.6L13.2 9.2h5.5c1.2 0 2.1 1.1 1.9 2.3l-1.1 6.6c-.2 1.1-1.1 1.9-2.2 1.9H7.1z" }));
}

function thumbs(result, state, act) {
  const thumb = (label, grade) => button(label, {
    class: `thumb ${grade > 0 ? "up" : "down"}`, "aria-pressed": String(state === grade),
    onclick: (event) => {
      const own = event.currentTarget;
      const chosen = own.getAttribute("aria-pressed") === "true" ? 0 : grade;
      for (const one of own.parentElement.querySelectorAll(".thumb")) {
        one.setAttribute("aria-pressed", String(one === own && chosen !== 0));
      }
      act.judge(result.id, chosen);
    },
  }, thumbPicture());
  return [thumb(`Good result: ${result.title || result.id}`, 1), thumb(`Bad result: ${result.title || result.id}`, -1)];
}

/** The card of one result. act: {sendClick, allPairs, judge, vote, compare, word}; `before`: places of the same query in an earlier version. */
function card(result, place, answer, act, before) {
  const name = result.title || result.id;
  const titleId = `result-${place}`;
  const lexicalPlace = answer.lexical.findIndex((one) => one.id === result.id);
  const move = moved(place, lexicalPlace, answer);
  const was = before?.get(result.id);
  const next = answer.results[place + 1] ?? answer.results[place - 1];
  const open = (on) => {
    article.classList.toggle("open", on);
    title.setAttribute("aria-expanded", String(on));
    bars.show(on);
  };
  const bars = contributions(result, act.word, (on) => { open(on); title.focus(); }, () => act.allPairs(result.id));
  const title = button(name, {
    class: "title", id: titleId, "data-document": result.id, "aria-expanded": "false",
    onclick: () => {
      const on = !article.classList.contains("open");
      open(on);
      if (on) act.sendClick(result.id);
    },
  });
  const head = element("div", { class: "card-head" },
    element("span", { class: "place", "aria-hidden": "true" }, String(place + 1)),
    element("h2", {}, title),
    before && was !== place && element("span", { class: "previous-rank" }, was === undefined ? "new in this version" : `was ${was + 1}`),
    element("span", { class: `moved ${move.kind}`, title: move.text }, element("span", { "aria-hidden": "true" }, move.sign), screenReaderText(move.text)),
    element("span", { class: "score", title: "score" }, screenReaderText("score "), result.score.toFixed(2)));
  const foot = element("div", { class: "card-foot" },
    ...thumbs(result, act.vote(result.id), act),
    next && button(`Why is ${name} ${answer.results[place + 1] ? "above" : "below"} ${next.title || next.id}?`, {
      class: "why", onclick: () => act.compare(result.id, next.id),
    }, answer.results[place + 1] ? "Why above the next result?" : "Why below the previous result?"),
    result.title && result.title !== result.id && element("span", { class: "id" }, result.id));
  const article = element("article", { class: "card", "aria-labelledby": titleId }, head,
    element("div", { class: "card-body" }, passage(result, act.word),
      element("div", { class: "why-bars", role: "group", "aria-label": `Contributions to the score of ${name}` },
        strip(result, act.most), bars.list),
      foot));
  linkPairs(article);
  return element("li", { "data-id": result.id }, article);
}

/** Draw results; those that moved since the last version are animated. */
export function drawResults(list, answer, act, before) {
  const tops = new Map([...list.children].map((item) => [item.dataset.id, item.getBoundingClientRect().top]));
  const most = Math.max(...answer.results.map(stripLength), 0);
  list.replaceChildren(...answer.results.map((result, place) => card(result, place, answer, { ...act, most }, before)));
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
    if (event.key !== "ArrowDown") return;
    event.preventDefault();
    titles()[0]?.focus();
  });
  list.addEventListener("keydown", (event) => {
    const here = titles().indexOf(event.target.closest("li[data-id]")?.querySelector(".title"));
    const to = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: titles().length - 1, Escape: -1 }[event.key];
    if (to === undefined || here < 0) return;
    event.preventDefault();
    (to < 0 ? box : titles()[Math.min(to, titles().length - 1)]).focus();
  });
}

