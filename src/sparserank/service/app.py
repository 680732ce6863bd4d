"""The service as an ASGI application.

A search takes less than a millisecond, so it runs in the event loop; what waits for a disk runs in a thread.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from .. import __version__
from ..errors import SparseRankError
from ..versions import VersionRegistry
from .collections import CollectionMiddleware
from .compression import CompressionMiddleware
from .config import ServiceConfig
from .exception_handlers import add_exception_handlers
from .learning.learner import Learner
from .metrics import Metrics, MetricsMiddleware
from .middleware import SecurityMiddleware
from .model_routes import router as model_router
from .operations import router as operations_router
from .page_files import router as page_router
from .reloader import ModelReloader
from .routes import router as search_router
from .state import Service
from .store import FeedbackStore
from .telemetry import NoTelemetry, Telemetry, TelemetryMiddleware
from .trial import TrialObserver


def create_app(config: ServiceConfig, *, register: bool = True, telemetry: Telemetry | None = None) -> FastAPI:
    """Create the application; an unusable model or database raises an error that names it.

    Parameters
    ----------
    config : ServiceConfig
        The options of the service.
    register : bool, default=True
        If the model file was trained again, register it as the next version and serve it.
    telemetry : Telemetry, optional
        Makes spans. None makes them if the configuration says so.

    Examples
    --------
    >>> import tempfile
    >>> from sparserank import TextRanker
    >>> folder = tempfile.TemporaryDirectory()
    >>> TextRanker().fit({"d1": "red apples"}).save(f"{folder.name}/model")
    >>> app = create_app(ServiceConfig(f"{folder.name}/model", token="secret", learn=False))
    >>> app.title, "/search" in app.openapi()["paths"]
    ('SparseRank', True)
    >>> app.state.service.store.close(); folder.cleanup()
    """
    if telemetry is None and config.telemetry:
        telemetry = Telemetry.to_collector()
    metrics = Metrics(by_collection=bool(config.collections))
    services: dict[str, Service] = {}
    try:
        for name, one in config.by_collection.items():
            services[name] = _create_service(name, one, metrics, register, telemetry)
    except SparseRankError:
        for service in services.values():
            service.store.close()
        raise
    app = FastAPI(
        title="SparseRank", version=__version__, docs_url=None, redoc_url=None, lifespan=_lifespan,
        description="Search with explanations that learns from the feedback of its users.",
    )  # fmt: skip
    app.state.services, app.state.config = services, config
    app.state.service = next(iter(services.values()))
    for router in (search_router, model_router, operations_router, page_router):
        app.include_router(router)
    add_exception_handlers(app)
    app.add_middleware(CompressionMiddleware)
    app.add_middleware(SecurityMiddleware, config=config, is_draining=lambda: app.state.service.is_draining)
    if telemetry is not None:
        app.add_middleware(TelemetryMiddleware, telemetry=telemetry)
    app.add_middleware(CollectionMiddleware, services=services)
    app.add_middleware(MetricsMiddleware, metrics=metrics)
    app.openapi = lambda: _openapi(app, config)  # type: ignore[method-assign]
    return app


def _create_service(
    name: str, config: ServiceConfig, metrics: Metrics, register: bool, telemetry: Telemetry | None
) -> Service:
    """Open the model and the database of one collection."""
    registry = VersionRegistry.open(config.model, register=register)
    reloader = ModelReloader(registry, config.index, config.keep_versions)
    store = FeedbackStore(config.database, limits=config.click_limits)
    learner = Learner(config) if config.learn and registry.writable else None
    trial = TrialObserver(reloader, store, config.promote_after, config.promote_level, config.click_limits)
    return Service(reloader, store, metrics, learner, config, trial, telemetry or NoTelemetry(), name)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    services: dict[str, Service] = app.state.services
    for service in services.values():
        service.start()
    try:
        yield
    finally:
        for service in services.values():
            service.stop()
        app.state.service.telemetry.stop()


def _openapi(app: FastAPI, config: ServiceConfig) -> dict[str, Any]:
    """Return the OpenAPI document with the security of each path."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        schema["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        if config.reads_need_token:
            for path, operations in schema["paths"].items():
                for operation in operations.values():
                    if path not in ("/health", "/ready"):
                        operation["security"] = [{"token": []}]
        app.openapi_schema = schema
    return app.openapi_schema
