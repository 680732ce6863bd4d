"""A DataFrame of triples on its way to the partitions that learn from it.

Ids become numbers of rows where the triples are; then a hash of the numbers says which partition a triple goes to, and
each partition puts its own in order. So what is learned is a function of the triples, the seed and the number of
partitions alone: not of where Spark had the triples, nor of the order in which a shuffle brings them, which is another
one each time. The rows are sent to every executor once; a partition keeps its triples only.
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
from .refusals import told_plainly
from .shards import LARGEST, Columns, Shard, Source

if TYPE_CHECKING:
    from pyspark import RDD

NAMES = ("query", "better", "worse")
Place = dict[str, int] | None


def of_triples(
    frame: Any, Q: Any, D: Any, query_ids: Sequence[str] | None = None, document_ids: Sequence[str] | None = None,
    partitions: int | None = None,
) -> Source:  # fmt: skip
    """Columns query, better, worse (and weight) of a DataFrame: rows of Q and D, or ids where the lists are given.

    partitions : as many as the DataFrame has, unless given. To learn how many these are, Spark computes what comes
    before the last shuffle; that of a file it knows.
    """
    weight = _refuse_schema(frame, (query_ids, document_ids, document_ids))
    score = Bilinear.of(Q, D)
    known = _places("query", query_ids, score.queries), _places("document", document_ids, score.items)
    context = frame.sparkSession.sparkContext
    chosen = frame.select(*NAMES, *(["weight"] if weight else []))
    wide = partitions or max(1, chosen.rdd.getNumPartitions())
    sent = context.broadcast((score.queries, score.items))
    numbers = context.broadcast((*known, int(score.queries.shape[0]), int(score.items.shape[0])))

    def open_shard(columns: Columns) -> Shard:
        queries, items = sent.value
        return Shard(queries, items, None, columns.mass, triples=columns)

    def forget() -> None:
        sent.destroy()
        numbers.destroy()

    def close() -> None:
        held.unpersist()
        forget()

    try:
        with told_plainly():
            held = _divided(chosen, weight, numbers, wide)
    except Exception:
        forget()
        raise
    return Source(held, open_shard, False, close, same_rows=True)


def _divided(chosen: Any, weight: str, numbers: Any, partitions: int) -> RDD[Columns]:
    """The triples of each partition, kept for all rounds; Spark computes all that comes before the shuffle here."""
    from pyspark import StorageLevel

    def number(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield _numbered(batch, *numbers.value)

    schema = "query int, better int, worse int" + (f", weight {weight}" if weight else "")
    divided = chosen.mapInArrow(number, schema).repartition(partitions, *NAMES)
    packed = divided.mapInArrow(_packed, "triples binary").rdd
    held: RDD[Columns] = packed.map(_unpacked).persist(StorageLevel.MEMORY_AND_DISK)
    return held


def _refuse_schema(frame: Any, ids: Sequence[Sequence[str] | None]) -> str:
    """The type of the weights, if there are any; columns that are missing, or of another kind, are refused by name."""
    kinds = dict(frame.dtypes)
    for name, known in zip(NAMES, ids, strict=True):
        wanted = ("int", "bigint", "smallint", "tinyint") if known is None else ("string",)
        if name not in kinds:
            raise DataError(f"triples need the columns query, better and worse; the DataFrame has {', '.join(kinds)}")
        if kinds[name] not in wanted:
            told = "row numbers" if known is None else "ids"
            raise DataError(f"column {name!r} must be {told} ({wanted[0]}); it is {kinds[name]}")
    if "weight" not in kinds:
        return ""
    if kinds["weight"] not in ("double", "float", "int", "bigint"):
        raise DataError(f"column 'weight' must be a number; it is {kinds['weight']}")
    return "float" if kinds["weight"] == "float" else "double"


def _places(what: str, ids: Sequence[str] | None, rows: Any) -> Place:
    if ids is not None and len(ids) != rows.shape[0]:
        raise DataError(f"{rows.shape[0]} {what} rows need as many ids; got {len(ids)}")
    return None if ids is None else positions(what, ids)


def _numbered(batch: Any, queries: Place, documents: Place, n_queries: int, n_documents: int) -> Any:
    """The triples as numbers of rows, all of them judged."""
    import pyarrow as pa

    sides = (queries, n_queries), (documents, n_documents), (documents, n_documents)
    rows = [_rows_of(name, batch.column(name), *side) for name, side in zip(NAMES, sides, strict=True)]
    same = np.flatnonzero(rows[1] == rows[2])
    if len(same):
        raise DataError(f"item {batch.column('better')[int(same[0])].as_py()!r} cannot be better than itself")
    out = dict(zip(NAMES, (pa.array(row, pa.int32()) for row in rows), strict=True))
    if "weight" in batch.schema.names:
        out["weight"] = _weights(batch.column("weight"))
    return pa.RecordBatch.from_pydict(out)


def _rows_of(name: str, column: Any, place: Place, n: int) -> NDArray[np.int64]:
    if column.null_count:
        raise DataError(f"a triple has no value in one of the columns {', '.join(NAMES)}; drop such rows")
    if place is None:
        rows = np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64)
        wrong = rows[(rows < 0) | (rows >= n)]
        if len(wrong):
            raise DataError(f"column {name!r} has row {wrong[0]}; rows are numbered from 0 to {n - 1}")
        return rows
    unknown = [one for one in column.unique().to_pylist() if one not in place]
    if unknown:
        raise DataError(f"id {unknown[0]!r} of a triple is not among those given")
    return np.fromiter((place[one] for one in column.to_pylist()), np.int64, len(column))


def _weights(column: Any) -> Any:
    import pyarrow as pa

    values = column.to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if column.null_count or len(wrong):
        found = None if column.null_count else values[wrong[0]].item()
        raise DataError(f"a triple has the weight {found}; weights are finite numbers, and not negative")
    return pa.array(values if values.dtype == np.float32 else values.astype(np.float64))


def _packed(batches: Iterator[Any]) -> Iterator[Any]:
    """All triples of a partition in order, pickled; nothing where there are none, or none that could be drawn."""
    import pyarrow as pa

    found, held = [], 0
    for batch in batches:
        found.append(batch)
        held += batch.nbytes
        if held > LARGEST:
            raise DataError(
                f"a partition has more than {LARGEST:,} bytes of triples, which is what Spark passes on at once; "
                "divide them among more (partitions=)"
            )
    if not held:
        return
    table = pa.Table.from_batches(found)
    columns = [table.column(name).to_numpy() for name in table.column_names]
    if len(columns) == 4 and not columns[3].any():
        return
    order = np.lexsort(columns[::-1])
    kept = Columns(*(column[order] for column in columns))
    yield pa.RecordBatch.from_pydict({"triples": [pickle.dumps(kept, protocol=5)]})


def _unpacked(row: Any) -> Columns:
    found: Columns = pickle.loads(row.triples)
    return found
