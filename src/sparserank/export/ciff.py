"""Read and write CIFF, the Common Index File Format of open-source research engines.

A file is a sequence of protobuf messages, each after its length: a Header, PostingsLists and DocRecords. The document
numbers of a postings list are differences from the previous one. `tf` contains impacts, which are positive integers.
The messages are those of https://github.com/osirrc/ciff (src/main/protobuf/CommonIndexFileFormat.proto).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..data.files import PathLike, atomic_write, read_bytes
from ..errors import DataError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

VERSION = 1
MAX_IMPACT = 2**31 - 1
"""`tf` is an int32."""
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_WIDTHS = {_FIXED64: 8, _FIXED32: 4}


@dataclass(frozen=True)
class Ciff:
    """An index: impacts[i, j] is the impact of term j in document i."""

    terms: tuple[str, ...]
    ids: tuple[str, ...]
    impacts: csr_array
    description: str = ""


# ---- writing


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


# ---- reading


def read_ciff(path: PathLike) -> Ciff:
    """Read an index; a truncated or inconsistent file raises DataError with its path."""
    from scipy.sparse import csr_array

    raw = memoryview(read_bytes(path))
    try:
        messages = _messages(raw)
        header = next(messages, None)
        if header is None:
            raise ValueError("it is empty")
        numbers, texts = _message(header)
        lists, documents = numbers.get(2, 0), numbers.get(3, 0)
        terms, rows, columns, values = _read_postings(messages, lists)
        ids = _read_ids(messages, documents)
        if next(messages, None) is not None:
            raise ValueError("more data follows the last document")
        if rows and max(rows) >= len(ids):
            raise ValueError(f"a posting names document {max(rows)}; the file has {len(ids)} documents")
        matrix = csr_array((values, (rows, columns)), shape=(len(ids), len(terms)), dtype=np.int64)
        return Ciff(tuple(terms), tuple(ids), matrix, texts.get(8, b"").decode())
    except ValueError as error:
        raise DataError(f"{path}: not a complete CIFF file: {error}") from None


def _read_postings(messages: Iterator[memoryview], lists: int) -> tuple[list[str], list[int], list[int], list[int]]:
    terms: list[str] = []
    rows: list[int] = []
    columns: list[int] = []
    values: list[int] = []
    for message in _take(messages, lists, "postings lists"):
        numbers, texts = _message(message)
        term, frequency = texts.get(1, b"").decode(), numbers.get(2, 0)
        document, before = 0, len(rows)
        for field, _, content in _fields(message):
            if field == 4:
                posting, _ = _message(content)
                document += posting.get(1, 0)
                rows.append(document)
                values.append(posting.get(2, 0))
                if values[-1] > MAX_IMPACT:
                    raise ValueError(f"{term!r} has an impact of {values[-1]}; the largest is 2**31 - 1")
        if len(rows) - before != frequency:
            raise ValueError(f"{term!r} announces {frequency} documents and lists {len(rows) - before}")
        columns += [len(terms)] * frequency
        terms.append(term)
    return terms, rows, columns, values


def _read_ids(messages: Iterator[memoryview], documents: int) -> list[str]:
    ids: dict[int, str] = {}
    for message in _take(messages, documents, "documents"):
        numbers, texts = _message(message)
        number = numbers.get(1, 0)
        if number >= documents or number in ids:
            raise ValueError(f"document {number} occurs twice, or exceeds the announced number")
        ids[number] = texts.get(2, b"").decode()
    return [ids[number] for number in range(documents)]


def _take(messages: Iterator[memoryview], count: int, what: str) -> Iterator[memoryview]:
    for number in range(count):
        message = next(messages, None)
        if message is None:
            raise ValueError(f"{count} {what} are announced; it ends after {number}")
        yield message


def _messages(raw: memoryview) -> Iterator[memoryview]:
    at = 0
    while at < len(raw):
        length, at = _read_varint(raw, at)
        yield _slice(raw, at, length)
        at += length


def _message(message: memoryview) -> tuple[dict[int, int], dict[int, bytes]]:
    """Return {field: number} and {field: bytes}; the last value of a repeated field counts."""
    numbers, texts = {}, {}
    for field, number, content in _fields(message):
        numbers[field], texts[field] = number, bytes(content)
    return numbers, texts


def _fields(message: memoryview) -> Iterator[tuple[int, int, memoryview]]:
    """Yield (field, its number or 0, its bytes)."""
    at = 0
    while at < len(message):
        key, at = _read_varint(message, at)
        kind, number, length = key & 7, 0, 0
        if kind == _VARINT:
            number, at = _read_varint(message, at)
        elif kind == _BYTES:
            length, at = _read_varint(message, at)
        elif kind in _WIDTHS:
            length = _WIDTHS[kind]
        else:
            raise ValueError(f"a field of kind {kind}")
        yield key >> 3, number, _slice(message, at, length)
        at += length


def _slice(raw: memoryview, at: int, length: int) -> memoryview:
    if at + length > len(raw):
        raise ValueError("it ends in the middle of a message")
    return raw[at : at + length]


def _read_varint(raw: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(raw) or shift > 63:
            raise ValueError("it ends in the middle of a number")
        byte = raw[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
