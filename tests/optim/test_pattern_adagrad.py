"""Adagrad on candidate lists equals the algorithm written out, batch by batch."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from sparserank.errors import ConfigError
from sparserank.optim.candidate_lists import CandidateLists, RerankingProblem
from sparserank.optim.losses import Domination, Hinge, Softmax, Squared
from sparserank.optim.pattern_adagrad import ListGradient, PatternAdagrad
from sparserank.optim.penalties import L2, NoPenalty
from sparserank.optim.problems import ListProblem

from . import judged_worlds as worlds

LOSSES = [Domination(), Softmax(), Hinge(0.6)]


def loss_of_list(loss, scores, share):
    """The loss of one list and its gradient by the scores."""
    relevant, others = np.flatnonzero(share > 0), np.flatnonzero(share == 0)
    total, gradient = 0.0, np.zeros(len(scores))
    for p in relevant:
        if isinstance(loss, Hinge):
            for n in others:
                if (short := loss.margin - scores[p] + scores[n]) > 0:
                    total += share[p] * short / len(others)
                    gradient[p] -= share[p] / len(others)
                    gradient[n] += share[p] / len(others)
            continue
        rivals = others if isinstance(loss, Domination) else [d for d in range(len(scores)) if d != p]
        away = [math.exp(scores[d] - scores[p]) for d in rivals]
        total += share[p] * math.log(1.0 + sum(away))
        for d, one in zip(rivals, away, strict=True):
            gradient[d] += share[p] * one / (1.0 + sum(away))
            gradient[p] -= share[p] * one / (1.0 + sum(away))
    return total, gradient


def loss_of(problem, w, queries):
    """The loss of some queries and its gradient by a dense W."""
    Q, D = worlds.dense(problem.Q, problem.D)
    lists, total, gradient = problem.candidates, 0.0, np.zeros_like(w)
    for q in queries:
        span = slice(lists.start[q], lists.start[q + 1])
        documents = D[lists.document[span]]
        scores = lists.base[span].astype(np.float64) + documents @ (Q[q] @ w)
        loss, by_score = loss_of_list(problem.loss, scores, lists.share[span].astype(np.float64))
        total += loss
        gradient += np.outer(Q[q], by_score @ documents)
    return total, gradient


def literal(problem, W, solver, batch, fixed=None, nonnegative=False):
    """Adagrad, entry by entry; what each epoch yields."""
    w, pattern = W.toarray().astype(np.float64), np.zeros(W.shape, np.bool_)
    pattern[np.repeat(np.arange(W.shape[0]), np.diff(W.indptr)), W.indices] = True
    free = pattern if fixed is None else pattern & ~fixed
    squares, rng = np.full(W.shape, solver.initial_squares), np.random.default_rng(solver.seed)
    queries = np.flatnonzero(np.diff(problem.candidates.start) > 1)
    for _ in range(solver.epochs):
        order, total = rng.permutation(queries), 0.0
        for at in range(0, len(order), batch):
            loss, g = loss_of(problem, w, order[at : at + batch])
            total += loss
            moves = free & (np.abs(g) > 1e-9)
            squares[moves] += g[moves] ** 2
            w[moves] -= solver.rate * g[moves] / np.sqrt(squares[moves])
            if nonnegative:
                w[moves] = np.maximum(w[moves], 0.0)
        yield total / len(order), w.copy()


@pytest.fixture(params=LOSSES, ids=["domination", "softmax", "hinge"])
def problem(request):
    return worlds.reranking(loss=request.param, queries=40, weighted=True)


def start(problem, seed=0):
    W = worlds.pattern((problem.Q.shape[1], problem.D.shape[1]), seed)
    W.data *= np.float32(0.3)
    return W


@pytest.mark.parametrize("initial", [0.1, 1.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_epochs_are_those_of_the_literal_algorithm(problem, initial, seed):
    W, solver = start(problem), PatternAdagrad(3, 0.2, initial, seed, n_jobs=2)
    found = list(solver.iterate(problem, NoPenalty(), W))
    expected = list(literal(problem, W, solver, batch=4))
    assert len(found) == len(expected) == 3
    for (loss, weights), (literal_loss, dense) in zip(found, expected, strict=True):
        assert loss == pytest.approx(literal_loss, rel=1e-3)
        assert_allclose(weights.toarray(), dense, atol=2e-3)
        assert_array_equal(weights.indices, W.indices)


def one_query(problem):
    """The lists of the first query that has a loss, alone."""
    lists = problem.candidates
    query = next(q for q in range(len(lists)) if 0 < (lists.share[lists.start[q] : lists.start[q + 1]] > 0).mean() < 1)
    span = slice(lists.start[query], lists.start[query + 1])
    parts = (getattr(lists, name)[span] for name in ("document", "base", "grade", "share"))
    alone = CandidateLists(np.array([0, span.stop - span.start]), *parts)
    return RerankingProblem(problem.Q[[query]], problem.D, alone, problem.loss)


def test_the_first_step_of_a_pair_is_as_long_as_the_rate(problem):
    W = start(problem)
    found = PatternAdagrad(1, 0.25).solve(one_query(problem), NoPenalty(), W).weights
    moved = np.abs(found.data - W.data)
    assert_allclose(moved[moved > 0], 0.25, rtol=1e-4)
    assert (moved > 0).any()


@pytest.mark.parametrize("nonnegative", [False, True])
def test_fixed_entries_stay_and_none_falls_below_zero_where_none_may(problem, nonnegative):
    W = start(problem)
    W.data = np.abs(W.data)
    row = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))
    fixed = np.indices(W.shape).sum(axis=0) % 3 == 0
    solver = PatternAdagrad(4, 0.3, 0.1, n_jobs=1)
    found = solver.solve(problem, NoPenalty(), W, fixed=fixed[row, W.indices], nonnegative=nonnegative).weights
    *_, (_, expected) = literal(problem, W, solver, 4, fixed, nonnegative)
    assert_allclose(found.toarray(), expected, atol=5e-3)
    is_fixed = fixed[row, W.indices]
    assert_array_equal(found.data[is_fixed], W.data[is_fixed])
    assert (found.data[~is_fixed] != W.data[~is_fixed]).any()
    assert (found.data < 0.0).any() != nonnegative


@pytest.mark.parametrize("n_jobs", [2, 3, 5])
def test_any_number_of_threads_gives_the_same_bits(problem, n_jobs):
    one, many = (PatternAdagrad(3, 0.3, n_jobs=n).solve(problem, NoPenalty(), start(problem)) for n in (1, n_jobs))
    assert_array_equal(one.weights.data, many.weights.data)
    assert one.history == many.history


def test_another_seed_gives_another_order_of_queries(problem):
    one, other = (PatternAdagrad(1, 0.3, seed=n).solve(problem, NoPenalty(), start(problem)) for n in (0, 1))
    assert (one.weights.data != other.weights.data).any()


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_parts_of_the_gradient_add_up_to_that_of_the_formula(problem, n_jobs):
    W, queries = start(problem), np.array([4, 0, 7, 3, 9, 31])
    gradient = ListGradient(problem, W)
    with ThreadPoolExecutor(n_jobs) as pool:
        loss = gradient.add(queries, W.data, pool)
    expected_loss, expected = loss_of(problem, W.toarray().astype(np.float64), queries)
    assert loss == pytest.approx(expected_loss, rel=1e-5)
    row = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))
    assert_allclose(gradient.parts.sum(axis=0), expected[row, W.indices], atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_loss_falls_from_epoch_to_epoch_where_there_is_something_to_learn(loss):
    """Query word i asks for the documents that have word i."""
    rng = np.random.default_rng(0)
    Q, D = (worlds.sparse(rng, (n, 8), 0.3) for n in (300, 60))
    grades = csr_array(((Q @ D.T).toarray() > 0.5).astype(np.float32))
    lists = ListProblem(Q, D, grades)
    candidates = CandidateLists.build(lists, np.full(300, -1), np.empty((300, 0), np.int64), 20)
    W = csr_array(np.full((8, 8), 1e-6, np.float32))
    solution = PatternAdagrad(5, 0.1).solve(RerankingProblem(Q, D, candidates, loss), NoPenalty(), W)
    assert all(after < before for before, after in pairwise(solution.history))
    learned = solution.weights.toarray()
    assert learned.diagonal().min() > (learned - np.diag(learned.diagonal())).max()
    assert solution.info == {"epochs": 5}


def test_the_W_that_was_given_is_left_alone_and_may_have_its_columns_in_any_order(problem):
    W = start(problem)
    turned = csr_array(W, copy=True)
    for row in range(W.shape[0]):
        span = slice(W.indptr[row], W.indptr[row + 1])
        turned.indices[span], turned.data[span] = W.indices[span][::-1], W.data[span][::-1]
    turned.has_sorted_indices = False
    before = turned.indices.copy(), turned.data.copy()
    found = PatternAdagrad(2, 0.3).solve(problem, NoPenalty(), turned).weights
    assert_array_equal(turned.indices, before[0])
    assert_array_equal(turned.data, before[1])
    assert_array_equal(found.toarray(), PatternAdagrad(2, 0.3).solve(problem, NoPenalty(), W).weights.toarray())


def test_where_nothing_can_be_compared_w_stays(problem):
    n = problem.Q.shape[0]
    lists = ListProblem(problem.Q, problem.D, csr_array((n, problem.D.shape[0]), dtype=np.float32))
    for found in (np.empty((n, 0), np.int64), np.zeros((n, 1), np.int64), np.tile([0, 1], (n, 1))):
        candidates = CandidateLists.build(lists, np.full(n, -1), found, 0)
        empty = RerankingProblem(problem.Q, problem.D, candidates, problem.loss)
        solution = PatternAdagrad(2, 0.5).solve(empty, NoPenalty(), start(problem))
        assert_array_equal(solution.weights.data, start(problem).data)
        assert solution.history == (0.0, 0.0)


def test_an_empty_pattern_stays_empty(problem):
    W = csr_array((problem.Q.shape[1], problem.D.shape[1]), dtype=np.float32)
    assert PatternAdagrad(2, 0.5).solve(problem, NoPenalty(), W).weights.nnz == 0


def test_a_grade_below_zero_counts_as_no_grade():
    lists = worlds.lists(queries=40)
    below = lists.grades.toarray()
    below[below == 0] = -(np.random.default_rng(0).random((below == 0).sum()) < 0.2).astype(np.float32)
    found = np.tile(np.arange(12), (40, 1))
    solutions = []
    for grades in (lists.grades, csr_array(below)):
        judged = ListProblem(lists.Q, lists.D, grades)
        candidates = CandidateLists.build(judged, np.full(40, -1), found, 0)
        problem = RerankingProblem(lists.Q, lists.D, candidates, Domination())
        solutions.append(PatternAdagrad(2, 0.3).solve(problem, NoPenalty(), start(problem)).weights.data)
    assert_array_equal(*solutions)


@pytest.mark.parametrize(
    ("options", "name"), [({"rate": 0.0}, "rate"), ({"epochs": 0}, "epochs"), ({"n_jobs": 0}, "n_jobs")]
)
def test_settings_that_make_no_sense_raise(options, name):
    with pytest.raises(ConfigError, match=name):
        PatternAdagrad(**options)


def test_another_loss_or_penalty_raises_and_names_those_that_work():
    problem = worlds.reranking(loss=Squared())
    with pytest.raises(ConfigError, match="PatternAdagrad needs the loss Domination or Softmax or Hinge; got Squared"):
        PatternAdagrad().solve(problem, NoPenalty(), start(problem))
    with pytest.raises(ConfigError, match="PatternAdagrad needs the penalty NoPenalty; got L2"):
        PatternAdagrad().solve(worlds.reranking(), L2(1.0), start(problem))
