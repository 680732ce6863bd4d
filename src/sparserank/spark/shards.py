"""What each partition learns from: rows of queries and documents, and the preferences between them.

Three ways lead here: rows and preferences of this machine, sent to every executor once; a DataFrame of triples (see
`triples`); or an RDD of `Shard` that the user has made. `survey` looks at all of them on the cluster, so that what
cannot be learned from is refused before anything is learned.
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
from ..preferences import Preferences, Triples
from ..preferences.columns import factorize, triples
from ..preferences.preferences import EACH

if TYPE_CHECKING:
    from pyspark import RDD
    from scipy.sparse import csr_array


LARGEST = 2_000_000_000
"""Bytes that Spark passes on in one piece, less what lies around them: its arrays end at 2³¹."""


class Columns(NamedTuple):
    """Triples as they are sent and kept: 12 bytes each and those of the weight; preferences are made of them where they
    are drawn from, and take six times as much."""

    query: NDArray[np.int32]
    better: NDArray[np.int32]
    worse: NDArray[np.int32]
    weight: NDArray[Any] | None = None

    @classmethod
    def of(cls, query: ArrayLike, better: ArrayLike, worse: ArrayLike, weight: ArrayLike | None = None) -> Columns:
        """What users give, judged; a weight of float32 stays so."""
        q, plus, minus, w = triples(query, better, worse, weight)
        largest = max(int(column.max()) for column in (q, plus, minus))
        if largest >= 2**31:
            raise DataError(f"a triple speaks of row {largest}; rows are numbered below {2**31}")
        kept = w if w is None or np.asarray(weight).dtype != np.float32 else w.astype(np.float32)
        return cls(q.astype(np.int32), plus.astype(np.int32), minus.astype(np.int32), kept)

    @property
    def mass(self) -> float:
        """The sum of the weights."""
        return float(len(self.query) if self.weight is None else np.sum(self.weight, dtype=np.float64))

    @property
    def nbytes(self) -> int:
        """What they take."""
        return sum(column.nbytes for column in self if column is not None)


@dataclass(frozen=True)
class Shard:
    """Rows of queries and documents and who should beat whom; made by one of the `of_…` constructors.

    mass : how often the shard is drawn from, against others. labels, triples : where preferences are those of classes,
    or of triples.
    """

    Q: csr_array
    D: csr_array
    prefs: Preferences | None
    mass: float
    labels: NDArray[Any] | None = None
    triples: Columns | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "preferences"}  # they are made again

    @classmethod
    def of_preferences(cls, Q: Any, D: Any, prefs: Preferences) -> Shard:
        """Preferences between rows of D for rows of Q; drawn from in proportion to the queries that ask."""
        score = Bilinear.of(Q, D)
        asking = prefs.better[prefs.query == EACH]
        mass = len(np.unique(prefs.query[prefs.query != EACH])) + int((asking[:, 1] - asking[:, 0]).sum())
        return cls(score.queries, score.items, prefs, float(mass))

    @classmethod
    def of_triples(
        cls, Q: Any, D: Any, query: ArrayLike, better: ArrayLike, worse: ArrayLike, weight: ArrayLike | None = None
    ) -> Shard:
        """For query[i] item better[i] should beat item worse[i]; drawn from in proportion to the triples' weights."""
        columns, score = Columns.of(query, better, worse, weight), Bilinear.of(Q, D)
        return cls(score.queries, score.items, None, columns.mass, triples=columns)

    @classmethod
    def of_labels(cls, X: Any, labels: ArrayLike) -> Shard:
        """Rows that prefer those of their own class in the same partition; drawn from in proportion to the rows."""
        rows = Bilinear.of(X, X).queries
        found = np.asarray(labels)
        if found.shape != (rows.shape[0],):
            raise DataError(f"{rows.shape[0]} rows need as many labels; got {found.shape}")
        return cls(rows, rows, None, float(len(found)), found)

    @cached_property
    def preferences(self) -> Preferences:
        """Made of the labels or triples where these were given."""
        if self.prefs is not None:
            return self.prefs
        if self.triples is not None:
            return Preferences.from_triples(*self.triples)
        distinct = factorize("labels", self.labels if self.labels is not None else [])[0]
        if len(distinct) == 1:
            raise DataError(
                f"all {self.Q.shape[0]} rows are of class {distinct[0]!s}, so none has another one to beat; spread the "
                "rows over the partitions at random (repartition)"
            )
        return Preferences.from_labels(self.labels if self.labels is not None else [])

    @property
    def score(self) -> Bilinear:
        """The rows as the solver takes them."""
        return Bilinear(self.Q, self.D)

    @property
    def nbytes(self) -> int:
        """What is sent of it: rows, and the triples, labels or preferences."""
        sides = (self.Q,) if self.D is self.Q else (self.Q, self.D)
        rows = sum(int(part.nbytes) for side in sides for part in (side.data, side.indices, side.indptr))
        others = (self.triples, self.labels, *(vars(self.prefs).values() if self.prefs is not None else ()))
        return rows + sum(one.nbytes for one in others if isinstance(one, np.ndarray | Columns))

    def joined(self, other: Shard) -> Shard:
        """Both, where they have labels."""
        from scipy.sparse import csr_array, vstack

        if self.labels is None or other.labels is None:
            raise DataError("a partition has more than one shard of preferences; make one of them, or repartition")
        rows = csr_array(vstack([self.Q, other.Q]))
        return Shard(rows, rows, None, self.mass + other.mass, np.concatenate([self.labels, other.labels]))


