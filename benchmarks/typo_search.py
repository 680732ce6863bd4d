"""Words with typing errors among 10⁶ words, against rapidfuzz; and forgiving search of winapi, against plain search.

The words are those of winapi and new ones made of their beginnings and endings. A query is a word with one error (below
8 letters) or two; both find all words within as many errors, and the results must be equal. rapidfuzz compares with
every word. Times are CPU time of one thread; ours are the mean of 200 queries, rapidfuzz's of 3.

`search` has the dev queries of winapi: `plain` as they are, `prefix` with the last word cut in half, `typos` with an
error in the longest word; `ratio` is plain search of the query as it was, to forgiving search.
"""

from __future__ import annotations

import json
import random
import string
import sys
from collections.abc import Callable
from time import process_time
from typing import Any

from rapidfuzz import process
from rapidfuzz.distance import OSA

from sparserank import TextRanker
from sparserank.data import load
from sparserank.text.word_trie import WordTrie

from .measure import peak_megabytes
from .search_scale import K, best_milliseconds

WORDS, QUERIES, PEER_QUERIES = 1_000_000, 200, 3
LENGTHS = {4: 1, 6: 1, 8: 2, 10: 2, 14: 2}
"""The errors of words with so many letters."""


def many_words(words: list[str], n: int, rng: random.Random) -> list[str]:
    """Add words of the beginning of one and the ending of another until there are n."""
    out = set(words)
    while len(out) < n:
        first, second = rng.choice(words), rng.choice(words)
        out.add(first[: rng.randint(1, 8)] + second[-rng.randint(1, 8) :])
    return sorted(out)


def mistyped(word: str, errors: int, rng: random.Random) -> str:
    """Insert, delete, replace or swap letters."""
    for _ in range(errors):
        at, letter = rng.randrange(len(word) - 1), rng.choice(string.ascii_lowercase)
        changes = (
            word[:at] + letter + word[at:], word[:at] + word[at + 1 :], word[:at] + letter + word[at + 1 :],
            word[:at] + word[at + 1] + word[at] + word[at + 2 :],
        )  # fmt: skip
        word = rng.choice(changes)
    return word


def cpu_milliseconds(call: Callable[[str], Any], queries: list[str]) -> float:
    """Milliseconds of CPU per query."""
    started = process_time()
    for query in queries:
        call(query)
    return 1e3 * (process_time() - started) / len(queries)


def lookup(words: list[str], trie: WordTrie, real: list[str], length: int, rng: random.Random) -> dict[str, Any]:
    """Check and measure the queries of one length."""
    errors = LENGTHS[length]
    sample = rng.sample([word for word in real if len(word) == length and word.isalpha()], QUERIES)
    queries = [mistyped(word, errors, rng) for word in sample]

    def peer(query: str) -> dict[str, int]:
        found = process.extract(query, words, scorer=OSA.distance, score_cutoff=errors, limit=None)
        return {word: distance for word, distance, _ in found}

    found = [trie.within(query, errors) for query in queries]
    for query, ours in zip(queries[:PEER_QUERIES], found, strict=False):
        if {words[i]: n for i, n in ours.items()} != peer(query):
            raise AssertionError(f"rapidfuzz finds other words for {query!r}")
    ours_ms = cpu_milliseconds(lambda query: trie.within(query, errors), queries)
    peer_ms = cpu_milliseconds(peer, queries[:PEER_QUERIES])
    row = {
        "name": f"{length} letters, {errors} {'error' if errors == 1 else 'errors'}",
        "ratio": round(peer_ms / ours_ms),
    }
    return row | {
        "ms": round(ours_ms, 3),
        "rapidfuzz_ms": round(peer_ms, 1),
        "words_found": sum(map(len, found)) / QUERIES,
    }


def search(ranker: TextRanker, texts: list[str], rng: random.Random, rounds: int) -> list[dict[str, Any]]:
    """Measure forgiving search beside plain search."""
    cut = [text[: len(text) - len(text.split()[-1]) // 2] for text in texts]
    wrong = [text.replace(longest := max(text.split(), key=len), mistyped(longest, 1, rng)) for text in texts]
    jobs: dict[str, Callable[[], Any]] = {
        "plain": lambda: [ranker.search(text, K) for text in texts],
        "typos, no error": lambda: [ranker.search(text, K, typos=True) for text in texts],
        "typos, one error": lambda: [ranker.search(text, K, typos=True) for text in wrong],
        "prefix": lambda: [ranker.search(text, K, prefix=True) for text in cut],
        "prefix, 1 letter": lambda: [ranker.search(text[:1], K, prefix=True) for text in texts],
        "both": lambda: [ranker.search(text, K, typos=True, prefix=True) for text in cut],
    }
    ms = best_milliseconds(jobs, len(texts), rounds)
    return [
        {"name": f"search, {name}", "ratio": round(ms["plain"] / value, 2), "ms": round(value, 3)}
        for name, value in ms.items()
    ]


def run(quick: bool = False) -> dict[str, Any]:
    """Milliseconds per word by length, and per query by kind of search."""
    rng, collection = random.Random(0), load("winapi")
    documents = collection.documents.take(range(5000)) if quick else collection.documents
    ranker = TextRanker("bm25").fit(documents)
    real = ranker.lexical_.spelling_index.words
    words = many_words(real, 50_000 if quick else WORDS, rng)
    started = process_time()
    trie = WordTrie(words)
    build_s = process_time() - started
    rows = [lookup(words, trie, real, length, rng) for length in LENGTHS]
    texts = [collection.queries[query] for query in collection.qrels["dev"]][: 30 if quick else QUERIES]
    return {
        "case": "typo search",
        "size": f"{len(words):,} words; winapi, {len(documents):,} documents, {len(texts)} queries, top {K}, BM25",
        "peer": "rapidfuzz, process.extract with the distance OSA; plain search",
        "rows": rows + search(ranker, texts, rng, 1 if quick else 3),
        "build_s": round(build_s, 1),
        "peak_mb": peak_megabytes(),
    }


if __name__ == "__main__":
    print(json.dumps(run("--quick" in sys.argv), indent=2))
