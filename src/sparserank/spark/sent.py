"""Data of this machine in parts, each broadcast: it is sent once to an executor, whatever the number of jobs.

What `parallelize` is given goes with every task of every job instead, and a task may not be larger than
spark.rpc.message.maxSize, 128 MB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import RDD, Broadcast
    from pyspark.sql import SparkSession


class Sent:
    """Parts of data, one partition each."""

    def __init__(self, spark: SparkSession, parts: Sequence[Any]) -> None:
        self._context = spark.sparkContext
        self._parts = [self._context.broadcast(part) for part in parts]
        self._numbers = [self._context.parallelize([number], 1) for number in range(len(parts))]

    def __len__(self) -> int:
        return len(self._parts)

    def flat_map(self, work: Callable[[int, Any], Iterable[Any]]) -> RDD[Any]:
        """All of work(number of the part, the part), in the order of the parts.

        Each partition has a function of its own: an executor fetches what the functions that it runs speak of.
        """
        return self._context.union(
            [one.flatMap(_on(work, part)) for one, part in zip(self._numbers, self._parts, strict=True)]
        )

    def destroy(self) -> None:
        """Let the executors forget the parts; what was made of them and not kept cannot be made again."""
        for part in self._parts:
            part.destroy()


def _on(work: Callable[[int, Any], Iterable[Any]], part: Broadcast[Any]) -> Callable[[int], Iterable[Any]]:
    return lambda number: work(number, part.value)
