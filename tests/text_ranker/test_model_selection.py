"""Hyperparameters are those that do best on held-out queries by a literal search; p-values are those of the test."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

from sparserank.optim.closed_form import Side, factorize
from sparserank.optim.penalties import Ridge
from sparserank.text_ranker import held_out, model_selection
from sparserank.text_ranker.candidates import CandidateSearch
from sparserank.text_ranker.held_out import HeldOut, hold_out
from sparserank.text_ranker.model_selection import (
    PAIR_WEIGHTS,
    QUERY_NORMALIZATIONS,
    RIDGES,
    improvement_p_value,
    learn_pairs,
    make_folds,
    score_held_out,
    tune_loss,
    tune_pair_weight,
    tune_ridge,
)

from ..optim.judged_world import dense
from .planted_synonyms import dense_ndcg, learned_scores, learner, lexical_scores, mean_ndcg, world


def literal_scores(train, queries, ridge, query_normalization):
    """Q' W Dᵀ of held-out queries Q' by the dense closed form."""
    lists = replace(train.lists, query_normalization=query_normalization)
    Q, D, Y = dense(lists)
    V = np.diag(lists.query_weights)
    left, right = Q.T @ V @ Q + ridge.query * np.eye(Q.shape[1]), D.T @ D + ridge.document * np.eye(D.shape[1])
    W = np.linalg.solve(left, Q.T @ V @ Y @ D) @ np.linalg.inv(right)
    return queries.lists.Q.toarray() @ W @ D.T


@pytest.mark.parametrize("queries", [5, 30])
@pytest.mark.parametrize("documents", [9, 60])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_to_tune_the_ridge_with_are_those_of_the_closed_form_by_either_face(queries, documents, weighted):
    judged, other = world(queries=queries, documents=documents), world(1, queries=7, documents=documents)
    if weighted:
        weight = np.random.default_rng(0).random(queries) + 0.5
        judged = replace(judged, lists=replace(judged.lists, weight=weight))
    other = replace(other, lists=replace(other.lists, D=judged.lists.D))
    side, one = Side.of(judged.lists.D), HeldOut.of(other, None)
    assert (side.words is None) == (documents == 9)
    assert (Side.of(judged.lists.Q).words is None) == (queries == 5)
    factors, tried = {b: factorize(side.compute_gram(), b) for b in RIDGES}, set()
    for power, ridge, scores in model_selection._iterate_pair_scores(side, factors, judged, one):
        expected = literal_scores(judged, other, ridge, power)
        assert_allclose(scores, expected.ravel(), atol=1e-4)
        tried.add((power, ridge))
    assert tried == {(power, Ridge(a, b)) for power, a, b in product(QUERY_NORMALIZATIONS, RIDGES, RIDGES)}


@pytest.mark.parametrize("documents", [9, 30])
@pytest.mark.parametrize("seed", range(3))
def test_the_ridge_is_that_with_which_W_before_pruning_does_best_on_the_held_out_queries(seed, documents, monkeypatch):
    monkeypatch.setattr(held_out, "MAX_ROTATED_QUERIES", 0)
    judged = world(seed, queries=24, documents=documents)
    ((held, rest),) = hold_out(np.arange(24), 0)
    part, judge = judged[rest], judged[held]
    ndcg, base = {}, lexical_scores(judge) / lexical_scores(judge).std()
    for a, power, b in product(RIDGES, QUERY_NORMALIZATIONS, RIDGES):
        scores = literal_scores(part, judge, Ridge(a, b), power)
        unit = scores / scores.std()
        ndcg[power, Ridge(a, b)] = max(mean_ndcg(judge, base + weight * unit) for weight in PAIR_WEIGHTS)
    choice = tune_ridge(make_folds(judged, 0), CandidateSearch.of(judged), lambda message: None)
    assert ndcg[choice.query_normalization, Ridge(choice.ridge_query, choice.ridge_document)] == pytest.approx(
        max(ndcg.values()), abs=1e-3
    )
    assert choice.ndcg == pytest.approx(max(ndcg.values()), abs=1e-3)
    assert choice.lexical_ndcg == pytest.approx(mean_ndcg(judge, lexical_scores(judge)))


def test_where_pairs_are_unlikely_to_help_it_is_said_early():
    messages = []
    for seed in range(4):
        judged = world(seed, noise=True)
        choice = tune_ridge(make_folds(judged, 0), CandidateSearch.of(judged), messages.append)
        assert any("unlikely to help" in message for message in messages) == (choice.p_value > model_selection.UNLIKELY)
        messages.clear()
    judged = world()
    tune_ridge(make_folds(judged, 0), CandidateSearch.of(judged), messages.append)
    assert not any("unlikely to help" in message for message in messages)


def test_the_pair_weight_is_the_best_of_those_tried():
    judged = world()
    folds, search = make_folds(judged, 0), CandidateSearch.of(judged)
    W = csr_array(np.eye(12, k=6, dtype=np.float32))
    scored = [score_held_out(fold.held_out, search, W) for fold in folds]
    result = tune_pair_weight(scored, 0.25, Ridge())
    lexical, pairs = lexical_scores(judged), learned_scores(judged, W, 1.0) - lexical_scores(judged)
    tried = {w * lexical.std() / pairs.std(): 0.0 for w in PAIR_WEIGHTS}
    for weight in tried:
        tried[weight] = float(np.mean(dense_ndcg(judged, learned_scores(judged, W, weight))))
    assert result.ndcg == pytest.approx(max(tried.values()), abs=1e-6)
    assert tried[min(tried, key=lambda weight: abs(weight - result.pair_weight))] == pytest.approx(result.ndcg)
    assert tune_pair_weight(scored, 0.25, Ridge(), level=-1.0).pair_weight == 0.0


@pytest.mark.parametrize("loss", ["domination", "softmax", "hinge"])
def test_rate_and_epochs_are_the_best_of_those_tried_and_none_if_the_squared_loss_is_better(loss):
    judged = world()
    folds, search, one = make_folds(judged, 0), CandidateSearch.of(judged), learner(loss=loss)
    W, result = learn_pairs(one, judged)
    names, values = zip(*result.tried, strict=True)
    assert names[0] == "squared"
    assert all(name.startswith(f"{loss}, rate ") for name in names[1:])
    assert result.ndcg == max(values)
    assert (result.epochs == 0) == (max(values) == values[0])
    if result.epochs:
        assert f"{loss}, rate {result.rate:g}, {result.epochs} epochs" == names[int(np.argmax(values))]
    assert W.nnz <= 30
    squared = tune_loss(replace(one, loss="squared"), [], folds, search, [], result, lambda message: None, list)
    assert squared == (result.ndcg, 0.0, 0, [])


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
