// Judgments of the service, and their export as the files that `sparserank train` and trec_eval read.

import { judgments } from "./api.js";
import { element } from "./elements.js";

const PAGE = 1000;

/** Case and spaces do not matter, as in the service. */
export const normalized = (query) => query.toLowerCase().split(/\s+/).filter(Boolean).join(" ");

/** All grades: Map of normalized query -> {text, grades: Map of document -> grade}, in the order of the first judgment. */
export async function loadGrades() {
  const queries = new Map();
  for (let after = 0, found = [null]; found.length && (after === 0 || found.length === PAGE); ) {
    found = (await judgments(after)).judgments;
    for (const one of found) {
      const key = normalized(one.query);
      if (!queries.has(key)) queries.set(key, { text: one.query, grades: new Map() });
      const { grades } = queries.get(key);
      if (one.grade === 0) grades.delete(one.document); // withdrawn
      else grades.set(one.document, one.grade);
      after = one.number;
    }
  }
  return queries;
}

/** Judged queries with ids q1, q2, … and grades from 0 on; a new query gets the next id. */
function judged(queries) {
  return [...queries.values()].map((one, place) => ({ id: `q${place + 1}`, ...one })).filter((one) => one.grades.size);
}

const rows = (queries, row) => judged(queries).flatMap((one) => [...one.grades].map(([document, grade]) => row(one.id, document, Math.max(0, grade))));

export const beirQrels = (queries) => ["query-id\tcorpus-id\tscore", ...rows(queries, (id, document, grade) => `${id}\t${document}\t${grade}`)].join("\n") + "\n";
export const beirQueries = (queries) => judged(queries).map((one) => JSON.stringify({ _id: one.id, text: one.text }) + "\n").join("");
export const trecQrels = (queries) => rows(queries, (id, document, grade) => `${id} 0 ${document} ${grade}\n`).join("");

/** Save a text as a file of the user. */
export function download(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
