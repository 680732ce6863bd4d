"""Sums over partitions that do not depend on the order of additions.

Floating-point sums depend on their order, and a cluster adds what arrives first. So a `WeightedSum` that is added to
another counts in whole multiples of a fixed unit: integers, whose sum is exact. `ordered_sum` adds dense vectors in the
order of their partitions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ConfigError

if TYPE_CHECKING:
    from pyspark import RDD
    from scipy.sparse import csr_array

SUM_BITS = 62
MAX_MESSAGE_BYTES = 2**31 - 1
"""Limit of one message between Python and Spark."""


def compact_csr(W: csr_array) -> csr_array:
    """W with sorted columns, and with 32-bit indices if they fit: the form that is sent."""
    from scipy.sparse import csr_array

    W = W if W.has_sorted_indices else W.sorted_indices()
    index = np.int32 if max(W.nnz, *W.shape) <= np.iinfo(np.int32).max else np.int64
    arrays = W.data, W.indices.astype(index, copy=False), W.indptr.astype(index, copy=False)
    return csr_array(arrays, shape=W.shape)


def csr_bytes(W: csr_array) -> int:
    """Bytes of the three arrays."""
    return int(W.indptr.nbytes + W.indices.nbytes + W.data.nbytes)


def exact_unit(largest: float, steps: int) -> float:
    """A power of two in which numbers up to `largest`, counted `steps` times in all, add up without rounding.

    >>> exact_unit(1.0, 1) == 2.0**-60
    True
    """
    if not 0.0 < largest < math.inf:
        raise ConfigError(f"weights up to {largest} cannot be added up; is eta0 too large for these rows?")
    return 2.0 ** (math.frexp(largest)[1] + math.frexp(float(max(steps, 1)))[1] - SUM_BITS)


@dataclass(frozen=True)
class WeightedSum:
    """steps · W of one partition, or the sum over several; `reports` has one report for each partition number.

    The W of a single partition stays in float32, so nothing is rounded there.
    """

    W: csr_array
    steps: int
    unit: float
    reports: dict[int, Any]
    nbytes: int

    @classmethod
    def of(cls, W: csr_array, steps: int, unit: float, reports: dict[int, Any]) -> WeightedSum:
        """The result of one partition after `steps` steps."""
        W = compact_csr(W)
        if csr_bytes(W) > MAX_MESSAGE_BYTES:
            raise ConfigError(f"W has {W.nnz} entries, more than one message of Spark holds; ask for a lower density")
        return cls(W, steps, unit, reports, csr_bytes(W))

    def _in_units(self) -> csr_array:
        W = self.W.copy()
        if W.data.dtype != np.int64:
            W.data = np.rint(W.data.astype(np.float64) / self.unit).astype(np.int64) * self.steps
        return W

    def __add__(self, other: WeightedSum) -> WeightedSum:
        total = compact_csr((self._in_units() + other._in_units()).tocsr())
        steps, nbytes = self.steps + other.steps, self.nbytes + other.nbytes
        return WeightedSum(total, steps, self.unit, self.reports | other.reports, nbytes)

    def mean(self) -> csr_array:
        """The mean of W over all steps."""
        W = self.W.copy()
        if W.data.dtype == np.int64:
            W.data = (W.data.astype(np.float64) * (self.unit / self.steps)).astype(np.float32)
            W.eliminate_zeros()
        return W


def ordered_sum(parts: RDD[tuple[int, Any]], fan: int = 16) -> Any:
    """The sum of numbered values by a tree that depends on their numbers only: always the same bits.

    The values 0 … fan - 1 are added first, in that order, and so on; the sum of no values is None.
    """
    count = parts.getNumPartitions()
    while count > fan:
        count = -(-count // fan)
        grouped = parts.map(lambda one: (one[0] // fan, one)).groupByKey(count)
        parts = grouped.map(lambda group: (group[0], _sum_by_number(list(group[1]))))
    return _sum_by_number(parts.collect())


def _sum_by_number(numbered: list[tuple[int, Any]]) -> Any:
    total = None
    for _, value in sorted(numbered, key=lambda one: one[0]):
        total = value if total is None else total + value
    return total
