"""The closed form from items and from words, against the objective, the normal equations and its dense formula."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import cho_solve
from scipy.sparse import csr_array

from sparserank.optim import closed_form
from sparserank.optim.closed_form import ClosedForm, Side, compute_gram, compute_middle, transposed_product
from sparserank.optim.penalties import Ridge
from sparserank.optim.problems import ListProblem

from .judged_world import assembled, closed, dense, objective, on_pattern, some_lists

RIDGES = [Ridge(), Ridge(0.3, 3.0), Ridge(3.0, 0.1)]
FACES = [
    pytest.param({"queries": few_queries, "documents": few_documents}, id=f"{left}-{right}")
    for few_queries, left in ((5, "queries"), (9, "query words"))
    for few_documents, right in ((5, "documents"), (12, "document words"))
]
"""Fewer items than words on a side, or more."""


def weighted(lists, seed=0):
    return replace(lists, weight=np.random.default_rng(seed).random(lists.Q.shape[0]) + 0.5)


def formula(lists, ridge, words=None, document_words=None):
    """(QᵀVQ + aI)⁻¹ QᵀVYD (DᵀD + bI)⁻¹ at some of the words."""
    Q, D, Y = dense(lists)
    V = np.diag(lists.query_weights)
    words = np.arange(Q.shape[1]) if words is None else words
    document_words = np.arange(D.shape[1]) if document_words is None else document_words
    Q, D, W = Q[:, words], D[:, document_words], np.zeros(lists.shape)
    left, right = Q.T @ V @ Q + ridge.query * np.eye(len(words)), D.T @ D + ridge.document * np.eye(D.shape[1])
    W[np.ix_(words, document_words)] = np.linalg.solve(left, Q.T @ V @ Y @ D) @ np.linalg.inv(right)
    return W


# ---- both faces


@pytest.mark.parametrize("ridge", RIDGES)
@pytest.mark.parametrize("has_weights", [False, True])
@pytest.mark.parametrize("shape", FACES)
def test_every_pair_of_faces_gives_the_dense_formula(shape, has_weights, ridge):
    lists = some_lists(**shape)
    lists = weighted(lists) if has_weights else lists
    left, right = Side.of(lists.Q, lists.weight), ClosedForm(lists.D).documents
    assert (left.words is None) == (shape["queries"] == 5)
    assert (right.words is None) == (shape["documents"] == 5)
    assert_allclose(closed(lists, ridge), formula(lists, ridge), atol=1e-5)


@pytest.mark.parametrize("has_weights", [False, True])
@pytest.mark.parametrize("left_words", [False, True])
@pytest.mark.parametrize("right_words", [False, True])
def test_the_faces_of_one_problem_agree(has_weights, left_words, right_words):
    """The same problem by each face, whichever is smaller."""
    lists, ridge = some_lists(), Ridge(0.4, 0.7)
    lists = weighted(lists) if has_weights else lists
    Q, D, Y = dense(lists)
    left = Side(lists.Q, lists.weight, np.arange(6) if left_words else None)
    right = Side(lists.D, None, np.arange(7) if right_words else None)
    M = cho_solve(left.factorize(ridge.query), compute_middle(left, right, lists))
    M = cho_solve(right.factorize(ridge.document), M.T).T
    W = (M if left_words else Q.T @ M) if right_words else (M @ D if left_words else Q.T @ M @ D)
    assert_allclose(W, formula(lists, ridge), atol=1e-5)
    gathered = left.gather(np.asarray(Y, np.float32))
    assert_allclose(
        compute_middle(left, right, lists, np.asarray(Y, np.float32)), right.gather(gathered.T).T, atol=1e-5
    )
    assert_allclose(compute_middle(left, right, lists), compute_middle(left, right, lists, Y.astype("f4")), atol=1e-5)


@pytest.mark.parametrize("shape", FACES)
def test_other_targets_take_the_place_of_the_problems(shape):
    lists, ridge = weighted(some_lists(**shape)), Ridge(0.4, 0.7)
    Q, D, _ = dense(lists)
    Y, V = np.random.default_rng(5).normal(size=lists.grades.shape).astype(np.float32), np.diag(lists.query_weights)
    expected = np.linalg.solve(Q.T @ V @ Q + 0.4 * np.eye(6), Q.T @ V @ Y @ D) @ np.linalg.inv(
        D.T @ D + 0.7 * np.eye(7)
    )
    found, _ = assembled(ClosedForm(lists.D).iterate_rows(lists, ridge, Y), lists.shape)
    assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("ridge", RIDGES)
def test_W_solves_the_normal_equations(ridge):
    lists = some_lists()
    everything = np.ones(lists.shape, np.bool_)
    assert_allclose(closed(lists, ridge), on_pattern(lists, ridge, everything), atol=1e-5)


@given(st.integers(0, 30), st.sampled_from(RIDGES), st.sampled_from([0.0, 0.25, 1.0]))
def test_no_step_away_from_W_makes_the_objective_less(seed, ridge, query_normalization):
    lists = some_lists(seed, query_normalization=query_normalization)
    W = closed(lists, ridge)
    least = objective(lists, csr_array(W), ridge)
    for step in np.random.default_rng(seed).normal(size=(5, *W.shape)):
        # along any line the objective is a parabola: its derivative at W is what two points tell
        ahead, behind = (objective(lists, csr_array(W + s * 0.1 * step), ridge) for s in (1, -1))
        assert min(ahead, behind) > least
        assert abs(ahead - behind) < 1e-3 * (ahead + behind - 2 * least)


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
@pytest.mark.parametrize("product", [0, closed_form.MAX_PRODUCT])
@pytest.mark.parametrize("shape", FACES)
def test_rows_in_blocks_of_any_size_and_in_either_order_of_products_are_those_of_the_dense_W(
    monkeypatch, rows, product, shape
):
    monkeypatch.setattr(closed_form, "BLOCK_ROWS", rows)
    monkeypatch.setattr(closed_form, "MAX_PRODUCT", product)
    lists = some_lists(**shape)
    found, met = assembled(ClosedForm(lists.D).iterate_rows(lists, Ridge()), lists.shape)
    assert met == np.flatnonzero(lists.Q.toarray().any(axis=0)).tolist(), "no query has word 2"
    assert_allclose(found, formula(lists, Ridge()), atol=1e-5)


# ---- the heaviest words


def large_lists(seed, queries=30, documents=40, words=18, document_words=24):
    """More items than words on both sides; words are as frequent as in texts: the r-th is 1/r as frequent."""
    rng = np.random.default_rng(seed)

    def rows(n, width):
        often = 1.0 / np.arange(1, width + 1)
        counts = rng.poisson(6 * often / often.sum(), (n, width)).astype(np.float32)[:, rng.permutation(width)]
        return csr_array(counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1.0))

    grades = csr_array((rng.random((queries, documents)) < 0.1).astype(np.float32))
    return weighted(ListProblem(rows(queries, words), rows(documents, document_words), grades, None, 0.5), seed)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", [1, 5, 12, 20])
def test_with_fewer_words_W_is_the_closed_form_of_the_heaviest(seed, size):
    lists, ridge = large_lists(seed), Ridge(0.4, 0.7)
    Q, D, _ = dense(lists)
    weight = lists.query_weights @ Q**2, (D**2).sum(axis=0)
    words = [np.sort(np.argsort(-one, kind="stable")[: min(size, int((one > 0).sum()))]) for one in weight]
    found, met = assembled(ClosedForm(lists.D, size).iterate_rows(lists, ridge), lists.shape)
    assert met == words[0].tolist()
    assert_allclose(found, formula(lists, ridge, *words), atol=1e-5)


@pytest.mark.parametrize("ridge", RIDGES)
@pytest.mark.parametrize("seed", range(6))
def test_W_converges_to_the_exact_closed_form_as_the_size_grows(seed, ridge):
    """The objective never rises with the size, the error falls, and both are exact when all words fit."""
    lists = large_lists(seed)
    exact, sizes = formula(lists, ridge), (1, 2, 4, 8, 12, 16, 20, 24)
    found = [assembled(ClosedForm(lists.D, size).iterate_rows(lists, ridge), lists.shape)[0] for size in sizes]
    scores = [lists.Q.toarray() @ W @ lists.D.toarray().T for W in found]
    expected = lists.Q.toarray() @ exact @ lists.D.toarray().T
    errors = [np.linalg.norm(one - expected) / np.linalg.norm(expected) for one in scores]
    losses = [objective(lists, csr_array(W), ridge) for W in found]
    assert all(after <= before * (1 + 1e-6) for before, after in pairwise(losses))
    assert all(after <= before + 1e-5 for before, after in pairwise(errors))
    assert errors[0] > 0.1
    assert_allclose(found[-1], exact, atol=1e-5)


def test_items_are_used_if_words_do_not_fit_and_they_do():
    lists = some_lists(queries=5, documents=5)
    exact = closed(lists, Ridge())
    assert_allclose(assembled(ClosedForm(lists.D, 5).iterate_rows(lists, Ridge()), lists.shape)[0], exact, atol=1e-6)
    assert np.abs(assembled(ClosedForm(lists.D, 3).iterate_rows(lists, Ridge()), lists.shape)[0] - exact).max() > 1e-3


# ---- products and factors


def test_a_side_is_factorized_once_for_each_ridge_and_the_factor_is_exact():
    lists = some_lists(documents=5)
    side, D = ClosedForm(lists.D).documents, lists.D.toarray().astype(np.float64)
    assert side.factorize(2.0) is side.factorize(2.0)
    assert_allclose(cho_solve(side.factorize(2.0), np.eye(5)), np.linalg.inv(D @ D.T + 2.0 * np.eye(5)), atol=1e-5)
    assert_allclose(cho_solve(side.factorize(0.5), np.eye(5)), np.linalg.inv(D @ D.T + 0.5 * np.eye(5)), atol=1e-5)


def test_a_copy_is_factorized_if_the_gram_matrix_is_needed_again():
    gram = compute_gram(some_lists().D)
    before = gram.copy()
    closed_form.factorize(gram, 1.0)
    assert_array_equal(gram, before)


@pytest.mark.parametrize("words", [None, [0, 1, 4]])
def test_a_side_projects_other_rows_as_its_solution_needs_them(words):
    lists, other = some_lists(), some_lists(seed=3)
    words = None if words is None else np.array(words)
    Q, X = lists.Q.toarray(), other.Q.toarray()
    found = Side(lists.Q, None, words).project(other.Q)
    assert_allclose(found, X @ Q.T if words is None else X[:, words], atol=1e-6)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_products_are_dense_ones_and_have_the_same_bits_for_any_number_of_threads(threads):
    lists = some_lists(queries=40, documents=60, query_words=50, words=55)
    Q, D = lists.Q.toarray(), lists.D.toarray()
    assert_allclose(compute_gram(lists.D, threads=threads), D @ D.T, atol=1e-5)
    assert_allclose(compute_gram(lists.D, lists.D[:3], threads), D @ D[:3].T, atol=1e-5)
    product = transposed_product(lists.Q, lists.grades, threads)
    assert_allclose(product, Q.T @ lists.grades.toarray(), atol=1e-4)
    assert_array_equal(product, transposed_product(lists.Q, lists.grades, 1))
    assert_array_equal(compute_gram(lists.D, threads=threads), compute_gram(lists.D, threads=1))


@pytest.mark.parametrize("size", [10, 100])
def test_W_has_the_same_bits_for_any_number_of_threads(monkeypatch, size):
    lists = weighted(some_lists(queries=40, documents=60, query_words=50, words=55))
    found = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(closed_form.validation, "threads", lambda _, threads=threads: threads)
        found.append(assembled(ClosedForm(lists.D, size).iterate_rows(lists, Ridge()), lists.shape)[0])
    assert_array_equal(found[0], found[1])
    assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("empty", ["Q", "D", "grades"])
def test_a_problem_without_words_or_grades_has_no_pairs(empty):
    lists = some_lists()
    lists = replace(lists, **{empty: csr_array(getattr(lists, empty).shape, dtype=np.float32)})
    found, _ = assembled(ClosedForm(lists.D).iterate_rows(lists, Ridge()), lists.shape)
    assert_allclose(found, 0.0, atol=1e-7)
