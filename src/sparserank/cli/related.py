"""sparserank related"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .arguments import Json, MaxResults, PairsFile

if TYPE_CHECKING:
    from ..bilinear.word_pairs import WordPairs


def related(
    model: PairsFile,
    word: Annotated[
        str, typer.Argument(metavar="WORD", help="A query word; its number if the model has no vocabulary.")
    ],
    k: MaxResults = 5,
    as_json: Json = False,
) -> None:
    """Print the document words that are paired with a query word, by descending weight.

    Example: sparserank related pairs.safetensors hockey
    """
    from ..text_ranker import TextRanker, load_pairs
    from .output import print_json, print_table

    ranker = load_pairs(model)
    related_words = (
        ranker.related(word, k) if isinstance(ranker, TextRanker) else ranker.related(_query_word(ranker, word), k)
    )
    shown = ranker.lexical_.surface_forms(other for other, _ in related_words) if isinstance(ranker, TextRanker) else {}
    if as_json:
        found = [{"word": other, "weight": weight} for other, weight in related_words]
        print_json({"word": word, "related": found} | ({"display": shown} if shown else {}))
    elif not related_words:
        print(f"{word!r} has no pairs: its row of W is empty")
    else:
        print_table(
            "",
            ("document word", "weight"),
            [(shown.get(other, other), f"{weight:+.3f}") for other, weight in related_words],
            right=(1,),
        )


def _query_word(ranker: WordPairs, word: str) -> str | int:
    return int(word) if ranker.query_words_ is None and word.isdecimal() else word
