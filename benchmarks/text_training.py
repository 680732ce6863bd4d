"""Training of word pairs on real collections: seconds, peak memory and nDCG@10 on dev queries, compared with BM25.

Every row runs in its own process; `cpu_s` is the processor time of training. Hyperparameters are tuned on training
queries alone: `held_out` is nDCG@10 of the held-out groups of near-duplicate queries that tune them; `refitted` says
whether pairs were refitted by the squared loss. Japanese and Chinese have no spaces between words, so this script
splits mdn-ja and mdn-zh into pairs of neighbouring characters. Where queries are pages that link to each other,
`reverse_share` is the share of dev judgments whose reverse is in training, and the columns that end in `without` are
the figures without these judgments.
"""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from time import perf_counter, process_time
from typing import Any

from .measure import in_new_process, peak_megabytes, reverses_of, without_reverses

ROWS = (
    ("winapi", 1_000_000), ("winapi", 300_000), ("nfcorpus", 1_000_000), ("pydocs", 300_000), ("mdn-de", 300_000),
    ("mdn-ja", 300_000), ("mdn-zh", 300_000),
)  # fmt: skip


def train(name: str, pairs: int) -> dict[str, Any]:
    """Train on a collection and measure dev queries."""
    import sparserank as sr

    collection = sr.data.load(name)
    documents, queries = collection.documents, collection.queries
    if name in ("mdn-ja", "mdn-zh"):
        titles, texts = (tuple(map(_character_pairs, part)) for part in (documents.titles, documents.texts))
        documents = type(documents)(documents.ids, titles, texts)
        queries = {query: _character_pairs(text) for query, text in queries.items()}
    exclude_self = queries_are_pages(collection)
    dev, training = collection.qrels["dev"], collection.qrels["train"]
    ranker = sr.TextRanker(max_pairs=pairs)
    started, worked = perf_counter(), process_time()
    ranker.fit(documents, queries, training, exclude_self=exclude_self)
    seconds, work, peak = perf_counter() - started, process_time() - worked, peak_megabytes()
    texts_of_dev = {query: queries[query] for query in dev}

    rankers = {"bm25": sr.TextRanker("bm25").fit(documents), "learned": ranker}
    runs = {key: one.run(texts_of_dev, k=100, exclude_self=exclude_self) for key, one in rankers.items()}
    bm25, learned = (sr.evaluation.evaluate_run(run, dev, "nDCG@10")["nDCG@10"].value for run in runs.values())
    return {
        "name": f"{name}, {pairs:,} pairs", "ratio": round(learned / bm25, 2), "documents": len(documents.ids),
        "queries": len(training), "bm25": round(bm25, 4), "learned": round(learned, 4), "train_s": round(seconds, 1),
        "cpu_s": round(work, 1), "peak_mb": peak, "held_out_bm25": round(ranker.model_.info["held_out_lexical"], 4),
        "held_out_learned": round(ranker.model_.info["held_out_learned"], 4),
        "refitted": str(ranker.model_.info["refitted"]),
    } | without_reverses(reverses_of(collection, dev), dev, runs)  # fmt: skip


def queries_are_pages(collection: Any) -> bool:
    """Whether a query's id is the id of the page it was made from, which its ranking must leave out."""
    pages = set(collection.documents.ids)
    return bool(collection.exclude_self) or any(query in pages for query in collection.qrels["train"])


def _character_pairs(text: str) -> str:
    return " ".join(a + b for a, b in pairwise(text) if not (a + b).isspace())


def run(quick: bool = False) -> dict[str, Any]:
    """One row for each collection and number of pairs."""
    rows = []
    for name, pairs in ROWS[3:4] if quick else ROWS:
        rows.append(in_new_process("text_training", "train", name, pairs))
        print(rows[-1], file=sys.stderr, flush=True)
    return {
        "case": "text training",
        "size": "real collections; learned and BM25 are nDCG@10 of dev queries",
        "peer": "BM25 (the ratio is that of nDCG@10)",
        "rows": rows,
        "peak_mb": max(row["peak_mb"] for row in rows),
    }


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
