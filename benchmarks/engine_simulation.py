"""Simulated search engines that answer the files and requests of `sparserank export`.

Each class takes exported documents and interprets a request as the engine's documentation describes. A request that the
engine would reject raises ConfigError. So tests and benchmarks measure the loss of what is really sent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparserank.errors import ConfigError
from sparserank.export.lucene import FIELD, MAX_TERM_BYTES, MAX_WEIGHT, SCRIPT
from sparserank.export.synonyms import Rule

CLAUSES = 1024
"""indices.query.bool.max_clause_count, where nobody has raised it."""
Results = list[tuple[str, float]]


def lucene_weights(weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """Weights as Lucene's features keep them: the exponent and 8 bits of the fraction, the rest cut off.

    >>> lucene_weights(np.array([1.0, 1.003, 1.004], np.float32)).tolist()
    [1.0, 1.0, 1.00390625]
    """
    bits = np.ascontiguousarray(weights, np.float32).view(np.uint32)
    return (bits & np.uint32(0xFFFF8000)).view(np.float32)


class Postings:
    """{term: (documents, weights)} of documents that are {term: weight}."""

    def __init__(self, ids: Iterable[str], documents: Iterable[Mapping[str, float]]) -> None:
        self.ids = list(ids)
        lists: dict[str, tuple[list[int], list[float]]] = {}
        for number, document in enumerate(documents):
            for term, weight in document.items():
                of_term = lists.setdefault(term, ([], []))
                of_term[0].append(number)
                of_term[1].append(weight)
        self.lists = {term: (np.array(at, np.int64), np.array(w, np.float32)) for term, (at, w) in lists.items()}

    def scores(self, query: Mapping[str, float]) -> NDArray[np.float64]:
        """Σ query weight · document weight, of every document."""
        out = np.zeros(len(self.ids))
        for term, weight in query.items():
            if term in self.lists:
                at, weights = self.lists[term]
                out[at] += weight * weights.astype(np.float64)
        return out

    def best(self, scores: NDArray[np.float64], k: int) -> Results:
        """The best k of those that score, equal ones in the order of documents."""
        order = np.argsort(-scores, kind="stable")[:k]
        return [(self.ids[i], float(scores[i])) for i in order if scores[i] > 0.0]


class LuceneEngine:
    """Elasticsearch and OpenSearch, one shard: searches by weighted terms, and rescorers."""

    def __init__(self, bulk: Iterable[bytes]) -> None:
        ids, sources = [], []
        for record in bulk:
            action, source = map(json.loads, record.splitlines())
            ids.append(action["index"]["_id"])
            sources.append(source.get(FIELD, {}))
        self.postings = Postings(ids, sources)
        for term, (at, weights) in self.postings.lists.items():
            if "." in term or not 0 < len(term.encode()) <= MAX_TERM_BYTES or weights.min() <= 0.0:
                raise ConfigError(f"a feature's name has no dots and its weights are above 0; got {term!r}")
            self.postings.lists[term] = (at, lucene_weights(weights))

    def search(self, body: Mapping[str, Any]) -> Results:
        """The hits of a request."""
        scores, matched = self._scores(body["query"])
        order = np.argsort(-scores, kind="stable")
        order = order[matched[order]]
        for rescorer in body.get("rescore", []):
            order = self._rescore(order, scores, rescorer["window_size"], rescorer["query"])
        return [(self.postings.ids[i], float(scores[i])) for i in order[: body["size"]]]

    def _rescore(
        self, order: NDArray[np.int64], scores: NDArray[np.float32], window: int, rescorer: Mapping[str, Any]
    ) -> NDArray[np.int64]:
        if rescorer["score_mode"] != "total":
            raise ConfigError(f"scores are added up; got {rescorer['score_mode']!r}")
        second, matched = self._scores(rescorer["rescore_query"])
        first = order[:window]
        added = np.where(matched[first], np.float32(rescorer["rescore_query_weight"]) * second[first], np.float32(0))
        scores[first] = np.float32(rescorer["query_weight"]) * scores[first] + added
        return np.concatenate([first[np.argsort(-scores[first], kind="stable")], order[window:]])

    def _scores(self, query: Mapping[str, Any]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Of every document its score, and whether it matches."""
        ((kind, clause),) = query.items()
        n = len(self.postings.ids)
        if kind in ("match_none", "match_all"):
            return np.full(n, kind == "match_all", np.float32), np.full(n, kind == "match_all")
        if kind == "sparse_vector":
            return self._features(clause["query_vector"])
        if kind == "neural_sparse":
            return self._features(clause[FIELD]["query_tokens"])
        if kind == "bool":
            parts = [self._scores(part) for part in clause["should"]]
            filters = [self._scores(part)[1] for part in clause["filter"]]
            return np.sum([scores for scores, _ in parts], axis=0, dtype=np.float32), np.all(filters, axis=0)
        if kind == "script_score" and clause["script"]["source"] == SCRIPT:
            scores, matched = self._scores(clause["query"])
            bound = clause["script"]["params"]["bound"]
            return np.maximum(0.0, bound - scores.astype(np.float64)).astype(np.float32), matched
        raise ConfigError(f"a query of kind {kind!r} is not known here")

    def _features(self, terms: Mapping[str, float]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        if len(terms) > CLAUSES - 2 or not all(0.0 < weight <= MAX_WEIGHT for weight in terms.values()):
            raise ConfigError(f"a query has at most {CLAUSES} clauses, and weights in (0, {MAX_WEIGHT:g}]")
        scores = self.postings.scores(terms).astype(np.float32)
        return scores, scores > 0.0


class VespaEngine:
    """Vespa, one node: `wand` in whole numbers, then a product of tensors."""

    def __init__(self, feed: Iterable[Mapping[str, Any]]) -> None:
        puts = list(feed)
        ids = [put["fields"]["id"] for put in puts]
        self.found = Postings(ids, [put["fields"].get("terms", {}) for put in puts])
        self.scored = Postings(ids, [put["fields"].get("weights", {"cells": {}})["cells"] for put in puts])

    def search(self, body: Mapping[str, Any]) -> Results:
        """The hits of a request."""
        where = re.fullmatch(
            r"select id, title from doc where (?:false|\(\{targetHits: (\d+)\}wand\(terms, (\{.*\})\)\))", body["yql"]
        )
        if where is None:
            raise ConfigError(f"not the query that is written for Vespa: {body['yql'][:80]!r}")
        if where[1] is None:
            return []
        raw = self.found.scores(json.loads(where[2]))
        order = np.argsort(-raw, kind="stable")[: int(where[1])]
        order = order[raw[order] > 0.0][: body["ranking.rerankCount"]]
        scores = self.scored.scores(body["input.query(words)"])[order]
        again = np.argsort(-scores, kind="stable")[: body["hits"]]
        return [(self.found.ids[order[i]], float(scores[i])) for i in again]


class SynonymEngine:
    """BM25 as Lucene has it, a word and its synonyms counted as one word that is as common as the commonest of them."""

    def __init__(self, ids: Iterable[str], documents: Iterable[Mapping[str, float]], k1: float = 1.2, b: float = 0.75):
        self.counts = Postings(ids, (texts := list(documents)))
        lengths = np.array([sum(text.values()) for text in texts], np.float64)
        self.norm = k1 * (1.0 - b + b * lengths / lengths.mean())

    def search(self, words: Iterable[str], synonyms: Mapping[str, Iterable[str]], k: int = 10) -> Results:
        """The best k for words as they are counted; {word: itself and what is looked for with it}."""
        n = len(self.counts.ids)
        scores = np.zeros(n)
        for word in words:
            alike = [term for term in dict.fromkeys(synonyms.get(word, [word])) if term in self.counts.lists]
            if not alike:
                continue
            common = max(len(self.counts.lists[term][0]) for term in alike)
            times = self.counts.scores(dict.fromkeys(alike, 1.0))
            scores += np.log1p((n - common + 0.5) / (common + 0.5)) * times / (times + self.norm)
        return self.counts.best(scores, k)


class WordRulesEngine:
    """Typesense and Meilisearch, approximately: their documented defaults, by which words match and have no weights.

    A query word matches itself and its synonyms, as they are spelled; no word is a stop word. A document that has all
    words is found; while fewer than `at_least` are, the last word is dropped: Typesense drops words until there is one
    result (`drop_tokens_threshold`), Meilisearch until the page is full (`matchingStrategy: last`). More matched words
    come first; then neighbours of the query that are closer in a field (distances of at most 8), then a match in an
    earlier field, then more words as they were typed. Typing errors and prefixes of words are left out.
    """

    def __init__(self, ids: Iterable[str], documents: Iterable[Iterable[list[str]]]) -> None:
        self.ids = list(ids)
        self.places: dict[str, dict[int, list[tuple[int, int]]]] = {}
        for number, fields in enumerate(documents):
            for field, words in enumerate(fields):
                for position, word in enumerate(words):
                    self.places.setdefault(word, {}).setdefault(number, []).append((field, position))

    def search(self, words: list[str], synonyms: Mapping[str, list[str]], k: int, at_least: int) -> Results:
        """The best k with the number of matched words."""
        matches: list[dict[int, list[tuple[int, int]]]] = []
        for word in words:
            found: dict[int, list[tuple[int, int]]] = {}
            for one in (word, *synonyms.get(word, ())):
                for number, places in self.places.get(one, {}).items():
                    found.setdefault(number, []).extend(places)
            matches.append(found)
        out: dict[int, float] = {}
        for n in range(len(words), 0, -1):
            whole = set.intersection(*(set(found) for found in matches[:n])) - out.keys()
            out |= dict.fromkeys(sorted(whole, key=lambda one: self._rank(one, words[:n], matches)), float(n))
            if len(out) >= at_least:
                break
        return [(self.ids[number], score) for number, score in list(out.items())[:k]]

    def _rank(self, number: int, words: list[str], matches: list[dict[int, list[tuple[int, int]]]]) -> Any:
        """Smaller is better; equal documents keep their order."""
        places = [found[number] for found in matches[: len(words)]]
        far = sum(_distance(left, right) for left, right in pairwise(places))
        typed = sum(number in self.places.get(word, {}) for word in words)
        return far, min(field for of_word in places for field, _ in of_word), -typed, number


def _distance(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> int:
    return min([8, *(abs(b - a) for at, a in left for where, b in right if at == where)])


def by_stem(rules: Iterable[Rule], stems: Any) -> dict[str, list[str]]:
    """{word as it is counted: what its rule writes}; `stems` makes counted forms of a list of words."""
    out: dict[str, list[str]] = {}
    for rule in rules:
        written = [form for form in stems(list(rule.replacements)) if form is not None]
        out |= {form: written for form in stems(list(rule.words)) if form is not None}
    return out
