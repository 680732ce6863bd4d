"""Metadata of documents: named values that searches filter by and count.

A value is a string, a number, a boolean, a date (ISO 8601 text, `date` or `datetime`), or a list of these. Filters and
counts work on the text of a value: 3 and "3" are equal, and so are True and "true".
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any, TypeAlias

from ..errors import DataError

Metadata: TypeAlias = Mapping[str, Any]
"""{field: value}"""
MAX_KEY_CHARACTERS = 256
"""An index knows a longer text by so many of its first characters and a digest of the text."""


def normalize_metadata(where: str, metadata: object) -> dict[str, Any]:
    """Return metadata as it is stored: dates become ISO text, and null values are left out.

    `where` is the start of an error message.

    >>> normalize_metadata("document 'a'", {"year": 1999, "seen": date(2024, 1, 31), "tags": ("x", "y"), "note": None})
    {'year': 1999, 'seen': '2024-01-31', 'tags': ['x', 'y']}
    """
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping):
        raise DataError(f"{where}: metadata must be a mapping of fields to values; got {metadata!r:.60}")
    out: dict[str, Any] = {}
    for field, value in metadata.items():
        if not isinstance(field, str) or not field:
            raise DataError(f"{where}: a field of metadata must be non-empty text; got {field!r:.60}")
        if isinstance(value, list | tuple | set | frozenset):
            out[field] = [_normalize(where, field, one) for one in value if one is not None]
        elif value is not None:
            out[field] = _normalize(where, field, value)
    return out


def _normalize(where: str, field: str, value: object) -> str | bool | int | float:
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise DataError(
        f"{where}: metadata {field!r} must be text, a finite number, true or false, a date, or a list of these; "
        f"got {value!r:.60}"
    )


def value_text(value: object) -> str:
    """Return the text of one value, by which filters and counts know it.

    >>> [value_text(value) for value in ("red", True, 3, 3.0, 2.5, date(2024, 1, 31))]
    ['red', 'true', '3', '3', '2.5', '2024-01-31']
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    return str(value)


def value_key(text: str) -> str:
    """Return the key of the text of a value in an index: the text, or the beginning and a digest of a long one.

    Keys are longer than any text that is its own key, so they are equal only if the texts are. Compared with a text of
    at most MAX_KEY_CHARACTERS, a key has the order of the text.

    >>> value_key("red"), len(value_key("red" * 1000))
    ('red', 289)
    """
    if len(text) <= MAX_KEY_CHARACTERS:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[:MAX_KEY_CHARACTERS]}…{digest[:32]}"


def value_texts(value: object) -> tuple[str, ...]:
    """Return the texts of a value; a list has several."""
    return tuple(map(value_text, value)) if isinstance(value, list) else (value_text(value),)


def normalize_column(ids: Iterable[str], column: Iterable[object]) -> tuple[dict[str, Any], ...]:
    """Normalize the metadata of each document; the result is empty if no document has any."""
    out = tuple(normalize_metadata(f"document {i!r}", one) for i, one in zip(ids, column, strict=True))
    return out if any(out) else ()
