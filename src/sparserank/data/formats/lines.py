"""The parts that line formats share: fields, numbers, judgments and ids. An error begins with `file:line`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from ...errors import DataError
from ..files import PathLike, numbered_lines, write_bytes
from ..records import Qrels

_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def read_fields(path: PathLike, layout: str, separator: str | None = None) -> Iterator[tuple[str, list[str]]]:
    """Yield (`file:line`, fields) for every line that is not blank.

    layout : the names of the fields, separated by blanks. separator : by default white space.
    """
    n_fields, kind = len(layout.split()), "tab-separated " if separator == "\t" else ""
    for number, line in numbered_lines(path):
        fields = line.split(separator)
        if len(fields) != n_fields:
            raise DataError(f"{path}:{number}: a line has {n_fields} {kind}fields, {layout!r}; got {len(fields)}")
        yield f"{path}:{number}", fields


def parse_number(where: str, name: str, text: str) -> float:
    """Parse the finite number in a field; `where` and `name` identify the field in the error.

    >>> parse_number("run.txt:1", "score", "2.5")
    2.5
    """
    value = _decimal(text)
    if not math.isfinite(value):
        raise DataError(f"{where}: the {name} must be a finite number; got {text!r}")
    return value


@lru_cache(maxsize=1024)  # most grades are a few small numbers
def _decimal(text: str) -> float:
    return float(text) if _DECIMAL.fullmatch(text) else math.nan


def format_number(number: float) -> str:
    """Format a float as the shortest decimal that reads back as the same number.

    >>> format_number(2.0), format_number(0.1)
    ('2', '0.1')
    """
    return repr(float(number)).removesuffix(".0")


def qrels_from_rows(rows: Iterable[tuple[object, str, str, float]]) -> dict[str, dict[str, float]]:
    """Collect (where, query, document, grade) rows: duplicates count once, contradictions raise DataError.

    >>> qrels_from_rows([("qrels.txt:1", "q1", "d7", 2.0)])
    {'q1': {'d7': 2.0}}
    """
    qrels: dict[str, dict[str, float]] = {}
    for where, query, document, grade in rows:
        first = qrels.setdefault(query, {}).setdefault(document, grade)
        if first != grade:
            raise DataError(
                f"{where}: document {document!r} has the grades {min(first, grade):g} and {max(first, grade):g} for "
                f"query {query!r}; keep one of them"
            )
    return qrels


def read_groups(path: PathLike) -> dict[str, str]:
    """Read the group of each query: a line has a query id, a tab and the name of the group."""
    groups: dict[str, str] = {}
    for where, (query, group) in read_fields(path, "query group", "\t"):
        if (first := groups.setdefault(query, group)) != group:
            raise DataError(f"{where}: query {query!r} is in the groups {first!r} and {group!r}; keep one of them")
    return groups


def rows_to_write(
    qrels: Qrels, value_name: str, check_id: Callable[[str, object], None]
) -> Iterator[tuple[str, str, str]]:
    """Yield (query, document, value) of judgments or of a run; the ids pass `check_id` and the values are finite."""
    for query, values in qrels.items():
        check_id("query id", query)
        for document, value in values.items():
            check_id("document id", document)
            if not math.isfinite(value):
                raise DataError(
                    f"the {value_name} of query {query!r} and document {document!r} must be finite; got {value!r}"
                )
            yield query, document, format_number(value)


def has_surrogate(text: str) -> bool:
    """Return whether a text contains half of a surrogate pair, which UTF-8 cannot encode."""
    return any("\ud800" <= character <= "\udfff" for character in text)


def write_lines(path: PathLike, lines: Iterable[str]) -> None:
    """Write lines atomically."""
    write_bytes(path, "".join(f"{line}\n" for line in lines).encode())
