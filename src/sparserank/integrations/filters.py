"""Filters of other libraries in the notation of `TextRanker.search`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

from ..data.metadata import value_text
from ..errors import FilterError

_COMPARISONS = (">", ">=", "<", "<=")


def comparison(field: str, operator: str, value: Any) -> str:
    """Return a comparison as text.

    Parameters
    ----------
    field : str
        The field of the metadata.
    operator : str
        One of ==, !=, >, >=, <, <=, in, not in, all (a list has all values) and is_empty.
    value : object
        The value, or the list of values.

    Examples
    --------
    >>> comparison("year", ">=", 2000), comparison("kind", "not in", ["a b", "c"])
    ('"year">="2000"', 'NOT ("kind":"a b" OR "kind":"c")')
    """
    name = _quote(field)
    if operator in _COMPARISONS:
        return f"{name}{operator}{_quote(value)}"
    if operator in ("is_empty", "==", "!=") and (operator == "is_empty" or value is None):
        return f"{name}:*" if operator == "!=" else f"NOT {name}:*"
    if operator in ("==", "!="):
        return f"{'NOT ' if operator == '!=' else ''}{name}:{_quote(value)}"
    if operator in ("in", "not in", "all"):
        if not isinstance(value, list | tuple | set | frozenset) or not value:
            raise FilterError(f"filter: {operator!r} of {field!r} needs a list of values; got {value!r:.60}")
        parts = combine("AND" if operator == "all" else "OR", [f"{name}:{_quote(one)}" for one in value])
        return f"NOT {parts}" if operator == "not in" else parts
    raise FilterError(f"filter: the operator {operator!r} of {field!r} is not supported")


def combine(operator: str, parts: Sequence[str]) -> str:
    """Combine filters.

    Parameters
    ----------
    operator : {"AND", "OR", "NOT"}
        NOT means that not all parts match.
    parts : sequence of str
        At least one filter.

    Examples
    --------
    >>> combine("AND", ["a:1", "b:2"]), combine("NOT", ["a:1"])
    ('(a:1 AND b:2)', 'NOT (a:1)')
    """
    if operator not in ("AND", "OR", "NOT") or not parts:
        raise FilterError(
            f"filter: expected AND, OR or NOT of at least one condition; got {operator!r} of {len(parts)}"
        )
    joined = f"({f' {operator} '.join(parts) if operator != 'NOT' else ' AND '.join(parts)})"
    return f"NOT {joined}" if operator == "NOT" else joined


def _quote(value: Any) -> str:
    if not isinstance(value, str | bool | int | float | date):
        raise FilterError(f"filter: a value must be text, a number, true or false, or a date; got {value!r:.60}")
    return '"' + value_text(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
