// What the page asks of the service, and what it says where the service cannot answer.

const KEY = "sparserank.token";
const PATIENCE = 15_000;

/** What went wrong, in a sentence for a person. kind: gone | token | busy | asked | broken */
export class Trouble extends Error {
  constructor(kind, sentence, wait = 0) {
    super(sentence);
    this.kind = kind;
    this.wait = wait; // seconds after which it is worth asking again
  }
}

/** The token of the address (#token=…) is kept for this tab, and taken out of the address bar. */
export function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given === null) return;
  setToken(given);
  history.replaceState(null, "", location.pathname + location.search);
}

export function setToken(token) {
  sessionStorage.setItem(KEY, token.trim());
}

export const hasToken = () => Boolean(sessionStorage.getItem(KEY));

async function trouble(response) {
  let sentence = "";
  try {
    const { detail } = await response.json();
    sentence = typeof detail === "string" ? detail : "";
  } catch {
    // a proxy may answer in its own words: the code says enough
  }
  const wait = Number(response.headers.get("Retry-After")) || 1;
  if (response.status === 401 || response.status === 403) {
    return new Trouble("token", hasToken() ? "The token at hand is not the one that the service takes." : "This needs a token.");
  }
  if (response.status === 429) {
    return new Trouble("busy", `A little too fast. It goes on in ${wait === 1 ? "a second" : `${wait} seconds`}.`, wait);
  }
  if (response.status >= 500) {
    return new Trouble("broken", sentence || `The service could not answer (${response.status}).`, wait);
  }
  return new Trouble("asked", sentence || `The service did not take that (${response.status}).`);
}

/** One request: the answer as an object, or a Trouble; an abandoned one rejects with AbortError. */
export async function ask(method, path, body, signal) {
  const headers = { Accept: "application/json" };
  const token = sessionStorage.getItem(KEY);
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const signals = [AbortSignal.timeout(PATIENCE), ...(signal ? [signal] : [])];
  let response;
  try {
    response = await fetch(path, {
      method, headers, body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.any(signals), cache: "no-store", credentials: "omit", referrerPolicy: "no-referrer",
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Trouble("gone", "The service does not answer. Perhaps it was stopped; the page tries again by itself.", 2);
  }
  if (!response.ok) throw await trouble(response);
  try {
    return await response.json();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Trouble("broken", "What came back could not be read. Perhaps something else answers in place of the service.", 1);
  }
}

/** Results with their largest pairs; `explain` has them all. */
export const search = (query, k, signal) =>
  ask("POST", "/search", { query, k, explain: true, pairs: 20, lexical: true }, signal);
export const explain = (query, document) => ask("POST", "/explain", { query, document });
export const compare = (query, first, second) => ask("POST", "/compare", { query, first, second });
export const related = (word, k) => ask("GET", `/related/${encodeURIComponent(word)}?k=${k}`);
export const changes = (days, k) => ask("GET", `/changes?days=${days}&k=${k}`);
export const model = () => ask("GET", "/model");
export const health = () => ask("GET", "/health");
export const feedback = (body) => ask("POST", "/feedback", body);
export const rollback = (to) => ask("POST", "/model/rollback", { to });
