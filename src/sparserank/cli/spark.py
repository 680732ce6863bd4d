"""sparserank train --engine spark: train on Parquet tables or a BEIR folder and write an ordinary model.

The cluster counts words, and, for word pairs (`text`), computes all that needs documents. The driver collects queries
and judgments; the executors write the index as a folder of shards beside the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from time import perf_counter

from ..data.open import Sources, open_collection
from ..data.records import Collection
from ..errors import ConfigError
from ..text_ranker import TextRanker, index_path
from .arguments import apply_exclude_self
from .output import phase, progress
from .training_summary import print_training


def train_on_spark(
    ranker: TextRanker, sources: Sources, split: str | None, output: Path, master: str, conf: list[str], as_json: bool,
    exclude_self: bool | None = None, query_group: Mapping[str, str] | None = None,
) -> None:  # fmt: skip
    """Train the ranker and save it."""
    from ..search import Index
    from ..spark import SparkTextRanker
    from ..spark.frames import read_parquet
    from ..spark.index import write_index
    from ..spark.session import temporary_session
    from ..spark.tables import collect_training_data, metadata_names, read_documents, to_frame
    from ..spark.text import fit_lexical
    from ..text_ranker.model import TextModel

    started = perf_counter()
    settings = dict(_parse_conf(one) for one in conf)
    collection, n_dropped, metadata = _validate(ranker, sources, split), 0, list[str]()
    excluded = bool(exclude_self) or (exclude_self is None and collection is not None and collection.exclude_self)
    with progress() as report:
        report(f"starting Spark on {master}")
        with temporary_session(master, **settings) as spark:
            if ranker.ranker == "text":
                data, documents, n_dropped = collect_training_data(spark, sources, collection, split)
                data = apply_exclude_self(data, data.split("train"), exclude_self)
                ranker = SparkTextRanker(ranker).fit(
                    spark, documents, data.queries, data.split("train"),
                    query_group=query_group, exclude_self=data.exclude_self, callback=report,
                )  # fmt: skip
            else:
                if collection is None:
                    documents = read_documents(spark, sources.documents)
                else:
                    documents = to_frame(spark, collection.documents)
                ranker.model_ = TextModel(fit_lexical(ranker.lexical_model(), documents, report))
            if collection is None:
                metadata = metadata_names(read_parquet(spark, sources.documents))
            ranker.save(output)
            if ranker.ranker == "text":
                report("writing the index")
                write_index(ranker, documents, index_path(output))
                ranker.index_ = Index.load(index_path(output))
    notes = [f"{ranker.model_.n_pairs:,} word pairs"]
    if not hasattr(ranker, "index_"):
        notes.append(
            "no index: the documents stay on the cluster; `sparserank index` writes one for documents that fit here"
        )
    print_training(
        ranker, output, f"by Spark on {master}", perf_counter() - started, n_dropped, excluded, notes, as_json,
        documents=None if collection is None else collection.documents, metadata=metadata, engine="spark",
        master=master,
    )  # fmt: skip


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
        collection = open_collection(sources.documents, missing=sources.missing)
    if not sources.relevance_tables and not sources.texts and (learns or (split is not None and collection.qrels)):
        collection.split(split or "train")
    return collection


def _parse_conf(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark."):
        raise ConfigError(f"--conf must be spark.NAME=VALUE; got {text!r}")
    return name, value
