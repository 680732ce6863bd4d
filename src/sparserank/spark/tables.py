"""Training data from Parquet tables: documents, queries, and judgments, clicks or triples.

Schemas are validated before rows are moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from ..data.formats.lines import qrels_from_rows
from ..data.formats.text_tables import queries_from_rows
from ..data.open import Sources, queries_as_texts
from ..data.records import Collection, Documents, Qrels
from .broadcast import BroadcastParts
from .clicks import click_grades, known_triples, read_clicks, read_triples, triple_grades
from .frames import check_no_nulls, check_unique_ids, read_parquet, select_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUERY_COLUMNS = {"id": "id", "text": "text"}
JUDGMENT_COLUMNS = {"query": "id", "document": "id", "grade": "number"}


def read_table(spark: SparkSession, path: str, columns: dict[str, str]) -> DataFrame:
    """Read the columns of a Parquet table, which have no empty cells."""
    table = select_columns(read_parquet(spark, path), columns, path)
    check_no_nulls(table, path)
    return table


def read_documents(spark: SparkSession, path: str) -> DataFrame:
    """Read id, title and text; ids become strings and missing titles empty."""
    from pyspark.sql import functions as F  # noqa: N812

    table = read_parquet(spark, path)
    titles = {"title": "text"} if "title" in table.columns else {}
    documents = select_columns(table, {"id": "id"} | titles | {"text": "text"}, path)
    title = F.coalesce("title", F.lit("")) if titles else F.lit("")
    documents = documents.select(F.col("id").cast("string").alias("id"), title.alias("title"), "text")
    check_no_nulls(documents, path)
    check_unique_ids(documents)
    return documents


def to_frame(spark: SparkSession, documents: Documents) -> DataFrame:
    """Send documents to the cluster."""
    rows = list(zip(documents.ids, documents.titles, documents.texts, strict=True))
    return _send(spark, rows, "id string, title string, text string")


def _send(spark: SparkSession, rows: Sequence[tuple[str, ...]], schema: str) -> DataFrame:
    n_parts = spark.sparkContext.defaultParallelism
    parts = BroadcastParts(spark, [rows[part::n_parts] for part in range(n_parts)])
    return spark.createDataFrame(parts.flat_map(lambda _, part: part), schema)


def collect_training_data(
    spark: SparkSession, sources: Sources, known: Collection | None, split: str | None
) -> tuple[Collection, int]:
    """Collect the training data, as split 'train' of the result, and the number of dropped rows.

    known : the collection, if the documents are in a folder.
    """
    sources = sources.resolve(lambda path: read_parquet(spark, path).columns)
    documents = None if known else read_documents(spark, sources.data)
    queries = read_table(spark, sources.queries, QUERY_COLUMNS) if sources.queries else None
    relevance = _read_relevance(spark, sources)
    if known is None:
        table = cast("DataFrame", documents).toArrow()
        columns = (tuple(table.column(name).to_pylist()) for name in ("id", "title", "text"))
        known = Collection(sources.data, Documents(*columns), {}, {})
    if queries is not None:
        rows = ((str(query), text) for query, text in queries.collect())
        known = replace(known, queries=queries_from_rows(str(sources.queries), rows))
    if relevance is None:
        return replace(known, qrels={"train": known.split(split or "train")}), 0
    return _add_grades(spark, sources, known, relevance)


def _read_relevance(spark: SparkSession, sources: Sources) -> DataFrame | None:
    if sources.clicks:
        return read_clicks(spark, sources.clicks)
    if sources.triples:
        return read_triples(spark, sources.triples)
    return read_table(spark, sources.judgments, JUDGMENT_COLUMNS) if sources.judgments else None


def _add_grades(
    spark: SparkSession, sources: Sources, known: Collection, relevance: DataFrame
) -> tuple[Collection, int]:
    """Return the collection with the grades of a table as split 'train', and the number of dropped rows."""
    ((kind, path),) = sources.relevance_tables.items()
    n_dropped = 0
    if kind == "triples":
        if sources.missing == "drop":
            query_ids = known.queries or {str(row["query"]) for row in relevance.select("query").distinct().collect()}
            queries, documents = (
                _send(spark, [(one,) for one in ids], "id string") for ids in (query_ids, known.documents.ids)
            )
            n_triples, relevance = relevance.count(), known_triples(relevance, queries, documents)
            n_dropped = n_triples - relevance.count()
        relevance = triple_grades(relevance)
    elif kind == "clicks":
        relevance = click_grades(relevance)
    rows = relevance.orderBy("query", "document").collect()
    grades = qrels_from_rows((path, str(row["query"]), str(row["document"]), float(row["grade"])) for row in rows)
    if not known.queries:
        known = replace(known, queries=queries_as_texts(grades, path))
    qrels, n_unknown = sources.restrict(grades, known)
    return replace(known, qrels={"train": cast("Qrels", qrels)}), n_dropped + n_unknown
