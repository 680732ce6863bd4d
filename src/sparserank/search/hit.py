"""Search results by query."""

from __future__ import annotations

from typing import NamedTuple

from .top_k import TopK


class Hit(NamedTuple):
    """A search result.

    Attributes
    ----------
    id, title : str
        The document.
    score : float
        Its score.
    """

    id: str
    score: float
    title: str


def result_rows(top: TopK) -> list[list[tuple[int, float]]]:
    """The (number, score) of every result, by query."""
    rows = zip(top.docs.tolist(), top.scores.tolist(), top.counts.tolist(), strict=True)
    return [list(zip(docs[:count], scores, strict=False)) for docs, scores, count in rows]
