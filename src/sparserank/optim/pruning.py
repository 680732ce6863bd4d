"""Pruning: which entries of W stay.

Removing w_ij alone costs the objective about w_ij² ((QᵀVQ)_ii + a) ((DᵀD)_jj + b); the root of that is its importance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..errors import ConfigError
from ..thread_pool import map_in_threads
from .penalties import Ridge
from .problems import ListProblem, Matrix, compute_squared_norms
from .row_blocks import RowBlock

if TYPE_CHECKING:
    from scipy.sparse import csr_array

POOL = 2
"""Pairs held while W is made, as a multiple of the budget, before the least important are dropped."""
DEFAULT_MAX_PAIRS = 300_000
"""The budget if the user gives none: 2.4 megabytes."""
BYTES_PER_PAIR = 8
BLOCK_BYTES = 16 << 20
"""Bytes of a block of B Bᵀ, for each thread."""
LEADING_BITS = 16
"""Impacts are counted by this many leading bits of a float32: the exponent and 8 bits of the fraction."""
ERROR_GAIN, CHANGE_GAIN, MAX_LOG_STEP = 0.2, 0.6, 0.7
"""Of `DensityController`: factors of the error and of its change, and the largest change of log(alpha)."""


def find_largest(values: NDArray[Any], k: int) -> NDArray[np.intp]:
    """The positions of the k largest |values|, in rising order; of equal values the first."""
    size = np.abs(values)
    if len(size) <= k:
        return np.arange(len(size))
    threshold = np.partition(size, len(size) - k)[len(size) - k]
    keep = size > threshold
    ties = np.flatnonzero(size == threshold)
    keep[ties[: k - int(keep.sum())]] = True
    return np.flatnonzero(keep)


def find_row_largest(W: csr_array, row: int, k: int | None = None, signed: bool = False) -> NDArray[np.intp]:
    """The places in W.data of the k largest |entries| of one row, largest first; `signed` compares without |·|."""
    start, stop = W.indptr[row], W.indptr[row + 1]
    data = W.data[start:stop]
    order = np.argsort(-(data if signed else np.abs(data)), kind="stable")
    return np.asarray(start + order[:k])


def keep_largest(W: csr_array, k: int) -> csr_array:
    """Only the k entries of W that are largest in absolute value; of equal ones the first.

    >>> from scipy.sparse import csr_array
    >>> keep_largest(csr_array([[3.0, -1.0], [0.5, 2.0]]), 2).toarray().tolist()
    [[3.0, 0.0], [0.0, 2.0]]
    """
    return W if W.nnz <= k else _select_entries(W, find_largest(W.data, k))


def _select_entries(W: csr_array, chosen: NDArray[np.intp]) -> csr_array:
    """W with some of its entries, given by rising position; stored zeros are dropped."""
    from scipy.sparse import csr_array

    chosen = chosen[W.data[chosen] != 0.0]
    indptr = np.searchsorted(chosen, W.indptr).astype(W.indptr.dtype)
    return csr_array((W.data[chosen], W.indices[chosen], indptr), shape=W.shape)


@dataclass
class DensityController:
    """Moves alpha during training so that W ends with about `target` nonzeros: a PD controller of log(nonzeros).

    Chen et al. try λ by hand until W is 5–10 % dense.
    """

    target: int
    alpha: float
    last_error: float = 0.0

    def update(self, nonzeros: int) -> float:
        """The alpha of the next batches, given the current nonzeros."""
        error = math.log(max(nonzeros, 1) / self.target)
        step = ERROR_GAIN * error + CHANGE_GAIN * (error - self.last_error)
        self.last_error = error
        self.alpha *= math.exp(min(max(step, -MAX_LOG_STEP), MAX_LOG_STEP))
        return self.alpha


# ---- by importance, within a budget


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
            number = "both" if len(given) == 2 else "all"
            raise ConfigError(f"{' and '.join(map(repr, given))} {number} limit the size of W; give one of them")
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
class Importance:
    """importance(i, j) = |w_ij| · rows[i] · columns[j]"""

    rows: NDArray[np.float32]
    columns: NDArray[np.float32]

    @classmethod
    def of(cls, problem: ListProblem, ridge: Ridge) -> Importance:
        """The importance for the objective of a list problem."""
        queries = compute_squared_norms(problem.Q, problem.weight) + ridge.query
        documents = compute_squared_norms(problem.D) + ridge.document
        return cls(np.sqrt(queries).astype(np.float32), np.sqrt(documents).astype(np.float32))


def prune(W: csr_array, importance: Importance, budget: PairBudget) -> csr_array:
    """The most important pairs of a sparse W; of equal ones the first."""
    row = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))
    value = np.abs(W.data) * importance.columns[W.indices] * importance.rows[row]  # in the order of the kernel
    chosen = np.flatnonzero(W.data > 0.0 if budget.nonnegative else W.data != 0.0)
    if budget.pairs_per_word is not None:
        chosen = chosen[_find_largest_of_rows(row[chosen], value[chosen], budget.pairs_per_word)]
    return _select_entries(W, chosen[find_largest(value[chosen], budget.pairs)])


def _find_largest_of_rows(row: NDArray[np.int64], value: Matrix, k: int) -> NDArray[np.intp]:
    """The positions of the k largest values of every row, in rising order; of equal ones the first."""
    by_row = np.lexsort((-value, row))
    rank = np.arange(len(by_row)) - np.searchsorted(row[by_row], row[by_row])
    return np.sort(by_row[rank < k])


def prune_rows(
    rows: Iterable[RowBlock],
    shape: tuple[int, int],
    importance: Importance,
    budget: PairBudget,
    forbidden: csr_array | None = None,
    forbidden_words: tuple[NDArray[np.bool_], NDArray[np.bool_]] | None = None,
    columns: NDArray[np.intp] | None = None,
    n_jobs: int | None = 1,
) -> csr_array:
    """The most important pairs of a W that comes in blocks of dense rows, by rising number; of equal ones the first.

    forbidden : pairs that must not stay. forbidden_words : rows and columns that must stay empty.
    columns : the columns that the blocks have, rising; the others are 0. None is all.
    n_jobs : lazy rows are made and searched by so many threads, which changes no bit.
    """
    from .._kernels.row_pruning import find_important

    is_open = (1.0, 1.0) if forbidden_words is None else tuple((~side).astype(np.float32) for side in forbidden_words)
    columns = np.arange(shape[1]) if columns is None else columns
    of_rows, of_columns = importance.rows * is_open[0], (importance.columns * is_open[1])[columns]
    excluded = None if forbidden is None else _places(forbidden.nonzero(), shape[1])
    pool, threads = _Pool(budget.pairs), validation.threads(n_jobs)

    def find(block: RowBlock) -> tuple[NDArray[np.int64], Matrix, Matrix]:
        which, dense = block if isinstance(block, tuple) else block.make_above(float(pool.threshold), of_rows)
        row, column, weight, value = find_important(
            dense, of_rows[which], of_columns, pool.threshold, budget.nonnegative
        )
        place = _places((which[row], columns[column]), shape[1])
        if excluded is not None:
            kept = ~np.isin(place, excluded)
            row, place, weight, value = row[kept], place[kept], weight[kept], value[kept]
        if budget.pairs_per_word is not None:
            largest = _find_largest_of_rows(row, value, budget.pairs_per_word)
            place, weight, value = place[largest], weight[largest], value[largest]
        return place, weight, value

    blocks = iter(rows)
    while some := list(islice(blocks, threads)):
        for found in map_in_threads(find, some, threads):
            pool.add(*found)
    return pool.to_csr(shape)


def _places(entries: tuple[Any, ...], width: int) -> NDArray[np.int64]:
    row, column = entries
    return np.asarray(row * np.int64(width) + column)


@dataclass(frozen=True)
class RowPruning:
    """`prune_rows` with its settings; `report` gets the fraction of the rows that are done."""

    shape: tuple[int, int]
    importance: Importance
    budget: PairBudget
    forbidden: csr_array | None = None
    forbidden_words: tuple[NDArray[np.bool_], NDArray[np.bool_]] | None = None
    n_jobs: int | None = None
    report: Callable[[float], None] | None = None

    def __call__(self, rows: Iterable[RowBlock], columns: NDArray[np.intp] | None = None) -> csr_array:
        """The most important pairs of these rows."""
        limits = self.forbidden, self.forbidden_words
        rows = rows if self.report is None else self._reported(rows, self.report)
        return prune_rows(rows, self.shape, self.importance, self.budget, *limits, columns, self.n_jobs)

    def _reported(self, rows: Iterable[RowBlock], report: Callable[[float], None]) -> Iterator[RowBlock]:
        for block in rows:
            which = block[0] if isinstance(block, tuple) else block.which
            report(float(which[-1] + 1) / self.shape[0])
            yield block

    def merge(self, parts: Iterable[csr_array]) -> csr_array:
        """The most important pairs of results for different rows."""
        total = sum(parts, start=empty_pattern(self.shape))
        return prune(total.tocsr(), self.importance, self.budget)


def empty_pattern(shape: tuple[int, int]) -> csr_array:
    """A W without pairs."""
    from scipy.sparse import csr_array

    return csr_array(shape, dtype=np.float32)


class _Pool:
    """The k most important pairs so far, and at most POOL times as many for a while."""

    def __init__(self, k: int) -> None:
        self._k, self._size, self.threshold = k, 0, np.float32(0.0)
        self._parts = [(np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0, np.float32))]

    def add(self, place: NDArray[np.int64], weight: Matrix, value: Matrix) -> None:
        """Add pairs with higher places than those before."""
        self._parts.append((place, weight, value))
        self._size += len(place)
        if self._size > POOL * self._k:
            self._shrink()

    def _shrink(self) -> None:
        place, weight, value = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        if self._size > self._k:
            kept = find_largest(value, self._k)
            place, weight, value = place[kept], weight[kept], value[kept]
            self.threshold = value.min()
        self._parts, self._size = [(place, weight, value)], len(place)

    def to_csr(self, shape: tuple[int, int]) -> csr_array:
        from scipy.sparse import csr_array

        self._shrink()
        place, weight, _ = self._parts[0]
        row, column = np.divmod(place, shape[1])
        return csr_array((weight, (row, column.astype(np.int32))), shape=shape)


# ---- by impact: |w_ij| · rms_i · rms_j, with rms_i the root mean square of column i over the training rows


def compute_column_rms(X: csr_array) -> Matrix:
    """out[j] = the root mean square of column j."""
    return np.asarray(np.sqrt(compute_squared_norms(X) / max(X.shape[0], 1)), dtype=np.float32)


def prune_by_impact(W: csr_array, rms: Matrix, k: int) -> csr_array:
    """The k entries of W with the largest impact."""
    return _select_entries(W, find_largest(W.data * np.repeat(rms, np.diff(W.indptr)) * rms[W.indices], k))


def prune_product(B: Matrix, rms: Matrix, k: int, n_jobs: int | None = None) -> csr_array:
    """The k entries of B Bᵀ with the largest impact, of equal ones the first; only a few rows are ever dense.

    One pass counts the impacts by size, a second one collects those that can be among the largest.

    >>> prune_product(np.array([[1.0], [2.0]], np.float32), np.ones(2, np.float32), 3).toarray().tolist()
    [[0.0, 2.0], [2.0, 4.0]]
    """
    from scipy.sparse import csr_array

    factor = B * rms[:, None]
    live = np.flatnonzero(factor.any(axis=1))
    factor = np.ascontiguousarray(factor[live])
    least = _count_least_bits(factor, k, n_jobs) if k < len(live) ** 2 else 1
    parts = list(_map_blocks(factor, n_jobs, lambda start, block: _collect_entries(start, block, least)))
    empty = (np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.float32))
    row, column, impact = (np.concatenate(part) for part in zip(*parts, strict=True)) if parts else empty
    chosen = find_largest(impact, k)
    row, column, impact = live[row[chosen]], live[column[chosen]], impact[chosen]
    pointer = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(B)))])
    return csr_array((impact / (rms[row] * rms[column]), column.astype(np.int32), pointer), shape=(len(B), len(B)))


def _count_least_bits(factor: Matrix, k: int, n_jobs: int | None) -> int:
    """The largest leading bits that k or more impacts reach."""
    size = 1 << LEADING_BITS
    counts = _map_blocks(factor, n_jobs, lambda _, block: np.bincount(_bits(block).ravel(), minlength=size))
    reach = np.cumsum(sum(counts)[::-1])[::-1]
    return max(1, int(np.flatnonzero(reach >= k)[-1]))


def _collect_entries(start: int, block: Matrix, least: int) -> tuple[Any, Any, Any]:
    row, column = np.nonzero(_bits(block) >= least)
    return (row + start).astype(np.int32), column.astype(np.int32), block[row, column]


def _bits(block: Matrix) -> NDArray[np.uint32]:
    return (block.view(np.uint32) & np.uint32(0x7FFFFFFF)) >> np.uint32(31 - LEADING_BITS)


def _map_blocks(factor: Matrix, n_jobs: int | None, function: Any) -> Iterator[Any]:
    """function(start, factor[start:stop] @ factorᵀ) of every block of rows, in order."""
    from .._kernels.class_pairs import product_rows

    transposed = np.ascontiguousarray(factor.T)
    rows = max(1, BLOCK_BYTES // (4 * max(len(factor), 1)))

    def run(start: int) -> Any:
        block = np.empty((min(rows, len(factor) - start), len(factor)), np.float32)
        product_rows(factor, transposed, start, block)
        return function(start, block)

    with ThreadPoolExecutor(validation.threads(n_jobs)) as pool:
        yield from pool.map(run, range(0, len(factor), rows))
