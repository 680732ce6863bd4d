// Filters from the metadata of the documents: a group of values for each field, with the number of results.

import { countValues } from "./api.js";
import { button, byId, element, roving } from "./elements.js";

const SHOWN = 6;
const MAX_FIELDS = 5;
const MAX_VALUES = 2000;

/** Fields that divide the documents into groups, those with the fewest values first; an address or an id does not. */
export function facetFields(model) {
  return Object.entries(model.fields ?? {})
    .filter(([name, values]) => name !== "url" && values > 1 && values <= MAX_VALUES && values <= model.documents / 2)
    .sort((a, b) => a[1] - b[1]).slice(0, MAX_FIELDS).map(([name]) => name);
}

export const hasFilters = (filters) => Object.keys(filters).length > 0;

/** Filters with one value switched on or off. */
export function toggled(filters, field, value) {
  const values = filters[field] ?? [];
  const next = values.includes(value) ? values.filter((one) => one !== value) : [...values, value];
  const { [field]: _, ...others } = filters;
  return next.length ? { ...others, [field]: next } : others;
}

/** Counts of all fields. A filtered field is counted without its own filter, so that other values can be added. */
export async function completeCounts(answer, state, signal) {
  const counts = { ...answer.facets };
  await Promise.all(Object.keys(state.filters).filter((field) => counts[field]).map(async (field) => {
    const { [field]: _, ...others } = state.filters;
    const request = { query: answer.query, facets: [field], ...(hasFilters(others) ? { filter: others } : {}) };
    counts[field] = (await countValues(request, signal)).facets[field];
  }));
  return counts;
}

function group(field, counts, chosen, choose) {
  const values = [...new Set([...chosen, ...Object.keys(counts)])];
  const item = (value, place) => {
    const id = `filter-${field}-${place}`;
    return element("li", { hidden: place >= Math.max(SHOWN, chosen.length) },
      element("input", { type: "checkbox", id, checked: chosen.includes(value), "data-field": field, "data-value": value, onchange: () => choose(field, value) }),
      element("label", { for: id }, element("span", { class: "facet-value" }, value), element("span", { class: "facet-count" }, (counts[value] ?? 0).toLocaleString("en"))));
  };
  const items = values.map(item);
  const hidden = items.filter((one) => one.hidden);
  const list = roving(element("ul", {}, ...items), "input");
  const more = hidden.length > 0 && button(`Show ${hidden.length} more of ${field}`, {
    class: "facet-more",
    onclick: () => {
      for (const one of hidden) one.hidden = false;
      more.remove();
      hidden[0].querySelector("input").focus();
    },
  }, `${hidden.length} more`);
  return element("fieldset", {}, element("legend", {}, field), list, more);
}

/** Draw the filters beside the results. choose(field, value) switches one, clear() removes all. */
export function drawFacets(counts, filters, { choose, clear }) {
  const panel = byId("filters");
  const fields = Object.keys(counts).filter((field) => Object.keys(counts[field]).length > 1 || filters[field]);
  panel.hidden = !fields.length;
  const number = Object.values(filters).flat().length;
  byId("filters-summary").textContent = number ? `Filters (${number})` : "Filters";
  const { field: lastField, value: lastValue } = document.activeElement?.dataset ?? {};
  byId("filters-body").replaceChildren(...fields.map((field) => group(field, counts[field], filters[field] ?? [], choose)));
  const same = [...panel.querySelectorAll("input")].find((one) => one.dataset.field === lastField && one.dataset.value === lastValue);
  if (same?.checkVisibility()) same.focus();
  drawChips(filters, choose, clear);
}

/** The chosen filters above the results, each with a way to remove it. */
export function drawChips(filters, choose, clear) {
  const chips = Object.entries(filters).flatMap(([field, values]) => values.map((value) =>
    element("li", {}, button(`Remove the filter ${field}: ${value}`, { onclick: () => choose(field, value) }, `${field}: ${value} `, element("span", { "aria-hidden": "true" }, "×")))));
  if (chips.length > 1) chips.push(element("li", {}, button("Clear all filters", { class: "clear", onclick: clear })));
  byId("chips").replaceChildren(...chips);
  byId("chips").hidden = !chips.length;
}
