// Search in the browser, with the same scores as the Python package:
//
//   import { open } from "./search.js";
//   const search = await open(new URL("./", import.meta.url));
//   const { results } = await search("mask an array", { k: 10 });
//
// A search loads the shards of its words, of the words they are paired with, and of the documents that it shows. A loaded
// file stays in memory.
import { stem } from "./stemmer.js";

const fround = Math.fround;
const SEGMENTED = /[\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3041-\u312f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\u{1aff0}-\u{1b16f}\u{20000}-\u{3ffff}]+|[\u0e00-\u0e7f]+|[\u0e80-\u0eff]+|[\u1780-\u17ff]+|[\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f]+/gu;

export async function open(base) {
  const url = new URL(base, globalThis.location?.href);
  const files = new Map();
  const load = (name) => {
    if (!files.has(name)) {
      const file = fetch(new URL(name, url)).then((answer) => {
        if (!answer.ok) throw new Error(`${name}: the server answered ${answer.status}`);
        return answer.json();
      });
      file.catch(() => files.delete(name)); // the next search tries again
      files.set(name, file);
    }
    return files.get(name);
  };
  const [settings, documents] = await Promise.all([load("search.json"), load("documents.json")]);
  const index = { settings, documents, load, stop: new Set(settings.stop_words), lists: new Map() };
  return (text, options) => search(index, text, options);
}

async function search(index, text, { k = 10, offset = 0, length = 240 } = {}) {
  const started = performance.now();
  const query = await encode(index, text);
  const terms = await postings(index, query);
  const scores = new Float64Array(index.settings.documents);
  for (const { weight, docs, values } of terms)
    for (let i = 0; i < docs.length; i++) scores[docs[i]] += weight * values[i];
  const found = [];
  scores.forEach((score, doc) => fround(score) && found.push([doc, fround(score)]));
  found.sort((a, b) => b[1] - a[1] || b[0] - a[0]); // documents are numbered by id; of equal scores the larger id is first
  const page = found.slice(offset, offset + k);
  const results = await Promise.all(page.map(async ([doc, score]) => {
    const stored = await document(index, doc);
    const pairs = explain(terms, doc);
    return { ...stored, score, pairs, snippet: await snippet(index, stored.text, pairs, length) };
  }));
  return { results, total: found.length, milliseconds: performance.now() - started };
}

// The words of a query: its counts by lexical column, and its row of W's query words at unit length.
async function encode(index, text) {
  const tokens = await analyze(index, fold(text, index.settings));
  const words = tokens.map((token) => token.form);
  const typed = new Map(tokens.map((token) => [token.form, token.word]));
  const counts = new Map();
  const count = (word) => counts.set(word, (counts.get(word) ?? 0) + 1);
  words.forEach(count);
  if (index.settings.pair_weight) words.slice(1).forEach((word, i) => count(`${words[i]} ${word}`));
  const known = (await Promise.all([...counts].map(async ([word, n]) => {
    const entry = await lookup(index, word);
    const shown = word.split(" ").map((part) => typed.get(part) ?? part).join(" ");
    return entry && { word, shown, count: n, ...entry };
  }))).filter(Boolean);
  let norm = 0;
  for (const one of known) norm += (one.q = fround(one.count * fround(one.weight))) ** 2;
  for (const one of known) one.q = fround(one.q / Math.sqrt(norm));
  if (words.length && !known.some(({ word }) => index.settings.pinned.includes(word)) && (await is_name(index, words)))
    for (const one of known) one.pairs = [];
  return known;
}

// Whether a query is the name of a document: then the lexical score alone ranks.
async function is_name({ settings, load }, words) {
  const shard = await load(`words/${hash(words[0]) % settings.word_shards}.json`);
  return shard.names.includes(hash(words.join(" ")));
}

async function lookup(index, word) {
  const shard = await index.load(`words/${hash(word.split(" ")[0]) % index.settings.word_shards}.json`);
  if (!Object.hasOwn(shard.words, word)) return null;
  const [column, weight, gaps, weights] = shard.words[word];
  let at = -1;
  return { column, weight, pairs: gaps.map((gap, i) => [(at += gap), weights[i]]) };
}

