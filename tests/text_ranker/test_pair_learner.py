"""Word pairs learned beside a lexical score: a planted synonym, noise that teaches nothing, pairs that are told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from sparserank.errors import DataError
from sparserank.optim import pattern_ridge
from sparserank.optim.closed_form import ClosedForm
from sparserank.optim.penalties import Ridge
from sparserank.optim.problems import ListProblem
from sparserank.text_ranker import held_out, model_selection, pair_learner
from sparserank.text_ranker.held_out import hold_out
from sparserank.text_ranker.model_selection import learn_pairs
from sparserank.text_ranker.training_data import LexicalRows, TrainingMatrices, grade_matrix

from ..optim.judged_world import objective
from .planted_synonyms import (
    PLANTED,
    WORDS,
    as_rows,
    best_pairs,
    learned_scores,
    learner,
    lexical_scores,
    mean_ndcg,
    world,
)


def pair(places, shape=(WORDS, WORDS)):
    row, column = np.array(list(places)).T
    return csr_array((np.array(list(places.values()), np.float64), (row, column)), shape=shape)


def test_a_planted_synonym_is_learned_and_helps_queries_that_were_not_there():
    W, choice = learn_pairs(learner(), world(), callback=(messages := []).append)
    assert best_pairs(W) == PLANTED
    assert choice.pair_weight > 0
    assert choice.ndcg > choice.lexical_ndcg + 0.3
    other = world(seed=1)
    learned = mean_ndcg(other, learned_scores(other, W, choice.pair_weight))
    assert learned > mean_ndcg(other, lexical_scores(other)) + 0.3
    assert messages[0] == "tuning the regularization of pairs"
    assert messages[-1].partition(":")[0] == "learning pairs from all queries"


def test_what_the_choice_says_is_what_the_held_out_queries_get(monkeypatch):
    monkeypatch.setattr(held_out, "MAX_ROTATED_QUERIES", 0)
    judged = world()
    _, choice = learn_pairs(learner(), judged)
    ((held, rest),) = hold_out(np.arange(len(judged)), 0)
    part = learner().fit(
        ClosedForm(judged.lists.D), judged.lists.select_queries(rest), choice.query_normalization, choice.ridge
    )
    scores = learned_scores(judged[held], part, choice.pair_weight)
    assert choice.lexical_ndcg == pytest.approx(mean_ndcg(judged[held], lexical_scores(judged[held])))
    assert choice.ndcg == pytest.approx(mean_ndcg(judged[held], scores), abs=0.01)


@pytest.mark.parametrize("lexical", [0.0, 1e-6, 1e6])
def test_the_gain_goes_with_the_scale_of_the_lexical_scores_and_does_without_any(lexical):
    W, choice = learn_pairs(learner(), world(lexical=lexical))
    usual = learn_pairs(learner(), world(lexical=1.0))[1]
    assert W.nnz == 30
    assert choice.ndcg > choice.lexical_ndcg + 0.3
    if lexical:
        assert choice.pair_weight == pytest.approx(lexical * usual.pair_weight, rel=1e-3)
    else:
        assert choice.pair_weight > 0


@pytest.mark.parametrize(("large", "loss"), [("all documents", "squared"), ("pools", "domination")], indirect=["large"])
def test_at_most_5_of_100_collections_of_noise_keep_pairs(large, loss):
    """Of many documents pairs are tested twice, refitted and not, at half the level each."""
    kept, some = [], learner(loss=loss)
    level = model_selection.SIGNIFICANCE_LEVEL / (2 if large else 1)
    for seed in range(100):
        W, choice = learn_pairs(some, world(seed, noise=True))
        kept.append(choice.pair_weight > 0)
        if choice.pair_weight == 0:
            assert (W.nnz, W.shape, W.dtype) == (0, (WORDS, WORDS), np.float32)
            assert choice.ndcg == choice.lexical_ndcg
            assert choice.p_value > level
    assert sum(kept) <= 5


def test_without_the_test_most_collections_of_noise_would_keep_pairs(monkeypatch):
    """The noise is not trivial: the best of many settings is above the lexical score by chance."""
    monkeypatch.setattr(model_selection, "SIGNIFICANCE_LEVEL", 1.0)
    monkeypatch.setattr(model_selection, "PRUNED_LEVEL", 1.0)
    better = [
        choice.ndcg > choice.lexical_ndcg
        for choice in (learn_pairs(learner(), world(seed, noise=True))[1] for seed in range(20))
    ]
    assert sum(better) > 10


def test_where_the_lexical_score_is_perfect_nothing_is_learned():
    judged = world()
    W, choice = learn_pairs(learner(), replace(judged, lexical=as_rows(judged.lists.grades.toarray())))
    assert choice.lexical_ndcg == pytest.approx(1.0)
    assert (choice.pair_weight, W.nnz) == (0.0, 0)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_same_bits_again_and_for_any_threads(n_jobs):
    first, chosen = learn_pairs(learner(), world())
    again, choice = learn_pairs(learner(n_jobs=n_jobs), world())
    assert_array_equal(first.toarray(), again.toarray())
    assert choice == chosen


@pytest.mark.parametrize(("pairs", "pairs_per_word"), [(1, None), (7, None), (30, 2), (100, 1)])
def test_no_more_pairs_than_wanted(pairs, pairs_per_word):
    W, _ = learn_pairs(learner(pairs, pairs_per_word=pairs_per_word), world())
    assert 0 < W.nnz <= pairs
    assert pairs_per_word is None or np.diff(W.indptr).max() <= pairs_per_word


def test_pairs_are_refitted_after_the_cut():
    judged = world()
    W = learner(12).fit(ClosedForm(judged.lists.D), judged.lists, 0.5, Ridge())
    ridge = Ridge(1.0, 1.0 / pair_learner.PATTERN_RIDGE_FACTOR)
    problem = replace(judged.lists, query_normalization=0.5)
    best, *others = (objective(problem, csr_array(M), ridge) for M in (W, W * 1.02, W * 0.98))
    assert best < min(others)


@pytest.mark.parametrize(
    ("loss", "pairs", "tried"),
    [("domination", 500_000, (False, True)), ("domination", 500_001, (False,)), ("squared", 500_001, (True,))],
)
def test_a_refit_before_another_loss_is_tried_up_to_some_number_of_pairs(loss, pairs, tried):
    assert learner(pairs, loss=loss).refits() == tried


def test_a_refit_before_another_loss_is_tried_if_its_products_are_cheap(monkeypatch):
    """A product from sums in words multiplies each pair by every column, one from documents each word by documents."""
    lists = world().lists
    some = learner(30, loss="domination")
    found = some.find_pairs(ClosedForm(lists.D), lists, 0.5, Ridge())
    by_words = found.nnz * len(np.unique(found.indices))
    by_documents = lists.query_gram.nnz * lists.D.shape[0]
    assert by_words < by_documents
    for most, is_tried in ((by_words, True), (by_words - 1, False)):
        monkeypatch.setattr(pair_learner, "MAX_REFIT_COST", most)
        assert some.can_refit(lists, found) == is_tried
    assert learner(30, loss="squared").can_refit(lists, found)
    monkeypatch.setattr(pattern_ridge, "MAX_WORDS", 0)
    for most, is_tried in ((by_documents, True), (by_documents - 1, False)):
        monkeypatch.setattr(pair_learner, "MAX_REFIT_COST", most)
        assert some.can_refit(lists, found) == is_tried


# ------------------------------------------------------------------------------------------------ large collections


def test_pools_of_all_that_matches_choose_as_all_documents_do(monkeypatch):
    """Where both paths run, they learn the same pairs."""
    W, choice = learn_pairs(learner(), world())
    for module in (held_out, model_selection):
        monkeypatch.setattr(module, "ALL_DOCUMENTS", 0)
    again, other = learn_pairs(learner(), world())
    assert best_pairs(again) == best_pairs(W) == PLANTED
    assert other.lexical_ndcg == pytest.approx(choice.lexical_ndcg, abs=0.02)
    assert other.ndcg == pytest.approx(choice.ndcg, abs=0.02)


@pytest.mark.parametrize("depth", [5, 15])
def test_shallow_pools_find_the_synonym_too(monkeypatch, depth):
    for module in (held_out, model_selection):
        monkeypatch.setattr(module, "ALL_DOCUMENTS", 0)
    monkeypatch.setattr(held_out, "POOL_DEPTH", depth)
    W, choice = learn_pairs(learner(), world())
    assert best_pairs(W) == PLANTED
    assert choice.ndcg > choice.lexical_ndcg + 0.3
    other = world(seed=1)
    learned = mean_ndcg(other, learned_scores(other, W, choice.pair_weight))
    assert learned > mean_ndcg(other, lexical_scores(other)) + 0.3


@pytest.mark.parametrize("size", [3, 8])
def test_with_room_for_fewer_words_pairs_are_of_the_heaviest(monkeypatch, size):
    monkeypatch.setattr(model_selection, "TUNING_SIZE", size)
    judged = world()
    W, choice = learn_pairs(learner(max_size=size), judged)
    assert choice.ndcg > choice.lexical_ndcg
    for X, used in ((judged.lists.Q, np.unique(W.nonzero()[0])), (judged.lists.D, np.unique(W.nonzero()[1]))):
        heaviest = np.argsort(-(X.toarray() ** 2).sum(axis=0), kind="stable")[:size]
        assert set(used.tolist()) <= set(heaviest.tolist())


def test_a_tuning_size_for_all_words_chooses_as_a_larger_one(monkeypatch):
    expected = learn_pairs(learner(), world())
    monkeypatch.setattr(model_selection, "TUNING_SIZE", WORDS)
    W, choice = learn_pairs(learner(max_size=WORDS), world())
    assert_array_equal(W.toarray(), expected[0].toarray())
    assert choice == expected[1]


# ------------------------------------------------------------------------------------------------ told, not learned


@pytest.mark.parametrize("nonnegative", [False, True])
def test_pinned_pairs_have_the_weight_that_was_told(nonnegative):
    told = {(0, 6): -0.5, (1, 7): 0.001, (2, 0): 2.0, (11, 11): 0.25}
    W, choice = learn_pairs(learner(8, pinned=pair(told), nonnegative=nonnegative), world(queries=120))
    assert choice.pair_weight > 0
    assert_allclose([W[place] for place in told], list(told.values()), rtol=1e-6)
    assert W.dtype == np.float32
    assert W.nnz <= 8 + len(told), "what is told comes on top of what is learned"
    if nonnegative:
        assert {tuple(place) for place in np.argwhere(W.toarray() < 0).tolist()} == {(0, 6)}


def test_forbidden_pairs_are_not_there_and_others_take_their_place():
    forbidden = pair({(0, 6): 1.0, (3, 9): 1.0, (3, 3): 1.0})
    W, _ = learn_pairs(learner(10, forbidden=forbidden), world())
    assert W.nnz == 10
    assert not W.multiply(forbidden).nnz


def test_no_negative_pair_where_none_is_wanted():
    free, _ = learn_pairs(learner(40), world())
    W, choice = learn_pairs(learner(40, nonnegative=True), world())
    assert (free.data < 0).any()
    assert (W.data > 0).all()
    assert choice.ndcg > choice.lexical_ndcg + 0.3


# ------------------------------------------------------------------------------------------------ edges


@pytest.mark.parametrize("queries", [0, 1])
def test_a_single_query_raises(queries):
    with pytest.raises(
        DataError, match=f"only {queries} judged quer(y|ies); at least two different queries are needed"
    ):
        learn_pairs(learner(), world()[np.arange(queries)])


@pytest.mark.parametrize("queries", [2, 3, 5])
def test_a_few_queries_are_enough_to_run(queries):
    W, choice = learn_pairs(learner(), world()[np.arange(queries)])
    assert np.isfinite(W.data).all()
    assert choice.ndcg >= choice.lexical_ndcg


def emptied(judged, queries=(), documents=(), unjudged=()):
    Q, D, grades = (M.toarray() for M in (judged.lists.Q, judged.lists.D, judged.lists.grades))
    Q[list(queries)], D[list(documents)], grades[list(unjudged)] = 0.0, 0.0, 0.0
    lists = ListProblem(csr_array(Q), csr_array(D), csr_array(grades))
    return TrainingMatrices(lists, LexicalRows(lists.Q, lists.D), judged.excluded)


@pytest.fixture(params=["all documents", "pools"])
def large(request, monkeypatch):
    """As if the collection were small, or large: pools of candidates instead of all documents."""
    if request.param == "pools":
        for module in (held_out, model_selection):
            monkeypatch.setattr(module, "ALL_DOCUMENTS", 0)
    return request.param == "pools"


@pytest.mark.usefixtures("large")
def test_queries_and_documents_without_words_and_queries_without_judgments_do_no_harm():
    judged = emptied(world(), queries=[0, 1, 2], documents=[5, 6], unjudged=[2, 3, 4])
    W, choice = learn_pairs(learner(), judged)
    assert choice.ndcg > choice.lexical_ndcg + 0.2
    assert np.isfinite(W.data).all()
    assert best_pairs(W) == PLANTED


@pytest.mark.parametrize("gone", ["queries", "documents", "unjudged"])
@pytest.mark.usefixtures("large")
def test_where_there_is_nothing_at_all_nothing_is_learned(gone):
    everything = range(60 if gone == "documents" else 40)
    W, choice = learn_pairs(learner(), emptied(world(), **{gone: everything}))
    assert (W.nnz, choice.pair_weight) == (0, 0.0)


def test_some_of_the_queries_keep_what_is_theirs():
    judged = replace(world(), excluded=np.arange(40))
    part = judged[np.array([7, 3])]
    assert len(part) == 2
    assert part.excluded.tolist() == [7, 3]
    assert_array_equal(lexical_scores(part), lexical_scores(judged)[[7, 3]])
    assert_array_equal(part.lists.grades.toarray(), judged.lists.grades.toarray()[[7, 3]])


def test_grades_stand_where_their_query_and_document_do():
    qrels = {"p": {"b": 2, "a": 0, "c": -1}, "q": {"a": 1}, "r": {}, "unasked": {"a": 3}}
    places = {"a": 0, "b": 1, "c": 2}
    found = grade_matrix(qrels, ["q", "r", "p"], places)
    assert found.toarray().tolist() == [[1, 0, 0], [0, 0, 0], [0, 2, -1]]
    assert found.nnz == 3, "0 is as if unjudged"
    assert grade_matrix(qrels, ["r"], places).shape == (1, 3)


def test_what_is_missed_is_learned_over_some_of_very_many_documents(monkeypatch):
    judged = world()
    nothing = csr_array(judged.lists.shape, dtype=np.float32)
    whole = learner().fit_residual(judged.lists, nothing, 0.5, Ridge())
    monkeypatch.setattr(pair_learner, "MAX_PART", 50)
    some = learner().fit_residual(judged.lists, nothing, 0.5, Ridge())
    best = [set(np.argsort(-W.toarray(), axis=None)[:6].tolist()) for W in (whole, some)]
    assert len(best[0] & best[1]) >= 5


@pytest.mark.parametrize(("queries", "documents", "each"), [(5_000, 60_000, 10), (30_000, 300, 2), (7, 60_000, 8_000)])
def test_no_part_of_large_lists_is_larger_than_its_bounds_and_every_query_is_in_one(queries, documents, each):
    """60,000 documents of which 50,000 are relevant to some query once made a dense matrix of 10.7 GB."""
    rng = np.random.default_rng(0)
    row, column = np.repeat(np.arange(queries), each), rng.integers(0, documents, queries * each)
    grades = csr_array((np.ones(len(row), np.float32), (row, column)), shape=(queries, documents))
    Q, D = (csr_array((np.ones(n, np.float32), (np.arange(n), np.arange(n) % 9)), shape=(n, 9)) for n in grades.shape)
    parts = list(pair_learner._dense_parts(ListProblem(Q, D, grades)))
    for part in parts:
        assert max(part.grades.shape) <= pair_learner.MAX_PART
        assert part.grades.shape[0] * part.grades.shape[1] <= pair_learner.MAX_PART_SCORES
        assert part.D.shape[0] == part.grades.shape[1]
        assert (np.diff(part.grades.indptr) > 0).all(), "every query keeps a relevant document"
    assert sum(part.Q.shape[0] for part in parts) == queries


def test_queries_of_later_parts_are_learned_from_too(monkeypatch):
    judged = world(queries=60)
    monkeypatch.setattr(pair_learner, "MAX_PART_SCORES", 20 * judged.lists.D.shape[0])
    nothing = csr_array(judged.lists.shape, dtype=np.float32)
    W = learner().fit_residual(judged.lists, nothing, 0.5, Ridge())
    assert best_pairs(W) == PLANTED
