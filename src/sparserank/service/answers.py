"""What is answered, made of one version of the model: plain values, ready for JSON."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from ..errors import DataError
from ..search.snippets import passage
from ..text_ranker.explain import Explaining
from .schemas import SearchAsked
from .served import Serving

TOGETHER = 2
"""Results that are explained without letting other requests in between."""


class NotHere(DataError):
    """A request named something that there is not."""


def searched(serving: Serving, asked: SearchAsked) -> Iterator[dict[str, Any] | None]:
    """The answer to a search, at last; None now and then before, where others may be let in between."""
    began = time.perf_counter()
    ranker = serving.ranker
    results: list[dict[str, Any]] = [hit._asdict() for hit in ranker.search(asked.query, asked.k)]
    answer: dict[str, Any] = {"query": asked.query, "version": serving.version.number, "results": results}
    if asked.explain:
        explaining = ranker.explaining(asked.query)
        for number, result in enumerate(results, start=1):
            result.update(_explained(serving, explaining, result["id"], asked.pairs))
            if number % TOGETHER == 0:
                yield None
    if asked.lexical:
        answer["lexical"] = [hit._asdict() for hit in ranker.search_lexical(asked.query, asked.k)]
    answer["unknown"] = ranker.unknown(asked.query)
    answer["milliseconds"] = round(1000.0 * (time.perf_counter() - began), 3)
    yield answer


def explained(serving: Serving, query: str, document: str) -> dict[str, Any]:
    """Why a document has its score."""
    there(serving, document)
    found = _explained(serving, serving.ranker.explaining(query), document, None, scored=True)
    return {"version": serving.version.number, **found}


def compared(serving: Serving, query: str, first: str, second: str) -> dict[str, Any]:
    """Why one document is above another."""
    there(serving, first)
    there(serving, second)
    return {**serving.ranker.compare(query, first, second).to_dict(), "version": serving.version.number}


def there(serving: Serving, document: str) -> None:
    """Refuse a document that is not in the index."""
    if document not in serving.ranker.index_:
        raise NotHere(f"there is no document {document!r} here; take an id from the results of /search")


def related(serving: Serving, word: str, k: int) -> dict[str, Any]:
    """What a word looks for, and what looks for it."""
    looks_for, looked_for_by = serving.around(word, k)
    return {"word": word, "related": _weights(looks_for), "looked_for_by": _weights(looked_for_by)}


def _weights(found: list[tuple[str, float]]) -> list[dict[str, Any]]:
    return [{"word": word, "weight": weight} for word, weight in found]


def _explained(
    serving: Serving, explaining: Explaining, document: str, most: int | None, scored: bool = False
) -> dict[str, Any]:
    """Passage and pairs: all of them, or at most `most` and what the rest adds."""
    ranker = serving.ranker
    score, pairs, rest = explaining.listed(document, most)
    analyzer = ranker.lexical_.settings.analyzer
    found = passage(analyzer, ranker.index_.text_of(document), [(word, added) for _, word, added, _ in pairs])
    out: dict[str, Any] = {
        "passage": {"text": found.text, "marks": [mark._asdict() for mark in found.marks]},
        "pairs": [
            {"query": query, "document": word, "contribution": added, "learned": learned}
            for query, word, added, learned in pairs
        ],
    }
    if most is not None:
        out["rest"] = rest._asdict()
    if scored:
        out["score"] = score
    return out