// Every posting list that the query reads, with its weight and with the pairs that lead to it.
async function postings(index, query) {
  const lexical = new Map(), learned = new Map();
  for (const one of query) if (one.column >= 0) lexical.set(one.column, one);
  for (const { shown, q, pairs } of query)
    for (const [column, weight] of pairs) {
      if (!learned.has(column)) learned.set(column, { weight: 0, from: [] });
      const term = learned.get(column), part = index.settings.pair_weight * q * fround(weight);
      term.weight += part;
      term.from.push([shown, part]);
    }
  const columns = new Set([...lexical.keys(), ...learned.keys()]);
  const lists = await Promise.all([...columns].map(async (column) => {
    const { word, shown, docs, weights, scaled } = await list(index, column);
    const out = [];
    if (lexical.has(column)) {
      const { count, shown: typed } = lexical.get(column);
      out.push({ word, shown, docs, values: weights, weight: count, from: [[typed, count]] });
    }
    if (learned.has(column)) out.push({ word, shown, docs, values: scaled, ...learned.get(column) });
    return out;
  }));
  return lists.flat();
}

// The documents of a word, with their lexical weights and those that pairs look for.
async function list({ settings, documents, load, lists }, column) {
  if (lists.has(column)) return lists.get(column);
  const shard = last(settings.first_columns, column);
  const [word, shown, idf, numbers] = (await load(`postings/${shard}.json`))[column - settings.first_columns[shard]];
  const docs = [], weights = [], scaled = [], root = fround(Math.sqrt(fround(idf)));
  for (let i = 0, doc = -1; i < numbers.length; i++) { // a gap, or a negative gap and a value other than 1
    doc += Math.abs(numbers[i]);
    const value = numbers[i] < 0 ? numbers[++i] : 1;
    const weight = settings.values === "weights" ? fround(value)
      : fround(fround(value / fround(value + fround(documents.lengths[doc]))) * fround(idf));
    docs.push(doc);
    weights.push(weight);
    scaled.push(fround(fround(weight / root) / documents.norms[doc]));
  }
  lists.set(column, { word, shown: shown || word, docs, weights, scaled });
  return lists.get(column);
}

async function document({ settings, load }, doc) {
  const part = last(settings.first_documents, doc);
  return (await load(`documents/${part}.json`))[doc - settings.first_documents[part]];
}

// The position of the last number that is not above a value.
function last(ascending, value) {
  const after = ascending.findIndex((one) => one > value);
  return (after < 0 ? ascending.length : after) - 1;
}

// Pairs of a query word and a document word with their contributions; they add up to the score.
function explain(terms, doc) {
  const lines = [];
  for (const { word, shown, docs, values, from } of terms) {
    const at = position(docs, doc);
    if (at >= 0)
      for (const [query, weight] of from)
        lines.push({ query, document: shown, word, contribution: weight * values[at] });
  }
  return lines.sort((a, b) => Math.abs(b.contribution) - Math.abs(a.contribution));
}

function position(sorted, value) {
  let low = 0, high = sorted.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] === value) return middle;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}

