"""An immutable part of an index: documents in descending order of their ids, and postings by term.

Inside a segment the tie rule (float32 score, then descending id) is "the smaller position first". Deleted and replaced
documents are listed in `deleted`; a merge of segments drops them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.formats.tensors import Tensors
from ..data.records import Documents
from ..errors import DataError, ModelError
from .block_maxima import BlockMaxima
from .metadata_columns import MetadataColumns
from .string_array import StringArray, read_only

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_ARRAYS = {"starts": "starts", "docs": "docs", "weights": "weights", "gone": "deleted"}
"""Names of the arrays in a file, and of the attributes."""
_STRINGS = ("ids", "titles", "texts")
MAX_ID_CHARACTERS = 512
"""A longer id, or one with a NUL character, does not fit into every database and URL."""


class Postings(NamedTuple):
    """Documents by column. A column c of most documents is dense[dense_row[c]]; otherwise dense_row[c] is -1."""

    starts: NDArray[np.int64]
    docs: NDArray[np.int32] | NDArray[np.uint32]
    weights: NDArray[np.float32]
    dense_row: NDArray[np.int32]
    dense: NDArray[np.float32]
    n_docs: int
    deleted: NDArray[np.int32]

    def read_only(self) -> Postings:
        """Return the same arrays, read-only and with unsigned documents, as the kernels take them."""
        lists = read_only(self.starts), read_only(self.docs.view(np.uint32)), read_only(self.weights)
        return Postings(*lists, read_only(self.dense_row), read_only(self.dense), self.n_docs, read_only(self.deleted))


@dataclass(frozen=True)
class Segment:
    """Term t occurs in docs[starts[t]:starts[t + 1]], in ascending order, with the same slice of `weights`.

    blocks : for pruned search; None for a small segment, and for a file that an earlier version wrote.
    input_order : the positions of the documents in the order in which they were given; None for an earlier file.
    """

    ids: StringArray
    titles: StringArray
    texts: StringArray
    starts: NDArray[np.int64]
    docs: NDArray[np.int32]
    weights: NDArray[np.float32]
    deleted: NDArray[np.int32]
    blocks: BlockMaxima | None = None
    input_order: NDArray[np.int32] | None = None
    metadata: MetadataColumns | None = None

    def __post_init__(self) -> None:
        for name in _ARRAYS.values():
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @classmethod
    def build(cls, matrix: csr_array, documents: Documents) -> Segment:
        """Index the rows of `matrix`; row i is document i."""
        if matrix.shape[0] != len(documents):
            raise DataError(f"{len(documents)} documents need as many rows; got {matrix.shape[0]}")
        if not np.isfinite(matrix.data).all():
            raise DataError("a document weight is not finite")
        _check_ids(documents.ids)
        order = np.array(sorted(range(len(documents)), key=documents.ids.__getitem__, reverse=True), np.int64)
        by_term = matrix[order].tocsc()
        by_term.sort_indices()
        columns = (documents.ids, documents.titles, documents.texts)
        ids, titles, texts = (StringArray.from_strings(column[i] for i in order) for column in columns)
        lists = by_term.indptr.astype(np.int64), by_term.indices.astype(np.int32), by_term.data.astype(np.float32)
        starts, docs, weights = map(read_only, lists)
        blocks = BlockMaxima.build(starts, docs, weights, len(documents))
        metadata = MetadataColumns.build([documents.metadata[i] for i in order] if documents.metadata else [])
        return cls(ids, titles, texts, *lists, np.zeros(0, np.int32), blocks, inverse_order(order), metadata)

    @classmethod
    def merge(cls, segments: Sequence[Segment]) -> Segment:
        """Combine segments and drop their deleted documents."""
        from scipy.sparse import csr_array, vstack

        rows = vstack([segment.matrix()[segment.live_in_input_order] for segment in segments], format="csr")
        at = [(segment, position) for segment in segments for position in segment.live_in_input_order.tolist()]
        return cls.build(csr_array(rows), documents_at(at))

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def n_terms(self) -> int:
        """Number of terms."""
        return len(self.starts) - 1

    @cached_property
    def postings(self) -> Postings:
        """The postings by term; no column is dense."""
        dense_row, dense = np.full(self.n_terms, -1, np.int32), np.zeros((0, 0), np.float32)
        postings = Postings(self.starts, self.docs, self.weights, dense_row, dense, len(self), self.deleted)
        return postings.read_only()

    @cached_property
    def live(self) -> NDArray[np.int64]:
        """Positions of the documents that are not deleted."""
        return read_only(np.flatnonzero(self.is_live))

    @cached_property
    def is_live(self) -> NDArray[np.bool_]:
        """Which documents are not deleted."""
        out = np.ones(len(self), np.bool_)
        out[self.deleted] = False
        return read_only(out)

    @property
    def live_in_input_order(self) -> NDArray[np.int64]:
        """The same positions in the order in which the documents were given; by descending id in an earlier file."""
        if self.input_order is None:
            return self.live
        order = self.input_order.astype(np.int64)
        return order[~np.isin(order, self.deleted)]

    @cached_property
    def allowed(self) -> NDArray[np.uint8]:
        """Bit d & 7 of allowed[d >> 3] is 1 if document d is not deleted; empty if no document is."""
        bits = np.packbits(self.is_live, bitorder="little") if len(self.deleted) else np.zeros(0, np.uint8)
        return read_only(bits)

    def position(self, doc_id: str) -> int:
        """Return the position of a document, or -1 if it is missing or deleted."""
        position = self.ids.find_descending(doc_id)
        at = np.searchsorted(self.deleted, position)
        return -1 if at < len(self.deleted) and self.deleted[at] == position else position

    def metadata_at(self, position: int) -> dict[str, Any]:
        """Return the metadata of a document."""
        return {} if self.metadata is None else self.metadata[position]

    def delete(self, positions: Sequence[int]) -> Segment:
        """Return a segment with these documents marked as deleted."""
        return replace(self, deleted=np.union1d(self.deleted, np.asarray(positions, np.int32)).astype(np.int32))

    def restrict(self, matches: NDArray[np.bool_]) -> Segment:
        """Return the segment with all documents that do not match marked as deleted."""
        is_live = read_only(matches & self.is_live)
        out = replace(self, deleted=np.flatnonzero(~is_live).astype(np.int32))
        out.__dict__.update(is_live=is_live, postings=self.postings._replace(deleted=out.deleted))
        return out

    def matrix(self) -> csr_array:
        """Return documents × terms, with the deleted documents."""
        from scipy.sparse import csc_array

        return csc_array((self.weights, self.docs, self.starts), shape=(len(self), self.n_terms)).tocsr()

    def weights_of(self, positions: NDArray[np.int64], terms: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return out[i, j], the weight of term j in the document at positions[i], 0 for a term that it lacks."""
        from .._kernels.rescoring import weights_at

        order = np.argsort(positions)
        found: NDArray[np.float32] = weights_at(
            positions[order], terms.astype(np.int64), self.starts, self.docs, self.weights
        )
        out = np.empty_like(found)
        out[order] = found
        return out

    def arrays(self, prefix: str) -> dict[str, NDArray[Any]]:
        """Return the arrays for a file."""
        out: dict[str, NDArray[Any]] = {f"{prefix}{name}": getattr(self, field) for name, field in _ARRAYS.items()}
        for name in _STRINGS:
            out |= getattr(self, name).arrays(f"{prefix}{name}")
        if self.input_order is not None:
            out[f"{prefix}input_order"] = self.input_order
        if self.metadata is not None:
            out |= self.metadata.arrays(prefix)
        return out if self.blocks is None else out | self.blocks.arrays(prefix)

    @classmethod
    def from_file(cls, file: Tensors, prefix: str) -> Segment:
        """Map what `arrays` wrote and check the lengths only; `check` reads everything."""

        def strings(name: str) -> StringArray:
            utf8, ends = file.raw(f"{prefix}{name}.utf8", "uint8"), file.raw(f"{prefix}{name}.ends", "int64")
            if len(ends) == 0:
                raise ModelError(f"{file.path}: {prefix}{name} has no strings")
            return StringArray(utf8, ends)

        docs, weights = file.raw(f"{prefix}docs", "int32"), file.raw(f"{prefix}weights", "float32")
        if len(docs) != len(weights):
            raise ModelError(f"{file.path}: '{prefix}docs' must have {len(weights)} entries; got {len(docs)}")
        starts = file.offsets(f"{prefix}starts", len(docs))
        ids, titles, texts = map(strings, _STRINGS)
        if not len(ids) == len(titles) == len(texts):
            raise ModelError(f"{file.path}: the document ids are not in order")
        blocks = BlockMaxima.from_file(file, prefix, len(ids), len(starts) - 1)
        order = file.raw(f"{prefix}input_order", "int32") if f"{prefix}input_order" in file.arrays else None
        if order is not None and len(order) != len(ids):
            raise ModelError(f"{file.path}: '{prefix}input_order' must have {len(ids)} entries; got {len(order)}")
        deleted, metadata = file.indices(f"{prefix}gone", len(ids)), MetadataColumns.from_file(file, prefix, len(ids))
        return cls(ids, titles, texts, starts, docs, weights, deleted, blocks, order, metadata)

    def check(self, file: Tensors, prefix: str) -> None:
        """Read everything and raise ModelError if a value is invalid."""
        ids, _, _ = [file.strings(f"{prefix}{name}") for name in _STRINGS]
        if any(a <= b for a, b in pairwise(ids)):
            raise ModelError(f"{file.path}: the document ids are not in order")
        docs = file.indices(f"{prefix}docs", len(ids), len(self.weights))
        file.array(f"{prefix}weights", "float32")
        descents = np.flatnonzero(docs[1:] <= docs[:-1]) + 1
        if not np.isin(descents, self.starts).all():
            raise ModelError(f"{file.path}: the documents of a term are not in ascending order")
        if (np.diff(self.deleted) <= 0).any():
            raise ModelError(f"{file.path}: the deleted documents are not in ascending order")
        if self.input_order is not None:
            order = file.indices(f"{prefix}input_order", len(ids))
            if len(np.unique(order)) < len(ids):
                raise ModelError(f"{file.path}: a document occurs twice in the input order")
        if self.metadata is not None:
            self.metadata.check(file, prefix)


def documents_at(positions: Iterable[tuple[Segment, int]]) -> Documents:
    """Read documents by segment and position."""
    rows = [(seg.ids[at], seg.titles[at], seg.texts[at], seg.metadata_at(at)) for seg, at in positions]
    ids, titles, texts, metadata = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Documents(ids, titles, texts, metadata)


def inverse_order(order: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return where each input is in `order`."""
    out = np.empty(len(order), np.int32)
    out[order] = np.arange(len(order), dtype=np.int32)
    return out


def _check_ids(ids: Iterable[str]) -> None:
    """Raise DataError for an id that feedback about the document could not name."""
    for number, doc_id in enumerate(ids, start=1):
        if len(doc_id) > MAX_ID_CHARACTERS:
            raise DataError(
                f"document {number}: an id has at most {MAX_ID_CHARACTERS} characters; got {len(doc_id):,}, "
                f"which begin with {doc_id[:40]!r}"
            )
        if "\0" in doc_id:
            raise DataError(f"document {number}: an id has no NUL character; got {doc_id[:40]!r}")
