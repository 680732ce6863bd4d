"""AdaRank and RankBoost against their books."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

from sparserank.errors import ConfigError, DataError
from sparserank.letor.adarank import AdaRank
from sparserank.letor.rankboost import RankBoost

from .. import oracles


def world(seed=0, n=18):
    """Few values, so that ties are common; some negative, some zero."""
    random = np.random.default_rng(seed)
    X = random.integers(-2, 3, size=(n, 4)) / 2.0
    y = random.integers(0, 3, size=n).astype(float)
    return X, y, np.sort(random.integers(3, size=n))


@pytest.mark.parametrize("seed", range(4))
def test_rankboost_is_the_one_that_lists_pairs(seed):
    X, y, qid = world(seed)
    weight = np.random.default_rng(seed).integers(1, 4, size=len(y)).astype(float)
    scores, losses = oracles.rankboost(X, y, qid, weight, 6)
    for given in (X, csr_array(X)):
        ranker = RankBoost(max_iter=6).fit(given, y, qid, sample_weight=weight)
        assert_allclose(ranker.stumps_.loss, losses, rtol=1e-9)
        assert_allclose(ranker.predict(given), scores, atol=1e-9)
        assert_allclose(ranker.predict_after(given, 3), oracles.rankboost(X, y, qid, weight, 3)[0], atol=1e-9)


def test_no_round_of_rankboost_raises_its_loss():
    X, y, qid = world(7, n=60)
    losses = RankBoost(max_iter=100).fit(X, y, qid).stumps_.loss
    assert (np.diff(losses) <= 1e-12).all()
    assert losses[0] < 1


def test_rankboost_stops_where_no_stump_gains():
    ranker = RankBoost(max_iter=50).fit([[1.0], [1.0]], [1, 0])
    assert ranker.n_iter_ == 0
    assert ranker.predict([[5.0]]).tolist() == [0.0]


def test_a_stump_that_wins_every_pair_has_a_finite_weight():
    ranker = RankBoost(max_iter=5).fit([[1.0], [0.0]], [1, 0])
    assert np.isfinite(ranker.stumps_.alpha).all()
    assert ranker.predict([[1.0], [0.0]]).argmax() == 0


@pytest.mark.parametrize("measure", ["AP", "nDCG"])
@pytest.mark.parametrize("seed", range(4))
def test_adarank_is_the_book_s(measure, seed):
    X, y, qid = world(seed)
    y[qid == 0] = 0.0  # nothing relevant: takes no part

    def evaluate(scores, grades):
        gains = np.exp2(grades) - 1
        if measure == "AP":
            return oracles.over_ties(scores, grades > 0, oracles.average_precision)
        ideal = oracles.dcg(sorted(gains, reverse=True), 3)
        return oracles.over_ties(scores, gains, lambda values: oracles.dcg(values, 3)) / ideal

    kept = np.concatenate([np.flatnonzero(qid == q)[:6] for q in np.unique(qid)])  # few rows: orders are listed
    X, y, qid = X[kept], y[kept], qid[kept]
    chosen = oracles.adarank(X, y, qid, 4, evaluate)
    for given in (X, csr_array(X)):
        ranker = AdaRank(measure, cutoff=3, max_iter=4).fit(given, y, qid)
        assert ranker.rounds_.feature.tolist() == [feature for feature, _ in chosen]
        assert_allclose(ranker.rounds_.alpha, [alpha for _, alpha in chosen], rtol=1e-9)
        assert_allclose(ranker.coef_after(2), np.bincount([f for f, _ in chosen[:2]], [a for _, a in chosen[:2]], 4))


def test_adarank_counts_a_query_by_its_mean_weight():
    X = [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]
    for weight, feature in (([9, 9, 1, 1], 0), ([1, 1, 9, 9], 1)):
        ranker = AdaRank(max_iter=1).fit(X, [1, 0, 1, 0], ["a", "a", "b", "b"], sample_weight=weight)
        assert ranker.rounds_.feature.tolist() == [feature]


def test_adarank_refuses_what_it_cannot_rank_by():
    with pytest.raises(DataError, match="gains 2\\^grade - 1, too steep for grades 100 apart"):
        AdaRank("nDCG").fit([[1.0], [2.0]], [0, 100])
    assert AdaRank("AP").fit([[1.0], [2.0]], [0, 100]).coef_[0] > 0
    with pytest.raises(DataError, match="no query has both relevant rows and others"):
        AdaRank("AP").fit([[1.0], [2.0], [3.0]], [1, 2, 0], ["a", "a", "b"])
    with pytest.raises(DataError, match="zero for every query"):
        AdaRank("AP").fit([[1.0], [2.0], [3.0], [4.0]], [1, 0, 2, 1], list("aabb"), sample_weight=[0, 0, 1, 1])


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: AdaRank("err"), "'measure' parameter"),
        (lambda: AdaRank(cutoff=0), "'cutoff' parameter"),
        (lambda: AdaRank(max_iter=0), "'max_iter' parameter"),
        (lambda: RankBoost(max_iter=0), "'max_iter' parameter"),
    ],
)
def test_settings_out_of_range_are_rejected_by_name(make, match):
    with pytest.raises(ConfigError, match=match):
        make().fit([[1.0], [2.0]], [0, 1])


@pytest.mark.parametrize(("old", "new"), [("map", "AP"), ("MAP", "AP"), ("ndcg", "nDCG"), ("NDCG", "nDCG")])
def test_other_spellings_of_a_measure_train_the_same_ranker(old, new):
    X, y, qid = world()
    coefs = [AdaRank(measure, max_iter=3).fit(X, y, qid).coef_.tolist() for measure in (old, new)]
    assert coefs[0] == coefs[1]
