"""Documents made ready for one ranker: an inverted index with exact top-k, in one file that is mapped, not read.

An index is a few segments that never change: what is added makes a new one, what is deleted is listed as gone, and
small segments are merged as they gather, so that a document is moved a logarithmic number of times. Nothing here is
ever changed in place: every change gives a new Index, and the file of the old one can be read on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..data.files import PathLike
from ..data.formats.tensors import map_tensors, write_tensors
from ..data.records import Documents
from ..errors import DataError, ModelError
from .encoded_query import Asked
from .expansion import Expansion
from .index_file import check_all, from_file, state
from .lookup import Found, best
from .segment import Segment

if TYPE_CHECKING:
    from scipy.sparse import csr_array

CHECKED_AT_ONCE = 1 << 27
"""Bytes of a file that is looked at whole when it is loaded: a tenth of a second. A larger one is when asked to."""
CROWDED = 0.5
"""Where so many documents of a segment are gone, it is made anew."""


class Hit(NamedTuple):
    """One result."""

    id: str
    score: float
    title: str


@dataclass(frozen=True)
class Index:
    """Postings by term: the documents that have it and their weights; `made_for` names the model it belongs to.

    Documents have numbers: those of the first segment come first. `expansion` is what they answer to words of queries,
    for the second plan of search; without it there is one plan.
    """

    segments: tuple[Segment, ...]
    made_for: str = ""
    expansion: Expansion | None = None

    @classmethod
    def build(cls, matrix: csr_array, documents: Documents, made_for: str = "") -> Index:
        """Index the rows of `matrix` (documents × terms), row i being document i.

        >>> from scipy.sparse import csr_array
        >>> docs = Documents.of({"a": "", "b": ""})
        >>> Index.build(csr_array([[1.0, 0.0], [1.0, 2.0]]), docs).search(csr_array([[1.0, 0.0]]), k=5)
        [[Hit(id='b', score=1.0, title=''), Hit(id='a', score=1.0, title='')]]
        """
        return cls((Segment.of(matrix, documents),), made_for)

    def __len__(self) -> int:
        return sum(len(one) - len(one.gone) for one in self.segments)

    @property
    def n_terms(self) -> int:
        """How many terms the index knows."""
        return self.segments[0].n_terms

    @property
    def postings(self) -> int:
        """How many weights it holds."""
        return sum(len(one.docs) for one in self.segments)

    # ---- changing

    def with_documents(self, matrix: csr_array, documents: Documents) -> Index:
        """With these documents added; one of the same id takes the other's place.

        >>> from scipy.sparse import csr_array
        >>> index = Index.build(csr_array([[1.0]]), Documents.of({"a": ""}))
        >>> more = index.with_documents(csr_array([[2.0], [3.0]]), Documents.of({"a": "", "b": ""}))
        >>> [(hit.id, hit.score) for hit in more.search(csr_array([[1.0]]))[0]]
        [('b', 3.0), ('a', 2.0)]
        """
        if matrix.shape[1] != self.n_terms:
            raise DataError(f"documents must have {self.n_terms} columns; got {matrix.shape[1]}")
        fresh = Segment.of(matrix, documents)
        there = self._without([i for i in documents.ids if i in self])
        return self._changed([*there, fresh] if len(fresh) else there)

    def without(self, doc_ids: Iterable[str]) -> Index:
        """Without these documents; one that is not there is refused by name.

        >>> from scipy.sparse import csr_array
        >>> index = Index.build(csr_array([[1.0], [1.0]]), Documents.of({"a": "", "b": ""}))
        >>> [hit.id for hit in index.without(["b"]).search(csr_array([[1.0]]))[0]]
        ['a']
        """
        wanted = list(dict.fromkeys(doc_ids))
        for doc_id in wanted:
            self.number(doc_id)
        return self._changed(self._without(wanted))

    def _without(self, doc_ids: Sequence[str]) -> list[Segment]:
        out = []
        for one in self.segments:
            places = [place for place in map(one.place, doc_ids) if place >= 0]
            out.append(one.without(places) if places else one)
        return out

    def _changed(self, segments: list[Segment]) -> Index:
        """With crowded segments made anew and small ones merged; one that is left as it was keeps its expansion."""
        kept: list[Segment] = []
        for one in segments:
            if len(one.gone) > CROWDED * len(one):
                one = Segment.merged([one])
            kept.append(one)
            while len(kept) > 1 and 2 * len(kept[-1]) >= len(kept[-2]):
                kept[-2:] = [Segment.merged(kept[-2:])]
        left = [one for one in kept if len(one)] or kept[:1]
        expansion = None if self.expansion is None else self.expansion.over(self.segments, left)
        return replace(self, segments=tuple(left), expansion=expansion)

    # ---- searching

    def top(
        self,
        queries: csr_array | Asked,
        k: int,
        skip: Sequence[str | None] | None = None,
        n_jobs: int | None = None,
        plan: str = "auto",
    ) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
        """Numbers (for `id_at`), scores and number of the best k documents of every query.

        A document whose score is 0 – it shares no term, or its contributions cancel – is not a result. The same
        numbers come out whatever the number of threads, and by both plans: 'query' expands queries through W,
        'documents' uses what documents were expanded to, and 'auto' what reads less. skip : a document's id, or None,
        for every query, which is no result for it.
        """
        asked = queries if isinstance(queries, Asked) else Asked(queries)
        if asked.rows.shape[1] != self.n_terms:
            raise DataError(f"queries must have {self.n_terms} columns; got {asked.rows.shape[1]}")
        validation.choice("plan", plan, ("auto", "query", "documents"))
        k = min(validation.count("k", k, low=1), max(len(self), 1))
        found = []
        for number, one in enumerate(self.segments):
            places = np.array([-1 if s is None else one.place(s) for s in skip or [None] * len(asked)], np.int64)
            answers = None if self.expansion is None else self.expansion.of(number, asked)
            found.append(best(one, answers, asked, k, places, validation.threads(n_jobs), plan))
        whole = found[0] if len(found) == 1 else self._merged(found, k)
        if not np.isfinite(whole.scores).all():
            raise ModelError("the index is damaged: a weight in it is not finite; make it again")
        return whole.places, whole.scores, whole.counts

    def _merged(self, found: Sequence[Found], k: int) -> Found:
        """The best of several segments, by score and then by falling id."""
        n = len(found[0].counts)
        out = Found(np.full((n, k), -1, np.int64), np.zeros((n, k), np.float32), np.zeros(n, np.int64))
        for query in range(n):
            all_of_them = [
                (float(score), self.id_at(place + offset), place + offset)
                for part, offset in zip(found, self._offsets, strict=True)
                for place, score in zip(
                    part.places[query, : part.counts[query]].tolist(), part.scores[query], strict=False
                )
            ]
            chosen = sorted(all_of_them, reverse=True)[:k]
            out.counts[query] = len(chosen)
            out.scores[query, : len(chosen)] = [score for score, _, _ in chosen]
            out.places[query, : len(chosen)] = [number for _, _, number in chosen]
        return out

    def search(self, queries: csr_array | Asked, k: int = 10, n_jobs: int | None = None) -> list[list[Hit]]:
        """The best k documents of every query, best first; fewer where fewer match."""
        numbers, scores, counts = self.top(queries, k, n_jobs=n_jobs)
        return [
            [Hit(self.id_at(d), s, self.title_at(d)) for d, s in zip(row[:c], values, strict=False)]
            for row, values, c in zip(numbers.tolist(), scores.tolist(), counts.tolist(), strict=True)
        ]

    def run(
        self, queries: csr_array | Asked, query_ids: Sequence[str], k: int = 1000, drop_self: bool = False
    ) -> dict[str, dict[str, float]]:
        """{query id: {document id: score}}, best first; with drop_self a query's own document is left out."""
        numbers, scores, counts = self.top(queries, k, list(query_ids) if drop_self else None)
        return {
            query: {self.id_at(d): s for d, s in zip(row[:c], values, strict=False)}
            for query, row, values, c in zip(query_ids, numbers.tolist(), scores.tolist(), counts.tolist(), strict=True)
        }

    # ---- documents

    @cached_property
    def _offsets(self) -> list[int]:
        return [0, *np.cumsum([len(one) for one in self.segments]).tolist()][:-1]

    def _at(self, number: int) -> tuple[Segment, int]:
        for one, offset in zip(reversed(self.segments), reversed(self._offsets), strict=True):
            if number >= offset:
                return one, number - offset
        raise IndexError(number)

    def id_at(self, number: int) -> str:
        """The id of the document of this number."""
        one, place = self._at(number)
        return one.ids[place]

    def title_at(self, number: int) -> str:
        """The title of the document of this number."""
        one, place = self._at(number)
        return one.titles[place]

    def number(self, doc_id: str) -> int:
        """The number of a document; one that is not there is refused by name."""
        for one, offset in zip(self.segments, self._offsets, strict=True):
            if (place := one.place(doc_id)) >= 0:
                return offset + place
        raise DataError(f"there is no document {doc_id!r} in this index of {len(self)} documents")

    def __contains__(self, doc_id: object) -> bool:
        return isinstance(doc_id, str) and any(one.place(doc_id) >= 0 for one in self.segments)

    def title_of(self, doc_id: str) -> str:
        """The title of one document."""
        return self.title_at(self.number(doc_id))

    def text_of(self, doc_id: str) -> str:
        """The text of one document."""
        one, place = self._at(self.number(doc_id))
        return one.texts[place]

    def weights_of(self, doc_id: str, terms: NDArray[np.int64]) -> NDArray[np.float32]:
        """The document's weight for each of the terms, 0 where it does not have the term."""
        one, place = self._at(self.number(doc_id))
        return one.weights_of(place, terms)

    def has_term(self, term: int) -> bool:
        """Whether any document, those that are gone included, has this term."""
        return any(one.starts[term] < one.starts[term + 1] for one in self.segments)

    @cached_property
    def _order(self) -> list[int]:
        """The numbers of all documents that are there, by falling id."""
        live = ((offset, one) for offset, one in zip(self._offsets, self.segments, strict=True))
        numbers = [offset + place for offset, one in live for place in one.kept.tolist()]
        return numbers if len(self.segments) == 1 else sorted(numbers, key=self.id_at, reverse=True)

    @cached_property
    def documents(self) -> Documents:
        """All documents, read into memory, by falling id."""
        at = [self._at(number) for number in self._order]
        return Documents(
            tuple(one.ids[place] for one, place in at),
            tuple(one.titles[place] for one, place in at),
            tuple(one.texts[place] for one, place in at),
        )

    def matrix(self, doc_ids: Iterable[str] | None = None) -> csr_array:
        """Rows of documents: all, in the order of `documents`, or those named."""
        from scipy.sparse import csr_array, vstack

        numbers = self._order if doc_ids is None else [self.number(d) for d in doc_ids]
        return csr_array(vstack([one.matrix() for one in self.segments], format="csr")[numbers])

    # ---- its file

    def save(self, path: PathLike) -> None:
        """Write the index as one file, atomically."""
        write_tensors(path, "index", *state(self.segments, self.made_for, self.expansion))

    @classmethod
    def load(cls, path: PathLike) -> Index:
        """Map an index that `save` wrote; a damaged file is refused by name.

        A file of more than CHECKED_AT_ONCE bytes is not read before it is searched, so that it is there at once,
        whatever its size; searching it is safe whatever it holds, and `check` tells whether it is whole.
        """
        file = map_tensors(path, "index")
        out = cls(*from_file(file))
        if Path(path).stat().st_size <= CHECKED_AT_ONCE:
            check_all(file, out.segments, out.expansion)
        return out

    @classmethod
    def check(cls, path: PathLike) -> Index:
        """Load an index and read all of it: what is damaged is refused by name."""
        out = cls.load(path)
        check_all(map_tensors(path, "index"), out.segments, out.expansion)
        return out
