"""Judged queries over documents, as rows and scores, and which of them are held out to choose on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..evaluation.ndcg import mean_ndcg, ndcg
from ..evaluation.significance import max_t_p_value
from ..optim.problems import ListProblem, Matrix

if TYPE_CHECKING:
    from scipy.sparse import csr_array

HELD_OUT, FEW = 4, 500
"""One query of so many is held out to choose on; where there are no more than so many, each is held out in turn."""
MOST_SCORES = 1 << 28
"""Dense scores that may be held at once (1 GB); beyond, fewer queries are chosen on, and the squared loss has the last
word."""
SIGNIFICANCE_LEVEL = 0.02
"""Pairs are kept if the p-value of their gain on held-out queries is at most this. It is the expected share of
collections with nothing to learn that keep pairs all the same (`make bench ARGS=never_worse` counts them)."""
TEST_DEPTH = 100
"""The test is made on nDCG at this rank: it varies less from query to query than nDCG@10, so that fewer queries show
whether pairs help (`python -m benchmarks.acceptance`)."""
PRUNED_LEVEL = 0.5
"""Once the pairs have passed that test, pruned pairs are tested again on nDCG@10, at this level: the smallest that
keeps as many real gains as a larger one (`python -m benchmarks.acceptance`)."""


@dataclass(frozen=True)
class Product:
    """Lexical scores that are not made yet: rows of queries times rows of documents."""

    queries: csr_array
    documents: csr_array

    def __getitem__(self, some: NDArray[np.intp]) -> Product:
        return Product(self.queries[some], self.documents)

    def made(self) -> Matrix:
        """Dense, queries × documents."""
        return np.asarray((self.queries @ self.documents.T).toarray(), dtype=np.float32)


@dataclass(frozen=True)
class Judged:
    """Judged queries over documents: rows, grades, lexical scores, and the document that each may not find (or -1).

    lexical : dense, or a `Product` until it is `made`: of all queries of a large collection it would not fit.
    groups : near-duplicate queries share a number and are held out together; None: each query is its own group.
    """

    lists: ListProblem
    lexical: Any
    own: NDArray[np.int64]
    groups: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return int(self.lists.Q.shape[0])

    def of(self, queries: NDArray[np.intp]) -> Judged:
        """Some of the queries."""
        groups = None if self.groups is None else self.groups[queries]
        return Judged(self.lists.select_queries(queries), self.lexical[queries], self.own[queries], groups)

    def made(self) -> Judged:
        """With dense lexical scores."""
        return replace(self, lexical=self.lexical.made()) if isinstance(self.lexical, Product) else self

    @property
    def fits(self) -> bool:
        """Whether dense scores of all its queries do."""
        return len(self) * int(self.lists.D.shape[0]) <= MOST_SCORES

    @classmethod
    def joined(cls, parts: Sequence[Judged]) -> Judged:
        """All their queries, one after another, over the same documents."""
        from scipy.sparse import csr_array, vstack

        if len(parts) == 1:
            return parts[0]
        Q, grades = (csr_array(vstack([getattr(p.lists, name) for p in parts])) for name in ("Q", "grades"))
        weight = None if parts[0].lists.weight is None else np.concatenate([p.lists.query_weights for p in parts])
        lists = ListProblem(Q, parts[0].lists.D, grades, weight)
        groups = None if parts[0].groups is None else np.concatenate([p.groups for p in parts])
        return cls(lists, np.concatenate([p.lexical for p in parts]), np.concatenate([p.own for p in parts]), groups)

    def worth(self, scores: Matrix) -> float:
        """Mean nDCG@10."""
        return mean_ndcg(scores, self.lists.grades, self.own)

    def ndcg(self, scores: Matrix, k: int = 10) -> NDArray[np.float64]:
        """nDCG@k of every query that has a relevant document."""
        return ndcg(scores, self.lists.grades, self.own, k)

    def p_value(self, tried: NDArray[np.float64], k: int = 10) -> float:
        """The p-value of the gain over the lexical score; tried[s, w] is nDCG@k under setting s and pair weight w."""
        has_relevant = np.diff(self.lists.relevant.indptr) > 0
        groups = np.arange(len(self)) if self.groups is None else self.groups
        return gain_p_value(tried - self.ndcg(self.lexical, k), groups[has_relevant])


Folds = list[tuple[Judged, Judged]]
"""Queries that are learned from, and queries that are held out of that."""


def held_out(groups: NDArray[np.int64], seed: int) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """A quarter of the queries, and the others; where there are few, each of the four quarters in turn.

    A group is never divided: its queries are all held out, or none is.
    """
    n, order = len(groups), np.random.default_rng(seed).permutation(len(groups))
    _, first, sizes = np.unique(groups[order], return_index=True, return_counts=True)
    if len(first) < 2:
        raise DataError(f"{n} judged queries form {len(first)} group of near-duplicates; at least two are needed")
    part_of, filled = {}, [0] * min(len(first), HELD_OUT)
    for at in np.argsort(first).tolist():
        smallest = filled.index(min(filled))
        part_of[int(groups[order[first[at]]])] = smallest
        filled[smallest] += int(sizes[at])
    part = np.array([part_of[group] for group in groups.tolist()])
    turns = range(len(filled)) if n <= FEW else [int(np.argmin(np.abs(np.array(filled) - n / HELD_OUT)))]
    return [(np.flatnonzero(part == turn), np.flatnonzero(part != turn)) for turn in turns]


def gain_p_value(gain: NDArray[np.float64], groups: NDArray[np.int64]) -> float:
    """One-sided p-value of "at some weight, the pair score improves the ranking", corrected for the weights tried.

    gain[s, w, q] is the gain of query q over the lexical score under setting s and pair weight w. Gains are averaged
    over the settings, since the best setting of many flatters itself.
    """
    return max_t_p_value(gain.mean(axis=0), groups)


def scores_of(W: csr_array, held: Judged) -> Matrix:
    """qᵀ W d of every query and document, dense."""
    return np.asarray((held.lists.D @ (held.lists.Q @ W).T).toarray().T, dtype=np.float32)


def held_out_scores(parts: Sequence[csr_array], folds: Folds) -> Matrix:
    """`scores_of` of every fold's held-out queries by the W of the others, one fold after another."""
    return np.concatenate([scores_of(W, held) for W, (_, held) in zip(parts, folds, strict=True)])


def grades_of(qrels: Any, query_ids: list[str], places: dict[str, int]) -> csr_array:
    """Grades of queries × documents; 0 is as if unjudged."""
    from scipy.sparse import csr_array

    entries = [(i, places[d], grade) for i, q in enumerate(query_ids) for d, grade in qrels[q].items() if grade]
    shape = (len(query_ids), len(places))
    if not entries:
        return csr_array(shape, dtype=np.float32)
    row, column, grade = (np.array(part) for part in zip(*entries, strict=True))
    return csr_array((grade.astype(np.float32), (row, column)), shape=shape)
