"""Rankings of the systems that commands compare."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..data.records import Collection, Qrels
from ..errors import DataError

if TYPE_CHECKING:
    from ..text_ranker import TextRanker


def bm25_for(collection: Collection) -> TextRanker:
    """BM25 with its default settings on the collection's documents: what every model is compared with."""
    from ..text_ranker import TextRanker

    return TextRanker("bm25").fit(collection.documents)


def ranking(ranker: TextRanker, collection: Collection, qrels: Qrels, depth: int) -> dict[str, dict[str, float]]:
    """The ranker's run for the judged queries, from its own index where that holds the collection's documents."""
    silent = [query for query in qrels if query not in collection.queries]
    if silent:
        raise DataError(f"{len(silent)} judged queries of {collection.name} have no text, the first is {silent[0]!r}")
    queries = {query: collection.queries[query] for query in qrels}
    if not ranker.serves(collection.documents):
        ranker = ranker.over(collection.documents)
    return ranker.run(queries, depth, collection.drop_self)
