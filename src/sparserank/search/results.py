"""Search results as a list that notebooks show as a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ..parameters import html_table

if TYPE_CHECKING:
    from .hit import Hit


class Correction(NamedTuple):
    """A query word that was corrected.

    Attributes
    ----------
    word, replacement : str
        The word of the query, and the word that was searched.
    """

    word: str
    replacement: str


class SearchResults(list["Hit"]):
    """The hits of one query, best first: an ordinary list of `Hit` with `id`, `score`, `title` and `metadata`.

    Parameters
    ----------
    hits : iterable of Hit
        The hits.
    facets : mapping, default={}
        For each requested field {value: number of documents}, the most frequent value first. All documents that match
        the query and the filter count, not only the hits.
    corrections : iterable of Correction, default=()
        The words of the query that were corrected, with `search(typos=True)`.
    total : int, optional
        The number of all documents that match the query and the filter; None if it is not known.

    Examples
    --------
    >>> from sparserank.search import Hit
    >>> SearchResults([Hit("d1", 1.25, "Apples"), Hit("d2", 0.5, "")])
    [1. d1 (1.25) Apples, 2. d2 (0.5)]
    """

    def __init__(
        self, hits: Iterable[Hit] = (), facets: Mapping[str, Mapping[str, int]] | None = None,
        corrections: Iterable[Correction] = (), total: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(hits)
        self.facets = {} if facets is None else facets
        self.corrections, self.total = tuple(corrections), total

    def __repr__(self) -> str:
        lines = (f"{rank}. {hit.id} ({hit.score:.4g}) {hit.title}" for rank, hit in enumerate(self, start=1))
        return f"[{', '.join(line.rstrip() for line in lines)}]"

    def _repr_html_(self) -> str:
        rows = [(rank, hit.id, f"{hit.score:.4g}", hit.title) for rank, hit in enumerate(self, start=1)]
        return html_table(("", "id", "score", "title"), rows)
