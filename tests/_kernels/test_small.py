"""Every kernel on a case small enough to run as plain Python, so that its lines are seen when compilation is off."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from sparserank import Preferences
from sparserank.bilinear.ranker import BilinearRanker
from sparserank.data.records import Documents
from sparserank.optim import SparseSGD
from sparserank.optim.losses import Hinge
from sparserank.optim.penalties import L1
from sparserank.optim.scores import Bilinear
from sparserank.search import Index
from sparserank.text import Analyzer, TextFeatures

from .. import oracles


def test_words_are_found_counted_and_weighed():
    features = TextFeatures("sublinear", analyzer=Analyzer(ngrams=2, stop_words="english"))
    rows = features.fit_transform(
        ["the red apple, red apple", "", "green x apple " + " ".join(f"w{i}" for i in range(40))]
    )
    assert features.vocabulary_["red apple"] >= 0
    np.testing.assert_allclose((rows * rows).sum(axis=1), [1.0, 0.0, 1.0], rtol=1e-6)
    hashed = TextFeatures("raw", unit=False, hashing=8).fit_transform(["red apple red"])
    assert sorted(hashed.data.tolist()) == [1.0, 2.0]


def test_triples_are_drawn_and_listed():
    labels = Preferences.from_labels([0, 0, 1, 1, 1])
    assert len(set(zip(*(c.tolist() for c in labels.first(100)), strict=True))) == labels.n_pairs
    grades = Preferences.from_grades([2, 1, 0], weight=[1, 2, 1])
    judged = Preferences.from_qrels({"q": {"1": 2, "3": 1}}, ["q"], list("01234"))
    for prefs in (labels, grades, judged):
        drawn = zip(*(c.tolist() for c in prefs.draw(50, random_state=3)), strict=True)
        assert set(drawn) <= set(zip(*(c.tolist() for c in prefs.first(1000)), strict=True))


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("k", [1, 3, 50])
def test_the_index_ranks_as_a_full_sort_does(signed, k):
    rng = np.random.default_rng(4)
    draw = (lambda size: rng.integers(-2, 3, size)) if signed else (lambda size: rng.integers(1, 3, size))
    D = csr_array(random_array((20, 6), density=0.4, rng=rng, data_sampler=lambda size: draw(size).astype(np.float32)))
    Q = csr_array(random_array((5, 6), density=0.6, rng=rng, data_sampler=lambda size: draw(size).astype(np.float32)))
    ids = [f"d{i}" for i in range(20)]
    index = Index.build(D, Documents(tuple(ids), ("",) * 20, ("",) * 20))
    full = (Q @ D.T).toarray()
    for row, hits in zip(full, index.search(Q, k), strict=True):
        expected = sorted(((s, i) for s, i in zip(row.tolist(), ids, strict=True) if s), reverse=True)[:k]
        assert [(hit.score, hit.id) for hit in hits] == expected


@pytest.mark.parametrize("penalty", ["l1", "group-rows", "group-columns", "none"])
def test_word_pairs_are_learned_as_plain_python_too(penalty):
    rng = np.random.default_rng(0)
    X = csr_array(random_array((9, 300), density=0.12, rng=rng, dtype=np.float32))
    X.data /= np.float32(3.0)
    y = np.arange(9) % 3
    triples = Preferences.from_labels(y).draw(10, random_state=1)
    alpha = 0.002 if penalty != "none" else 0.0
    ranker = BilinearRanker(
        penalty=penalty, alpha=alpha, eta0=1.0, shrink_every=2, max_iter=10, curve_points=2, n_jobs=1, random_state=1
    ).fit(X, X, Preferences.from_labels(y))
    groups = None if penalty in ("l1", "none") else list(range(300))
    if penalty != "group-columns":
        expected = oracles.algorithm_1(
            X.toarray(), X.toarray(), triples, np.eye(300), alpha=alpha, eta0=1.0, every=2, groups=groups
        )
        assert np.abs(ranker.W_.toarray() - expected).max() < 1e-5
    refitted = BilinearRanker(
        penalty="none", diagonal=True, eta0=1.0, shrink_every=2, max_iter=10, curve_points=2, random_state=1
    ).fit(X, X, Preferences.from_labels(y))
    expected = oracles.algorithm_1(
        X.toarray(), X.toarray(), triples, np.eye(300), alpha=0, eta0=1.0, every=2, omega=np.eye(300, dtype=bool)
    )
    assert np.abs(refitted.W_.toarray() - expected).max() < 1e-5


def test_a_pattern_with_heads_and_tails_is_refitted_as_plain_python_too():
    rng = np.random.default_rng(5)
    X = csr_array(random_array((9, 300), density=0.12, rng=rng, dtype=np.float32))
    omega = (rng.random((300, 300)) < 0.05) | (np.arange(300) < 200) & (np.arange(300)[:, None] % 2 == 0)
    start = csr_array(np.where(omega, 0.01, 0.0).astype(np.float32))
    prefs = Preferences.from_labels(np.arange(9) % 3)
    score = Bilinear(X, X)
    training = SparseSGD(1.0, "decay", 3).training(score, Hinge(), L1(1e-3), start, pattern=True)
    training.advance(prefs.draw(8, random_state=2))
    expected = oracles.algorithm_1(
        X.toarray(),
        X.toarray(),
        prefs.draw(8, random_state=2),
        start.toarray(),
        alpha=1e-3,
        eta0=1.0,
        every=3,
        omega=omega,
    )
    assert np.abs(training.weights().toarray() - expected).max() < 1e-5
