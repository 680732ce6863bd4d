"""The second plan of search: documents expanded through W once, at indexing time.

Beside the terms of the first plan, every document is listed under every word of queries that it answers, with
gain · (W d)[word]: a query reads one list a word, whatever that word looks for. Such lists hold for one W, named by
`pairs`; under any other they are passed over, and the first plan serves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.formats.tensors import Tensors
from ..errors import ModelError
from .encoded_query import Asked
from .lookup import Found, arrays_of, in_parallel, lookup
from .segment import Postings, Segment, frozen

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Some = NDArray[np.bool_]

MOST_BYTES = 1 << 29
"""What an expansion may take where nobody says more; one that would take more is not made."""
CHUNK = 1024
WHOLE = 0.2
"""What reading a weight of a column kept whole costs, in postings."""
SPARE = 8
"""So many documents more than wanted are taken first; where rounding could reach further, twice as many, and so on."""
ROUNDING = 2.0**-22
"""Of what a query could find at most: further than this, rounding moves no score."""


class Rows(NamedTuple):
    """Documents by themselves, to be scored exactly."""

    starts: NDArray[np.int64]
    terms: NDArray[np.int32]
    weights: NDArray[np.float32]


@dataclass(frozen=True)
class Answers:
    """One segment expanded. Columns: those before `shift`, as they were, then one for every word of queries.

    A column that more than half of the documents have is kept whole, a weight for every document: half the bytes of
    a list, and read five times as fast.
    """

    starts: NDArray[np.int64]
    docs: NDArray[np.int32]
    weights: NDArray[np.float32]
    full_at: NDArray[np.int32]
    full: NDArray[np.float32]
    peaks: NDArray[np.float32]
    rows: Rows
    _costs: dict[str, NDArray[np.float64]] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, segment: Segment, asked: Asked, most_bytes: int) -> Answers | None:
        """Expanded through the W of these queries; None where that takes more bytes than allowed."""
        from scipy.sparse import csr_array, hstack, vstack

        assert asked.W is not None
        rows = segment.matrix()
        rows.sort_indices()
        W, parts, entries = asked.W.astype(np.float64).T.tocsc(), [], 0
        looked_for = rows[:, asked.shift : asked.shift + asked.W.shape[1]].astype(np.float64)
        for at in range(0, max(len(segment), 1), CHUNK):
            part = csr_array(looked_for[at : at + CHUNK] @ W)
            part.data *= asked.gain
            entries += part.nnz
            if 8 * (entries + 2 * rows.nnz) > most_bytes:
                return None
            parts.append(part.astype(np.float32))
        by_word = csr_array(hstack([rows[:, : asked.shift], vstack(parts)], format="csr")).tocsc()
        by_word.sort_indices()
        peaks = np.zeros(by_word.shape[1], np.float32)
        np.maximum.at(peaks, np.repeat(np.arange(len(peaks)), np.diff(by_word.indptr)), np.abs(by_word.data))
        starts, docs, weights, full_at, full = _apart(by_word)
        documents = Rows(rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data)
        return cls(starts, docs, weights, full_at, full, peaks, documents)

    def cheaper(self, segment: Segment, asked: Asked) -> Some:
        """For which queries these lists are shorter than those of all that the queries' words look for."""
        assert asked.words is not None
        assert asked.W is not None
        if asked.pairs not in self._costs:
            lengths = np.diff(segment.starts)[asked.shift + asked.W.indices].astype(np.float64)
            self._costs[asked.pairs] = np.diff(np.concatenate([[0.0], np.cumsum(lengths)])[asked.W.indptr])
        words = asked.words.copy()
        words.data = np.ones_like(words.data, np.float64)
        through = words @ self._costs[asked.pairs]
        lengths = np.where(self.full_at >= 0, len(segment) * WHOLE, np.diff(self.starts))
        here = words @ lengths[asked.shift :].astype(np.float64)
        return np.asarray(here < through)

    def best(
        self, postings: Postings, asked: Asked, k: int, skip: NDArray[np.int64], threads: int
    ) -> tuple[Found, Some]:
        """The best k documents of every query: more than k by these lists, then those by their exact scores.

        Then for which queries that may not be all: a score that rounding took for 0 could be among the best.
        """
        queries = _beside(asked)
        reach = np.asarray(abs(queries) @ self.peaks.astype(np.float64)) * ROUNDING
        lists = self.starts, self.docs, self.weights, self.full_at, self.full
        here = Postings(*lists, postings.n_docs, postings.gone)
        wider = k + SPARE
        while True:
            wider = min(wider, max(postings.n_docs, 1))
            found = lookup(here, Asked(queries), wider, skip, threads)
            full = found.counts == wider
            near = found.scores[:, wider - 1] >= found.scores[:, min(k, wider) - 1] - 2.0 * reach
            if wider == postings.n_docs or not (full & near).any():
                break
            wider *= 2
        self._rescore(found, asked, threads)
        return _ordered(found, k), _near_nothing(found, k, reach)

    def _rescore(self, found: Found, asked: Asked, threads: int) -> None:
        from .._kernels.rescoring import rescore

        n, width = len(asked), asked.rows.shape[1]
        given = [array for part in (asked.rows, asked.words, asked.W) for array in arrays_of(part, n)]
        rows = [frozen(array) for array in (self.rows.starts, self.rows.terms, self.rows.weights)]
        workers = min(threads, max(1, n // 64))

        def block(bound: tuple[int, int]) -> None:
            rescore(
                *bound, *given, float(asked.gain), asked.shift, *rows,
                found.places, found.counts, np.zeros(width, np.float64), found.scores,
            )  # fmt: skip

        in_parallel(block, [(n * i // workers, n * (i + 1) // workers) for i in range(workers)])


def _apart(by_word: csr_array) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Lists of the columns that few have, and the others whole."""
    n, lengths = by_word.shape[0], np.diff(by_word.indptr)
    full_at = np.full(len(lengths), -1, np.int32)
    common = np.flatnonzero(2 * lengths > n)
    full_at[common] = np.arange(len(common))
    full = np.ascontiguousarray(by_word[:, common].toarray().T, np.float32)
    kept = np.repeat(full_at < 0, lengths)
    starts = np.concatenate([[0], np.cumsum(np.where(full_at < 0, lengths, 0))]).astype(np.int64)
    return starts, by_word.indices[kept].astype(np.int32), by_word.data[kept], full_at, full


def _beside(asked: Asked) -> csr_array:
    """Queries in the columns of the lists: their own terms, then their words."""
    from scipy.sparse import csr_array, hstack

    assert asked.words is not None
    own, words = asked.rows, asked.words
    width = asked.shift + words.shape[1]
    if len(asked) > 1:
        own = csr_array((own.data, own.indices, own.indptr), shape=(len(asked), asked.shift))
        return csr_array(hstack([own, words], format="csr"))
    columns = np.concatenate([own.indices, words.indices + np.int32(asked.shift)])
    ends = np.array([0, len(columns)], columns.dtype)
    return csr_array((np.concatenate([own.data, words.data]), columns, ends), shape=(1, width))


def _near_nothing(found: Found, k: int, reach: NDArray[np.float64]) -> Some:
    """Where fewer than k were found, or the last of them no further above 0 than rounding goes."""
    last = found.scores[:, min(k, found.scores.shape[1]) - 1].astype(np.float64)
    return np.asarray((found.counts < k) | (last <= 2.0 * reach))


def _ordered(found: Found, k: int) -> Found:
    """The best k of each, by exact scores; 0 is no result."""
    there = (np.arange(found.places.shape[1]) < found.counts[:, None]) & (found.scores != 0.0)
    order = np.lexsort((found.places, -found.scores, ~there), axis=-1)[:, :k]
    counts = np.minimum(there.sum(axis=1), k).astype(np.int64)
    places = np.take_along_axis(found.places, order, axis=1)
    scores = np.take_along_axis(found.scores, order, axis=1)
    beyond = np.arange(places.shape[1]) >= counts[:, None]
    places[beyond], scores[beyond] = -1, 0.0
    short = k - places.shape[1]
    if short > 0:
        places = np.pad(places, ((0, 0), (0, short)), constant_values=-1)
        scores = np.pad(scores, ((0, 0), (0, short)))
    return Found(places, scores, counts)


@dataclass(frozen=True)
class Expansion:
    """The segments of an index, expanded through the W that `pairs` names; None for one that is not."""

    pairs: str
    parts: tuple[Answers | None, ...]

    @classmethod
    def make(cls, segments: Sequence[Segment], asked: Asked, most_bytes: int = MOST_BYTES) -> Expansion | None:
        """Through the W of these queries; None where there is none, or where it takes more bytes than allowed."""
        if asked.W is None:
            return None
        parts: list[Answers | None] = []
        for one in segments:
            part = Answers.of(one, asked, most_bytes)
            if part is None:
                return None
            most_bytes -= part.weights.nbytes * 2 + part.full.nbytes
            parts.append(part)
        return cls(asked.pairs, tuple(parts))

    def of(self, number: int, asked: Asked) -> Answers | None:
        """Those of one segment, where they hold for these queries."""
        part = self.parts[number]
        if part is None or asked.W is None or asked.pairs != self.pairs:
            return None
        if len(part.starts) - 1 != asked.shift + asked.W.shape[0]:
            return None
        own = asked.rows.indices
        return None if len(own) and own.max() >= asked.shift else part

    def over(self, before: Sequence[Segment], after: Sequence[Segment]) -> Expansion:
        """For segments of which some are those of before, some documents of theirs perhaps gone."""
        known = {id(one.ids): part for one, part in zip(before, self.parts, strict=True)}
        return Expansion(self.pairs, tuple(known.get(id(one.ids)) for one in after))

    # ---- in a file

    def settings(self) -> dict[str, Any]:
        """For a file."""
        return {"pairs": self.pairs, "parts": [part is not None for part in self.parts]}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """For a file."""
        out: dict[str, NDArray[Any]] = {}
        for number, part in enumerate(self.parts):
            if part is not None:
                for name in ("starts", "docs", "weights", "peaks", "full_at"):
                    out[f"x{number}.{name}"] = getattr(part, name)
                out[f"x{number}.full"] = part.full.reshape(-1)
                for name in Rows._fields:
                    out[f"x{number}.rows.{name}"] = getattr(part.rows, name)
        return out

    @classmethod
    def from_file(cls, file: Tensors, segments: Sequence[Segment]) -> Expansion:
        """What `arrays` wrote; what cannot be is refused by name."""
        told = file.setting("expansion", dict)
        pairs, there = told.get("pairs"), told.get("parts")
        if not isinstance(pairs, str) or not isinstance(there, list) or len(there) != len(segments):
            raise ModelError(f"{file.path}: its expansion does not fit its segments")
        parts = [
            _part(file, f"x{number}.", segment) if is_there else None
            for number, (segment, is_there) in enumerate(zip(segments, there, strict=True))
        ]
        return cls(pairs, tuple(parts))

    def check(self, file: Tensors, segments: Sequence[Segment]) -> None:
        """Read everything, and refuse by name what cannot be."""
        for number, (part, segment) in enumerate(zip(self.parts, segments, strict=True)):
            if part is not None:
                name = f"x{number}."
                file.indices(f"{name}docs", len(segment))
                file.indices(f"{name}rows.terms", segment.n_terms)
                for weights in ("weights", "full", "rows.weights"):
                    file.array(f"{name}{weights}", "float32")


def _part(file: Tensors, name: str, segment: Segment) -> Answers:
    docs, weights = file.bare(f"{name}docs", "int32"), file.bare(f"{name}weights", "float32")
    terms, values = file.bare(f"{name}rows.terms", "int32"), file.bare(f"{name}rows.weights", "float32")
    if len(docs) != len(weights) or len(terms) != len(values):
        raise ModelError(f"{file.path}: the lists of {name!r} differ in length")
    starts = file.windows(f"{name}starts", len(docs))
    peaks = file.array(f"{name}peaks", "float32", len(starts) - 1)
    rows = Rows(file.windows(f"{name}rows.starts", len(terms), len(segment)), terms, values)
    full_at, full = file.array(f"{name}full_at", "int32", len(starts) - 1), file.bare(f"{name}full", "float32")
    wide = int(full_at.max(initial=-1)) + 1
    if len(full) != wide * len(segment):
        raise ModelError(f"{file.path}: {name!r} must have {wide} whole columns of {len(segment)}")
    return Answers(starts, frozen(docs), frozen(weights), full_at, full.reshape(wide, len(segment)), peaks, rows)
