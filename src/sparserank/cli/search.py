"""sparserank search"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .arguments import IndexFile, Json, MaxResults, ModelFile, Words

if TYPE_CHECKING:
    from ..search import Hit
    from ..text_ranker import TextRanker


def search(
    model: ModelFile,
    words: Words,
    k: MaxResults = 10,
    index: IndexFile = None,
    as_json: Json = False,
) -> None:
    """Print the best documents for WORDS.

    Example: sparserank search pydocs.safetensors "solve a linear system"
    """
    from ..text_ranker import load_text
    from .output import print_json, print_table

    ranker = load_text(model, index)
    hits = ranker.search(words, k)
    unknown = ranker.unknown(words)
    if as_json:
        print_json({"results": [hit._asdict() for hit in hits], "unknown": unknown})
        return
    if not hits:
        print("no document has any of these words")
    else:
        rows = [(str(n), f"{hit.score:.3f}", hit.id, _summary(ranker, hit)) for n, hit in enumerate(hits, start=1)]
        print_table("", ("", "score", "document", ""), rows, right=(0, 1))
    if unknown:
        print("in no document: " + ", ".join(unknown))


def _summary(ranker: TextRanker, hit: Hit) -> str:
    """Return the title, or the beginning of the text."""
    text = hit.title or " ".join(ranker.index_.text_of(hit.id)[:400].split())
    return text if len(text) <= 70 else text[:69] + "…"
