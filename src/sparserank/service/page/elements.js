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
let typed = new Map();

/** Remember how documents spell the stems of a response, and how the user spelled those of the query. */
export function addSpellings(response) {
  for (const [stem, spelling] of Object.entries(response?.display ?? {})) spellings.set(stem, spelling);
  if (response?.typed) typed = new Map(Object.entries(response.typed));
}

/** A word as most documents spell it; the pairs of a model have stems. */
export const spelled = (word) => spellings.get(word) ?? word;

/** A query word as the user spelled it, or as documents do. */
export function asTyped(word) {
  const parts = word.split(" ");
  return parts.some((part) => typed.has(part)) ? parts.map((part) => typed.get(part) ?? spelled(part)).join(" ") : spelled(word);
}

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

export const percent = (share) => `${Math.round(100 * share)} %`;

/** Whether the user is typing; nothing may take the focus then. */
export const isTyping = () => Boolean(document.activeElement?.matches("input:not([type=checkbox], [type=radio]), textarea"));

/**
 * Open a dialog at once; its button, Escape, or a click outside closes it. Returns fill(...content) for content that
 * arrives later: it changes only a dialog that is still open with this title, and never moves the focus.
 */
export function openSheet(dialog, title, ...content) {
  const close = button("Close", { class: "close", onclick: () => dialog.close() }, "×");
  const body = element("div", { class: "sheet-body" }, ...content);
  const focused = dialog.open ? document.activeElement?.id : null;
  dialog.replaceChildren(element("div", { class: "sheet-head" }, element("h2", { id: `${dialog.id}-title` }, title), close), body);
  dialog.onclick = (event) => { if (event.target === dialog) dialog.close(); };
  if (!dialog.open) dialog.showModal();
  (focused && byId(focused) ? byId(focused) : close).focus();
  return (...later) => { if (dialog.open && body.isConnected) body.replaceChildren(...later.filter(Boolean)); };
}

export const loading = () => element("p", { class: "empty", role: "status" }, "Loading …");
export const failure = (trouble) => element("p", { class: "empty", role: "alert" }, trouble.message);

/** One tab stop for a group of controls: arrow keys, Home and End move inside it. */
export function roving(group, selector) {
  const items = () => [...group.querySelectorAll(selector)].filter((one) => one.checkVisibility());
  const choose = (chosen) => {
    for (const one of group.querySelectorAll(selector)) one.setAttribute("tabindex", one === chosen ? "0" : "-1");
  };
  choose(group.querySelector(selector));
  group.addEventListener("focusin", (event) => {
    const own = event.target.closest(selector);
    if (own) choose(own);
  });
  group.addEventListener("keydown", (event) => {
    const all = items();
    const here = all.indexOf(event.target.closest(selector));
    const to = { ArrowRight: here + 1, ArrowDown: here + 1, ArrowLeft: here - 1, ArrowUp: here - 1, Home: 0, End: all.length - 1 }[event.key];
    if (here < 0 || to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    all[(to + all.length) % all.length].focus();
  });
  return group;
}
