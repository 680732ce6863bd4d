"""A saved W is the same W, and a damaged file is refused by name."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.sparse import csr_array

import sparserank as sr
from sparserank import Preferences
from sparserank.bilinear.ranker import BilinearRanker
from sparserank.data.formats.tensors import read_tensors, write_tensors
from sparserank.errors import ModelError, NotFitted
from sparserank.optim.penalties import GroupL1

from .test_ranker import PREFS, SETTINGS, X

WORDS = [f"w{i}" for i in range(60)]


@pytest.fixture
def saved(tmp_path):
    ranker = BilinearRanker(**SETTINGS | {"max_iter": 400}).fit(X, X, PREFS, query_words=WORDS, document_words=WORDS)
    ranker.save(tmp_path / "w")
    return ranker, tmp_path / "w"


def test_what_was_saved_comes_back(saved):
    ranker, path = saved
    again = sr.load(path)
    assert (again.W_ != ranker.W_).nnz == 0
    assert again.related("w3") == ranker.related("w3")
    assert again.solution_.history == ranker.solution_.history
    assert (again.n_iter_, again.seed_, again.alpha_) == (400, 3, ranker.alpha_)
    assert again.get_params()["eta0"] == ranker.eta0


def test_learning_goes_on_after_loading(saved):
    ranker, path = saved
    again = sr.load(path)
    ranker.partial_fit(X, X, PREFS)
    again.partial_fit(X, X, PREFS)
    assert again.n_iter_ == ranker.n_iter_ == 800
    assert np.abs(again.W_.toarray() - ranker.W_.toarray()).max() <= 1e-5 * np.abs(ranker.W_.toarray()).max()


def test_penalties_and_centres_of_ones_own_are_kept(tmp_path):
    prior = csr_array(np.eye(60, dtype=np.float32) * 0.5)
    groups = ["a", "b"] * 30
    ranker = BilinearRanker(**SETTINGS | {"max_iter": 100}, penalty=GroupL1(0.01, groups=groups), prior=prior)
    ranker.fit(X, X, PREFS).save(tmp_path / "w")
    again = sr.load(tmp_path / "w")
    assert np.array_equal(again.penalty._group_of(60), ranker.penalty._group_of(60))
    assert (again.prior != prior).nnz == 0
    assert again.query_words_ is None


@pytest.mark.parametrize(
    ("arrays", "settings", "says"),
    [
        ({"W.indices": np.array([0, 99], np.int32)}, {}, "must have"),
        ({"W.data": np.array([np.nan], np.float32)}, {}, "not finite"),
        ({"W.indptr": np.zeros(61, np.int64)}, {}, "does not increase"),
        ({}, {"shape": [60, 59]}, "outside [0, 59)"),
        ({}, {"shape": [60]}, "the shape of W cannot be"),
        ({}, {"shape": [60, 61]}, "60 document words for 61 columns"),
        ({}, {"params": {"loss": {"margin": 1.0}, "penalty": "l1", "colour": 1}}, "do not fit"),
        ({}, {"params": {}}, "do not fit"),
        ({}, {"curve": [{"steps": 1}]}, "do not fit"),
        ({}, {"peak": [1]}, "'peak' cannot be [1]"),
        ({}, {"peak": [1, -1]}, "'peak' cannot be"),
        ({}, {"empty": [0, "many"]}, "'empty' cannot be"),
        ({}, {"steps": -1}, "'steps' cannot be -1"),
        ({}, {"seed": True}, "'seed' cannot be True"),
        ({}, {"alpha": float("nan")}, "'alpha' cannot be nan"),
        ({}, {"alpha": "small"}, "'alpha' is missing or of the wrong type"),
    ],
)
def test_an_inconsistent_file_is_rejected_by_name(saved, tmp_path, arrays, settings, says):
    _, path = saved
    file = read_tensors(path)
    write_tensors(tmp_path / "bad", "bilinear", dict(file.settings) | settings, dict(file.arrays) | arrays)
    with pytest.raises(ModelError, match=re.escape(says)):
        sr.load(tmp_path / "bad")


def test_columns_out_of_order_raise(saved, tmp_path):
    _, path = saved
    file = read_tensors(path)
    indices = file.arrays["W.indices"].copy()
    row = int(np.flatnonzero(np.diff(file.arrays["W.indptr"]) > 1)[0])
    a = file.arrays["W.indptr"][row]
    indices[[a, a + 1]] = indices[[a + 1, a]]
    write_tensors(tmp_path / "bad", "bilinear", file.settings, dict(file.arrays) | {"W.indices": indices})
    with pytest.raises(ModelError, match="do not increase within a row"):
        sr.load(tmp_path / "bad")


def test_a_column_that_occurs_twice_in_a_row_is_rejected_but_rows_may_begin_anew(saved, tmp_path):
    ranker, path = saved
    file = read_tensors(path)
    indices, indptr = file.arrays["W.indices"].copy(), file.arrays["W.indptr"]
    last = int(np.flatnonzero(np.diff(indptr) > 1)[-1])
    indices[indptr[last + 1] - 1] = indices[indptr[last + 1] - 2]
    write_tensors(tmp_path / "bad", "bilinear", file.settings, dict(file.arrays) | {"W.indices": indices})
    with pytest.raises(ModelError, match="do not increase within a row"):
        sr.load(tmp_path / "bad")
    hollow = ranker.W_.toarray()
    hollow[[0, 5, 6, 59]] = 0.0  # rows without entries at both ends and in between
    ranker.W_ = csr_array(hollow)
    ranker.save(tmp_path / "hollow")
    assert np.array_equal(sr.load(tmp_path / "hollow").W_.toarray(), hollow)


def test_a_file_from_before_empty_rows_were_counted_is_read(saved, tmp_path):
    _, path = saved
    file = read_tensors(path)
    settings = {name: value for name, value in file.settings.items() if name != "empty"}
    write_tensors(tmp_path / "old", "bilinear", settings, file.arrays)
    assert sr.load(tmp_path / "old").n_empty_queries_ == 0


def test_nothing_learned_is_not_saved(tmp_path):
    with pytest.raises(NotFitted):
        BilinearRanker().save(tmp_path / "w")
    assert Preferences.from_labels([0, 0, 1]).n_pairs
