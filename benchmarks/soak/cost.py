"""CPU time of one request by kind, beside a bare uvicorn + bm25s service, with the same queries in the same run."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx

import sparserank as sr
from sparserank.data.records import Collection

from .asks import PAGE, PAGE_WITH_PAIRS
from .bare import Bare
from .service import TOKEN, Service, cpu_seconds

WARM_UP = 30


def cpu_cost(
    collection: Collection,
    data: str,
    trained: Path,
    folder: Path,
    queries: Sequence[str],
    report: Callable[[str], None],
) -> dict[str, Any]:
    """Milliseconds of CPU per request of each kind; one client, one worker, one request after another."""
    lexical = folder / "lexical.safetensors"
    sr.TextRanker("bm25").fit(collection.documents).save(lexical)
    learned = folder / "learned.safetensors"
    for ending in ("", ".index"):
        shutil.copy(f"{trained}{ending}", f"{learned}{ending}")
    found: dict[str, float] = {}
    with Bare(data) as bare:
        found["bare bm25s"] = milliseconds(bare.process.pid, bare.address, queries, {})
    with Service(lexical, "--no-learn", workers=1) as service:
        found["lexical search"] = milliseconds(service.process.pid, service.address, queries, {})
    faceted = folder / "faceted.safetensors"
    sr.load(trained).over(replace(collection.documents, metadata=facets(collection))).save(faceted)
    for model, ending in ((learned, ""), (faceted, ", with facets")):
        with Service(model, "--no-learn", workers=1) as service:
            fields = [name for name in service.get("/model")["fields"] if name != "url"][:5]
            for kind, options in (
                ("learned search", {}),
                ("search as the page", PAGE | {"facets": fields}),
                ("the same with all explanations", PAGE_WITH_PAIRS | {"facets": fields}),
            ):
                found[kind + ending] = milliseconds(service.process.pid, service.address, queries, options)
    for kind, value in found.items():
        report(f"  {kind:46s} {value:6.2f} ms CPU a request")
    return {"phase": "cost", "words": "--no-learn", "requests": len(queries), "held": True,
            "milliseconds": {kind: round(value, 3) for kind, value in found.items()}}  # fmt: skip


def facets(collection: Collection) -> tuple[dict[str, Any], ...]:
    """Three fields for each document, with few, many and very many values."""
    columns = zip(collection.documents.ids, collection.documents.titles, collection.documents.texts, strict=True)
    return tuple(
        {"kind": "long" if len(text) > 1000 else "short", "words": len(text.split()), "name": (title or id)[:8]}
        for id, title, text in columns
    )


def milliseconds(pid: int, address: str, queries: Sequence[str], options: dict[str, Any]) -> float:
    """CPU time of a process per search, without the first ones."""
    with httpx.Client(base_url=address, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as client:

        def ask(query: str) -> None:
            client.post("/search", json={"query": query, **options}).raise_for_status()

        for query in queries[:WARM_UP]:
            ask(query)
        before = cpu_seconds(pid)
        for query in queries:
            ask(query)
        return 1000.0 * (cpu_seconds(pid) - before) / len(queries)
