"""Signed queries for engines that support only positive weights.

    first stage    Σ max(q, 0) · d    over at most MAX_CLAUSES terms, the heaviest first; it retrieves K documents
    second stage   Σ q · d            of these K documents

The first stage misses a document that matches negative weights only. Its score would be below 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RESCORE_WINDOW = 100
"""K. On NFCorpus dev (benchmarks/export_loss.py) nothing changes from K = 50 on; this is twice that."""
MAX_CLAUSES = 1000
"""Terms of one Lucene query: Lucene allows 1,024 clauses, and some clauses enclose the terms."""


@dataclass(frozen=True)
class SignedQuery:
    """A query in parts of limited size; each part is {number of a term: absolute weight}.

    `first` retrieves documents, `overflow` has the positive terms beyond the limit, `negative` is subtracted.
    """

    first: dict[int, float]
    overflow: tuple[dict[int, float], ...]
    negative: tuple[dict[int, float], ...]

    @classmethod
    def split(
        cls, query: Mapping[int, float], largest: NDArray[np.float64], max_terms: int = MAX_CLAUSES
    ) -> SignedQuery:
        """Split a query; the terms that can change a score most come first.

        >>> SignedQuery.split({0: 2.0, 1: -1.0, 2: 3.0}, np.ones(3), max_terms=1)
        SignedQuery(first={2: 3.0}, overflow=({0: 2.0},), negative=({1: 1.0},))
        """
        by_size = sorted(query, key=lambda term: (-abs(query[term]) * largest[term], term))
        positive = _chunks({term: query[term] for term in by_size if query[term] > 0}, max_terms)
        negative = _chunks({term: -query[term] for term in by_size if query[term] < 0}, max_terms)
        return cls(positive[0] if positive else {}, tuple(positive[1:]), tuple(negative))

    def scale(self, max_weight: float) -> tuple[SignedQuery, float]:
        """Divide all weights by the least power of two, which loses no digit, that makes them fit; return it too."""
        parts = (self.first, *self.overflow, *self.negative)
        heaviest = max((weight for part in parts for weight in part.values()), default=0.0)
        divisor = 1.0 if heaviest <= max_weight else float(2.0 ** np.ceil(np.log2(heaviest / max_weight)))
        first, *others = ({term: weight / divisor for term, weight in part.items()} for part in parts)
        n = len(self.overflow)
        return SignedQuery(first, tuple(others[:n]), tuple(others[n:])), divisor


def _chunks(weights: dict[int, float], size: int) -> list[dict[int, float]]:
    pairs = list(weights.items())
    return [dict(pairs[i : i + size]) for i in range(0, len(pairs), size)]
