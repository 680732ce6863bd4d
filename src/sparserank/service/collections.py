"""Several collections in one service: the first part of a path names the collection of the request."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.types import ASGIApp, Receive, Scope, Send

from .state import Service


class CollectionMiddleware:
    """Finds the service of a request, `scope["service"]`; None for paths that belong to no collection."""

    def __init__(self, app: ASGIApp, services: Mapping[str, Service]) -> None:
        self.app, self._services = app, services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; the name becomes its root path."""
        if scope["type"] == "http":
            name = "" if "" in self._services else scope["path"][1:].partition("/")[0]
            service = self._services.get(name)
            scope["service"] = service
            if service is not None and name:
                scope["collection"], scope["root_path"] = name, f"/{name}"
        await self.app(scope, receive, send)
