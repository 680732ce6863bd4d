"""`make soak`: the service under load and faults; a table, one line of JSON at the end, and reports/soak.json.

Two workers of `sparserank serve` with clients on the same machine over loopback connections; each phase prints how
it was started. The exit code is 1 if anything failed or was lost, or (not with --quick) if the p99 latency of the
first phase, which does not learn, exceeds its limit.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sparserank as sr
from sparserank.data.files import write_bytes
from sparserank.data.open import open_collection
from sparserank.data.records import Collection

from . import phases
from .asks import Users
from .cost import cpu_cost
from .machine import about
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
    parser.add_argument("--quick", action="store_true", help="short phases, two kills: to see that it runs")
    parser.add_argument("--output", type=Path, default=Path("reports/soak.json"))
    given = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sparserank-soak-") as folder:
        result = run(given, Path(folder))
    result["minutes"] = round((time.monotonic() - began) / 60, 1)
    show(result)
    given.output.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(given.output, (json.dumps(result, indent=2) + "\n").encode())
    report(f"\n{given.output}")
    report(json.dumps(result))
    slow = not given.quick and result["phases"][0]["all"]["p99"] >= phases.MAX_P99_MS
    if slow or not all(phase["held"] for phase in result["phases"]):
        raise SystemExit(1)


def run(given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """All phases; each has the model anew, and no feedback."""
    collection = open_collection(given.data)
    trained = given.model or _trained(collection, folder)
    quick = given.quick
    warm_up = 0.5 if quick else phases.WARM

    def fresh(name: str) -> Path:
        place = folder / name
        place.mkdir()
        for ending in ("", ".index"):
            shutil.copy(f"{trained}{ending}", f"{place}/model.safetensors{ending}")
        return place / "model.safetensors"

    def users(seed: int) -> Users:
        return Users(trained, collection, HELD_OUT, seed)

    learn = ("--held-out", given.data, "--held-out-split", HELD_OUT, "--learn-every")
    done = []
    seconds = 1.0 if quick else given.seconds
    for name, words in (("load", ("--no-learn",)), ("load-learn", (*learn, "30"))):
        with started(fresh(name), *words) as service:
            report(f"{given.rate:.0f} requests/s over {phases.CONNECTIONS} connections")
            done.append(asyncio.run(phases.steady(service, users(1), given.rate, seconds, warm_up=warm_up)))
    with started(fresh("highest"), "--no-learn") as service:
        report("the highest rate that is held")
        start, seconds, steps = (given.rate / 2, 1.0, 1) if quick else (given.rate * 4 / 3, 10.0, 9)
        done.append(asyncio.run(phases.highest(service, users(2), start, seconds, steps, report, warm_up)))
    report("\nCPU of one request, beside bare uvicorn + bm25s")
    done.append(cpu_cost(collection, given.data, trained, folder, users(5).queries(60 if quick else 1000), report))
    with started(fresh("killed"), *learn, "5") as service:
        report("kill -9 of a worker and of the whole service, in turn")
        seconds, kills = (2.0, 2) if quick else (6.0, 10)
        done.append(asyncio.run(phases.killed(service, users(3), given.rate, seconds, kills, report)))
    with started(fresh("learning"), *learn, "1" if quick else "2") as service:
        report("learning meanwhile")
        rate, seconds, most = (given.rate / 6, 2.0, 40) if quick else (given.rate, 10.0, 12)
        done.append(asyncio.run(phases.learning(service, users(4), rate, seconds, most, report)))
    documents = len(collection.documents)
    return {"machine": about(), "data": collection.name, "documents": documents, "workers": 2, "phases": done}


@contextmanager
def started(model: Path, *words: str) -> Iterator[Service]:
    """A service whose workers are ready; the command is printed."""
    with Service(model, *words) as service:
        service.until_ready()
        report(f"\nserve {service.command}")
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


def show(result: dict[str, Any]) -> None:
    """The table."""
    machine = result["machine"]
    report(f"\n{machine['processor']}, {machine['cores']} cores for both sides, Python {machine['python']}; "
         f"{result['workers']} workers, {result['data']}, {result['documents']} documents")  # fmt: skip
    for phase in result["phases"]:
        report(f"\n{phase['phase']}, serve {phase['words']}: {'held' if phase['held'] else 'NOT HELD'}")
        if "kinds" in phase:
            report(f"  {'milliseconds':20s} {'n':>7s} {'p50':>8s} {'p90':>8s} {'p99':>8s} {'max':>8s}")
            for kind, times in {**phase["kinds"], "all": phase["all"], "(late clients)": phase["lag"]}.items():
                row = "".join(f" {times[column]:8.1f}" for column in ("p50", "p90", "p99", "max"))
                report(f"  {kind:20s} {times['n']:7d}{row}")
        for key, value in phase.items():
            if key not in ("phase", "words", "held", "kinds", "all", "lag", "tried"):
                report(f"  {key.replace('_', ' ')}: {value}")


if __name__ == "__main__":
    main()
