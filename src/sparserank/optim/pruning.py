"""Which pairs stay: the entries of W whose loss would cost the objective most.

Leaving out w_ij alone costs about w_ij² ((QᵀQ)_ii + a) ((DᵀD)_jj + b), so the root of that is what a pair is worth.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .. import validation
from .list_problem import JudgedLists, Matrix, Ridge, squared_lengths

if TYPE_CHECKING:
    from scipy.sparse import csr_array

POOL = 2
"""Pairs that are held while W is made, as a multiple of those wanted, before the least are let go."""


@dataclass(frozen=True)
class Budget:
    """How many pairs may stay: in all, and for each query word; only those above 0, where no negative one is wanted."""

    pairs: int
    per_word: int | None = None
    nonnegative: bool = False

    def __post_init__(self) -> None:
        validation.count("max_pairs", self.pairs, low=1)
        if self.per_word is not None:
            validation.count("pairs_per_word", self.per_word, low=1)

    def times(self, factor: int) -> Budget:
        """So many times the pairs."""
        return Budget(self.pairs * factor, None if self.per_word is None else self.per_word * factor, self.nonnegative)


@dataclass(frozen=True)
class Worth:
    """worth(i, j) = |w_ij| · rows[i] · columns[j]"""

    rows: NDArray[np.float32]
    columns: NDArray[np.float32]

    @classmethod
    def of(cls, lists: JudgedLists, ridge: Ridge) -> Worth:
        """By what a pair adds to the scores of these lists."""
        sides = squared_lengths(lists.Q, lists.weight) + ridge.a, squared_lengths(lists.D) + ridge.b
        return cls(*(np.sqrt(side).astype(np.float32) for side in sides))


def cut_rows(
    rows: Iterable[tuple[NDArray[np.intp], Matrix]],
    shape: tuple[int, int],
    worth: Worth,
    budget: Budget,
    forbidden: csr_array | None = None,
    barred: tuple[NDArray[np.bool_], NDArray[np.bool_]] | None = None,
) -> csr_array:
    """The pairs that stay of a W that comes some rows at a time; ties go to the earlier pair.

    forbidden marks pairs that must not stay, barred whole rows and columns.
    """
    pool = _Pool(budget.pairs)
    for which, block in rows:
        if forbidden is not None:
            block = np.where(forbidden[which].toarray() != 0, np.float32(0.0), block)
        if barred is not None:
            block = np.where(barred[0][which][:, None] | barred[1], np.float32(0.0), block)
        if budget.nonnegative:
            block = np.maximum(block, np.float32(0.0))
        value = np.abs(block) * worth.columns * worth.rows[which][:, None]
        if budget.per_word is not None and budget.per_word < block.shape[1]:
            _keep_in_rows(value, budget.per_word)
        i, j = np.nonzero(value > pool.least)
        pool.add(which[i] * np.int64(shape[1]) + j, block[i, j], value[i, j])
    return pool.matrix(shape)


def _keep_in_rows(value: Matrix, most: int) -> None:
    """Put 0 in place of all but the `most` largest of every row; of those that tie, the first stay."""
    least = -np.partition(-value, most - 1, axis=1)[:, most - 1]
    value[value < least[:, None]] = 0.0
    for i in np.flatnonzero((np.count_nonzero(value, axis=1) > most) & (least > 0.0)):
        tied = np.flatnonzero(value[i] == least[i])
        value[i, tied[most - np.count_nonzero(value[i] > least[i]) :]] = 0.0


def cut(W: csr_array, worth: Worth, budget: Budget) -> csr_array:
    """The pairs that stay of a sparse W."""
    from scipy.sparse import csr_array

    row = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))
    value = np.abs(W.data) * worth.rows[row] * worth.columns[W.indices]
    value = np.where((W.data > 0.0) if budget.nonnegative else (W.data != 0.0), value, -1.0)
    kept = np.flatnonzero(value >= 0.0)
    if len(kept) > budget.pairs or budget.per_word is not None:
        kept = _most_worth(value, row, budget)
    indptr = np.searchsorted(row[kept], np.arange(W.shape[0] + 1))
    return csr_array((W.data[kept], W.indices[kept], indptr.astype(W.indptr.dtype)), shape=W.shape)


def _most_worth(value: Matrix, row: NDArray[np.intp], budget: Budget) -> NDArray[np.intp]:
    """Which entries stay, in their order; those of a value below 0 do not."""
    order = np.argsort(-value, kind="stable")
    order = order[value[order] >= 0.0]
    if budget.per_word is not None:
        by_row = order[np.argsort(row[order], kind="stable")]
        starts = np.searchsorted(row[by_row], row[by_row])
        allowed = np.zeros(len(value), np.bool_)
        allowed[by_row[np.arange(len(by_row)) - starts < budget.per_word]] = True
        order = order[allowed[order]]
    return np.sort(order[: budget.pairs])


class _Pool:
    """The best `most` pairs so far, and some more."""

    def __init__(self, most: int) -> None:
        self._most, self.least = most, np.float32(0.0)
        self._place = np.empty(0, np.int64)
        self._weight = self._value = np.empty(0, np.float32)

    def add(self, place: NDArray[np.int64], weight: Matrix, value: Matrix) -> None:
        self._place = np.concatenate([self._place, place])
        self._weight = np.concatenate([self._weight, weight])
        self._value = np.concatenate([self._value, value])
        if len(self._place) > POOL * self._most:
            self._keep()

    def _keep(self) -> None:
        if len(self._place) > self._most:
            order = np.argsort(-self._value, kind="stable")[: self._most]
            self.least = self._value[order[-1]]
            order.sort()
            self._place, self._weight, self._value = self._place[order], self._weight[order], self._value[order]

    def matrix(self, shape: tuple[int, int]) -> csr_array:
        from scipy.sparse import csr_array

        self._keep()
        row, column = np.divmod(self._place, shape[1])
        return csr_array((self._weight, (row, column.astype(np.int32))), shape=shape)
