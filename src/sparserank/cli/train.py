"""sparserank train"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from ..errors import ConfigError
from .arguments import DataOrNone, FoldsFolder, Json


class Ranker(StrEnum):
    """The rankers: two for texts, the others for graded rows (LETOR files)."""

    bm25 = "bm25"
    cosine = "cosine"
    domination = "domination"
    domination_base = "domination-base"
    domination_margin = "domination-margin"
    pamir = "pamir"
    ranksvm = "ranksvm"
    adarank = "adarank"
    adarank_ndcg = "adarank-ndcg"
    rankboost = "rankboost"
    rbf = "rbf"


TEXT = (Ranker.bm25, Ranker.cosine)


def train(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="MODEL", help="Where to write the model (one .safetensors file).")
    ],
    data: DataOrNone = None,
    ranker: Annotated[
        Ranker, typer.Option(help="What to train; the default is the best text model there is.")
    ] = Ranker.bm25,
    split: Annotated[
        str | None,
        typer.Option(
            help="The judgments to learn from: train, unless given; lexical rankers need none.", show_default=False
        ),
    ] = None,
    k1: Annotated[float, typer.Option(help="BM25: how soon repeated words stop counting.")] = 0.9,
    b: Annotated[float, typer.Option(help="BM25: how much long documents are held back, 0 to 1.")] = 0.4,
    title_weight: Annotated[float, typer.Option(help="What a word in the title counts.")] = 1.0,
    text_weight: Annotated[float, typer.Option(help="What a word in the text counts.")] = 1.0,
    stem: Annotated[str, typer.Option(help="Snowball language for word stems, or 'none'.")] = "english",
    stop_words: Annotated[str, typer.Option(help="'english' leaves out 33 small words; or 'none'.")] = "english",
    ngrams: Annotated[int, typer.Option(help="2 counts pairs of neighbouring words as well.")] = 1,
    vali: Annotated[
        Path | None,
        typer.Option(help="LETOR: choose settings on this file, not on held-out queries.", show_default=False),
    ] = None,
    folds: FoldsFolder = None,
    given: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="LETOR: a setting of the ranker, taken and not tried."),
    ] = None,
    measure: Annotated[str, typer.Option(help="LETOR: what settings are chosen by.")] = "nDCG@10",
    seed: Annotated[int, typer.Option(help="LETOR: seed of rankers that draw.")] = 0,
    as_json: Json = False,
) -> None:
    """Train a ranker on DATA and write it to MODEL; a text ranker's search index goes beside it (MODEL.index).

    Example: sparserank train pydocs --ranker bm25 --output pydocs.safetensors

    Example: sparserank train train.txt --ranker domination --output model.safetensors

    Example: sparserank train --folds MQ2008 --ranker ranksvm --output models
    """
    if ranker not in TEXT:
        from .letor import train_rows

        train_rows(data, output, str(ranker), vali, folds, given or [], measure, seed, as_json)
        return
    if data is None:
        raise ConfigError("give the DATA to train on: a BEIR folder, or the name of a known collection")
    if vali is not None or folds is not None or given:
        raise ConfigError(f"--vali, --folds and --set are for rankers of LETOR files; --ranker {ranker} reads texts")
    from ..engine import TextRanker, index_path
    from .collections import open_collection
    from .output import print_json, working

    started = perf_counter()
    collection = open_collection(data)
    if split is not None and collection.qrels:
        collection.split(split)
    model = TextRanker(
        str(ranker), k1=k1, b=b, title_weight=title_weight, text_weight=text_weight, ngrams=ngrams,
        stem=None if stem == "none" else stem, stop_words=None if stop_words == "none" else stop_words,
    )  # fmt: skip
    with working("training"):
        model.fit(collection.documents)
        model.save(output)
    summary = {
        "model": str(output),
        "index": str(index_path(output)),
        "ranker": str(ranker),
        "documents": len(collection.documents),
        "words": len(model.lexical_.words),
        "seconds": round(perf_counter() - started, 3),
    }
    if as_json:
        print_json(summary)
    else:
        print(
            f"{ranker} on {summary['documents']:,} documents and {summary['words']:,} words of {collection.name} "
            f"in {summary['seconds']:.1f} s: {output}, {index_path(output)}"
        )
