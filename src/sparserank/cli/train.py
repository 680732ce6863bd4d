"""sparserank train"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from ..base.registry import RANKERS
from ..errors import ConfigError
from .arguments import (
    ClicksTable,
    DataOrNone,
    ExcludeSelf,
    FoldsFolder,
    Json,
    JudgmentsTable,
    Missing,
    MissingRows,
    QueriesTable,
    QueryGroups,
    Seed,
    Synonyms,
    Texts,
    TriplesTable,
    Ubi,
)

if TYPE_CHECKING:
    from ..data.records import Collection, Qrels
    from ..evaluation import Reverses
    from ..text_ranker.model import TextModel

    class Ranker(StrEnum):
        """The names of the registry; a type checker needs only those that this module mentions."""

        text = "text"
        bilinear = "bilinear"
        bm25 = "bm25"
        cosine = "cosine"
else:
    Ranker = StrEnum("Ranker", {name.replace("-", "_"): name for name in (*RANKERS["texts"], *RANKERS["letor"])})


class Engine(StrEnum):
    """Where to train."""

    local = "local"
    spark = "spark"


PAIR_RANKERS = (Ranker.text, Ranker.bilinear)


def train(
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="MODEL",
            help="Where to write the model: one safetensors file; end its name in .safetensors.",
        ),
    ],
    data: DataOrNone = None,
    ranker: Annotated[
        Ranker,
        typer.Option(help="The ranker to train; the default, BM25 with learned word pairs, is the best for texts."),
    ] = Ranker.text,
    split: Annotated[
        str | None, typer.Option(help="The judgments to learn from, by default train; lexical rankers need none.")
    ] = None,
    learn_from: Annotated[
        list[str] | None,
        typer.Option(
            "--learn-from",
            metavar="SOURCES",
            help="What to learn from: judgments (the default), clicks, and without judgments titles, openings (first "
            "sentences), headings, links, mentions or log (queries without clicks); several are separated by commas.",
        ),
    ] = None,
    max_pairs: Annotated[int | None, typer.Option(help="The largest number of word pairs; by default 300,000.")] = None,
    megabytes: Annotated[
        float | None, typer.Option(help="The size of the word pairs in MB, instead of --max-pairs.")
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            help="Loss of the word pairs: squared, or domination (the default), softmax or hinge, which start from "
            "its solution."
        ),
    ] = None,
    nonnegative: Annotated[
        bool, typer.Option(help="Learn no negative weights, for engines that support none.")
    ] = False,
    k1: Annotated[float, typer.Option(help="BM25: saturation of the term frequency.")] = 0.9,
    b: Annotated[float, typer.Option(help="BM25: normalization of the document length, 0 to 1.")] = 0.4,
    title_weight: Annotated[float, typer.Option(help="The weight of a word in the title.")] = 1.0,
    text_weight: Annotated[float, typer.Option(help="The weight of a word in the text.")] = 1.0,
    language: Annotated[
        str,
        typer.Option(
            metavar="NAME|auto",
            help="The language of the texts, such as german, japanese or japanese+english; auto detects it.",
        ),
    ] = "english",
    segmenter: Annotated[
        str | None,
        typer.Option(help="How Chinese, Japanese and Thai are split into words: bigrams, jieba, fugashi or icu."),
    ] = None,
    compounds: Annotated[
        bool, typer.Option(help="Count the parts of compounds too, as in German; they are learned from the documents.")
    ] = False,
    stem: Annotated[
        str | None, typer.Option(help="Snowball language for word stems, or 'none'; by default --language.")
    ] = None,
    stop_words: Annotated[
        str | None, typer.Option(help="The language whose stop words are dropped, or 'none'; by default --language.")
    ] = None,
    ngrams: Annotated[int, typer.Option(help="2 adds pairs of neighbouring words to the vocabulary.")] = 1,
    synonyms: Synonyms = None,
    vali: Annotated[Path | None, typer.Option(help="LETOR: tune on this file instead of held-out queries.")] = None,
    folds: FoldsFolder = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="LETOR: fix a setting of the ranker instead of tuning it."),
    ] = None,
    measure: Annotated[str, typer.Option(help="LETOR: the measure to tune by.")] = "nDCG@10",
    seed: Seed = 0,
    engine: Annotated[Engine, typer.Option(help="Train on this machine or on Apache Spark.")] = Engine.local,
    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Spark: spark://HOST:PORT, yarn or k8s://https://HOST:PORT; by default local[*]."
        ),
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option("--conf", metavar="NAME=VALUE", help="Spark: a setting, such as spark.executor.memory=4g."),
    ] = None,
    queries: QueriesTable = None,
    judgments: JudgmentsTable = None,
    clicks: ClicksTable = None,
    triples: TriplesTable = None,
    ubi: Ubi = None,
    query_groups: QueryGroups = None,
    missing: MissingRows = Missing.error,
    texts: Texts = None,
    fields: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="The fields of documents to search, such as title,body,tags; by default all fields with text.",
        ),
    ] = None,
    field_weights: Annotated[
        str | None,
        typer.Option(
            metavar="WEIGHTS",
            help="BM25F: weights of fields, such as title=2,text=1; 'auto' tunes them on held-out queries, and is the "
            "default if there are more fields than title and text.",
        ),
    ] = None,
    exclude_self: ExcludeSelf = None,
    memory: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="The memory to train in, such as 8GB; by default half of what is free."),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Store completed stages here; the same command continues after a crash."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Train a ranker on DATA and write it to MODEL; a text ranker also writes its search index, MODEL.index.

    Example: sparserank train pydocs --output pydocs.safetensors --max-pairs 200000

    Example: sparserank train train.txt --ranker domination --output model.safetensors

    Example: sparserank train --folds MQ2008 --ranker ranksvm --output models

    Example: sparserank train docs.parquet --queries queries.parquet --clicks log.parquet --output model.safetensors

    Example: sparserank train docs.csv --learn-from titles,openings --output model.safetensors

    Example: sparserank train docs.parquet --engine spark --master yarn --ranker bm25 --output model.safetensors
    """
    from .learn_from import LearnFrom

    learned = LearnFrom.parse(learn_from)
    tables_given = {
        "judgments": judgments,
        "clicks": clicks,
        "triples": triples,
        "ubi": None if ubi is None else str(ubi),
    }
    learned.validate(str(ranker), engine.value, tables_given)
    on_spark = {"--master": master, "--conf": conf}
    if engine is not Engine.spark and any(on_spark.values()):
        raise ConfigError(f"{', '.join(name for name, value in on_spark.items() if value)} needs --engine spark")
    if engine is Engine.spark and (fields is not None or field_weights is not None):
        raise ConfigError("--engine spark searches title and text; remove --fields and --field-weights")
    if engine is Engine.spark and checkpoint is not None:
        raise ConfigError("--engine spark stores no checkpoints; remove --checkpoint")
    if engine is Engine.spark and ranker not in (Ranker.text, Ranker.bm25, Ranker.cosine):
        raise ConfigError(f"--engine spark trains --ranker text, bm25 or cosine; got {ranker}")
    if ubi is not None and (engine is Engine.spark or queries or judgments or clicks or triples or texts or split):
        raise ConfigError("--ubi has queries and clicks; remove --queries, other relevance and --engine spark")
    if ubi is not None and ranker not in PAIR_RANKERS:
        raise ConfigError(f"--ranker {ranker} does not learn from clicks; remove --ubi")
    if str(ranker) in RANKERS["letor"]:
        from .letor import train_rows

        of_texts = {
            "--queries": queries, "--judgments": judgments, "--clicks": clicks, "--triples": triples, "--texts": texts,
            "--query-groups": query_groups, "--memory": memory, "--checkpoint": checkpoint, "--synonyms": synonyms,
            "--exclude-self": exclude_self, "--fields": fields, "--field-weights": field_weights,
            "--max-pairs": max_pairs, "--megabytes": megabytes, "--loss": loss, "--nonnegative": nonnegative or None,
            "--language": None if language == "english" else language, "--segmenter": segmenter, "--stem": stem,
            "--stop-words": stop_words, "--compounds": compounds or None, "--learn-from": learn_from,
            "--missing": None if missing is Missing.error else missing,
        }  # fmt: skip
        if given := [option for option, value in of_texts.items() if value is not None]:
            are = "is" if len(given) == 1 else "are"
            raise ConfigError(f"{', '.join(given)} {are} for rankers of texts; --ranker {ranker} reads LETOR files")
        train_rows(data, output, str(ranker), vali, folds, settings or [], measure, seed, as_json)
        return
    if data is None:
        raise ConfigError("give the DATA to train on: a BEIR folder, a table, or the name of a known collection")
    if vali is not None or folds is not None or settings:
        raise ConfigError(f"--vali, --folds and --set are for rankers of LETOR files; --ranker {ranker} reads texts")
    of_pairs = {
        "--max-pairs": max_pairs, "--megabytes": megabytes, "--loss": loss, "--nonnegative": nonnegative or None,
    }  # fmt: skip
    if ranker not in PAIR_RANKERS and (given := [option for option, value in of_pairs.items() if value is not None]):
        are = "is" if len(given) == 1 else "are"
        raise ConfigError(f"{', '.join(given)} {are} for rankers with word pairs; --ranker {ranker} has none")
    from ..data.files import check_writable
    from ..data.formats.lines import read_groups
    from ..data.formats.triples import Triples
    from ..data.formats.ubi import read_ubi
    from ..data.open import Sources, measure_corpus, open_sources
    from ..preferences.clicks import read_click_grades, search_grades
    from ..text import Analyzer
    from ..text_ranker import BM25, Cosine, TextRanker
    from ..text_ranker.memory import check_corpus, parse_memory
    from ..text_ranker.synonyms import Synonyms as SynonymFile
    from .arguments import apply_exclude_self
    from .output import phase, progress, without_training_warnings
    from .training_summary import print_training

    started, weights = perf_counter(), (title_weight, text_weight)
    model = TextRanker(
        str(ranker), loss=loss or "domination",
        max_pairs=max_pairs, megabytes=megabytes, nonnegative=nonnegative,
        lexical=Cosine(*weights)
        if ranker is Ranker.cosine
        else BM25(k1, b, *weights, field_weights=_parse_weights(field_weights)),
        analyzer=Analyzer(
            language,
            stem=None if stem == "none" else stem or "auto",
            stop_words=None if stop_words == "none" else stop_words or "auto",
            segmenter=segmenter or "auto",
            ngrams=ngrams,
            compounds=compounds,
        ),
        synonyms=None if synonyms is None else SynonymFile.read(synonyms),
        random_state=seed, memory_limit=memory,
    )  # fmt: skip
    model.validate()
    check_writable(output)
    if checkpoint is not None:
        check_writable(checkpoint)
    groups = None if query_groups is None else read_groups(query_groups)
    names = None if fields is None else tuple(name.strip() for name in fields.split(","))
    sources = Sources(data, texts, queries, judgments, clicks, triples, missing.value, names)
    if engine is Engine.spark:
        from .spark import train_on_spark

        train_on_spark(model, sources, split, output, master or "local[*]", conf or [], as_json, exclude_self, groups)
        return
    sources.validate(str(ranker), ranker in PAIR_RANKERS, split)
    check_corpus(sources.documents, measure_corpus(sources.documents), parse_memory(memory))
    with phase(f"reading {data}"):
        collection, relevance, n_dropped = open_sources(sources, ranker in PAIR_RANKERS, read_click_grades)
        if ubi is not None:
            clicked = search_grades(read_ubi(*ubi))
            collection = replace(collection, queries={text: text for text in clicked})
            relevance, n_dropped = sources.restrict(clicked, collection)
        qrels = _training_qrels(collection, ranker, split) if relevance is None else relevance
        collection = learned.without_other_splits(collection, split or "train")
        if not learned.uses_judgments:
            qrels = None
    query_ids = set(qrels.query if isinstance(qrels, Triples) else qrels or ())
    collection = apply_exclude_self(collection, query_ids, exclude_self)
    with _interruptible(checkpoint), progress() as report, without_training_warnings():
        model.fit(
            collection.documents, collection.queries, qrels, learn_from=learned.names,
            query_group=groups, exclude_self=collection.exclude_self, callback=report, checkpoint=checkpoint,
        )  # fmt: skip
        if relevance is None and query_ids and model.model_.W is not None:
            source = {"data": collection.name, "split": split or "train"}
            model.model_ = replace(model.model_, info=dict(model.model_.info) | source)
        model.save(output)
    reverses = _reverses(collection, split or "train") if query_ids and relevance is None else {}
    notes = [_describe_pairs(model.model_, len(query_ids))] if ranker in PAIR_RANKERS and learned.uses_judgments else []
    notes += learned.describe(model.model_)
    notes += [
        f"split {name}: {one}; `sparserank evaluate` also measures without them" for name, one in reverses.items()
    ]
    print_training(
        model, output, f"of {collection.name}", perf_counter() - started, n_dropped, collection.exclude_self, notes,
        as_json, documents=collection.documents, learned_from=learned.counts(model.model_, len(query_ids)),
        reverse_in_training={name: one.to_dict() for name, one in reverses.items()} or None,
        **({"note": notes[0]} if notes and learned.uses_judgments and not query_ids else {}),
    )  # fmt: skip


