"""sparserank train"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from .arguments import Data, Json


class Ranker(StrEnum):
    """The rankers that learn from a text collection."""

    bm25 = "bm25"
    cosine = "cosine"


def train(
    data: Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="MODEL", help="Where to write the model (one .safetensors file).")
    ],
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
    as_json: Json = False,
) -> None:
    """Train a ranker on DATA and write it to MODEL, with the search index beside it (MODEL.index).

    Example: sparserank train pydocs --ranker bm25 --output pydocs.safetensors
    """
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
