"""DominationRanker: time against the number of items, against L1 logistic regression on RCV1 and gblinear on LETOR.

1. One query of up to a million items, 50 features of which a tenth is there, 1 % relevant: what happens to a pass over
   the weights when the items double, and what the same pass costs pair by pair, where that still ends.
2. RCV1, one model a topic: scikit-learn's L1 logistic regression (liblinear, C = 10) and ours with the alpha of 0.1,
   0.3, 1 and 3 that ranks best on validation, both on two threads, on all topics with at least 10 stories to learn from
   and 5 to test on.
3. MQ2008 and OHSUMED, the five folds: XGBoost's gblinear with rank:pairwise for as many rounds as give its best
   NDCG@10 on validation (finding that number is not timed), and ours until it comes to rest, both on two threads.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from numba import njit

from sparserank import DominationRanker, data
from sparserank.losses import Domination
from sparserank.measures import Items, measured
from sparserank.penalties import L2
from sparserank.preferences.queries import Queries
from sparserank.rankers.by_query import measure_by_query
from sparserank.scores import Linear
from sparserank.solvers.coordinate_descent import CoordinateDescent

from .measure import best_seconds, peak_megabytes

LARGEST = 1_000_000
LITERAL_UP_TO = 40_000
PASSES = 10
SPLIT_SEED = 0


@njit(cache=True)
def literal_pass(X, y, w, bound, l2):
    """One pass of Fig. 1.1 with every gradient summed pair by pair, X dense."""
    score = X @ w
    for r in range(X.shape[1]):
        g = 0.0
        for i in range(len(y)):
            if y[i] > 0:
                z, m = 1.0, 0.0
                for j in range(len(y)):
                    if y[j] < y[i]:
                        e = np.exp(score[j] - score[i])
                        z += e
                        m += e * (X[j, r] - X[i, r])
                g += m / z
        step = -(g + 2.0 * l2 * w[r]) / (bound[r] + 2.0 * l2)
        w[r] += step
        score += step * X[:, r]


def items(n: int, features: int = 50, density: float = 0.1, relevant: float = 0.01) -> tuple[Any, Any]:
    from scipy.sparse import random_array

    rng = np.random.default_rng(0)
    X = random_array((n, features), density=density, rng=rng, format="csc")
    score = X @ rng.normal(size=features) + rng.normal(size=n)
    return X, (score > np.quantile(score, 1.0 - relevant)).astype(np.float64)


def one_query(largest: int, repetitions: int) -> list[dict[str, Any]]:
    """Seconds of a pass over all weights, for items that double; sizes take turns: a slow moment hits them all."""
    sizes = [largest >> k for k in range(6, -1, -1)]
    worlds = {n: items(n) for n in sizes}
    calls = {str(n): _passes(*worlds[n]) for n in sizes}
    seconds = {n: best / PASSES for n, best in zip(sizes, best_seconds(calls, 3 * repetitions).values(), strict=True)}
    rows: list[dict[str, Any]] = []
    for n in sizes:
        if n // 2 in seconds:
            row = {"name": f"{n:,} items against {n // 2:,}", "ratio": seconds[n] / seconds[n // 2]}
            rows.append(row | {"ms_a_pass": round(1e3 * seconds[n], 2)})
        if n <= LITERAL_UP_TO:
            X, y = worlds[n]
            dense, bound = X.toarray(), y.sum() * X.max(axis=0).toarray().ravel() ** 2
            call = partial(literal_pass, dense, y, np.zeros(50), bound, 1.0)
            literal = best_seconds({"literal": call}, 1)["literal"]
            rows.append(
                {"name": f"pair by pair, {n:,} items", "ratio": literal / seconds[n], "seconds": round(literal, 3)}
            )
    return rows


def _passes(X: Any, y: Any) -> Callable[[], None]:
    descent = CoordinateDescent(tol=0.0, max_iter=PASSES).descent(Linear.of(X), Queries.of(y), Domination())

    def passes() -> None:
        descent.w[:] = 0.0
        descent.to(L2(1.0))

    return passes


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
    rows = Items.of_rows(scores.T.ravel(), grades.T.ravel(), np.repeat(np.arange(topics), n))
    return float(measured(rows, "AP")[0].mean)


def rcv1(quick: bool) -> list[dict[str, Any]]:
    from joblib import Parallel, delayed
    from sklearn.linear_model import LogisticRegression

    X, Y, (train, _, test) = rcv1_split()
    if quick:
        Y = Y[:, :4]
    grades = Y[train].toarray()
    wide = X[train].astype(np.float64)  # what liblinear would make of it anyway

    def logistic(topic: int) -> Any:
        return LogisticRegression(l1_ratio=1.0, solver="liblinear", C=10.0).fit(wide, grades[:, topic]).coef_[0]

    def theirs() -> Any:
        return np.stack(Parallel(n_jobs=2, prefer="threads")(delayed(logistic)(t) for t in range(Y.shape[1])))

    def ours() -> Any:
        return DominationRanker(alpha=0.3, tol=1e-3, n_jobs=2).fit(X[train], Y[train])

    DominationRanker(max_iter=5, tol=1.0).fit(X[train], Y[train][:, :2])
    started = perf_counter()
    ranker = ours()
    middle = perf_counter()
    coef = theirs()
    ended = perf_counter()
    found = {
        "seconds": round(middle - started, 2),
        "theirs": round(ended - middle, 2),
        "AP": round(mean_precision(Y[test], ranker.predict(X[test])), 4),
        "their_AP": round(mean_precision(Y[test], X[test] @ coef.T), 4),
        "zeros": round(100.0 - 100.0 * ranker.coef_.nnz / float(np.prod(ranker.coef_.shape)), 2),
    }
    return [{"name": f"RCV1, {Y.shape[1]} topics", "ratio": (ended - middle) / (middle - started)} | found]


def by_group(part: Any) -> tuple[Any, Any, Any]:
    """Rows in the order of their queries, as XGBoost wants them."""
    import xgboost

    order = np.argsort(part.qid, kind="stable")
    rows = xgboost.DMatrix(part.X[order], part.y[order])
    rows.set_group(np.unique(part.qid, return_counts=True)[1])
    return rows, part.y[order], np.asarray(part.qid)[order]


def letor(name: str, quick: bool) -> list[dict[str, Any]]:
    import xgboost

    settings = {"booster": "gblinear", "objective": "rank:pairwise", "nthread": 2, "eval_metric": "ndcg@10", "seed": 0}
    seconds, quality = {"ours": 0.0, "theirs": 0.0}, {"nDCG@10": 0.0, "their_nDCG@10": 0.0}
    folds = data.load(name)[: 1 if quick else 5]
    for fold in folds:
        (train, _, _), (vali, _, _), (test, y, qid) = (by_group(part) for part in (fold.train, fold.vali, fold.test))
        history: dict[str, Any] = {}
        xgboost.train(settings, train, 300, evals=[(vali, "v")], evals_result=history, verbose_eval=False)
        rounds = int(np.argmax(history["v"]["ndcg@10"])) + 1
        models: dict[str, Any] = {}

        def theirs(rounds: int = rounds, train: Any = train, models: dict[str, Any] = models) -> None:
            models["theirs"] = xgboost.train(settings, train, rounds)

        def ours(part: Any = fold.train, models: dict[str, Any] = models) -> None:
            models["ours"] = DominationRanker(alpha=3.0, tol=1e-2).fit(part.X, part.y, part.qid)

        best = best_seconds({"ours": ours, "theirs": theirs}, 1 if quick else 3)
        seconds = {who: seconds[who] + best[who] for who in seconds}
        scores = models["ours"].predict(fold.test.X)
        quality["nDCG@10"] += measure_by_query(fold.test.y, scores, qid=fold.test.qid) / len(folds)
        quality["their_nDCG@10"] += measure_by_query(y, models["theirs"].predict(test), qid=qid) / len(folds)
    told = {key: round(value, 3 if key in seconds else 4) for key, value in (seconds | quality).items()}
    return [{"name": f"{name}, {len(folds)} folds", "ratio": seconds["theirs"] / seconds["ours"]} | told]


def run(quick: bool = False) -> dict[str, Any]:
    """Doubling, and ratios to the peers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = one_query(LARGEST // 16 if quick else LARGEST, 1 if quick else 5)
        rows += rcv1(quick) + letor("mq2008", quick) + letor("ohsumed", quick)
    return {
        "case": "domination",
        "size": "one query of 10⁴ to 10⁶ items; RCV1 by topic; MQ2008 and OHSUMED in five folds",
        "peer": "the items doubled (1.8–2.3 wanted), the literal sums over pairs; liblinear, gblinear (1x wanted)",
        "rows": [row | {"ratio": round(row["ratio"], 2)} for row in rows],
        "peak_mb": peak_megabytes(),
    }
