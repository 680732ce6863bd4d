"""The memory of the workers while they answer many requests, as fast as they can."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from .asks import Users
from .load import Load
from .phases import CONNECTIONS, Reporter
from .service import Service

PARTS = 20
MAX_GROWTH = 0.1
"""From one tenth of the requests on; a short run has not filled its caches by then."""


async def memory(service: Service, users: Users, requests: int, report: Reporter) -> dict[str, Any]:
    """The whole mix without a pause; the private memory of all processes after each part of it."""
    megabytes, seconds, errors = [], 0.0, list[str]()
    async with Load(service.address, CONNECTIONS) as load:
        for part in range(PARTS):
            asks = users.asks(requests // PARTS, f"memory-{part}")
            seen = await load.run(asks, rate=1e9, seed=part, patience=600.0)
            seconds, errors = seconds + seen.seconds, errors + seen.errors
            megabytes.append(round(sum(map(private_bytes, service.pids())) / 1e6, 1))
            report(f"  {(part + 1) * len(asks):8d} requests: {megabytes[-1]:.1f} MB")
    early = megabytes[PARTS // 10 - 1]
    growth = round(megabytes[-1] / early - 1.0, 3)
    return {
        "phase": "memory", "words": service.command, "requests": PARTS * (requests // PARTS),
        "requests_per_s": round(PARTS * (requests // PARTS) / seconds), "megabytes": megabytes, "growth": growth,
        "errors": len(errors), "first_errors": errors[:5], "held": not errors,
    }  # fmt: skip


def private_bytes(pid: int) -> int:
    """Return the memory of a process without mapped files."""
    try:
        found = re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return 1024 * int(found[1]) if found else 0
