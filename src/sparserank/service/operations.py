"""The routes for operators: health, readiness, metrics. Load balancers ask for the first two with HEAD too."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from . import schemas
from .exception_handlers import error_responses, problem
from .metrics import CONTENT_TYPE
from .state import Service, json_response, services_of, wait_for_database

router = APIRouter()


def _requested_services(request: Request) -> list[Service]:
    """Return the service of the collection that the request names, or all of them."""
    service = request.scope["service"]
    return list(services_of(request).values()) if service is None else [service]


def _combined(request: Request, status: str, bodies: list[dict[str, Any]]) -> Response:
    """Return the one body, or for a request about all collections each body by name."""
    if request.scope["service"] is not None:
        return json_response({"status": status, **bodies[0]})
    return json_response({"status": status, "collections": dict(zip(services_of(request), bodies, strict=True))})


@router.head("/health", include_in_schema=False)
@router.get("/health", response_model=schemas.HealthResponse, responses=error_responses(503))
async def health(request: Request) -> Response:
    """Report that the service and its database answer."""
    bodies = []
    for service in _requested_services(request):
        loaded, last = service.reloader.model(), await wait_for_database(service.store.submit_last())
        bodies.append({"version": loaded.version.number, "documents": len(loaded.ranker.index_), "feedback": last})
    return _combined(request, "ok", bodies)


@router.head("/ready", include_in_schema=False)
@router.get("/ready", response_model=schemas.ReadyResponse, responses=error_responses(503))
async def ready(request: Request) -> Response:
    """Report that this worker accepts requests; 503 from SIGTERM on. It does not ask the database."""
    if _requested_services(request)[0].is_draining:
        return problem(503, "the service is stopping; send requests to another one", {"retry-after": "5"})
    versions = [{"version": service.reloader.model().version.number} for service in _requested_services(request)]
    return _combined(request, "ready", versions)


@router.get(
    "/metrics", response_class=Response,
    responses=error_responses(403) | {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)  # fmt: skip
async def metrics(request: Request) -> Response:
    """Return Prometheus metrics of all workers, and of all collections."""
    services = services_of(request)
    for name, service in services.items():
        model = service.reloader.model()
        service.metrics.describe(name, model.version.number, len(model.ranker.index_), model.version.pairs)
    text = next(iter(services.values())).metrics.text()
    return Response(text, headers={"content-type": CONTENT_TYPE})
