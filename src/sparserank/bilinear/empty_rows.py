"""Rows without a known word: an empty document, a query of unknown words. They score 0, and are counted and reported.

`fit` keeps the counts in its `Solution`; `scores`, which returns nothing but scores, logs a line as `sparserank`.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..optim.scores import Bilinear

log = logging.getLogger("sparserank")


class EmptyRows(NamedTuple):
    """The numbers of the rows of Q and of D that have no entry."""

    queries: NDArray[np.intp]
    documents: NDArray[np.intp]

    @classmethod
    def of(cls, score: Bilinear) -> EmptyRows:
        """Found in the row pointers alone."""
        return cls(*(np.flatnonzero(np.diff(side.indptr) == 0) for side in (score.queries, score.items)))

    def report(self, level: int, score: Bilinear) -> None:
        """Log one line where there are any: how many of each side, and which is the first."""
        sides = (("queries", self.queries, score.queries), ("documents", self.documents, score.items))
        found = [
            f"{len(empty):,} of {side.shape[0]:,} {name} (the first is row {empty[0]})"
            for name, empty, side in sides
            if len(empty)
        ]
        if found:
            log.log(level, "%s: no known word, so every score is 0", " and ".join(found))
