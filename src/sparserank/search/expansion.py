"""Document expansion: the second search plan expands documents through W once, at indexing time.

Each document is listed under its own terms and, with weight pair_weight * (W d)[word], under every query word that W
connects to it. A query then reads one list per word. The lists are valid for one W, identified by `pairs_digest`; for
any other W the search uses the first plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.formats.tensors import Tensors
from ..errors import ModelError
from .encoded_query import EncodedQuery
from .segment import Postings, Segment
from .string_array import read_only
from .top_k import TopK, run_in_threads, search_postings

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MAX_EXPANSION_BYTES = 1 << 29
"""Default limit of an expansion; a larger one is not made."""
CHUNK_DOCUMENTS = 1024
DENSE_COST = 0.2
"""Cost of reading one weight of a dense column, in postings."""
EXTRA_DOCUMENTS = 8
"""The search first takes so many documents more than requested, then twice as many while rounding could matter."""
ROUNDING = 2.0**-22
"""Largest rounding error of a score, as a share of the largest score that the query could have."""


class DocumentRows(NamedTuple):
    """Documents × terms in CSR form, for exact scores."""

    starts: NDArray[np.int64]
    terms: NDArray[np.int32]
    weights: NDArray[np.float32]


@dataclass(frozen=True)
class ExpandedSegment:
    """The postings of an expanded segment: the columns before `pair_offset`, then one column per query word.

    A column of more than half of the documents is dense: half the bytes of a list, and five times as fast to read.
    """

    starts: NDArray[np.int64]
    docs: NDArray[np.int32]
    weights: NDArray[np.float32]
    dense_row: NDArray[np.int32]
    dense: NDArray[np.float32]
    peaks: NDArray[np.float32]
    rows: DocumentRows
    _costs: dict[str, NDArray[np.float64]] = field(default_factory=dict, compare=False)

    @classmethod
    def build(cls, segment: Segment, queries: EncodedQuery, max_bytes: int) -> ExpandedSegment | None:
        """Expand a segment through the W of these queries; return None if that takes more than `max_bytes`."""
        from scipy.sparse import csr_array, hstack, vstack

        assert queries.W is not None
        if 16 * len(segment.docs) > max_bytes:
            return None
        rows = segment.matrix()
        rows.sort_indices()
        W, parts, n_entries = queries.W.astype(np.float64).T.tocsc(), [], 0
        offset = queries.pair_offset
        documents = rows[:, offset : offset + queries.W.shape[1]].astype(np.float64)
        for at in range(0, max(len(segment), 1), CHUNK_DOCUMENTS):
            part = csr_array(documents[at : at + CHUNK_DOCUMENTS] @ W)
            part.data *= queries.pair_weight
            n_entries += part.nnz
            if 8 * (n_entries + 2 * rows.nnz) > max_bytes:
                return None
            parts.append(part.astype(np.float32))
        columns = csr_array(hstack([rows[:, :offset], vstack(parts)], format="csr")).tocsc()
        columns.sort_indices()
        peaks = np.zeros(columns.shape[1], np.float32)
        np.maximum.at(peaks, np.repeat(np.arange(len(peaks)), np.diff(columns.indptr)), np.abs(columns.data))
        by_document = DocumentRows(rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data)
        return cls(*_split_dense(columns), peaks, by_document)

    @property
    def nbytes(self) -> int:
        """Bytes of the postings."""
        return self.weights.nbytes * 2 + self.dense.nbytes

    def is_cheaper(self, segment: Segment, queries: EncodedQuery, cost: float = 1.0) -> NDArray[np.bool_]:
        """Return for which queries these lists are shorter than `cost` times the lists of the expanded query."""
        assert queries.words is not None
        assert queries.W is not None
        if queries.pairs_digest not in self._costs:
            lengths = np.diff(segment.starts)[queries.pair_offset + queries.W.indices].astype(np.float64)
            by_word = np.diff(np.concatenate([[0.0], np.cumsum(lengths)])[queries.W.indptr])
            self._costs[queries.pairs_digest] = by_word
        words = queries.words.copy()
        words.data = np.ones_like(words.data, np.float64)
        cost_by_query = cost * (words @ self._costs[queries.pairs_digest])
        lengths = np.where(self.dense_row >= 0, len(segment) * DENSE_COST, np.diff(self.starts))
        cost_by_documents = words @ lengths[queries.pair_offset :].astype(np.float64)
        return np.asarray(cost_by_documents < cost_by_query)

    def search(
        self, postings: Postings, queries: EncodedQuery, k: int, skip: NDArray[np.int64], threads: int
    ) -> tuple[TopK, NDArray[np.bool_]]:
        """Return the best k documents of every query, with exact scores, and which queries are uncertain.

        A query is uncertain if rounding could have reduced one of its best scores to 0.
        """
        encoded = EncodedQuery(_expanded_columns(queries))
        error = np.asarray(abs(encoded.terms) @ self.peaks.astype(np.float64)) * ROUNDING
        lists = self.starts, self.docs, self.weights, self.dense_row, self.dense
        expanded = Postings(*lists, postings.n_docs, postings.deleted).read_only()
        depth = k + EXTRA_DOCUMENTS
        while True:
            depth = min(depth, max(postings.n_docs, 1))
            top = search_postings(expanded, encoded, depth, skip, threads)
            full = top.counts == depth
            close = top.scores[:, depth - 1] >= top.scores[:, min(k, depth) - 1] - 2.0 * error
            if depth == postings.n_docs or not (full & close).any():
                break
            depth *= 2
        self._rescore(top, queries, threads)
        last = top.scores[:, min(k, depth) - 1].astype(np.float64)
        uncertain = np.asarray((top.counts < k) | (last <= 2.0 * error))
        return _sort(top, k), uncertain

    def _rescore(self, top: TopK, queries: EncodedQuery, threads: int) -> None:
        """Replace the rounded scores by exact ones."""
        from .._kernels.rescoring import rescore

        n, n_columns = len(queries), queries.n_columns
        rows = [read_only(array) for array in self.rows]
        workers = min(threads, max(1, n // 64))

        def rescore_block(bound: tuple[int, int]) -> None:
            rescore(
                *bound, *queries.kernel_arguments, *rows,
                top.docs, top.counts, np.zeros(n_columns, np.float64), top.scores,
            )  # fmt: skip

        run_in_threads(rescore_block, [(n * i // workers, n * (i + 1) // workers) for i in range(workers)])


def _split_dense(columns: csr_array) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Split columns into posting lists and dense columns."""
    n, lengths = columns.shape[0], np.diff(columns.indptr)
    dense_row = np.full(len(lengths), -1, np.int32)
    common = np.flatnonzero(2 * lengths > n)
    dense_row[common] = np.arange(len(common))
    dense = np.ascontiguousarray(columns[:, common].toarray().T, np.float32)
    listed = np.repeat(dense_row < 0, lengths)
    starts = np.concatenate([[0], np.cumsum(np.where(dense_row < 0, lengths, 0))]).astype(np.int64)
    return starts, columns.indices[listed].astype(np.int32), columns.data[listed], dense_row, dense


