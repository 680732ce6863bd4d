"""What the reproductions share: settings chosen on validation data, and tables of the rows that result.

Every reproduction is data sets × methods × a grid of settings. Each combination is one row, a plain dictionary; a table
selects keys of the rows.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from time import perf_counter
from typing import Any, NamedTuple

from sklearn.model_selection import ParameterGrid

from ..evaluation.report import Table

Row = Mapping[str, Any]
Settings = Mapping[str, Any]
Progress = Callable[[str], None]
"""Called with a line of text at every phase."""
Column = tuple[str, "str | Callable[[Row], Any]", str]
"""The heading of a column, a key of the row or a function of it, and a format."""
METHOD: Column = ("method", "method", "")


class Choice(NamedTuple):
    """The best settings, what was fitted with them, its value on validation data, and the seconds of the fit."""

    settings: dict[str, Any]
    fitted: Any
    value: float
    seconds: float


def parameter_grid(**values: Sequence[Any]) -> list[dict[str, Any]]:
    """Every combination of the values.

    >>> parameter_grid(C=(1, 2), average=(True,))
    [{'C': 1, 'average': True}, {'C': 2, 'average': True}]
    """
    return list(ParameterGrid(values))


def choose(
    grid: Sequence[Settings], fit: Callable[..., Any], value: Callable[[Any], float], report: Progress | None = None
) -> Choice:
    """Fit every setting and return the one with the largest value; the first one on ties.

    >>> choose([{"x": 1}, {"x": 3}], lambda x: x, lambda fitted: -abs(fitted - 2.5))[:3]
    ({'x': 3}, 3, -0.5)
    """
    best: Choice | None = None
    for number, settings in enumerate(grid, start=1):
        if report is not None:
            report(f"{dict(settings)} ({number} of {len(grid)})")
        started = perf_counter()
        fitted = fit(**settings)
        seconds = perf_counter() - started
        choice = Choice(dict(settings), fitted, value(fitted), seconds)
        if best is None or choice.value > best.value:
            best = choice
    assert best is not None
    return best


@cache
def read_toml(name: str) -> dict[str, Any]:
    """A file of this package."""
    return tomllib.loads(files("sparserank.experiments").joinpath(name).read_text(encoding="utf-8"))


def note(section: str, name: str, **values: Any) -> str:
    """A note of `notes.toml` with these values.

    >>> note("letor", "figure_width", many=100, closed_lambda=0.03)
    'E_RMS against the width of the basis: closed form, M = 100, λ = 0.03.'
    """
    text: str = read_toml("notes.toml")[section][name]
    return text.format(**values)


def table_of(rows: Iterable[Row], *columns: Column) -> Table:
    """One line for each row; None is a dash.

    >>> table_of([{"method": "a", "map": 0.5}], ("method", "method", ""), ("MAP", "map", ".3f")).rows
    (('a', '0.500'),)
    """

    def cell(row: Row, key: str | Callable[[Row], Any], spec: str) -> str:
        value = key(row) if callable(key) else row[key]
        return "–" if value is None else format(value, spec)

    head = tuple(heading for heading, _, _ in columns)
    return Table(head, tuple(tuple(cell(row, key, spec) for _, key, spec in columns) for row in rows))
