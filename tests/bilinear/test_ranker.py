"""BilinearRanker: what a user sees of paper C's methods."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array
from sklearn.base import clone

from sparserank import Preferences
from sparserank.bilinear.ranker import METHODS_OF_PAPER, BilinearRanker
from sparserank.errors import ConfigError, DataError, NotFitted
from sparserank.optim.penalties import L2, GroupL1

from .. import oracles


def labelled(seed=0, n=80, width=60):
    """Rows whose class shows in which third of the columns they use, with noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = rng.random((n, width)) * (rng.random((n, width)) < 0.15)
    for i, c in enumerate(y):
        X[i, c * width // 3 : (c + 1) * width // 3] *= 3.0
    X[:, 0] += 0.1
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return csr_array(X.astype(np.float32)), y


X, Y = labelled()
PREFS = Preferences.from_labels(Y)
SETTINGS = {"eta0": 5.0, "max_iter": 1_000, "shrink_every": 20, "alpha": 1e-4, "random_state": 3}


def error(ranker, X=X, y=Y):
    """Share of all triples that are not in order."""
    S = ranker.scores(X, X)
    return float(np.mean([oracles.class_error(S[q].tolist(), y.tolist(), q) for q in range(len(y))]))


@pytest.fixture(scope="module")
def sparse():
    return BilinearRanker(**SETTINGS).fit(X, X, PREFS)


def test_it_is_algorithm_1(sparse):
    expected = oracles.algorithm_1(
        X.toarray(), X.toarray(), PREFS.draw(1_000, random_state=3), np.eye(60), alpha=1e-4, eta0=5.0, every=20
    )
    assert isinstance(sparse.W_, csr_array)
    assert np.abs(sparse.W_.toarray() - expected).max() <= 1e-4 * np.abs(expected).max()


def test_refitting_goes_over_the_same_triples_on_the_same_entries(sparse):
    refitted = BilinearRanker(**SETTINGS, refit=True).fit(X, X, PREFS)
    omega = sparse.W_.toarray() != 0
    expected = oracles.algorithm_1(
        X.toarray(),
        X.toarray(),
        PREFS.draw(1_000, random_state=3),
        sparse.W_.toarray(),
        alpha=0,
        eta0=5.0,
        every=20,
        omega=omega,
    )
    assert np.abs(refitted.W_.toarray() - expected).max() <= 1e-4 * np.abs(expected).max()


@pytest.mark.parametrize("name", METHODS_OF_PAPER)
def test_every_method_of_the_paper_has_its_name(name):
    changes = {k: v for k, v in SETTINGS.items() if k not in METHODS_OF_PAPER[name]}
    ranker = BilinearRanker.from_paper(name, **changes).fit(X, X, PREFS)
    identity = BilinearRanker.from_paper("Identity").fit(X, X, PREFS)
    assert (csr_array(np.eye(60)) != identity.W_).nnz == 0
    if name == "Diagonal":
        assert (ranker.W_ - csr_array(np.diag(ranker.W_.diagonal()))).count_nonzero() == 0
    if name not in ("Identity", "SGD (fixed rate)"):
        assert error(ranker) < error(identity)


def test_triples_in_order_are_taken_in_order():
    triples = PREFS.draw(300, random_state=9)
    prefs = Preferences.from_triples(*triples)
    ranker = BilinearRanker(**SETTINGS | {"max_iter": 200}, shuffle=False).fit(X, X, prefs)
    first = tuple(c[:200] for c in triples)
    expected = oracles.algorithm_1(X.toarray(), X.toarray(), first, np.eye(60), alpha=1e-4, eta0=5.0, every=20)
    assert np.abs(ranker.W_.toarray() - expected).max() <= 1e-4 * np.abs(expected).max()
    assert ranker.n_iter_ == 200


def test_pieces_carry_on_where_they_stopped():
    whole = BilinearRanker(**SETTINGS).fit(X, X, PREFS)
    pieces = BilinearRanker(**SETTINGS | {"max_iter": 200})
    for _ in range(5):
        pieces.partial_fit(X, X, PREFS)
    assert np.array_equal(pieces.W_.toarray(), whole.W_.toarray())
    assert pieces.n_iter_ == 1_000


def test_the_same_seed_gives_the_same_bits_on_any_number_of_threads():
    one = BilinearRanker(**SETTINGS, n_jobs=1).fit(X, X, PREFS)
    two = BilinearRanker(**SETTINGS, n_jobs=2).fit(X, X, PREFS)
    assert np.array_equal(one.W_.toarray(), two.W_.toarray())
    other = BilinearRanker(**SETTINGS | {"random_state": 4}).fit(X, X, PREFS)
    assert not np.array_equal(one.W_.toarray(), other.W_.toarray())


def test_a_linear_rate_ends_where_the_steps_end():
    ranker = BilinearRanker(**SETTINGS | {"schedule": "linear", "eta0": 1.0}).fit(X, X, PREFS)
    assert ranker.n_iter_ == SETTINGS["max_iter"]
    assert (ranker.W_ != BilinearRanker(**SETTINGS | {"eta0": 1.0}).fit(X, X, PREFS).W_).nnz
    with pytest.raises(ConfigError, match="partial_fit cannot continue"):
        ranker.partial_fit(X, X, PREFS)


def test_slack_is_what_is_cut_away_in_the_end():
    small, loose = (
        BilinearRanker(**SETTINGS | {"max_iter": 6_000}, max_pairs=200, slack=slack).fit(X, X, PREFS)
        for slack in (1.0, 5.0)
    )
    assert small.W_.nnz == loose.W_.nnz == 200
    assert loose.alpha_ < small.alpha_
    with pytest.raises(ConfigError, match="'slack'"):
        BilinearRanker(**SETTINGS, max_pairs=200, slack=0.5).fit(X, X, PREFS)


@pytest.mark.parametrize("wanted", [{"density": 0.1}, {"density": 0.3}, {"max_pairs": 500}])
def test_density_is_had_on_request(wanted):
    ranker = BilinearRanker(**SETTINGS | {"max_iter": 6_000}, **wanted).fit(X, X, PREFS)
    target = wanted.get("max_pairs", wanted.get("density", 0) * 3600)
    assert 0.9 * target <= ranker.W_.nnz <= target + 1


def test_a_rectangular_W_and_a_start_of_ones_own():
    rng = np.random.default_rng(1)
    D = csr_array(random_array((80, 25), density=0.3, rng=rng, dtype=np.float32))
    ranker = BilinearRanker(**SETTINGS, init="zero").fit(X, D, PREFS)
    assert ranker.W_.shape == (60, 25)
    assert ranker.scores(X[:3], D).shape == (3, 80)
    start = csr_array(random_array((60, 25), density=0.1, rng=rng, dtype=np.float32))
    unchanged = BilinearRanker(**SETTINGS | {"max_iter": 0}, init=start).fit(X, D, PREFS)
    assert (start != unchanged.W_).nnz == 0


def test_groups_vanish_whole():
    groups = np.arange(60) // 3
    ranker = BilinearRanker(**SETTINGS, penalty=GroupL1(0.04, groups=groups)).fit(X, X, PREFS)
    used = np.abs(ranker.W_.toarray()).sum(axis=1).reshape(20, 3) > 0
    assert (used.any(axis=1) == used.all(axis=1)).all()
    assert 0 < used.any(axis=1).sum() < 20


def test_a_word_keeps_its_own_match_around_the_identity():
    ranker = BilinearRanker(**SETTINGS | {"alpha": 5e-3}, prior="identity").fit(X, X, PREFS)
    assert (ranker.W_.diagonal() == 1.0).any()
    plain = BilinearRanker(**SETTINGS | {"alpha": 5e-3}).fit(X, X, PREFS)
    assert np.count_nonzero(ranker.W_.diagonal()) > np.count_nonzero(plain.W_.diagonal())


def test_contributions_sum_to_the_score(sparse):
    for q, d in ((0, 1), (5, 9)):
        why = sparse.explain(X[[q]], X[[d]])
        assert why.score == pytest.approx(sparse.scores(X[[q]], X[[d]])[0, 0], rel=1e-5)
        assert sum(pair.contribution for pair in why.pairs) == pytest.approx(why.score, rel=1e-5)
    dense = sparse.explain(X[[0]].toarray()[0], X[[1]].toarray()[0])
    assert dense == sparse.explain(X[[0]], X[[1]])


def test_related_words_and_top_pairs_are_the_largest_of_W():
    words = [f"w{i}" for i in range(60)]
    ranker = BilinearRanker(**SETTINGS).fit(X, X, PREFS, query_words=words, document_words=words)
    W = ranker.W_.toarray()
    best = np.argsort(-W[7], kind="stable")[:3]
    assert ranker.related("w7", 3) == [(f"w{j}", pytest.approx(W[7, j])) for j in best]
    assert ranker.related(7, 3) == ranker.related("w7", 3)
    top = ranker.top_pairs(1)[0]
    i, j = np.unravel_index(np.argmax(np.abs(W)), W.shape)
    assert (top.query, top.document, top.contribution) == (f"w{i}", f"w{j}", pytest.approx(W[i, j]))


def test_empty_rows_score_zero(sparse):
    empty = csr_array((1, 60), dtype=np.float32)
    assert not sparse.scores(empty, X).any()
    assert sparse.explain(empty, X[[0]]).to_dict() == {"score": 0.0, "pairs": []}
    with_empty = csr_array(np.vstack([X.toarray(), np.zeros((2, 60))]).astype(np.float32))
    prefs = Preferences.from_labels([*Y, 0, 1])
    assert BilinearRanker(**SETTINGS | {"max_iter": 100}).fit(with_empty, with_empty, prefs).W_.nnz > 0


def test_the_curve_is_reported(sparse):
    curve = sparse.solution_.history
    assert [point.steps for point in curve] == [20 * -(-at // 20) for at in range(50, 1_001, 50)]
    assert curve[-1].objective < curve[0].objective
    assert sparse.solution_.info["peak_nonzeros"] > 0
    assert isinstance(sparse.converged_, bool)
    assert curve[0].to_dict()["steps"] == 60


def test_scikit_learn_can_clone_it():
    assert clone(BilinearRanker(alpha=3e-4, refit=True)).get_params()["alpha"] == 3e-4


def bad(**changes):
    return lambda: BilinearRanker(**SETTINGS | {"max_iter": 10} | changes).fit(X, X, PREFS)


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: BilinearRanker().scores(X, X), NotFitted, "call fit first"),
        (bad(eta0=-1.0), ConfigError, "'eta0'"),
        (bad(eta0=float("nan")), ConfigError, "'eta0'"),
        (bad(eta0=-1.0, schedule="fixed"), ConfigError, "'eta0'"),
        (bad(shrink_every=0), ConfigError, "'shrink_every'"),
        (bad(curve_points=-1), ConfigError, "'curve_points'"),
        (bad(refit="yes"), ConfigError, "'refit'"),
        (bad(random_state=-1), ConfigError, "'random_state'"),
        (bad(random_state=np.random.default_rng(0)), ConfigError, "'random_state'"),
        (bad(n_jobs=0), ConfigError, "'n_jobs'"),
        (bad(max_pairs=0), ConfigError, "'max_pairs'"),
        (bad(eta0=1e40), ConfigError, "eta0=1e+40 is too large"),
        (bad(alpha=-1.0), ConfigError, "'alpha'"),
        (bad(alpha=float("nan")), ConfigError, "'alpha'"),
        (bad(penalty="l3"), ConfigError, "'penalty'"),
        (bad(penalty=L2(0.1)), ConfigError, "'none', or an object L1, GroupL1 or NoPenalty of sr.penalties. Got L2"),
        (bad(loss="squared"), ConfigError, "'loss'"),
        (bad(solver="adam"), ConfigError, "'solver'"),
        (bad(schedule="slow"), ConfigError, "'schedule'"),
        (bad(init="one"), ConfigError, "'init'"),
        (bad(init=np.eye(3)), ConfigError, "shape (60, 60)"),
        (bad(density=0.1, max_pairs=3), ConfigError, "give one of them"),
        (bad(density=0.0), ConfigError, "'density'"),
        (bad(density=0.1, penalty="none"), ConfigError, "need penalty='l1'"),
        (bad(max_iter=-1), ConfigError, "'max_iter'"),
        (lambda: BilinearRanker().fit(X, X, Y), DataError, "preferences must be Preferences"),
        (lambda: BilinearRanker().fit(X[:5], X, PREFS), DataError, "80 rows of Q; it has 5"),
        (lambda: BilinearRanker().fit(np.full((80, 2), np.nan), X, PREFS), DataError, "Q: row 0"),
        (lambda: BilinearRanker().fit(X, np.full((80, 60), np.inf), PREFS), DataError, "D: row 0"),
        (bad(init=np.full((60, 60), np.nan)), DataError, "init: row 0 holds a number that is not finite"),
        (bad(prior=np.full((60, 60), np.nan)), DataError, "prior: row 0 holds a number that is not finite"),
        (lambda: Preferences.from_labels([1, 1, 1]), DataError, "at least two classes; got 1"),
        (lambda: BilinearRanker().fit(["a"] * 80, X, PREFS), DataError, "matrix of numbers"),
        (lambda: BilinearRanker().fit(X, X[:, :5], PREFS), ConfigError, "use 'zero'"),
        (lambda: BilinearRanker(diagonal=True, init="zero").fit(X, X[:, :5], PREFS), ConfigError, "must be square"),
        (lambda: BilinearRanker().fit(X, X, PREFS, query_words=["a"]), DataError, "need 60 words; got 1"),
        (lambda: BilinearRanker(refit=True).partial_fit(X, X, PREFS), ConfigError, "use fit"),
        (lambda: BilinearRanker.from_paper("Dense"), ConfigError, "'method'"),
    ],
)
def test_bad_input_is_rejected_before_any_work(make, error, says):
    with pytest.raises(error, match=re.escape(says)):
        make()


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda r: r.fit(X, X, PREFS, query_words=["a"]), DataError, "need 60 words"),
        (lambda r: r.fit(X, X, PREFS, checkpoint="c"), ConfigError, "random_state"),
        (lambda r: r.fit(X[:3], X, PREFS), DataError, "rows of Q"),
        (lambda r: r.set_params(density=2.0).fit(X, X, PREFS), ConfigError, "'density'"),
        (lambda r: r.fit(X, X, Preferences.from_grades([1.0] * 80)), DataError, "nothing to draw"),
        (lambda r: r.partial_fit(X, X, Preferences.from_grades([1.0] * 80)), DataError, "nothing to draw"),
        (lambda r: r.partial_fit(X[:, :30], X[:, :30], PREFS), DataError, "W is (60, 60)"),
        (lambda r: r.partial_fit(X, np.full((80, 60), np.nan), PREFS), DataError, "D: row 0"),
        (lambda r: r.set_params(eta0=-1.0).partial_fit(X, X, PREFS), ConfigError, "'eta0'"),
        (lambda r: r.set_params(alpha=-1.0).partial_fit(X, X, PREFS), ConfigError, "'alpha'"),
    ],
)
def test_what_was_learned_survives_a_call_that_raises(call, error, says):
    ranker = BilinearRanker(**SETTINGS | {"max_iter": 100, "random_state": None}).fit(X, X, PREFS)
    settings = ranker.get_params()
    before = ranker.W_.toarray()
    with pytest.raises(error, match=re.escape(says)):
        call(ranker)
    assert np.array_equal(before, ranker.W_.toarray())
    ranker.set_params(**settings).partial_fit(X, X, PREFS)
    assert ranker.n_iter_ == 200, "it goes on from where it was"
    assert ranker.solution_.history[-1].steps == 200


