"""How a benchmark measures: the contestants take turns in one run, the best turn of each counts, memory at its peak."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any


def best_seconds(contestants: Mapping[str, Callable[[], Any]], repetitions: int = 5) -> dict[str, float]:
    """The best time of each contestant. One call of each goes before, so that compilation is left out."""
    for call in contestants.values():
        call()
    best = dict.fromkeys(contestants, float("inf"))
    for _ in range(repetitions):
        for name, call in contestants.items():
            started = perf_counter()
            call()
            best[name] = min(best[name], perf_counter() - started)
    return best


def peak_megabytes() -> float:
    """The largest resident size this process has had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)
