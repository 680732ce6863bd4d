"""An inverted index with exact top-k search, stored in one memory-mapped file.

An index is a few immutable segments. Added documents make a new segment, deleted documents are listed, and small
segments are merged, so that each document moves a logarithmic number of times. Every change returns a new Index; the
file of the old one stays readable.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import validation
from ..data.files import PathLike
from ..data.formats.tensors import map_tensors, write_tensors
from ..data.records import Documents
from ..deprecated import renamed_parameters
from ..errors import DataError, ModelError
from ..parameters import Summary
from .encoded_query import EncodedQuery
from .expansion import Expansion
from .filters import FilterLike, parse_filter
from .hit import Hit, merge_results, result_rows
from .index_file import MAX_SEGMENTS, check_index, index_state, read_index
from .metadata_columns import Counts, add_counts, check_field, check_fields, matching
from .segment import Segment
from .shards import load_shards, replace_folder
from .stored_documents import StoredDocuments
from .top_k import TopK, best_of_all, scores_of_all, search_segment

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MAX_CHECKED_BYTES = 1 << 27
"""`load` reads and checks a whole file up to this size, which takes a tenth of a second."""
MAX_FILTER_BYTES = 1 << 26
"""The results of the last filters are cached within this size."""
MAX_DELETED_SHARE = 0.5
"""A segment with a larger share of deleted documents is rebuilt."""


@dataclass(frozen=True, repr=False)
class Index(Summary, StoredDocuments):
    """Documents and their postings by term. Documents have numbers; those of the first segment come first.

    Parameters
    ----------
    segments : tuple of Segment
        The parts of the index.
    made_for : str, default=""
        Fingerprint of the model that weighted the documents.
    expansion : Expansion, optional
        Expanded documents for the second search plan; see `top`.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from sparserank.data.records import Documents
    >>> index = Index.build(csr_array([[1.0, 0.0], [1.0, 2.0]]), Documents.of({"a": "", "b": ""}))
    >>> index.search(csr_array([[1.0, 0.0]]), k=5)
    [[Hit(id='b', score=1.0, title=''), Hit(id='a', score=1.0, title='')]]
    """

    segments: tuple[Segment, ...]
    made_for: str = ""
    expansion: Expansion | None = None

    def _summary(self) -> dict[str, Any]:
        return {"n_documents": len(self), "n_terms": self.n_terms, "n_segments": len(self.segments)}

    @classmethod
    def build(cls, matrix: csr_array, documents: Documents, made_for: str = "") -> Index:
        """Index documents.

        Parameters
        ----------
        matrix : csr_array of shape (n_documents, n_terms)
            Term weights; row i is document i.
        documents : Documents
            Ids, titles and texts.
        made_for : str, default=""
            Fingerprint of the model that weighted the documents.
        """
        return cls((Segment.build(matrix, documents),), made_for)

    def with_documents(self, matrix: csr_array, documents: Documents) -> Index:
        """Return an index with these documents added; a document with a known id replaces the old one.

        Parameters
        ----------
        matrix, documents : csr_array and Documents
            As in `build`.

        Examples
        --------
        >>> from scipy.sparse import csr_array
        >>> index = Index.build(csr_array([[1.0]]), Documents.of({"a": ""}))
        >>> index = index.with_documents(csr_array([[2.0], [3.0]]), Documents.of({"a": "", "b": ""}))
        >>> [(hit.id, hit.score) for hit in index.search(csr_array([[1.0]]))[0]]
        [('b', 3.0), ('a', 2.0)]
        """
        if matrix.shape[1] != self.n_terms:
            raise DataError(f"documents must have {self.n_terms} columns; got {matrix.shape[1]}")
        added = Segment.build(matrix, documents)
        segments = self._delete([doc_id for doc_id in documents.ids if doc_id in self])
        return self._with_segments([*segments, added] if len(added) else segments)

    def without(self, doc_ids: Iterable[str]) -> Index:
        """Return an index without these documents. An unknown id raises DataError.

        Parameters
        ----------
        doc_ids : iterable of str
            Ids of documents to delete.

        Examples
        --------
        >>> from scipy.sparse import csr_array
        >>> index = Index.build(csr_array([[1.0], [1.0]]), Documents.of({"a": "", "b": ""}))
        >>> [hit.id for hit in index.without(["b"]).search(csr_array([[1.0]]))[0]]
        ['a']
        """
        doc_ids = list(dict.fromkeys(doc_ids))
        for doc_id in doc_ids:
            self.number(doc_id)
        return self._with_segments(self._delete(doc_ids))

    def _delete(self, doc_ids: Sequence[str]) -> list[Segment]:
        """Mark documents as deleted in the segments that hold them."""
        positions = [[at for at in map(segment.position, doc_ids) if at >= 0] for segment in self.segments]
        pairs = zip(self.segments, positions, strict=True)
        return [segment.delete(found) if found else segment for segment, found in pairs]

    def _with_segments(self, segments: list[Segment]) -> Index:
        """Rebuild segments with many deletions and merge small ones; an unchanged segment keeps its expansion."""
        merged: list[Segment] = []
        for segment in segments:
            crowded = len(segment.deleted) > MAX_DELETED_SHARE * len(segment)
            merged.append(Segment.merge([segment]) if crowded else segment)
            while len(merged) > 1 and 2 * len(merged[-1]) >= len(merged[-2]):
                merged[-2:] = [Segment.merge(merged[-2:])]
        merged = [segment for segment in merged if len(segment)] or merged[:1]
        expansion = None if self.expansion is None else self.expansion.transfer(self.segments, merged)
        return replace(self, segments=tuple(merged), expansion=expansion)

    def top(
        self,
        queries: csr_array | EncodedQuery,
        k: int,
        skip: Sequence[str | None] | None = None,
        n_jobs: int | None = None,
        plan: str = "auto",
    ) -> TopK:
        """Return the numbers and scores of the best k documents of every query, and how many each query has.

        A document with score 0 is not a result: it shares no term, or its contributions cancel. Results do not depend
        on the number of threads or on the plan.

        Parameters
        ----------
        queries : csr_array of shape (n_queries, n_terms), or EncodedQuery
            Query vectors.
        k : int
            Number of results.
        skip : sequence of str or None, optional
            For each query the id of a document to leave out, or None.
        n_jobs : int, optional
            Number of threads. None uses every core.
        plan : {"auto", "query", "documents", "exhaustive"}, default="auto"
            "query" expands queries through W, "documents" uses the expanded documents, "auto" takes for each query
            the plan that reads fewer postings. "exhaustive" is "query" without pruning: it scores every document.
        """
        if not isinstance(queries, EncodedQuery):
            queries = EncodedQuery(queries)
        if queries.n_columns != self.n_terms:
            raise DataError(f"queries must have {self.n_terms} columns; got {queries.n_columns}")
        validation.choice("plan", plan, ("auto", "query", "documents", "exhaustive"))
        k = min(validation.count("k", k, low=1), max(len(self), 1))
        threads = validation.threads(1 if n_jobs is None and len(queries) == 1 else n_jobs)
        parts = []
        for number, segment in enumerate(self.segments):
            positions = np.full(len(queries), -1, np.int64)
            for at, doc_id in enumerate(skip or ()):
                positions[at] = -1 if doc_id is None else segment.position(doc_id)
            expanded = None if self.expansion is None else self.expansion.part_for(number, queries)
            parts.append(search_segment(segment, expanded, queries, k, positions, threads, plan))
        return self._combined(parts, k)

    def _combined(self, parts: Sequence[TopK], k: int) -> TopK:
        """Return the best of all segments; a score that is not finite raises ModelError."""
        top = parts[0] if len(parts) == 1 else merge_results(parts, k, self._offsets, self.id_at)
        if not np.isfinite(top.scores).all():
            raise ModelError("the index is damaged: a weight is not finite; rebuild the index")
        return top

    def search(
        self, queries: csr_array | EncodedQuery, k: int = 10, n_jobs: int | None = None, offset: int = 0
    ) -> list[list[Hit]]:
        """Return the best k documents of every query, best first.

        Parameters
        ----------
        queries, k, n_jobs : EncodedQuery or csr_array, int and int
            As in `top`.
        offset : int, default=0
            Skip this many results, and return the k after them.
        """
        offset = validation.count("offset", offset, low=0)
        rows = result_rows(self.top(queries, validation.count("k", k, low=1) + offset, n_jobs=n_jobs))
        return [[self.hit_at(number, score) for number, score in row[offset:]] for row in rows]

    def hit_at(self, number: int, score: float) -> Hit:
        """Return the result for a document.

        Parameters
        ----------
        number : int
            Its number.
        score : float
            Its score.
        """
        segment, at = self._locate(number)
        metadata = None if segment.metadata is None else partial(segment.metadata_at, at)
        return Hit(segment.ids[at], score, segment.titles[at], metadata)

    def filtered(self, filter: FilterLike) -> Index:
        """Return an index of the documents that match a filter; the last filters are cached.

        Parameters
        ----------
        filter : str or mapping
            A filter by metadata, such as "kind:function AND year>=2000" or {"kind": "function", "year": {">=": 2000}}.
            A syntax error or an unknown field raises FilterError.

        Examples
        --------
        >>> from scipy.sparse import csr_array
        >>> docs = Documents.of({"a": {"metadata": {"n": 1}}, "b": {"metadata": {"n": 2}}, "c": ""})
        >>> index = Index.build(csr_array([[1.0], [1.0], [1.0]]), docs)
        >>> [hit.id for hit in index.filtered("n>=2").search(csr_array([[1.0]]))[0]]
        ['b']
        """
        key = filter if isinstance(filter, str) else parse_filter(filter)
        found = self._filtered.pop(key, None)
        if found is None:
            expression = parse_filter(key) if isinstance(key, str) else key
            check_fields(expression, self.fields)
            parts = [(one, matching(expression, one.metadata, len(one))) for one in self.segments]
            found = replace(self, segments=tuple(segment.restrict(matches) for segment, matches in parts))
            n_cached = max(1, MAX_FILTER_BYTES // max(8 * sum(map(len, self.segments)), 1))
            for old in list(self._filtered)[: max(0, len(self._filtered) + 1 - n_cached)]:
                self._filtered.pop(old, None)
        self._filtered[key] = found  # the last one is the newest
        return found

    @cached_property
    def _filtered(self) -> dict[Any, Index]:
        return {}

    def facets(self, query: csr_array | EncodedQuery, fields: Iterable[str]) -> Counts:
        """Count the values of metadata fields among all documents that match a query: those with a score.

        The result is {field: {value: number of documents}}, the most frequent one first, without those of no document.

        Parameters
        ----------
        query : csr_array of shape (1, n_terms), or EncodedQuery
            One query vector.
        fields : iterable of str
            The fields. An unknown one raises FilterError.

        Examples
        --------
        >>> from scipy.sparse import csr_array
        >>> docs = Documents.of({"a": {"metadata": {"n": 1}}, "b": {"metadata": {"n": [1, 2]}}, "c": ""})
        >>> index = Index.build(csr_array([[1.0], [1.0], [1.0]]), docs)
        >>> index.facets(csr_array([[1.0]]), ["n"])
        {'n': {'1': 2, '2': 1}}
        """
        return self.search_and_count(query, 1, fields=fields)[2]

    def search_and_count(
        self, query: csr_array | EncodedQuery, k: int = 10, offset: int = 0, fields: Iterable[str] = ()
    ) -> tuple[list[Hit], int, Counts]:
        """Return what `search` returns for one query, the number of documents that match, and the `facets` of fields.

        All postings of the query are read once.

        Parameters
        ----------
        query, k, offset : csr_array of shape (1, n_terms) or EncodedQuery, int and int
            As in `search`.
        fields : iterable of str
            As in `facets`.
        """
        offset, k = validation.count("offset", offset, low=0), validation.count("k", k, low=1)
        facets = {name: list[dict[str, int]]() for name in fields}
        for name in facets:
            check_field("facets", name, self.fields)
        queries = query if isinstance(query, EncodedQuery) else EncodedQuery(query)
        total, parts, room = 0, [], min(k + offset, max(len(self), 1))
        for segment in self.segments:
            top, matches = best_of_all(segment, queries, room)
            parts.append(top)
            total += int(np.count_nonzero(matches))
            if segment.metadata is not None:
                for name, counts in facets.items():
                    counts.append(segment.metadata.count(name, matches))
        (found,) = result_rows(self._combined(parts, room))
        hits = [self.hit_at(number, score) for number, score in found[offset:]]
        return hits, total, {name: one[0] if len(one) == 1 else add_counts(one) for name, one in facets.items()}

    def largest_score(self, query: EncodedQuery) -> float:
        """Return the largest score of any document, deleted ones included.

        Parameters
        ----------
        query : EncodedQuery
            One query.

        Examples
        --------
        >>> from scipy.sparse import csr_array
        >>> index = Index.build(csr_array([[1.0], [3.0]]), Documents.of({"a": "", "b": ""}))
        >>> index.largest_score(EncodedQuery(csr_array([[0.5]])))
        1.5
        """
        return max(float(scores_of_all(one.postings, query).max(initial=0.0)) for one in self.segments)

    @renamed_parameters({"drop_self": "exclude_self"})
    def run(
        self, queries: csr_array | EncodedQuery, query_ids: Sequence[str], k: int = 1000, exclude_self: bool = False
    ) -> dict[str, dict[str, float]]:
        """Return {query id: {document id: score}}, best first.

        Parameters
        ----------
        queries, k : EncodedQuery or csr_array, and int
            As in `top`.
        query_ids : sequence of str
            Ids of the queries.
        exclude_self : bool, default=False
            Leave out the document whose id is the id of the query.
        """
        rows = result_rows(self.top(queries, k, list(query_ids) if exclude_self else None))
        return {
            query: {self.id_at(number): score for number, score in row}
            for query, row in zip(query_ids, rows, strict=True)
        }

    def save(self, path: PathLike) -> None:
        """Write the index to one file, atomically; it replaces a folder of shards.

        Parameters
        ----------
        path : path-like
            The file.
        """
        if len(self.segments) > MAX_SEGMENTS:
            replace(self, segments=(Segment.merge(self.segments),), expansion=None).save(path)
            return
        with replace_folder(path):
            write_tensors(path, "index", *index_state(self.segments, self.made_for, self.expansion))

    @classmethod
    def load(cls, path: PathLike) -> Index:
        """Map an index file, or a folder of shards. A damaged file raises ModelError with its path.

        A file of more than MAX_CHECKED_BYTES bytes is not read, so that it opens at once. Searching such a file is
        safe whatever it contains; `check` reads all of it.

        Parameters
        ----------
        path : path-like
            A file that `save` wrote, or a folder that training on Spark wrote.
        """
        if Path(path).is_dir():
            return load_shards(Path(path), cls.load)
        file = map_tensors(path, "index")
        index = cls(*read_index(file))
        if Path(path).stat().st_size <= MAX_CHECKED_BYTES:
            check_index(file, index.segments, index.expansion)
        return index

    @classmethod
    def check(cls, path: PathLike) -> Index:
        """Map an index file and read all of it. A damaged file raises ModelError with its path.

        Parameters
        ----------
        path : path-like
            As in `load`.
        """
        if Path(path).is_dir():
            return load_shards(Path(path), cls.check)
        index = cls.load(path)
        check_index(map_tensors(path, "index"), index.segments, index.expansion)
        return index
