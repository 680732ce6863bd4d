"""Objects that are made on the executors and stay there: one for each partition.

Spark stores each as bytes, and can make it again after a worker is lost. A Python worker opens the bytes once and keeps
the object for later jobs, with all that the object caches.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any
from uuid import uuid4

if TYPE_CHECKING:
    from pyspark import RDD

_OPEN: dict[tuple[str, str, str, int], Any] = {}
"""Objects of this Python worker by training, kind, name and partition."""


class WorkerParts:
    """One object for each partition.

    training, kind : a worker keeps the objects of one training, and of each kind the newest.
    """

    def __init__(self, parts: RDD[Any], training: str, kind: str) -> None:
        from pyspark import StorageLevel

        self._key = training, kind, uuid4().hex
        self._parts = parts.map(lambda part: pickle.dumps(part, 5)).persist(StorageLevel.MEMORY_AND_DISK)

    def __len__(self) -> int:
        return self._parts.getNumPartitions()

    def flat_map(self, function: Callable[[int, Any], Iterable[Any]]) -> RDD[Any]:
        """The items of function(number of the partition, its object), in the order of the partitions."""
        key = self._key

        def run(number: int, blobs: Iterable[bytes]) -> Iterable[Any]:
            (blob,) = blobs  # all input is read, or Spark would not use this worker again
            return function(number, _open((*key, number), blob))

        return self._parts.mapPartitionsWithIndex(run)

    def map(self, function: Callable[[int, Any], Any]) -> list[Any]:
        """function(number, object) of every partition."""
        return self.flat_map(lambda number, part: [function(number, part)]).collect()

    def release(self) -> None:
        """Delete the stored bytes."""
        self._parts.unpersist()


def _open(key: tuple[str, str, str, int], blob: bytes) -> Any:
    if key not in _OPEN:
        for old in [old for old in _OPEN if old[0] != key[0] or (old[1] == key[1] and old[2] != key[2])]:
            del _OPEN[old]
        _OPEN[key] = pickle.loads(blob)
    return _OPEN[key]
