"""Small judged lists, and what a dense W of them should be: the normal equations written out."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, random_array

from sparserank.optim.closed_form import ClosedForm
from sparserank.optim.problems import ListProblem


def some_lists(seed=0, queries=9, documents=12, query_words=6, words=7, below=False, query_normalization=0.5):
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
    return ListProblem(
        csr_array(Q), csr_array(D), csr_array(grades.astype(np.float32)), query_normalization=query_normalization
    )


def objective(lists, W, ridge):
    """The literal objective."""
    Q, D, W = (np.asarray(M.toarray(), dtype=np.float64) for M in (lists.Q, lists.D, W))
    missed, v = lists.targets.toarray() - lists.target_mean - Q @ W @ D.T, lists.query_weights[:, None]
    a, b = ridge.query, ridge.document
    return float(
        np.sum(v * missed**2) + a * np.sum((W @ D.T) ** 2) + b * np.sum(v * (Q @ W) ** 2) + a * b * np.sum(W**2)
    )


def dense(lists):
    """Q, D and Y, in 64 bits, by the words of the docstrings."""
    Q, D, grades = (M.toarray().astype(np.float64) for M in (lists.Q, lists.D, lists.grades))
    share = np.array([row / np.abs(row).sum() ** lists.query_normalization if row.any() else row for row in grades])
    return Q, D, share - np.average(share.mean(axis=1), weights=lists.query_weights)


def on_pattern(lists, ridge, pattern, fixed=None):
    """((QᵀQ + a) W (DᵀD + b))_P = (Qᵀ Y D)_P by Kronecker products; W is `fixed` outside of the pattern."""
    Q, D, Y = dense(lists)
    left, right = Q.T @ Q + ridge.query * np.eye(Q.shape[1]), D.T @ D + ridge.document * np.eye(D.shape[1])
    free, A = pattern.ravel(), np.kron(left, right)
    w = np.zeros(len(free)) if fixed is None else fixed.astype(np.float64).ravel().copy()
    w[free] = 0.0
    w[free] = np.linalg.solve(A[np.ix_(free, free)], ((Q.T @ Y @ D).ravel() - A @ w)[free])
    return w.reshape(pattern.shape)


def assembled(rows, shape):
    """W from blocks of its rows, and the rows in the order in which they came."""
    out, met = np.zeros(shape), []
    for which, block in rows:
        assert block.dtype == np.float32
        assert block.shape == (len(which), shape[1])
        out[which] = block
        met += which.tolist()
    return out, met


def closed(lists, ridge):
    """W by the closed form."""
    return assembled(ClosedForm(lists.D).iterate_rows(lists, ridge), lists.shape)[0]
