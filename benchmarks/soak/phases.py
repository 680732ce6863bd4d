"""The phases of a soak, each with its limits and its measurements."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from .asks import Users
from .load import Load, Seen
from .machine import Given
from .service import Service
from .stored import faults

CONNECTIONS = 32
MAX_P99_MS = 50.0
"""Milliseconds that 99 of 100 requests may take at most."""
WARM = 3.0
"""Seconds of load before anything counts."""
Reporter = Callable[[str], None]


class Target(Protocol):
    """A service under load, ours or a bare one."""

    address: str
    command: str

    def pids(self) -> list[int]: ...


async def steady(
    service: Target, users: Users, rate: float, seconds: float, phase: str = "steady", warm_up: float = WARM
) -> dict[str, Any]:
    """Requests at one rate."""
    async with Load(service.address, CONNECTIONS) as load:
        warm = await load.run(users.asks(int(rate * warm_up), f"{phase}-warm"), rate, seed=1)
        with Given(service.pids) as given:
            seen = await load.run(users.asks(int(rate * seconds), phase), rate, seed=2)
    seen.errors += warm.errors
    return {"phase": phase, "words": service.command, **figures(seen), "cores": given.cores, "held": not seen.errors}


async def highest(
    service: Target, users: Users, start: float, seconds: float, steps: int, report: Reporter, warm_up: float = WARM
) -> dict[str, Any]:
    """The highest rate that is held: up by a third until one is not, then half the way, some times."""
    tried, low, high, rate = [], 0.0, 0.0, start
    for number in range(steps):
        seen = await steady(service, users, rate, seconds, f"rate-{number}", warm_up)
        held = not seen["errors"] and seen["all"]["p99"] < MAX_P99_MS
        tried.append({"rate": round(rate), "held": held, **{k: seen[k] for k in ("all", "errors", "lag", "cores")}})
        report(f"  {rate:5.0f} requests/s: p99 {seen['all']['p99']:7.1f} ms, {'held' if held else 'not held'}")
        low, high = (rate, high) if held else (low, rate)
        if high and high - low < 0.08 * high:
            break
        rate = 4 / 3 * rate if not high else (low + high) / 2
    answered = any(not one["errors"] for one in tried)  # how late they were is a figure, no fault
    return {"phase": "highest rate", "words": service.command, "highest": round(low), "tried": tried, "held": answered}


async def killed(
    service: Service, users: Users, rate: float, seconds: float, kills: int, report: Reporter
) -> dict[str, Any]:
    """`kill -9` of a worker and of the whole service in turn, under load; clients send again what was not answered."""
    acknowledged: dict[str, int] = {}
    wrong: list[str] = []
    retried, restarts, answered, draw = 0, [], 0, random.Random(7)
    async with Load(service.address, CONNECTIONS, retry=True) as load:
        for turn in range(kills):
            asks = users.asks(int(rate * seconds), f"kill-{turn}")
            running = asyncio.create_task(load.run(asks, rate, seed=turn, patience=120.0))
            await asyncio.sleep(draw.uniform(0.25, 0.6) * seconds)
            if turn % 2 == 0:
                service.kill_worker(turn // 2)
            else:
                service.kill()
                known = {**acknowledged, **load.seen.acknowledged}
                wrong += await asyncio.to_thread(faults, service.model, service.database, users.feedback, known)
                restarts.append(await asyncio.to_thread(service.start))
            seen = await running
            acknowledged |= seen.acknowledged
            retried, answered = retried + seen.retried, answered + sum(map(len, seen.milliseconds.values()))
            wrong += seen.errors
            wrong += await asyncio.to_thread(faults, service.model, service.database, users.feedback, acknowledged)
            report(f"  kill {turn + 1} of {'a worker' if turn % 2 == 0 else 'all'}: {len(acknowledged)} acknowledged, "
                 f"{seen.retried} sent again, {len(wrong)} faults")  # fmt: skip
            await asyncio.to_thread(service.until_ready)
    return {
        "phase": "kill -9",
        "words": service.command,
        "kills": {"worker": (kills + 1) // 2, "service": kills // 2},
        "answered": answered,
        "acknowledged": len(acknowledged),
        "acknowledged_when_sent_again": sum(status == 200 for status in acknowledged.values()),
        "sent_again": retried,
        "restart_seconds": round(max(restarts, default=0.0), 2),
        "faults": wrong[:20],
        "held": not wrong,
    }


async def learning(
    service: Service, users: Users, rate: float, seconds: float, most: int, report: Reporter
) -> dict[str, Any]:
    """Feedback that teaches, until a new version has answered; not one request may fail meanwhile."""
    whole = Seen(rate)
    async with Load(service.address, CONNECTIONS) as load:
        with Given(service.pids) as given:
            for turn in range(most):
                seen = await load.run(users.asks(int(rate * seconds), f"learn-{turn}", teaching=30), rate, seed=turn)
                _join(whole, seen)
                report(f"  {whole.seconds:4.0f} s: answers by version {dict(sorted(whole.versions.items()))}")
                if turn > 0 and len(seen.versions) == 1 and len(whole.versions) > 1:
                    break
    model = await asyncio.to_thread(service.get, "/model")
    return {
        "phase": "learning", "words": service.command, **figures(whole), "cores": given.cores,
        "versions": [{k: one[k] for k in ("number", "why")} for one in model["versions"]],
        "last_round": {k: model["learner"]["last"][k] for k in ("outcome", "said", "seconds", "before", "after")},
        "answers_by_version": {str(k): v for k, v in sorted(whole.versions.items())},
        "held": not whole.errors and len(whole.versions) > 1,
    }  # fmt: skip


def figures(seen: Seen) -> dict[str, Any]:
    """Times by kind, and errors."""
    every = [took for took in seen.milliseconds.values() for took in took]
    return {
        "rate": round(seen.rate, 1),
        "seconds": round(seen.seconds, 1),
        "answered": len(every),
        "errors": len(seen.errors),
        "first_errors": seen.errors[:5],
        "all": _times(every),
        "kinds": {kind: _times(took) for kind, took in sorted(seen.milliseconds.items())},
        "lag": _times(seen.lag),
    }


def _times(milliseconds: list[float]) -> dict[str, float]:
    if not milliseconds:
        return {"n": 0, "p50": 0.0, "p90": 0.0, "p99": float("inf"), "max": float("inf")}
    p50, p90, p99, most = np.percentile(milliseconds, [50, 90, 99, 100]).round(2)
    return {"n": len(milliseconds), "p50": float(p50), "p90": float(p90), "p99": float(p99), "max": float(most)}


def _join(whole: Seen, seen: Seen) -> None:
    whole.seconds += seen.seconds
    whole.errors += seen.errors
    whole.lag += seen.lag
    whole.acknowledged |= seen.acknowledged
    for kind, took in seen.milliseconds.items():
        whole.milliseconds.setdefault(kind, []).extend(took)
    for version, n in seen.versions.items():
        whole.versions[version] = whole.versions.get(version, 0) + n