def _expanded_columns(queries: EncodedQuery) -> csr_array:
    """Return queries in the columns of an expanded segment: terms, then words."""
    from scipy.sparse import csr_array, hstack

    assert queries.words is not None
    terms, words, offset = queries.terms, queries.words, queries.pair_offset
    if len(queries) > 1:
        terms = csr_array((terms.data, terms.indices, terms.indptr), shape=(len(queries), offset))
        return csr_array(hstack([terms, words], format="csr"))
    columns = np.concatenate([terms.indices, words.indices + np.int32(offset)])  # several times as fast as hstack
    ends = np.array([0, len(columns)], columns.dtype)
    return csr_array((np.concatenate([terms.data, words.data]), columns, ends), shape=(1, offset + words.shape[1]))


def _sort(top: TopK, k: int) -> TopK:
    """Return the best k by exact scores, without scores of 0."""
    valid = (np.arange(top.docs.shape[1]) < top.counts[:, None]) & (top.scores != 0.0)
    order = np.lexsort((top.docs, -top.scores, ~valid), axis=-1)[:, :k]
    out = TopK.empty(len(top.counts), k)
    out.counts[:] = np.minimum(valid.sum(axis=1), k)
    is_result = np.arange(order.shape[1]) < out.counts[:, None]
    out.docs[:, : order.shape[1]] = np.where(is_result, np.take_along_axis(top.docs, order, axis=1), -1)
    out.scores[:, : order.shape[1]] = np.where(is_result, np.take_along_axis(top.scores, order, axis=1), 0.0)
    return out


