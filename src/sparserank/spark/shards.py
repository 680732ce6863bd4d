"""The training data of each partition: rows of queries and documents, and the preferences between them.

Data come in three ways: local rows and preferences, sent to every executor once; a DataFrame of triples (see
`triples`); or an RDD of `Shard`. `ShardSource.summarize` checks all partitions on the cluster before training starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import DataError, SparseRankError
from ..optim.scores import Bilinear
from ..preferences import Preferences
from ..preferences.columns import factorize, triples
from ..preferences.preferences import EACH
from .blocks import csr_bytes

if TYPE_CHECKING:
    from pyspark import RDD
    from scipy.sparse import csr_array


MAX_PARTITION_BYTES = 2_000_000_000
"""Spark passes on less than 2³¹ bytes in one piece, including what surrounds them."""


class TripleColumns(NamedTuple):
    """Triples as they are sent: 12 bytes each, plus the weight. `Preferences` of them take six times as much."""

    query: NDArray[np.int32]
    better: NDArray[np.int32]
    worse: NDArray[np.int32]
    weight: NDArray[Any] | None = None

    @classmethod
    def of(
        cls, query: ArrayLike, better: ArrayLike, worse: ArrayLike, weight: ArrayLike | None = None
    ) -> TripleColumns:
        """Validate what users give; float32 weights stay float32."""
        q, plus, minus, w = triples(query, better, worse, weight)
        largest = max(int(column.max()) for column in (q, plus, minus))
        if largest >= 2**31:
            raise DataError(f"a triple refers to row {largest}; row numbers must be below {2**31}")
        if w is not None and np.asarray(weight).dtype == np.float32:
            w = w.astype(np.float32)
        return cls(q.astype(np.int32), plus.astype(np.int32), minus.astype(np.int32), w)

    @property
    def total_weight(self) -> float:
        """The sum of the weights."""
        return float(len(self.query) if self.weight is None else np.sum(self.weight, dtype=np.float64))

    @property
    def nbytes(self) -> int:
        """Bytes of the columns."""
        return sum(column.nbytes for column in self if column is not None)


@dataclass(frozen=True)
class Shard:
    """Rows of queries and documents with preferences; use one of the `of_…` constructors.

    Attributes
    ----------
    Q, D : csr_array
        Query and document vectors.
    given_preferences : Preferences or None
        The preferences, unless they come from labels or triples.
    sampling_weight : float
        How often triples are drawn from this shard, relative to others.
    labels : ndarray or None
        One class per row.
    triples : TripleColumns or None
        Triples of row numbers.

    Examples
    --------
    >>> shard = Shard.of_triples([[1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], query=[0], better=[0], worse=[1])
    >>> shard.sampling_weight, shard.preferences.n_pairs
    (1.0, 1)
    """

    Q: csr_array
    D: csr_array
    given_preferences: Preferences | None
    sampling_weight: float
    labels: NDArray[Any] | None = None
    triples: TripleColumns | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "preferences"}  # the cached property

    @classmethod
    def of_preferences(cls, Q: Any, D: Any, preferences: Preferences) -> Shard:
        """Preferences between rows of D for rows of Q; sampled in proportion to the number of queries.

        Parameters
        ----------
        Q, D : sparse or dense arrays
            Query and document vectors.
        preferences : Preferences
            Row numbers of Q and D.
        """
        score = Bilinear.of(Q, D)
        _check_rows(score.queries, score.items, preferences)
        windows = preferences.better[preferences.query == EACH]
        n_queries = len(np.unique(preferences.query[preferences.query != EACH]))
        n_queries += int((windows[:, 1] - windows[:, 0]).sum())
        return cls(score.queries, score.items, preferences, float(n_queries))

    @classmethod
    def of_triples(
        cls, Q: Any, D: Any, query: ArrayLike, better: ArrayLike, worse: ArrayLike, weight: ArrayLike | None = None
    ) -> Shard:
        """Triples: for query[i], item better[i] should beat item worse[i]; sampled in proportion to the weights.

        Parameters
        ----------
        Q, D : sparse or dense arrays
            Query and document vectors.
        query, better, worse : array-like of int
            Row numbers of Q and D.
        weight : array-like of float, optional
            Weight of each triple; 1 by default.
        """
        columns, score = TripleColumns.of(query, better, worse, weight), Bilinear.of(Q, D)
        return cls(score.queries, score.items, None, columns.total_weight, triples=columns)

    @classmethod
    def of_labels(cls, X: Any, labels: ArrayLike) -> Shard:
        """Rows that prefer rows of their own class in the same partition; sampled in proportion to the rows.

        Parameters
        ----------
        X : sparse or dense array
            Vectors that are queries and documents at once.
        labels : array-like
            One class per row.
        """
        rows, labels = Bilinear.of(X, X).queries, np.asarray(labels)
        if labels.shape != (rows.shape[0],):
            raise DataError(f"{rows.shape[0]} rows need as many labels; got {labels.shape}")
        return cls(rows, rows, None, float(len(labels)), labels)

    @cached_property
    def preferences(self) -> Preferences:
        """The preferences; those of labels or triples are built on first use."""
        if self.given_preferences is not None:
            return self.given_preferences
        if self.triples is not None:
            return Preferences.from_triples(*self.triples)
        labels = self.labels if self.labels is not None else np.zeros(0)
        distinct = factorize("labels", labels)[0]
        if len(distinct) == 1:
            raise DataError(
                f"all {self.Q.shape[0]} rows are of class {distinct[0]!s}, so none has another one to beat; spread the "
                "rows over the partitions at random (repartition)"
            )
        return Preferences.from_labels(labels)

    @property
    def score(self) -> Bilinear:
        """The rows in the form that the solver takes."""
        return Bilinear(self.Q, self.D)

    @property
    def nbytes(self) -> int:
        """Bytes that are sent: rows, and triples, labels or preferences."""
        rows = csr_bytes(self.Q) + (0 if self.D is self.Q else csr_bytes(self.D))
        columns = () if self.given_preferences is None else vars(self.given_preferences).values()
        parts = (self.triples, self.labels, *columns)
        return rows + sum(part.nbytes for part in parts if isinstance(part, np.ndarray | TripleColumns))


def _check_rows(Q: csr_array, D: csr_array, preferences: Preferences) -> None:
    for name, rows, needed in (("Q", Q, preferences.n_queries), ("D", D, preferences.n_items)):
        if rows.shape[0] < needed:
            raise DataError(f"the preferences need {needed} rows of {name}; it has {rows.shape[0]}")


@dataclass(frozen=True)
class ShardSummary:
    """Of one partition: the shape of W, largest entries and empty rows of Q and D, or why it cannot be used."""

    partition: int
    shape: tuple[int, int]
    sampling_weight: float
    pairs: int
    largest: tuple[float, float]
    empty: tuple[int, int]
    error: str = ""

    @classmethod
    def of(cls, partition: int, shard: Shard) -> ShardSummary:
        """Summarize a shard."""
        sides = shard.Q, shard.D
        largest = tuple(float(np.abs(side.data).max(initial=0.0)) for side in sides)
        empty = tuple(int(np.count_nonzero(np.diff(side.indptr) == 0)) for side in sides)
        out = cls(partition, shard.score.shape, shard.sampling_weight, 0, largest, empty)  # type: ignore[arg-type]
        try:
            _check_rows(shard.Q, shard.D, shard.preferences)
        except SparseRankError as error:
            return replace(out, error=str(error))
        return replace(out, pairs=shard.preferences.n_pairs)


@dataclass(frozen=True)
class ShardSource:
    """The shards of all partitions.

    shared_preferences : all partitions have the same preferences, and take turns in one sequence of draws.
    shared_rows : all partitions have the same rows.
    """

    rdd: RDD[Any]
    open: Callable[[Any], Shard]
    close: Callable[[], object]
    shared_preferences: bool
    shared_rows: bool

    @property
    def partitions(self) -> int:
        """Number of partitions."""
        return self.rdd.getNumPartitions()

    def map(self, function: Callable[[int, Shard], Any]) -> RDD[Any]:
        """function(partition number, shard) for every partition that has a shard."""
        open_shard = self.open

        def run(partition: int, items: Iterable[Any]) -> Iterator[Any]:
            for item in items:
                yield function(partition, open_shard(item))

        return self.rdd.mapPartitionsWithIndex(run)

    def summarize(self) -> list[ShardSummary]:
        """Summaries of all partitions; raise DataError if one cannot be used or all are empty."""
        summaries = sorted(self.map(ShardSummary.of).collect(), key=lambda one: one.partition)
        for one in summaries:
            first = summaries[0]
            if one.error:
                raise DataError(f"partition {one.partition} of {self.partitions}: {one.error}")
            if one.shape != first.shape:
                raise DataError(
                    f"partition {one.partition} has {one.shape[0]} columns of queries and {one.shape[1]} of documents, "
                    f"partition {first.partition} has {first.shape[0]} and {first.shape[1]}"
                )
        if not any(one.sampling_weight > 0.0 for one in summaries):
            raise DataError(f"nothing to learn: none of the {self.partitions} partitions has a preference")
        return summaries


def source_of_preferences(spark: Any, shard: Shard, partitions: int) -> ShardSource:
    """One local shard that is sent to every executor once."""
    context = spark.sparkContext
    broadcast = context.broadcast(shard)

    numbers = context.parallelize(range(partitions), partitions)
    return ShardSource(numbers, lambda number: broadcast.value, broadcast.destroy, True, True)


def source_of_shards(shards: RDD[Shard]) -> ShardSource:
    """An RDD of shards; those of one partition are concatenated and persisted for all rounds."""
    from pyspark import StorageLevel

    persisted = shards.mapPartitions(_concatenate).persist(StorageLevel.MEMORY_AND_DISK)

    return ShardSource(persisted, lambda shard: shard, persisted.unpersist, False, False)


def _concatenate(shards: Iterable[Shard]) -> Iterator[Shard]:
    from scipy.sparse import csr_array, vstack

    parts = list(shards)
    if not parts:
        return
    total = parts[0]
    if len(parts) > 1:
        labels = [part.labels for part in parts if part.labels is not None]
        if len(labels) < len(parts):
            raise DataError("a partition has more than one shard of preferences; make one of them, or repartition")
        rows = csr_array(vstack([part.Q for part in parts]))
        total = Shard(rows, rows, None, sum(part.sampling_weight for part in parts), np.concatenate(labels))
    if total.nbytes > MAX_PARTITION_BYTES:
        raise DataError(
            f"a partition has {total.nbytes:,} bytes of rows and preferences, and Spark passes on "
            f"{MAX_PARTITION_BYTES:,} at once; divide them among more partitions"
        )
    yield total
