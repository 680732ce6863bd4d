"""The best documents of one segment, by either of two plans with equal results.

`query` expands every query through W and reads the postings of all words it then looks for. `documents` reads what
documents were expanded to at indexing time: fewer lists, rounded; so it takes a few documents more than wanted, as many
as rounding could have misplaced, and scores those as the first plan does. Where one of them could have been rounded
away to 0, the first plan answers.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import local
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .encoded_query import Asked
from .segment import Postings, Segment, frozen

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from .expansion import Answers

ROOM = local()
"""What a thread works in, kept from one search to the next: clearing it would cost more than a small search."""
MOST_ROOM = 1 << 27
"""Bytes of it that are kept."""


class Found(NamedTuple):
    """places[i, j] and scores[i, j] for j < counts[i]: the best documents of query i, best first."""

    places: NDArray[np.int64]
    scores: NDArray[np.float32]
    counts: NDArray[np.int64]


def best(
    segment: Segment, answers: Answers | None, asked: Asked, k: int, skip: NDArray[np.int64], threads: int, plan: str
) -> Found:
    """By the plan wanted, or for every query by that which reads less."""
    postings = segment.postings
    if answers is None or plan == "query":
        return lookup(postings, asked, k, skip, threads)
    cheap = answers.cheaper(segment, asked) if plan == "auto" else np.ones(len(asked), np.bool_)
    if not cheap.any():
        return lookup(postings, asked, k, skip, threads)
    some = slice(None) if cheap.all() else np.flatnonzero(cheap)
    those = asked if cheap.all() else taken(asked, some)
    found, unsure = answers.best(postings, those, k, skip[some], threads)
    if cheap.all() and not unsure.any():
        return found
    out = Found(
        np.empty((len(asked), k), np.int64), np.empty((len(asked), k), np.float32), np.empty(len(asked), np.int64)
    )
    _put(out, some, found)
    cheap[some] = ~unsure
    rest = np.flatnonzero(~cheap)
    _put(out, rest, lookup(postings, taken(asked, rest), k, skip[rest], threads))
    return out


def _put(out: Found, some: Any, found: Found) -> None:
    out.places[some], out.scores[some], out.counts[some] = found


def taken(asked: Asked, some: Any) -> Asked:
    """Some of the queries."""
    words = None if asked.words is None else asked.words[some]
    return replace(asked, rows=asked.rows[some], words=words)


def lookup(postings: Postings, asked: Asked, k: int, skip: NDArray[np.int64], threads: int) -> Found:
    """The best k documents of every query, each expanded through W."""
    from .._kernels.inverted import LANES, search

    n, width = len(asked), len(postings.starts) - 1
    out = Found(np.full((n, k), -1, np.int64), np.zeros((n, k), np.float32), np.zeros(n, np.int64))
    own, words, W = (arrays_of(part, n) for part in (asked.rows, asked.words, asked.W))
    lanes = LANES if n >= LANES else 1
    workers = min(threads, max(1, n // (2 * LANES)))
    blocks = -(-n // LANES)
    bounds = [(blocks * i // workers * LANES, min(n, blocks * (i + 1) // workers * LANES)) for i in range(workers)]

    def block(bound: tuple[int, int]) -> None:
        room = _room(width, postings.n_docs, lanes)
        out.counts[slice(*bound)] = search(
            *bound, *own, *words, *W, float(asked.gain), asked.shift,
            frozen(postings.starts), frozen(postings.docs.view(np.uint32)), frozen(postings.weights),
            frozen(postings.full_at), frozen(postings.full), postings.n_docs, postings.gone, skip,
            *room, out.scores, out.places,
        )  # fmt: skip

    in_parallel(block, bounds)
    return out


def in_parallel(work: Callable[[tuple[int, int]], None], bounds: list[tuple[int, int]]) -> None:
    """Each part in a thread of its own."""
    if len(bounds) == 1:
        work(bounds[0])
        return
    with ThreadPoolExecutor(len(bounds)) as pool:
        list(pool.map(work, bounds))


def arrays_of(matrix: csr_array | None, n: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Starts, columns and values in the types that kernels are compiled for."""
    if matrix is None:
        return frozen(np.zeros(n + 1, np.int64)), frozen(np.zeros(0, np.int32)), frozen(np.zeros(0, np.float32))
    values = matrix.data.astype(np.float32, copy=False)
    columns = matrix.indices.astype(np.int32, copy=False)
    return frozen(matrix.indptr.astype(np.int64, copy=False)), frozen(columns), frozen(values)


def _room(width: int, n_docs: int, lanes: int) -> tuple[NDArray[Any], ...]:
    """Zeros to work in; a kernel leaves them as it found them."""
    kept: dict[str, tuple[NDArray[Any], ...]] = ROOM.__dict__
    key = f"{width} {n_docs} {lanes}"
    if key not in kept:
        while kept and sum(array.nbytes for room in kept.values() for array in room) > MOST_ROOM:
            kept.pop(next(iter(kept)))
        kept[key] = (
            np.zeros(width, np.uint8),
            np.zeros(width, np.int64),
            np.zeros(width * lanes, np.float64),
            np.zeros(n_docs * lanes, np.float64),
        )
    return kept[key]
