"""A small world of fruits for tests: every query asks with one word for documents of another one."""

from __future__ import annotations

import numpy as np

from sparserank.data.records import Collection, Documents

WORDS = ["apple", "pear", "plum", "red", "green", "blue", "sweet", "sour", "tree", "fruit"]


def fruits() -> Collection:
    """Sixty documents, forty queries, and one split, `train`."""
    rng = np.random.default_rng(2)
    docs = {f"d{i}": {"title": WORDS[i % 10], "text": " ".join(rng.choice(WORDS, 6))} for i in range(60)}
    queries = {f"q{i}": f"{WORDS[i % 10]} word{i % 10}" for i in range(40)}
    qrels = {f"q{i}": {f"d{d}": 1.0 for d in range(60) if d % 10 == (i + 1) % 10} for i in range(40)}
    return Collection("fruit", Documents.of(docs), queries, {"train": qrels})
