"""PAMIR: by query, by topic, bilinear."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

import sparserank as sr
from sparserank.errors import ConfigError, DataError, NotFitted
from sparserank.letor.pamir import PAMIR
from sparserank.optim import passive_aggressive as passive

from .. import oracles


def world(n=30, features=6, topics=3):
    random = np.random.default_rng(0)
    X = random.random((n, features)) * (random.random((n, features)) < 0.5)
    Y = (X @ random.normal(size=(features, topics)) > 0.3).astype(int)
    return X, Y


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("batch", [7, 1 << 16])
def test_it_is_the_algorithm_on_the_triples_that_the_seed_draws(average, batch, monkeypatch):
    monkeypatch.setattr(passive, "BATCH", batch)
    X, Y = world()
    y, qid = Y.sum(axis=1), np.arange(len(X)) % 4
    ranker = PAMIR(C=0.3, max_iter=50, average=average, random_state=5).fit(X, y, qid)
    drawn = sr.Preferences.from_grades(y, qid, np.ones(len(y))).draw(50, 5)
    wanted = oracles.pamir(X, list(zip(drawn.better, drawn.worse, strict=True)), 0.3, average)
    assert_allclose(ranker.coef_, wanted, atol=1e-12)
    assert 0 < ranker.violations_ <= 1


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csc_array])
def test_topics_have_their_own_weights_and_rank_their_items_first(kind):
    X, Y = world()
    ranker = PAMIR(max_iter=5000, random_state=0).fit(kind(X), kind(Y))
    assert ranker.coef_.shape == (3, 6)
    scores = ranker.predict(X)
    for topic in range(3):
        assert sr.ranking_scorer("AP")._score_func(Y[:, topic], scores[:, topic], qid=np.zeros(len(X))) > 0.9


def test_threads_do_not_change_the_weights():
    X, Y = world()
    one, two = (PAMIR(max_iter=500, random_state=1, n_jobs=n).fit(X, Y).coef_ for n in (1, 2))
    assert one.tolist() == two.tolist()


@pytest.mark.parametrize("average", [False, True])
def test_the_bilinear_form_is_the_algorithm_and_comes_back_from_its_file(average, tmp_path):
    X, _ = world()
    Q = sparse.csr_array(np.eye(4, 9) + 0.5 * np.eye(4, 9, k=2))
    random = np.random.default_rng(0)
    prefs = sr.Preferences.from_triples(
        random.integers(4, size=40), random.integers(15, size=40), random.integers(15, 30, size=40)
    )
    ranker = PAMIR(C=0.2, max_iter=60, average=average, random_state=3).fit_bilinear(Q, X, prefs)
    triples = list(zip(*prefs.draw(60, 3), strict=True))
    wanted = oracles.pamir_bilinear(Q.toarray(), X.astype(np.float32), triples, 0.2, average)
    assert_allclose(ranker.W_.toarray(), wanted, atol=1e-6)
    ranker.save(tmp_path / "m")
    again = sr.load(tmp_path / "m")
    assert (again.W_ != ranker.W_).nnz == 0
    assert_allclose(again.scores(Q, X), Q @ wanted @ X.T, atol=1e-5)
    with pytest.raises(NotFitted, match="call scores"):
        again.predict(X)


@pytest.mark.parametrize(
    ("act", "error", "match"),
    [
        (lambda X, Y: PAMIR(C=-1).fit(X, Y[:, 0]), ConfigError, "'C' parameter"),
        (lambda X, Y: PAMIR(max_iter=0).fit(X, Y[:, 0]), ConfigError, "'max_iter' parameter"),
        (lambda X, Y: PAMIR(average=1).fit(X, Y[:, 0]), ConfigError, "'average' parameter"),
        (lambda X, Y: PAMIR().fit(X, Y, qid=np.arange(30)), ConfigError, "neither qid nor sample_weight"),
        (lambda X, Y: PAMIR().fit(X, Y[:9]), DataError, "a row for each of the 30 rows"),
        (lambda X, Y: PAMIR().fit(X, 0 * Y), DataError, "topic 0 .* has no relevant item"),
        (lambda X, Y: PAMIR().fit(X, 0 * Y + 1), DataError, "has no item that is not relevant"),
        (
            lambda X, Y: PAMIR().fit(X, np.where(Y > 0, np.nan, 0.0)),
            DataError,
            r"Y\[\d+, 0\] is nan: a grade must not be",
        ),
        (lambda X, Y: PAMIR().fit(X, np.where(Y > 0, np.inf, 0.0)), DataError, r"Y\[\d+, 0\] is inf: a grade must not"),
        (lambda X, Y: PAMIR().fit(X, 2 * Y - 1), DataError, r"Y\[\d+, 0\] is -1: .*replace negative grades by 0"),
        (
            lambda X, Y: PAMIR().fit(X, sparse.csc_array(2.0 * Y - 1)),
            DataError,
            r"Y\[\d+, 0\] is -1: a grade above 0 means relevant",
        ),
        (lambda X, Y: PAMIR().fit(X, np.where(Y > 0, "yes", "no")), DataError, "encode labels as numbers"),
        (lambda X, Y: PAMIR().fit(X, np.where(Y > 0, "yes", "no").tolist()), DataError, "encode labels as numbers"),
        (lambda X, Y: PAMIR().fit(X, [[1, 0], [1]]), DataError, "rows of different lengths"),
        (lambda X, Y: PAMIR().scores(X, X), NotFitted, "call fit_bilinear first"),
        (
            lambda X, Y: PAMIR().fit_bilinear(X[:1], X, sr.Preferences.from_triples([1], [0], [1])),
            DataError,
            "refer to 2 rows of Q; it has 1",
        ),
        (
            lambda X, Y: PAMIR().fit_bilinear(X, X, sr.Preferences.from_triples([1], [0], [1])).scores(X[:, :2], X),
            DataError,
            "Q has 2 columns",
        ),
    ],
)
def test_what_does_not_fit_raises(act, error, match):
    with pytest.raises(error, match=match):
        act(*world())
