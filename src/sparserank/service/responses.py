"""Response bodies, built from one loaded model: plain values for JSON."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from ..errors import DataError
from ..search.snippets import passage
from ..text_ranker.explain import QueryExplainer
from .reloader import LoadedModel, Weights
from .schemas import SearchRequest

RESULTS_PER_STEP = 2
"""Results that are explained before other requests may run."""


class NotFound(DataError):
    """A request named an unknown document or version."""


def search_response(model: LoadedModel, request: SearchRequest) -> Iterator[dict[str, Any] | None]:
    """Yield None while other requests may run, and finally the body."""
    start = time.perf_counter()
    ranker = model.ranker
    results: list[dict[str, Any]] = [hit._asdict() for hit in ranker.search(request.query, request.k)]
    body: dict[str, Any] = {"query": request.query, "version": model.version.number, "results": results}
    if request.explain:
        explainer = ranker.explainer(request.query)
        for number, result in enumerate(results, start=1):
            result.update(_explanation(model, explainer, result["id"], request.pairs))
            if number % RESULTS_PER_STEP == 0:
                yield None
    if request.lexical:
        body["lexical"] = [hit._asdict() for hit in ranker.search_lexical(request.query, request.k)]
    body["unknown"] = ranker.unknown(request.query)
    body["milliseconds"] = round(1000.0 * (time.perf_counter() - start), 3)
    yield body


def explain_response(model: LoadedModel, query: str, document: str) -> dict[str, Any]:
    """Explain the score of a document."""
    require_document(model, document)
    explanation = _explanation(model, model.ranker.explainer(query), document, None, with_score=True)
    return {"version": model.version.number, **explanation}


def compare_response(model: LoadedModel, query: str, first: str, second: str) -> dict[str, Any]:
    """Compare two documents."""
    require_document(model, first)
    require_document(model, second)
    return {**model.ranker.compare(query, first, second).to_dict(), "version": model.version.number}


def related_response(model: LoadedModel, word: str, k: int) -> dict[str, Any]:
    """Return the largest pairs of a word, in both directions."""
    forward, backward = model.related(word, k)
    return {"word": word, "related": _weights(forward), "looked_for_by": _weights(backward)}


def require_document(model: LoadedModel, document: str) -> None:
    """Raise NotFound for an unknown document."""
    if document not in model.ranker.index_:
        raise NotFound(f"there is no document {document!r}; use an id from the results of /search")


def _weights(pairs: Weights) -> list[dict[str, Any]]:
    return [{"word": word, "weight": weight} for word, weight in pairs]


def _explanation(
    model: LoadedModel, explainer: QueryExplainer, document: str, max_pairs: int | None, with_score: bool = False
) -> dict[str, Any]:
    """Return passage and pairs; with `max_pairs` also what the other pairs add."""
    ranker = model.ranker
    score, pairs, rest = explainer.top(document, max_pairs)
    words = [(word, contribution) for _, word, contribution, _ in pairs]
    snippet = passage(ranker.lexical_.analyzer, ranker.index_.text_of(document), words)
    names = ("query", "document", "contribution", "learned")
    body: dict[str, Any] = {
        "passage": {"text": snippet.text, "marks": [mark._asdict() for mark in snippet.marks]},
        "pairs": [dict(zip(names, pair, strict=True)) for pair in pairs],
    }
    if max_pairs is not None:
        body["rest"] = rest._asdict()
    if with_score:
        body["score"] = score
    return body
