"""Top-k search in one segment, by one of three plans with equal results.

The plan `exhaustive` expands each query through W and reads the postings of all terms that result. The plan `query`
does the same without scoring documents that block maxima exclude from the results. The plan `documents` reads postings
that were expanded at indexing time: fewer lists, with rounded weights. It takes a few more documents than requested, as
many as rounding could misplace, and rescores them exactly. If rounding could have reduced a score to 0, `query`
answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from threading import local
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..thread_pool import map_in_threads
from .encoded_query import EncodedQuery
from .segment import Postings, Segment
from .string_array import read_only

if TYPE_CHECKING:
    from .block_maxima import BlockMaxima
    from .expansion import ExpandedSegment

_BUFFERS = local()
"""Work arrays of a thread, kept between searches: to clear them would cost more than a small search."""
_ALL_ALLOWED = read_only(np.zeros(0, np.uint8))
FEW_SHARE = 32
"""If at most one document in so many is not deleted, these documents alone are scored."""
MAX_BUFFER_BYTES = 1 << 27
EXPANDED_QUERIES = 256
"""Queries that are expanded at a time for a pruned search."""
MAX_PRUNED_K = 64
"""More results are searched exhaustively."""
MIN_PRUNED_POSTINGS = 2048
MIN_PRUNED_POSTINGS_PER_TERM = 150
"""A query of n terms that reads fewer than the first plus n times the second is searched exhaustively."""
PRUNED_COST = 0.4
"""Cost of a posting of a pruned search, in postings read, to choose between the plans."""


class TopK(NamedTuple):
    """docs[i, j] and scores[i, j] for j < counts[i] are the best documents of query i, best first."""

    docs: NDArray[np.int64]
    scores: NDArray[np.float32]
    counts: NDArray[np.int64]

    @property
    def is_found(self) -> NDArray[np.bool_]:
        """Which places have a document."""
        return np.asarray(np.arange(self.docs.shape[1]) < self.counts[:, None])

    @classmethod
    def empty(cls, n_queries: int, k: int) -> TopK:
        """Return room for k results per query."""
        docs = np.empty((n_queries, k), np.int64)
        docs.fill(-1)  # twice as fast as np.full for one query
        return cls(docs, np.zeros((n_queries, k), np.float32), np.zeros(n_queries, np.int64))

    def put(self, rows: Any, other: TopK) -> None:
        """Write the results of some queries."""
        self.docs[rows], self.scores[rows], self.counts[rows] = other


def search_segment(
    segment: Segment, expanded: ExpandedSegment | None, queries: EncodedQuery, k: int, skip: NDArray[np.int64],
    threads: int, plan: str,
) -> TopK:  # fmt: skip
    """Search by the given plan; "auto" takes for each query the plan that reads fewer postings."""
    postings, blocks = segment.postings, None if plan == "exhaustive" else segment.blocks
    if plan == "auto" and len(segment.deleted) and FEW_SHARE * (len(segment) - len(segment.deleted)) <= len(segment):
        return _search_few(segment, queries, k, skip, threads)
    if expanded is None or plan in ("query", "exhaustive"):
        return search_postings(postings, queries, k, skip, threads, blocks, segment.allowed)
    cost = 1.0 if blocks is None else PRUNED_COST
    by_documents = expanded.is_cheaper(segment, queries, cost) if plan == "auto" else np.ones(len(queries), np.bool_)
    rows = np.flatnonzero(by_documents)
    if not len(rows):
        return search_postings(postings, queries, k, skip, threads, blocks, segment.allowed)
    selected = queries if by_documents.all() else queries.take(rows)
    top, uncertain = expanded.search(postings, selected, k, skip[rows], threads)
    by_documents[rows] = ~uncertain
    if by_documents.all():
        return top
    out = TopK.empty(len(queries), k)
    out.put(rows, top)
    rows = np.flatnonzero(~by_documents)
    out.put(rows, search_postings(postings, queries.take(rows), k, skip[rows], threads, blocks, segment.allowed))
    return out


def search_postings(
    postings: Postings, queries: EncodedQuery, k: int, skip: NDArray[np.int64], threads: int,
    blocks: BlockMaxima | None = None, allowed: NDArray[np.uint8] = _ALL_ALLOWED,
) -> TopK:  # fmt: skip
    """Return the best k documents of every query, expanded through W; with `blocks`, by a pruned search.

    allowed : the documents that are not deleted, as in `Segment.allowed`.
    """
    n, n_columns, search, LANES = len(queries), len(postings.starts) - 1, *_exhaustive_kernel()
    out, arrays = TopK.empty(n, k), queries.kernel_arguments
    lists, dense, exclude = postings[:3], postings[3:5], (*postings[5:], skip)
    lanes = LANES if n >= LANES else 1

    def search_part(bound: tuple[int, int]) -> None:
        rows = np.arange(*bound)
        if blocks is not None and k <= MAX_PRUNED_K:
            out.counts[slice(*bound)] = -1
            _search_pruned(bound, arrays, (*lists, postings.n_docs, allowed, skip), blocks, out)
            rows = rows[out.counts[slice(*bound)] < 0]
        if len(rows):
            buffers = _buffers(n_columns, postings.n_docs, lanes)
            search(rows, *arrays, *lists, *dense, *exclude, *buffers, out.scores, out.docs, out.counts)

    if n < 2 * LANES:
        search_part((0, n))
        return out
    workers, parts = min(threads, n // (2 * LANES)), -(-n // LANES)
    bounds = [(parts * i // workers * LANES, min(n, parts * (i + 1) // workers * LANES)) for i in range(workers)]
    run_in_threads(search_part, bounds)
    return out


@cache
def _exhaustive_kernel() -> tuple[Callable[..., None], int]:
    """The kernel and the number of queries that it answers at once; an import in each search would cost more."""
    from .._kernels.inverted import LANES, search

    return search, LANES


@cache
def _pruned_kernels() -> tuple[Callable[..., Any], Callable[..., None], int, int]:
    """The kernels that expand queries and search them, and the sizes of blocks and chunks."""
    from .._kernels.block_max import BLOCK, CHUNK, search_pruned
    from .._kernels.inverted import expand_queries

    return expand_queries, search_pruned, BLOCK, CHUNK


def _search_pruned(
    bound: tuple[int, int], arrays: Sequence[Any], lists: Sequence[Any], blocks: BlockMaxima, out: TopK
) -> None:
    """Search a range of queries with block maxima; the count of a query without an answer stays -1."""
    starts, n_docs = lists[0], lists[3]
    expand_queries, search_pruned, BLOCK, CHUNK = _pruned_kernels()
    seen, columns, expanded, total = _buffers(len(starts) - 1, n_docs, 1)
    limits = MIN_PRUNED_POSTINGS, MIN_PRUNED_POSTINGS_PER_TERM
    for first in range(*bound, EXPANDED_QUERIES):
        last = min(first + EXPANDED_QUERIES, bound[1])
        queries = expand_queries(first, last, *arrays, seen, columns, expanded)
        search_pruned(
            first, *queries, *lists, *blocks.kernel_arrays, *limits, total, *_block_buffers(n_docs, BLOCK, CHUNK),
            out.scores, out.docs, out.counts,
        )  # fmt: skip


def _search_few(segment: Segment, queries: EncodedQuery, k: int, skip: NDArray[np.int64], threads: int) -> TopK:
    """Return the best k documents of every query in a segment with few documents that are not deleted."""
    from .._kernels.inverted import expand_queries, search_few

    n, postings, out = len(queries), segment.postings, TopK.empty(len(queries), k)
    arrays = queries.kernel_arguments
    workers = min(threads, max(1, n // EXPANDED_QUERIES))

    def search_part(bound: tuple[int, int]) -> None:
        seen, columns, expanded, total = _buffers(segment.n_terms, len(segment), 1)
        for first in range(*bound, EXPANDED_QUERIES):
            last = min(first + EXPANDED_QUERIES, bound[1])
            rows = expand_queries(first, last, *arrays, seen, columns, expanded)
            search_few(
                first,
                *rows,
                *postings[:3],
                segment.live,
                segment.is_live,
                skip,
                total,
                out.scores,
                out.docs,
                out.counts,
            )

    run_in_threads(search_part, [(n * i // workers, n * (i + 1) // workers) for i in range(workers)])
    return out


def scores_of_all(postings: Postings, queries: EncodedQuery) -> NDArray[np.float32]:
    """Return the score of every document for the first query."""
    from .._kernels.inverted import expand_queries, score_all

    seen, columns, expanded, _ = _buffers(len(postings.starts) - 1, postings.n_docs, 1)
    _, terms, weights = expand_queries(0, 1, *queries.kernel_arguments, seen, columns, expanded)
    total = np.zeros(postings.n_docs)
    score_all(terms, weights, *postings[:3], postings.n_docs, total)
    return total.astype(np.float32)


def best_of_all(segment: Segment, queries: EncodedQuery, k: int) -> tuple[TopK, NDArray[np.bool_]]:
    """Return the best k documents of the first query, and which documents match it, from the scores of all."""
    from .._kernels.inverted import select_best

    out, scores = TopK.empty(1, k), scores_of_all(segment.postings, queries)
    matches, out.counts[0] = select_best(scores, segment.is_live, out.scores[0], out.docs[0])
    return out, matches


def run_in_threads(work: Callable[[tuple[int, int]], None], bounds: list[tuple[int, int]]) -> None:
    """Run each block in a thread of its own."""
    map_in_threads(work, bounds, len(bounds))


def _buffers(n_columns: int, n_docs: int, lanes: int) -> tuple[NDArray[Any], ...]:
    """Return work arrays of zeros for the columns of a query and the sums of documents; a kernel leaves them zero."""
    dtypes = np.uint8, np.int64, np.float64, np.float64
    return _zeros(dtypes, (n_columns, n_columns, n_columns * lanes, (n_docs + 63) * lanes))


def _block_buffers(n_docs: int, block: int, chunk: int) -> tuple[NDArray[Any], ...]:
    """Return work arrays of zeros for blocks: bounds, their maxima by chunk, live blocks, and a list of blocks."""
    n_blocks = -(-n_docs // block)
    dtypes = np.float32, np.float32, np.uint8, np.int64
    return _zeros(dtypes, (n_blocks, -(-n_blocks // chunk), n_blocks, n_blocks))


def _zeros(dtypes: tuple[type, ...], sizes: tuple[int, ...]) -> tuple[NDArray[Any], ...]:
    """Return the work arrays of this thread; to clear new ones would cost more than a small search."""
    cache: dict[Any, tuple[NDArray[Any], ...]] = _BUFFERS.__dict__
    found = cache.get((dtypes, sizes))
    if found is None:
        while cache and sum(array.nbytes for arrays in cache.values() for array in arrays) > MAX_BUFFER_BYTES:
            cache.pop(next(iter(cache)))
        found = cache[dtypes, sizes] = tuple(np.zeros(size, dtype) for size, dtype in zip(sizes, dtypes, strict=True))
    return found
