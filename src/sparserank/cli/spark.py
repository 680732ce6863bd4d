"""sparserank train --engine spark: tables in Parquet, wherever Spark reads, or a BEIR folder, to an ordinary model.

Words are counted where the documents lie; `bm25` and `cosine` need no more, and their documents never come here. Word
pairs (`text`) are learned with the matrix products on the cluster, from documents and judgments that this machine
holds: there the index is written too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ..data.records import Collection, Documents, Qrels
from ..engine import TextRanker, index_path
from ..errors import ConfigError, DataError
from .collections import open_collection
from .output import print_json, telling

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

JUDGMENTS = {"query": "id", "document": "id", "grade": "number"}


@dataclass(frozen=True)
class Tables:
    """Where the documents, the queries and the judgments lie."""

    documents: str
    queries: str | None = None
    judgments: str | None = None
    clicks: str | None = None

    @property
    def is_parquet(self) -> bool:
        """Whether the documents are a table, rather than a BEIR folder or the name of a known collection."""
        return self.documents.rstrip("/").endswith(".parquet") or "://" in self.documents

    def judge(self, learns: bool) -> None:
        """Refuse tables that do not go together."""
        if not self.is_parquet:
            if self.queries or self.judgments or self.clicks:
                raise ConfigError("--queries, --judgments and --clicks go with documents in Parquet; a folder has both")
        elif self.judgments and self.clicks:
            raise ConfigError("--judgments and --clicks both say what is relevant; give one of them")
        elif learns and not (self.queries and (self.judgments or self.clicks)):
            raise ConfigError(
                "word pairs are learned from judged queries: give --queries, and --judgments or --clicks; "
                "--ranker bm25 needs none"
            )


def train_on_spark(
    ranker: TextRanker, tables: Tables, split: str | None, output: Path, master: str, conf: list[str], as_json: bool
) -> None:
    """Train the ranker that `ranker` describes, and write it."""
    from ..spark.session import opened

    started = perf_counter()
    given = dict(_setting(one) for one in conf)
    collection = _judged(ranker, tables, split)
    with telling() as tell:
        tell(f"starting Spark on {master}")
        with opened(master, **given) as spark:
            if ranker.ranker == "text":
                trained = _learned(spark, ranker, collection or _collected(spark, tables), split, tell)
            elif collection is None:
                trained = _counted(ranker, _documents(spark, tables.documents), tell)
            else:
                trained = _counted(ranker, _frame(spark, collection.documents), tell)
        trained.save(output)
    _say(trained, output, master, round(perf_counter() - started, 3), as_json)


def _judged(ranker: TextRanker, tables: Tables, split: str | None) -> Collection | None:
    """Refuse what can be refused without a cluster; the collection, where the documents are a folder's."""
    from ..rankers.lexical import LexicalRanker
    from ..spark import SparkTextRanker

    learns = ranker.ranker == "text"
    ranker._judged()
    LexicalRanker(ranker._lexical_settings())
    if learns:
        SparkTextRanker(ranker)._judged()
    tables.judge(learns)
    if tables.is_parquet:
        if split not in (None, "train"):
            raise ConfigError(f"--split {split} names a split of a folder; judgments in Parquet have none")
        return None
    collection = open_collection(tables.documents)
    if learns or (split is not None and collection.qrels):
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

    from ..spark.frames import judged, refuse_nulls, table
    from ..spark.scoring import refuse_twice

    found = table(spark, path)
    titled = {"title": "text"} if "title" in found.columns else {}
    documents = judged(found, {"id": "id"} | titled | {"text": "text"}, path)
    title = F.coalesce("title", F.lit("")) if titled else F.lit("")
    named = documents.select(F.col("id").cast("string").alias("id"), title.alias("title"), "text")
    refuse_nulls(named, path)
    refuse_twice(named)
    return named


def _frame(spark: SparkSession, documents: Documents) -> DataFrame:
    from ..spark.sent import Sent

    rows = list(zip(documents.ids, documents.titles, documents.texts, strict=True))
    parts = spark.sparkContext.defaultParallelism
    sent = Sent(spark, [rows[part::parts] for part in range(parts)])
    return spark.createDataFrame(sent.flat_map(lambda _, part: part), "id string, title string, text string")


def _collected(spark: SparkSession, tables: Tables) -> Collection:
    """All that word pairs are learned from, on this machine; schemas are judged before any row is moved."""
    from ..spark.clicks import click_grades, read_clicks
    from ..spark.frames import judged, refuse_nulls, table

    documents = _documents(spark, tables.documents)
    queries = judged(table(spark, str(tables.queries)), {"id": "id", "text": "text"}, str(tables.queries))
    refuse_nulls(queries, str(tables.queries))
    if tables.clicks:
        grades = click_grades(read_clicks(spark, tables.clicks))
    else:
        grades = judged(table(spark, str(tables.judgments)), JUDGMENTS, str(tables.judgments))
        refuse_nulls(grades, str(tables.judgments))
    found = documents.toArrow()
    columns = (tuple(found.column(name).to_pylist()) for name in ("id", "title", "text"))
    return Collection(
        tables.documents,
        Documents(*columns),
        _texts(queries, str(tables.queries)),
        {"train": _nested(grades, str(tables.judgments or tables.clicks))},
    )


def _texts(queries: DataFrame, path: str) -> dict[str, str]:
    out: dict[str, str] = {}
    for query, text in queries.collect():
        if str(query) in out:
            raise DataError(f"{path}: query id {str(query)!r} occurs more than once")
        out[str(query)] = text
    return out


def _nested(grades: DataFrame, path: str) -> Qrels:
    """Grades by query; a document may be judged twice, as long as both say the same."""
    out: dict[str, dict[str, float]] = {}
    for row in grades.orderBy("query", "document").collect():
        query, document, grade = str(row["query"]), str(row["document"]), float(row["grade"])
        first = out.setdefault(query, {}).setdefault(document, grade)
        if first != grade:
            raise DataError(
                f"{path}: document {document!r} has the grades {min(first, grade):g} and {max(first, grade):g} for "
                f"query {query!r}; leave one of them"
            )
    return out


def _learned(
    spark: SparkSession, ranker: TextRanker, known: Collection, split: str | None, tell: Callable[[str], None]
) -> TextRanker:
    from ..spark import SparkTextRanker

    qrels = known.split(split or "train")
    learner: Any = SparkTextRanker(ranker)
    out: TextRanker = learner.fit(spark, known.documents, known.queries, qrels, drop_self=known.drop_self, tell=tell)
    return out


def _counted(ranker: TextRanker, documents: DataFrame, tell: Callable[[str], None]) -> TextRanker:
    """A lexical ranker whose words are counted on the cluster; it has no index: its documents stay where they are."""
    from ..rankers.lexical import LexicalRanker
    from ..rankers.text_model import TextModel
    from ..spark import fit_features

    tell("counting words")
    lexical = LexicalRanker(ranker._lexical_settings())
    weights = (lexical.settings.title_weight, lexical.settings.text_weight)
    features = fit_features(documents, ["title", "text"], lexical.features, field_weights=weights)
    if not features.documents_:
        raise DataError("there are no documents to learn from")
    if not features.words_:
        raise DataError(f"none of the {features.documents_} documents has a word")
    ranker.model_ = TextModel(lexical)
    return ranker


def _say(trained: TextRanker, output: Path, master: str, seconds: float, as_json: bool) -> None:
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
        "chosen": dict(model.told),
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
    if index is None:
        print("no index: the documents stay where they are; `sparserank index` makes one of those that fit here")
