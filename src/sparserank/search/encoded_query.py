"""Queries as an index is asked: rows of its own columns, and words that are looked for through W.

weights of a query = q in its columns,  gain · wᵀ W in the columns behind `shift`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..errors import DataError

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class Asked:
    """Rows, one a query; `words` and `W` are None where nothing was learned. `pairs` names W and the gain."""

    rows: csr_array
    words: csr_array | None = None
    W: csr_array | None = None
    gain: float = 1.0
    shift: int = 0
    pairs: str = ""

    def __post_init__(self) -> None:
        if not np.isfinite(self.rows.data).all():
            raise DataError("a query weight is not finite")
        if self.words is None or self.W is None:
            return
        if self.words.shape != (self.rows.shape[0], self.W.shape[0]):
            raise DataError(
                f"{self.rows.shape[0]} queries through a W of {self.W.shape}; got words of {self.words.shape}"
            )
        if self.rows.shape[1] < self.shift + self.W.shape[1]:
            raise DataError(f"W looks for {self.W.shape[1]} columns behind {self.shift}; got {self.rows.shape[1]}")
        if not (np.isfinite(self.words.data).all() and np.isfinite(self.gain)):
            raise DataError("a query weight is not finite")

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def expanded(self) -> csr_array:
        """Every query as one row, in 64 bits."""
        from scipy.sparse import csr_array, hstack

        rows = self.rows.astype(np.float64)
        if self.words is None or self.W is None:
            return csr_array(rows)
        learned = self.gain * (self.words.astype(np.float64) @ self.W.astype(np.float64))
        behind = rows.shape[1] - self.shift - self.W.shape[1]
        around = [csr_array((len(self), width)) for width in (self.shift, behind)]
        return csr_array(rows + hstack([around[0], learned, around[1]], format="csr"))
