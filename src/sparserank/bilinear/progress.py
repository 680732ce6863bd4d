"""A progress bar with steps, density, violations and memory, on a terminal only.

Callbacks read a training and change nothing, so W has the same bits with and without them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, Self, TypeAlias

from ..optim.sparse_sgd import AnyTraining

Callback: TypeAlias = Callable[[AnyTraining], None]
"""callback(training): called every few batches, when W has settled."""

UPDATE_INTERVAL_S = 0.1
"""Time between two updates: counting the entries of a large W is slow."""


class TrainingBar:
    """A progress bar on stderr, which is a callback of a training; steps before `first` are not shown."""

    def __init__(self, label: str, total: int, first: int = 0, *, leave: bool = True) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
        from rich.table import Column

        whole = Column(no_wrap=True)
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}", markup=False, table_column=whole),
            BarColumn(bar_width=None, table_column=Column(ratio=1, min_width=4, max_width=40)),
            TextColumn("{task.fields[numbers]}", markup=False, table_column=whole),
            TimeElapsedColumn(table_column=whole),
            console=console,
            expand=True,
        )
        self._first, self._total, self._heading = first, total, ""
        settings: dict[str, Any] = {"refresh_per_second": 5, "transient": not leave, "redirect_stdout": False}
        self._live = Live(get_renderable=self._shown, console=console, **settings)
        self._task = self._progress.add_task(label, total=total - first, numbers="")
        self._looked, self._steps, self._seen, self._violated = 0.0, 0, (0, 0), 0.0

    def _shown(self) -> Any:
        from rich.console import Group
        from rich.text import Text

        bar = self._progress.get_renderable()
        return Group(Text(self._heading), bar) if self._heading else bar

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def set_heading(self, heading: str) -> None:
        """Show a message above the bar."""
        self._heading = heading

    def __call__(self, training: AnyTraining) -> None:
        """Update the bar, unless that was done just now."""
        if training.steps < self._total and monotonic() - self._looked < UPDATE_INTERVAL_S:
            return
        self._looked = monotonic()
        if training.steps < self._steps:  # another training than before
            self._progress.reset(self._task)
            self._seen = (0, 0)
        self._steps = training.steps
        numbers = "  ".join(self._numbers(training))
        self._progress.update(self._task, completed=training.steps - self._first, numbers=numbers)

    def _numbers(self, training: AnyTraining) -> Iterator[str]:
        """Steps, density, violations since the last update, and memory."""
        yield f"{training.steps - self._first:,}/{self._total - self._first:,} steps"
        yield f"{100 * training.nonzeros / (training.shape[0] * training.shape[1]):.3g}% dense"
        now = (training.curve.total_steps, training.curve.total_violations)
        steps, violations = (after - before for after, before in zip(now, self._seen, strict=True))
        if steps > 0:
            self._seen, self._violated = now, violations / steps
        yield f"{self._violated:.0%} violated"
        megabytes = training.nbytes / 1e6
        yield f"{megabytes:,.0f} MB" if megabytes >= 10 else f"{megabytes:.2g} MB"


@contextmanager
def training_bar(verbose: bool, label: str, total: int, first: int = 0) -> Iterator[Callback | None]:
    """A progress bar if `verbose` and stderr is a terminal, else None."""
    if verbose and total > first and sys.stderr.isatty():
        with TrainingBar(label, total, first) as bar:
            yield bar
    else:
        yield None


def combine(*callbacks: Callback | None) -> Any:
    """One callback that calls all that are not None; None if there are none."""
    present = [callback for callback in callbacks if callback is not None]
    if len(present) < 2:
        return present[0] if present else None

    def call_all(training: AnyTraining) -> None:
        for callback in present:
            callback(training)

    return call_all