@dataclass(frozen=True)
class Expansion:
    """The expanded segments of an index, for the W of `pairs_digest`; None for a segment that is not expanded."""

    pairs_digest: str
    parts: tuple[ExpandedSegment | None, ...]

    @classmethod
    def build(
        cls, segments: Sequence[Segment], queries: EncodedQuery, max_bytes: int = MAX_EXPANSION_BYTES
    ) -> Expansion | None:
        """Expand segments through the W of these queries; return None without W or beyond `max_bytes`."""
        if queries.W is None:
            return None
        parts: list[ExpandedSegment | None] = []
        for segment in segments:
            part = ExpandedSegment.build(segment, queries, max_bytes)
            if part is None:
                return None
            max_bytes -= part.nbytes
            parts.append(part)
        return cls(queries.pairs_digest, tuple(parts))

    def part_for(self, number: int, queries: EncodedQuery) -> ExpandedSegment | None:
        """Return an expanded segment if it is valid for these queries."""
        part, terms = self.parts[number], queries.term_rows.indices
        if part is None or queries.W is None or queries.pairs_digest != self.pairs_digest:
            return None
        if len(part.starts) - 1 != queries.pair_offset + queries.W.shape[0]:
            return None
        return None if len(terms) and terms.max() >= queries.pair_offset else part

    def transfer(self, old: Sequence[Segment], new: Sequence[Segment]) -> Expansion:
        """Keep the expansion of each old segment that is among the new ones, with or without deletions."""
        known = {id(segment.ids): part for segment, part in zip(old, self.parts, strict=True)}
        return Expansion(self.pairs_digest, tuple(known.get(id(segment.ids)) for segment in new))

    def settings(self) -> dict[str, Any]:
        """Return the settings for a file."""
        return {"pairs": self.pairs_digest, "parts": [part is not None for part in self.parts]}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays for a file."""
        out: dict[str, NDArray[Any]] = {}
        for number, part in enumerate(self.parts):
            if part is not None:
                lists = {name: getattr(part, name) for name in ("starts", "docs", "weights", "peaks")}
                lists |= {"full_at": part.dense_row, "full": part.dense.reshape(-1)}
                lists |= {f"rows.{name}": array for name, array in part.rows._asdict().items()}
                out |= {f"x{number}.{name}": array for name, array in lists.items()}
        return out

    @classmethod
    def from_file(cls, file: Tensors, segments: Sequence[Segment]) -> Expansion:
        """Map what `arrays` wrote; raise ModelError if it does not match the segments."""
        settings = file.setting("expansion", dict)
        digest, expanded = settings.get("pairs"), settings.get("parts")
        if not isinstance(digest, str) or not isinstance(expanded, list) or len(expanded) != len(segments):
            raise ModelError(f"{file.path}: the expansion does not match the segments")
        parts = [
            _read_part(file, f"x{number}.", segment) if is_expanded else None
            for number, (segment, is_expanded) in enumerate(zip(segments, expanded, strict=True))
        ]
        return cls(digest, tuple(parts))

    def check(self, file: Tensors, segments: Sequence[Segment]) -> None:
        """Read everything and raise ModelError if a value is invalid."""
        for number, (part, segment) in enumerate(zip(self.parts, segments, strict=True)):
            if part is not None:
                file.indices(f"x{number}.docs", len(segment))
                file.indices(f"x{number}.rows.terms", segment.n_terms)
                for name in ("weights", "full", "rows.weights"):
                    file.array(f"x{number}.{name}", "float32")


def _read_part(file: Tensors, prefix: str, segment: Segment) -> ExpandedSegment:
    """Map one expanded segment and check the lengths of its arrays."""
    docs, weights = file.raw(f"{prefix}docs", "int32"), file.raw(f"{prefix}weights", "float32")
    terms, values = file.raw(f"{prefix}rows.terms", "int32"), file.raw(f"{prefix}rows.weights", "float32")
    if len(docs) != len(weights) or len(terms) != len(values):
        raise ModelError(f"{file.path}: the arrays of {prefix!r} differ in length")
    starts = file.offsets(f"{prefix}starts", len(docs))
    peaks = file.array(f"{prefix}peaks", "float32", len(starts) - 1)
    rows = DocumentRows(file.offsets(f"{prefix}rows.starts", len(terms), len(segment)), terms, values)
    dense_row = file.array(f"{prefix}full_at", "int32", len(starts) - 1)
    dense, n_dense = file.raw(f"{prefix}full", "float32"), int(dense_row.max(initial=-1)) + 1
    if len(dense) != n_dense * len(segment):
        raise ModelError(f"{file.path}: {prefix!r} must have {n_dense} dense columns of {len(segment)} documents")
    dense = dense.reshape(n_dense, len(segment))
    return ExpandedSegment(starts, read_only(docs), read_only(weights), dense_row, dense, peaks, rows)
