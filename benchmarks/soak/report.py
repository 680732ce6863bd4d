"""The results of a soak as a table for the terminal, and as a section of docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..markdown import environment
from .limits import limits

ABOUT = """The service under load and faults: two workers, and clients on the same machine over 32 connections.

Of the requests, 55 % are searches, 5 % searches as the page sends them, 20 % explanations (19 of 20 want the 20 largest
pairs, as the page does, and 1 of 20 all pairs), 20 % feedback. They arrive
at random times, independent of earlier responses, and latency counts from arrival. The bare service answers each
request with a search for its query."""
TIMES = ("p50", "p90", "p99", "max")
SHOWN = ("name", "phase", "words", "held", "kinds", "all", "lag", "tried", "megabytes")
LOADS = {
    "steady": "SQLite", "bare": "bare uvicorn + bm25s", "learning on": "SQLite, learning",
    "PostgreSQL": "PostgreSQL, learning", "new model": "SQLite, a new model meanwhile",
    "cost attack": "under a cost attack, with long documents in the collection",
}  # fmt: skip


def table(result: dict[str, Any]) -> Iterator[str]:
    """Yield lines."""
    machine = result["machine"]
    yield (
        f"\n{machine['processor']}, {machine['cores']} cores for both sides, Python {machine['python']}; "
        f"{result['workers']} workers, {result['data']}, {result['documents']} documents"
    )
    for phase in result["phases"]:
        yield f"\n{phase['name']}, serve {phase['words']}: {'held' if phase['held'] else 'NOT HELD'}"
        if "kinds" in phase:
            yield f"  {'milliseconds':20s} {'n':>7s} {'p50':>8s} {'p90':>8s} {'p99':>8s} {'max':>8s}"
            for kind, times in {**phase["kinds"], "all": phase["all"], "(late clients)": phase["lag"]}.items():
                row = "".join(f" {times[column]:8.1f}" for column in TIMES)
                yield f"  {kind:20s} {times['n']:7d}{row}"
        for key, value in phase.items():
            if key not in SHOWN:
                yield f"  {key.replace('_', ' ')}: {value}"
    yield "\nlimits"
    yield from (f"  {limit}" for limit in limits(result["phases"]))


def markdown(result: dict[str, Any]) -> dict[str, Any]:
    """Return what `benchmarks.markdown.section` takes: a row for each load, and the other figures."""
    phases = {phase["name"]: phase for phase in result["phases"]}
    rows = []
    for name, title in LOADS.items():
        if (phase := phases.get(name)) is None:
            continue
        load = {"name": title, "requests_per_s": round(phase["rate"]), "answered": phase["answered"]}
        rows.append({**load, "errors": phase["errors"], **{f"{one}_ms": round(phase["all"][one], 1) for one in TIMES}})
    found: dict[str, Any] = {
        "case": "soak",
        "about": ABOUT,
        "size": f"{result['data']}, {result['documents']:,} documents; {result['machine']['processor']}",
        "peer": "two processes of a bare uvicorn service around bm25s, with the same requests in the same run",
        "environment": environment(),
        "rows": rows,
        **{f"Limit: {limit.name}": str(limit).removeprefix(f"{limit.name}: ") for limit in limits(result["phases"])},
    }
    for name in ("highest rate", "highest rate, bare"):
        found[f"{name}, requests/s with a p99 below 50 ms"] = phases[name]["highest"]
    for kind, value in phases["cost"]["milliseconds"].items():
        found[f"CPU ms of one request, {kind}"] = value
    attack = phases["cost attack"]
    found["p99 under the cost attack, as a multiple of that before"] = attack["p99_factor"]
    found["answers to the attackers, by status"] = _counts(attack["attackers"])
    for name in ("kill -9", "kill -9, PostgreSQL"):
        if (killed := phases.get(name)) is not None:
            acknowledged, faults = killed["acknowledged"], len(killed["faults"])
            kills = sum(killed["kills"].values())
            found[f"{name}, {kills} times"] = f"{acknowledged:,} feedback acknowledged, {faults} lost or damaged"
    memory = phases["memory"]
    found["memory"] = (
        f"{memory['megabytes'][1]} MB after a tenth of {memory['requests']:,} requests, "
        f"{memory['megabytes'][-1]} MB at the end, at {memory['requests_per_s']:,} requests/s"
    )
    return found


def _counts(values: dict[str, int]) -> str:
    return ", ".join(f"{key}: {value:,}" for key, value in values.items())
