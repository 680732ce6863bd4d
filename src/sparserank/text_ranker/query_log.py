"""Queries that people typed, without clicks, as training queries: their best pages by the lexical score are relevant.

This is pseudo-relevance feedback that is learned once instead of computed for each query. It teaches words that come
with the words of a query in its best pages; it cannot teach a page that the lexical score does not find.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.formats.triples import Triples
from ..data.page_queries import TrainingQueries
from ..data.records import Documents
from ..errors import DataError
from .lexical import LexicalModel

if TYPE_CHECKING:
    from scipy.sparse import csr_array

DEPTH = 10
"""Pages that count as relevant to a query, with grades 1, 1/2, 1/3 … by their rank."""
BLOCK = 128
"""Queries whose scores are dense at a time."""


def unjudged_queries(queries: Mapping[str, str] | None, qrels: Any) -> dict[str, str]:
    """Return the queries without judgments.

    >>> unjudged_queries({"a": "red", "b": "blue"}, {"a": {"d1": 1}})
    {'b': 'blue'}
    """
    if not isinstance(queries, Mapping | None):
        raise DataError(f"queries must be {{id: text}}; got {type(queries).__name__}")
    judged = set(qrels.query) if isinstance(qrels, Triples) else set(qrels) if isinstance(qrels, Mapping) else set()
    return {name: text for name, text in (queries or {}).items() if name not in judged}


def typed_queries(sources: Sequence[str], queries: Mapping[str, str] | None, qrels: Any) -> dict[str, str]:
    """Return the queries of the source "log", those without judgments; DataError if it is named and there are none."""
    if "log" not in sources:
        return {}
    typed = unjudged_queries(queries, qrels)
    if not typed:
        raise DataError("learn_from='log' needs queries without judgments; there are none")
    return typed


def log_queries(
    queries: Mapping[str, str], documents: Documents, lexical: LexicalModel, rows: csr_array, depth: int = DEPTH
) -> TrainingQueries:
    """Return the queries of a log with their best pages; equal queries count once, those without results not at all.

    rows : the lexical rows of the documents.
    """
    for name, text in queries.items():
        if not isinstance(text, str):
            raise DataError(f"query {name!r} must be text; got {text!r:.60}")
    texts = list(dict.fromkeys(text.strip() for text in queries.values() if text.strip()))
    encoded, by_word, qrels = lexical.queries(texts), rows.T.tocsr(), {}
    for start in range(0, len(texts), BLOCK):
        scores = (encoded[start : start + BLOCK] @ by_word).toarray()
        for number, row in enumerate(scores, start):
            found = np.flatnonzero(row > 0.0)
            best = found[np.argsort(-row[found], kind="stable")[:depth]].tolist()
            if best:
                qrels[f"log {number}"] = {documents.ids[page]: 1.0 / rank for rank, page in enumerate(best, 1)}
    kept = {f"log {number}": text for number, text in enumerate(texts) if f"log {number}" in qrels}
    return TrainingQueries("log", kept, qrels, dict.fromkeys(kept, 1.0), documents)
