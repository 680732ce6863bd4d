"""Search results by query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .top_k import TopK


class _Result(NamedTuple):
    id: str
    score: float
    title: str


class Hit(_Result):
    """A search result: the tuple (id, score, title), with the metadata of the document.

    Attributes
    ----------
    id : str
        The document.
    score : float
        Its score.
    title : str
        Its title.
    metadata : dict
        {field: value} of the document. The constructor also takes a callable, which is called on first use.

    Examples
    --------
    >>> hit = Hit("d1", 1.25, "Apples", {"year": 1999})
    >>> hit, hit.metadata
    (Hit(id='d1', score=1.25, title='Apples'), {'year': 1999})
    """

    _metadata: dict[str, Any] | Callable[[], dict[str, Any]]

    def __new__(
        cls, id: str, score: float, title: str, metadata: dict[str, Any] | Callable[[], dict[str, Any]] | None = None
    ) -> Hit:
        """Return a hit."""
        hit = super().__new__(cls, id, score, title)
        hit._metadata = {} if metadata is None else metadata
        return hit

    @property
    def metadata(self) -> dict[str, Any]:
        """{field: value} of the document."""
        if callable(self._metadata):
            self._metadata = self._metadata()
        return self._metadata

    def __reduce__(self) -> tuple[type[Hit], tuple[Any, ...]]:
        return Hit, (*self, self.metadata)


def result_rows(top: TopK) -> list[list[tuple[int, float]]]:
    """The (number, score) of every result, by query."""
    rows = zip(top.docs.tolist(), top.scores.tolist(), top.counts.tolist(), strict=True)
    return [list(zip(docs[:count], scores, strict=False)) for docs, scores, count in rows]


def merge_results(parts: Sequence[TopK], k: int, offsets: Sequence[int], id_at: Callable[[int], str]) -> TopK:
    """Return the best of several segments, by score and then by descending id; `offsets` are their first numbers."""
    out = TopK.empty(len(parts[0].counts), k)
    for query, rows in enumerate(zip(*map(result_rows, parts), strict=True)):
        results = [
            (score, id_at(doc + offset), doc + offset)
            for row, offset in zip(rows, offsets, strict=True)
            for doc, score in row
        ]
        best = sorted(results, reverse=True)[:k]
        out.counts[query] = len(best)
        out.scores[query, : len(best)] = [score for score, _, _ in best]
        out.docs[query, : len(best)] = [number for _, _, number in best]
    return out
