"""Losses: the cost of an item that does not beat another one by enough. Public as `sparserank.losses`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .. import validation
from ..base.parameters_file import storable


@storable
@dataclass(frozen=True)
class Squared:
    """(target - score)², summed over all queries and documents.

    Examples
    --------
    >>> Squared()
    Squared()
    """


@storable
@dataclass(frozen=True)
class Hinge:
    """max(0, margin - (s(better) - s(worse))) for each triple (Chen et al., 2010, eq. 2).

    Parameters
    ----------
    margin : float, default=1.0
        The difference of scores that costs nothing, above 0.

    Examples
    --------
    >>> Hinge(margin=0.5)
    Hinge(margin=0.5)
    """

    margin: float = 1.0

    def __post_init__(self) -> None:
        validation.number("margin", self.margin, low=0, open_low=True)


@storable
@dataclass(frozen=True)
class SquaredHinge:
    """max(0, 1 - (s(better) - s(worse)))² for each pair.

    Examples
    --------
    >>> SquaredHinge()
    SquaredHinge()
    """


@storable
@dataclass(frozen=True)
class Softmax:
    """sum_p c_p log(sum_d exp(s_d - s_p)): p runs over the relevant documents, d over all, c_p is p's share of grades.

    Examples
    --------
    >>> Softmax()
    Softmax()
    """


@storable
@dataclass(frozen=True)
class Domination:
    """sum_i c_i log(1 + sum_{j below i} exp(s(j) - s(i) + Δ(i, j))), Δ(i, j) = m(i) - m(j) (Stevens et al., eq. 1.1).

    Parameters
    ----------
    windows : {'graded', 'base'}, default='graded'
        With 'graded', all items of a lower grade are below i (the paper's "multi-valued feedback"). With 'base', i has
        a grade above 0, and the items of grade 0 or less are below it.
    margin : float, mapping or sequence, default=0.0
        The paper's separable margin m. A number gives m = margin · grade. A mapping of grade to m, or a sequence with m
        of the grades 0, 1, 2, …, gives any m. `Queries.margin` of an item is added. Δ must not be negative.

    Examples
    --------
    >>> Domination("base", margin={0: 0.0, 1: 1.0, 2: 1.5})
    Domination(windows='base', margin={0: 0.0, 1: 1.0, 2: 1.5})
    """

    windows: str = "graded"
    margin: float | Mapping[float, float] | Sequence[float] = 0.0

    def __post_init__(self) -> None:
        validation.choice("windows", self.windows, ("graded", "base"))
        by_grade = self.margin_by_grade()
        if by_grade is None:
            validation.number("margin", self.margin, low=0)
        else:
            for grade, value in by_grade.items():
                validation.number("margin (a grade)", grade)
                validation.number(f"margin of grade {grade:g}", value)

    def margin_by_grade(self) -> dict[float, float] | None:
        """Return m of each grade, or None if the margin is a number.

        Returns
        -------
        dict of float to float, or None

        Examples
        --------
        >>> Domination(margin=[0.0, 1.0]).margin_by_grade()
        {0: 0.0, 1: 1.0}
        """
        if isinstance(self.margin, Mapping):
            return dict(self.margin)
        if isinstance(self.margin, Sequence | np.ndarray) and not isinstance(self.margin, str):
            return dict(enumerate(self.margin))
        return None
