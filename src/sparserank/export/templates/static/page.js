// A search box with results: mount(document.querySelector("#search")). Links go to metadata.url, where there is one.
import { open } from "./search.js";

const SHOWN_PAIRS = 5;

export async function mount(place, { base = new URL("./", import.meta.url), link = (result) => result.metadata?.url } = {}) {
  const input = element("input", { type: "search", placeholder: "Search", autocomplete: "off" });
  input.setAttribute("aria-label", "Search");
  const status = element("p", { className: "status" });
  status.setAttribute("role", "status");
  const list = element("ol", { className: "results" });
  place.replaceChildren(input, status, list);
  const ready = open(base);
  let latest = 0;
  const show = async () => {
    const number = ++latest, text = input.value.trim();
    if (!text) return status.replaceChildren(), list.replaceChildren();
    try {
      const { results, total } = await (await ready)(text);
      if (number !== latest) return; // a later search is under way
      status.textContent = total ? `${total.toLocaleString("en")} ${total === 1 ? "result" : "results"}` : "Nothing found";
      list.replaceChildren(...results.map((result) => item(result, link(result))));
    } catch (error) {
      list.replaceChildren();
      status.textContent = `The search files cannot be loaded: ${error.message}`;
    }
  };
  input.addEventListener("input", show);
  await ready;
  return { input, show };
}

function item(result, url) {
  const heading = element(url ? "a" : "strong", { textContent: result.title || result.id });
  if (url && /^(https?:|[^:]*$)/i.test(url)) heading.href = url;
  const snippet = element("p", {}, result.snippet.map(({ text, marked }) => (marked ? element("mark", { textContent: text }) : text)));
  const shown = result.pairs.slice(0, SHOWN_PAIRS);
  const rest = result.pairs.slice(SHOWN_PAIRS).reduce((sum, pair) => sum + pair.contribution, 0);
  const lines = shown.map(({ query, document: word, contribution }) => [query === word ? word : `${query} → ${word}`, contribution]);
  if (result.pairs.length > SHOWN_PAIRS) lines.push([`${result.pairs.length - SHOWN_PAIRS} more`, rest]);
  const rows = lines.map(([label, value]) =>
    element("tr", {}, [element("td", { textContent: label }), element("td", { textContent: value.toFixed(2) })]));
  const why = element("details", {}, [element("summary", { textContent: "Why?" }), element("table", {}, rows)]);
  return element("li", {}, [heading, snippet, why]);
}

function element(name, properties, children = []) {
  const out = Object.assign(document.createElement(name), properties);
  out.append(...children);
  return out;
}
