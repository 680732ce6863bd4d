"""Top 10 through a learned W of a million pairs on 20 Newsgroups: both plans of ours, scipy's (QW)Dᵀ, and bm25s.

Queries are every fourth test post, as a whole and by its subject line; documents are the training posts. All start from
ready features (bm25s from tokens), on the same cores. The ratio is to scipy; `of_bm25s` is the ratio to bm25s, which
searches for the words themselves only. Before the measurement, our two plans are compared with each other, to the bit,
and with scipy. `start` has the seconds that a new process takes to import the package, to open the file (a file below
128 MB is read and checked as a whole) and to return the first result.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import sparserank as sr
from sparserank import data, validation
from sparserank.data.records import Documents
from sparserank.search import Index
from sparserank.search.encoded_query import EncodedQuery
from sparserank.search.expansion import Expansion
from sparserank.text import TextFeatures

from .measure import best_seconds, peak_megabytes
from .newsgroups import subject_lines

K, WORDS, PAIRS = 10, 10_000, 1_000_000
BLOCK = 512
START = """
from time import perf_counter
began = perf_counter()
import sys, numpy as np
from scipy.sparse import csr_array
from sparserank._kernels import inverted
from sparserank.search import Index
imported = perf_counter()
index = Index.load(sys.argv[1])
loaded = perf_counter()
one = csr_array((np.ones(3, np.float32), np.array([5, 50, 500]), np.array([0, 3])), shape=(1, index.n_terms))
index.search(one, 10)
print(imported - began, loaded - imported, perf_counter() - loaded)
"""


def brute_force(Q: Any, W: Any, D: Any) -> tuple[Any, Any]:
    """The best K of (QW)Dᵀ, some hundred queries at a time."""
    places, scores, across = [], [], D.T.tocsr()
    for at in range(0, Q.shape[0], BLOCK):
        full = ((Q[at : at + BLOCK] @ W) @ across).toarray()
        part = np.argpartition(-full, K, axis=1)[:, :K]
        value = np.take_along_axis(full, part, axis=1)
        order = np.argsort(-value, axis=1, kind="stable")
        places.append(np.take_along_axis(part, order, axis=1))
        scores.append(np.take_along_axis(value, order, axis=1))
    return np.concatenate(places), np.concatenate(scores)


def agree(index: Index, queries: EncodedQuery, W: Any, D: Any) -> None:
    """Both plans to the bit, and scipy's scores of those found as near as its 32 bits are."""
    query, documents = (index.top(queries, K, plan=plan) for plan in ("query", "documents"))
    if not all(np.array_equal(a, b) for a, b in zip(query, documents, strict=True)):
        raise AssertionError("the two plans disagree")
    by_scipy = brute_force(queries.words, W, D)[1]
    full = (query[2] == K) & (by_scipy[:, -1] > 0.0)  # beyond, scipy lists documents that share nothing
    if not np.allclose(query[1][full], by_scipy[full], rtol=1e-4, atol=1e-5):
        raise AssertionError("brute force finds other scores")


def starting(index: Index) -> dict[str, float]:
    """Of a new process: seconds to import, to open the file, and to the first answer; and the file's megabytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "index")
        index.save(path)
        words = [sys.executable, "-c", START, str(path)]
        subprocess.run(words, check=True, capture_output=True)  # kernels are compiled once on a machine
        imported, opened, answered = map(float, subprocess.run(words, check=True, capture_output=True).stdout.split())
        times = {"import_s": round(imported, 2), "open_s": round(opened, 4), "first_answer_s": round(answered, 3)}
        return {"megabytes": round(path.stat().st_size / 1e6), **times}


def run(quick: bool = False) -> dict[str, Any]:
    """Queries a second, whole posts and subject lines."""
    import bm25s

    logging.getLogger("bm25s").setLevel(logging.ERROR)
    split, threads = data.load("20newsgroups"), validation.threads(None)
    train, posts, subjects = split.train.items, split.test.items[::4], subject_lines()[::4]
    if quick:
        train, posts, subjects = train[:2000], posts[:200], subjects[:200]
    features = TextFeatures("sublinear", columns=WORDS)
    D = features.fit_transform(train)
    ranker = sr.LabelRanker(max_pairs=PAIRS, random_state=0).fit(D, split.train.y[: len(train)])
    W, ids = ranker.W_, tuple(f"{i:05d}" for i in range(len(train)))[::-1]
    index = Index.build(D, Documents(ids, ids, ids))
    started = perf_counter()
    empty = EncodedQuery(_nothing(1, D), _nothing(1, D), W, pairs_digest="W")
    expansion = Expansion.build(index.segments, empty, max_bytes=1 << 32)
    expanding = perf_counter() - started
    both = Index(index.segments, "", expansion)
    theirs = bm25s.BM25(backend="numba")
    theirs.index(bm25s.tokenize(list(train), stopwords=None, show_progress=False), show_progress=False)
    rows = []
    for kind, texts in (("whole posts", posts), ("subject lines", subjects)):
        Q = features.transform(texts)
        queries = EncodedQuery(_nothing(len(texts), D), Q, W, pairs_digest="W")
        agree(both, queries, W, D)
        tokens = bm25s.tokenize(list(texts), stopwords=None, show_progress=False)
        contestants = {
            "SparseRank, queries expanded": lambda queries=queries: both.top(queries, K, plan="query"),
            "SparseRank, documents expanded": lambda queries=queries: both.top(queries, K, plan="documents"),
            "SparseRank, cheaper plan": lambda queries=queries: both.top(queries, K),
            "scipy (QW)Dᵀ": lambda Q=Q: brute_force(Q, W, D),
            "bm25s, no W": lambda tokens=tokens: theirs.retrieve(tokens, k=K, show_progress=False, n_threads=threads),
        }
        seconds = best_seconds(contestants, repetitions=1 if quick else 3)
        rows += [
            {
                "name": f"{name}, {kind}",
                "ratio": round(seconds["scipy (QW)Dᵀ"] / s, 2),
                "of_bm25s": round(seconds["bm25s, no W"] / s, 2),
                "queries_per_s": round(len(texts) / s),
            }
            for name, s in seconds.items()
        ]
    return {
        "case": "search through W",
        "size": f"20 Newsgroups, {len(train)} posts, {len(posts)} queries, {W.nnz} pairs, top {K}, {threads} threads",
        "peer": "scipy (QW)Dᵀ, bm25s",
        "rows": rows,
        "start": {"queries expanded": starting(index), "documents expanded": starting(both)},
        "expanding_s": round(expanding, 1),
        "peak_mb": peak_megabytes(),
    }


def _nothing(n: int, D: Any) -> Any:
    from scipy.sparse import csr_array

    return csr_array((n, D.shape[1]), dtype=np.float32)


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
