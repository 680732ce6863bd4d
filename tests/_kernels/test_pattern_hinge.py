"""Hinge steps on a pattern equal the update written out, triple by triple."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sparserank.errors import ConfigError
from sparserank.optim.losses import Hinge
from sparserank.optim.pattern_hinge import PatternHinge
from sparserank.optim.penalties import NoPenalty

from ..optim import judged_worlds as worlds


def literal(hinge, listed, W, fixed, nonnegative):
    """The mean of W after each triple."""
    drawn = hinge.draw(listed)
    Q, D, w = worlds.dense(listed.lists.Q, listed.lists.D, W)
    free, n = (W.toarray() != 0) & ~fixed, len(drawn.query)
    mean = np.zeros_like(w)
    for t, (q, p, other) in enumerate(zip(*drawn, strict=True)):
        delta = D[p] - D[other]
        if listed.base[q, p] - listed.base[q, other] + Q[q] @ w @ delta < listed.loss.margin:
            w = w + hinge.rate * (1 - t / n) * np.outer(Q[q], delta) * free
            w = np.where(free & (w < 0), 0.0, w) if nonnegative else w
        mean += w / n
    return mean


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_steps_equal_the_literal_update(weighted, nonnegative):
    listed = worlds.listed(loss=Hinge(), weighted=weighted)
    W = worlds.pattern(listed.lists.shape)
    W.data = 0.05 * np.abs(W.data) if nonnegative else W.data
    fixed = np.indices(W.shape).sum(axis=0) % 4 == 0
    hinge = PatternHinge(triples=60, rate=0.3, hard=3)
    found = hinge.solve(listed, NoPenalty(), W, fixed[W.nonzero()], nonnegative).weights
    assert_allclose(found.toarray(), literal(hinge, listed, W, fixed, nonnegative), atol=1e-5)
    assert (found.data != W.data).any()
    assert (found.data < 0.0).any() != nonnegative


def test_triples_prefer_what_is_relevant_to_what_is_not_and_never_the_query_itself():
    listed = worlds.listed(weighted=True)
    grades = listed.lists.grades.toarray()
    drawn = PatternHinge(triples=3000, hard=2).draw(listed)
    assert (grades[drawn.query, drawn.better] > 0).all()
    assert (grades[drawn.query, drawn.worse] == 0).all()
    assert not ((drawn.query == 3) & ((drawn.worse == 5) | (drawn.better == 5))).any()


def test_relevant_documents_are_drawn_by_grade():
    listed = worlds.listed()
    grades = listed.lists.grades.toarray()
    query = int(np.flatnonzero((grades == 2).any(axis=1) & (grades == 1).any(axis=1))[0])
    drawn = PatternHinge(triples=20_000).draw(listed)
    better = drawn.better[drawn.query == query]
    share = np.bincount(better, minlength=grades.shape[1]) / len(better)
    assert_allclose(share, grades[query] / grades[query].sum(), atol=0.03)


def test_where_nothing_is_judged_w_stays():
    listed, one = worlds.listed(), np.array([1])
    empty = type(listed)(listed.lists.select_queries(one), listed.base[one], listed.excluded[one], Hinge())
    W = worlds.pattern(listed.lists.shape)
    assert (PatternHinge(triples=5).solve(empty, NoPenalty(), W).weights.data == W.data).all()


def test_a_rate_of_zero_is_refused():
    with pytest.raises(ConfigError, match="rate"):
        PatternHinge(rate=0.0)
