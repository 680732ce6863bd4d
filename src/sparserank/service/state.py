"""What the routes work with: the model, the feedback and the learner of each collection."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fastapi import Request, Response
from pydantic_core import PydanticSerializationError, to_json

from . import store
from .config import ServiceConfig
from .cost import check_size
from .exception_handlers import NotFound
from .learning.learner import Learner
from .metrics import Metrics
from .reloader import LoadedModel, ModelReloader
from .store import FeedbackStore, NotStored
from .telemetry import NoTelemetry
from .trial import TrialObserver

T = TypeVar("T")

NEEDS_TOKEN: dict[str, Any] = {"security": [{"token": []}]}


@dataclass
class Service:
    """What serves one collection; `is_draining` is True from SIGTERM to the end of the worker."""

    reloader: ModelReloader
    store: FeedbackStore
    metrics: Metrics
    learner: Learner | None
    config: ServiceConfig
    trial: TrialObserver
    telemetry: NoTelemetry = field(default_factory=NoTelemetry)
    name: str = ""
    is_draining: bool = False
    heavy: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))

    def start(self) -> None:
        """Start to look for new versions, and to learn."""
        self.reloader.start()
        self.trial.start()
        if self.learner is not None:
            self.learner.start()

    def stop(self) -> None:
        """Stop all threads and close the database."""
        if self.learner is not None:
            self.learner.stop()
        self.trial.stop()
        self.reloader.stop()
        self.store.close()


def services_of(request: Request) -> Mapping[str, Service]:
    """Return the services of the process, by collection; the name of a model without a name is empty."""
    services: Mapping[str, Service] = request.app.state.services
    return services


def service_of(request: Request) -> Service:
    """Return the service of the collection that the request names."""
    service: Service | None = request.scope["service"]
    if service is None:
        names = ", ".join(f"/{name}/" for name in services_of(request))
        raise NotFound(f"the path must begin with the name of a collection: {names}")
    return service


def model_of(request: Request) -> LoadedModel:
    """Return the model that answers a request."""
    return service_of(request).reloader.model()


def json_response(content: Any, status: int = 200) -> Response:
    """Serialize to JSON; text with lone surrogates is escaped."""
    try:
        text = to_json(content)
    except PydanticSerializationError:
        text = json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
    return Response(check_size(text), status, media_type="application/json")


async def wait_for_database(future: Future[T]) -> T:
    """Wait for the database for a limited time; the operation continues if this request ends."""
    try:
        return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), store.DATABASE_TIMEOUT_S)
    except TimeoutError:
        raise NotStored("the database does not answer; send it again later with the same id") from None


def spellings(model: LoadedModel, pairs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return how the documents spell the stems of pairs."""
    return model.ranker.lexical_.surface_forms(pair[side] for pair in pairs for side in ("query", "document"))
