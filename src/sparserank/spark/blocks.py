"""What partitions send one another: matrices as CSR arrays and sums of them that come out the same in any order.

Floating-point sums depend on their order, and a cluster adds what arrives first. So a `Block` that is added to another
one counts in whole multiples of a fixed unit: integers, whose sum is exact. Dense vectors are added in the order of
their partitions, `ordered_sum`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigError

if TYPE_CHECKING:
    from pyspark import RDD
    from scipy.sparse import csr_array

BITS = 62
"""Bits that a sum may fill."""
LARGEST = 2**31 - 1
"""Bytes of one message between Python and Spark."""


@dataclass(frozen=True)
class Csr:
    """A matrix as its three arrays, indices in 32 bits where that is enough."""

    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[Any]
    shape: tuple[int, int]

    @classmethod
    def of(cls, W: csr_array) -> Csr:
        """The arrays of a CSR matrix; columns rise in every row."""
        if not W.has_sorted_indices:
            W = W.sorted_indices()
        narrow = np.int32 if max(W.nnz, *W.shape) <= np.iinfo(np.int32).max else np.int64
        return cls(W.indptr.astype(narrow, copy=False), W.indices.astype(narrow, copy=False), W.data, W.shape)

    def matrix(self) -> csr_array:
        """As scipy's."""
        from scipy.sparse import csr_array

        return csr_array((self.data, self.indices, self.indptr), shape=self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.indptr.nbytes + self.indices.nbytes + self.data.nbytes


def unit_of(largest: float, steps: int) -> float:
    """A power of two in which numbers up to `largest`, counted `steps` times in all, add up without rounding.

    >>> unit_of(1.0, 1) == 2.0**-60
    True
    """
    if not 0.0 < largest < math.inf:
        raise ConfigError(f"weights up to {largest} cannot be added up; is eta0 too large for these rows?")
    return 2.0 ** (math.frexp(largest)[1] + math.frexp(float(max(steps, 1)))[1] - BITS)


@dataclass(frozen=True)
class Block:
    """steps · W of one partition, or the sum of some; `told` is what each partition says besides, by its number.

    A block that was never added to another has the float32 numbers of its partition, so nothing is rounded there.
    """

    W: Csr
    steps: int
    unit: float
    told: dict[int, Any]
    nbytes: int

    @classmethod
    def of(cls, W: csr_array, steps: int, unit: float, told: dict[int, Any]) -> Block:
        """What one partition has learned in `steps` steps."""
        held = Csr.of(W)
        if held.nbytes > LARGEST:
            raise ConfigError(
                f"W has {W.nnz} entries, which is more than one message of Spark holds; ask for a lower density"
            )
        return cls(held, steps, unit, told, held.nbytes)

    def counted(self) -> csr_array:
        """The sum in whole units."""
        W = self.W.matrix()
        if W.data.dtype != np.int64:
            W.data = np.rint(W.data.astype(np.float64) / self.unit).astype(np.int64) * self.steps
        return W

    def __add__(self, other: Block) -> Block:
        total = (self.counted() + other.counted()).tocsr()
        steps, nbytes = self.steps + other.steps, self.nbytes + other.nbytes
        return Block(Csr.of(total), steps, self.unit, self.told | other.told, nbytes)

    def mean(self) -> csr_array:
        """The mean over all steps."""
        W = self.W.matrix()
        if W.data.dtype == np.int64:
            W.data = (W.data.astype(np.float64) * (self.unit / self.steps)).astype(np.float32)
            W.eliminate_zeros()
        return W


def ordered_sum(parts: RDD[tuple[int, Any]], fan: int = 16) -> Any:
    """The sum of numbered values, by a tree whose shape only depends on their numbers: the same bits always.

    Values with the numbers 0 … fan - 1 are added first, in that order, and so on; None where there is no value.
    """
    count = parts.getNumPartitions()
    while count > fan:
        count = -(-count // fan)
        grouped = parts.map(lambda one: (one[0] // fan, one)).groupByKey(count)
        parts = grouped.map(lambda group: (group[0], _added(list(group[1]))))
    return _added(parts.collect())


def _added(numbered: list[tuple[int, Any]]) -> Any:
    total = None
    for _, value in sorted(numbered, key=lambda one: one[0]):
        total = value if total is None else total + value
    return total
