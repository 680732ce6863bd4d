"""The service as an ASGI application; every status that can occur is in its OpenAPI document.

Searches take less than a millisecond, so they run where requests are read; what waits for a disk does not.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from .. import __version__
from ..versions import VersionRegistry
from .feedback import FeedbackStore
from .learning.learner import Learner
from .metrics import Measured, Metrics
from .middleware import Guard
from .problems import add_handlers
from .routes import Service, router
from .served import Served
from .settings import Settings


def create_app(settings: Settings, *, register: bool = True) -> FastAPI:
    """The service for one model. A model or a database that cannot be used is refused here, by name.

    register : a model file that was trained anew is served, as the next version.
    """
    versions = VersionRegistry.open(settings.model, register=register)
    served = Served(versions, settings.index)
    store = FeedbackStore(settings.database)
    metrics = Metrics()
    service = Service(served, store, metrics, _learner(settings, versions))
    app = FastAPI(
        title="SparseRank", version=__version__, docs_url=None, redoc_url=None, lifespan=_lifespan,
        description="Search that explains itself and learns from what its users tell it.",
    )  # fmt: skip
    app.state.service = service
    app.include_router(router)
    add_handlers(app)
    app.add_middleware(Guard, settings=settings)
    app.add_middleware(Measured, metrics=metrics)
    app.openapi = lambda: _openapi(app, settings)  # type: ignore[method-assign]
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    service: Service = app.state.service
    service.served.start()
    if service.learner is not None:
        service.learner.start()
    try:
        yield
    finally:
        if service.learner is not None:
            service.learner.stop()
        service.served.stop()
        service.store.close()


def _learner(settings: Settings, versions: VersionRegistry) -> Learner | None:
    if not settings.learn or not versions.writable:
        return None
    return Learner(
        versions.model, settings.database, index=settings.index, held_out=settings.held_out,
        held_out_split=settings.held_out_split, every=settings.learn_every,
    )  # fmt: skip


def _openapi(app: FastAPI, settings: Settings) -> dict[str, Any]:
    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        made["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        if settings.reads_need_token:
            for path, operations in made["paths"].items():
                for operation in operations.values():
                    if path != "/health":
                        operation["security"] = [{"token": []}]
        app.openapi_schema = made
    return app.openapi_schema
