"""The service as an ASGI application.

A search takes less than a millisecond, so it runs in the event loop; what waits for a disk runs in a thread.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.middleware.gzip import GZipMiddleware

from .. import __version__
from ..versions import VersionRegistry
from .config import ServiceConfig
from .exception_handlers import add_exception_handlers
from .learning.learner import Learner
from .metrics import Metrics, MetricsMiddleware
from .middleware import SecurityMiddleware
from .page_files import router as page_router
from .reloader import ModelReloader
from .routes import Service, router
from .store import FeedbackStore

MIN_GZIP_BYTES = 1400
"""Smaller answers fit into one packet anyway."""


def create_app(config: ServiceConfig, *, register: bool = True) -> FastAPI:
    """Create the application; an unusable model or database raises an error that names it.

    Parameters
    ----------
    config : ServiceConfig
        The options of the service.
    register : bool, default=True
        If the model file was trained again, register it as the next version and serve it.

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
    registry = VersionRegistry.open(config.model, register=register)
    reloader, store, metrics = (
        ModelReloader(registry, config.index),
        FeedbackStore(config.database, limits=config.click_limits),
        Metrics(),
    )
    learner = Learner(config) if config.learn and registry.writable else None
    app = FastAPI(
        title="SparseRank", version=__version__, docs_url=None, redoc_url=None, lifespan=_lifespan,
        description="Search with explanations that learns from the feedback of its users.",
    )  # fmt: skip
    service = app.state.service = Service(reloader, store, metrics, learner, config)
    app.include_router(router)
    app.include_router(page_router)
    add_exception_handlers(app)
    app.add_middleware(GZipMiddleware, minimum_size=MIN_GZIP_BYTES, compresslevel=1)
    app.add_middleware(SecurityMiddleware, config=config, is_draining=lambda: service.is_draining)
    app.add_middleware(MetricsMiddleware, metrics=metrics)
    app.openapi = lambda: _openapi(app, config)  # type: ignore[method-assign]
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    service: Service = app.state.service
    service.reloader.start()
    if service.learner is not None:
        service.learner.start()
    try:
        yield
    finally:
        if service.learner is not None:
            service.learner.stop()
        service.reloader.stop()
        service.store.close()


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
