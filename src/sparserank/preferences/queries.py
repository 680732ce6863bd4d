"""Graded rows sorted by query, then by falling grade: the order that LETOR rankers train on.

The rows of one query are adjacent, and in them the rows of one grade: a *level*. A row beats every row of its query
below its level, which is a suffix of its query. No array here grows with the number of pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import DataError
from .columns import Floats, Ints, factorize, freeze_arrays, level_starts, numbers, weights


@dataclass(frozen=True)
class Queries:
    """The sorted rows of a training set. A *place* is a position in `order`; a *row* is one of the user's matrix.

    Attributes
    ----------
    order : ndarray of int
        order[p] is the row at place p; rows of one query and one grade keep their order.
    grade, weight : ndarray
        Grade of the row at each place, and its weight as a winner (1 by default).
    margin : ndarray
        s of the row at each place, for a separable margin Δ(i, j) = s(i) - s(j) (0 by default).
    level : ndarray of int
        Level l holds the places level[l] … level[l + 1] - 1.
    query_levels : ndarray of int
        Query q has the levels query_levels[q] … query_levels[q + 1] - 1, the best first.
    ids : ndarray
        The query ids, sorted.

    Examples
    --------
    >>> queries = Queries.of([0, 2, 1, 0, 1], qid=["b", "a", "a", "a", "b"])
    >>> queries.order.tolist(), queries.start.tolist(), queries.level.tolist()
    ([1, 2, 3, 4, 0], [0, 3, 5], [0, 1, 2, 3, 4, 5])
    >>> queries.first_loser.tolist(), queries.query_end.tolist(), queries.n_pairs
    ([1, 2, 3, 4, 5], [3, 3, 3, 5, 5], 4)
    """

    order: Ints
    grade: Floats
    weight: Floats
    margin: Floats
    level: Ints
    query_levels: Ints
    ids: NDArray[Any]

    def __post_init__(self) -> None:
        freeze_arrays(self)

    @classmethod
    def of(
        cls, grades: ArrayLike, qid: ArrayLike | None = None, weight: ArrayLike | None = None,
        margin: ArrayLike | None = None,
    ) -> Queries:  # fmt: skip
        """Sort rows by query and grade; without qid all rows are one query."""
        grade = numbers("y", grades)
        n = len(grade)
        ids, code = factorize("qid", np.zeros(n, np.int64) if qid is None else qid)
        if len(code) != n:
            raise DataError(f"{n} rows need {n} qids; got {len(code)}")
        order = np.lexsort((-grade, code)).astype(np.int64, copy=False)
        grade, code = grade[order], code[order]
        new_query, new_level = level_starts(code, grade)
        query_levels = np.searchsorted(new_level, new_query)
        return cls(
            order,
            grade,
            np.ones(n) if weight is None else weights("sample_weight", weight, n)[order],
            np.zeros(n) if margin is None else numbers("margins", margin, n)[order],
            np.append(new_level, n).astype(np.int64),
            np.append(query_levels, len(new_level)).astype(np.int64),
            ids,
        )

    def __len__(self) -> int:
        return len(self.query_levels) - 1

    def with_margins(self, margins: ArrayLike) -> Queries:
        """The same rows with other margins, one per row."""
        return replace(self, margin=numbers("margins", margins, len(self.order))[self.order])

    @cached_property
    def start(self) -> Ints:
        """Query q holds the places start[q] … start[q + 1] - 1."""
        return self.level[self.query_levels]

    @cached_property
    def place(self) -> Ints:
        """place[row] = the position of the row in `order`."""
        out = np.empty_like(self.order)
        out[self.order] = np.arange(len(self.order))
        return out

    @cached_property
    def query(self) -> Ints:
        """The number of the query at each place."""
        return np.repeat(np.arange(len(self)), np.diff(self.start))

    @cached_property
    def first_loser(self) -> Ints:
        """The row at place p beats those at first_loser[p] … query_end[p] - 1."""
        return np.repeat(self.level[1:], np.diff(self.level))

    @cached_property
    def query_end(self) -> Ints:
        """Where the query of each place ends."""
        return self.start[1:][self.query]

    @property
    def n_pairs(self) -> int:
        """The number of pairs (better, worse)."""
        return int((self.query_end - self.first_loser).sum())

    @cached_property
    def skipped(self) -> int:
        """The number of queries with only one grade or one row, which have no pairs."""
        return int((np.diff(self.query_levels) < 2).sum())

    def by_row(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values by place, in the order of the rows."""
        return values[self.place]

    def require_pairs(self) -> Queries:
        """Itself, or a DataError if no row has another one to beat."""
        if self.skipped == len(self):
            n = len(self.order)
            raise DataError(
                f"nothing to learn: no query has rows of two different grades (got {n} sample{'s' * (n > 1)} in "
                f"{len(self)} quer{'ies' if len(self) > 1 else 'y'})"
            )
        if not self.weight[self.first_loser < self.query_end].any():
            raise DataError("sample_weight is zero for every row that has another one to beat; weights count winners")
        return self
