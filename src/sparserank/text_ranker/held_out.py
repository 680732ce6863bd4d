"""Held-out queries: which ones they are, and how good a ranking of their candidates is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..errors import DataError, count_of
from ..evaluation.ndcg import ndcg
from ..optim.candidate_lists import CandidateLists
from ..optim.problems import Matrix
from .candidates import ALL_DOCUMENTS, POOL_DEPTH, CandidateSearch
from .training_data import TrainingMatrices

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Scores = NDArray[np.float32]

HELD_OUT_PARTS = 4
"""One query of this many is held out."""
MAX_HELD_OUT = 1_500
"""Of many queries, about this number is held out."""
MAX_ROTATED_QUERIES = 500
"""Up to this number of queries, each part is held out in turn."""


def hold_out(groups: NDArray[np.int64], random_state: int) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Return (held-out, other) queries: one part, or each of the four quarters if there are few queries.

    The queries of a group are never divided.
    """
    n, n_groups = len(groups), len(np.unique(groups))
    if n_groups < 2:
        few = "all judged queries are near-duplicates of each other" if n > 1 else f"only {count_of(n, 'judged query')}"
        raise DataError(f"{few}; at least two different queries are needed")
    n_parts = min(n_groups, max(HELD_OUT_PARTS, n // MAX_HELD_OUT))
    part = divide_groups(groups, n_parts, random_state)
    sizes = np.bincount(part, minlength=n_parts)
    closest = int(np.argmin(np.abs(sizes - n / max(n_parts, HELD_OUT_PARTS))))
    turns = range(n_parts) if n <= MAX_ROTATED_QUERIES else [closest]
    return [(np.flatnonzero(part == turn), np.flatnonzero(part != turn)) for turn in turns]


def divide_groups(groups: NDArray[np.int64], n_parts: int, random_state: int) -> NDArray[np.int64]:
    """Return the part of each query: groups in random order, each into the smallest part so far.

    >>> divide_groups(np.array([0, 0, 1, 2, 3]), 2, random_state=0).tolist()
    [1, 1, 0, 0, 1]
    """
    order = np.random.default_rng(random_state).permutation(len(groups))
    _, first, sizes = np.unique(groups[order], return_index=True, return_counts=True)
    part_of, part_sizes = {}, np.zeros(n_parts, np.int64)
    for at in np.argsort(first).tolist():
        smallest = int(np.argmin(part_sizes))
        part_of[int(groups[order[first[at]]])] = smallest
        part_sizes[smallest] += int(sizes[at])
    return np.array([part_of[group] for group in groups.tolist()], np.int64)


@dataclass(frozen=True)
class HeldOut:
    """Held-out queries and the documents that a ranking of each has: all, or a pool of candidates.

    Scores are arrays with one number for each place in the candidate lists.
    """

    queries: TrainingMatrices
    candidates: CandidateLists
    n_jobs: int | None = None

    @classmethod
    def of(cls, queries: TrainingMatrices, documents: NDArray[np.int64] | None, n_jobs: int | None = None) -> HeldOut:
        """Held-out queries with the documents in the rows of `documents` and all relevant ones; None: all documents."""
        if documents is None:
            documents = np.tile(np.arange(queries.lists.D.shape[0]), (len(queries), 1))
        lists = CandidateLists.build(queries.lists, queries.excluded, documents, n_random=0)
        return cls(queries, queries.with_lexical_scores(lists, n_jobs), n_jobs)

    @classmethod
    def search(cls, queries: TrainingMatrices, search: CandidateSearch, W: csr_array | None = None) -> HeldOut:
        """Held-out queries with a pool of the best documents by the lexical score and by the pairs W."""
        if queries.lists.D.shape[0] <= ALL_DOCUMENTS:
            return cls.of(queries, None, search.n_jobs)
        documents = search.top(queries, POOL_DEPTH)
        if W is not None:
            documents = np.hstack([documents, search.top(queries, POOL_DEPTH, W, 1.0, lexical=False)])
        return cls.of(queries, documents, search.n_jobs)

    @property
    def groups(self) -> NDArray[np.int64]:
        """The group of each query that has a relevant document."""
        return self.queries.group_numbers[self._measured]

    @property
    def named(self) -> NDArray[np.float32]:
        """The share of a title that each query is, of those that have a relevant document."""
        named = self.queries.named
        return np.zeros(len(self._measured), np.float32) if named is None else named[self._measured]

    @property
    def _measured(self) -> NDArray[np.intp]:
        """The queries that have a relevant document."""
        lists = self.candidates
        return np.unique(np.repeat(np.arange(len(lists)), lists.lengths)[lists.grade > 0.0])

    def pair_scores(self, W: csr_array) -> Scores:
        """qᵀ W d"""
        return self.candidates.score(self.queries.lists.Q, W, self.queries.lists.D, validation.threads(self.n_jobs))

    def take(self, scores: Matrix) -> Scores:
        """Scores of queries × all documents, by place."""
        return np.take(np.ascontiguousarray(scores), self._places)

    @cached_property
    def _places(self) -> NDArray[np.int64]:
        """The places of the candidates in a matrix of queries × all documents."""
        query = np.repeat(np.arange(len(self.candidates)), self.candidates.lengths)
        return np.asarray(query * self.queries.lists.D.shape[0] + self.candidates.document)

    def score_expanded(self, expanded: Matrix, words: NDArray[np.intp]) -> Scores:
        """Scores by the expanded queries Wᵀ q, queries × words."""
        return self.candidates.score_expanded(expanded, self.queries.lists.D, words)

    def ndcg(self, scores: Scores, cutoffs: Sequence[int] = (10,)) -> list[NDArray[np.float64]]:
        """Return for each cutoff k nDCG@k of every query that has a relevant document."""
        return ndcg(self.candidates.start, scores, self.candidates.grade, cutoffs, self.n_jobs)

    def ndcg_of_pairs(self, W: csr_array, pair_weight: float) -> NDArray[np.float64]:
        """Return nDCG@10 of every query that has a relevant document, of its candidates ranked with pairs."""
        return self.ndcg(self.candidates.base + np.float32(pair_weight) * self.pair_scores(W))[0]


def searched_ndcg(
    queries: TrainingMatrices, search: CandidateSearch, W: csr_array, pair_weight: float
) -> NDArray[np.float64]:
    """Return nDCG@10 of every query that has a relevant document, of a search with pairs in all documents."""
    return ranked_ndcg(queries, search.top(queries, 10, W, pair_weight))


def ranked_ndcg(queries: TrainingMatrices, found: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return nDCG@10 of every query that has a relevant document, given its best documents; -1 after the last."""
    lists = CandidateLists.build(queries.lists, queries.excluded, found, n_random=0)
    scores = np.full(len(lists.document), -np.inf, np.float32)
    query, rank = np.nonzero(found >= 0)
    place = lists.find(query, found[query, rank])
    scores[place] = -rank
    return ndcg(lists.start, scores, lists.grade)[0]
