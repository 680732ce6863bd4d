"""A part of an index that never changes: documents in descending order of their ids, and postings by term.

So the tie rule (float32 score, then descending id) is "the smaller number first" inside a segment. Documents that
were deleted or replaced are listed in `gone` and are no results; they leave when segments are merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.formats.tensors import Tensors
from ..data.records import Documents
from ..errors import DataError, ModelError
from .stored import Stored

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class Postings(NamedTuple):
    """Documents by term, or by word of queries; a column c that most have is full[full_at[c]], else full_at is -1."""

    starts: NDArray[np.int64]
    docs: NDArray[np.int32]
    weights: NDArray[np.float32]
    full_at: NDArray[np.int32]
    full: NDArray[np.float32]
    n_docs: int
    gone: NDArray[np.int32]


@dataclass(frozen=True)
class Segment:
    """`starts`, `docs` and `weights` are the postings: term t has docs[starts[t]:starts[t + 1]], rising."""

    ids: Stored
    titles: Stored
    texts: Stored
    starts: NDArray[np.int64]
    docs: NDArray[np.int32]
    weights: NDArray[np.float32]
    gone: NDArray[np.int32]

    def __post_init__(self) -> None:
        for name in ("starts", "docs", "weights", "gone"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @classmethod
    def of(cls, matrix: csr_array, documents: Documents) -> Segment:
        """From rows, row i being document i."""
        if matrix.shape[0] != len(documents):
            raise DataError(f"{len(documents)} documents need as many rows; got {matrix.shape[0]}")
        if not np.isfinite(matrix.data).all():
            raise DataError("a document weight is not finite")
        order = np.array(sorted(range(len(documents)), key=documents.ids.__getitem__, reverse=True), np.int64)
        by_term = matrix[order].tocsc()
        by_term.sort_indices()
        ids, titles, texts = (
            Stored.of(column[i] for i in order) for column in (documents.ids, documents.titles, documents.texts)
        )
        return cls(
            ids, titles, texts,
            by_term.indptr.astype(np.int64), by_term.indices.astype(np.int32), by_term.data.astype(np.float32),
            np.zeros(0, np.int32),
        )  # fmt: skip

    @classmethod
    def merged(cls, segments: Sequence[Segment]) -> Segment:
        """One of several, without those that are gone; no document is read again but as it lies there."""
        from scipy.sparse import csr_array, vstack

        rows = vstack([one.matrix()[one.kept] for one in segments], format="csr")
        at = [(one, place) for one in segments for place in one.kept.tolist()]
        documents = Documents(
            tuple(one.ids[place] for one, place in at),
            tuple(one.titles[place] for one, place in at),
            tuple(one.texts[place] for one, place in at),
        )
        return cls.of(csr_array(rows), documents)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def n_terms(self) -> int:
        """How many terms the postings know."""
        return len(self.starts) - 1

    @cached_property
    def postings(self) -> Postings:
        """For a search by terms: no column is full."""
        full_at, full = np.full(self.n_terms, -1, np.int32), np.zeros((0, 0), np.float32)
        return Postings(self.starts, self.docs, self.weights, full_at, full, len(self), self.gone)

    @cached_property
    def kept(self) -> NDArray[np.int64]:
        """The places of documents that are still there."""
        return np.setdiff1d(np.arange(len(self), dtype=np.int64), self.gone)

    def place(self, doc_id: str) -> int:
        """Where a document stands, or -1 where it is not, or is gone."""
        place = self.ids.falling_place(doc_id)
        at = np.searchsorted(self.gone, place)
        return -1 if at < len(self.gone) and self.gone[at] == place else place

    def without(self, places: Sequence[int]) -> Segment:
        """The same without these documents."""
        return replace(self, gone=np.union1d(self.gone, np.asarray(places, np.int32)).astype(np.int32))

    def matrix(self) -> csr_array:
        """Documents × terms, those that are gone included."""
        from scipy.sparse import csc_array

        return csc_array((self.weights, self.docs, self.starts), shape=(len(self), self.n_terms)).tocsr()

    def weights_of(self, place: int, terms: NDArray[np.int64]) -> NDArray[np.float32]:
        """One document's weight for each of the terms, 0 where it does not have the term."""
        from .._kernels.rescoring import weights_at

        found: NDArray[np.float32] = weights_at(place, terms.astype(np.int64), self.starts, self.docs, self.weights)
        return found

    # ---- in a file

    def arrays(self, prefix: str) -> dict[str, NDArray[Any]]:
        """For a file."""
        out: dict[str, NDArray[Any]] = {
            f"{prefix}{name}": getattr(self, name) for name in ("starts", "docs", "weights", "gone")
        }
        for name in ("ids", "titles", "texts"):
            out |= getattr(self, name).arrays(f"{prefix}{name}")
        return out

    @classmethod
    def from_file(cls, file: Tensors, prefix: str) -> Segment:
        """What `arrays` wrote, looked at no further than its lengths tell; `check` looks at all of it."""

        def stored(name: str) -> Stored:
            utf8, ends = file.bare(f"{prefix}{name}.utf8", "uint8"), file.bare(f"{prefix}{name}.ends", "int64")
            if len(ends) == 0:
                raise ModelError(f"{file.path}: {prefix}{name} has no strings")
            return Stored(utf8, ends)

        docs, weights = file.bare(f"{prefix}docs", "int32"), file.bare(f"{prefix}weights", "float32")
        if len(docs) != len(weights):
            raise ModelError(f"{file.path}: '{prefix}docs' must have {len(weights)} entries; got {len(docs)}")
        starts = file.windows(f"{prefix}starts", len(docs))
        ids, titles, texts = (stored(name) for name in ("ids", "titles", "texts"))
        if not len(ids) == len(titles) == len(texts):
            raise ModelError(f"{file.path}: its documents are not in order")
        gone = file.indices(f"{prefix}gone", len(ids))
        return cls(ids, titles, texts, starts, docs, weights, gone)

    def check(self, file: Tensors, prefix: str) -> None:
        """Read everything, and refuse by name what cannot be."""
        ids = file.strings(f"{prefix}ids")
        file.strings(f"{prefix}titles")
        file.strings(f"{prefix}texts")
        if any(a <= b for a, b in pairwise(ids)):
            raise ModelError(f"{file.path}: its documents are not in order")
        docs = file.indices(f"{prefix}docs", len(ids), len(self.weights))
        file.array(f"{prefix}weights", "float32")
        falls = np.flatnonzero(docs[1:] <= docs[:-1]) + 1
        if not np.isin(falls, self.starts).all():
            raise ModelError(f"{file.path}: the documents of a word do not rise")
        if (np.diff(self.gone) <= 0).any():
            raise ModelError(f"{file.path}: what is gone does not rise")


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """The same numbers, not to be written: kernels are compiled once for these, and not again for others."""
    view = array.view()
    view.setflags(write=False)
    return view
