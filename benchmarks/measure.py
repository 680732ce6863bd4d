"""Measurements of benchmarks: programs take turns in one run, and the best time of each counts; peak memory."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable, Mapping
from threading import Thread
from time import perf_counter, sleep
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


class Growth:
    """How much the resident size grows, at most, while the block runs; looked at every few milliseconds."""

    def __enter__(self) -> Growth:
        import psutil

        self._process, self._running = psutil.Process(), True
        self._before = self._most = self._process.memory_info().rss
        self._watcher = Thread(target=self._watch, daemon=True)
        self._watcher.start()
        return self

    def _watch(self) -> None:
        while self._running:
            self._most = max(self._most, self._process.memory_info().rss)
            sleep(0.003)

    def __exit__(self, *_: object) -> None:
        self._running = False
        self._watcher.join()

    @property
    def megabytes(self) -> float:
        return round((self._most - self._before) / 1e6, 1)


def in_new_process(module: str, function: str, *arguments: Any) -> Any:
    """The JSON result of a function of a benchmark in a process of its own, so that its peak memory is its own."""
    call = f"benchmarks.{module}.{function}({', '.join(map(repr, arguments))})"
    code = f"import json, logging, benchmarks.{module}; logging.disable(); print(json.dumps({call}))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(f"{call}: {result.stderr.strip().splitlines()[-1]}")
    return json.loads(result.stdout.splitlines()[-1])


def reverses_of(collection: Any, qrels: Any, training: str = "train") -> Any:
    """The judgments whose reverse is in training; None if no query is a document."""
    from sparserank.evaluation import Reverses

    return Reverses.in_collection(collection, qrels, training)


def without_reverses(reverses: Any, qrels: Any, runs: Mapping[str, Any], measure: str = "nDCG@10") -> dict[str, float]:
    """The share of judgments whose reverse is in training, and each run's figure without them; {} where none is."""
    if reverses is None:
        return {}
    found = {name: reverses.evaluate(run, qrels, measure) for name, run in runs.items()}
    values = {f"{name}_without": round(one[measure].value, 4) for name, one in found.items() if one is not None}
    return {"reverse_share": round(reverses.share, 4)} | values


def peak_megabytes() -> float:
    """The largest resident size this process has had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)
