// Requests to the service, and its errors as sentences.

import { addSpellings } from "./elements.js";

const KEY = "sparserank.token";
/** The first part of all paths: "/" or, in a service of several collections, "/name/". */
export const BASE = location.pathname.replace(/[^/]*$/, "");
const TIMEOUT_MS = 15_000;

/** An error as a sentence. kind: offline | token | busy | rejected | broken */
export class ServiceError extends Error {
  constructor(kind, sentence, wait = 0) {
    super(sentence);
    this.kind = kind;
    this.wait = wait; // seconds until a retry makes sense
  }
}

/** Move the token from the address (#token=…) to the storage of this tab. */
export function takeToken() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token === null) return;
  setToken(token);
  history.replaceState(null, "", location.pathname + location.search);
}

export function setToken(token) {
  sessionStorage.setItem(KEY, token.trim());
}

export const token = () => sessionStorage.getItem(KEY) ?? "";

async function trouble(response) {
  let sentence = "";
  try {
    const { detail } = await response.json();
    sentence = typeof detail === "string" ? detail : "";
  } catch {
    // a proxy may answer without JSON; the status is enough
  }
  const wait = Number(response.headers.get("Retry-After")) || 1;
  if (response.status === 401 || response.status === 403) {
    return new ServiceError("token", token() ? "This token does not allow it." : "This needs a token.");
  }
  if (response.status === 429) {
    return new ServiceError("busy", `Too many requests. Trying again in ${wait === 1 ? "a second" : `${wait} seconds`}.`, wait);
  }
  if (response.status >= 500) {
    return new ServiceError("broken", sentence || `The service could not answer (${response.status}).`, wait);
  }
  return new ServiceError("rejected", sentence || `The service rejected the request (${response.status}).`);
}

/** Send a request; return the parsed body, or throw a ServiceError. An aborted request throws AbortError. */
export async function send(method, path, body, signal, keepalive = false) {
  const headers = { Accept: "application/json" };
  const sent = token();
  if (sent) headers.Authorization = `Bearer ${sent}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const signals = [AbortSignal.timeout(TIMEOUT_MS), ...(signal ? [signal] : [])];
  let response;
  try {
    response = await fetch(BASE + path.slice(1), {
      method, headers, body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.any(signals), keepalive, cache: "no-store", credentials: "omit", referrerPolicy: "no-referrer",
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ServiceError("offline", "The search service does not answer.", 2);
  }
  // the user may give a token while a request without it is under way
  if (response.status === 401 && sent !== token()) return send(method, path, body, signal, keepalive);
  if (!response.ok) throw await trouble(response);
  try {
    const content = await response.json();
    addSpellings(content);
    return content;
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ServiceError("broken", "The response is not JSON. Another program may answer at this address.", 1);
  }
}

const FORGIVING = { typos: true, prefix: true }; // words may have typing errors, and the last one may be unfinished

/** request: {query, k, offset, filter, facets, lexical}; with the passage of each result, and what words and pairs add */
export const search = (request, signal) => exactSearch({ ...FORGIVING, ...request }, signal);
/** The same for the words as they are. */
export const exactSearch = (request, signal) => send("POST", "/search", { snippets: true, split: true, total: true, ...request }, signal);
/** Only the counts of values. */
export const countValues = (request, signal) => send("POST", "/search", { k: 1, ...FORGIVING, ...request }, signal);
/** The pairs of a result; `more`: {pairs, version of an interleaved result}. */
export const explain = (query, document, more = {}) => send("POST", "/explain", { query, document, ...FORGIVING, ...more });
export const compare = (query, first, second) => send("POST", "/compare", { query, first, second, ...FORGIVING });
export const related = (word, k) => send("GET", `/related/${encodeURIComponent(word)}?k=${k}`);
export const changesOf = (version, k) => send("GET", `/changes?version=${version}&k=${k}`);
export const readDocument = (id, offset = 0) => send("GET", `/documents/${encodeURIComponent(id)}?offset=${offset}`);
export const judgments = (after) => send("GET", `/judgments?after=${after}`);
export const model = () => send("GET", "/model");
export const health = () => send("GET", "/health");
/** It arrives even if a link takes the user to another page meanwhile. */
export const feedback = (body) => send("POST", "/feedback", body, undefined, true);
export const promote = (candidate) => send("POST", "/model/promote", { candidate });
export const withdraw = (candidate) => send("POST", "/model/withdraw", { candidate });
export const rollback = (to) => send("POST", "/model/rollback", { to });
