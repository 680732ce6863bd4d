"""Filters by metadata: expressions, and their two notations, text and mapping.

kind:function                  a value of the field, exactly; in quotes if it has blanks
year>=2000                     also >, <= and <; numbers, dates and texts are compared as such
year:[2000 TO 2010]            both ends included; * is an open end
kind:*                         documents that have the field
AND, OR, NOT, ( )              NOT binds more tightly than AND, and AND more tightly than OR

{"kind": ["function", "struct"], "year": {">=": 2000, "<": 2010}}     a list means OR, several fields mean AND
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from datetime import UTC, date, datetime
from typing import Any, NoReturn, TypeAlias

from ..data.metadata import MAX_KEY_CHARACTERS, value_text
from ..errors import FilterError

MAX_DEPTH = 50
"""Nested parentheses and NOTs."""
DAY_S = 86_400.0
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ].*)?")
_FIELD = re.compile(r'[^\s()\[\]":<>]+')
_VALUE = re.compile(r'[^\s()\[\]"]+')
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_OPERATOR = re.compile(r">=|<=|>|<|:")
_BLANK = re.compile(r"\s*")
_COMPARISONS = (">=", ">", "<=", "<")


@dataclass(frozen=True)
class Equals:
    """Documents with one of these values in a field; `position` is where the filter names the field."""

    field: str
    values: tuple[str, ...]
    position: int | None = dataclass_field(default=None, compare=False)


@dataclass(frozen=True)
class Exists:
    """Documents that have a field."""

    field: str
    position: int | None = dataclass_field(default=None, compare=False)


@dataclass(frozen=True)
class Range:
    """Documents with a value between two ends, each of which may be open (None) and may be included."""

    field: str
    low: str | None
    high: str | None
    includes: tuple[bool, bool] = (True, True)
    position: int | None = dataclass_field(default=None, compare=False)


@dataclass(frozen=True)
class Not:
    """Documents that do not match."""

    part: Filter


@dataclass(frozen=True)
class And:
    """Documents that match all parts."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True)
class Or:
    """Documents that match some part."""

    parts: tuple[Filter, ...]


FilterLike: TypeAlias = str | Mapping[str, Any]
"""A filter in one of its notations."""
Leaf: TypeAlias = Equals | Exists | Range
Filter: TypeAlias = Leaf | Not | And | Or


def parse_filter(given: FilterLike) -> Filter:
    """Parse a filter in either notation; a mistake raises FilterError with its position.

    >>> parse_filter('kind:function AND NOT year<2000') == And((Equals("kind", ("function",)), Not(
    ...     Range("year", None, "2000", (True, False)))))
    True
    >>> parse_filter({"kind": ["a", "b"]}) == Equals("kind", ("a", "b"))
    True
    >>> parse_filter("kind:")
    Traceback (most recent call last):
    sparserank.errors.FilterError: filter: expected a value after 'kind:' at position 5
    """
    if isinstance(given, str):
        return _Parser(given).parse()
    if not isinstance(given, Mapping):
        raise FilterError(f"filter: must be text or a mapping of fields to values; got {given!r:.60}")
    if not given:
        raise FilterError("filter: the mapping is empty; leave the filter out")
    parts = tuple(_from_mapping(name, condition) for name, condition in given.items())
    return parts[0] if len(parts) == 1 else And(parts)


def parse_number(text: str) -> float | None:
    """Return the number that a text spells, or None.

    >>> parse_number("-2.5e3"), parse_number("1_000"), parse_number("nan")
    (-2500.0, None, None)
    """
    return float(text) if _NUMBER.fullmatch(text) else None


def parse_date(text: str) -> float | None:
    """Return the seconds since 1970 of an ISO 8601 date or time, or None; a time without a zone is UTC.

    >>> parse_date("1970-01-02"), parse_date("1970-01-01T01:00+01:00"), parse_date("1970")
    (86400.0, 0.0, None)
    """
    if not _DATE.fullmatch(text):
        return None
    try:
        when = datetime.fromisoformat(text)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def is_day(text: str) -> bool:
    """Return whether a date has no time; such an end of a range is the whole day."""
    return len(text) == len("2000-01-01")


def as_seconds(wanted: Range) -> tuple[float | None, float | None, tuple[bool, bool]]:
    """Return the ends of a range of dates in seconds since 1970, and which are included; a day ends with its evening.

    >>> as_seconds(Range("at", "1970-01-01", "1970-01-01", (True, True)))
    (0.0, 86400.0, (True, False))
    """
    low, high = (None if end is None else parse_date(end) for end in (wanted.low, wanted.high))
    with_low, with_high = wanted.includes
    if low is not None and not with_low and wanted.low is not None and is_day(wanted.low):
        low, with_low = low + DAY_S, True
    if high is not None and with_high and wanted.high is not None and is_day(wanted.high):
        high, with_high = high + DAY_S, False
    return low, high, (with_low, with_high)


