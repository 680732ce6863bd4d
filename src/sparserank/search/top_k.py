"""Top-k search in one segment, by one of two plans with equal results.

The plan `query` expands each query through W and reads the postings of all terms that result. The plan `documents`
reads postings that were expanded at indexing time: fewer lists, with rounded weights. It takes a few more documents
than requested, as many as rounding could misplace, and rescores them exactly. If rounding could have reduced a score to
0, the first plan answers.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import local
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .encoded_query import EncodedQuery
from .segment import Postings, Segment, read_only

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from .expansion import ExpandedSegment

_BUFFERS = local()
"""Work arrays of a thread, kept between searches: to clear them would cost more than a small search."""
MAX_BUFFER_BYTES = 1 << 27


class TopK(NamedTuple):
    """docs[i, j] and scores[i, j] for j < counts[i] are the best documents of query i, best first."""

    docs: NDArray[np.int64]
    scores: NDArray[np.float32]
    counts: NDArray[np.int64]

    @classmethod
    def empty(cls, n_queries: int, k: int) -> TopK:
        """Return room for k results per query."""
        shape = (n_queries, k)
        return cls(np.full(shape, -1, np.int64), np.zeros(shape, np.float32), np.zeros(n_queries, np.int64))

    def put(self, rows: Any, other: TopK) -> None:
        """Write the results of some queries."""
        self.docs[rows], self.scores[rows], self.counts[rows] = other


def search_segment(
    segment: Segment, expanded: ExpandedSegment | None, queries: EncodedQuery, k: int, skip: NDArray[np.int64],
    threads: int, plan: str,
) -> TopK:  # fmt: skip
    """Search by the given plan; "auto" takes for each query the plan that reads fewer postings."""
    postings = segment.postings
    if expanded is None or plan == "query":
        return search_postings(postings, queries, k, skip, threads)
    by_documents = expanded.is_cheaper(segment, queries) if plan == "auto" else np.ones(len(queries), np.bool_)
    rows = np.flatnonzero(by_documents)
    if not len(rows):
        return search_postings(postings, queries, k, skip, threads)
    selected = queries if by_documents.all() else queries.take(rows)
    top, uncertain = expanded.search(postings, selected, k, skip[rows], threads)
    by_documents[rows] = ~uncertain
    if by_documents.all():
        return top
    out = TopK.empty(len(queries), k)
    out.put(rows, top)
    rows = np.flatnonzero(~by_documents)
    out.put(rows, search_postings(postings, queries.take(rows), k, skip[rows], threads))
    return out


def search_postings(postings: Postings, queries: EncodedQuery, k: int, skip: NDArray[np.int64], threads: int) -> TopK:
    """Return the best k documents of every query, expanded through W."""
    from .._kernels.inverted import LANES, search

    n, n_columns = len(queries), len(postings.starts) - 1
    out = TopK.empty(n, k)
    arrays = csr_arrays(queries)
    lanes = LANES if n >= LANES else 1
    workers = min(threads, max(1, n // (2 * LANES)))
    blocks = -(-n // LANES)
    bounds = [(blocks * i // workers * LANES, min(n, blocks * (i + 1) // workers * LANES)) for i in range(workers)]

    def search_block(bound: tuple[int, int]) -> None:
        out.counts[slice(*bound)] = search(
            *bound, *arrays, float(queries.pair_weight), queries.pair_offset,
            read_only(postings.starts), read_only(postings.docs.view(np.uint32)), read_only(postings.weights),
            read_only(postings.dense_row), read_only(postings.dense), postings.n_docs, postings.deleted, skip,
            *_buffers(n_columns, postings.n_docs, lanes), out.scores, out.docs,
        )  # fmt: skip

    run_in_threads(search_block, bounds)
    return out


def run_in_threads(work: Callable[[tuple[int, int]], None], bounds: list[tuple[int, int]]) -> None:
    """Run each block in a thread of its own."""
    if len(bounds) == 1:
        work(bounds[0])
        return
    with ThreadPoolExecutor(len(bounds)) as pool:
        list(pool.map(work, bounds))


def csr_arrays(queries: EncodedQuery) -> list[NDArray[Any]]:
    """Return indptr, indices and data of terms, words and W, in the types that the kernels are compiled for."""
    return [array for matrix in (queries.terms, queries.words, queries.W) for array in _csr(matrix, len(queries))]


def _csr(matrix: csr_array | None, n: int) -> list[NDArray[Any]]:
    if matrix is None:
        arrays = np.zeros(n + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32)
    else:
        typed = (matrix.indptr, np.int64), (matrix.indices, np.int32), (matrix.data, np.float32)
        arrays = tuple(array.astype(dtype, copy=False) for array, dtype in typed)
    return [read_only(array) for array in arrays]


def _buffers(n_columns: int, n_docs: int, lanes: int) -> tuple[NDArray[Any], ...]:
    """Return work arrays of zeros; a kernel leaves them zero."""
    cache: dict[str, tuple[NDArray[Any], ...]] = _BUFFERS.__dict__
    key = f"{n_columns} {n_docs} {lanes}"
    if key not in cache:
        while cache and sum(array.nbytes for arrays in cache.values() for array in arrays) > MAX_BUFFER_BYTES:
            cache.pop(next(iter(cache)))
        cache[key] = (
            np.zeros(n_columns, np.uint8),
            np.zeros(n_columns, np.int64),
            np.zeros(n_columns * lanes, np.float64),
            np.zeros(n_docs * lanes, np.float64),
        )
    return cache[key]
