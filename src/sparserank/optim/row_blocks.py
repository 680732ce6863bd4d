"""Rows of W in blocks: dense, or made when pruning needs them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .problems import Matrix


@dataclass(frozen=True)
class LazyRows:
    """Rows of W that are made when they are needed.

    which : the row numbers. make : returns some of these rows, dense.
    bounds : the largest |w_ij| · importance.columns[j] that each row can have; None if that is not known.
    """

    which: NDArray[np.intp]
    make: Callable[[NDArray[np.intp]], Matrix]
    bounds: NDArray[np.float64] | None = None

    def make_all(self) -> tuple[NDArray[np.intp], Matrix]:
        """All row numbers, and the rows."""
        return self.which, self.make(self.which)

    def make_above(self, threshold: float, of_rows: Matrix) -> tuple[NDArray[np.intp], Matrix]:
        """The rows that can have a pair with an importance above the threshold."""
        if self.bounds is None:
            return self.make_all()
        some = self.which[self.bounds * of_rows[self.which] > threshold]
        return some, self.make(some)


RowBlock: TypeAlias = tuple[NDArray[np.intp], Matrix] | LazyRows
"""Row numbers of W, and those rows, dense."""
