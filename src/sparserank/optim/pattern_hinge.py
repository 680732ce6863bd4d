"""PatternHinge: the hinge loss on drawn triples, on the pairs of a pattern, beside a base score: s = base + qᵀ W d.

A triple is drawn: the query by its weight, p among its relevant documents by grade, n among the others, in half of the
cases one of those with the highest base score. W is the mean of the steps, whose rate falls to 0; the limited number of
steps is the regularization. The same seed gives the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..preferences import Triples
from .losses import Hinge
from .penalties import NoPenalty
from .problems import RerankingProblem
from .solver import Solution, Solver

if TYPE_CHECKING:
    from scipy.sparse import csr_array

BLOCK_QUERIES = 512
"""Queries whose hard negatives are searched at a time."""


@dataclass(frozen=True)
class PatternHinge(Solver):
    """Averaged SGD on the entries that W has. triples : how many are drawn. hard : hard negatives of a query."""

    triples: int = 100_000
    rate: float = 1.0
    hard: int = 50
    seed: int = 0
    losses: ClassVar[tuple[type, ...]] = (Hinge,)
    penalties: ClassVar[tuple[type, ...]] = (NoPenalty,)

    def __post_init__(self) -> None:
        validation.count("triples", self.triples, low=1)
        validation.count("hard", self.hard, low=1)
        validation.number("rate", self.rate, low=0.0, open_low=True)

    def solve(
        self,
        problem: RerankingProblem,
        penalty: NoPenalty,
        init: csr_array,
        fixed: Any = None,
        nonnegative: bool = False,
    ) -> Solution:
        """W's entries from `init`, the mean over all steps; entries marked by `fixed` stay."""
        from scipy.sparse import csr_array

        from .._kernels.pattern_hinge import steps

        self.check(problem.loss, penalty)
        W = csr_array(init, copy=True)
        W.sort_indices()
        triples, lists, base = self.draw(problem), problem.lists, problem.base
        n = len(triples.query)
        if n:
            offset = base[triples.query, triples.better].astype(np.float64) - base[triples.query, triples.worse]
            weight, drift = W.data.astype(np.float64), np.zeros(W.nnz)
            free = np.ones(W.nnz, np.bool_) if fixed is None else ~fixed
            steps(
                W.indptr, W.indices, weight, drift, free, nonnegative, self.rates(n), problem.loss.margin, offset,
                *triples, lists.Q.indptr, lists.Q.indices, lists.Q.data, lists.D.indptr, lists.D.indices, lists.D.data,
                np.zeros(W.shape[1]),
            )  # fmt: skip
            W.data = (weight - drift / n).astype(np.float32)
        return Solution(W, info={"steps": n})

    def rates(self, n: int) -> NDArray[np.float64]:
        """The learning rates, from `rate` down towards 0."""
        return self.rate * (1.0 - np.arange(n) / n)

    def draw(self, problem: RerankingProblem) -> Triples:
        """The triples; a query that nothing, or everything, is relevant to has none."""
        lists, rng = problem.lists, np.random.default_rng(self.seed)
        grades, m = lists.relevant, lists.D.shape[0]
        queries = np.flatnonzero(np.diff(grades.indptr))
        if not len(queries):
            return Triples(*(np.empty(0, np.int64) for _ in range(3)))
        chance = lists.query_weights[queries] / lists.query_weights[queries].sum()
        query = rng.choice(queries, self.triples, p=chance)
        better = _draw_by_grade(grades, query, rng)
        blocks = [queries[at : at + BLOCK_QUERIES] for at in range(0, len(queries), BLOCK_QUERIES)]
        hard = np.concatenate([problem.find_hardest(block, self.hard) for block in blocks])
        worse = hard[np.searchsorted(queries, query), rng.integers(0, hard.shape[1], len(query))]
        worse = np.where(rng.random(len(query)) < 0.5, rng.integers(0, m, len(query)), worse)
        relevant = np.asarray(grades[query, worse]).ravel() > 0.0
        excluded = problem.excluded[query]
        kept = ~relevant & (worse != excluded) & (better != excluded)
        return Triples(*(column[kept].astype(np.int64) for column in (query, better, worse)))


def _draw_by_grade(grades: csr_array, query: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.intp]:
    """For each query, one of its documents with a probability proportional to its grade."""
    upto = np.concatenate([[0.0], np.cumsum(grades.data, dtype=np.float64)])
    low, high = upto[grades.indptr[query]], upto[grades.indptr[query + 1]]
    place = np.searchsorted(upto, low + rng.random(len(query)) * (high - low), side="right") - 1
    return np.asarray(grades.indices[np.clip(place, grades.indptr[query], grades.indptr[query + 1] - 1)])
