"""Metadata of the documents of a segment: what each document has, and by field the documents of each value.

A value is known by the key of its text (`data.metadata.value_key`). The documents of a value are a list of positions,
or a bitmap if that is smaller. Filters become one boolean per document, and facets count documents by value; both are
exact.
"""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.formats.tensors import Tensors
from ..data.metadata import MAX_KEY_CHARACTERS, Metadata, value_key, value_texts
from ..errors import FilterError, ModelError
from .filters import And, Equals, Exists, Filter, Leaf, Not, Or, Range, as_seconds, parse_date, parse_number
from .string_array import StringArray

BITS_PER_POSITION = 32
"""A bitmap is smaller than a list of 32-bit positions if more than one document in 32 has the value."""
MAX_SLICES = 64
"""More values are collected from all lists of their field at once."""
_STRINGS = ("records", "fields", "values")
_ARRAYS = {"value_starts": "int64", "counts": "int32", "lists": "int32", "bitmaps": "uint8"}


def encode_metadata(metadata: Metadata) -> str:
    """Return the record of a document: JSON, or empty text without metadata."""
    return json.dumps(metadata, ensure_ascii=False, separators=(",", ":")) if metadata else ""


@dataclass(frozen=True)
class MetadataColumns:
    """records[d] is the JSON of document d; values[value_starts[f]:value_starts[f + 1]] descend and are of fields[f].

    counts : documents of each value. lists, bitmaps : the documents of each value, one after the other.
    """

    records: StringArray
    fields: StringArray
    values: StringArray
    value_starts: NDArray[np.int64]
    counts: NDArray[np.int32]
    lists: NDArray[np.int32]
    bitmaps: NDArray[np.uint8]

    @classmethod
    def build(cls, metadata: Sequence[Metadata]) -> MetadataColumns | None:
        """Index the metadata of documents, in the order of the segment; return None if no document has any."""
        if not any(metadata):
            return None
        records = [encode_metadata(one) for one in metadata]
        return replace(cls.from_records(records), records=StringArray.from_strings(records))

    @classmethod
    def from_records(cls, records: Iterable[str]) -> MetadataColumns:
        """Index the records of documents, which are not kept."""
        numbers: dict[str, dict[str, int]] = {}
        entries, docs, n_docs, n_values = array("q"), array("i"), 0, 0
        for record in records:
            for name, value in json.loads(record).items() if record else ():
                known = numbers.setdefault(name, {})
                for text in dict.fromkeys(map(value_key, value_texts(value))):
                    if text not in known:
                        known[text], n_values = n_values, n_values + 1
                    entries.append(known[text])
                    docs.append(n_docs)
            n_docs += 1
        fields = sorted(numbers)
        values = [sorted(numbers[name], reverse=True) for name in fields]
        order = [numbers[name][text] for name, texts in zip(fields, values, strict=True) for text in texts]
        starts = np.concatenate([[0], np.cumsum([len(texts) for texts in values])]).astype(np.int64)
        names, texts = StringArray.from_strings(fields), StringArray.from_strings(chain.from_iterable(values))
        postings = _postings(order, np.array(entries, np.int64), np.array(docs, np.int32), n_docs)
        return cls(StringArray.from_strings([]), names, texts, starts, *postings)

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, position: int) -> dict[str, Any]:
        record = self.records[position]
        try:
            out: dict[str, Any] = json.loads(record) if record else {}
        except ValueError:
            raise _damaged("a record is not JSON") from None
        return out

    @cached_property
    def field_numbers(self) -> dict[str, int]:
        """{field: number}."""
        return {self.fields[i]: i for i in range(len(self.fields))}

    @property
    def n_values(self) -> dict[str, int]:
        """{field: number of its values}."""
        return dict(zip(self.field_numbers, np.diff(self.value_starts).tolist(), strict=True))

    @cached_property
    def _layout(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each value the start of its list and the row of its bitmap (-1: none)."""
        is_bitmap = _is_bitmap(self.counts, len(self))
        starts = np.concatenate([[0], np.cumsum(np.where(is_bitmap, 0, self.counts))]).astype(np.int64)
        rows = np.where(is_bitmap, np.cumsum(is_bitmap) - 1, -1)
        n_bytes = int(is_bitmap.sum()) * -(-len(self) // 8)
        if (self.counts < 0).any() or starts[-1] != len(self.lists) or n_bytes != len(self.bitmaps):
            raise _damaged("the lists of metadata values do not match their counts")
        return starts, rows

    def _list(self, begin: int, end: int) -> NDArray[np.int32]:
        docs = self.lists[begin:end]
        if len(docs) and not 0 <= docs.min() <= docs.max() < len(self):
            raise _damaged("a metadata value has a document that does not exist")
        return docs

    def _bitmap(self, row: int) -> NDArray[np.uint8]:
        width = -(-len(self) // 8)
        return self.bitmaps[row * width : (row + 1) * width]

    def _field(self, name: str) -> tuple[int, int]:
        """Return the range of the values of a field, empty if no document has it."""
        number = self.field_numbers.get(name)
        return (0, 0) if number is None else (int(self.value_starts[number]), int(self.value_starts[number + 1]))

    # ---- filters

    def matches(self, leaf: Leaf) -> NDArray[np.bool_]:
        """Return which documents match a condition on one field."""
        out, (first, last) = np.zeros(len(self), np.bool_), self._field(leaf.field)
        starts, rows = self._layout
        if isinstance(leaf, Equals):
            found = StringArray(self.values.utf8, self.values.ends[first : last + 1])
            at = {found.find_descending(value_key(text)) for text in leaf.values} - {-1}
            selected = first + np.array(sorted(at), np.int64)
        elif isinstance(leaf, Exists):
            selected = np.arange(first, last)
        else:
            selected = first + np.flatnonzero(self._in_range(leaf))
        if len(selected) <= MAX_SLICES:
            for value in selected.tolist():
                out[self._list(int(starts[value]), int(starts[value + 1]))] = True
        else:
            is_selected = np.repeat(np.isin(np.arange(first, last), selected), np.diff(starts[first : last + 1]))
            out[self._list(int(starts[first]), int(starts[last]))[is_selected]] = True
        for row in rows[selected][rows[selected] >= 0].tolist():
            out |= np.unpackbits(self._bitmap(row), count=len(self), bitorder="little").view(np.bool_)
        return out

    def _in_range(self, wanted: Range) -> NDArray[np.bool_]:
        """Return which values of a field lie between the ends: as numbers, as dates, or as texts."""
        texts, (with_low, with_high) = self._texts(wanted.field), wanted.includes
        ends = [end for end in (wanted.low, wanted.high) if end is not None]
        out = np.ones(len(texts), np.bool_)
        if not ends:
            return out
        low: Any = wanted.low
        high: Any = wanted.high
        keys: Any = np.array(texts, object)
        for parse in (parse_number, parse_date):
            if parse(ends[0]) is None:
                continue
            keys = np.array([np.nan if (key := parse(text)) is None else key for text in texts], np.float64)
            out &= ~np.isnan(keys)
            if parse is parse_date:
                low, high, (with_low, with_high) = as_seconds(wanted)
            else:
                low, high = (None if end is None else parse(end) for end in (low, high))
            break
        if low is not None:
            out &= np.asarray(keys >= low if with_low else keys > low, np.bool_)
        if high is not None:
            out &= np.asarray(keys <= high if with_high else keys < high, np.bool_)
        return out

    def _texts(self, name: str) -> list[str]:
        """Return the values of a field, which are kept: to decode them takes longer than to count."""
        if name not in self._decoded:
            self._decoded[name] = [self.values[i] for i in range(*self._field(name))]
        return self._decoded[name]

    @cached_property
    def _decoded(self) -> dict[str, list[str]]:
        return {}

    # ---- facets

    def count(self, name: str, matches: NDArray[np.bool_]) -> dict[str, int]:
        """Return {value: number of matching documents} of a field, the largest number first, without values of none."""
        first, last = self._field(name)
        starts, rows = self._layout
        begin, end = int(starts[first]), int(starts[last])
        so_far = np.concatenate([[0], np.cumsum(matches[self._list(begin, end)])])
        counts = so_far[starts[first + 1 : last + 1] - begin] - so_far[starts[first:last] - begin]
        packed = np.packbits(matches, bitorder="little")
        for value in np.flatnonzero(rows[first:last] >= 0).tolist():
            counts[value] = int(np.bitwise_count(self._bitmap(int(rows[first + value])) & packed).sum())
        texts, found = self._texts(name), np.flatnonzero(counts)[::-1]  # values descend, and equal numbers ascend
        order = found[np.argsort(-counts[found], kind="stable")]
        whole = (self._whole(name, texts[value], first + value) for value in order.tolist())
        return dict(zip(whole, counts[order].tolist(), strict=True))

    def _whole(self, name: str, key: str, value: int) -> str:
        """Return the text of a value with this key; that of a long one is in the record of a document that has it."""
        if len(key) <= MAX_KEY_CHARACTERS:
            return key
        starts, rows = self._layout
        if rows[value] < 0:
            document = int(self._list(int(starts[value]), int(starts[value + 1]))[0])
        else:
            document = int(np.flatnonzero(np.unpackbits(self._bitmap(int(rows[value])), bitorder="little"))[0])
        texts = value_texts(self[document].get(name, []))
        return next((text for text in texts if value_key(text) == key), key)

    # ---- files

    def arrays(self, prefix: str) -> dict[str, NDArray[Any]]:
        """Return the arrays for a file."""
        out = {f"{prefix}metadata.{name}": getattr(self, name) for name in _ARRAYS}
        for name in _STRINGS:
            out |= getattr(self, name).arrays(f"{prefix}metadata.{name}")
        return out

    @classmethod
    def from_file(cls, file: Tensors, prefix: str, n_docs: int) -> MetadataColumns | None:
        """Map what `arrays` wrote and check some lengths; None if the file has no metadata."""
        prefix = f"{prefix}metadata."
        if f"{prefix}counts" not in file.arrays:
            return None

        def strings(name: str) -> StringArray:
            ends = file.raw(f"{prefix}{name}.ends", "int64")
            if len(ends) == 0:
                raise ModelError(f"{file.path}: {prefix}{name} has no strings")
            return StringArray(file.raw(f"{prefix}{name}.utf8", "uint8"), ends)

        arrays = {name: file.raw(f"{prefix}{name}", dtype) for name, dtype in _ARRAYS.items()}
        out = cls(strings("records"), strings("fields"), strings("values"), **arrays)
        file.offsets(f"{prefix}value_starts", len(out.values), len(out.fields))
        if len(out) != n_docs or len(out.counts) != len(out.values):
            raise ModelError(f"{file.path}: the metadata does not match the documents")
        return out

    def check(self, file: Tensors, prefix: str) -> None:
        """Read everything and raise ModelError if a value is invalid."""
        for name in _STRINGS:
            file.strings(f"{prefix}metadata.{name}")
        file.indices(f"{prefix}metadata.lists", max(len(self), 1))
        _ = self._layout


def _postings(
    order: list[int], entries: NDArray[np.int64], docs: NDArray[np.int32], n_docs: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8]]:
    """Return counts, lists and bitmaps of values; entry i is document docs[i] of value entries[i] before ordering."""
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    by_value = np.argsort(rank[entries], kind="stable")
    counts = np.bincount(rank[entries], minlength=len(order)).astype(np.int32)
    docs, is_bitmap = docs[by_value], _is_bitmap(counts, n_docs)
    ends, bitmaps = np.cumsum(counts, dtype=np.int64), [np.zeros(0, np.uint8)]
    for value in np.flatnonzero(is_bitmap).tolist():
        bits = np.zeros(n_docs, np.bool_)
        bits[docs[ends[value] - counts[value] : ends[value]]] = True
        bitmaps.append(np.packbits(bits, bitorder="little"))
    return counts, docs[~np.repeat(is_bitmap, counts)], np.concatenate(bitmaps)


def _is_bitmap(counts: NDArray[np.int32], n_docs: int) -> NDArray[np.bool_]:
    return np.asarray(counts.astype(np.int64) * BITS_PER_POSITION > n_docs)


def _damaged(what: str) -> ModelError:
    return ModelError(f"the index is damaged: {what}; rebuild the index")


def matching(expression: Filter, columns: MetadataColumns | None, n_docs: int) -> NDArray[np.bool_]:
    """Return which documents of a segment match a filter."""
    if isinstance(expression, Not):
        return ~matching(expression.part, columns, n_docs)
    if isinstance(expression, And | Or):
        join = np.logical_and if isinstance(expression, And) else np.logical_or
        return np.asarray(join.reduce([matching(part, columns, n_docs) for part in expression.parts]))
    return np.zeros(n_docs, np.bool_) if columns is None else columns.matches(expression)


Counts = dict[str, dict[str, int]]
"""For each field {value: number of documents}."""


def add_counts(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Add the counts of segments; the largest number first, equal ones by value."""
    total = Counter[str]()
    for part in parts:
        total.update(part)
    return dict(sorted(total.items(), key=lambda one: (-one[1], one[0])))


def check_fields(expression: Filter, known: Collection[str]) -> None:
    """Raise FilterError if a filter names a field that no document has."""
    if isinstance(expression, Not):
        check_fields(expression.part, known)
    elif isinstance(expression, And | Or):
        for part in expression.parts:
            check_fields(part, known)
    else:
        check_field("filter", expression.field, known, expression.position)


def check_field(what: str, name: str, known: Collection[str], position: int | None = None) -> None:
    """Raise FilterError that names the fields there are, if no document has this one."""
    if name not in known:
        where = "" if position is None else f" at position {position}"
        fields = f"the fields are {', '.join(sorted(known))}" if known else "the documents have no metadata"
        raise FilterError(f"{what}: there is no field {name!r}{where}; {fields}")
