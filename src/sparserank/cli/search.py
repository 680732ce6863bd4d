"""sparserank search"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .arguments import IndexFile, Json, MaxResults, ModelFile, Prefix, Synonyms, Typos, Words

if TYPE_CHECKING:
    from ..search import Hit
    from ..text_ranker import TextRanker

MAX_FACET_VALUES = 100
"""The most frequent values of a field are printed."""


def search(
    model: ModelFile,
    words: Words,
    k: MaxResults = 10,
    filter: Annotated[
        str | None,
        typer.Option(
            metavar="FILTER",
            help='Only documents with this metadata: "kind:function AND year>=2000"; also OR, NOT, parentheses, '
            'field:"two words", field:[1990 TO 2000] and field:*.',
        ),
    ] = None,
    facets: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD", help="Count the values of this metadata field among all results; repeatable."),
    ] = None,
    offset: Annotated[int, typer.Option(help="Skip this many results.", min=0)] = 0,
    typos: Typos = False,
    prefix: Prefix = False,
    synonyms: Synonyms = None,
    index: IndexFile = None,
    as_json: Json = False,
) -> None:
    """Print the best documents for WORDS.

    Example: sparserank search pydocs.safetensors "solve a linear system"

    Example: sparserank search winapi.safetensors "open a file" --filter "kind:function" --facets header

    Example: sparserank search pydocs.safetensors "solve a liner sys" --typos --prefix
    """
    from itertools import islice

    from ..text_ranker import load_text
    from ..text_ranker.synonyms import Synonyms as SynonymFile
    from .output import print_json, print_table

    ranker = load_text(model, index)
    if synonyms is not None:
        ranker.use_synonyms(SynonymFile.read(synonyms))
    names = [name for given in facets or () for name in given.split(",")]
    hits = ranker.search(words, k, filter=filter, offset=offset, facets=names, typos=typos, prefix=prefix)
    counts = {name: dict(islice(values.items(), MAX_FACET_VALUES)) for name, values in hits.facets.items()}
    unknown = ranker.unknown(words)
    if as_json:
        found: dict[str, Any] = {"results": _records(ranker, words, hits, typos, prefix), "unknown": unknown}
        found |= {"corrections": [one._asdict() for one in hits.corrections]} if typos else {}
        print_json(found | ({"facets": counts} if names else {}))
        return
    if hits.corrections:
        print("corrected: " + ", ".join(f"{one.word} → {one.replacement}" for one in hits.corrections))
    if not hits:
        print(
            "no document has any of these words" if filter is None else "no document matches the words and the filter"
        )
    else:
        ranked = enumerate(hits, start=offset + 1)
        rows = [(str(n), f"{hit.score:.3f}", hit.id, _summary(ranker, hit)) for n, hit in ranked]
        print_table("", ("", "score", "document", ""), rows, right=(0, 1))
    for name, values in counts.items():
        print(f"{name}: " + ", ".join(f"{value} ({count:,})" for value, count in values.items()))
    completed = ranker.explainer(words, typos=typos, prefix=prefix).query.completed
    searched = completed.union(one.word for one in hits.corrections)
    if unknown := [word for word in unknown if word not in searched]:
        print("in no document: " + ", ".join(unknown))


def _records(ranker: TextRanker, words: str, hits: list[Hit], typos: bool, prefix: bool) -> list[dict[str, Any]]:
    """Return the results with a passage of each text that has the words which matter."""
    explainer = ranker.explainer(words, typos=typos, prefix=prefix)
    return [{**hit._asdict(), "text": explainer.passage(hit.id).text, "metadata": hit.metadata} for hit in hits]


def _summary(ranker: TextRanker, hit: Hit) -> str:
    """Return the title, or the beginning of the text."""
    text = hit.title or " ".join(ranker.index_.text_of(hit.id)[:400].split())
    return text if len(text) <= 70 else text[:69] + "…"
