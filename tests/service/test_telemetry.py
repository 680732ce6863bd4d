"""OpenTelemetry traces: a span for each request and what it does, in the SDK's own exporter; nothing without them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from fastapi.testclient import TestClient

pytest.importorskip("opentelemetry.sdk", reason="telemetry is an extra: pip install 'sparserank[telemetry]'")

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from sparserank.service.app import create_app
from sparserank.service.config import ServiceConfig
from sparserank.service.telemetry import NoTelemetry, Telemetry

from .process import TOKEN, said

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def traced(model):
    """A client, and a function that returns the spans of its last request."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    app = create_app(ServiceConfig(str(model), TOKEN, learn=False), telemetry=Telemetry(provider))

    def spans():
        found = exporter.get_finished_spans()
        exporter.clear()
        return {one.name: one for one in found}

    with TestClient(app, base_url="http://127.0.0.1", headers={"Authorization": f"Bearer {TOKEN}"}) as client:
        yield client, spans


def test_a_search_is_a_span_in_the_trace_of_its_caller_with_its_parts_inside(traced):
    client, spans = traced
    body = {"query": "a secret car", "k": 3, "explain": True}
    client.post("/search", json=body, headers={"traceparent": PARENT, "X-Request-ID": "r1"})
    found = spans()
    assert set(found) == {"POST /search", "search", "explain"}
    request = found["POST /search"]
    assert f"{request.context.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    assert f"{request.parent.span_id:016x}" == "b7ad6b7169203331"
    assert dict(request.attributes) == {
        "http.request.method": "POST", "http.route": "/search", "http.response.status_code": 200,
        "sparserank.request_id": "r1",
    }  # fmt: skip
    for name in ("search", "explain"):
        assert found[name].parent.span_id == request.context.span_id
    assert dict(found["search"].attributes) == {"sparserank.k": 3, "sparserank.offset": 0, "sparserank.version": 1}
    assert not any("secret" in span.to_json() for span in found.values())


def test_feedback_waits_for_the_store_in_a_span(traced):
    client, spans = traced
    assert client.post("/feedback", json=said(1)).status_code == 201
    found = spans()
    assert found["store"].parent.span_id == found["POST /feedback"].context.span_id
    assert dict(found["store"].attributes) == {"sparserank.kind": "judgment"}


def test_rejected_and_unknown_requests_are_spans_too(traced):
    client, spans = traced
    client.post("/feedback", json=said(1), headers={"Authorization": ""})
    assert spans()["POST"].attributes["http.response.status_code"] == 401
    client.get("/nowhere/else")
    assert spans()["GET"].attributes["http.response.status_code"] == 404


def test_without_telemetry_nothing_of_it_is_imported_and_no_middleware_added(model):
    code = (
        "import sys; from sparserank.service.app import create_app;"
        "from sparserank.service.config import ServiceConfig;"
        "app = create_app(ServiceConfig(sys.argv[1], 'token', learn=False)); app.state.service.store.close();"
        "print('opentelemetry.sdk' in sys.modules, [m.cls.__name__ for m in app.user_middleware], "
        "type(app.state.service.telemetry).__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(model)], capture_output=True, text=True, env=os.environ)
    assert done.stdout.startswith("False ["), done.stderr
    assert "TelemetryMiddleware" not in done.stdout
    assert done.stdout.endswith("NoTelemetry\n")
    assert NoTelemetry().span("a") is NoTelemetry().span("b", k=1), "one object that does nothing"
