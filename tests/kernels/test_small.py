"""Every kernel on a case small enough to run as plain Python, so that its lines are seen when compilation is off."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from sparserank import Preferences
from sparserank.data.records import Documents
from sparserank.search import Index
from sparserank.text import Analyzer, TextFeatures


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
        drawn = zip(*(c.tolist() for c in prefs.draw(50, seed=3)), strict=True)
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
