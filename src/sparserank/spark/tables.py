"""Training data from Parquet tables: documents, queries, and judgments, clicks or triples.

Schemas are validated before rows are moved.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, cast

from ..data.formats.lines import qrels_from_rows
from ..data.formats.text_tables import queries_from_rows
from ..data.open import Sources, queries_as_texts
from ..data.records import Collection, Documents, Qrels
from ..search.metadata_columns import encode_metadata
from .broadcast import BroadcastParts
from .clicks import click_grades, known_triples, read_clicks, read_triples, triple_grades
from .frames import check_no_nulls, check_unique_ids, read_parquet, select_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

QUERY_COLUMNS = {"id": "id", "text": "text"}
JUDGMENT_COLUMNS = {"query": "id", "document": "id", "grade": "number"}
_TEXT_COLUMNS = ("id", "title", "text")
log = logging.getLogger(__name__)
_METADATA_TYPES = (
    "string", "boolean", "byte", "short", "integer", "long", "float", "double", "decimal", "date", "timestamp",
    "timestamp_ntz",
)  # fmt: skip


def read_table(spark: SparkSession, path: str, columns: dict[str, str]) -> DataFrame:
    """Read the columns of a Parquet table, which have no empty cells."""
    table = select_columns(read_parquet(spark, path), columns, path)
    check_no_nulls(table, path)
    return table


def read_documents(spark: SparkSession, path: str) -> DataFrame:
    """Read id, title, text and metadata, as `document_columns` returns them."""
    return document_columns(read_parquet(spark, path), path)


def document_columns(table: DataFrame, name: str = "documents") -> DataFrame:
    """Return id, title, text and metadata of a table of documents.

    Ids become strings and missing titles empty. `metadata` is a JSON object as text: a text column of that name, or the
    other columns without vectors, structures and bytes. A warning names columns that are left out or hold text.
    """
    from pyspark.sql import functions as F  # noqa: N812

    titles = {"title": "text"} if "title" in table.columns else {}
    select_columns(table, {"id": "id"} | titles | {"text": "text"}, name)
    title = F.coalesce("title", F.lit("")) if titles else F.lit("")
    if _has_metadata_column(table):
        metadata = F.coalesce("metadata", F.lit(""))
    else:
        others = metadata_names(table)
        metadata = F.to_json(F.struct(*(F.col(f"`{one}`") for one in others))) if others else F.lit("")
    _warn_unused(table, name)
    documents = table.select(
        F.col("id").cast("string").alias("id"), title.alias("title"), "text", metadata.alias("metadata")
    )
    check_no_nulls(documents, name)
    check_unique_ids(documents)
    return documents


def metadata_names(table: DataFrame) -> list[str]:
    """Return the columns of a table of documents that are kept as metadata."""
    others = [one for one in table.schema if one.name not in _TEXT_COLUMNS and _is_metadata(one.dataType)]
    return ["metadata"] if _has_metadata_column(table) else [one.name for one in others]


def _has_metadata_column(table: DataFrame) -> bool:
    return dict(table.dtypes).get("metadata") == "string"


def _warn_unused(table: DataFrame, name: str) -> None:
    kept, types = metadata_names(table), dict(table.dtypes)
    if left_out := [column for column in table.columns if column not in (*_TEXT_COLUMNS, *kept)]:
        reason = "metadata has a column of its own" if _has_metadata_column(table) else "neither text nor metadata"
        log.warning("%s: left out: %s (%s)", name, ", ".join(left_out), reason)
    warn_not_searched(name, [one for one in kept if one != "metadata" and types[one] in ("string", "array<string>")])


def warn_not_searched(name: str, fields: Sequence[str]) -> None:
    """Log the text fields of documents beside title and text, which are metadata on Spark."""
    if fields:
        log.warning("%s: not searched: %s (on Spark the model searches title, text)", name, ", ".join(fields))


def _is_metadata(dtype: DataType) -> bool:
    """Whether values are text, numbers, booleans, dates, or lists of them; a list of floats is an embedding."""
    if dtype.typeName() == "array":
        inner = dtype.elementType.typeName()  # type: ignore[attr-defined]  # of an array
        return inner in _METADATA_TYPES and inner not in ("float", "double")
    return dtype.typeName() in _METADATA_TYPES


def to_frame(spark: SparkSession, documents: Documents, partitions: int | None = None) -> DataFrame:
    """Send documents to the cluster, in their order; fields beside title and text are metadata there."""
    warn_not_searched("documents", documents.fields)
    rows = [(i, title, text, encode_metadata(one)) for i, (title, text, one) in documents.rows().items()]
    return _send(spark, rows, "id string, title string, text string, metadata string", partitions)


def _send(
    spark: SparkSession, rows: Sequence[tuple[str, ...]], schema: str, partitions: int | None = None
) -> DataFrame:
    n_parts = partitions or spark.sparkContext.defaultParallelism
    bounds = [len(rows) * part // n_parts for part in range(n_parts + 1)]
    parts = BroadcastParts(spark, [rows[first:last] for first, last in pairwise(bounds)])
    return spark.createDataFrame(parts.flat_map(lambda _, part: part), schema)


class ClusterData(NamedTuple):
    """Training data of tables: a collection, whose documents are on the cluster, and the number of dropped rows.

    The collection has the ids of judged documents, and of those with the id of a query, without their texts.
    """

    collection: Collection
    documents: DataFrame
    n_dropped: int


def collect_training_data(
    spark: SparkSession, sources: Sources, known: Collection | None, split: str | None
) -> ClusterData:
    """Collect queries and grades, as split 'train' of the result; documents stay on the cluster.

    known : the collection, if the documents are in a folder.
    """
    sources = sources.resolve(lambda path: read_parquet(spark, path).columns)
    documents = to_frame(spark, known.documents) if known else read_documents(spark, sources.data)
    queries = read_table(spark, sources.queries, QUERY_COLUMNS) if sources.queries else None
    relevance = _read_relevance(spark, sources)
    if known is None:
        known = Collection(sources.data, Documents((), (), ()), {}, {})
    if queries is not None:
        rows = ((str(query), text) for query, text in queries.collect())
        known = replace(known, queries=queries_from_rows(str(sources.queries), rows))
    if relevance is None:
        return ClusterData(replace(known, qrels={"train": known.split(split or "train")}), documents, 0)
    collection, n_dropped = _add_grades(spark, sources, known, relevance, documents)
    return ClusterData(collection, documents, n_dropped)


def _read_relevance(spark: SparkSession, sources: Sources) -> DataFrame | None:
    if sources.clicks:
        return read_clicks(spark, sources.clicks)
    if sources.triples:
        return read_triples(spark, sources.triples)
    return read_table(spark, sources.judgments, JUDGMENT_COLUMNS) if sources.judgments else None


def _add_grades(
    spark: SparkSession, sources: Sources, known: Collection, relevance: DataFrame, documents: DataFrame
) -> tuple[Collection, int]:
    """Return the collection with the grades of a table as split 'train', and the number of dropped rows."""
    ((kind, path),) = sources.relevance_tables.items()
    n_dropped = 0
    if kind == "triples":
        if sources.missing == "drop":
            query_ids = known.queries or {str(row["query"]) for row in relevance.select("query").distinct().collect()}
            queries = _send(spark, [(one,) for one in query_ids], "id string")
            n_triples, relevance = relevance.count(), known_triples(relevance, queries, documents.select("id"))
            n_dropped = n_triples - relevance.count()
        relevance = triple_grades(relevance)
    elif kind == "clicks":
        relevance = click_grades(relevance)
    rows = relevance.orderBy("query", "document").collect()
    grades = qrels_from_rows((path, str(row["query"]), str(row["document"]), float(row["grade"])) for row in rows)
    if not known.queries:
        known = replace(known, queries=queries_as_texts(grades, path))
    if not len(known.documents):
        wanted = {document for of_query in grades.values() for document in of_query} | set(known.queries)
        ids = _send(spark, [(one,) for one in sorted(wanted)], "id string")
        found = tuple(row["id"] for row in documents.select("id").join(ids, "id", "left_semi").collect())
        known = replace(known, documents=Documents(found, ("",) * len(found), ("",) * len(found)))
    qrels, n_unknown = sources.restrict(grades, known)
    return replace(known, qrels={"train": cast("Qrels", qrels)}), n_dropped + n_unknown
