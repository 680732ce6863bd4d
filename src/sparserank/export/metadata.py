"""The metadata fields of documents, with the types that engines know."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..data.metadata import Metadata, value_text
from ..search.filters import parse_date

_NOT_IN_NAMES = re.compile(r"\W", re.ASCII)
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class MetadataField:
    """A field of metadata.

    kind : "boolean", "number", "date" or "text"; values of different kinds are text.
    is_list : whether a document has a list of values.
    """

    name: str
    kind: str
    is_list: bool

    def value(self, value: Any) -> Any:
        """Return a value, or a list of them, as the kind says."""
        if isinstance(value, list):
            return [self.value(one) for one in value]
        return value_text(value) if self.kind == "text" and not isinstance(value, str) else value

    @property
    def identifier(self) -> str:
        """The name as `metadata_` and letters, digits and underscores.

        >>> MetadataField("two words", "text", False).identifier
        'metadata_two_words'
        """
        return "metadata_" + _NOT_IN_NAMES.sub("_", self.name)

    @property
    def payload_key(self) -> str:
        """The key in a payload of Qdrant.

        >>> MetadataField("a.b", "text", False).payload_key
        'metadata."a.b"'
        """
        return f"metadata.{self.name}" if _PLAIN.fullmatch(self.name) else f'metadata."{self.name}"'


def metadata_fields(metadata: Iterable[Metadata]) -> tuple[MetadataField, ...]:
    """Return the fields of documents, by name.

    >>> metadata_fields([{"n": 1, "at": "2024-01-31"}, {"n": [2.5, 3]}])
    (MetadataField(name='at', kind='date', is_list=False), MetadataField(name='n', kind='number', is_list=True))
    """
    kinds: dict[str, set[str]] = {}
    lists: set[str] = set()
    for one in metadata:
        for name, value in one.items():
            lists |= {name} if isinstance(value, list) else set()
            kinds.setdefault(name, set()).update(map(_kind, value if isinstance(value, list) else [value]))
    return tuple(
        MetadataField(name, next(iter(found)) if len(found) == 1 else "text", name in lists)
        for name, found in sorted(kinds.items())
    )


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "date" if isinstance(value, str) and " " not in value and parse_date(value) is not None else "text"


def typed_metadata(fields: Iterable[MetadataField], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a document with values as the kinds of the fields say."""
    return {field.name: field.value(metadata[field.name]) for field in fields if field.name in metadata}
