"""BM25 top 10 on 20 Newsgroups with the subject lines of test posts as queries: ours against bm25s (Numba backend)."""

from __future__ import annotations

import json
import logging
from typing import Any

import numpy as np

from sparserank import BM25, TextRanker, validation

from .measure import best_seconds, peak_megabytes
from .newsgroups import subject_lines, training_texts

K = 10


def run(quick: bool = False) -> dict[str, Any]:
    """Queries per second, from tokens and from raw text, on the same cores and with the same k."""
    import bm25s

    logging.getLogger("bm25s").setLevel(logging.ERROR)
    texts, queries = training_texts(), subject_lines()[: 500 if quick else None]
    threads = validation.threads(None)
    ours = TextRanker(analyzer=None).fit({str(i): t for i, t in enumerate(texts)})
    rows_in = ours.lexical_.queries(queries)

    def split(what: list[str]) -> Any:
        return bm25s.tokenize(what, stopwords=None, show_progress=False)

    bm25 = BM25()
    theirs = bm25s.BM25(k1=bm25.k1, b=bm25.b, backend="numba")
    theirs.index(split(texts), show_progress=False)
    tokens = split(queries)

    def retrieve(what: Any) -> Any:
        return theirs.retrieve(what, k=K, show_progress=False, n_threads=threads)

    _, scores, counts = ours.index_.top(rows_in, K)
    full = counts == K
    if not np.allclose(scores[full], retrieve(tokens).scores[full], rtol=1e-4):
        raise AssertionError("the two engines disagree on scores")
    rows = []
    jobs = {
        "from split words": (lambda: ours.index_.top(rows_in, K), lambda: retrieve(tokens)),
        "from raw text": (
            lambda: ours.index_.top(ours.lexical_.queries(queries), K),
            lambda: retrieve(split(queries)),
        ),
    }
    for job, (we, they) in jobs.items():
        seconds = best_seconds({"SparseRank": we, "bm25s": they}, repetitions=1 if quick else 5)
        rows += [
            {
                "name": f"{name} {job}",
                "queries_per_s": round(len(queries) / s),
                "ratio": round(seconds["bm25s"] / s, 2),
            }
            for name, s in seconds.items()
        ]
    return {
        "case": "BM25 search",
        "size": f"20 Newsgroups, {len(texts)} posts, {len(queries)} subject lines, top {K}, {threads} threads",
        "peer": "bm25s, numba backend",
        "rows": rows,
        "peak_mb": peak_megabytes(),
    }


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
