"""Hinge on triples, on the pairs of a pattern, beside a score that is there already:  s = base + qᵀ W d.

    sum over triples (q, p, n) of   max(0, margin - (s_p - s_n))

A triple is drawn: the query by its weight, p among its relevant documents by grade, n among the others, every other
time one that the base score ranks highest (hard), else any. W is the mean of the steps, whose rate falls to 0; what
holds W back is that there are only so many of them. The same seed draws the same triples and gives the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import validation
from .pattern_softmax import Listed, hardest

if TYPE_CHECKING:
    from scipy.sparse import csr_array

BLOCK = 512
"""Queries whose hardest documents are looked for at a time."""


class Drawn(NamedTuple):
    """For query[t], better[t] should beat worse[t]: rows of Q and of D."""

    query: NDArray[np.int64]
    better: NDArray[np.int64]
    worse: NDArray[np.int64]


@dataclass(frozen=True)
class PatternHinge:
    """How triples are drawn and taken; `refit` learns the entries of a W from where they are."""

    listed: Listed
    triples: int = 100_000
    rate: float = 1.0
    margin: float = 1.0
    hard: int = 50
    seed: int = 0

    def __post_init__(self) -> None:
        validation.count("triples", self.triples, low=1)
        validation.count("hard", self.hard, low=1)
        validation.number("rate", self.rate, low=0.0, open_low=True)
        validation.number("margin", self.margin, low=0.0)

    def refit(self, W: csr_array, fixed: Any = None, nonnegative: bool = False) -> csr_array:
        """W's entries, the mean over all triples; `fixed` entries stay."""
        from scipy.sparse import csr_array

        from .._kernels.pattern_hinge import steps

        W = csr_array(W, copy=True)
        W.sort_indices()
        drawn, lists = self.draw(), self.listed.lists
        n = len(drawn.query)
        if not n:
            return W
        base = self.listed.base
        apart = base[drawn.query, drawn.better].astype(np.float64) - base[drawn.query, drawn.worse]
        weight, drift = W.data.astype(np.float64), np.zeros(W.nnz)
        free = np.ones(W.nnz, np.bool_) if fixed is None else ~fixed
        steps(
            W.indptr, W.indices, weight, drift, free, nonnegative, self.rates(n), self.margin, apart, *drawn,
            lists.Q.indptr, lists.Q.indices, lists.Q.data, lists.D.indptr, lists.D.indices, lists.D.data,
            np.zeros(W.shape[1]),
        )  # fmt: skip
        W.data = (weight - drift / n).astype(np.float32)
        return W

    def rates(self, n: int) -> NDArray[np.float64]:
        """From `rate` down towards 0."""
        return self.rate * (1.0 - np.arange(n) / n)

    def draw(self) -> Drawn:
        """The triples; a query that nothing, or everything, is relevant to has none."""
        lists, rng = self.listed.lists, np.random.default_rng(self.seed)
        grades, m = lists.relevant, lists.D.shape[0]
        asking = np.flatnonzero(np.diff(grades.indptr))
        if not len(asking):
            return Drawn(*(np.empty(0, np.int64) for _ in range(3)))
        chance = lists.weights[asking] / lists.weights[asking].sum()
        query = rng.choice(asking, self.triples, p=chance)
        better = _by_grade(grades, query, rng)
        hard = self._hardest(asking)
        worse = hard[np.searchsorted(asking, query), rng.integers(0, hard.shape[1], len(query))]
        anyone = rng.random(len(query)) < 0.5
        worse = np.where(anyone, rng.integers(0, m, len(query)), worse)
        relevant = np.asarray(grades[query, worse]).ravel() > 0.0
        kept = ~relevant & (worse != self.listed.own[query]) & (better != self.listed.own[query])
        return Drawn(*(column[kept].astype(np.int64) for column in (query, better, worse)))

    def _hardest(self, asking: NDArray[np.intp]) -> NDArray[np.intp]:
        blocks = [asking[at : at + BLOCK] for at in range(0, len(asking), BLOCK)]
        return np.concatenate([hardest(self.listed, block, self.hard) for block in blocks])


def _by_grade(grades: csr_array, query: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.intp]:
    """For each query, one of its documents, as likely as its grade is large."""
    upto = np.concatenate([[0.0], np.cumsum(grades.data, dtype=np.float64)])
    low, high = upto[grades.indptr[query]], upto[grades.indptr[query + 1]]
    place = np.searchsorted(upto, low + rng.random(len(query)) * (high - low), side="right") - 1
    return np.asarray(grades.indices[np.clip(place, grades.indptr[query], grades.indptr[query + 1] - 1)])