@pytest.mark.parametrize("change", [{"eta0": 6.0}, {"alpha": 1e-3}, {"density": 0.1}, {"init": np.eye(60)}])
def test_a_setting_changed_between_pieces_is_rejected_since_it_would_have_no_effect(change):
    ranker = BilinearRanker(**SETTINGS | {"max_iter": 100}).partial_fit(X, X, PREFS)
    with pytest.raises(ConfigError, match=f"continues with the parameters of the first call: {next(iter(change))}="):
        ranker.set_params(**change).partial_fit(X, X, PREFS)
    assert ranker.n_iter_ == 100
    ranker.set_params(**{name: BilinearRanker(**SETTINGS).get_params()[name] for name in change})
    assert ranker.set_params(max_iter=50, n_jobs=1, curve_points=2).partial_fit(X, X, PREFS).n_iter_ == 150
    assert ranker.set_params(**change).fit(X, X, PREFS).n_iter_ == 50


def test_another_number_of_columns_is_rejected_and_nothing_is_lost(sparse):
    ranker = BilinearRanker(**SETTINGS).fit(X, X, PREFS)
    before = ranker.W_.toarray()
    with pytest.raises(DataError, match="W is"):
        ranker.partial_fit(X[:, :30], X[:, :30], PREFS)
    assert np.array_equal(before, ranker.W_.toarray())
    with pytest.raises(DataError, match="W is"):
        sparse.scores(X[:, :5], X)
    with pytest.raises(DataError, match="one row of 60"):
        sparse.explain(X, X)
    with pytest.raises(DataError, match="no names"):
        sparse.related("word")
    with pytest.raises(DataError, match="numbers 0 to 59"):
        sparse.related(99)


