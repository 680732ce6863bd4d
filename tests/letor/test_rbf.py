"""Regression on Gaussian basis functions, against numpy's own least squares on the literal basis."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

import sparserank as sr
from sparserank.data.formats.tensors import read_tensors, write_tensors
from sparserank.errors import ConfigError
from sparserank.letor.rbf import RBFRegressionRanker
from sparserank.optim import rbf

from .. import oracles


def world(n=60):
    random = np.random.default_rng(0)
    X = random.random((n, 4)) * (random.random((n, 4)) < 0.7)
    X[:, 2] = 3.0
    y = np.round(np.sin(4 * X[:, 0]) + X[:, 1], 1)
    return X, y


@pytest.mark.parametrize("width", [1.0, 7.0])
@pytest.mark.parametrize("alpha", [0.0, 0.03, 10.0])
@pytest.mark.parametrize("block", [11, 4096])
@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_the_closed_form_is_the_report_s(width, alpha, block, kind, monkeypatch):
    monkeypatch.setattr(rbf, "BLOCK", block)
    X, y = world()
    weight = np.arange(len(y)) % 3 + 0.5
    ranker = RBFRegressionRanker(9, width, alpha, random_state=0).fit(kind(X), y, sample_weight=weight)
    assert ranker.basis_.columns.tolist() == [0, 1, 3], "a constant feature is left out"
    mean = np.average(X, axis=0, weights=weight)
    variances = width * np.average((X - mean) ** 2, axis=0, weights=weight)[[0, 1, 3]]
    phi = oracles.gaussian_basis(X[:, [0, 1, 3]], ranker.basis_.centres, variances)
    assert phi.shape == (60, 9)
    root = np.sqrt(weight)[:, None]
    stacked = np.vstack([root * phi, np.sqrt(alpha) * np.eye(9)])
    wanted = np.linalg.lstsq(stacked, np.append(root[:, 0] * y, np.zeros(9)))[0]
    assert_allclose(phi @ ranker.coef_, phi @ wanted, atol=1e-6)
    assert_allclose(ranker.predict(kind(X)), phi @ wanted, atol=1e-6)
    assert_allclose(ranker.rmse(X, y), np.sqrt(np.mean((phi @ wanted - y) ** 2)), rtol=1e-5)


@pytest.mark.parametrize("shift", [1e7, -1e7])
@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_large_offsets_of_features_do_not_cancel(shift, kind, tmp_path):
    X, y = world()
    X = np.round(X * 256) / 256  # the same numbers after the shift, to the last bit
    moved = X + np.array([shift, 0.0, 0.0, 3 * shift])
    plain = RBFRegressionRanker(9, 2.0, random_state=0).fit(kind(X), y)
    ranker = RBFRegressionRanker(9, 2.0, random_state=0).fit(kind(moved), y)
    basis = ranker.basis_
    (phi,) = (block for _, block in basis.blocks(kind(moved)))
    wanted = oracles.gaussian_basis(moved[:, basis.columns], basis.centres, basis.spread**2)
    assert_allclose(phi, wanted, atol=1e-9)
    assert_allclose(basis.spread, plain.basis_.spread, rtol=1e-8)
    ranker.save(tmp_path / "m.safetensors")
    again = sr.load(tmp_path / "m.safetensors")
    assert_allclose(again.predict(kind(moved)), ranker.predict(kind(moved)), rtol=0, atol=0)


def test_a_model_file_without_a_middle_is_read_as_one_that_was_not_centred(tmp_path):
    X, y = world()
    ranker = RBFRegressionRanker(9, 2.0, random_state=0).fit(X, y)
    ranker.save(tmp_path / "m.safetensors")
    file = read_tensors(tmp_path / "m.safetensors")
    arrays = {name: array for name, array in file.arrays.items() if name != "middle_and_centres"}
    arrays["centres"] = ranker.basis_.centres.ravel()
    write_tensors(tmp_path / "old.safetensors", file.kind, dict(file.settings), arrays)
    assert_allclose(sr.load(tmp_path / "old.safetensors").predict(X), ranker.predict(X))


def test_sgd_starts_at_zeros_or_at_random_weights_drawn_by_the_seed(tmp_path):
    X, y = world()
    starts = {}
    for init in ("zeros", "random"):
        settings = {"solver": "sgd", "rate": 1e-12, "max_iter": 1, "random_state": 4, "init": init}
        ranker = RBFRegressionRanker(6, 2.0, 0.0, **settings).fit(X, y)
        starts[init] = ranker.coef_
        ranker.save(tmp_path / init)
        assert sr.load(tmp_path / init).get_params() == ranker.get_params()
    assert_allclose(starts["zeros"], 0.0, atol=1e-11)
    assert_allclose(starts["random"], np.random.default_rng([4, 2]).standard_normal(6), atol=1e-10)


@pytest.mark.parametrize("rate", [0.05, "decay"])
def test_sgd_is_the_report_s_in_one_piece_or_several(rate):
    X, y = world()
    ranker = RBFRegressionRanker(6, 2.0, 0.5, solver="sgd", rate=rate, max_iter=200, random_state=4).fit(X, y)
    basis = ranker.basis_
    drawn = np.random.default_rng([4, 1]).integers(len(X), size=200)
    phi = oracles.gaussian_basis(X[drawn][:, basis.columns], basis.centres, basis.spread**2)
    eta = (lambda i: 0.1 / np.sqrt(5 * i)) if rate == "decay" else (lambda i: rate)
    assert_allclose(ranker.coef_, oracles.squared_descent(phi, y[drawn], 0.5, eta), atol=1e-9)
    pieces = rbf.Descent(rbf.BasisProblem(basis, X, y, np.ones(len(y))), 0.5, rate, 4)
    pieces.advance(120)
    pieces.advance(80)
    assert pieces.steps == 200
    assert_allclose(pieces.w, ranker.coef_)


def test_sgd_that_runs_off_is_an_error_that_names_the_rate():
    X, y = world()
    with pytest.raises(ConfigError, match=r"SGD diverged at step \d+: lower the rate \(now 50"):
        RBFRegressionRanker(6, solver="sgd", rate=50.0, max_iter=5000, random_state=0).fit(X, y)


def test_more_functions_than_rows_are_as_many_as_there_are_different_rows():
    ranker = RBFRegressionRanker(100, random_state=0).fit([[1.0], [1.0], [2.0], [3.0]], [0, 0, 1, 2])
    assert len(ranker.coef_) == 4


def test_one_function_is_the_mean():
    assert_allclose(RBFRegressionRanker(1, alpha=0.0).fit([[1.0], [2.0]], [0, 3]).predict([[9.0]]), 1.5)


def test_a_width_of_none_is_the_number_of_features_that_vary():
    X, y = world()
    one = RBFRegressionRanker(9, width=3.0, random_state=0).fit(X, y).predict(X)
    assert_allclose(RBFRegressionRanker(9, random_state=0).fit(X, y).predict(X), one)


def test_k_means_sees_a_sample_of_many_rows_and_sparse_rows_where_full_ones_would_be_large(monkeypatch):
    X, y = world()
    monkeypatch.setattr(rbf, "MAX_CLUSTERED_ROWS", 20)
    assert RBFRegressionRanker(9, random_state=0).fit(X, y).rmse_ < y.std()
    monkeypatch.setattr(rbf, "MAX_DENSE_NUMBERS", 10)
    assert RBFRegressionRanker(9, random_state=0).fit(csr_array(X), y).rmse_ < y.std()


def test_qid_changes_nothing():
    X, y = world()
    one, two = (RBFRegressionRanker(9, random_state=0).fit(X, y, qid).predict(X) for qid in (None, np.arange(60)))
    assert one.tolist() == two.tolist()


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"n_basis": 0}, "'n_basis'"),
        ({"width": 0}, "'width'"),
        ({"alpha": -1}, "'alpha'"),
        ({"solver": "qr"}, "'solver'"),
        ({"rate": "fast"}, "'rate'"),
        ({"max_iter": 0}, "'max_iter'"),
        ({"init": "ones"}, "'init'"),
    ],
)
def test_settings_out_of_range_are_rejected_by_name(settings, match):
    with pytest.raises(ConfigError, match=match):
        RBFRegressionRanker(**settings).fit([[1.0], [2.0]], [0, 1])
