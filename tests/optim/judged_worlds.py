"""Small judged lists for the solvers of word pairs, and their parts as dense arrays of 64 bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array

from sparserank.optim.losses import Domination
from sparserank.optim.problems import ListProblem, RerankingProblem


def sparse(rng, shape, density):
    """Numbers from 0 to 1, so many of them there."""
    return csr_array((rng.random(shape) * (rng.random(shape) < density)).astype(np.float32))


def lists(seed=0, queries=10, documents=12, words=6, document_words=8, weighted=False):
    """Queries, documents and grades of 1 and 2; a word that no query has, and a query that nothing is relevant to."""
    rng = np.random.default_rng(seed)
    Q, D = sparse(rng, (queries, words), 0.6), sparse(rng, (documents, document_words), 0.5)
    Q = csr_array(np.where(np.arange(words) == 2, np.float32(0.0), Q.toarray()))
    grades = rng.integers(1, 3, (queries, documents)) * (rng.random((queries, documents)) < 0.25)
    grades[1] = 0
    weight = rng.random(queries) + 0.5 if weighted else None
    return ListProblem(Q, D, csr_array(grades.astype(np.float32)), weight, query_normalization=0.5)


DOMINATION = Domination()


def listed(seed=0, loss=DOMINATION, **shape):
    """The same beside a score that is there already; query 3 may not find document 5, which it does not ask for."""
    judged = lists(seed, **shape)
    grades = judged.grades.toarray()
    grades[3, 5], grades[3, 4] = 0.0, 1.0
    judged = replace(judged, grades=csr_array(grades))
    base = np.random.default_rng(seed + 1).normal(size=grades.shape).astype(np.float32)
    own = np.full(len(grades), -1, np.int64)
    own[3] = 5
    return RerankingProblem(judged, base, own, loss)


def pattern(shape, seed=0, density=0.6):
    """Weights around 0 on some of the pairs."""
    rng = np.random.default_rng(seed + 2)
    return csr_array((rng.normal(size=shape) * (rng.random(shape) < density)).astype(np.float32))


def dense(*matrices):
    """As arrays of 64 bits."""
    return tuple(matrix.toarray().astype(np.float64) for matrix in matrices)
