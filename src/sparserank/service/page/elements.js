// DOM elements and number formats. Text is never parsed as markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** element("p", {class: "note", onclick: run}, "text", other elements …) */
export function element(name, properties = {}, ...children) {
  return fill(document.createElement(name), properties, children);
}

/** An SVG element. */
export function svgElement(name, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, name), properties, children);
}

export function button(label, properties = {}, ...children) {
  return element("button", { type: "button", "aria-label": children.length ? label : null, ...properties },
    children.length ? children : label);
}

/** Text for screen readers. */
export function screenReaderText(text) {
  return element("span", { class: "hidden" }, text);
}

const spellings = new Map();

/** Remember how documents spell the stems of a response. */
export function addSpellings(display) {
  for (const [stem, spelling] of Object.entries(display ?? {})) spellings.set(stem, spelling);
}

/** A word as most documents spell it; the pairs of a model have stems. */
export const spelled = (word) => spellings.get(word) ?? word;

export const byId = (id) => document.getElementById(id);

/** +0.51, −0.08, +0.003: with a minus sign, and one digit of small values. */
export function signed(value) {
  const size = Math.abs(value);
  if (size < 0.00005) return "0.00";
  return `${value > 0 ? "+" : "−"}${size < 0.005 ? Number(size.toPrecision(1)) : size.toFixed(2)}`;
}

export const pluralize = (number, one, many = `${one}s`) =>
  `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

export function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}

/** "3 minutes ago", by the clock of this browser. */
export function ago(moment) {
  const seconds = (Date.now() - new Date(moment).getTime()) / 1000;
  if (!Number.isFinite(seconds)) return String(moment ?? "");
  for (const [unit, size] of [["day", 86400], ["hour", 3600], ["minute", 60]]) {
    if (seconds >= size) return `${pluralize(Math.floor(seconds / size), unit)} ago`;
  }
  return "just now";
}

/** Open a dialog; its button, Escape, or a click outside closes it. */
export function openSheet(dialog, title, ...content) {
  const close = button("Close", { class: "close", onclick: () => dialog.close() }, "×");
  dialog.replaceChildren(
    element("div", { class: "sheet-head" }, element("h2", { id: `${dialog.id}-title` }, title), close),
    element("div", { class: "sheet-body" }, ...content));
  dialog.onclick = (event) => { if (event.target === dialog) dialog.close(); };
  if (!dialog.open) dialog.showModal();
}