@dataclass(frozen=True)
class Found:
    """What one partition has: the shape of its W, how often it is drawn from, its largest numbers and empty rows."""

    partition: int
    shape: tuple[int, int]
    mass: float
    pairs: int
    largest: tuple[float, float]
    empty: tuple[int, int]
    wrong: str = ""


@dataclass(frozen=True)
class Source:
    """Shards by partition. `together` : they all have the same, and take turns in one sequence of draws.

    same_rows : they all have the same rows, whatever their preferences.
    """

    rdd: RDD[Any]
    open: Callable[[Any], Shard]
    together: bool
    close: Callable[[], None]
    same_rows: bool

    @property
    def partitions(self) -> int:
        """How many there are."""
        return self.rdd.getNumPartitions()

    def each(self, work: Callable[[int, Shard], Any]) -> RDD[Any]:
        """work(number of the partition, its shard) of every partition that has one."""
        opened = self.open

        def run(partition: int, held: Iterable[Any]) -> Iterator[Any]:
            for one in held:
                yield work(partition, opened(one))

        return self.rdd.mapPartitionsWithIndex(run)

    def survey(self) -> list[Found]:
        """What every partition has; a DataError where one cannot be learned from, or all of them are empty."""
        found = sorted(self.each(_look).collect(), key=lambda one: one.partition)
        for one in found:
            if one.wrong:
                raise DataError(f"partition {one.partition} of {self.partitions}: {one.wrong}")
            if one.shape != found[0].shape:
                raise DataError(
                    f"partition {one.partition} has {one.shape[0]} columns of queries and {one.shape[1]} of documents, "
                    f"partition {found[0].partition} has {found[0].shape[0]} and {found[0].shape[1]}"
                )
        if not any(one.mass > 0.0 for one in found):
            raise DataError(f"nothing to learn: none of the {self.partitions} partitions has a preference")
        return found


def _look(partition: int, shard: Shard) -> Found:
    sides = shard.Q, shard.D
    largest = tuple(float(np.abs(side.data).max(initial=0.0)) for side in sides)
    empty = tuple(int(np.count_nonzero(np.diff(side.indptr) == 0)) for side in sides)
    told = Found(partition, shard.score.shape, shard.mass, 0, largest, empty)  # type: ignore[arg-type]
    try:
        prefs = shard.preferences
    except SparseRankError as error:
        return replace(told, wrong=str(error))
    for name, side, needed in (("Q", shard.Q, prefs.n_queries), ("D", shard.D, prefs.n_items)):
        if side.shape[0] < needed:
            return replace(told, wrong=f"the preferences speak of {needed} rows of {name}; it has {side.shape[0]}")
    return replace(told, pairs=prefs.n_pairs)


def same_for_all(spark: Any, Q: Any, D: Any, prefs: Preferences, partitions: int) -> Source:
    """Rows and preferences of this machine: sent to every executor once."""
    context = spark.sparkContext
    sent = context.broadcast(Shard.of_preferences(Q, D, prefs))

    def open_shard(_: Any) -> Shard:
        found: Shard = sent.value
        return found

    return Source(context.parallelize(range(partitions), partitions), open_shard, True, sent.destroy, same_rows=True)


def of_rdd(shards: RDD[Shard]) -> Source:
    """An RDD of shards; those of one partition are joined, and kept for all rounds."""
    from pyspark import StorageLevel

    held = shards.mapPartitions(_joined).persist(StorageLevel.MEMORY_AND_DISK)

    def close() -> None:
        held.unpersist()

    return Source(held, _as_it_is, False, close, same_rows=False)


def _joined(shards: Iterable[Shard]) -> Iterator[Shard]:
    total: Shard | None = None
    for shard in shards:
        total = shard if total is None else total.joined(shard)
    if total is None:
        return
    if total.nbytes > LARGEST:
        raise DataError(
            f"a partition has {total.nbytes:,} bytes of rows and preferences, and Spark passes on {LARGEST:,} at once; "
            "divide them among more partitions"
        )
    yield total


def _as_it_is(shard: Shard) -> Shard:
    return shard


def drawn(shard: Shard, seed: int, first: int, last: int, shuffle: bool) -> Triples:
    """Draws first … last - 1 of the sequence that `seed` names, or those triples in order."""
    if shuffle:
        return shard.preferences.draw(last - first, seed, first=first)
    return shard.preferences.first(last - first, skip=first)
