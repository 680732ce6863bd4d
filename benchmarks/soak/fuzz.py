"""`make fuzz`: 100,000 hostile requests; no 5xx, no hang, no invalid response.

Schemathesis generates most of them from the OpenAPI document, valid and invalid ones; they are answered in the same
process and checked against the document; one process has SQLite, the other PostgreSQL where a server is installed. The
rest are bytes over a socket to a real service: requests that Hypothesis has truncated, duplicated, swapped and
corrupted; a bare uvicorn + bm25s service gets them too. The exit code is 1 after the first wrong response.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import multiprocessing
import shutil
import socket
import tempfile
import time
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import sparserank as sr
from sparserank.data.files import write_bytes

from ..markdown import environment, write_section
from .bare import Bare
from .postgres import missing, new_database, postgresql
from .service import TOKEN, Service

ABOUT = """Hostile requests to the service: generated from its OpenAPI document, valid and invalid, with each response
checked against the document; and bytes over a socket. Status 0 is a connection that ended without an answer."""
ROWS = {"generated": "from the OpenAPI document", "spoilt": "bytes", "bare": "bytes, bare uvicorn + bm25s"}
HANG = 30.0
"""Seconds after which a request that is not answered hangs."""
SHARES = {
    "POST /search": 23, "POST /explain": 18, "POST /compare": 18, "POST /feedback": 20, "POST /model/rollback": 5,
    "POST /model/promote": 1, "POST /model/withdraw": 1,
    "GET /related/{word}": 4, "GET /documents/{id}": 2, "GET /changes": 5, "GET /model": 0.3, "GET /health": 0.4,
    "GET /metrics": 0.3, "GET /judgments": 1.7, "GET /ready": 0.3,
}  # fmt: skip
"""Of a hundred requests that are generated from the document."""
COLOURS = ("red", "green", "blue", "white", "black", "brown", "grey", "pink")
THINGS = {"car": "automobile", "bike": "bicycle", "ship": "boat"}
"""Query words, and the words of the documents."""


def trained(folder: Path) -> Path:
    """A small model with a few pairs; the requests matter here, not the model."""
    docs = {f"{thing}-{a}": f"{a} {thing} number{i}" for i, a in enumerate(COLOURS) for thing in THINGS.values()}
    queries = {f"{word}-{a}": f"{a} {word}" for a in COLOURS for word in THINGS}
    qrels = {f"{word}-{a}": {f"{thing}-{a}": 1} for a in COLOURS for word, thing in THINGS.items()}
    path = folder / "model.safetensors"
    sr.TextRanker(max_pairs=100).fit(docs, queries, qrels).save(path)
    return path


def config(token: str) -> dict[str, Any]:
    """The settings of schemathesis."""
    return {
        "headers": {"Authorization": f"Bearer {token}"},
        # a click on a document that was not shown, and a document compared with itself, are 422: no schema can say so
        "checks": {"positive_data_acceptance": {"expected-statuses": ["2xx", "404", "409", "422"]}},
    }


def generated(model: str, number: int, seed: int, database: str) -> dict[str, Any]:
    """So many requests from the OpenAPI document, in this process; the statuses, and the slowest answer."""
    import hypothesis
    import schemathesis
    from schemathesis.config import SchemathesisConfig
    from schemathesis.python.asgi import get_client

    from sparserank.service.app import create_app
    from sparserank.service.config import ServiceConfig

    # for any host name: schemathesis calls it 'testserver'
    options = {"learn": False, "rate": 1e9, "host": "0.0.0.0", "open_reads": True, "database": database}
    app = create_app(ServiceConfig(model, TOKEN, **options))
    schema = schemathesis.openapi.from_asgi("/openapi.json", app, config=SchemathesisConfig.from_dict(config(TOKEN)))
    schema.hook("map_body")(with_known_documents)
    statuses: Counter[int] = Counter()
    slowest = 0.0
    with get_client(app) as client:
        for operation in (found.ok() for found in schema.get_all_operations()):

            @hypothesis.seed(seed)
            @hypothesis.settings(
                max_examples=max(1, round(number * SHARES[operation.label] / 100)),
                phases=[hypothesis.Phase.generate],
                suppress_health_check=list(hypothesis.HealthCheck),
                deadline=None,
                database=None,
            )
            @hypothesis.given(case=operation.as_strategy())
            def check(case: Any) -> None:
                nonlocal slowest
                faulthandler.dump_traceback_later(HANG, exit=True)
                began = time.perf_counter()
                response = case.call(session=client)
                slowest = max(slowest, time.perf_counter() - began)
                case.validate_response(response)
                statuses[response.status_code] += 1

            check()
    faulthandler.cancel_dump_traceback_later()
    app.state.service.store.close()
    return {"statuses": statuses, "slowest": slowest}


def with_known_documents(context: Any, body: Any) -> Any:
    """Most generated names of documents are replaced by real ones, so that requests get further than 'not there'."""

    def known(name: Any) -> Any:
        could_be = isinstance(name, str) and 0 < len(name) <= 500 and "\0" not in name
        return ("automobile-red", "boat-blue")[len(name) % 2] if could_be and len(name) % 4 else name

    if isinstance(body, dict):
        body = {key: known(value) if key in ("document", "first", "second") else value for key, value in body.items()}
        if isinstance(body.get("shown"), list) and isinstance(body.get("document"), str):
            body["shown"] = [known(name) for name in body["shown"]]
    return body


def spoilt(address: str, number: int, seed: int, may_fail: bool = False) -> dict[str, Any]:
    """So many requests as bytes over a socket; an answer that is one is below 500, and the connection ends."""
    import hypothesis

    from .spoilt import requests

    host, _, port = address.removeprefix("http://").partition(":")
    statuses: Counter[int] = Counter()
    slowest = 0.0

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=number,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
        deadline=None,
        database=None,
    )
    @hypothesis.given(request=requests())
    def check(request: bytes) -> None:
        nonlocal slowest
        began = time.perf_counter()
        answer = exchanged(host, int(port), request)
        slowest = max(slowest, time.perf_counter() - began)
        status = int(answer[9:12]) if answer.startswith(b"HTTP/1.1 ") else 0  # 0: cut off without a word
        assert may_fail or (status or 200) < 500, (request, answer[:300])
        statuses[status] += 1

    check()
    return {"statuses": statuses, "slowest": slowest}


def exchanged(host: str, port: int, request: bytes) -> bytes:
    """What is answered until the connection ends; we say that nothing more will come."""
    answer = bytearray()
    with socket.create_connection((host, port), timeout=HANG) as connection:
        try:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(65536):
                answer += part
        except TimeoutError:
            raise AssertionError(f"not answered within {HANG:.0f} s: {request[:300]!r}") from None
        except OSError:  # cut off before all was said
            pass
    return bytes(answer)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak.fuzz", description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path("reports/fuzz.json"))
    parser.add_argument("--markdown", type=Path, help="the page whose section 'Fuzz' to write")
    given = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sparserank-fuzz-") as folder:
        result = run(Path(folder), given.requests, given.processes, given.seed)
    result |= {"seconds": round(time.monotonic() - began, 1), "seed": given.seed}
    for kind in ROWS:
        print(f"{kind:10s} {result[kind]['requests']:7d} requests; slowest {result[kind]['slowest']:.3f} s; "
              f"{_statuses(result[kind])}")  # fmt: skip
    print(f"{result['requests']} requests in {result['seconds']} s: no 5xx, no hang")
    if given.markdown is not None:
        write_section(given.markdown, markdown(result))
    given.output.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(given.output, (json.dumps(result, indent=2) + "\n").encode())
    print(json.dumps(result))


def run(folder: Path, number: int, processes: int, seed: int) -> dict[str, Any]:
    """A tenth as bytes over a socket, the others from the document, in several processes."""
    model, bytes_of = trained(folder), number // 10
    places = []
    for turn in range(processes):
        places.append(folder / f"{turn}" / model.name)
        places[-1].parent.mkdir()
        for ending in ("", ".index"):
            shutil.copy(f"{model}{ending}", f"{places[-1]}{ending}")
    each = -(-(number - bytes_of) * 102 // (100 * processes))  # some operations have fewer requests than required
    with nullcontext("") if missing() else postgresql("fsync=off") as url:
        databases = [new_database(url, f"fuzz_{turn}") if url and turn % 2 else "" for turn in range(processes)]
        with multiprocessing.get_context("spawn").Pool(processes) as pool:
            tasks = [(str(place), each, seed + turn, databases[turn]) for turn, place in enumerate(places)]
            from_document = _joined(pool.starmap(generated, tasks))
    with Service(model, "--no-learn", workers=1) as service:
        over_socket = _joined([spoilt(service.address, bytes_of, seed)])
        assert service.get("/health")["status"] == "ok"
    with Bare(str(_beir(folder))) as bare:
        beside = _joined([spoilt(bare.address, bytes_of, seed, may_fail=True)], may_fail=True)
    requests = from_document["requests"] + over_socket["requests"]
    assert requests >= number, f"only {requests} of {number} were made"
    stores = ["SQLite", *(["PostgreSQL"] if any(databases) else [])]
    parts = {"generated": from_document, "spoilt": over_socket, "bare": beside}
    return {"requests": requests, "databases": stores, **parts}


def _beir(folder: Path) -> Path:
    """A few documents for the bare service."""
    from sparserank.data.formats.beir import write_beir
    from sparserank.data.records import Collection, Documents

    docs = {f"{thing}-{colour}": f"{colour} {thing}" for colour in COLOURS for thing in THINGS.values()}
    write_beir(
        folder / "beir", Collection("beir", Documents.of(docs), {"q": "red boat"}, {"dev": {"q": {"boat-red": 1}}})
    )
    return folder / "beir"


def markdown(result: dict[str, Any]) -> dict[str, Any]:
    """Return what `benchmarks.markdown.section` takes."""
    rows = [
        {"name": title, "requests": result[kind]["requests"], "5xx": _failed(result[kind]),
         "slowest_s": result[kind]["slowest"], "statuses": _statuses(result[kind])}
        for kind, title in ROWS.items()
    ]  # fmt: skip
    stores = " and ".join(result["databases"])
    return {
        "case": "fuzz",
        "about": ABOUT,
        "size": f"{result['requests']:,} requests, with {stores}, in {result['seconds']:.0f} s",
        "peer": "a bare uvicorn service around bm25s, which gets the same bytes",
        "environment": environment(),
        "rows": rows,
    }


def _statuses(part: dict[str, Any]) -> str:
    return ", ".join(f"{status}: {n:,}" for status, n in part["statuses"].items())


def _failed(part: dict[str, Any]) -> int:
    return sum(n for status, n in part["statuses"].items() if int(status) >= 500)


def _joined(parts: list[dict[str, Any]], may_fail: bool = False) -> dict[str, Any]:
    statuses = sum((part["statuses"] for part in parts), Counter[int]())
    assert may_fail or max(statuses) < 500, statuses
    return {
        "requests": sum(statuses.values()),
        "statuses": dict(sorted(statuses.items())),
        "slowest": round(max(part["slowest"] for part in parts), 3),
    }


if __name__ == "__main__":
    main()
