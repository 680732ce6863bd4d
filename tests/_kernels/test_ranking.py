from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from sparserank._kernels.ranking import class_rows, sparse_rows, wrong_pairs

from .. import oracles


@given(st.lists(st.lists(st.tuples(st.integers(0, 4), st.integers(-1, 2)), max_size=10), min_size=1, max_size=4))
def test_wrong_pairs_are_the_pairs_of_the_definition(queries: list[list[tuple[int, int]]]) -> None:
    queries = [sorted(rows, reverse=True) for rows in queries]
    score = np.array([score for rows in queries for score, _ in rows], dtype=np.float32)
    grade = np.array([grade for rows in queries for _, grade in rows], dtype=np.float64)
    start = np.cumsum([0, *map(len, queries)])
    wrong, pairs = wrong_pairs(score, grade, np.ones(len(score), bool), start)
    for q, rows in enumerate(queries):
        listed = [s < other for s, g in rows for other, low in rows if g > low]
        assert (wrong[q], pairs[q]) == (sum(listed), len(listed))


def worlds() -> st.SearchStrategy[tuple[np.ndarray, np.ndarray]]:
    score = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, 1e-40, -1e-40])
    return st.integers(3, 9).flatmap(
        lambda n: st.tuples(
            st.lists(st.lists(score, min_size=n, max_size=n), min_size=n, max_size=n).map(
                lambda rows: np.array(rows, dtype=np.float32)
            ),
            st.lists(st.integers(0, 2), min_size=n, max_size=n)
            .filter(lambda y: len(set(y)) > 1)
            .map(lambda y: np.unique(np.array(y), return_inverse=True)[1]),
        )
    )


@given(worlds())
def test_class_rows_equal_the_definitions_however_many_ties(world: tuple[np.ndarray, np.ndarray]) -> None:
    scores, y = world
    n = len(y)
    ids = [str(i * 7 % n) if np.gcd(7, n) == 1 else str(i) for i in range(n)]
    tie = np.argsort(np.argsort(ids)).astype(np.int64)
    member = np.argsort(y, kind="stable").astype(np.int64)
    start = np.concatenate(([0], np.cumsum(np.bincount(y))))
    precision, error = np.full(n, np.nan), np.full(n, np.nan)
    assert class_rows(scores.view(np.uint32), 0, y, member, start, tie, precision, error) == -1
    for q in range(n):
        if np.sum(y == y[q]) == 1:
            assert np.isnan(precision[q])
            assert np.isnan(error[q])
        else:
            assert_allclose(precision[q], oracles.class_average_precision(scores[q], y, ids, q), rtol=1e-12)
            assert_allclose(error[q], oracles.class_error(scores[q], y, q), rtol=1e-12)


def test_a_score_that_is_not_a_number_is_reported_by_its_place_whichever_class_it_is_in() -> None:
    y = np.array([0, 0, 1, 1])
    member, start, tie = np.arange(4), np.array([0, 2, 4]), np.arange(4)
    for column in (1, 3):
        scores = np.zeros((2, 4), dtype=np.float32)
        scores[1, column if column != 1 else 0] = np.nan
        place = class_rows(scores.view(np.uint32), 0, y, member, start, tie, np.zeros(4), np.zeros(4))
        assert place == 4 + (column if column != 1 else 0)


def test_sparse_rows_are_the_product_of_two_sparse_matrices() -> None:
    A = np.array([[0, 2, 0], [1, 0, 3], [0, 0, 0]], dtype=np.float32)
    B = np.array([[5, 0, 0, 1], [0, 7, 0, 0], [0, 1, 0, 1]], dtype=np.float32)

    def csr(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rows, columns = np.nonzero(matrix)
        return np.searchsorted(rows, np.arange(len(matrix) + 1)), columns, matrix[rows, columns]

    assert_allclose(sparse_rows(*csr(A), *csr(B), 4), A @ B)


def test_a_query_need_not_score_itself() -> None:
    y = np.array([0, 0, 1])
    scores = np.array([[np.nan, 1.0, 0.0]], dtype=np.float32)
    precision, error = np.zeros(3), np.ones(3)
    member, start = np.arange(3), np.array([0, 2, 3])
    assert class_rows(scores.view(np.uint32), 0, y, member, start, np.arange(3), precision, error) == -1
    assert (precision[0], error[0]) == (1.0, 0.0)
