"""Judged queries over documents, as rows and scores, and which of them are held out to choose on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..measures.lists import mean_ndcg, ndcg
from ..solvers.judged_lists import JudgedLists, Matrix

if TYPE_CHECKING:
    from scipy.sparse import csr_array

HELD_OUT, FEW = 4, 500
"""One query of so many is held out to choose on; where there are no more than so many, each is held out in turn."""
MOST_SCORES = 1 << 28
"""Dense scores that may be held at once (1 GB); beyond, fewer queries are chosen on, and the squared loss has the last
word."""
SURE = 1.0
"""Pairs are taken where they help the held-out queries by so many standard errors: the best of many tries is above the
lexical score by chance alone, more often than not."""


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
    """

    lists: JudgedLists
    lexical: Any
    own: NDArray[np.int64]

    def __len__(self) -> int:
        return int(self.lists.Q.shape[0])

    def of(self, queries: NDArray[np.intp]) -> Judged:
        """Some of the queries."""
        return Judged(self.lists.of(queries), self.lexical[queries], self.own[queries])

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
        weight = None if parts[0].lists.weight is None else np.concatenate([p.lists.weights for p in parts])
        lists = JudgedLists(Q, parts[0].lists.D, grades, weight)
        return cls(lists, np.concatenate([p.lexical for p in parts]), np.concatenate([p.own for p in parts]))

    def worth(self, scores: Matrix) -> float:
        """Mean nDCG@10."""
        return mean_ndcg(scores, self.lists.grades, self.own)

    def surely_better(self, scores: Matrix) -> bool:
        """Whether nDCG@10 is above that of the lexical scores by more than `SURE` standard errors of the difference."""
        new, old = (ndcg(one, self.lists.grades, self.own) for one in (scores, self.lexical))
        better = new - old
        if not better.any():
            return False
        error = np.std(better, ddof=1) / np.sqrt(len(better)) if len(better) > 1 else 0.0
        return bool(np.mean(better) > SURE * error)


Folds = list[tuple[Judged, Judged]]
"""Queries that are learned from, and queries that are held out of that."""


def held_out(n: int, seed: int) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """A quarter of the queries, and the others; where there are few, each of the four quarters in turn."""
    if n < 2:
        raise DataError(f"{n} judged query teaches nothing that could be checked; two at least are needed")
    order = np.random.default_rng(seed).permutation(n)
    turns = range(min(n, HELD_OUT) if n <= FEW else 1)
    return [(np.sort(order[k::HELD_OUT]), np.sort(np.delete(order, np.s_[k::HELD_OUT]))) for k in turns]


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
