"""DominationRanker: objectives, time against the number of items, liblinear on RCV1, gblinear on LETOR.

1. Before the measurement: the objective at our optimum equals the sum over pairs, the optimum of scipy's L-BFGS on that
   sum, and that of Fig. 1.1 pair by pair, to 1e-6.
2. One query of up to a million items, 50 features with 10 % nonzeros, 1 % relevant: the time of a pass over the weights
   against that of half as many items, and against that of the same pass pair by pair, up to 40,000 items.
3. RCV1, one model per topic: L1 logistic regression of liblinear and ours, on two threads, on all topics with at least
   10 training and 5 test stories.
4. MQ2008 and OHSUMED, five folds: XGBoost's gblinear with rank:pairwise and the number of rounds that is best on
   validation, and ours until convergence, both on two threads.

In 3 and 4 the peers minimize other objectives, so results cannot be equal: each side tries as many penalties, the time
is that of the best one on validation (without the search), and the table has the quality of both on test data.
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
from sparserank.evaluation.items import Items
from sparserank.evaluation.measures import compute
from sparserank.letor.base import measure_by_query
from sparserank.optim.coordinate_descent import CoordinateDescent, Descent
from sparserank.optim.losses import Domination
from sparserank.optim.penalties import L2
from sparserank.optim.problems import LinearProblem
from sparserank.optim.scores import Linear
from sparserank.preferences.queries import Queries

from .measure import best_seconds, peak_megabytes

LARGEST = 1_000_000
LITERAL_UP_TO = 40_000
PASSES = 10
SPLIT_SEED = 0
CHECKED, AGREES = 2_000, 1e-6
"""Items whose objective is checked pair by pair, and the relative difference that counts as equal."""
ALPHAS, COSTS = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0), (2.0, 3.0, 5.0, 10.0, 20.0, 30.0)
LETOR_ALPHAS, GBLINEAR_ALPHAS = (0.3, 1.0, 3.0, 5.0, 10.0, 30.0), (0.0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)


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


def literal_objective(w: Any, X: Any, y: Any, l2: float) -> tuple[float, Any]:
    """sum_i log(1 + sum_j exp(s_j - s_i)) + l2 ‖w‖² over the pairs, one by one, and its gradient; X dense."""
    score, relevant = X @ w, y > 0
    terms = np.exp(score[~relevant][None, :] - score[relevant][:, None])
    total = 1.0 + terms.sum(axis=1)
    share = terms / total[:, None]
    gradient = X[~relevant].T @ share.sum(axis=0) - X[relevant].T @ share.sum(axis=1)
    return float(np.log(total).sum() + l2 * w @ w), gradient + 2.0 * l2 * w


def checked(l2: float = 1.0) -> list[dict[str, Any]]:
    """Our optimum, by three other ways to the same number; one that differs is an error."""
    from scipy.optimize import minimize

    X, y = items(CHECKED)
    found = CoordinateDescent(tol=1e-9, max_iter=10_000).solve(
        LinearProblem(Linear.of(X), Queries.of(y), Domination()), L2(l2)
    )
    dense = X.toarray()
    options = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 10_000}
    least = minimize(literal_objective, np.zeros(50), (dense, y, l2), "L-BFGS-B", jac=True, options=options)
    w, bound = np.zeros(50), y.sum() * (dense**2).max(axis=0)
    for _ in range(300):
        literal_pass(dense, y, w, bound, l2)
    others = {
        "the sum over pairs, at our weights": literal_objective(found.weights, dense, y, l2)[0],
        "L-BFGS on the sum over pairs": float(least.fun),
        "Fig. 1.1 pair by pair, 300 passes": literal_objective(w, dense, y, l2)[0],
    }
    for name, value in others.items():
        if abs(value - found.info["objective"]) > AGREES * abs(value):
            raise RuntimeError(f"the objective is {found.info['objective']!r}; by {name} it is {value!r}")
    return [
        {"name": f"objective, {name}", "ratio": value / found.info["objective"], "objective": round(value, 8)}
        for name, value in others.items()
    ]


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
    descent = Descent(
        LinearProblem(Linear.of(X), Queries.of(y), Domination()), CoordinateDescent(tol=0.0, max_iter=PASSES)
    )

    def passes() -> None:
        descent.w[:] = 0.0
        descent.minimize(L2(1.0))

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


def by_group(part: Any) -> tuple[Any, Any, Any]:
    """Rows in the order of their queries, as XGBoost wants them."""
    import xgboost

    order = np.argsort(part.qid, kind="stable")
    rows = xgboost.DMatrix(part.X[order], part.y[order])
    rows.set_group(np.unique(part.qid, return_counts=True)[1])
    return rows, part.y[order], np.asarray(part.qid)[order]


def letor(name: str, quick: bool) -> list[dict[str, Any]]:
    import xgboost

    always = {"booster": "gblinear", "objective": "rank:pairwise", "nthread": 2, "eval_metric": "ndcg@10", "seed": 0}
    seconds, quality = {"ours": 0.0, "theirs": 0.0}, {"nDCG@10": 0.0, "their_nDCG@10": 0.0}
    folds = data.load(name)[: 1 if quick else 5]
    for fold in folds:
        (train, _, _), (vali, vali_y, vali_qid), (test, y, qid) = map(by_group, (fold.train, fold.vali, fold.test))

        def theirs(alpha: float, rounds: int, rows: Any = train) -> Any:
            return xgboost.train(always | {"alpha": alpha}, rows, rounds)

        def ours(alpha: float, part: Any = fold.train) -> Any:
            return DominationRanker(alpha=alpha, tol=1e-2).fit(part.X, part.y, part.qid)

        def on_vali(model: Any, held: Any = fold.vali) -> float:
            return measure_by_query(held.y, model.predict(held.X), qid=held.qid)

        settings = [(alpha, _rounds(always | {"alpha": alpha}, train, vali)) for alpha in GBLINEAR_ALPHAS]
        values = [measure_by_query(vali_y, theirs(*one).predict(vali), qid=vali_qid) for one in settings]
        their_best, our_best = settings[int(np.argmax(values))], max(LETOR_ALPHAS, key=lambda a: on_vali(ours(a)))
        calls = {"ours": partial(ours, our_best), "theirs": partial(theirs, *their_best)}
        best = best_seconds(calls, 1 if quick else 3)
        seconds = {who: seconds[who] + best[who] for who in seconds}
        quality["nDCG@10"] += measure_by_query(fold.test.y, ours(our_best).predict(fold.test.X), qid=fold.test.qid)
        quality["their_nDCG@10"] += measure_by_query(y, theirs(*their_best).predict(test), qid=qid)
    figures = {key: round(value, 3) for key, value in seconds.items()}
    figures |= {key: round(value / len(folds), 4) for key, value in quality.items()} | {
        "settings_tried": len(LETOR_ALPHAS)
    }
    return [{"name": f"{name}, {len(folds)} folds", "ratio": seconds["theirs"] / seconds["ours"]} | figures]


def _rounds(settings: dict[str, Any], train: Any, vali: Any) -> int:
    """The number of rounds, of 300, with the best NDCG@10 on validation."""
    import xgboost

    history: dict[str, Any] = {}
    xgboost.train(settings, train, 300, evals=[(vali, "v")], evals_result=history, verbose_eval=False)
    return int(np.argmax(history["v"]["ndcg@10"])) + 1


def run(quick: bool = False) -> dict[str, Any]:
    """Doubling, and ratios to the peers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = checked()
        rows += one_query(LARGEST // 16 if quick else LARGEST, 1 if quick else 5)
        rows += rcv1(quick) + letor("mq2008", quick) + letor("ohsumed", quick)
    return {
        "case": "domination",
        "size": "one query of 10⁴ to 10⁶ items; RCV1 by topic; MQ2008 and OHSUMED in five folds",
        "peer": "our own objective by other ways; half the items; the literal sums over pairs; liblinear, gblinear",
        "rows": [row | {"ratio": round(row["ratio"], 2)} for row in rows],
        "peak_mb": peak_megabytes(),
    }
