"""Small judged lists for the solvers of word pairs, and their parts as dense arrays of 64 bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array

from sparserank.optim.candidate_lists import CandidateLists, RerankingProblem
from sparserank.optim.losses import Domination
from sparserank.optim.problems import ListProblem


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


def excluded(problem):
    """Query 3 may not find document 5."""
    own = np.full(problem.Q.shape[0], -1, np.int64)
    own[3] = 5
    return own


def reranking(seed=0, loss=DOMINATION, n_found=4, n_random=3, **shape):
    """Candidate lists of the same, beside a score that is there already."""
    judged, rng = lists(seed, **shape), np.random.default_rng(seed + 1)
    n, m = judged.grades.shape
    found = rng.integers(-1, m, (n, n_found))
    candidates = CandidateLists.build(judged, excluded(judged), found, n_random, seed)
    base = rng.normal(size=len(candidates.base)).astype(np.float32)
    return RerankingProblem(judged.Q, judged.D, replace(candidates, base=base), loss)


def pattern(shape, seed=0, density=0.6):
    """Weights around 0 on some of the pairs."""
    rng = np.random.default_rng(seed + 2)
    return csr_array((rng.normal(size=shape) * (rng.random(shape) < density)).astype(np.float32))


def dense(*matrices):
    """As arrays of 64 bits."""
    return tuple(matrix.toarray().astype(np.float64) for matrix in matrices)
