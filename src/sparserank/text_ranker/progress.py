"""Progress messages of a training: "phase" when a phase starts, "phase: 40 %, 2 min left" while it runs; and notes."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

Callback = Callable[[str], None]
Report = Callable[[float], None]
"""Called with the fraction of the work that is done."""


class Note(str):
    """A message that is no phase: a terminal keeps it on a line of its own, and a pipe has all of it."""

    is_note = True


class Progress:
    """One phase of the work; the first message is sent when it starts."""

    def __init__(self, callback: Callback, phase: str, interval_s: float = 1.0) -> None:
        self._callback, self._phase, self._interval_s = callback, phase, interval_s
        self._started = self._last = perf_counter()
        callback(phase)

    def __call__(self, fraction: float, detail: str = "") -> None:
        """Report the fraction of the phase that is done, at most once an interval."""
        now = perf_counter()
        if now - self._last >= self._interval_s and 0.0 < fraction <= 1.0:
            self._last = now
            left = (now - self._started) * (1.0 - fraction) / fraction
            parts = [detail] * bool(detail) + [f"{100 * fraction:.0f} %", f"{format_seconds(left)} left"]
            self._callback(f"{self._phase}: {', '.join(parts)}")


def silent(fraction: float) -> None:
    """The report if the caller gives none."""


def part_of(report: Report, begin: float, end: float) -> Report:
    """The report of one part of the work.

    >>> part_of(print, 0.5, 1.0)(0.5)
    0.75
    """
    return lambda fraction: report(begin + (end - begin) * fraction)


def format_seconds(seconds: float) -> str:
    """A duration to two digits.

    >>> format_seconds(42.0), format_seconds(200.0), format_seconds(9000.0)
    ('42 s', '3 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
