"""The fields of documents: which keys of a record are searched as text, and which are metadata.

`title` and `text` are text fields. Another key is a text field if its values are strings, at least one of several
words, or lists of strings; all other keys are metadata. If no record has a `text`, one text field takes its place:
`body`, `content`, …, or else the longest. The other text fields stay in the metadata, so searches can filter by them.
A list with more than MAX_NUMBERS numbers, some of them fractions, is taken for a vector and left out.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import DataError
from .metadata import Metadata

BODY_NAMES = ("body", "content", "contents", "passage", "description", "abstract")
"""Fields that take the place of `text`, in this order, if no record has one."""
MAX_NUMBERS = 16
"""Numbers of a list that is metadata, such as prices; a longer list with fractions is a vector."""
_OWN_KEYS = ("_id", "id", "title", "text", "metadata")
log = logging.getLogger(__name__)


class SplitRecords(NamedTuple):
    """Titles, texts and metadata of records, the further text fields, and the name of the field in `texts`."""

    titles: tuple[str, ...]
    texts: tuple[str, ...]
    metadata: tuple[Metadata, ...]
    fields: tuple[str, ...]
    text_field: str


def split_records(records: Sequence[Mapping[str, Any]], declared: Sequence[str] | None = None) -> SplitRecords:
    """Split records into text fields and metadata; `declared` names the text fields beside title and text.

    >>> split_records([{"title": "Pears", "body": "green and sour", "tags": ["fruit"], "year": 1999}])[1:]
    (('green and sour',), ({'tags': ['fruit'], 'year': 1999},), ('tags',), 'body')
    """
    own = _OWN_KEYS if all(isinstance(record.get("metadata") or {}, Mapping) for record in records) else _OWN_KEYS[:-1]
    names = [key for key in dict.fromkeys(key for record in records for key in record) if key not in own]
    kinds = {name: _kind(record[name] for record in records if record.get(name) is not None) for name in names}
    if declared is None:
        fields = [name for name, kind in kinds.items() if kind in ("text", "list")]
    else:
        fields = [name for name in declared if name not in ("title", "text")]
        if unknown := next((name for name in fields if kinds.get(name) not in ("text", "word", "list")), None):
            found = ", ".join(name for name, kind in kinds.items() if kind in ("text", "word", "list")) or "none"
            raise DataError(f"no document has a text field {unknown!r}; the other fields with text are: {found}")
    text_field = "text"
    if names and not any(record.get("text") is not None for record in records):
        text_field = _body(records, kinds, fields, declared is not None)
    for name, kind in kinds.items():
        if kind == "other":
            log.warning("the field %r holds neither text nor metadata and is left out", name)
    kept = [name for name, kind in kinds.items() if kind != "other" and name != text_field]
    metadata = tuple(
        {name: record[name] for name in kept if record.get(name) is not None}
        | (dict(record.get("metadata") or {}) if own is _OWN_KEYS else {})
        for record in records
    )
    titles, texts = (tuple(record.get(name) or "" for record in records) for name in ("title", text_field))
    return SplitRecords(titles, texts, metadata, tuple(name for name in fields if name != text_field), text_field)


def _kind(values: Iterable[object]) -> str:
    """Return the kind of a field: text, word (strings of one word), list (of strings), metadata or other."""
    kinds = {_value_kind(value) for value in values}
    if kinds <= {"text", "word"}:
        return "text" if "text" in kinds else "word"
    return kinds.pop() if len(kinds) == 1 else "other" if "other" in kinds else "metadata"


def _value_kind(value: object) -> str:
    if isinstance(value, str):
        return "text" if len(value.split(maxsplit=1)) > 1 else "word"
    if isinstance(value, list | tuple):
        if all(isinstance(one, str) for one in value):
            return "list"
        is_vector = len(value) > MAX_NUMBERS and any(isinstance(one, float) for one in value)
        return "other" if is_vector or any(isinstance(one, list | tuple | Mapping) for one in value) else "metadata"
    return "other" if isinstance(value, Mapping | bytes) else "metadata"


def _body(records: Sequence[Mapping[str, Any]], kinds: Mapping[str, str], fields: Sequence[str], declared: bool) -> str:
    """Return the field that takes the place of `text`, or "text" if there is none."""
    strings = [name for name, kind in kinds.items() if kind in ("text", "word") and (not declared or name in fields)]
    named = [name for name in BODY_NAMES if name in strings]
    if named:
        return named[0]
    texts = [name for name in strings if name in fields]
    return max(texts, key=lambda name: sum(len(record.get(name) or "") for record in records), default="text")


def field_text(value: object) -> str:
    """Return a value as the text that is searched; a list is joined.

    >>> field_text(["red", "sweet"]), field_text(None)
    ('red sweet', '')
    """
    if value is None:
        return ""
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
