"""RankSVM against scipy on the literal objective, and against itself."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linprog, minimize
from sklearn.exceptions import ConvergenceWarning

from sparserank.errors import ConfigError
from sparserank.letor.ranksvm import RankSVM

from .. import oracles


def world(seed=0, n=24, features=4):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, features))
    y = np.round(X[:, 0] + random.normal(size=n), 0)
    return X, y, random.integers(3, size=n), random.integers(1, 4, size=n).astype(float)


def literal(X, y, qid, weight, C, squared, penalty):
    def objective(w):
        size = 0.5 * w @ w if penalty == "l2" else np.abs(w).sum()
        return size + C * oracles.pair_hinge(X @ w, y, qid, weight, squared)

    return objective


@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_squared_hinge_reaches_scipys_optimum(C, seed):
    X, y, qid, weight = world(seed)
    objective = literal(X, y, qid, weight, C, True, "l2")
    ranker = RankSVM(C=C, tol=1e-8).fit(X, y, qid, sample_weight=weight)
    best = minimize(objective, np.zeros(4), method="BFGS", options={"gtol": 1e-9})
    assert objective(ranker.coef_) <= best.fun * (1 + 1e-6)
    assert_allclose(ranker.objective_, objective(ranker.coef_), rtol=1e-9)
    assert ranker.converged_
    assert ranker.violation_ <= 1e-8


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_the_plain_hinge_reaches_its_optimum(C):
    X, y, qid, weight = world()
    objective = literal(X, y, qid, weight, C, False, "l2")
    ranker = RankSVM(C=C, loss="hinge", tol=1e-7, max_iter=5000).fit(X, y, qid, sample_weight=weight)
    rows = [X[i] - X[j] for i, j in oracles.pairs(y, qid)]
    slack = np.array([weight[i] for i, _ in oracles.pairs(y, qid)])
    # the dual, a bounded quadratic problem: max Σ a - ½ ‖Σ a Δ‖², 0 ≤ a ≤ C w
    gram = np.array(rows) @ np.array(rows).T
    dual = minimize(
        lambda a: 0.5 * a @ gram @ a - a.sum(), np.zeros(len(rows)), jac=lambda a: gram @ a - 1,
        bounds=[(0, C * s) for s in slack], method="L-BFGS-B", options={"ftol": 1e-14, "maxiter": 10_000},
    )  # fmt: skip
    assert_allclose(objective(ranker.coef_), -dual.fun, rtol=1e-5)


@pytest.mark.parametrize("C", [0.02, 1.0])
def test_l1_reaches_scipys_optimum_and_leaves_zeros(C):
    X, y, qid, weight = world()
    objective = literal(X, y, qid, weight, C, True, "l1")
    ranker = RankSVM(C=C, penalty="l1", tol=1e-7, max_iter=5000).fit(X, y, qid, sample_weight=weight)

    def split(both):  # w = u - v with u, v ≥ 0 makes |w| smooth
        return both.sum() + C * oracles.pair_hinge(X @ (both[:4] - both[4:]), y, qid, weight, True)

    best = minimize(split, np.full(8, 0.1), bounds=[(0, None)] * 8, method="L-BFGS-B", options={"ftol": 1e-15})
    assert objective(ranker.coef_) <= best.fun * (1 + 1e-5)
    if C < 0.1:
        assert (ranker.coef_ == 0).any()


def test_l1_with_a_tiny_c_is_all_zeros():
    X, y, qid, _ = world()
    ranker = RankSVM(C=1e-6, penalty="l1").fit(X, y, qid)
    assert not ranker.coef_.any()
    assert ranker.converged_


def test_separable_pairs_are_separated_by_a_large_c():
    X, _, qid, _ = world()
    w = np.array([1.0, -2.0, 0.5, 0.0])
    y = np.round(X @ w)
    ranker = RankSVM(C=1e4).fit(X, y, qid)
    feasible = linprog(
        np.zeros(4),
        A_ub=[X[j] - X[i] for i, j in oracles.pairs(y, qid)],
        b_ub=-np.ones(len(oracles.pairs(y, qid))),
        bounds=(None, None),
    )
    assert feasible.success
    assert all(ranker.predict(X)[i] > ranker.predict(X)[j] for i, j in oracles.pairs(y, qid))


@pytest.mark.parametrize(("penalty", "loss"), [("l2", "hinge"), ("l1", "squared_hinge"), ("l2", "squared_hinge")])
def test_reaching_max_iter_warns_and_is_told(penalty, loss):
    X, y, qid, _ = world()
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        ranker = RankSVM(C=10, penalty=penalty, loss=loss, tol=1e-12, max_iter=1).fit(X, y, qid)
    assert not ranker.converged_
    assert ranker.n_iter_ == 1


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"C": 0}, "'C' parameter"),
        ({"penalty": "l3"}, "'penalty' parameter"),
        ({"loss": "log"}, "'loss' parameter"),
        ({"penalty": "l1", "loss": "hinge"}, "use loss='squared_hinge'"),
        ({"tol": -1}, "'tol' parameter"),
        ({"max_iter": 0}, "'max_iter' parameter"),
    ],
)
def test_settings_out_of_range_are_rejected_by_name(settings, match):
    with pytest.raises(ConfigError, match=match):
        RankSVM(**settings).fit([[1.0], [2.0]], [0, 1])
