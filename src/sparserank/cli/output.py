"""What commands print: one JSON object or text on stdout; progress on stderr.

On a terminal progress is a status line that changes. In a pipe each phase is one line, however long it takes. Notes
are lines of their own in both.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Timer
from typing import Any

HOLD_S = 1.0


def print_json(content: Any) -> None:
    """Print one JSON object; NaN and infinities raise an error."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:  # a lone surrogate, or an ASCII terminal
        text = json.dumps(content, allow_nan=False)
    print(text)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> None:
    """Print a table; the columns with the numbers in `right` are right-aligned."""
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
def phase(message: str) -> Iterator[None]:
    """Show one phase of the work while the block runs."""
    with progress() as report:
        report(message)
        yield


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Yield a callback for notes and messages "phase" or "phase: detail"; in a pipe, each new phase is a line."""
    if not sys.stderr.isatty():
        yield _phase_lines.report
        return
    from rich.console import Console
    from rich.markup import escape

    console = Console(stderr=True, highlight=False)
    with console.status("starting") as status:

        def report(message: str) -> None:
            if _is_note(message):
                console.print(escape(message), soft_wrap=True)
            else:
                status.update(escape(message))

        yield report


def _is_note(message: str) -> bool:
    """Whether a message is a `text_ranker.progress.Note`, whose import takes longer than some commands."""
    return bool(getattr(message, "is_note", False))


@contextmanager
def without_training_warnings() -> Iterator[None]:
    """Keep the ranker from logging why it has no pairs; the command prints it."""
    log = logging.getLogger("sparserank.text_ranker.training")
    log.addFilter(_drop)
    try:
        yield
    finally:
        log.removeFilter(_drop)


def _drop(record: logging.LogRecord) -> bool:
    return False


class PhaseLines:
    """Prints one line on stderr for each phase.

    Lines wait for the first second of the work. So a mistake that is found at once is the only line on stderr.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._last = ""
        self._timer = Timer(HOLD_S, self.print)
        self._timer.daemon = True

    def report(self, message: str) -> None:
        """Add a note or the line of a new phase; a message is "phase" or "phase: detail"."""
        if self._timer.ident is None:
            self._timer.start()
        name = message.partition(": ")[0]
        if _is_note(message):
            self._lines.append(message)
        elif name != self._last:
            self._last = name
            self._lines.append(name)
        if not self._timer.is_alive():
            self.print()

    def print(self) -> None:
        """Print the lines that wait."""
        with suppress(OSError):  # a full disk or a closed stream must not end the work
            while self._lines:
                print(self._lines.pop(0), file=sys.stderr, flush=True)

    def end(self, succeeded: bool) -> None:
        """Print the lines that wait, or drop them if the command failed."""
        self._timer.cancel()
        if succeeded:
            self.print()
        self._lines.clear()


_phase_lines = PhaseLines()


def new_phase_lines() -> PhaseLines:
    """Start the lines of another command."""
    global _phase_lines
    _phase_lines = PhaseLines()
    return _phase_lines
