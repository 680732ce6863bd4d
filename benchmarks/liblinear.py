"""DominationRanker against liblinear on RCV1, one model per topic, on two threads.

The topics have at least 10 training and 5 test stories. L1 logistic regression of liblinear minimizes another
objective, so results cannot be equal: each side tries as many penalties, the time is that of the best one on validation
(without the search), and the table has average precision on test data and the share of zero weights of both.
"""

from __future__ import annotations

import warnings
from time import perf_counter
from typing import Any

import numpy as np

from sparserank import DominationRanker, data
from sparserank.evaluation.items import Items
from sparserank.evaluation.measures import compute

from .measure import peak_megabytes

SPLIT_SEED = 0
ALPHAS, COSTS = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0), (2.0, 3.0, 5.0, 10.0, 20.0, 30.0)


def rcv1_split() -> tuple[Any, Any, list[Any]]:
    """Stories, topics that have enough of them, and the rows to learn from, to choose on and to test on."""
    stories = data.load("rcv1")
    n = stories.X.shape[0]
    parts = [np.sort(p) for p in np.split(np.random.default_rng(SPLIT_SEED).permutation(n), [n // 2, n // 2 + n // 4])]
    Y = stories.Y.tocsr()
    enough = (Y[parts[0]].sum(axis=0) >= 10) & (Y[parts[2]].sum(axis=0) >= 5)
    return stories.X.tocsr(), Y[:, np.flatnonzero(enough)], parts


def mean_precision(Y: Any, scores: Any) -> float:
    grades = Y.toarray()
    n, topics = grades.shape
    rows = Items.from_rows(scores.T.ravel(), grades.T.ravel(), np.repeat(np.arange(topics), n))
    return float(compute(rows, "AP")[0].mean)


def rcv1(quick: bool) -> list[dict[str, Any]]:
    from joblib import Parallel, delayed
    from sklearn.linear_model import LogisticRegression

    X, Y, (train, vali, test) = rcv1_split()
    if quick:
        Y = Y[:, :4]
    grades = Y[train].toarray()
    wide = X[train].astype(np.float64)  # what liblinear would make of it anyway

    def logistic(topic: int, C: float) -> Any:
        return LogisticRegression(l1_ratio=1.0, solver="liblinear", C=C).fit(wide, grades[:, topic]).coef_[0]

    def theirs(C: float) -> Any:
        return np.stack(Parallel(n_jobs=2, prefer="threads")(delayed(logistic)(t, C) for t in range(Y.shape[1])))

    def ours(alpha: float) -> Any:
        return DominationRanker(alpha=alpha, tol=1e-3, n_jobs=2).fit(X[train], Y[train]).coef_.toarray()

    def on(rows: Any, coef: Any) -> float:
        return mean_precision(Y[rows], X[rows] @ coef.T)

    DominationRanker(max_iter=5, tol=1.0).fit(X[train], Y[train][:, :2])  # compiles
    timed = {}
    for name, fit, tried in (("ours", ours, ALPHAS), ("theirs", theirs, COSTS)):
        known: dict[float, Any] = {}
        for value in tried[2:4] if quick else tried:
            started = perf_counter()
            coef = fit(value)
            known[value] = coef, perf_counter() - started
        best = max(known, key=lambda value: on(vali, known[value][0]))
        timed[name] = best, *known[best]
    (alpha, coef, seconds), (C, their_coef, their_seconds) = timed["ours"], timed["theirs"]
    found = {
        "seconds": round(seconds, 2),
        "theirs": round(their_seconds, 2),
        "AP": round(on(test, coef), 4),
        "their_AP": round(on(test, their_coef), 4),
        "zeros": round(100.0 * float(np.mean(coef == 0.0)), 2),
        "their_zeros": round(100.0 * float(np.mean(their_coef == 0.0)), 2),
        "alpha": alpha,
        "their_C": C,
        "settings_tried": len(known),
    }
    return [{"name": f"RCV1, {Y.shape[1]} topics", "ratio": their_seconds / seconds} | found]


def run(quick: bool = False) -> dict[str, Any]:
    """Seconds and quality of both."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = rcv1(quick)
    return {
        "case": "domination, one model per topic",
        "size": "RCV1 by topic, 2 threads",
        "peer": "LogisticRegression of scikit-learn with L1, by liblinear",
        "rows": [row | {"ratio": round(row["ratio"], 2)} for row in rows],
        "peak_mb": peak_megabytes(),
    }