# ---- scores beyond float32


def with_weights(W):
    """A ranker whose W is this one."""
    ranker = BilinearRanker(max_iter=0, penalty="none").fit(
        np.eye(2), np.eye(2), Preferences.from_triples([0], [0], [1])
    )
    ranker.W_ = csr_array(np.asarray(W, np.float32))
    return ranker


def test_a_score_that_float32_cannot_hold_raises_an_error_with_its_place():
    ranker = with_weights([[1e30, 0.0], [0.0, 1.0]])
    with pytest.raises(DataError, match=r"row 1 of Q and row 0 of D is 1e\+40, which is beyond float32"):
        ranker.scores([[1.0, 1.0], [1e10, 1.0]], [[1.0, 0.0]])
    with pytest.raises(DataError, match="row 0 of Q and row 0 of D is -1e"):
        ranker.scores([[-1e30, 0.0]], [[1e30, 1.0]])
    with pytest.raises(DataError, match="beyond float32"):
        ranker.explain([1e10, 1.0], [1.0, 0.0])


def test_a_product_that_overflows_on_the_way_to_a_score_of_usual_size_is_computed_exactly():
    ranker = with_weights([[1e30, 0.0], [0.0, 1.0]])
    np.testing.assert_allclose(ranker.scores([[1e10, 1.0]], [[1e-38, 0.0], [0.0, 2.0]]), [[100.0, 2.0]], rtol=1e-6)
