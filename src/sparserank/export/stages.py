"""Signed queries for engines that know no signs: the positive part finds K documents, all weights score those.

    first stage    Σ max(q, 0) · d    over as many terms as one query may have, the weightiest first
    second stage   Σ q · d            of the best K alone

A document that only negative weights meet is not found by the first stage, and need not be: its score is below 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RESCORED = 100
"""K. Measured on NFCorpus dev (benchmarks/export_loss.py): nothing changes from K = 50 on; this is twice that."""
MOST_CLAUSES = 1000
"""Terms of one Lucene query: 1,024 are allowed everywhere, and some clauses go around them."""


@dataclass(frozen=True)
class Signed:
    """A query in parts; each part is {number of a term: weight above 0} and holds at most `most` terms.

    `first` finds documents; `more` adds what it had no room for, `less` is taken away.
    """

    first: dict[int, float]
    more: tuple[dict[int, float], ...]
    less: tuple[dict[int, float], ...]

    @classmethod
    def of(cls, query: Mapping[int, float], largest: NDArray[np.float64], most: int = MOST_CLAUSES) -> Signed:
        """Split a query; terms that can add most to a score come first.

        >>> Signed.of({0: 2.0, 1: -1.0, 2: 3.0}, np.ones(3), most=1)
        Signed(first={2: 3.0}, more=({0: 2.0},), less=({1: 1.0},))
        """
        by_size = sorted(query, key=lambda term: (-abs(query[term]) * largest[term], term))
        found = _chunks({term: query[term] for term in by_size if query[term] > 0}, most)
        less = _chunks({term: -query[term] for term in by_size if query[term] < 0}, most)
        return cls(found[0] if found else {}, tuple(found[1:]), tuple(less))

    def scaled(self, most: float) -> tuple[Signed, float]:
        """With no weight above `most`, and what all were divided by: a power of two, so no digit is lost."""
        parts = (self.first, *self.more, *self.less)
        highest = max((weight for part in parts for weight in part.values()), default=0.0)
        by = 1.0 if highest <= most else 2.0 ** np.ceil(np.log2(highest / most))
        return Signed(
            _divided(self.first, by),
            tuple(_divided(part, by) for part in self.more),
            tuple(_divided(part, by) for part in self.less),
        ), float(by)


def _chunks(weights: dict[int, float], most: int) -> list[dict[int, float]]:
    pairs = list(weights.items())
    return [dict(pairs[at : at + most]) for at in range(0, len(pairs), most)]


def _divided(weights: dict[int, float], by: float) -> dict[int, float]:
    return {term: weight / by for term, weight in weights.items()}