@contextmanager
def _interruptible(checkpoint: Path | None) -> Iterator[None]:
    """After Ctrl-C, say whether the same command continues."""
    try:
        yield
    except KeyboardInterrupt:
        if checkpoint is not None:
            begun = "continues from" if checkpoint.exists() else "starts again; no stage was completed for"
            print(f"\nsparserank: interrupted; the same command {begun} {checkpoint}", file=sys.stderr)
        raise


def _parse_weights(option: str | None) -> dict[str, float] | str | None:
    """Parse "auto" or "title=2,text=1".

    >>> _parse_weights("title=2,text=0.5")
    {'title': 2.0, 'text': 0.5}
    """
    if option is None or option == "auto":
        return option
    try:
        return {name.strip(): float(weight) for name, weight in (one.split("=") for one in option.split(","))}
    except ValueError:
        raise ConfigError(f"--field-weights must be auto or weights such as title=2,text=1; got {option!r}") from None


def _reverses(collection: Collection, training: str) -> dict[str, Reverses]:
    """Return the judgments of each split whose reverse is in training; none unless queries are documents."""
    from ..evaluation import Reverses

    splits = {name: Reverses.in_collection(collection, qrels, training) for name, qrels in collection.qrels.items()}
    return {name: one for name, one in splits.items() if one is not None}


def _training_qrels(collection: Collection, ranker: Ranker, split: str | None) -> Qrels | None:
    """Return the judgments of the split, by default of train if it exists; none for a lexical ranker."""
    if ranker not in PAIR_RANKERS:
        if split is not None and collection.qrels:
            collection.split(split)
        return None
    return None if split is None and "train" not in collection.qrels else collection.split(split or "train")


def _describe_pairs(model: TextModel, queries: int) -> str:
    info = model.info
    if queries == 0:
        return (
            "no word pairs: the data has no split 'train' to learn from; name another with --split, or a table with "
            "--judgments, --clicks or --triples, or try --learn-from titles"
        )
    if model.W is None:
        return f"no word pairs: {info['no_pairs']}; the model keeps the lexical score alone"
    return (
        f"{model.n_pairs:,} word pairs from {info['queries']:,} queries; nDCG@10 on held-out queries "
        f"{info['held_out_lexical']:.3f} (lexical) → {info['held_out_learned']:.3f}"
    )
