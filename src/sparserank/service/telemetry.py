"""OpenTelemetry traces, an extra: a span for each request, and in it for the search, its explanations and the store.

Spans have routes, statuses and numbers, and neither queries nor documents. Without telemetry no span is made: `span`
returns one object that does nothing, and no middleware is added.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .. import __version__, validation
from ..errors import NotInstalled
from .logs import request_id

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

_NOTHING: AbstractContextManager[None] = nullcontext()


class NoTelemetry:
    """Makes no spans."""

    def span(self, name: str, **attributes: int | str) -> AbstractContextManager[None]:
        """Return a context that does nothing."""
        return _NOTHING

    def stop(self) -> None:
        """Do nothing."""


class Telemetry(NoTelemetry):
    """Makes spans with a tracer provider of this service, not the global one.

    Parameters
    ----------
    provider : TracerProvider
        The provider with its exporters.
    """

    def __init__(self, provider: TracerProvider) -> None:
        from opentelemetry import trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._provider, self._tracer = provider, provider.get_tracer("sparserank", __version__)
        self._propagator, self._kind, self._status = TraceContextTextMapPropagator(), trace.SpanKind, trace.StatusCode

    @classmethod
    def to_collector(cls) -> Telemetry:
        """Send spans to the collector of $OTEL_EXPORTER_OTLP_ENDPOINT, by OTLP over HTTP."""
        validation.installed("opentelemetry", extra="telemetry")
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        except ImportError:
            raise NotInstalled(
                "this needs the OTLP exporter; install it with: pip install 'sparserank[telemetry]'"
            ) from None
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        # $OTEL_SERVICE_NAME and $OTEL_RESOURCE_ATTRIBUTES beat this name
        provider = TracerProvider(resource=Resource({"service.name": "sparserank"}).merge(Resource.create()))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        return cls(provider)

    @contextmanager
    def span(self, name: str, **attributes: int | str) -> Iterator[None]:
        """Make a span of what happens in this context."""
        with self._tracer.start_as_current_span(name, attributes={f"sparserank.{k}": v for k, v in attributes.items()}):
            yield

    @contextmanager
    def request_span(self, scope: Scope) -> Iterator[Any]:
        """Make the span of a request, a child of the span that its `traceparent` header names."""
        carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        with self._tracer.start_as_current_span(
            scope["method"], self._propagator.extract(carrier), self._kind.SERVER,
            attributes={"http.request.method": scope["method"], "sparserank.request_id": request_id.get()},
        ) as span:  # fmt: skip
            yield span

    def end_request(self, span: Any, scope: Scope, status: int) -> None:
        """Name the span of a request after its route."""
        route = getattr(scope.get("route"), "path_format", "")
        if route:
            span.update_name(f"{scope['method']} {scope.get('root_path', '')}{route}")
            span.set_attribute("http.route", f"{scope.get('root_path', '')}{route}")
        span.set_attribute("http.response.status_code", status)
        if status >= 500:
            span.set_status(self._status.ERROR)

    def stop(self) -> None:
        """Export what waits."""
        self._provider.shutdown()


class TelemetryMiddleware:
    """Makes the span of each request."""

    def __init__(self, app: ASGIApp, telemetry: Telemetry) -> None:
        self.app, self._telemetry = app, telemetry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer in the span of the request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status = 500

        async def send_and_note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        with self._telemetry.request_span(scope) as span:
            try:
                await self.app(scope, receive, send_and_note)
            finally:
                self._telemetry.end_request(span, scope, status)