def _from_mapping(name: object, condition: object) -> Filter:
    if not isinstance(name, str) or not name:
        raise FilterError(f"filter: a field must be non-empty text; got {name!r:.60}")
    if not isinstance(condition, Mapping):
        values = condition if isinstance(condition, list | tuple | set | frozenset) else [condition]
        if not values:
            raise FilterError(f"filter: the list of values of {name!r} is empty")
        return Equals(name, tuple(_literal(name, value) for value in values))
    unknown = [key for key in condition if key not in _COMPARISONS]
    if unknown or not condition:
        found = f"; got {unknown[0]!r:.60}" if unknown else ""
        raise FilterError(f"filter: the comparisons of {name!r} are {', '.join(_COMPARISONS)}{found}")
    if len({key[0] for key in condition}) < len(condition):
        raise FilterError(f"filter: {name!r} has two comparisons of the same kind: {', '.join(condition)}")
    ends = {key: _literal(name, value) for key, value in condition.items()}
    low, high = ends.get(">=", ends.get(">")), ends.get("<=", ends.get("<"))
    return _range(Range(name, low, high, (">" not in ends, "<" not in ends)))


def _literal(name: str, value: object) -> str:
    if not isinstance(value, str | bool | int | float | date):
        raise FilterError(
            f"filter: a value of {name!r} must be text, a number, true or false, or a date; got {value!r:.60}"
        )
    return value_text(value)


def _range(given: Range) -> Range:
    """Check that both ends are numbers, dates, or texts that are not too long to compare."""
    where = "" if given.position is None else f" at position {given.position}"
    if any(end is not None and len(end) > MAX_KEY_CHARACTERS for end in (given.low, given.high)):
        raise FilterError(f"filter: an end of a range may have at most {MAX_KEY_CHARACTERS} characters{where}")
    kinds = {_kind(end) for end in (given.low, given.high) if end is not None}
    if len(kinds) > 1:
        raise FilterError(
            f"filter: a range needs two numbers, two dates or two texts; got {given.low!r} and {given.high!r}{where}"
        )
    return given


def _kind(text: str) -> str:
    return "number" if parse_number(text) is not None else "date" if parse_date(text) is not None else "text"


class _Parser:
    """A parser by recursive descent; `at` is the position of the next character."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.depth = text, 0, 0

    def parse(self) -> Filter:
        out = self._any_of()
        if self.at < len(self.text):
            self._fail("AND, OR or the end")
        return out

    def _any_of(self) -> Filter:
        parts = [self._all_of()]
        while self._keyword("OR"):
            parts.append(self._all_of())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _all_of(self) -> Filter:
        parts = [self._one()]
        while self._keyword("AND"):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _one(self) -> Filter:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise FilterError(f"filter: more than {MAX_DEPTH} nested parts at position {self.at}")
        if self._keyword("NOT"):
            out: Filter = Not(self._one())
        elif self._take("("):
            out = self._any_of()
            if not self._take(")"):
                self._fail("AND, OR or ')'")
        else:
            out = self._comparison()
        self.depth -= 1
        return out

    def _comparison(self) -> Filter:
        self._skip_blanks()
        begin = self.at
        name = self._text(_FIELD)
        if not name:
            self._fail("a field")
        operator = self._match(_OPERATOR)
        if operator is None:
            self._fail(f"':' or a comparison after {name!r}")
        after = f"{name}{operator[0]}"
        if operator[0] == ":" and self._take("["):
            low = self._value(f"{after}[")
            if not self._keyword("TO"):
                self._fail("TO")
            high = self._value("TO")
            if not self._take("]"):
                self._fail("']'")
            return _range(Range(name, None if low == "*" else low, None if high == "*" else high, position=begin))
        is_quoted = self.text[self._skip_blanks() : self.at + 1] == '"'
        value = self._value(after)
        if operator[0] == ":":
            return Exists(name, begin) if value == "*" and not is_quoted else Equals(name, (value,), begin)
        inclusive = operator[0].endswith("=")
        if operator[0][0] == ">":
            return _range(Range(name, value, None, (inclusive, True), begin))
        return _range(Range(name, None, value, (True, inclusive), begin))

    def _value(self, after: str) -> str:
        value = self._text(_VALUE)
        if value is None:
            self._fail(f"a value after {after!r}")
        return value

    def _text(self, plain: re.Pattern[str]) -> str | None:
        """Take a quoted text, or an unquoted one, or return None."""
        self._skip_blanks()
        if quoted := self._match(_QUOTED):
            return re.sub(r"\\(.)", r"\1", quoted[1], flags=re.DOTALL)
        if self.text.startswith('"', self.at):
            raise FilterError(f"filter: the quotes at position {self.at} are not closed")
        found = self._match(plain)
        return found and found[0]

    def _keyword(self, word: str) -> bool:
        """Take a word in capitals that ends there."""
        return self._match(re.compile(rf'{word}(?=[\s()"]|$)')) is not None

    def _take(self, mark: str) -> bool:
        return self._match(re.compile(re.escape(mark))) is not None

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Take what matches after blanks."""
        found = pattern.match(self.text, self._skip_blanks())
        self.at = found.end() if found else self.at
        return found

    def _skip_blanks(self) -> int:
        blanks = _BLANK.match(self.text, self.at)
        self.at = blanks.end() if blanks else self.at
        return self.at

    def _fail(self, expected: str) -> NoReturn:
        found = f", found {self.text[self.at : self.at + 20]!r}" if self.at < len(self.text) else ""
        raise FilterError(f"filter: expected {expected} at position {self.at}{found}")
