"""Penalties: what it costs that parameters are not zero, or not their centre.

Coordinate descent reads a penalty as l1 · |w|₁ + l2 · ‖w‖². SparseSGD shrinks W by a threshold, alpha times the sum of
its rates: `L1` moves every entry towards zero by it, `GroupL1` every group's length, so that whole groups vanish.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import validation
from ..errors import ConfigError


class Elementwise:
    """A penalty that is l1 · |w|₁ + l2 · ‖w‖²."""

    @property
    def l1(self) -> float:
        """What |w|₁ counts."""
        return 0.0

    @property
    def l2(self) -> float:
        """What ‖w‖² counts."""
        return 0.0

    def of(self, w: NDArray[np.float64]) -> float:
        """What these weights cost."""
        return self.l1 * float(np.abs(w).sum()) + self.l2 * float(np.square(w).sum())  # no BLAS: the same bits always


@dataclass(frozen=True)
class NoPenalty(Elementwise):
    """Nothing is shrunk."""

    alpha: float = 0.0


@dataclass(frozen=True)
class L1(Elementwise):
    """alpha · sum of |W_ij| (paper C, eq. 5; paper S, eq. 1.4)."""

    alpha: float

    def __post_init__(self) -> None:
        validation.number("alpha", self.alpha, low=0)

    @property
    def l1(self) -> float:
        """What |w|₁ counts."""
        return self.alpha


@dataclass(frozen=True)
class L2(Elementwise):
    """alpha · sum of w² (paper S's ℓ₂²)."""

    alpha: float

    def __post_init__(self) -> None:
        validation.number("alpha", self.alpha, low=0)

    @property
    def l2(self) -> float:
        """What ‖w‖² counts."""
        return self.alpha


@dataclass(frozen=True)
class ElasticNet(Elementwise):
    """alpha · (l1_ratio · sum of |w| + (1 - l1_ratio) · sum of w²)."""

    alpha: float
    l1_ratio: float = 0.5

    def __post_init__(self) -> None:
        validation.number("alpha", self.alpha, low=0)
        validation.number("l1_ratio", self.l1_ratio, low=0, high=1)

    @property
    def l1(self) -> float:
        """What |w|₁ counts."""
        return self.alpha * self.l1_ratio

    @property
    def l2(self) -> float:
        """What ‖w‖² counts."""
        return self.alpha * (1.0 - self.l1_ratio)


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
        validation.number("alpha", self.alpha, low=0)
        validation.choice("over", self.over, ("rows", "columns"))

    def codes(self, n: int) -> NDArray[np.int64]:
        """The number of each row's (or column's) group."""
        if self.groups is None:
            return np.arange(n)
        labels = np.asarray(self.groups)
        if labels.shape != (n,):
            raise ConfigError(f"groups must name a group for each of the {n} {self.over}; got shape {labels.shape}")
        return np.unique(labels, return_inverse=True)[1].astype(np.int64)


Penalty = NoPenalty | L1 | GroupL1
"""What SparseSGD takes."""

Separable = NoPenalty | L1 | L2 | ElasticNet
"""What coordinate descent takes."""
