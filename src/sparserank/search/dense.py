"""Embeddings of documents beside an index: a memory-mapped file, and the exact search that adds them to a score.

A vector has unit length, so the product of two vectors is their cosine. A document without a vector has the cosine 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data.files import PathLike
from ..data.formats.tensors import map_tensors, pack_strings, write_tensors
from ..errors import DataError, ModelError
from .encoded_query import EncodedQuery
from .hit import Hit
from .index import Index
from .top_k import scores_of_all

BLOCK = 4_096
"""Vectors that are converted to 32 bits at once."""
DTYPES = ("float16", "float32")

Vectors = NDArray[np.float32]


def unit_rows(name: str, vectors: ArrayLike, dimension: int | None = None, n: int | None = None) -> Vectors:
    """Return vectors as rows of unit length; a zero vector stays zero.

    Raises DataError if they are no finite matrix, or if the number of rows or the dimension is another one.

    >>> unit_rows("dense", [[3.0, 4.0]]).tolist()
    [[0.6000000238418579, 0.800000011920929]]
    """
    try:
        rows = np.asarray(vectors, np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name} must be numbers, one row for each text") from None
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise DataError(f"{name} must be a matrix with one row for each text; got the shape {rows.shape}")
    if n is not None and len(rows) != n:
        raise DataError(f"{name} must have {n} rows; got {len(rows)}")
    if dimension is not None and rows.shape[1] != dimension:
        raise DataError(f"{name} must have {dimension} dimensions; got {rows.shape[1]}")
    if not np.isfinite(rows).all():
        raise DataError(f"{name} contains a number that is not finite")
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(length > 0.0, length, 1.0)).astype(np.float32)


def vectors_by_id(
    kind: str, vectors: ArrayLike | Mapping[str, ArrayLike], ids: Sequence[str], dimension: int | None = None
) -> Vectors:
    """Return one row of unit length for each id, from rows in this order or from a mapping."""
    name = f"the vectors of {kind}"
    if isinstance(vectors, Mapping):
        if missing := [one for one in ids if one not in vectors]:
            raise DataError(f"{name} are missing for {len(missing)} of {len(ids)}; the first is {missing[0]!r}")
        return unit_rows(name, np.array([vectors[one] for one in ids], object), dimension)
    return unit_rows(name, vectors, dimension, len(ids))


@dataclass(frozen=True, eq=False)
class DenseVectors:
    """One vector for each of some documents, in 16 or 32 bits.

    >>> DenseVectors.of(["a", "b"], np.eye(2)).cosines(np.array([0.6, 0.8], np.float32), np.array([1, -1, 0]))
    array([0.8, 0. , 0.6], dtype=float32)
    """

    ids: tuple[str, ...]
    vectors: NDArray[np.float16] | NDArray[np.float32]

    @classmethod
    def of(cls, ids: Sequence[str], vectors: ArrayLike, dtype: str = "float16") -> DenseVectors:
        """Return vectors of unit length in this dtype."""
        return cls(tuple(ids), unit_rows("the vectors of documents", vectors, n=len(ids)).astype(dtype))

    @property
    def dimension(self) -> int:
        """The number of dimensions."""
        return int(self.vectors.shape[1])

    def without(self, ids: Sequence[str]) -> DenseVectors:
        """Return the vectors of all other documents."""
        dropped = set(ids)
        kept = [row for row, one in enumerate(self.ids) if one not in dropped]
        return DenseVectors(tuple(self.ids[row] for row in kept), self.vectors[kept])

    def updated(self, other: DenseVectors) -> DenseVectors:
        """Return the vectors with those of another, which replace the ones of the same documents."""
        rest = self.without(other.ids)
        vectors = np.concatenate([rest.vectors, other.vectors.astype(self.vectors.dtype)])
        return DenseVectors(rest.ids + other.ids, vectors)

    # ---- scores

    def cosines(self, query: Vectors, rows: NDArray[np.int64]) -> Vectors:
        """Return the cosine of a query and the vectors in these rows; 0 for row -1."""
        out = np.zeros(len(rows), np.float32)
        for first in range(0, len(rows), BLOCK):
            part = rows[first : first + BLOCK]
            block = self.vectors[np.maximum(part, 0)].astype(np.float32) @ query
            out[first : first + BLOCK] = np.where(part >= 0, block, np.float32(0.0))
        return out

    def best(self, query: Vectors, k: int) -> NDArray[np.int64]:
        """Return the rows of the k largest cosines."""
        cosines = self.cosines(query, np.arange(len(self.ids)))
        k = min(k, len(cosines))
        return np.argpartition(-cosines, k - 1)[:k] if k else np.empty(0, np.int64)

    def rows_of(self, ids: Sequence[str]) -> NDArray[np.int64]:
        """Return the row of each document, -1 for one without a vector."""
        return np.array([self._row.get(one, -1) for one in ids], np.int64)

    def rows_in(self, index: Index) -> NDArray[np.int64]:
        """Return the row of every document of an index by its number; the rows of the last index are remembered."""
        key = tuple(id(segment.ids) for segment in index.segments)
        found = self._rows_of_index.get(key)
        if found is None:
            ids = [segment.ids[at] for segment in index.segments for at in range(len(segment))]
            found = self.rows_of(ids), index
            self._rows_of_index.clear()
            self._rows_of_index[key] = found
        return found[0]

    @cached_property
    def _row(self) -> dict[str, int]:
        return {one: row for row, one in enumerate(self.ids)}

    @cached_property
    def _rows_of_index(self) -> dict[tuple[int, ...], tuple[NDArray[np.int64], Index]]:
        return {}

    # ---- the file

    def save(self, path: PathLike, name: str) -> None:
        """Write the vectors to one file, atomically; `name` is that of the model that made them."""
        arrays = {"vectors": np.ascontiguousarray(self.vectors)} | pack_strings("ids", self.ids)
        write_tensors(path, "dense", {"name": name}, arrays)

    @classmethod
    def load(cls, path: PathLike, name: str, dimension: int) -> DenseVectors:
        """Map a file that `save` wrote for a model of this name and dimension."""
        file = map_tensors(path, "dense")
        vectors, ids = file.arrays.get("vectors"), file.strings("ids")
        if vectors is None or vectors.ndim != 2 or str(vectors.dtype) not in DTYPES or len(vectors) != len(ids):
            raise ModelError(f"{path}: must have one vector of float16 or float32 for each of its {len(ids)} documents")
        found = file.setting("name", str), int(vectors.shape[1])
        if found != (name, dimension):
            raise ModelError(
                f"{path}: has vectors of {found[0]!r} with {found[1]} dimensions; the model needs those of {name!r} "
                f"with {dimension}"
            )
        return cls(ids, vectors)


def search_with_dense(
    index: Index,
    query: EncodedQuery,
    dense: DenseVectors,
    vector: Vectors,
    weight: float,
    k: int,
    skip: str | None = None,
) -> list[Hit]:
    """Return the best k documents by the score of one query plus weight · cosine; all documents are scored."""
    live = np.concatenate([segment.is_live for segment in index.segments])
    scores = np.concatenate([scores_of_all(segment.postings, query) for segment in index.segments])
    scores = (scores + np.float32(weight) * dense.cosines(vector, dense.rows_in(index))).astype(np.float32)
    live = live & (scores != 0.0)
    if skip is not None and skip in index:
        live[index.number(skip)] = False
    numbers = np.flatnonzero(live)
    if len(numbers) > k:
        least = np.partition(scores[numbers], len(numbers) - k)[len(numbers) - k]
        numbers = numbers[scores[numbers] >= least]
    best = sorted(((scores[n], index.id_at(n), n) for n in numbers.tolist()), reverse=True)[:k]
    return [index.hit_at(number, float(score)) for score, _, number in best]
