"""sparserank train --engine spark: train on Parquet tables or a BEIR folder and write an ordinary model.

The cluster counts words. For `bm25` and `cosine` this is all, and documents never reach the driver. For word pairs
(`text`) the driver collects documents and judgments and writes the index; the cluster computes the matrix products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from ..data.formats.lines import qrels_from_rows
from ..data.formats.text_tables import queries_from_rows
from ..data.open import Sources, open_collection, queries_as_texts
from ..data.records import Collection, Documents, Qrels
from ..errors import ConfigError, DataError
from ..text_ranker import TextRanker, index_path
from .arguments import DROPPED_ROWS, apply_exclude_self
from .output import phase, print_json, progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

JUDGMENTS = {"query": "id", "document": "id", "grade": "number"}


def train_on_spark(
    ranker: TextRanker, sources: Sources, split: str | None, output: Path, master: str, conf: list[str], as_json: bool,
    exclude_self: bool | None = None,
) -> None:  # fmt: skip
    """Train the ranker and save it."""
    from ..spark.session import temporary_session

    started = perf_counter()
    settings = dict(_parse_conf(one) for one in conf)
    collection, n_dropped = _validate(ranker, sources, split), 0
    excluded = bool(exclude_self) or (exclude_self is None and collection is not None and collection.exclude_self)
    with progress() as report:
        report(f"starting Spark on {master}")
        with temporary_session(master, **settings) as spark:
            if ranker.ranker == "text":
                data, n_dropped = _collect(spark, sources, collection, split)
                data = apply_exclude_self(data, data.split("train"), exclude_self)
                trained = _fit_pairs(spark, ranker, data, report)
            elif collection is None:
                trained = fit_lexical(ranker, _read_documents(spark, sources.documents), report)
            else:
                trained = fit_lexical(ranker, to_frame(spark, collection.documents), report)
        trained.save(output)
    _print_summary(trained, output, master, n_dropped, excluded, round(perf_counter() - started, 3), as_json)


def _validate(ranker: TextRanker, sources: Sources, split: str | None) -> Collection | None:
    """Check everything that needs no cluster; return the collection if the documents are in a folder."""
    from ..spark import SparkTextRanker

    learns = ranker.ranker == "text"
    ranker.validate()
    if learns:
        SparkTextRanker(ranker).validate()
    sources.validate(ranker.ranker, learns, split)
    if sources.on_spark:
        if learns and not (sources.relevance_tables or sources.texts):
            raise ConfigError(
                "word pairs are learned from judged queries: give --judgments, --clicks or --triples, and --queries; "
                "--ranker bm25 needs none"
            )
        if split not in (None, "train"):
            raise ConfigError(f"--split {split} names a split of a folder; judgments in Parquet have none")
        return None
    with phase(f"reading {sources.documents}"):
        collection = open_collection(sources.documents)
    if not sources.relevance_tables and not sources.texts and (learns or (split is not None and collection.qrels)):
        collection.split(split or "train")
    return collection


def _parse_conf(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark."):
        raise ConfigError(f"--conf must be spark.NAME=VALUE; got {text!r}")
    return name, value


def _read_documents(spark: SparkSession, path: str) -> DataFrame:
    """Read id, title and text; ids become strings and missing titles empty."""
    from pyspark.sql import functions as F  # noqa: N812

    from ..spark.frames import check_no_nulls, check_unique_ids, read_parquet, select_columns

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
    from ..spark.broadcast import BroadcastParts

    n_parts = spark.sparkContext.defaultParallelism
    parts = BroadcastParts(spark, [rows[part::n_parts] for part in range(n_parts)])
    return spark.createDataFrame(parts.flat_map(lambda _, part: part), schema)


def _collect(
    spark: SparkSession, sources: Sources, known: Collection | None, split: str | None
) -> tuple[Collection, int]:
    """Collect the training data, as split 'train' of the result, and the number of dropped rows.

    Schemas are validated before rows are moved. known : the collection, if the documents are in a folder.
    """
    from ..spark.frames import check_no_nulls, read_parquet, select_columns

    sources = sources.resolve(lambda path: read_parquet(spark, path).columns)
    documents = None if known else _read_documents(spark, sources.data)
    queries = None
    if sources.queries:
        queries = select_columns(read_parquet(spark, sources.queries), {"id": "id", "text": "text"}, sources.queries)
        check_no_nulls(queries, sources.queries)
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
    """Read the table of clicks, triples or judgments, if there is one."""
    from ..spark.clicks import read_clicks, read_triples
    from ..spark.frames import check_no_nulls, read_parquet, select_columns

    if sources.clicks:
        return read_clicks(spark, sources.clicks)
    if sources.triples:
        return read_triples(spark, sources.triples)
    if sources.judgments:
        grades = select_columns(read_parquet(spark, sources.judgments), JUDGMENTS, sources.judgments)
        check_no_nulls(grades, sources.judgments)
        return grades
    return None


def _add_grades(
    spark: SparkSession, sources: Sources, known: Collection, relevance: DataFrame
) -> tuple[Collection, int]:
    """Return the collection with the grades of a table as split 'train', and the number of dropped rows."""
    from ..spark.clicks import click_grades, known_triples, triple_grades

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


def _fit_pairs(spark: SparkSession, ranker: TextRanker, data: Collection, report: Callable[[str], None]) -> TextRanker:
    from ..spark import SparkTextRanker

    learner: Any = SparkTextRanker(ranker)
    qrels = data.split("train")
    return cast(
        "TextRanker",
        learner.fit(spark, data.documents, data.queries, qrels, exclude_self=data.exclude_self, callback=report),
    )


def fit_lexical(ranker: TextRanker, documents: DataFrame, report: Callable[[str], None]) -> TextRanker:
    """Fit a lexical ranker with words counted on the cluster; it has no index, because documents stay there."""
    from ..spark import fit_features
    from ..text_ranker.model import TextModel

    report("counting words")
    lexical = ranker.lexical_model()
    weights = lexical.field_weights
    features = fit_features(documents, ["title", "text"], lexical.features, field_weights=weights)
    if not features.documents_:
        raise DataError("there are no documents to learn from")
    if not features.words_:
        raise DataError(f"none of the {features.documents_} documents has a word")
    ranker.model_ = TextModel(lexical)
    return ranker


def _print_summary(
    trained: TextRanker, output: Path, master: str, n_dropped: int, excluded: bool, seconds: float, as_json: bool
) -> None:
    model = trained.model_
    index = str(index_path(output)) if hasattr(trained, "index_") else None
    features = model.lexical.features
    summary = {
        "model": str(output),
        "index": index,
        "ranker": trained.ranker,
        "engine": "spark",
        "master": master,
        "documents": features.documents_,
        "words": len(features.words_),
        "pairs": model.n_pairs,
        "left_out": n_dropped,
        "exclude_self": excluded,
        "chosen": dict(model.info),
        "seconds": seconds,
    }
    if as_json:
        print_json(summary)
        return
    paths = str(output) if index is None else f"{output}, {index}"
    print(
        f"{trained.ranker} on {features.documents_:,} documents and {len(features.words_):,} words "
        f"by Spark on {master} in {seconds:.1f} s: {paths}; {model.n_pairs:,} word pairs"
    )
    if n_dropped:
        print(DROPPED_ROWS.format(n_dropped))
    if index is None:
        print("no index: the documents stay on the cluster; `sparserank index` writes one for documents that fit here")
