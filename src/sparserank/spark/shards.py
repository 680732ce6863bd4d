"""What each partition learns from: rows of queries and documents, and the preferences between them.

Three ways lead here: rows and preferences of this machine, sent to every executor once; a DataFrame of triples, of
which each partition keeps its own and the rows they speak of; or an RDD of `Shard` that the user has made. `survey`
looks at all of them on the cluster, so that what cannot be learned from is refused before anything is learned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import DataError, SparseRankError
from ..preferences import Preferences, Triples
from ..preferences.columns import groups_of
from ..preferences.windows import EACH
from ..scores import Bilinear

if TYPE_CHECKING:
    from pyspark import RDD
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class Shard:
    """Rows of queries and documents and who should beat whom; made by one of the `of_…` constructors.

    mass : how often the shard is drawn from, against others. labels : where preferences are those of classes.
    """

    Q: csr_array
    D: csr_array
    prefs: Preferences | None
    mass: float
    labels: NDArray[Any] | None = None

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
        prefs = Preferences.from_triples(query, better, worse, weight)
        score = Bilinear.of(Q, D)
        return cls(score.queries, score.items, prefs, float(len(prefs) if weight is None else np.sum(weight)))

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
        """Made of the labels where these were given."""
        if self.prefs is not None:
            return self.prefs
        distinct = groups_of("labels", self.labels if self.labels is not None else [])[0]
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
    """Shards by partition. `together` : they all have the same, and take turns in one sequence of draws."""

    rdd: RDD[Any]
    open: Callable[[Any], Shard]
    together: bool
    close: Callable[[], None]

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

    return Source(context.parallelize(range(partitions), partitions), open_shard, True, sent.destroy)


def of_rdd(shards: RDD[Shard]) -> Source:
    """An RDD of shards; those of one partition are joined, and kept for all rounds."""
    from pyspark import StorageLevel

    held = shards.mapPartitions(_joined).persist(StorageLevel.MEMORY_AND_DISK)

    def close() -> None:
        held.unpersist()

    return Source(held, _as_it_is, False, close)


def _joined(shards: Iterable[Shard]) -> Iterator[Shard]:
    total: Shard | None = None
    for shard in shards:
        total = shard if total is None else total.joined(shard)
    if total is not None:
        yield total


def _as_it_is(shard: Shard) -> Shard:
    return shard


TRIPLES = ("query", "better", "worse")


def of_triples(
    frame: Any, Q: Any, D: Any, query_ids: Sequence[str] | None = None, document_ids: Sequence[str] | None = None
) -> Source:
    """A DataFrame of columns query, better, worse (and weight): rows of Q and D, or ids where the lists are given.

    Each partition keeps its triples and the rows they speak of.
    """
    weighted = _refuse_schema(frame, (query_ids, document_ids, document_ids))
    score = Bilinear.of(Q, D)
    context = frame.sparkSession.sparkContext
    sent = context.broadcast((score.queries, score.items, _places(query_ids), _places(document_ids)))

    def pack(batches: Iterator[Any]) -> Iterator[Any]:
        yield from _packed(batches, *sent.value)

    columns = [*TRIPLES, *(["weight"] if weighted else [])]
    packed = frame.select(*columns).mapInArrow(pack, "shard binary").rdd.map(_unpacked)
    source = of_rdd(packed)

    def close() -> None:
        source.close()
        sent.destroy()

    return replace(source, close=close)


def _refuse_schema(frame: Any, ids: Sequence[Sequence[str] | None]) -> bool:
    """Whether there is a weight; columns that are missing, or of another kind, are refused by name."""
    kinds = dict(frame.dtypes)
    for name, known in zip(TRIPLES, ids, strict=True):
        wanted = ("int", "bigint", "smallint", "tinyint") if known is None else ("string",)
        if name not in kinds:
            raise DataError(f"triples need the columns query, better and worse; the DataFrame has {', '.join(kinds)}")
        if kinds[name] not in wanted:
            told = "row numbers" if known is None else "ids"
            raise DataError(f"column {name!r} must be {told} ({wanted[0]}); it is {kinds[name]}")
    if "weight" in kinds and kinds["weight"] not in ("double", "float", "int", "bigint"):
        raise DataError(f"column 'weight' must be a number; it is {kinds['weight']}")
    return "weight" in kinds


def _places(ids: Sequence[str] | None) -> dict[str, int] | None:
    return None if ids is None else {one: place for place, one in enumerate(ids)}


def _packed(batches: Iterator[Any], Q: Any, D: Any, queries: Any, documents: Any) -> Iterator[Any]:
    """One shard of all triples of a partition, pickled; none where there are no triples."""
    import pickle

    import pyarrow as pa

    found = [batch for batch in batches if batch.num_rows]
    if not found:
        return
    table = pa.Table.from_batches(found)
    query, better, worse = (
        _rows_of(table.column(name), place)
        for name, place in zip(TRIPLES, (queries, documents, documents), strict=True)
    )
    weight = table.column("weight").to_numpy() if "weight" in table.column_names else None
    asked, query = np.unique(query, return_inverse=True)
    items, both = np.unique(np.concatenate([better, worse]), return_inverse=True)
    shard = Shard.of_triples(Q[asked], D[items], query, both[: len(better)], both[len(better) :], weight)
    yield pa.RecordBatch.from_pydict({"shard": [pickle.dumps(shard, protocol=5)]})


def _rows_of(column: Any, place: dict[str, int] | None) -> NDArray[np.int64]:
    if column.null_count:
        raise DataError(f"a triple has no value in one of the columns {', '.join(TRIPLES)}; drop such rows")
    if place is None:
        return np.asarray(column.to_numpy(), dtype=np.int64)
    unknown = [one for one in column.unique().to_pylist() if one not in place]
    if unknown:
        raise DataError(f"id {unknown[0]!r} of a triple is not among those given")
    return np.fromiter((place[one] for one in column.to_pylist()), np.int64, len(column))


def _unpacked(row: Any) -> Shard:
    import pickle

    found: Shard = pickle.loads(row.shard)
    return found


def drawn(shard: Shard, seed: int, first: int, last: int, shuffle: bool) -> Triples:
    """Draws first … last - 1 of the sequence that `seed` names, or those triples in order."""
    if shuffle:
        return shard.preferences.draw(last - first, seed, first=first)
    return shard.preferences.first(last - first, skip=first)
