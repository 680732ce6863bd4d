"""Small judged lists, and what a dense W of them should be: the normal equations written out."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, random_array

from sparserank.optim.list_problem import JudgedLists


def some_lists(seed=0, queries=9, documents=12, query_words=6, words=7, below=False):
    """A query without words, a document without words, a word of neither, a query that nobody judged.

    below : some grades are below 0, one query has no other.
    """
    rng = np.random.default_rng(seed)
    Q, D = (
        random_array(shape, density=0.5, rng=rng, dtype=np.float32).toarray()
        for shape in ((queries, query_words), (documents, words))
    )
    Q[0], D[1], Q[:, 2], D[:, 3] = 0.0, 0.0, 0.0, 0.0
    grades = rng.integers(0, 4, (queries, documents)) * (rng.random((queries, documents)) < 0.4)
    grades[4] = 0
    if below:
        grades[:, ::3] *= -1
        grades[5] = -np.abs(grades[5])
    return JudgedLists(csr_array(Q), csr_array(D), csr_array(grades.astype(np.float32)))


def dense(lists, evenness):
    """Q, D and Y, in 64 bits, by the words of the docstrings."""
    Q, D, grades = (M.toarray().astype(np.float64) for M in (lists.Q, lists.D, lists.grades))
    share = np.array([row / np.abs(row).sum() ** evenness if row.any() else row for row in grades])
    return Q, D, share - share.mean()


def on_pattern(lists, evenness, ridge, pattern, told=None):
    """((QᵀQ + a) W (DᵀD + b))_P = (Qᵀ Y D)_P by Kronecker products; W is `told` outside of the pattern."""
    Q, D, Y = dense(lists, evenness)
    left, right = Q.T @ Q + ridge.a * np.eye(Q.shape[1]), D.T @ D + ridge.b * np.eye(D.shape[1])
    free, A = pattern.ravel(), np.kron(left, right)
    w = np.zeros(len(free)) if told is None else told.astype(np.float64).ravel().copy()
    w[free] = 0.0
    w[free] = np.linalg.solve(A[np.ix_(free, free)], ((Q.T @ Y @ D).ravel() - A @ w)[free])
    return w.reshape(pattern.shape)
