"""The machine, and the processor time that it gave to a run."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .service import TICKS, cpu_seconds


def about() -> dict[str, Any]:
    """The machine in a few words."""
    names = [line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    return {
        "processor": names[0] if names else platform.processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
    }


class Given:
    """Cores used while the block runs: by the service, by the clients (this process), by others, and by nobody."""

    def __init__(self, pids: Callable[[], list[int]]) -> None:
        self._pids = pids

    def __enter__(self) -> Given:
        self._began, self._before = time.monotonic(), (self._service(), time.process_time(), *_busy())
        return self

    def __exit__(self, *_: object) -> None:
        seconds = time.monotonic() - self._began
        after = (self._service(), time.process_time(), *_busy())
        service, clients, busy, stolen = ((b - a) / seconds for a, b in zip(self._before, after, strict=True))
        self.cores = {
            "service": round(service, 2),
            "clients": round(clients, 2),
            "others": round(max(0.0, busy - service - clients), 2),
            "stolen": round(stolen, 2),
        }

    def _service(self) -> float:
        return sum(map(cpu_seconds, self._pids()))


def _busy() -> tuple[float, float]:
    """Seconds that all cores were busy, and that they were not given to this machine."""
    fields = [int(field) for field in _lines("/proc/stat")[0].split()[1:]]
    return (sum(fields[:3]) + sum(fields[5:7])) / TICKS, fields[7] / TICKS


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()
