"""Top-k search of many queries over a partitioned collection, equal to that of one local Index.

Every partition builds an index of its documents and returns the best k for each query; lists are merged by score and
then by descending id, as in an Index. A document's row depends on the model and on itself alone, so ids, scores and the
order of equal scores equal those of an index of all documents, to the bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import validation
from ..data.records import Documents
from ..deprecated import renamed_parameters
from ..errors import ConfigError, DataError, ModelError, NotFitted
from ..search import Index
from ..search.encoded_query import EncodedQuery
from ..search.shards import list_shards
from ..text_ranker import TextRanker
from ..text_ranker.model import TextModel
from .frames import check_no_nulls, check_unique_ids, select_columns

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import Broadcast
    from pyspark.sql import DataFrame, SparkSession

QUERIES_PER_BATCH = 1024
SCHEMA = "query string, document string, score float"


@renamed_parameters({"drop_self": "exclude_self"})
def score_topk(
    ranker: TextRanker | TextModel,
    documents: DataFrame | str | PathLike[str],
    queries: Mapping[str, str] | DataFrame,
    k: int = 10,
    *,
    exclude_self: bool = False,
    spark: SparkSession | None = None,
) -> DataFrame:
    """Find the best k documents of every query.

    Parameters
    ----------
    ranker : TextRanker or TextModel
        A fitted ranker.
    documents : DataFrame or path-like
        Columns id, text and, optionally, title; or an index that all executors can read: a file or a folder of shards.
    queries : mapping or DataFrame
        {id: text}, or columns id, text. All queries are sent to every executor.
    k : int, default 10
        Documents per query.
    exclude_self : bool, default False
        Exclude the document whose id is the query's id.
    spark : SparkSession, optional
        The cluster, if `documents` is an index.

    Returns
    -------
    DataFrame
        Columns query, document, score, rank; a query without results has no row.

    Examples
    --------
    >>> docs = {"d1": "red apples", "d2": "green pears"}
    >>> frame = spark.createDataFrame(list(docs.items()), "id string, text string")
    >>> best = score_topk(TextRanker("bm25").fit(docs), frame, {"q1": "apples"}, k=1)
    >>> [(row.query, row.document, row.rank) for row in best.collect()]
    [('q1', 'd1', 1)]
    """
    validation.count("k", k, low=1)
    if isinstance(ranker, TextRanker) and not hasattr(ranker, "model_"):
        raise NotFitted("this TextRanker is not fitted; call fit first")
    model = ranker.model_ if isinstance(ranker, TextRanker) else ranker
    if not isinstance(model, TextModel):
        raise DataError(f"a TextRanker or TextModel scores documents by their texts; got {type(model).__name__}")
    texts = _query_texts(queries)
    request = _Request(model, tuple(texts), tuple(texts.values()), k, exclude_self)
    if isinstance(documents, str | PathLike):
        return _search_shards(ranker, Path(documents), request, spark)
    columns = {"id": "text"} | ({"title": "text"} if "title" in documents.columns else {}) | {"text": "text"}
    table = select_columns(documents, columns, "documents")
    check_no_nulls(table, "documents")
    check_unique_ids(table)
    shared = documents.sparkSession.sparkContext.broadcast(request)
    return _merge(table.mapInArrow(_partition_search(shared), SCHEMA), k)


def _search_shards(
    ranker: TextRanker | TextModel, path: Path, request: _Request, spark: SparkSession | None
) -> DataFrame:
    """The best documents of an index, one task for each of its files."""
    if spark is None:
        raise ConfigError("The 'spark' parameter must be a SparkSession if documents are an index. Got None.")
    files = [str(file) for file in (list_shards(path) if path.is_dir() else [path])]
    first = Index.load(files[0])
    if first.n_terms != request.model.n_terms or (
        isinstance(ranker, TextRanker) and first.made_for != ranker.fingerprint()
    ):
        raise ModelError(f"{path}: built for another model; build it again")
    shared = spark.sparkContext.broadcast(request)
    table = spark.createDataFrame(spark.sparkContext.parallelize(files, len(files)).map(lambda f: (f,)), "file string")

    def search(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for file in batch.column(0).to_pylist():
                yield from _search_index(Index.load(file), shared.value)

    return _merge(table.mapInArrow(search, SCHEMA), request.k)


@dataclass(frozen=True)
class _Request:
    """The model and the queries that every partition receives."""

    model: TextModel
    ids: tuple[str, ...]
    texts: tuple[str, ...]
    k: int
    exclude_self: bool

    def batches(self) -> Iterator[tuple[tuple[str, ...], EncodedQuery]]:
        for start in range(0, len(self.ids), QUERIES_PER_BATCH):
            batch = slice(start, start + QUERIES_PER_BATCH)
            yield self.ids[batch], self.model.encode_queries(self.texts[batch])


def _query_texts(queries: Mapping[str, str] | DataFrame) -> dict[str, str]:
    if isinstance(queries, Mapping):
        return dict(queries)
    table = select_columns(queries, {"id": "text", "text": "text"}, "queries")
    check_no_nulls(table, "queries")
    rows = table.collect()
    texts = {row["id"]: row["text"] for row in rows}
    if len(texts) < len(rows):
        raise DataError(f"queries: {len(rows) - len(texts):,} ids occur more than once")
    return texts


def _partition_search(shared: Broadcast[_Request]) -> Any:
    def search(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        index = _build_index(shared.value.model, batches)
        if index is not None:
            yield from _search_index(index, shared.value)

    return search


def _search_index(index: Index, request: _Request) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for ids, encoded in request.batches():
        skip = list(ids) if request.exclude_self else None
        numbers, scores, counts = index.top(encoded, request.k, skip, n_jobs=1)
        names = [[index.id_at(one) for one in row[:n]] for row, n in zip(numbers.tolist(), counts, strict=True)]
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([query for query, row in zip(ids, names, strict=True) for _ in row], pa.string()),
                pa.array([name for row in names for name in row], pa.string()),
                pa.array([s for row, n in zip(scores, counts, strict=True) for s in row[:n]], pa.float32()),
            ],
            names=["query", "document", "score"],
        )


def _build_index(model: TextModel, batches: Iterable[pa.RecordBatch]) -> Index | None:
    """An index of the documents of one partition, or None; only one batch of texts is in memory at a time."""
    from scipy.sparse import csr_array, vstack

    ids: list[str] = []
    parts = []
    for batch in batches:
        if batch.num_rows == 0:
            continue
        columns = {name: batch.column(name).to_pylist() for name in batch.schema.names}
        titles = columns.get("title", [""] * batch.num_rows)
        parts.append(model.encode_documents(Documents(tuple(columns["id"]), tuple(titles), tuple(columns["text"]))))
        ids += columns["id"]
    if not ids:
        return None
    empty = ("",) * len(ids)
    rows = parts[0] if len(parts) == 1 else csr_array(vstack(parts, format="csr"))
    return Index.build(rows, Documents(tuple(ids), empty, empty))


def _merge(lists: DataFrame, k: int) -> DataFrame:
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    order = Window.partitionBy("query").orderBy(F.desc("score"), F.desc("document"))
    return lists.withColumn("rank", F.row_number().over(order)).where(F.col("rank") <= k)
