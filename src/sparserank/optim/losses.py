"""Losses: what it costs that an item does not beat another by enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..errors import DataError
from ..preferences.queries import Queries


@dataclass(frozen=True)
class Hinge:
    """max(0, margin - (s(better) - s(worse))), on triples (paper C, eq. 2)."""

    margin: float = 1.0

    def __post_init__(self) -> None:
        validation.number("margin", self.margin, low=0, open_low=True)


@dataclass(frozen=True)
class Domination:
    """sum_i c_i log(1 + sum_{j below i} exp(s(j) - s(i) + Δ(i, j))), Δ(i, j) = m(i) - m(j) (Stevens et al., eq. 1.1).

    windows : 'graded', everything of a lower grade is below i (the paper's "multi-valued feedback"); 'base', i is an
        item with a grade above 0, and those of grade 0 or less are below it.
    margin : the paper's separable margin. A number: m = margin · grade. A mapping of grade to m, or a sequence with m
        of the grades 0, 1, 2, …: any m. What `Queries.margin` has for an item comes on top. Δ must not be negative.
    """

    windows: str = "graded"
    margin: float | Mapping[float, float] | Sequence[float] = 0.0

    def __post_init__(self) -> None:
        validation.choice("windows", self.windows, ("graded", "base"))
        by_grade = self._by_grade()
        if by_grade is None:
            validation.number("margin", self.margin, low=0)
        else:
            for grade, value in by_grade.items():
                validation.number("margin (a grade)", grade)
                validation.number(f"margin of grade {grade:g}", value)

    def _by_grade(self) -> dict[float, float] | None:
        """{grade: m}; None where the margin is a number."""
        if isinstance(self.margin, Mapping):
            return dict(self.margin)
        if isinstance(self.margin, Sequence | np.ndarray) and not isinstance(self.margin, str):
            return dict(enumerate(self.margin))
        return None

    def windows_of(self, queries: Queries) -> Queries:
        """The rows by query as this loss compares them."""
        if self.windows == "graded":
            return queries
        relevant = queries.by_row(queries.grade > 0)
        return Queries.of(relevant, queries.by_row(queries.query), queries.by_row(queries.weight))

    def offsets(self, queries: Queries) -> NDArray[np.float64]:
        """m of each row, above the least of all: what is taken off its score, winner or loser."""
        with np.errstate(over="ignore", invalid="ignore"):
            offset = self._of_grades(queries.grade) + queries.margin
            offset = offset - offset.min(initial=0.0)
        if not np.isfinite(offset).all():
            raise DataError(
                f"margin {self.margin} and a grade of {np.abs(queries.grade).max():g} give no finite number"
            )
        offset = queries.by_row(offset)
        _refuse_negative(self.windows_of(queries), offset)
        return np.asarray(offset)

    def _of_grades(self, grade: NDArray[np.float64]) -> NDArray[np.float64]:
        by_grade = self._by_grade()
        if by_grade is None:
            return np.asarray(self.margin * (grade - grade.min(initial=0.0)))
        levels, level = np.unique(grade, return_inverse=True)
        missing = [value for value in levels.tolist() if value not in by_grade]
        if missing:
            known = ", ".join(f"{value:g}" for value in by_grade)
            raise DataError(
                f"margin has no number for grade {missing[0]:g} (it has: {known}); add it, or give a number"
            )
        return np.array([by_grade[value] for value in levels.tolist()], dtype=np.float64)[level]


def _refuse_negative(windows: Queries, offset: NDArray[np.float64]) -> None:
    """Raise DataError where some item has a smaller m than an item below it, which would be a negative margin."""
    m = offset[windows.order]
    first, end = windows.first_loser, windows.query_end
    wins = first < end
    if not wins.any() or not m.any():
        return
    highest = np.full(len(m) + 1, -np.inf)
    for query, last in zip(windows.start.tolist(), windows.start[1:].tolist(), strict=False):
        highest[query:last] = np.maximum.accumulate(m[query:last][::-1])[::-1]
    bad = np.flatnonzero(wins & (m < np.where(wins, highest[np.minimum(first, len(m))], -np.inf)))
    if len(bad):
        i = int(bad[0])
        j = int(first[i] + np.argmax(m[first[i] : end[i]]))
        rows = int(windows.order[i]), int(windows.order[j])
        raise DataError(
            f"the margin between row {rows[0]} and row {rows[1]}, which it should beat, is {m[i] - m[j]:g}; "
            "margins must not fall as grades rise: give the better row at least what the worse one has"
        )