// The passage with the largest contributions, as parts of text that are marked or not.
async function snippet(index, text, pairs, length) {
  const gain = new Map();
  for (const { word, contribution } of pairs)
    for (const part of word.split(" ")) gain.set(part, (gain.get(part) ?? 0) + Math.max(contribution, 0));
  const line = text.slice(0, 100_000).replace(/\s+/g, " ").trim();
  const { folded, at: original } = fold_with_positions(line, index.settings);
  const tokens = (await analyze(index, folded)).filter((token) => gain.has(token.form))
    .map((token) => ({ ...token, start: original[token.start], end: original[token.end] }));
  let best = [0, 0];
  tokens.forEach((token, i) => {
    const seen = new Set();
    let sum = 0;
    for (let j = i; j < tokens.length && tokens[j].end <= token.start + length; j++)
      if (!seen.has(tokens[j].form)) sum += gain.get(tokens[j].form), seen.add(tokens[j].form);
    if (sum > best[0]) best = [sum, token.start];
  });
  let start = best[1] + length >= line.length ? Math.max(0, line.length - length) : best[1];
  start = start > 0 ? line.lastIndexOf(" ", start) + 1 : 0;
  let end = Math.min(line.length, start + length);
  if (end < line.length && line.lastIndexOf(" ", end) > start) end = line.lastIndexOf(" ", end);
  const parts = start > 0 ? [{ text: "… ", marked: false }] : [];
  let at = start;
  for (const token of tokens) {
    if (token.start < at || token.end > end) continue;
    if (token.start > at) parts.push({ text: line.slice(at, token.start), marked: false });
    parts.push({ text: line.slice(token.start, token.end), marked: true });
    at = token.end;
  }
  if (at < end) parts.push({ text: line.slice(at, end), marked: false });
  if (end < line.length) parts.push({ text: " …", marked: false });
  return parts;
}

// The words of a text: their normal forms and their positions.
async function analyze({ settings, stop, load }, folded) {
  const pattern = settings.normalize ? /[\p{L}\p{N}\p{Mn}\p{Mc}_]+/gu : /[\p{L}\p{N}_]+/gu;
  const tokens = [];
  for (const match of folded.matchAll(pattern))
    for (const [start, end, whole] of pieces(match[0], settings)) {
      const word = match[0].slice(start, end);
      if ([...word].length < settings.shortest && whole) continue;
      if (whole && stop.has(word)) continue;
      tokens.push({ word, whole, start: match.index + start, end: match.index + end });
    }
  const forms = new Map();
  await Promise.all([...new Set(tokens.map((token) => token.word))].map(async (word) => {
    forms.set(word, await normal_form(settings, load, word));
  }));
  return tokens.map((token) => ({ ...token, form: token.whole ? forms.get(token.word) : token.word }));
}

function fold(text, { normalize, lowercase }) {
  if (!normalize) return lowercase ? text.toLowerCase() : text;
  const folded = text.normalize("NFKC");
  return lowercase ? folded.toLowerCase().replace(/ß/g, "ss").replace(/ς/g, "σ").normalize("NFKC") : folded;
}

// A folded text, and for each of its positions the one in the text.
function fold_with_positions(text, settings) {
  const at = [];
  let folded = "";
  for (const match of text.matchAll(/\p{M}+|\P{M}\p{M}*/gu)) {
    const part = fold(match[0], settings);
    const letter = part.length === match[0].length;
    for (let i = 0; i < part.length; i++) at.push(match.index + (letter ? i : 0));
    folded += part;
  }
  return { folded, at: [...at, text.length] };
}

// A run of word characters: one word, or overlapping bigrams where a script writes no blanks.
function* pieces(run, { bigrams }) {
  let at = 0;
  if (bigrams)
    for (const match of run.matchAll(SEGMENTED)) {
      if (at < match.index) yield [at, match.index, true];
      const letters = [...match[0]];
      let start = match.index;
      for (let i = 0; i < Math.max(1, letters.length - 1); i++) {
        yield [start, start + letters[i].length + (letters[i + 1]?.length ?? 0), false];
        start += letters[i].length;
      }
      at = match.index + match[0].length;
    }
  if (at < run.length) yield [at, run.length, true];
}

async function normal_form(settings, load, word) {
  if (settings.stemmer === "english") return stem(word);
  if (settings.stemmer === null) return word;
  const shard = await load(`words/${hash(word) % settings.word_shards}.json`);
  return Object.hasOwn(shard.forms, word) ? shard.forms[word] : word;
}

// FNV-1a of the UTF-8 bytes.
export function hash(word) {
  let value = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(word)) value = Math.imul(value ^ byte, 0x01000193) >>> 0;
  return value;
}
