"""Filters by metadata in the query languages of other engines, with the types of the exported fields.

A value is compared as the type of its field says: 3 and 3.0 are one number, and two spellings of one time are equal. A
condition that an engine cannot express raises FilterError.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ..errors import FilterError
from ..search.filters import (
    And,
    Equals,
    Exists,
    Filter,
    FilterLike,
    Not,
    Or,
    Range,
    as_seconds,
    parse_date,
    parse_filter,
    parse_number,
)
from ..search.metadata_columns import check_fields
from .metadata import MetadataField
from .vectors import term_name

EARLIEST_S = -62_135_596_800
"""The year 1 in seconds since 1970. Vespa stores the smallest number for a missing date, which is earlier."""
END_S = 253_402_300_800
"""The year 10000, which has no text: the end of the last day."""
End = float | str | None


@dataclass(frozen=True)
class Translation(ABC):
    """A filter in the language of one engine.

    fields : the metadata fields of the export.
    """

    fields: Sequence[MetadataField]

    def __call__(self, given: FilterLike) -> Any:
        """Translate a filter in one of our notations."""
        expression = parse_filter(given)
        check_fields(expression, [field.name for field in self.fields])
        return self.translate(expression)

    def translate(self, expression: Filter) -> Any:
        """Translate a parsed filter."""
        if isinstance(expression, And | Or):
            return self.combine(isinstance(expression, And), [self.translate(part) for part in expression.parts])
        if isinstance(expression, Not):
            return self.negate(self.translate(expression.part))
        field = next(field for field in self.fields if field.name == expression.field)
        if isinstance(expression, Exists):
            return self.exists(field)
        if isinstance(expression, Equals):
            return self.equals(field, [as_kind(field, text) for text in expression.values])
        return self.range(field, *_ends(field, expression))

    @abstractmethod
    def combine(self, is_and: bool, parts: list[Any]) -> Any:
        """All parts, or any of them."""

    @abstractmethod
    def negate(self, part: Any) -> Any:
        """Documents that do not match."""

    @abstractmethod
    def exists(self, field: MetadataField) -> Any:
        """Documents that have a field."""

    @abstractmethod
    def equals(self, field: MetadataField, values: list[Any]) -> Any:
        """Documents with one of these values."""

    @abstractmethod
    def range(self, field: MetadataField, low: End, high: End, includes: tuple[bool, bool]) -> Any:
        """Documents with a value between two ends; dates are seconds since 1970."""


class Lucene(Translation):
    """The query DSL of Elasticsearch and OpenSearch."""

    def combine(self, is_and: bool, parts: list[Any]) -> Any:
        """Return a bool query."""
        return {"bool": {"filter": parts} if is_and else {"should": parts, "minimum_should_match": 1}}

    def negate(self, part: Any) -> Any:
        """Return a bool query."""
        return {"bool": {"must_not": [part]}}

    def exists(self, field: MetadataField) -> Any:
        """Return an exists query."""
        return {"exists": {"field": _lucene_name(field)}}

    def equals(self, field: MetadataField, values: list[Any]) -> Any:
        """Return a terms query."""
        return {"terms": {_lucene_name(field): values}}

    def range(self, field: MetadataField, low: End, high: End, includes: tuple[bool, bool]) -> Any:
        """Return a range query."""
        return {"range": {_lucene_name(field): _comparisons(field, low, high, includes)}}


class Qdrant(Translation):
    """The conditions of Qdrant."""

    def __call__(self, given: FilterLike) -> Any:
        """Return a filter, which is a list of conditions."""
        return {"must": [super().__call__(given)]}

    def combine(self, is_and: bool, parts: list[Any]) -> Any:
        """Return a filter, which may be a condition of another one."""
        return {"must" if is_and else "should": parts}

    def negate(self, part: Any) -> Any:
        """Return a filter, which may be a condition of another one."""
        return {"must_not": [part]}

    def exists(self, field: MetadataField) -> Any:
        """Return what is not empty."""
        return self.negate({"is_empty": {"key": field.payload_key}})

    def equals(self, field: MetadataField, values: list[Any]) -> Any:
        """Return a match; numbers and dates are ranges, because Qdrant matches integers only."""
        if field.kind == "text":
            return {"key": field.payload_key, "match": {"any": values}}
        if field.kind == "boolean":
            parts = [{"key": field.payload_key, "match": {"value": value}} for value in values]
        else:
            parts = [{"key": field.payload_key, "range": {"gte": value, "lte": value}} for value in values]
        return parts[0] if len(parts) == 1 else self.combine(False, parts)

    def range(self, field: MetadataField, low: End, high: End, includes: tuple[bool, bool]) -> Any:
        """Return a range of numbers or dates."""
        if field.kind == "text":
            raise FilterError(f"filter: Qdrant cannot compare texts by order; the field {field.name!r} is text")
        return {"key": field.payload_key, "range": _comparisons(field, low, high, includes)}


class Vespa(Translation):
    """Conditions of YQL."""

    def combine(self, is_and: bool, parts: list[Any]) -> Any:
        """Return the parts in parentheses."""
        return f"({(' and ' if is_and else ' or ').join(parts)})"

    def negate(self, part: Any) -> Any:
        """Return a condition that may stand alone, which a negation may not."""
        return f"(true and !({part}))"

    def exists(self, field: MetadataField) -> Any:
        """Raise FilterError."""
        raise FilterError(f"filter: Vespa cannot test whether a document has a field; got {field.name!r}:*")

    def equals(self, field: MetadataField, values: list[Any]) -> Any:
        """Return one comparison for each value."""
        operator = "contains" if field.kind == "text" else "="
        if field.kind == "date":
            values = [int(parse_date(value) or 0) for value in values]
        parts = [f"{field.identifier} {operator} {json.dumps(value, ensure_ascii=False)}" for value in values]
        return parts[0] if len(parts) == 1 else self.combine(False, parts)

    def range(self, field: MetadataField, low: End, high: End, includes: tuple[bool, bool]) -> Any:
        """Return a range of numbers, or of seconds."""
        if field.kind == "text":
            raise FilterError(f"filter: Vespa cannot compare texts by order; the field {field.name!r} is text")
        if field.kind == "date":
            low = EARLIEST_S if low is None else low
            low, high = (end if end is None else json.dumps(end).removesuffix(".0") for end in (low, high))
        names = {(True, True): "", (False, True): "leftOpen", (True, False): "rightOpen", (False, False): "open"}
        ends = f"{'-Infinity' if low is None else low}, {'Infinity' if high is None else high}"
        bounds = names[includes]
        wanted = f"range({field.identifier}, {ends})"
        return f'({{bounds:"{bounds}"}}{wanted})' if bounds else wanted


TRANSLATIONS: dict[str, type[Translation]] = {
    "elasticsearch": Lucene, "opensearch": Lucene, "synonyms": Lucene, "qdrant": Qdrant, "vespa": Vespa,
}  # fmt: skip
"""Targets whose requests may have a filter."""


def as_kind(field: MetadataField, text: str) -> Any:
    """Return the text of a value as the kind of a field; FilterError if it is none.

    >>> as_kind(MetadataField("n", "number", False), "3.0"), as_kind(MetadataField("n", "boolean", False), "true")
    (3.0, True)
    """
    if field.kind == "number" and (number := parse_number(text)) is not None and math.isfinite(number):
        return number
    if field.kind == "boolean" and text in ("true", "false"):
        return text == "true"
    if field.kind == "text" or (field.kind == "date" and parse_date(text) is not None):
        return text
    raise FilterError(f"filter: the field {field.name!r} is a {field.kind} in the export; got {text!r:.60}")


def _ends(field: MetadataField, wanted: Range) -> tuple[End, End, tuple[bool, bool]]:
    """Return the ends of a range as the kind of a field."""
    if field.kind == "boolean":
        raise FilterError(f"filter: {field.name!r} is a boolean in the export and has no range")
    low, high = (None if end is None else as_kind(field, end) for end in (wanted.low, wanted.high))
    if field.kind == "text" and any(
        end is not None and (parse_number(end) is not None or parse_date(end) is not None) for end in (low, high)
    ):
        raise FilterError(f"filter: {field.name!r} is text in the export and cannot be compared as a number or date")
    return as_seconds(wanted) if field.kind == "date" else (low, high, wanted.includes)


def _comparisons(field: MetadataField, low: End, high: End, includes: tuple[bool, bool]) -> dict[str, Any]:
    """Return {"gte": low, "lt": high} and the like; dates as text."""
    if field.kind == "date":
        (low, with_low), (high, with_high) = _date_text(low, includes[0], False), _date_text(high, includes[1], True)
        includes = with_low, with_high
    names = "gte" if includes[0] else "gt", "lte" if includes[1] else "lt"
    return {name: end for name, end in zip(names, (low, high), strict=True) if end is not None}


def _date_text(end: End, is_included: bool, is_high: bool) -> tuple[str | None, bool]:
    """Return an end of a range as text, and whether it is included; a time without a text becomes the nearest with one.

    >>> _date_text(0.0, True, False), _date_text(253402300800.0, False, True)
    (('1970-01-01T00:00:00+00:00', True), ('9999-12-31T23:59:59.999999+00:00', True))
    """
    if end is None:
        return None, is_included
    seconds = float(end)
    if seconds < EARLIEST_S:
        return datetime.min.replace(tzinfo=UTC).isoformat(), not is_high
    if seconds >= END_S:
        return datetime.max.replace(tzinfo=UTC).isoformat(), is_high
    return datetime.fromtimestamp(seconds, UTC).isoformat(), is_included


def _lucene_name(field: MetadataField) -> str:
    return f"metadata.{term_name(field.name)}"
