"""prune_features against the normal equations, its bounds, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, random_array

from sparserank import prune_features
from sparserank.errors import ConfigError, DataError


def world(seed=0, n=80, d=30):
    rng = np.random.default_rng(seed)
    return random_array((n, d), density=0.3, rng=rng, format="csr"), rng.normal(size=d)


def test_the_weights_that_stay_are_the_ridge_regression_of_the_scores():
    X, w = world()
    found = prune_features(X, w, 10, ridge=0.5)
    kept = np.flatnonzero(found)
    assert len(kept) == 10
    A, rows = X.toarray()[:, kept], X.toarray()
    held = 0.5 * (rows**2).sum(axis=1).mean()
    assert_allclose(found[kept], np.linalg.solve(A.T @ A + held * np.eye(10), A.T @ (rows @ w)), rtol=1e-3)


def test_scores_are_nearer_than_those_of_the_largest_weights():
    X, w = world()
    cut = np.where(np.abs(w) >= np.sort(np.abs(w))[-10], w, 0.0)
    found = prune_features(X, w, 10, ridge=0.01)
    assert np.linalg.norm(X @ (found - w)) < 0.9 * np.linalg.norm(X @ (cut - w))


def test_a_feature_said_twice_is_kept_once():
    X = np.random.default_rng(0).random((50, 3))
    doubled, full = np.hstack([X, X[:, :1]]), [1.0, 1.0, 0.0, 0.2]
    found = prune_features(doubled, full, 2, ridge=1e-9)
    assert_allclose(found, [1.2, 1.0, 0.0, 0.0], atol=1e-2)


@given(st.integers(0, 50), st.integers(1, 40), st.sampled_from([1e-20, 1.0, 1e20]))
def test_no_more_than_wanted_and_only_where_there_was_a_weight(seed, most, scale):
    X, w = world(seed, n=20, d=12)
    w[::3] = 0.0
    found = prune_features(X * scale, w, most)
    assert np.count_nonzero(found) <= most
    assert not found[::3].any()
    assert_allclose(found, prune_features(X, w, most), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_rows_are_cut_each_by_itself_whatever_the_threads(n_jobs):
    X, w = world()
    both = prune_features(X, csr_array(np.stack([w, -2 * w])), 7, n_jobs=n_jobs)
    assert both.format == "csr"
    assert_array_equal(both.toarray()[0], prune_features(X, w, 7))
    assert_allclose(both.toarray()[1], -2 * both.toarray()[0])


def test_a_model_without_weights_stays_without():
    X, w = world()
    assert not prune_features(X, 0 * w, 3).any()


def test_what_does_not_fit_raises():
    X, w = world()
    with pytest.raises(DataError, match="X has 30 features, coef has 29"):
        prune_features(X, w[1:], 3)
    with pytest.raises(DataError, match="finite"):
        prune_features(X, w * np.nan, 3)
    with pytest.raises(ConfigError, match="max_features"):
        prune_features(X, w, 0)
    with pytest.raises(ConfigError, match="ridge"):
        prune_features(X, w, 3, ridge=-1)
