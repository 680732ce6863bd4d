"""A W of low rank from class labels: it learns, keeps the budget, and depends on the seed and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sparserank.errors import ConfigError
from sparserank.evaluation.labels import bilinear_blocks, evaluate_classes
from sparserank.experiments.datasets import load_labeled
from sparserank.optim.label_contrast import LabelContrast
from sparserank.optim.penalties import NoPenalty
from sparserank.optim.problems import LabelProblem

from .test_label_ridge import words

X, CODE = words()
QUICK = {"steps": 60, "batch": 64, "rank": 6}


def test_learning_ranks_held_out_digits_better_than_the_start():
    digits = load_labeled("digits")
    found = []
    for steps in (0, 150):
        solver = LabelContrast(4096, rank=20, steps=steps, batch=300)
        W = solver.solve(LabelProblem(digits.train, digits.train_classes), NoPenalty()).weights
        found.append(evaluate_classes(bilinear_blocks(digits.test, W, digits.test), digits.test_classes).map.value)
    assert found[1] > found[0] + 0.01


@pytest.mark.parametrize("rank", [1, 3, 4, 9, 60])
def test_any_rank_below_or_above_the_classes_is_the_rank_of_w(rank):
    solution = LabelContrast(1600, **QUICK | {"rank": rank}).solve(LabelProblem(X, CODE), NoPenalty())
    W = solution.weights.toarray().astype(np.float64)
    assert np.linalg.matrix_rank(W, tol=1e-4 * np.abs(W).max()) <= rank
    assert np.abs(W - W.T).max() <= 1e-5 * np.abs(W).max()


@pytest.mark.parametrize("wanted", [1, 333, 1600])
def test_the_budget_is_kept_and_used(wanted):
    solution = LabelContrast(wanted, **QUICK).solve(LabelProblem(X, CODE), NoPenalty())
    assert solution.weights.nnz == wanted
    assert solution.info["steps"] == 60
    assert "the loss of a batch" in solution.info["message"]


def test_one_seed_gives_the_same_bits_whatever_the_threads_and_another_seed_others():
    one, four, other = (
        LabelContrast(400, s, **QUICK, n_jobs=n).solve(LabelProblem(X, CODE), NoPenalty()).weights
        for n, s in ((1, 7), (4, 7), (1, 8))
    )
    assert_array_equal(one.data, four.data)
    assert_array_equal(one.indices, four.indices)
    assert not np.array_equal(one.data, other.data)


def test_a_column_that_no_item_has_stays_out_of_w():
    rows = X.tolil()
    rows[:, 9] = 0.0
    W = LabelContrast(1600, **QUICK).solve(LabelProblem(rows.tocsr(), CODE), NoPenalty()).weights
    assert not W[[9]].nnz
    assert not W[:, [9]].nnz


def test_a_class_of_one_item_is_told_apart_without_a_winner_of_its_own():
    code = CODE.copy()
    code[0] = 4
    assert np.isfinite(LabelContrast(500, **QUICK).solve(LabelProblem(X, code), NoPenalty()).weights.data).all()


@pytest.mark.parametrize(
    "bad", [{"rank": 0}, {"mix": 1.1}, {"batch": 1}, {"sharpness": 0}, {"rate": -1}, {"steps": 0.5}]
)
def test_settings_that_mean_nothing_raise(bad):
    with pytest.raises(ConfigError):
        LabelContrast(**bad)
