"""Documents made ready for one ranker: an inverted index with exact top-k.

Inside, documents stand in descending order of their ids, so that the tie rule (float32 score, then descending id) is
"the smaller number first". Nothing else in the package needs to know that order.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import check
from ..data.files import PathLike
from ..data.records import Documents
from ..data.tensors import pack_strings, read_tensors, write_tensors
from ..errors import DataError, ModelError

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class Hit(NamedTuple):
    """One result."""

    id: str
    score: float
    title: str


@dataclass(frozen=True)
class Index:
    """Postings by term: the documents that have it and their weights; `made_for` names the model it belongs to."""

    documents: Documents
    starts: NDArray[np.int64]
    docs: NDArray[np.int32]
    weights: NDArray[np.float32]
    made_for: str = ""

    def __post_init__(self) -> None:
        for name in ("starts", "docs", "weights"):
            frozen = getattr(self, name).view()
            frozen.setflags(write=False)
            object.__setattr__(self, name, frozen)

    @classmethod
    def build(cls, matrix: csr_array, documents: Documents, made_for: str = "") -> Index:
        """Index the rows of `matrix` (documents × terms), row i being document i.

        >>> from scipy.sparse import csr_array
        >>> docs = Documents.of({"a": "", "b": ""})
        >>> Index.build(csr_array([[1.0, 0.0], [1.0, 2.0]]), docs).search(csr_array([[1.0, 0.0]]), k=5)
        [[Hit(id='b', score=1.0, title=''), Hit(id='a', score=1.0, title='')]]
        """
        if matrix.shape[0] != len(documents):
            raise DataError(f"{len(documents)} documents need as many rows; got {matrix.shape[0]}")
        if not np.isfinite(matrix.data).all():
            raise DataError("a document weight is not finite")
        order = np.array(sorted(range(len(documents)), key=documents.ids.__getitem__, reverse=True), np.int64)
        by_term = matrix[order].tocsc()
        by_term.sort_indices()
        ordered = Documents(*(tuple(column[i] for i in order) for column in _columns(documents)))
        return cls(
            documents=ordered,
            starts=by_term.indptr.astype(np.int64),
            docs=by_term.indices.astype(np.int32),
            weights=by_term.data.astype(np.float32),
            made_for=made_for,
        )

    def __len__(self) -> int:
        return len(self.documents)

    @property
    def n_terms(self) -> int:
        """How many terms the index knows."""
        return len(self.starts) - 1

    def top(
        self, queries: csr_array, k: int, skip: NDArray[np.int64] | None = None, n_jobs: int | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
        """Places (in `documents`), scores and number of the best k documents of every row of `queries`.

        A document whose score is 0 – it shares no term, or its contributions cancel – is not a result. The same
        numbers come out whatever the number of threads.
        """
        from ..kernels.inverted import search

        k = min(check.count("k", k, low=1), max(len(self), 1))
        if queries.shape[1] != self.n_terms:
            raise DataError(f"queries must have {self.n_terms} columns; got {queries.shape[1]}")
        if not np.isfinite(queries.data).all():
            raise DataError("a query weight is not finite")
        n = queries.shape[0]
        scores, places = np.zeros((n, k), np.float32), np.full((n, k), -1, np.int64)
        skip = np.full(n, -1, np.int64) if skip is None else skip
        signed = bool((queries.data < 0).any() or self._signed)
        starts, terms = queries.indptr.astype(np.int64), queries.indices.view(f"u{queries.indices.itemsize}")
        workers = min(check.threads(n_jobs), max(1, n // 8))
        bounds = [(n * i // workers, n * (i + 1) // workers) for i in range(workers)]

        def block(bound: tuple[int, int]) -> NDArray[np.int64]:
            out: NDArray[np.int64] = search(
                *bound, starts, terms, queries.data, self.starts, self.docs.view(np.uint32), self.weights,
                len(self), signed, skip, scores, places,
            )  # fmt: skip
            return out

        if workers == 1:
            return places, scores, block(bounds[0])
        with ThreadPoolExecutor(workers) as pool:
            return places, scores, np.concatenate(list(pool.map(block, bounds)))

    def search(self, queries: csr_array, k: int = 10, n_jobs: int | None = None) -> list[list[Hit]]:
        """The best k documents of every row of `queries`, best first; fewer where fewer match."""
        ids, titles = self.documents.ids, self.documents.titles
        places, scores, counts = self.top(queries, k, n_jobs=n_jobs)
        return [
            [Hit(ids[d], float(s), titles[d]) for d, s in zip(places[i, :c].tolist(), scores[i, :c], strict=True)]
            for i, c in enumerate(counts.tolist())
        ]

    def run(
        self, queries: csr_array, query_ids: Sequence[str], k: int = 1000, drop_self: bool = False
    ) -> dict[str, dict[str, float]]:
        """{query id: {document id: score}}, best first; with drop_self a query's own document is left out."""
        skip = np.full(len(query_ids), -1, np.int64)
        if drop_self:
            skip = np.array([self.places.get(q, -1) for q in query_ids], np.int64)
        places, scores, counts = self.top(queries, k, skip)
        ids = self.documents.ids
        return {
            query: {ids[d]: s for d, s in zip(places[i, :c].tolist(), scores[i, :c].tolist(), strict=True)}
            for i, (query, c) in enumerate(zip(query_ids, counts.tolist(), strict=True))
        }

    def __contains__(self, doc_id: object) -> bool:
        return doc_id in self.places

    def title_of(self, doc_id: str) -> str:
        """The title of one document."""
        return self.documents.titles[self.place(doc_id)]

    def text_of(self, doc_id: str) -> str:
        """The text of one document."""
        return self.documents.texts[self.place(doc_id)]

    def place(self, doc_id: str) -> int:
        """Where a document stands; one that is not there is refused by name."""
        if doc_id not in self.places:
            raise DataError(f"there is no document {doc_id!r} in this index of {len(self)} documents")
        return self.places[doc_id]

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each document id stands."""
        return {d: i for i, d in enumerate(self.documents.ids)}

    @cached_property
    def _signed(self) -> bool:
        return bool((self.weights < 0).any())

    def weights_of(self, doc_id: str, terms: NDArray[np.int64]) -> NDArray[np.float32]:
        """The document's weight for each of the terms, 0 where it does not have the term."""
        place = self.place(doc_id)
        out = np.zeros(len(terms), np.float32)
        for i, term in enumerate(terms):
            begin, end = self.starts[term], self.starts[term + 1]
            at = begin + np.searchsorted(self.docs[begin:end], place)
            if at < end and self.docs[at] == place:
                out[i] = self.weights[at]
        return out

    def save(self, path: PathLike) -> None:
        """Write the index as one file, atomically."""
        arrays: dict[str, NDArray[Any]] = {"starts": self.starts, "docs": self.docs, "weights": self.weights}
        for name, column in zip(("ids", "titles", "texts"), _columns(self.documents), strict=True):
            arrays |= pack_strings(name, column)
        write_tensors(path, "index", {"made_for": self.made_for}, arrays)

    @classmethod
    def load(cls, path: PathLike) -> Index:
        """Read an index that `save` wrote; a damaged file is refused by name."""
        file = read_tensors(path, "index")
        ids, titles, texts = (file.strings(name) for name in ("ids", "titles", "texts"))
        weights = file.array("weights", "float32")
        if not len(ids) == len(titles) == len(texts) or any(a <= b for a, b in pairwise(ids)):
            raise ModelError(f"{path}: its documents are not in order")
        starts, docs = file.windows("starts", len(weights)), file.indices("docs", len(ids), len(weights))
        falls = np.flatnonzero(docs[1:] <= docs[:-1]) + 1
        if not np.isin(falls, starts).all():
            raise ModelError(f"{path}: the documents of a word do not rise")
        return cls(
            documents=Documents(ids, titles, texts),
            starts=starts,
            docs=docs,
            weights=weights,
            made_for=file.setting("made_for", str),
        )


def _columns(documents: Documents) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    return documents.ids, documents.titles, documents.texts
