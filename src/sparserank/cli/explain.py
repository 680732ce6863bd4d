"""sparserank explain"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .arguments import IndexFile, Json, ModelFile, Prefix, Typos, Words

if TYPE_CHECKING:
    from ..search.comparison import Comparison, PairDifference
    from ..text_ranker import TextRanker


def explain(
    model: ModelFile,
    words: Words,
    document: Annotated[str, typer.Argument(metavar="DOC", help="The id of a document.")],
    against: Annotated[
        str | None,
        typer.Option(metavar="OTHER", help="Compare with this document: the difference of the scores, pair by pair."),
    ] = None,
    typos: Typos = False,
    prefix: Prefix = False,
    index: IndexFile = None,
    as_json: Json = False,
) -> None:
    """Explain the score of DOC for WORDS: the contribution of each word pair. The contributions sum to the score.

    The last lines sum up learned pairs: the five query words with document words that add most, and their share of all
    that is learned. With --json, `groups` has all of these, `explained_share` that share, and `lines` the contributions
    by document word.

    Example: sparserank explain pydocs.safetensors "solve a linear system" scipy.linalg.solve

    With --against OTHER, compare the two documents and name the smallest set of pairs whose removal would swap them.
    """
    from ..search.explanation import SHOWN_LINES
    from ..text_ranker import load_text
    from .output import print_json, print_table

    ranker = load_text(model, index)
    if against is not None:
        compared = ranker.compare(words, document, against, typos=typos, prefix=prefix)
        _print_comparison(ranker, compared, words, as_json)
        return
    explanation = ranker.explain(words, document, typos=typos, prefix=prefix)
    shown = ranker.lexical_.surface_forms(word for pair in explanation.pairs for word in pair[:2])
    if as_json:
        lines = {"lines": [line._asdict() for line in explanation.lines]}
        groups = {"groups": [group._asdict() for group in explanation.learned_groups]}
        share = {"explained_share": explanation.explained_share}
        print_json(explanation.to_dict() | lines | groups | share | ({"display": shown} if shown else {}))
        return
    bars = _bars([pair.contribution for pair in explanation.pairs])
    pairs = zip(explanation.pairs, bars, strict=True)
    rows = [
        (shown.get(pair.query, pair.query), shown.get(pair.document, pair.document), f"{pair.contribution:+.3f}", note)
        for pair, bar in pairs
        for note in (f"{bar} {pair.note}".rstrip(),)
    ]
    print_table(
        f"{document} scores {explanation.score:.3f} for {words!r}",
        ("query word", "document word", "adds", ""),
        rows,
        right=(2,),
    )
    if explanation.explained_share is not None:
        for query, documents, added in explanation.learned_groups[:SHOWN_LINES]:
            print(f"{added:+.3f} {shown.get(query, query)} → {', '.join(shown.get(word, word) for word in documents)}")
        print(f"these lines are {explanation.explained_share:.0%} of the learned part of the score")


def _bars(values: list[float]) -> list[str]:
    largest = max(map(abs, values), default=1.0) or 1.0
    return ["█" * max(1, round(24 * abs(value) / largest)) for value in values]


def _print_comparison(ranker: TextRanker, comparison: Comparison, words: str, as_json: bool) -> None:
    from .output import print_json, print_table

    shown = ranker.lexical_.surface_forms(word for pair in comparison.pairs for word in (pair.query, pair.document))
    if as_json:
        print_json(comparison.to_dict() | ({"display": shown} if shown else {}))
        return

    def names(pair: PairDifference) -> tuple[str, str]:
        return shown.get(pair.query, pair.query), shown.get(pair.document, pair.document)

    bars = _bars([pair.difference for pair in comparison.pairs])
    rows = [
        (*names(pair), f"{pair.first:+.3f}", f"{pair.second:+.3f}", f"{pair.difference:+.3f}", bar)
        for pair, bar in zip(comparison.pairs, bars, strict=True)
    ]
    print_table(
        f"{comparison.first} scores {comparison.first_score:.3f}, "
        f"{comparison.second} {comparison.second_score:.3f} for {words!r}",
        ("query word", "document word", "first", "second", "difference", ""),
        rows,
        right=(2, 3, 4),
    )
    if comparison.swap is None:
        print("removing pairs cannot swap the two documents")
    else:
        removed = ", ".join(" → ".join(names(pair)) for pair in comparison.swap)
        print(f"the two documents would swap without: {removed}")
