"""The limits of a soak, each with the figure of a run and whether it holds."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .memory import MAX_GROWTH
from .phases import MAX_P99_MS

MIN_HIGHEST_RATE = 800.0
MAX_ATTACK_FACTOR = 2.0
MAX_LEARNED_MS, MAX_PAGE_MS = 1.0, 2.5
"""CPU time of one request."""
LOADS = {
    "steady": "p99 in ms without learning", "learning on": "p99 in ms with learning",
    "PostgreSQL": "p99 in ms with PostgreSQL and learning",
}  # fmt: skip


class Limit(NamedTuple):
    """A limit: what is measured, `at most` or `at least` how much, what a run measured, and whether it holds."""

    name: str
    bound: str
    limit: float
    measured: float

    @property
    def holds(self) -> bool:
        """Whether the figure is within the limit."""
        compare = operator.le if self.bound == "at most" else operator.ge
        return bool(compare(self.measured, self.limit))

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "DOES NOT HOLD"
        return f"{self.name}: {self.measured:,g}, {self.bound} {self.limit:,g}: {verdict}"


def limits(phases: Sequence[Mapping[str, Any]]) -> Iterator[Limit]:
    """Yield the limits of the phases that have run."""
    by_name = {phase["name"]: phase for phase in phases}
    for name, title in LOADS.items():
        if name in by_name:
            load = by_name[name]
            yield Limit(f"{title} at {load['rate']:g} requests/s", "at most", MAX_P99_MS, load["all"]["p99"])
    if (found := by_name.get("highest rate")) is not None:
        title = f"requests/s with a p99 below {MAX_P99_MS:g} ms"
        yield Limit(title, "at least", MIN_HIGHEST_RATE, found["highest"])
    if (found := by_name.get("cost attack")) is not None:
        title = "p99 under the cost attack as a multiple of that before"
        yield Limit(title, "at most", MAX_ATTACK_FACTOR, found["p99_factor"])
    if (found := by_name.get("cost")) is not None:
        for kind, value in found["milliseconds"].items():
            if kind.startswith(("learned search", "search as the page")):
                most = MAX_LEARNED_MS if kind.startswith("learned") else MAX_PAGE_MS
                yield Limit(f"CPU ms of one request, {kind}", "at most", most, value)
    if (found := by_name.get("memory")) is not None:
        title = f"growth of the memory over the last nine tenths of {found['requests']:,} requests"
        yield Limit(title, "at most", MAX_GROWTH, found["growth"])
    for name in ("kill -9", "kill -9, PostgreSQL"):
        if (found := by_name.get(name)) is not None:
            title = f"feedback lost or damaged, and failed requests, by {name} {sum(found['kills'].values())} times"
            yield Limit(title, "at most", 0, len(found["faults"]))
