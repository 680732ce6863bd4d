"""Which pairs stay: the entries of W whose loss would cost the objective most.

Leaving out w_ij alone costs about w_ij² ((QᵀQ)_ii + a) ((DᵀD)_jj + b), so the root of that is what a pair is worth.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..errors import ConfigError
from .list_problem import JudgedLists, Matrix, Ridge, squared_lengths

if TYPE_CHECKING:
    from scipy.sparse import csr_array

POOL = 2
"""Pairs that are held while W is made, as a multiple of those wanted, before the least are let go."""
DEFAULT_MAX_PAIRS = 300_000
"""The budget if the user gives none: 2.4 megabytes."""
BYTES_PER_PAIR = 8


@dataclass(frozen=True)
class PairBudget:
    """The number of word pairs that W may have.

    Parameters
    ----------
    max_pairs : int or None, default=None
        The largest number of pairs. Give at most one of `max_pairs`, `density` and `megabytes`; if all are None, the
        budget is `DEFAULT_MAX_PAIRS`.
    density : float or None, default=None
        The number of pairs as a fraction of all entries of W.
    megabytes : float or None, default=None
        The size of the arrays that store W.
    pairs_per_word : int or None, default=None
        The largest number of pairs of one query word.
    nonnegative : bool, default=False
        Whether only pairs with a positive weight are kept.

    Examples
    --------
    >>> PairBudget(density=0.1).for_shape((20, 50)).pairs
    100
    """

    max_pairs: int | None = None
    density: float | None = None
    megabytes: float | None = None
    pairs_per_word: int | None = None
    nonnegative: bool = False

    def __post_init__(self) -> None:
        given = [name for name in ("max_pairs", "density", "megabytes") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ConfigError(f"{' and '.join(map(repr, given))} all limit the size of W; give one of them")
        if self.max_pairs is not None:
            validation.count("max_pairs", self.max_pairs, low=1)
        if self.density is not None:
            validation.number("density", self.density, low=0, high=1, open_low=True)
        if self.megabytes is not None:
            validation.number("megabytes", self.megabytes, low=0, open_low=True)
        if self.pairs_per_word is not None:
            validation.count("pairs_per_word", self.pairs_per_word, low=1)
        validation.flag("nonnegative", self.nonnegative)

    @property
    def pairs(self) -> int:
        """The number of pairs; a `density` or `megabytes` budget needs `for_shape` first."""
        assert self.density is None
        assert self.megabytes is None
        return DEFAULT_MAX_PAIRS if self.max_pairs is None else self.max_pairs

    def for_shape(self, shape: tuple[int, int]) -> PairBudget:
        """Return the same budget as a number of pairs, for a W of this shape."""
        if self.density is not None:
            pairs = max(1, round(self.density * shape[0] * shape[1]))
        elif self.megabytes is not None:
            row_bytes = 4 * (shape[0] + 1)
            pairs = int((self.megabytes * 1e6 - row_bytes) / BYTES_PER_PAIR)
            if pairs < 1:
                least = (row_bytes + BYTES_PER_PAIR) / 1e6
                raise ConfigError(
                    f"The 'megabytes' parameter must be at least {least:.2f} for this vocabulary. Got {self.megabytes}."
                )
        else:
            pairs = self.pairs
        return replace(self, max_pairs=pairs, density=None, megabytes=None)

    def times(self, factor: int) -> PairBudget:
        """Return a budget of `factor` times the pairs, in total and for each word."""
        per_word = None if self.pairs_per_word is None else self.pairs_per_word * factor
        return replace(self, max_pairs=self.pairs * factor, pairs_per_word=per_word)


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
    budget: PairBudget,
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
        if budget.pairs_per_word is not None and budget.pairs_per_word < block.shape[1]:
            _keep_in_rows(value, budget.pairs_per_word)
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


def cut(W: csr_array, worth: Worth, budget: PairBudget) -> csr_array:
    """The pairs that stay of a sparse W."""
    from scipy.sparse import csr_array

    row = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))
    value = np.abs(W.data) * worth.rows[row] * worth.columns[W.indices]
    value = np.where((W.data > 0.0) if budget.nonnegative else (W.data != 0.0), value, -1.0)
    kept = np.flatnonzero(value >= 0.0)
    if len(kept) > budget.pairs or budget.pairs_per_word is not None:
        kept = _most_worth(value, row, budget)
    indptr = np.searchsorted(row[kept], np.arange(W.shape[0] + 1))
    return csr_array((W.data[kept], W.indices[kept], indptr.astype(W.indptr.dtype)), shape=W.shape)


def _most_worth(value: Matrix, row: NDArray[np.intp], budget: PairBudget) -> NDArray[np.intp]:
    """Which entries stay, in their order; those of a value below 0 do not."""
    order = np.argsort(-value, kind="stable")
    order = order[value[order] >= 0.0]
    if budget.pairs_per_word is not None:
        by_row = order[np.argsort(row[order], kind="stable")]
        starts = np.searchsorted(row[by_row], row[by_row])
        allowed = np.zeros(len(value), np.bool_)
        allowed[by_row[np.arange(len(by_row)) - starts < budget.pairs_per_word]] = True
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
