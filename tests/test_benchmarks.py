"""What the benchmarks check before they time anything, and how their tables are printed."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from benchmarks import markdown, vowpal, word_pairs
from scipy.sparse import csr_array

from sparserank import BilinearRanker, Preferences, data


@pytest.fixture(scope="module")
def digits():
    split = data.load("digits").train
    rows = csr_array(split.items / np.linalg.norm(split.items, axis=1, keepdims=True)).astype(np.float32)
    return rows, split.y


def test_the_w_that_is_timed_is_that_of_the_literal_algorithm(digits):
    X, y = digits
    _, ranker = word_pairs.trained(X, y, 500)
    W = word_pairs.literal_w(X, Preferences.from_labels(y).draw(500, random_state=0))
    assert word_pairs.check_literal(ranker, W) <= word_pairs.NEAR


def test_a_w_that_is_not_that_of_the_literal_algorithm_is_not_timed(digits):
    X, y = digits
    _, ranker = word_pairs.trained(X, y, 500)
    other = word_pairs.literal_w(X, Preferences.from_labels(y).draw(500, random_state=0), alpha=2 * word_pairs.LAMBDA)
    with pytest.raises(AssertionError, match="off the literal one"):
        word_pairs.check_literal(ranker, other)


def test_vowpal_wabbit_without_a_penalty_runs_algorithm_1(digits, tmp_path):
    pytest.importorskip("vowpalwabbit")
    X, y = digits
    prefs = Preferences.from_labels(y)
    ranker = BilinearRanker(penalty="none", max_iter=300, random_state=0).fit(X, X, prefs)
    for name, triples in (("seen", prefs.draw(300, random_state=0)), ("asked", prefs.draw(100, random_state=1))):
        vowpal.write(tmp_path / name, X, triples)
    vowpal.learn(tmp_path / "seen", tmp_path / "model", 0.0, word_pairs.ETA0)
    ours = word_pairs.in_order(ranker.W_, X, prefs.draw(100, random_state=1))
    np.testing.assert_allclose(vowpal.margins(tmp_path / "asked", tmp_path / "model"), ours, rtol=1e-3, atol=1e-2)


def test_markdown_tables():
    assert doctest.testmod(markdown).failed == 0
