"""What commands print: one JSON object, or text for people; progress on a terminal, silence in a pipe."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any


def print_json(content: Any) -> None:
    """One object on stdout; numbers that JSON does not know are refused rather than written."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:  # half of a surrogate pair, or a terminal that knows ASCII only
        text = json.dumps(content, allow_nan=False)
    print(text)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> None:
    """A table; columns whose numbers are in `right` are set flush right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() else 110, soft_wrap=False, highlight=False)
    if title:
        console.print(Text(title, style="bold"))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, name in enumerate(columns):
        table.add_column(name, justify="right" if number in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


@contextmanager
def working(message: str) -> Iterator[None]:
    """Show that long work is going on, on a terminal's stderr; in a pipe, say nothing."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(message):
        yield


@contextmanager
def telling() -> Iterator[Callable[[str], None]]:
    """What is going on, on a terminal's stderr; in a pipe, nothing."""
    if not sys.stderr.isatty():
        yield lambda message: None
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status("starting") as status:
        yield lambda message: status.update(escape(message))
