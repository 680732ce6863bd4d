"""The cost attack: clients that send the most expensive requests, from addresses of their own, while others search.

`python -m benchmarks.soak.attack ADDRESS` reads requests as a JSON line of [path, body or null], prints an empty line,
sends them over and over until its input ends, and prints the statuses of the answers as a JSON line. As many clients
more send the same and never read.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import sparserank as sr
from sparserank.versions import VersionRegistry

from .asks import Users, get, post
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


LONG_DOCUMENTS, LONG_CHARACTERS = 100, 120_000
VERSIONS = 8
"""Versions to compare, beside the first."""
NEVER_READS_S = 3.0
"""A client that never reads begins again after so long."""
Request = tuple[str, dict[str, Any] | None]


def prepare(model: Path) -> None:
    """Add long documents to a model, and versions to compare."""
    ranker, draw = sr.load(model), random.Random(0)
    words = sorted(ranker.lexical_.words)
    docs: dict[str, dict[str, Any]] = {}
    for number in range(LONG_DOCUMENTS):
        text = " ".join(draw.choices(words, k=LONG_CHARACTERS // 2))[:LONG_CHARACTERS]
        docs[f"long-{number}"] = {"text": text, "metadata": {"length": "long"}}
    ranker.add(docs).save(model)
    registry = VersionRegistry.open(model)
    for number, word in enumerate(draw.choices(words, k=VERSIONS), start=2):
        registry.add(registry.load().set_pair(ranker.model_.vocabulary.words[0], word, float(number)), f"{number}")


def attacks(users: Users) -> list[Request]:
    """The most expensive requests that are allowed, and some that are not."""
    searches = [{"query": " ".join(users.common_words(words)), **options} for words, options in ATTACKS]
    (word, *_), many = users.common_words(1), " ".join(users.common_words(90))
    searches.append({"query": word, "k": 100, "snippets": True, "filter": "length:long"})
    found: list[Request] = [("/search", body) for body in searches]
    found.append(("/explain", {"query": many, "document": "long-0"}))
    found.append(("/compare", {"query": many, "first": "long-0", "second": "long-1"}))
    found += [(f"/changes?version={number}&k=1000", None) for number in range(2, VERSIONS + 2)]
    return [*found, ("/changes?days=1&k=1000", None), ("/documents/long-0", None)]


async def attacked(service: Service, users: Users, rate: float, seconds: float, report: Reporter) -> dict[str, Any]:
    """Requests at one rate, alone and beside attackers."""
    async with Load(service.address, CONNECTIONS) as load:
        await load.run(users.asks(int(rate * min(3.0, seconds)), "attack-warm"), rate, seed=1)
        calm = figures(await load.run(users.asks(int(rate * seconds), "calm"), rate, seed=2))
        with _attackers(service.address, attacks(users)) as statuses:
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
def _attackers(address: str, requests: list[Request]) -> Iterator[dict[str, int]]:
    """Run the attackers as a process beside the clients; their statuses are known at the end."""
    statuses: dict[str, int] = {}
    command = [sys.executable, "-m", "benchmarks.soak.attack", address]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    process.stdin.write(json.dumps(requests) + "\n")
    process.stdin.flush()
    assert process.stdout is not None
    process.stdout.readline()  # they begin
    try:
        yield statuses
    finally:
        answer, _ = process.communicate("")
        statuses |= json.loads(answer)


async def _attack(host: str, port: int, number: int, requests: list[bytes], statuses: Counter[str]) -> None:
    """One client with an address of its own: a request as soon as the last one is answered."""
    while True:
        with suppress(OSError, asyncio.IncompleteReadError):  # the service ends a connection that reads too slowly
            reader, writer = await asyncio.open_connection(host, port, local_addr=_local(host, number))
            while True:
                for request in requests:
                    writer.write(request)
                    head = await reader.readuntil(b"\r\n\r\n")
                    lines = head.lower().split(b"\r\n")
                    length = next(line for line in lines if line.startswith(b"content-length:"))
                    await reader.readexactly(int(length.partition(b":")[2]))
                    status = head[9:12].decode()
                    statuses[status] += 1
                    if status == "429":
                        await asyncio.sleep(AGAIN)
        await asyncio.sleep(AGAIN)


async def _never_read(host: str, port: int, number: int, requests: list[bytes], statuses: Counter[str]) -> None:
    """One client that sends requests and reads nothing, over and over."""
    loop = asyncio.get_running_loop()
    while True:
        with socket.socket() as one, suppress(OSError):
            one.setblocking(False)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            if local := _local(host, number):
                one.bind(local)
            await loop.sock_connect(one, (host, port))
            await loop.sock_sendall(one, b"".join(requests[:5]))
            statuses["never read"] += 1
            await asyncio.sleep(NEVER_READS_S)
        await asyncio.sleep(AGAIN)


def _local(host: str, number: int) -> tuple[str, int] | None:
    """Return the address of a client."""
    return (f"127.0.0.{number + 2}", 0) if host == "127.0.0.1" else None


async def _main() -> None:
    host, _, port = sys.argv[1].removeprefix("http://").partition(":")
    given = json.loads(sys.stdin.readline())
    requests = [get(path) if body is None else post(path, body) for path, body in given]
    statuses: Counter[str] = Counter()
    clients = [
        *(_attack(host, int(port), n, requests, statuses) for n in range(ATTACKERS)),
        *(_never_read(host, int(port), n, requests, statuses) for n in range(ATTACKERS, 2 * ATTACKERS)),
    ]
    tasks = [asyncio.create_task(client) for client in clients]
    print(flush=True)
    await asyncio.to_thread(sys.stdin.read)
    for task in tasks:
        task.cancel()
    print(json.dumps(dict(sorted(statuses.items()))))


if __name__ == "__main__":
    asyncio.run(_main())
