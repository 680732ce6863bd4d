"""The cost attack: clients that send the most expensive searches, from addresses of their own, while others search.

`python -m benchmarks.soak.attack ADDRESS` reads the bodies of requests as a JSON line, sends them over and over until
its input ends, and prints the statuses of the answers as a JSON line.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .asks import Users, post
from .load import AGAIN, Load
from .phases import CONNECTIONS, Reporter, figures
from .service import Service

ATTACKERS = 6
ATTACKS: tuple[tuple[int, dict[str, Any]], ...] = (
    (90, {"k": 100, "explain": True}),
    (90, {"k": 4, "explain": True, "pairs": 20, "total": True, "lexical": True}),
    (40, {"k": 10, "explain": True, "pairs": 20, "total": True}),
    (20, {"k": 20, "snippets": True, "typos": True, "prefix": True, "total": True}),
    (8, {"k": 50, "explain": True, "pairs": 20}),
)
"""Common words in a query, and its options: the search that once took 2 s, and some that are nearest to the limits."""


async def attacked(service: Service, users: Users, rate: float, seconds: float, report: Reporter) -> dict[str, Any]:
    """Requests at one rate, alone and beside attackers."""
    bodies = [{"query": " ".join(users.common_words(words)), **options} for words, options in ATTACKS]
    async with Load(service.address, CONNECTIONS) as load:
        await load.run(users.asks(int(rate * min(3.0, seconds)), "attack-warm"), rate, seed=1)
        calm = figures(await load.run(users.asks(int(rate * seconds), "calm"), rate, seed=2))
        with _attackers(service.address, bodies) as statuses:
            await asyncio.sleep(1.0)
            under = figures(await load.run(users.asks(int(rate * seconds), "attack"), rate, seed=2))
    factor = round(under["all"]["p99"] / calm["all"]["p99"], 2)
    report(
        f"  p99 {calm['all']['p99']:.1f} ms, under attack {under['all']['p99']:.1f} ms; the attackers got {statuses}"
    )
    return {
        "phase": "cost attack", "words": service.command, **under, "before": calm["all"], "p99_factor": factor,
        "attackers": dict(statuses), "held": not under["errors"] and not calm["errors"],
    }  # fmt: skip


@contextmanager
def _attackers(address: str, bodies: list[dict[str, Any]]) -> Iterator[dict[str, int]]:
    """Run the attackers as a process beside the clients; their statuses are known at the end."""
    statuses: dict[str, int] = {}
    command = [sys.executable, "-m", "benchmarks.soak.attack", address]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    process.stdin.write(json.dumps(bodies) + "\n")
    process.stdin.flush()
    try:
        yield statuses
    finally:
        answer, _ = process.communicate("")
        statuses |= json.loads(answer)


async def _attack(host: str, port: int, number: int, requests: list[bytes], statuses: Counter[int]) -> None:
    """One client with an address of its own: a request as soon as the last one is answered."""
    local = (f"127.0.0.{number + 2}", 0) if host == "127.0.0.1" else None
    reader, writer = await asyncio.open_connection(host, port, local_addr=local)
    while True:
        for request in requests:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.partition(b":")[2]))
            status = int(head[9:12])
            statuses[status] += 1
            if status == 429:
                await asyncio.sleep(AGAIN)


async def _main() -> None:
    host, _, port = sys.argv[1].removeprefix("http://").partition(":")
    requests = [post("/search", body) for body in json.loads(sys.stdin.readline())]
    statuses: Counter[int] = Counter()
    tasks = [asyncio.create_task(_attack(host, int(port), n, requests, statuses)) for n in range(ATTACKERS)]
    await asyncio.to_thread(sys.stdin.read)
    for task in tasks:
        task.cancel()
    print(json.dumps({str(status): n for status, n in sorted(statuses.items())}))


if __name__ == "__main__":
    asyncio.run(_main())
