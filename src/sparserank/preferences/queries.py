"""Graded rows by query, in the order that rankers learn from: by query, then by falling grade.

Rows of one query stand together, and in them rows of one grade: a *level*. A row's losers are every row of its query
below its level, so a suffix of its query. Nothing here grows with the number of pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import DataError
from .columns import Floats, Ints, groups_of, numbers


@dataclass(frozen=True)
class Queries:
    """The rows of a training set, sorted. *Places* are positions in `order`; *rows* are those of the user's matrix.

    order : order[p] is the row at place p; rows of one query and one grade keep the order they came in.
    grade, weight : of the row at each place; a weight is what the row's term counts as a winner (ones, unless given).
    margin : s of the row at each place, for losses with a separable margin Δ(i, j) = s(i) - s(j) (zeros, unless given).
    level : level l holds the places level[l] … level[l + 1] - 1.
    query_levels : query q has the levels query_levels[q] … query_levels[q + 1] - 1, the best first.
    ids : the queries' own names, sorted.

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
        for name, value in vars(self).items():
            frozen = value.view()
            frozen.setflags(write=False)
            object.__setattr__(self, name, frozen)

    @classmethod
    def of(
        cls,
        grades: ArrayLike,
        qid: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        margin: ArrayLike | None = None,
    ) -> Queries:
        """Grades (any finite numbers), qids (unsorted, of any one kind; None: all rows are one query), weights, s."""
        grade = numbers("y", grades)
        n = len(grade)
        ids, code = groups_of("qid", np.zeros(n, np.int64) if qid is None else qid)
        if len(code) != n:
            raise DataError(f"{n} rows need {n} qids; got {len(code)}")
        order = np.lexsort((-grade, code)).astype(np.int64, copy=False)
        grade, code = grade[order], code[order]
        new_query = np.diff(code, prepend=-1) != 0
        new_level = np.flatnonzero(new_query | (np.diff(grade, prepend=np.nan) != 0))
        query_levels = np.searchsorted(new_level, np.flatnonzero(new_query))
        return cls(
            order,
            grade,
            np.ones(n) if weight is None else _weights(weight, n)[order],
            np.zeros(n) if margin is None else _margins(margin, n)[order],
            np.append(new_level, n).astype(np.int64),
            np.append(query_levels, len(new_level)).astype(np.int64),
            ids,
        )

    def __len__(self) -> int:
        return len(self.query_levels) - 1

    def with_margins(self, margins: ArrayLike) -> Queries:
        """The same rows with these margins, one a row."""
        return replace(self, margin=_margins(margins, len(self.order))[self.order])

    @cached_property
    def start(self) -> Ints:
        """Query q holds the places start[q] … start[q + 1] - 1."""
        return self.level[self.query_levels]

    @cached_property
    def place(self) -> Ints:
        """place[row] = where the row stands in `order`."""
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
        """How many pairs (better, worse) there are."""
        return int((self.query_end - self.first_loser).sum())

    @cached_property
    def skipped(self) -> int:
        """How many queries have one grade only (or one row), so prefer nothing."""
        return int((np.diff(self.query_levels) < 2).sum())

    def by_row(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values that stand by place, put back in the order of the rows."""
        return values[self.place]

    def asking(self) -> Queries:
        """Itself, or a DataError where no row has another one to beat."""
        if self.skipped == len(self):
            n = len(self.order)
            raise DataError(
                f"nothing to learn: no query has rows of two different grades (got {n} sample{'s' * (n > 1)} in "
                f"{len(self)} quer{'ies' if len(self) > 1 else 'y'})"
            )
        if not self.weight[self.first_loser < self.query_end].any():
            raise DataError("sample_weight is zero for every row that has another one to beat; weights are winners'")
        return self


def _margins(values: ArrayLike, n: int) -> Floats:
    margin = numbers("margins", values)
    if len(margin) != n:
        raise DataError(f"{n} rows need {n} numbers in margins; got {len(margin)}")
    return margin


def _weights(values: ArrayLike, n: int) -> Floats:
    weight = numbers("sample_weight", values)
    if len(weight) != n:
        raise DataError(f"{n} rows need {n} weights in sample_weight; got {len(weight)}")
    if (weight < 0).any():
        raise DataError(f"sample_weight[{int((weight < 0).argmax())}] is negative")
    if not weight.any():
        raise DataError("sample_weight must not be zero for every row")
    return weight
