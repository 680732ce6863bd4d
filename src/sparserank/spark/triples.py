"""A DataFrame of triples, divided among the partitions that train on it.

Ids become row numbers first; then a hash of the numbers assigns each triple to a partition, and each partition sorts
its triples. So the result depends on the triples, the seed and the number of partitions alone, not on where Spark had
the triples or on the order of a shuffle. The rows are sent to every executor once; a partition keeps its triples only.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..optim.scores import Bilinear
from ..preferences.columns import positions
from .errors import executor_errors
from .shards import MAX_PARTITION_BYTES, Shard, ShardSource, TripleColumns

if TYPE_CHECKING:
    from pyspark import RDD

NAMES = ("query", "better", "worse")
RowNumbers = dict[str, int] | None


def source_of_triples(
    frame: Any, Q: Any, D: Any, query_ids: Sequence[str] | None = None, doc_ids: Sequence[str] | None = None,
    partitions: int | None = None,
) -> ShardSource:  # fmt: skip
    """Columns query, better, worse (and weight) of a DataFrame: rows of Q and D, or ids if the lists are given.

    partitions : as many as the DataFrame has by default; Spark may have to compute a shuffle to know that number.
    """
    weight_type = _check_schema(frame, (query_ids, doc_ids, doc_ids))
    score = Bilinear.of(Q, D)
    numbers = _row_numbers("query", query_ids, score.queries), _row_numbers("document", doc_ids, score.items)
    context = frame.sparkSession.sparkContext
    columns = frame.select(*NAMES, *(["weight"] if weight_type else []))
    rows = context.broadcast((score.queries, score.items))
    lookup = context.broadcast((*numbers, int(score.queries.shape[0]), int(score.items.shape[0])))

    def open_shard(triples: TripleColumns) -> Shard:
        queries, items = rows.value
        return Shard(queries, items, None, triples.total_weight, triples=triples)

    def destroy() -> None:
        rows.destroy()
        lookup.destroy()

    def close() -> None:
        divided.unpersist()
        destroy()

    try:
        with executor_errors():
            divided = _divide(columns, weight_type, lookup, partitions or max(1, columns.rdd.getNumPartitions()))
    except Exception:
        destroy()
        raise
    return ShardSource(divided, open_shard, close, shared_preferences=False, shared_rows=True)


def _divide(columns: Any, weight_type: str, lookup: Any, partitions: int) -> RDD[TripleColumns]:
    """The triples of each partition, persisted for all rounds."""
    from pyspark import StorageLevel

    def number_rows(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield _number_rows(batch, *lookup.value)

    schema = "query int, better int, worse int" + (f", weight {weight_type}" if weight_type else "")
    divided = columns.mapInArrow(number_rows, schema).repartition(partitions, *NAMES)
    pickled: RDD[Any] = divided.mapInArrow(_pack_partition, "triples binary").rdd
    return pickled.map(lambda row: pickle.loads(row.triples)).persist(StorageLevel.MEMORY_AND_DISK)


def _check_schema(frame: Any, ids: Sequence[Sequence[str] | None]) -> str:
    """The type of the weights, "" without weights; raise DataError for a missing column or another type."""
    types = dict(frame.dtypes)
    for name, known in zip(NAMES, ids, strict=True):
        accepted = ("int", "bigint", "smallint", "tinyint") if known is None else ("string",)
        if name not in types:
            raise DataError(f"triples need the columns query, better and worse; the DataFrame has {', '.join(types)}")
        if types[name] not in accepted:
            content = "row numbers" if known is None else "ids"
            raise DataError(f"column {name!r} must be {content} ({accepted[0]}); it is {types[name]}")
    if "weight" not in types:
        return ""
    if types["weight"] not in ("double", "float", "int", "bigint"):
        raise DataError(f"column 'weight' must be a number; it is {types['weight']}")
    return "float" if types["weight"] == "float" else "double"


def _row_numbers(name: str, ids: Sequence[str] | None, rows: Any) -> RowNumbers:
    if ids is not None and len(ids) != rows.shape[0]:
        raise DataError(f"{rows.shape[0]} {name} rows need as many ids; got {len(ids)}")
    return None if ids is None else positions(name, ids)


def _number_rows(batch: Any, queries: RowNumbers, documents: RowNumbers, n_queries: int, n_documents: int) -> Any:
    """The triples as validated row numbers."""
    import pyarrow as pa

    sides = (queries, n_queries), (documents, n_documents), (documents, n_documents)
    rows = [_column_rows(name, batch.column(name), *side) for name, side in zip(NAMES, sides, strict=True)]
    same = np.flatnonzero(rows[1] == rows[2])
    if len(same):
        raise DataError(f"item {batch.column('better')[int(same[0])].as_py()!r} cannot be better than itself")
    out = dict(zip(NAMES, (pa.array(row, pa.int32()) for row in rows), strict=True))
    if "weight" in batch.schema.names:
        out["weight"] = _check_weights(batch.column("weight"))
    return pa.RecordBatch.from_pydict(out)


def _column_rows(name: str, column: Any, numbers: RowNumbers, n: int) -> NDArray[np.int64]:
    if column.null_count:
        raise DataError(f"a triple has no value in one of the columns {', '.join(NAMES)}; drop such rows")
    if numbers is None:
        rows = np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64)
        wrong = rows[(rows < 0) | (rows >= n)]
        if len(wrong):
            raise DataError(f"column {name!r} has row {wrong[0]}; rows are numbered from 0 to {n - 1}")
        return rows
    unknown = [one for one in column.unique().to_pylist() if one not in numbers]
    if unknown:
        raise DataError(f"id {unknown[0]!r} of a triple is not among those given")
    return np.fromiter((numbers[one] for one in column.to_pylist()), np.int64, len(column))


def _check_weights(column: Any) -> Any:
    import pyarrow as pa

    values = column.to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if column.null_count or len(wrong):
        value = None if column.null_count else values[wrong[0]].item()
        raise DataError(f"a triple has the weight {value}; weights must be finite numbers, 0 or more")
    return pa.array(values if values.dtype == np.float32 else values.astype(np.float64))


def _pack_partition(batches: Iterator[Any]) -> Iterator[Any]:
    """All triples of a partition, sorted and pickled; nothing if there are none or all weights are 0."""
    import pyarrow as pa

    received, nbytes = [], 0
    for batch in batches:
        received.append(batch)
        nbytes += batch.nbytes
        if nbytes > MAX_PARTITION_BYTES:
            raise DataError(
                f"a partition has more than {MAX_PARTITION_BYTES:,} bytes of triples, the most that Spark passes on at "
                "once; divide them among more (partitions=)"
            )
    if not nbytes:
        return
    table = pa.Table.from_batches(received)
    columns = [table.column(name).to_numpy() for name in table.column_names]
    if len(columns) == 4 and not columns[3].any():
        return
    order = np.lexsort(columns[::-1])
    triples = TripleColumns(*(column[order] for column in columns))
    yield pa.RecordBatch.from_pydict({"triples": [pickle.dumps(triples, protocol=5)]})
