"""Penalties: the cost of parameters that are not zero. Public as `sparserank.penalties`.

A penalty owns its proximal operator, prox(w, step) = argmin over v of penalty(v) + ‖v - w‖² / (2 step).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import validation
from ..base.parameters_file import storable
from ..errors import ConfigError

Floats = NDArray[Any]


@dataclass(frozen=True)
class Separable:
    """A penalty of the form alpha · (l1_ratio · |w|₁ + (1 - l1_ratio) · ‖w‖²).

    Parameters
    ----------
    alpha : float
        Strength, at least 0.
    """

    alpha: float
    l1_ratio: ClassVar[float]

    def __post_init__(self) -> None:
        validation.number("alpha", self.alpha, low=0)
        validation.number("l1_ratio", self.l1_ratio, low=0, high=1)

    @property
    def l1(self) -> float:
        """The factor of |w|₁."""
        return self.alpha * self.l1_ratio

    @property
    def l2(self) -> float:
        """The factor of ‖w‖²."""
        return self.alpha * (1.0 - self.l1_ratio)

    def value(self, w: Floats) -> float:
        """Return l1 · |w|₁ + l2 · ‖w‖².

        Parameters
        ----------
        w : ndarray
            Weights.

        Examples
        --------
        >>> L1(0.5).value(np.array([1.0, -3.0]))
        2.0
        """
        return self.l1 * float(np.abs(w).sum()) + self.l2 * float(np.square(w).sum())  # no BLAS: the same bits always

    def prox(self, w: Floats, step: float = 1.0) -> Floats:
        """Return the proximal operator: soft-threshold w by step · l1, then divide it by 1 + 2 step · l2.

        Parameters
        ----------
        w : ndarray
            Weights.
        step : float, default=1.0
            The step size of the proximal gradient method.

        Examples
        --------
        >>> L1(1.0).prox(np.array([3.0, -0.5, -2.0])).tolist()
        [2.0, -0.0, -1.0]
        """
        shrunk = np.copysign(np.maximum(np.abs(w) - w.dtype.type(step * self.l1), w.dtype.type(0.0)), w)
        return np.asarray(shrunk if self.l2 == 0.0 else shrunk / w.dtype.type(1.0 + 2.0 * step * self.l2))


@storable
@dataclass(frozen=True)
class NoPenalty(Separable):
    """No penalty: nothing is shrunk.

    Parameters
    ----------
    alpha : float, default=0.0
        Ignored. Every penalty has an alpha.

    Examples
    --------
    >>> NoPenalty().prox(np.array([2.0])).tolist()
    [2.0]
    """

    alpha: float = 0.0
    l1_ratio: ClassVar[float] = 0.0
    l1 = l2 = 0.0


@storable
@dataclass(frozen=True)
class L1(Separable):
    """alpha · sum of |w|, which makes weights sparse (Chen et al., 2010, eq. 5; Stevens et al., 2010, eq. 1.4).

    Parameters
    ----------
    alpha : float
        Strength, at least 0.

    Examples
    --------
    >>> L1(2.0).prox(np.array([3.0, -1.0]), step=0.5).tolist()
    [2.0, -0.0]
    """

    l1_ratio: ClassVar[float] = 1.0


@storable
@dataclass(frozen=True)
class L2(Separable):
    """alpha · sum of w² (the ℓ₂² penalty of Stevens et al., 2010).

    Parameters
    ----------
    alpha : float
        Strength, at least 0.

    Examples
    --------
    >>> L2(0.5).prox(np.array([3.0, -1.0])).tolist()
    [1.5, -0.5]
    """

    l1_ratio: ClassVar[float] = 0.0


@storable
@dataclass(frozen=True)
class ElasticNet(Separable):
    """alpha · (l1_ratio · sum of |w| + (1 - l1_ratio) · sum of w²).

    Parameters
    ----------
    alpha : float
        Strength, at least 0.
    l1_ratio : float, default=0.5
        Share of the L1 part, from 0 to 1.

    Examples
    --------
    >>> ElasticNet(1.0, l1_ratio=0.5).prox(np.array([3.0])).tolist()
    [1.25]
    """

    l1_ratio: float = 0.5  # type: ignore[misc]


@storable
@dataclass(frozen=True)
class GroupL1:
    """alpha · sum over groups of the group's Euclidean norm, which removes whole groups.

    Parameters
    ----------
    alpha : float
        Strength, at least 0.
    over : {'rows', 'columns'}, default='rows'
        What is grouped: rows of W (query words) or columns (document words).
    groups : array-like of shape (n,), default=None
        One label for each row (or column); equal labels form one group. None makes each row its own group.

    Examples
    --------
    >>> GroupL1(1.0).prox(np.array([[3.0, 4.0], [0.3, 0.4]])).round(2).tolist()
    [[2.4, 3.2], [0.0, 0.0]]
    """

    alpha: float
    over: str = "rows"
    groups: ArrayLike | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        validation.number("alpha", self.alpha, low=0)
        validation.choice("over", self.over, ("rows", "columns"))

    def prox(self, W: Floats, step: float = 1.0) -> Floats:
        """Return the proximal operator: shorten every group of a dense W by step · alpha; shorter groups become 0.

        Parameters
        ----------
        W : ndarray of shape (n_rows, n_columns)
            Weights.
        step : float, default=1.0
            The step size of the proximal gradient method.

        Examples
        --------
        >>> GroupL1(5.0, over="columns").prox(np.array([[3.0, 1.0], [4.0, 0.0]])).tolist()
        [[0.0, 0.0], [0.0, 0.0]]
        """
        rows = W if self.over == "rows" else W.T
        shrunk = rows * self.shrink_factors(np.square(rows).sum(axis=1), step * self.alpha)[:, None]
        return shrunk if self.over == "rows" else shrunk.T

    def shrink_factors(self, squared_norms: NDArray[np.float64], threshold: float) -> NDArray[np.float64]:
        """Return the factor of each row (or column) that shortens its group's norm by `threshold`.

        Parameters
        ----------
        squared_norms : ndarray of shape (n,)
            The squared norm of each row (or column).
        threshold : float
            What is taken off the norm of each group.

        Examples
        --------
        >>> GroupL1(1.0).shrink_factors(np.array([4.0, 0.25]), 1.0).tolist()
        [0.5, 0.0]
        """
        group = self._group_of(len(squared_norms))
        norm = np.sqrt(np.bincount(group, weights=squared_norms))
        return np.maximum(0.0, 1.0 - np.divide(threshold, norm, out=np.ones_like(norm), where=norm > 0))[group]

    def _group_of(self, n: int) -> NDArray[np.int64]:
        """The number of each row's (or column's) group."""
        if self.groups is None:
            return np.arange(n)
        labels = np.asarray(self.groups)
        if labels.shape != (n,):
            raise ConfigError(f"groups must have one label for each of the {n} {self.over}; got shape {labels.shape}")
        return np.unique(labels, return_inverse=True)[1].astype(np.int64)


@storable
@dataclass(frozen=True)
class Ridge:
    """a ‖W Dᵀ‖² + b ‖V^½ Q W‖² + a b ‖W‖² with a = query and b = document: the ridge penalty of a bilinear model.

    Parameters
    ----------
    query : float, default=1.0
        Strength on the side of the queries.
    document : float, default=1.0
        Strength on the side of the documents.

    Examples
    --------
    >>> Ridge(query=0.3)
    Ridge(query=0.3, document=1.0)
    """

    query: float = 1.0
    document: float = 1.0


Penalty = NoPenalty | L1 | GroupL1
"""The penalties of SparseSGD."""
