"""Local data as broadcast parts: an executor receives a part once for any number of jobs.

Data given to `parallelize` travel with every task of every job instead, and a task may not exceed
spark.rpc.message.maxSize, 128 MB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import RDD, Broadcast
    from pyspark.sql import SparkSession


class BroadcastParts:
    """Parts of data, one partition each."""

    def __init__(self, spark: SparkSession, parts: Sequence[Any]) -> None:
        self._context = spark.sparkContext
        self._parts = [self._context.broadcast(part) for part in parts]
        self._numbers = [self._context.parallelize([number], 1) for number in range(len(parts))]

    def __len__(self) -> int:
        return len(self._parts)

    def flat_map(self, function: Callable[[int, Any], Iterable[Any]]) -> RDD[Any]:
        """The items of function(number, part) for all parts, in their order.

        Each partition has its own closure: an executor fetches only the parts that its closures refer to.
        """
        partitions = zip(self._numbers, self._parts, strict=True)
        return self._context.union([number.flatMap(_bind(function, part)) for number, part in partitions])

    def destroy(self) -> None:
        """Delete the parts on the executors; results that are not persisted cannot be computed again."""
        for part in self._parts:
            part.destroy()


def _bind(function: Callable[[int, Any], Iterable[Any]], part: Broadcast[Any]) -> Callable[[int], Iterable[Any]]:
    return lambda number: function(number, part.value)
