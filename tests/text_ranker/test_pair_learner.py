"""Word pairs learned beside a lexical score: a planted synonym, noise that teaches nothing, pairs that are told."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from sparserank.errors import DataError
from sparserank.optim.closed_form import ClosedForm
from sparserank.optim.penalties import Ridge
from sparserank.optim.problems import ListProblem
from sparserank.optim.pruning import PairBudget
from sparserank.text_ranker import model_selection, pair_learner, training_data
from sparserank.text_ranker.constraints import PairConstraints
from sparserank.text_ranker.model_selection import (
    HELD_OUT_PARTS,
    hold_out,
    improvement_p_value,
    learn_pairs,
    make_folds,
)
from sparserank.text_ranker.pair_learner import PairLearner
from sparserank.text_ranker.training_data import LazyScores, TrainingMatrices, grade_matrix

from ..optim.judged_world import dense, objective

WORDS = 12
"""Words 0 … 5 are what queries say; word w + 6 is what relevant documents say instead of w."""
PLANTED = {(w, w + 6) for w in range(6)}


def rows_of(words_of_each):
    out = np.zeros((len(words_of_each), WORDS), np.float32)
    for row, words in zip(out, words_of_each, strict=True):
        row[list(words)] = 1.0
    length = np.linalg.norm(out, axis=1, keepdims=True)
    return csr_array(out / np.where(length > 0, length, 1.0))


def world(seed=0, queries=40, documents=60, lexical=1.0, noise=False):
    """Queries of two words each, documents of three; relevant is a document with both synonyms, or a random one."""
    rng = np.random.default_rng(seed)
    asked = [set(rng.choice(6, 2, replace=False).tolist()) for _ in range(queries)]
    told = [set(rng.choice(WORDS, 5, replace=False).tolist()) for _ in range(documents)]
    Q, D = rows_of(asked), rows_of(told)
    wanted = np.array([[{w + 6 for w in q} <= d for d in told] for q in asked])
    grades = rng.random(wanted.shape) < 0.08 if noise else wanted
    scores = np.float32(lexical) * (Q @ D.T).toarray()
    return TrainingMatrices(ListProblem(Q, D, csr_array(grades.astype(np.float32))), scores, np.full(queries, -1))


def learner(pairs=30, **options):
    fixed = {name: options.pop(name) for name in ("pinned", "forbidden") if name in options}
    limits = {name: options.pop(name) for name in ("pairs_per_word", "nonnegative") if name in options}
    options = {"n_jobs": 1} | options
    return PairLearner(PairBudget(pairs, **limits), constraints=PairConstraints(**fixed), **options)


def pair(places, shape=(WORDS, WORDS)):
    row, column = np.array(list(places)).T
    return csr_array((np.array(list(places.values()), np.float64), (row, column)), shape=shape)


def learned_scores(judged, W, gain):
    return judged.lexical_scores + np.float32(gain) * (
        judged.lists.Q.toarray() @ W.toarray() @ judged.lists.D.toarray().T
    )


def test_a_planted_synonym_is_learned_and_helps_queries_that_were_not_there():
    W, choice = learn_pairs(learner(), world(), callback=(messages := []).append)
    best = {divmod(int(place), WORDS) for place in np.argsort(-W.toarray(), axis=None)[:6]}
    assert best == PLANTED
    assert choice.pair_weight > 0
    assert choice.ndcg > choice.lexical_ndcg + 0.3
    other = world(seed=1)
    assert other.mean_ndcg(learned_scores(other, W, choice.pair_weight)) > other.mean_ndcg(other.lexical_scores) + 0.3
    assert messages[0] == "tuning the regularization of pairs"
    assert messages[-2:] == ["learning pairs without the held-out queries", "learning pairs from all queries"]


def test_what_the_choice_says_is_what_the_held_out_queries_get(monkeypatch):
    monkeypatch.setattr(model_selection, "MAX_ROTATED_QUERIES", 0)
    judged = world()
    _, choice = learn_pairs(learner(), judged)
    ((held, rest),) = hold_out(np.arange(len(judged)), 0)
    part = learner().fit(
        ClosedForm(judged.lists.D), judged.lists.select_queries(rest), choice.query_normalization, choice.ridge
    )
    scores = learned_scores(judged[held], part, choice.pair_weight)
    assert choice.lexical_ndcg == pytest.approx(judged[held].mean_ndcg(judged.lexical_scores[held]))
    assert choice.ndcg == pytest.approx(judged[held].mean_ndcg(scores), abs=0.01)


@pytest.mark.parametrize("seed", range(3))
def test_what_holds_pairs_back_is_what_the_whole_W_does_best_with_on_the_held_out_queries(seed, monkeypatch):
    monkeypatch.setattr(model_selection, "MAX_ROTATED_QUERIES", 0)
    judged = world(seed, queries=24, documents=30)
    ((held, rest),) = hold_out(np.arange(24), 0)
    part, judge = judged.lists.select_queries(rest), judged[held]
    worth = {}
    for a, evenness, b in product(model_selection.RIDGES, model_selection.QUERY_NORMALIZATIONS, model_selection.RIDGES):
        Q, D, Y = dense(replace(part, query_normalization=evenness))
        left, right = np.linalg.inv(Q @ Q.T + a * np.eye(len(Q))), np.linalg.inv(D @ D.T + b * np.eye(len(D)))
        scores = judge.lists.Q.toarray() @ Q.T @ left @ Y @ right @ D @ D.T
        unit, base = scores / scores.std(), judge.lexical_scores / judge.lexical_scores.std()
        worth[evenness, Ridge(a, b)] = max(judge.mean_ndcg(base + gain * unit) for gain in model_selection.PAIR_WEIGHTS)
    _, choice = learn_pairs(learner(), judged)
    assert worth[choice.query_normalization, choice.ridge] == pytest.approx(max(worth.values()), abs=1e-3)


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


def test_at_most_5_of_100_collections_of_noise_keep_pairs():
    kept = []
    for seed in range(100):
        W, choice = learn_pairs(learner(), world(seed, noise=True))
        kept.append(choice.pair_weight > 0)
        if choice.pair_weight == 0:
            assert (W.nnz, W.shape, W.dtype) == (0, (WORDS, WORDS), np.float32)
            assert choice.ndcg == choice.lexical_ndcg
            assert choice.p_value > model_selection.SIGNIFICANCE_LEVEL
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
    W, choice = learn_pairs(learner(), replace(judged, lexical_scores=judged.lists.grades.toarray()))
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


@pytest.mark.parametrize("most", [0, 50])
def test_beyond_the_largest_gram_pairs_are_screened_and_the_synonym_is_still_found(monkeypatch, most):
    monkeypatch.setattr(pair_learner, "LARGEST_GRAM", most)
    judged = world()
    W, choice = learn_pairs(learner(), judged)
    assert (choice.query_normalization, choice.ridge) == (model_selection.QUERY_NORMALIZATIONS[0], Ridge())
    assert {divmod(int(place), WORDS) for place in np.argsort(-W.toarray(), axis=None)[:6]} == PLANTED
    assert choice.ndcg > choice.lexical_ndcg + 0.3


def test_screened_pairs_fit_almost_as_well_as_those_of_the_closed_form(monkeypatch):
    rng = np.random.default_rng(0)
    often = 1.0 / np.arange(1, 81)
    Q, D = (csr_array(rng.poisson(size * often / often.sum(), (n, 80)) / 5.0) for n, size in ((90, 5), (120, 30)))
    grades = csr_array((rng.random((90, 120)) < 0.05).astype(np.float32))
    lists = ListProblem(Q.astype(np.float32), D.astype(np.float32), grades)
    nothing, closed = csr_array(lists.shape), learner(300).fit(ClosedForm(lists.D), lists, 0.5, Ridge())
    monkeypatch.setattr(pair_learner, "LARGEST_GRAM", 100)
    screened = learner(300).fit(ClosedForm(lists.D), lists, 0.5, Ridge())
    problem = replace(lists, query_normalization=0.5)
    best, found, start = (objective(problem, W, Ridge(1.0, 1.0 / 3.0)) for W in (closed, screened, nothing))
    assert start - found > 0.8 * (start - best)


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
def test_a_single_query_is_refused(queries):
    with pytest.raises(DataError, match="at least two are needed"):
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
    return TrainingMatrices(lists, (lists.Q @ lists.D.T).toarray(), judged.excluded)


@pytest.mark.parametrize("most", [0, 20_000])
def test_queries_and_documents_without_words_and_queries_without_judgments_do_no_harm(monkeypatch, most):
    monkeypatch.setattr(pair_learner, "LARGEST_GRAM", most)
    judged = emptied(world(), queries=[0, 1, 2], documents=[5, 6], unjudged=[2, 3, 4])
    W, choice = learn_pairs(learner(), judged)
    assert choice.ndcg > choice.lexical_ndcg + 0.2
    assert np.isfinite(W.data).all()
    assert {divmod(int(place), WORDS) for place in np.argsort(-W.toarray(), axis=None)[:6]} == PLANTED


@pytest.mark.parametrize("gone", ["queries", "documents", "unjudged"])
@pytest.mark.parametrize("most", [0, 20_000])
def test_where_there_is_nothing_at_all_nothing_is_learned(monkeypatch, gone, most):
    monkeypatch.setattr(pair_learner, "LARGEST_GRAM", most)
    everything = range(60 if gone == "documents" else 40)
    W, choice = learn_pairs(learner(), emptied(world(), **{gone: everything}))
    assert (W.nnz, choice.pair_weight) == (0, 0.0)


def test_some_of_the_queries_keep_what_is_theirs():
    judged = replace(world(), excluded=np.arange(40))
    part = judged[np.array([7, 3])]
    assert len(part) == 2
    assert part.excluded.tolist() == [7, 3]
    assert_array_equal(part.lexical_scores, judged.lexical_scores[[7, 3]])
    assert_array_equal(part.lists.grades.toarray(), judged.lists.grades.toarray()[[7, 3]])


def test_a_querys_own_document_is_never_what_it_is_judged_by():
    judged = world()
    own = np.array([int(row.argmax()) for row in judged.lists.grades.toarray()])
    assert replace(judged, excluded=own).mean_ndcg(judged.lists.grades.toarray()) < judged.mean_ndcg(
        judged.lists.grades.toarray()
    )


@pytest.mark.parametrize("n", [2, 3, 4, 5, 41])
def test_of_few_queries_each_is_held_out_once_and_nothing_is_in_both(n):
    folds = hold_out(np.arange(n), random_state=3)
    assert sorted(np.concatenate([held for held, _ in folds]).tolist()) == list(range(n))
    for held, rest in folds:
        assert 1 <= len(held) <= -(-n // HELD_OUT_PARTS)
        assert sorted([*held.tolist(), *rest.tolist()]) == list(range(n))
        assert held.tolist() == sorted(held.tolist())
    assert_array_equal(hold_out(np.arange(n), random_state=3)[0][0], folds[0][0])


@pytest.mark.parametrize("few", [0, 500])
@pytest.mark.parametrize("seed", range(5))
def test_a_group_is_held_out_whole_or_not_at_all(monkeypatch, seed, few):
    monkeypatch.setattr(model_selection, "MAX_ROTATED_QUERIES", few)
    groups = np.random.default_rng(seed).integers(0, 25, 120)
    for held, rest in hold_out(groups, seed):
        assert not set(groups[held].tolist()) & set(groups[rest].tolist())
        assert len(held) == pytest.approx(30, abs=8)


def test_of_many_queries_a_quarter_is_held_out():
    n = model_selection.MAX_ROTATED_QUERIES + 1
    ((held, rest),) = hold_out(np.arange(n), 0)
    assert len(held) == pytest.approx(n / HELD_OUT_PARTS, abs=1)
    assert len(held) + len(rest) == n


def test_which_are_held_out_goes_with_the_seed():
    assert len({tuple(hold_out(np.arange(40), seed)[0][0].tolist()) for seed in range(5)}) == 5


def literal_p_value(gain, groups):
    """Every sign pattern of the groups: how often does any weight reach the largest studentized gain observed?"""
    names, (settings, weights, n) = sorted(set(groups.tolist())), gain.shape
    mean = [[sum(gain[s, w, q] for s in range(settings)) / settings for q in range(n)] for w in range(weights)]
    of_group = [
        [sum(row[q] for q in range(n) if groups[q] == name) / sum(groups == name) for name in names] for row in mean
    ]

    def statistic(signs):
        return max(
            sum(x * y for x, y in zip(row, signs, strict=True)) / sum(x * x for x in row) ** 0.5 for row in of_group
        )

    observed = statistic([1] * len(names))
    patterns = list(product((1, -1), repeat=len(names)))
    return sum(statistic(signs) >= observed - 1e-9 for signs in patterns) / len(patterns) if observed > 0 else 1.0


@pytest.mark.parametrize("seed", range(6))
def test_the_p_value_is_that_of_all_sign_patterns(seed):
    rng = np.random.default_rng(seed)
    groups, gain = rng.integers(0, 10, 24), rng.normal(0.04 * seed, 0.2, (3, 4, 24))
    assert improvement_p_value(gain, groups) == pytest.approx(literal_p_value(gain, groups), abs=0.025)


def test_p_values_of_noise_are_small_as_seldom_as_they_say():
    rng = np.random.default_rng(0)
    p = [improvement_p_value(rng.normal(0, 0.2, (3, 10, 60)), np.arange(60)) for _ in range(400)]
    assert np.mean(np.array(p) <= 0.05) == pytest.approx(0.05, abs=0.025)


def test_near_duplicates_count_as_one_observation():
    """Ten copies of six queries are no more evidence than six queries."""
    once, groups = np.random.default_rng(1).normal(0.1, 0.2, (2, 3, 6)), np.arange(6)
    copies = improvement_p_value(np.tile(once, 10), np.tile(groups, 10))
    assert copies == pytest.approx(improvement_p_value(once, groups), abs=0.01)


def test_no_gain_is_no_evidence_and_a_gain_of_every_query_is_as_much_as_there_can_be():
    nothing, groups = np.zeros((1, 1, 20)), np.arange(20)
    assert improvement_p_value(nothing, groups) == 1.0
    assert improvement_p_value(nothing - 0.25, groups) == 1.0
    assert improvement_p_value(nothing + 0.25, groups) < 0.001
    assert improvement_p_value(nothing + 0.25, np.zeros(20, np.int64)) == 1.0, "one group says nothing"


def test_grades_stand_where_their_query_and_document_do():
    qrels = {"p": {"b": 2, "a": 0, "c": -1}, "q": {"a": 1}, "r": {}, "unasked": {"a": 3}}
    places = {"a": 0, "b": 1, "c": 2}
    found = grade_matrix(qrels, ["q", "r", "p"], places)
    assert found.toarray().tolist() == [[1, 0, 0], [0, 0, 0], [0, 2, -1]]
    assert found.nnz == 3, "0 is as if unjudged"
    assert grade_matrix(qrels, ["r"], places).shape == (1, 3)


def test_lexical_scores_need_not_be_made_before_they_are_looked_at():
    judged = world()
    rows = csr_array(judged.lexical_scores)
    lazy = replace(judged, lexical_scores=LazyScores(rows, csr_array(np.eye(rows.shape[1], dtype=np.float32))))
    W, choice = learn_pairs(learner(), judged)
    again, same = learn_pairs(learner(), lazy)
    assert_array_equal(again.toarray(), W.toarray())
    assert same == choice


def test_of_very_many_documents_fewer_queries_are_chosen_on_and_the_squared_loss_stays(monkeypatch):
    judged = world()
    monkeypatch.setattr(training_data, "MAX_DENSE_SCORES", 8 * judged.lists.D.shape[0])
    assert {len(held) for _, held in make_folds(judged, 0)} == {8}
    _, choice = learn_pairs(replace(learner(), loss="domination"), judged)
    assert choice.pair_weight > 0
    assert choice.strength is None
    assert choice.tried == ()


def test_what_is_missed_is_learned_over_some_of_very_many_documents(monkeypatch):
    judged = world()
    nothing = csr_array(judged.lists.shape, dtype=np.float32)
    whole = learner().fit_residual(judged.lists, nothing, 0.5, Ridge())
    monkeypatch.setattr(pair_learner, "LARGEST_GRAM", 50)
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
        assert max(part.grades.shape) <= pair_learner.LARGEST_GRAM
        assert part.grades.shape[0] * part.grades.shape[1] <= training_data.MAX_DENSE_SCORES
        assert part.D.shape[0] == part.grades.shape[1]
        assert (np.diff(part.grades.indptr) > 0).all(), "every query keeps a relevant document"
    assert sum(part.Q.shape[0] for part in parts) == queries


def test_queries_of_later_parts_are_learned_from_too(monkeypatch):
    judged = world(queries=60)
    monkeypatch.setattr(training_data, "MAX_DENSE_SCORES", 20 * judged.lists.D.shape[0])
    nothing = csr_array(judged.lists.shape, dtype=np.float32)
    W = learner().fit_residual(judged.lists, nothing, 0.5, Ridge())
    assert {divmod(int(place), WORDS) for place in np.argsort(-W.toarray(), axis=None)[:6]} == PLANTED
