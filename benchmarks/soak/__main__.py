"""`make soak`: the service under load and faults; a table, one line of JSON at the end, and reports/soak.json.

Two workers of `sparserank serve` with clients on the same machine over loopback connections, beside two of a bare
uvicorn + bm25s service; each phase prints how it was started. With SQLite and, where a server is installed, PostgreSQL.
The results are written after each phase. The exit code is 1 if anything failed or was lost, or if a limit does not
hold; with --quick, limits and the cost attack do not count.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import sparserank as sr
from sparserank.data.files import write_bytes
from sparserank.data.open import open_collection
from sparserank.data.records import Collection
from sparserank.service.config import ServiceConfig

from ..markdown import write_section
from . import phases
from .asks import Users
from .attack import ATTACKERS, attacked, prepare
from .bare import Bare
from .cost import cpu_cost
from .limits import limits
from .machine import about
from .memory import memory
from .postgres import missing, new_database, postgresql
from .report import markdown, table
from .service import Service

HELD_OUT = "dev"


def report(text: str) -> None:
    print(text, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--data", default="pydocs", help="a known collection, or a BEIR folder with a split 'dev'")
    parser.add_argument("--model", type=Path, help="a model of it; unless given, one is trained first")
    parser.add_argument("--rate", type=float, default=300.0, help="requests per second")
    parser.add_argument("--seconds", type=float, default=60.0, help="of the first phase")
    parser.add_argument("--requests", type=int, default=1_000_000, help="of the phase that watches the memory")
    parser.add_argument("--quick", action="store_true", help="short phases, two kills: to see that it runs")
    parser.add_argument("--output", type=Path, default=Path("reports/soak.json"))
    parser.add_argument("--markdown", type=Path, help="the page whose section 'Soak' to write; not with --quick")
    given = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sparserank-soak-") as folder:
        result = run(given, Path(folder))
    result["minutes"] = round((time.monotonic() - began) / 60, 1)
    for line in table(result):
        report(line)
    write(given.output, result)
    if given.markdown is not None and not given.quick:
        write_section(given.markdown, markdown(result))
    report(f"\n{given.output}")
    report(json.dumps(result))
    judged = [phase for phase in result["phases"] if not (given.quick and phase["name"] == "cost attack")]
    too_much = not given.quick and not all(limit.holds for limit in limits(result["phases"]))
    if too_much or not all(phase["held"] for phase in judged):
        raise SystemExit(1)


def write(output: Path, result: dict[str, Any]) -> None:
    output.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(output, (json.dumps(result, indent=2) + "\n").encode())


def run(given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """All phases; each has the model anew, and no feedback."""
    collection = open_collection(given.data)
    trained = given.model or _trained(collection, folder)
    quick, rate, done = given.quick, given.rate, list[dict[str, Any]]()
    result = {"machine": about(), "data": collection.name, "documents": len(collection.documents), "workers": 2,
              "phases": done}  # fmt: skip
    seconds, warm_up = (1.0, 0.5) if quick else (given.seconds, phases.WARM)
    learn = ("--held-out", given.data, "--held-out-split", HELD_OUT, "--learn-every")

    def users(seed: int) -> Users:
        return Users(trained, collection, HELD_OUT, seed)

    def add(name: str, found: Any, **more: Any) -> None:
        done.append({"name": name, **(asyncio.run(found) if asyncio.iscoroutine(found) else found), **more})
        write(given.output, result)

    def started(
        name: str, *words: str, prepare: Callable[[Path], None] | None = None, **options: Any
    ) -> AbstractContextManager[Service]:
        place = folder / name
        place.mkdir()
        for ending in ("", ".index"):
            shutil.copy(f"{trained}{ending}", f"{place}/model.safetensors{ending}")
        if prepare is not None:
            prepare(place / "model.safetensors")
        return _started(Service(place / "model.safetensors", *words, **options))

    report(f"{rate:.0f} requests/s over {phases.CONNECTIONS} connections")
    with started("steady", "--no-learn") as service:
        add("steady", phases.steady(service, users(1), rate, seconds, warm_up=warm_up))
    with Bare(given.data, workers=2) as bare:
        add("bare", phases.steady(bare, users(1), rate, seconds, warm_up=warm_up))
    with started("learning-on", *learn, "30") as service:
        add("learning on", phases.steady(service, users(1), rate, seconds, warm_up=warm_up))

    report("\nthe highest rate that is held")
    start, step, steps = (rate / 2, 1.0, 1) if quick else (rate * 4 / 3, 10.0, 9)
    with started("highest", "--no-learn") as service:
        add("highest rate", phases.highest(service, users(2), start, step, steps, report, warm_up))
    with Bare(given.data, workers=2) as bare:
        add("highest rate, bare", phases.highest(bare, users(2), start, step, steps, report, warm_up))

    report("\nCPU of one request, beside bare uvicorn + bm25s")
    add("cost", cpu_cost(collection, given.data, trained, folder, users(5).queries(60 if quick else 1000), report))

    report(f"\n{ATTACKERS} expensive clients and {ATTACKERS} that never read, beside {rate / 3:.0f} requests/s")
    with started("attacked", "--no-learn", prepare=prepare, rate=ServiceConfig.rate) as service:
        add("cost attack", attacked(service, users(6), rate / 3, 1.0 if quick else 20.0, report))

    report("\nkill -9 of a worker and of the whole service, in turn")
    kill_seconds, kills = (2.0, 2) if quick else (6.0, 10)
    with started("killed", *learn, "5") as service:
        add("kill -9", phases.killed(service, users(3), rate, kill_seconds, kills, report))
    if why := missing():
        report(f"\nno phase with PostgreSQL: {why}")
    else:
        with postgresql() as url:
            with started("postgresql", *learn, "30", database=new_database(url, "steady")) as service:
                add("PostgreSQL", phases.steady(service, users(1), rate, seconds, warm_up=warm_up))
            with started("postgresql-killed", *learn, "5", database=new_database(url, "killed")) as service:
                add("kill -9, PostgreSQL", phases.killed(service, users(3), rate, kill_seconds, kills, report))

    report("\nlearning meanwhile")
    with started("learning", *learn, "1" if quick else "2") as service:
        few, short, most = (rate / 6, 2.0, 40) if quick else (rate, 10.0, 12)
        add("new model", phases.learning(service, users(4), few, short, most, report))

    report("\nmemory")
    with started("memory", "--no-learn") as service:
        add("memory", memory(service, users(7), 400 if quick else given.requests, report))
    return result


@contextmanager
def _started(service: Service) -> Iterator[Service]:
    """A service whose workers are ready; the command is printed."""
    with service:
        service.until_ready()
        report(f"serve {service.command}")
        yield service


def _trained(collection: Collection, folder: Path) -> Path:
    report(f"training on {collection.name}")
    path = folder / "trained.safetensors"
    ranker = sr.TextRanker(random_state=0)
    ranker.fit(
        collection.documents, collection.queries, collection.split("train"), exclude_self=collection.exclude_self
    )
    ranker.save(path)
    return path


if __name__ == "__main__":
    main()
