"""DominationRanker: its objective, and its time against the number of items.

Before the measurement: the objective at our optimum equals the sum over pairs, the optimum of scipy's L-BFGS on that
sum, and that of Fig. 1.1 pair by pair, to 1e-6. Then one query of up to a million items, 50 features with 10 %
nonzeros, 1 % relevant: the time of a pass over the weights against that of half as many items, and against that of the
same pass pair by pair, up to 40,000 items. `liblinear` and `gblinear` compare with other packages.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numba import njit

from sparserank.optim.coordinate_descent import CoordinateDescent, Descent
from sparserank.optim.losses import Domination
from sparserank.optim.penalties import L2
from sparserank.optim.problems import LinearProblem
from sparserank.optim.scores import Linear
from sparserank.preferences.queries import Queries

from .measure import best_seconds, peak_megabytes

MAX_ITEMS = 1_000_000
MAX_LITERAL_ITEMS = 40_000
PASSES = 10
CHECKED_ITEMS, TOLERANCE = 2_000, 1e-6
"""Items whose objective is checked pair by pair, and the relative difference that counts as equal."""


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

    X, y = items(CHECKED_ITEMS)
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
        if abs(value - found.info["objective"]) > TOLERANCE * abs(value):
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
        if n <= MAX_LITERAL_ITEMS:
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


def run(quick: bool = False) -> dict[str, Any]:
    """Objectives, and the time of a pass."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = checked()
        rows += one_query(MAX_ITEMS // 16 if quick else MAX_ITEMS, 1 if quick else 5)
    return {
        "case": "domination",
        "size": "one query of 10⁴ to 10⁶ items",
        "peer": "our own objective by other ways; half the items; the literal sums over pairs",
        "rows": [row | {"ratio": round(row["ratio"], 2)} for row in rows],
        "peak_mb": peak_megabytes(),
    }
