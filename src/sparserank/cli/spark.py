"""sparserank train --engine spark: tables in Parquet, wherever Spark reads, or a BEIR folder, to an ordinary model.

Words are counted where the documents lie; `bm25` and `cosine` need no more, and their documents never come here. Word
pairs (`text`) are learned with the matrix products on the cluster, from documents and judgments that this machine
holds: there the index is written too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from ..data.formats.text_tables import qrels_from_rows, queries_from_rows
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
    """Train the ranker that `ranker` describes, and write it."""
    from ..spark.session import temporary_session

    started = perf_counter()
    given = dict(_setting(one) for one in conf)
    collection, left_out = _judged(ranker, sources, split), 0
    excluded = bool(exclude_self) or (exclude_self is None and collection is not None and collection.drop_self)
    with progress() as report:
        report(f"starting Spark on {master}")
        with temporary_session(master, **given) as spark:
            if ranker.ranker == "text":
                known, left_out = _collected(spark, sources, collection, split)
                known = apply_exclude_self(known, known.split("train"), exclude_self)
                trained = _learned(spark, ranker, known, report)
            elif collection is None:
                trained = _counted(ranker, _documents(spark, sources.documents), report)
            else:
                trained = _counted(ranker, _frame(spark, collection.documents), report)
        trained.save(output)
    _say(trained, output, master, left_out, excluded, round(perf_counter() - started, 3), as_json)


def _judged(ranker: TextRanker, sources: Sources, split: str | None) -> Collection | None:
    """Refuse what can be refused without a cluster; the collection, where the documents are a folder's."""
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


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark."):
        raise ConfigError(f"--conf must be spark.NAME=VALUE; got {text!r}")
    return name, value


def _documents(spark: SparkSession, path: str) -> DataFrame:
    """id, title, text: ids as text, and empty titles where there are none."""
    from pyspark.sql import functions as F  # noqa: N812

    from ..spark.frames import check_no_nulls, check_unique_ids, read_parquet, select_columns

    found = read_parquet(spark, path)
    titled = {"title": "text"} if "title" in found.columns else {}
    documents = select_columns(found, {"id": "id"} | titled | {"text": "text"}, path)
    title = F.coalesce("title", F.lit("")) if titled else F.lit("")
    named = documents.select(F.col("id").cast("string").alias("id"), title.alias("title"), "text")
    check_no_nulls(named, path)
    check_unique_ids(named)
    return named


def _frame(spark: SparkSession, documents: Documents) -> DataFrame:
    rows = list(zip(documents.ids, documents.titles, documents.texts, strict=True))
    return _sent(spark, rows, "id string, title string, text string")


def _sent(spark: SparkSession, rows: Sequence[tuple[str, ...]], schema: str) -> DataFrame:
    from ..spark.broadcast import BroadcastParts

    parts = spark.sparkContext.defaultParallelism
    sent = BroadcastParts(spark, [rows[part::parts] for part in range(parts)])
    return spark.createDataFrame(sent.flat_map(lambda _, part: part), schema)


def _collected(
    spark: SparkSession, sources: Sources, known: Collection | None, split: str | None
) -> tuple[Collection, int]:
    """All that word pairs are learned from, on this machine; schemas are judged before any row is moved.

    known : the collection, where the documents are a folder's. What is learned from is the split 'train' of what is
    handed back, with how many rows are left out of it.
    """
    from ..spark.frames import check_no_nulls, read_parquet, select_columns

    sources = sources.resolve(lambda path: read_parquet(spark, path).columns)
    documents = None if known else _documents(spark, sources.data)
    queries = None
    if sources.queries:
        queries = select_columns(read_parquet(spark, sources.queries), {"id": "id", "text": "text"}, sources.queries)
        check_no_nulls(queries, sources.queries)
    told = _told(spark, sources)
    if known is None:
        found = cast("DataFrame", documents).toArrow()
        columns = (tuple(found.column(name).to_pylist()) for name in ("id", "title", "text"))
        known = Collection(sources.data, Documents(*columns), {}, {})
    if queries is not None:
        asked = ((str(query), text) for query, text in queries.collect())
        known = replace(known, queries=queries_from_rows(str(sources.queries), asked))
    if told is None:
        return replace(known, qrels={"train": known.split(split or "train")}), 0
    return _graded(spark, sources, known, told)


def _told(spark: SparkSession, sources: Sources) -> DataFrame | None:
    """The table that says what is relevant; None where there is none."""
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


def _graded(spark: SparkSession, sources: Sources, known: Collection, told: DataFrame) -> tuple[Collection, int]:
    """The collection with the grades that a table gives as its split 'train', and how many rows were left out."""
    from ..spark.clicks import click_grades, known_triples, triple_grades

    ((kind, path),) = sources.relevance_tables.items()
    left_out = 0
    if kind == "triples":
        if sources.missing == "drop":
            asked = known.queries or {str(row["query"]) for row in told.select("query").distinct().collect()}
            queries, documents = (
                _sent(spark, [(one,) for one in ids], "id string") for ids in (asked, known.documents.ids)
            )
            every, told = told.count(), known_triples(told, queries, documents)
            left_out = every - told.count()
        told = triple_grades(told)
    elif kind == "clicks":
        told = click_grades(told)
    grades = _nested(told, path)
    if not known.queries:
        known = replace(known, queries=queries_as_texts(grades, path))
    kept, unknown = sources.restrict(grades, known)
    return replace(known, qrels={"train": cast("Qrels", kept)}), left_out + unknown


def _nested(grades: DataFrame, path: str) -> Qrels:
    rows = grades.orderBy("query", "document").collect()
    return qrels_from_rows(path, ((str(row["query"]), str(row["document"]), float(row["grade"])) for row in rows))


def _learned(spark: SparkSession, ranker: TextRanker, known: Collection, report: Callable[[str], None]) -> TextRanker:
    from ..spark import SparkTextRanker

    qrels = known.split("train")
    learner: Any = SparkTextRanker(ranker)
    out: TextRanker = learner.fit(
        spark, known.documents, known.queries, qrels, exclude_self=known.drop_self, callback=report
    )
    return out


def _counted(ranker: TextRanker, documents: DataFrame, report: Callable[[str], None]) -> TextRanker:
    """A lexical ranker whose words are counted on the cluster; it has no index: its documents stay where they are."""
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


def _say(
    trained: TextRanker, output: Path, master: str, left_out: int, excluded: bool, seconds: float, as_json: bool
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
        "left_out": left_out,
        "exclude_self": excluded,
        "chosen": dict(model.info),
        "seconds": seconds,
    }
    if as_json:
        print_json(summary)
        return
    written = str(output) if index is None else f"{output}, {index}"
    print(
        f"{trained.ranker} on {features.documents_:,} documents and {len(features.words_):,} words "
        f"by Spark on {master} in {seconds:.1f} s: {written}; {model.n_pairs:,} word pairs"
    )
    if left_out:
        print(DROPPED_ROWS.format(left_out))
    if index is None:
        print("no index: the documents stay where they are; `sparserank index` makes one of those that fit here")
