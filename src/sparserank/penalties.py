"""Penalties: what it costs that W is not zero, or not its centre.

A solver shrinks W by a threshold, alpha times the sum of its rates. `L1` moves every entry towards zero by it,
`GroupL1` every group's length, so that whole groups vanish.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import check
from .errors import ConfigError


@dataclass(frozen=True)
class NoPenalty:
    """Nothing is shrunk."""

    alpha: float = 0.0


@dataclass(frozen=True)
class L1:
    """alpha · sum of |W_ij| (paper C, eq. 5)."""

    alpha: float

    def __post_init__(self) -> None:
        check.number("alpha", self.alpha, low=0)


@dataclass(frozen=True)
class GroupL1:
    """alpha · sum over groups of the group's Euclidean length.

    over : 'rows' (query words), 'columns' (document words).
    groups : None for one group a row (or column), else a label for each of them; equal labels are one group.
    """

    alpha: float
    over: str = "rows"
    groups: ArrayLike | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        check.number("alpha", self.alpha, low=0)
        check.choice("over", self.over, ("rows", "columns"))

    def codes(self, n: int) -> NDArray[np.int64]:
        """The number of each row's (or column's) group."""
        if self.groups is None:
            return np.arange(n)
        labels = np.asarray(self.groups)
        if labels.shape != (n,):
            raise ConfigError(f"groups must name a group for each of the {n} {self.over}; got shape {labels.shape}")
        return np.unique(labels, return_inverse=True)[1].astype(np.int64)


Penalty = NoPenalty | L1 | GroupL1
