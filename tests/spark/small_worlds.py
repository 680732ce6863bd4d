"""Small problems that learning on a cluster and on one machine must agree on."""

from __future__ import annotations

import numpy as np


def labelled_rows(seed=0, rows=120, columns=30, classes=4):
    """Rows of unit length, each with its class's own column and a few others; the labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, rows)
    X = (rng.random((rows, columns)) < 0.15).astype(np.float64)
    X[np.arange(rows), labels] += 1.0
    return X / np.linalg.norm(X, axis=1)[:, None], labels


def graded_rows(seed=0, rows=400, columns=20, queries=25):
    """Rows with grades 0, 1, 2 that follow a sparse w with noise, by query."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)) * (rng.random((rows, columns)) < 0.3)
    w = rng.normal(size=columns) * (rng.random(columns) < 0.5)
    qid = rng.integers(0, queries, rows)
    return X, np.clip(np.round(X @ w + rng.normal(size=rows)), 0, 2), qid


def judged_texts(seed=0):
    """Queries whose words are the documents' with a letter before them, so that pairs are all there is to learn."""
    rng = np.random.default_rng(seed)
    words = [f"w{i}" for i in range(60)]
    docs = {f"d{i}": " ".join(rng.choice(words, 12)) for i in range(80)}
    queries, qrels = {}, {}
    for i in range(30):
        wanted = str(rng.choice(list(docs)))
        asked = rng.choice(docs[wanted].split(), 4)
        queries[f"q{i}"] = " ".join(f"x{word}" if rng.random() < 0.7 else word for word in asked)
        qrels[f"q{i}"] = {wanted: 1}
    return docs, queries, qrels
