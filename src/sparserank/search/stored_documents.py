"""The documents of an index: their numbers, ids, titles, texts, metadata and rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data.records import Documents
from ..errors import DataError
from .segment import Segment, documents_at

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class StoredDocuments:
    """Documents in segments. They have numbers; those of the first segment come first."""

    segments: tuple[Segment, ...]

    def __len__(self) -> int:
        return sum(len(segment) - len(segment.deleted) for segment in self.segments)

    def __contains__(self, doc_id: object) -> bool:
        return isinstance(doc_id, str) and any(segment.position(doc_id) >= 0 for segment in self.segments)

    @property
    def n_terms(self) -> int:
        """Number of terms."""
        return self.segments[0].n_terms

    @property
    def postings(self) -> int:
        """Number of stored weights."""
        return sum(len(segment.docs) for segment in self.segments)

    @cached_property
    def _offsets(self) -> list[int]:
        return [0, *np.cumsum([len(segment) for segment in self.segments]).tolist()][:-1]

    def _locate(self, number: int) -> tuple[Segment, int]:
        """Return the segment of a document and its position there."""
        for segment, offset in zip(reversed(self.segments), reversed(self._offsets), strict=True):
            if number >= offset:
                return segment, number - offset
        raise IndexError(number)

    def id_at(self, number: int) -> str:
        """Return the id of a document.

        Parameters
        ----------
        number : int
            Its number.
        """
        segment, position = self._locate(number)
        return segment.ids[position]

    def title_at(self, number: int) -> str:
        """Return the title of a document.

        Parameters
        ----------
        number : int
            Its number.
        """
        segment, position = self._locate(number)
        return segment.titles[position]

    def number(self, doc_id: str) -> int:
        """Return the number of a document. An unknown id raises DataError.

        Parameters
        ----------
        doc_id : str
            Its id.
        """
        if isinstance(doc_id, str):
            for segment, offset in zip(self.segments, self._offsets, strict=True):
                if (position := segment.position(doc_id)) >= 0:
                    return offset + position
        raise DataError(f"there is no document {doc_id!r} in this index of {len(self)} documents")

    def title_of(self, doc_id: str) -> str:
        """Return the title of a document.

        Parameters
        ----------
        doc_id : str
            Its id.
        """
        return self.title_at(self.number(doc_id))

    def text_of(self, doc_id: str) -> str:
        """Return the text of a document.

        Parameters
        ----------
        doc_id : str
            Its id.
        """
        return self.text_at(self.number(doc_id))

    def metadata_at(self, number: int) -> dict[str, Any]:
        """Return the metadata of a document.

        Parameters
        ----------
        number : int
            Its number.
        """
        segment, position = self._locate(number)
        return segment.metadata_at(position)

    def metadata_of(self, doc_id: str) -> dict[str, Any]:
        """Return the metadata of a document.

        Parameters
        ----------
        doc_id : str
            Its id.
        """
        return self.metadata_at(self.number(doc_id))

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The metadata fields of the documents, in alphabetical order."""
        columns = [segment.metadata for segment in self.segments if segment.metadata is not None]
        return tuple(sorted({name for column in columns for name in column.field_numbers}))

    @cached_property
    def value_counts(self) -> dict[str, int]:
        """{metadata field: number of its values}; several segments may count a value more than once."""
        counts = dict.fromkeys(self.fields, 0)
        for segment in self.segments:
            for name, number in segment.metadata.n_values.items() if segment.metadata is not None else ():
                counts[name] += number
        return counts

    def weights_of(self, doc_id: str, terms: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the weight of each term in a document, 0 for a term that the document lacks.

        Parameters
        ----------
        doc_id : str
            The document.
        terms : array of int64
            The columns of the terms.
        """
        row: NDArray[np.float32] = self.weights_at([self.number(doc_id)], terms)[0]
        return row

    def weights_at(self, numbers: Sequence[int], terms: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return out[i, j], the weight of term j in document numbers[i], 0 for a term that it lacks.

        Parameters
        ----------
        numbers : sequence of int
            The numbers of the documents.
        terms : array of int64
            The columns of the terms.
        """
        places = np.asarray(numbers, np.int64)
        if len(self.segments) == 1:
            return self.segments[0].weights_of(places, terms)
        out = np.zeros((len(places), len(terms)), np.float32)
        for segment, offset in zip(self.segments, self._offsets, strict=True):
            here = np.flatnonzero((places >= offset) & (places < offset + len(segment)))
            if len(here):
                out[here] = segment.weights_of(places[here] - offset, terms)
        return out

    def text_at(self, number: int) -> str:
        """Return the text of a document.

        Parameters
        ----------
        number : int
            Its number.
        """
        segment, position = self._locate(number)
        return segment.texts[position]

    def text_bytes(self, doc_id: str) -> int:
        """Return the bytes of the text of a document in UTF-8, without reading it.

        Parameters
        ----------
        doc_id : str
            Its id.
        """
        segment, position = self._locate(self.number(doc_id))
        return segment.texts.size(position)

    def has_term(self, term: int) -> bool:
        """Return whether any document, deleted ones included, has this term.

        Parameters
        ----------
        term : int
            The column of the term.
        """
        return any(segment.starts[term] < segment.starts[term + 1] for segment in self.segments)

    @cached_property
    def _order(self) -> list[int]:
        """Numbers of all documents that are not deleted, by descending id."""
        parts = zip(self._offsets, self.segments, strict=True)
        numbers = [offset + position for offset, segment in parts for position in segment.live.tolist()]
        return numbers if len(self.segments) == 1 else sorted(numbers, key=self.id_at, reverse=True)

    @cached_property
    def documents(self) -> Documents:
        """All documents, read into memory, by descending id."""
        return documents_at(map(self._locate, self._order))

    @property
    def input_ids(self) -> list[str]:
        """The ids of all documents in the order in which they were given; by descending id in an earlier file."""
        return [segment.ids[at] for segment, at in self._in_input_order()]

    @property
    def input_documents(self) -> Documents:
        """All documents, read into memory, in the order of `input_ids`."""
        return documents_at(self._in_input_order())

    def _in_input_order(self) -> Iterator[tuple[Segment, int]]:
        return ((segment, at) for segment in self.segments for at in segment.live_in_input_order.tolist())

    def matrix(self, doc_ids: Iterable[str] | None = None) -> csr_array:
        """Return documents × terms.

        Parameters
        ----------
        doc_ids : iterable of str, optional
            Documents to return. None returns all, in the order of `documents`.
        """
        from scipy.sparse import csr_array, vstack

        numbers = self._order if doc_ids is None else [self.number(doc_id) for doc_id in doc_ids]
        return csr_array(vstack([segment.matrix() for segment in self.segments], format="csr")[numbers])
