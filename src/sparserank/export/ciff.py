"""Write CIFF, the Common Index File Format of open-source research engines.

A file is a sequence of protobuf messages, each after its length: a Header, PostingsLists and DocRecords. The document
numbers of a postings list are differences from the previous one. `tf` contains impacts, which are positive integers.
The messages are those of https://github.com/osirrc/ciff (src/main/protobuf/CommonIndexFileFormat.proto).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..data.files import PathLike, atomic_write
from ..errors import DataError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

VERSION = 1
MAX_IMPACT = 2**31 - 1
"""`tf` is an int32."""
_VARINT, _FIXED64, _BYTES = 0, 1, 2


@dataclass(frozen=True)
class Ciff:
    """An index: impacts[i, j] is the impact of term j in document i."""

    terms: tuple[str, ...]
    ids: tuple[str, ...]
    impacts: csr_array
    description: str = ""


def varint(value: int) -> bytes:
    """Encode an integer with seven bits per byte, the lowest first.

    >>> varint(300)
    b'\\xac\\x02'
    """
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    """Encode an integer field; 0 is the default and is left out."""
    return varint(field << 3 | _VARINT) + varint(value) if value else b""


def _bytes(field: int, value: bytes) -> bytes:
    return varint(field << 3 | _BYTES) + varint(len(value)) + value if value else b""


def _delimited(message: bytes) -> bytes:
    return varint(len(message)) + message


def write_ciff(path: PathLike, index: Ciff) -> None:
    """Write an index; terms are sorted by their bytes, and terms without documents are left out."""
    columns = index.impacts.tocsc()
    columns.sort_indices()
    if columns.nnz and not (columns.data.min() >= 1 and columns.data.max() <= MAX_IMPACT):
        raise DataError("impacts in a CIFF file must be integers above 0 and below 2**31")
    order = sorted(np.flatnonzero(np.diff(columns.indptr)).tolist(), key=lambda term: index.terms[term].encode())
    lengths = np.asarray(index.impacts.sum(axis=1)).ravel().astype(np.int64).tolist()
    with atomic_write(path, compress=False) as file:
        file.write(_delimited(_header(len(order), lengths, index.description)))
        for term in order:
            part = slice(columns.indptr[term], columns.indptr[term + 1])
            file.write(_delimited(_postings_list(index.terms[term], columns.indices[part], columns.data[part])))
        for number, (doc_id, length) in enumerate(zip(index.ids, lengths, strict=True)):
            record = _number(1, number) + _bytes(2, doc_id.encode()) + _number(3, length)
            file.write(_delimited(record))


def _header(lists: int, lengths: Sequence[int], description: str) -> bytes:
    numbers = (VERSION, lists, len(lengths), lists, len(lengths), sum(lengths))
    mean = varint(7 << 3 | _FIXED64) + struct.pack("<d", sum(lengths) / max(len(lengths), 1))
    counts = b"".join(_number(field, value) for field, value in enumerate(numbers, start=1))
    return counts + mean + _bytes(8, description.encode())


def _postings_list(term: str, documents: Sequence[int], impacts: Sequence[int]) -> bytes:
    gaps = np.diff(np.asarray(documents, np.int64), prepend=0).tolist()
    values = np.asarray(impacts, np.int64).tolist()
    pairs = (_number(1, gap) + _number(2, impact) for gap, impact in zip(gaps, values, strict=True))
    postings = b"".join(_bytes(4, pair) for pair in pairs)
    return _bytes(1, term.encode()) + _number(2, len(values)) + _number(3, sum(values)) + postings
