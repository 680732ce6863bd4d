"""Losses: what it costs that an item does not beat another by enough."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from . import check
from .errors import DataError
from .preferences.queries import Queries


@dataclass(frozen=True)
class Hinge:
    """max(0, margin - (s(better) - s(worse))), on triples (paper C, eq. 2)."""

    margin: float = 1.0

    def __post_init__(self) -> None:
        check.number("margin", self.margin, low=0, open_low=True)


@dataclass(frozen=True)
class Domination:
    """sum_i c_i log(1 + sum_{j below i} exp(s(j) - s(i) + margin · (grade(i) - grade(j)))) (paper S, eq. 1.1).

    windows : 'graded', everything of a lower grade is below i (the paper's "multi-valued feedback"); 'base', i is an
        item with a grade above 0, and those of grade 0 or less are below it.
    margin : the paper's separable margin with s = margin · grade.
    """

    windows: str = "graded"
    margin: float = 0.0

    def __post_init__(self) -> None:
        check.choice("windows", self.windows, ("graded", "base"))
        check.number("margin", self.margin)

    def windows_of(self, queries: Queries) -> Queries:
        """The rows by query as this loss compares them."""
        if self.windows == "graded":
            return queries
        relevant = queries.by_row(queries.grade > 0)
        return Queries.of(relevant, queries.by_row(queries.query), queries.by_row(queries.weight))

    def offsets(self, queries: Queries) -> NDArray[np.float64]:
        """What is taken off each row's score, winner or loser: margin · grade, above the least grade of all."""
        grade = queries.by_row(queries.grade)
        with np.errstate(over="ignore"):
            offset = self.margin * (grade - grade.min(initial=0.0))
        if not np.isfinite(offset).all():
            raise DataError(f"margin {self.margin:g} times a grade of {np.abs(grade).max():g} is no finite number")
        return np.asarray(offset)
