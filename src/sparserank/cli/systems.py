"""Runs of the systems that commands compare."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..data.records import Collection, Qrels
from ..errors import DataError

if TYPE_CHECKING:
    from ..text_ranker import TextRanker


def bm25_for(collection: Collection) -> TextRanker:
    """Fit BM25 with default settings on the documents, as the baseline of every model."""
    from ..text_ranker import TextRanker

    return TextRanker("bm25").fit(collection.documents)


def ranking(ranker: TextRanker, collection: Collection, qrels: Qrels, depth: int) -> dict[str, dict[str, float]]:
    """Rank for the judged queries, with the ranker's own index if it contains the documents of the collection."""
    missing = [query for query in qrels if query not in collection.queries]
    if missing:
        raise DataError(f"{len(missing)} judged queries of {collection.name} have no text, the first is {missing[0]!r}")
    queries = {query: collection.queries[query] for query in qrels}
    if not ranker.serves(collection.documents):
        ranker = ranker.over(collection.documents)
    return ranker.run(queries, depth, collection.drop_self)
