"""Losses: the cost of an item that does not beat another one by enough. Public as `sparserank.losses`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..base.parameters_file import storable
from ..errors import DataError
from ..preferences.queries import Queries

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Scores = NDArray[np.float32]


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
class Softmax:
    """sum_p c_p log(sum_d exp(s_d - s_p)): p runs over the relevant documents, d over all, c_p is p's share of grades.

    Examples
    --------
    >>> Softmax()
    Softmax()
    """

    def loss_and_gradient(self, scores: Scores, share: csr_array) -> tuple[float, Scores]:
        """Return the loss of dense scores and its derivative by each score.

        Parameters
        ----------
        scores : ndarray of shape (n_queries, n_documents)
            A score of -inf marks a document that is not a candidate.
        share : csr_array of shape (n_queries, n_documents)
            c_p of the relevant documents.

        Returns
        -------
        loss : float
        gradient : ndarray of the shape of scores

        Examples
        --------
        >>> from scipy.sparse import csr_array
        >>> loss, _ = Softmax().loss_and_gradient(np.zeros((1, 2), np.float32), csr_array([[1.0, 0.0]]))
        >>> round(loss, 4)
        0.6931
        """
        row, column = share.tocoo().coords
        there = np.isfinite(scores[row, column])
        row, column, data = row[there], column[there], share.data[there]
        top, odds, total = _exponentials(scores)
        loss = float(np.sum(data * ((np.log(total) + top)[row] - scores[row, column])))
        gradient = np.asarray(odds * (np.bincount(row, data, len(scores)) / total)[:, None], np.float32)
        gradient[row, column] -= data
        return loss, gradient


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
        by_grade = self._margin_by_grade()
        if by_grade is None:
            validation.number("margin", self.margin, low=0)
        else:
            for grade, value in by_grade.items():
                validation.number("margin (a grade)", grade)
                validation.number(f"margin of grade {grade:g}", value)

    def loss_and_gradient(self, scores: Scores, share: csr_array) -> tuple[float, Scores]:
        """Return the loss of dense scores and its derivative by each score, without margins.

        The loss is sum_p c_p log(1 + sum_n exp(s_n - s_p)), p relevant, n not.

        Parameters
        ----------
        scores : ndarray of shape (n_queries, n_documents)
            A score of -inf marks a document that is not a candidate.
        share : csr_array of shape (n_queries, n_documents)
            c_p of the relevant documents.

        Returns
        -------
        loss : float
        gradient : ndarray of the shape of scores

        Examples
        --------
        >>> from scipy.sparse import csr_array
        >>> loss, _ = Domination().loss_and_gradient(np.zeros((1, 3), np.float32), csr_array([[1.0, 0.0, 0.0]]))
        >>> round(loss, 4)
        1.0986
        """
        row, column = share.tocoo().coords
        losers = scores.copy()
        losers[row, column] = -np.inf
        top, odds, total = _exponentials(losers)
        # a query that everything is relevant to has no losers: log 0 = -inf, and the loss is 0
        with np.errstate(divide="ignore"):
            away = (np.log(total) + top)[row] - scores[row, column]
        away = np.where(np.isfinite(scores[row, column]), away, -np.inf)
        loss = float(np.sum(share.data * np.logaddexp(0.0, away)))
        lost = share.data / (1.0 + np.exp(np.minimum(-away, 700.0)))
        by_query = np.bincount(row, lost, len(scores)) / np.where(total > 0, total, 1.0)
        gradient = np.asarray(odds * by_query[:, None], np.float32)
        gradient[row, column] -= lost
        return loss, gradient

    def select_windows(self, queries: Queries) -> Queries:
        """Return the rows by query, with the windows that this loss compares.

        Parameters
        ----------
        queries : Queries
            Rows by query, with grades.

        Returns
        -------
        Queries

        Examples
        --------
        >>> queries = Queries.of(np.array([2.0, 1.0, 0.0]), np.zeros(3))
        >>> Domination("base").select_windows(queries).grade.tolist()
        [1.0, 1.0, 0.0]
        """
        if self.windows == "graded":
            return queries
        relevant = queries.by_row(queries.grade > 0)
        return Queries.of(relevant, queries.by_row(queries.query), queries.by_row(queries.weight))

    def compute_offsets(self, queries: Queries) -> NDArray[np.float64]:
        """Return m of each row, less the smallest m: what is subtracted from its score.

        Parameters
        ----------
        queries : Queries
            Rows by query, with grades and margins.

        Returns
        -------
        ndarray of shape (n_rows,)

        Raises
        ------
        DataError
            A margin is missing, negative or not finite.

        Examples
        --------
        >>> Domination(margin=0.5).compute_offsets(Queries.of(np.array([2.0, 1.0, 0.0]), np.zeros(3))).tolist()
        [1.0, 0.5, 0.0]
        """
        with np.errstate(over="ignore", invalid="ignore"):
            offset = self._margins_of(queries.grade) + queries.margin
            offset = offset - offset.min(initial=0.0)
        if not np.isfinite(offset).all():
            raise DataError(
                f"margin {self.margin} and a grade of {np.abs(queries.grade).max():g} give no finite number"
            )
        offset = queries.by_row(offset)
        _check_margins(self.select_windows(queries), offset)
        return np.asarray(offset)

    def _margin_by_grade(self) -> dict[float, float] | None:
        """{grade: m}; None if the margin is a number."""
        if isinstance(self.margin, Mapping):
            return dict(self.margin)
        if isinstance(self.margin, Sequence | np.ndarray) and not isinstance(self.margin, str):
            return dict(enumerate(self.margin))
        return None

    def _margins_of(self, grade: NDArray[np.float64]) -> NDArray[np.float64]:
        by_grade = self._margin_by_grade()
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


def _exponentials(scores: Scores) -> tuple[NDArray[np.float64], Any, NDArray[np.float64]]:
    """The highest score of each row, exp(scores - that), and its sum."""
    top = scores.max(axis=1, initial=-np.inf)
    top = np.where(np.isfinite(top), top, np.float32(0.0))
    odds = np.exp(scores - top[:, None])
    return top.astype(np.float64), odds, odds.sum(axis=1, dtype=np.float64)


def _check_margins(windows: Queries, offset: NDArray[np.float64]) -> None:
    """Raise DataError if an item has a smaller m than an item below it."""
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
