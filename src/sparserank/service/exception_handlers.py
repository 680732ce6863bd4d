"""Error responses: one sentence that says what is wrong and what to do."""

from __future__ import annotations

import json
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from ..errors import DataError, FilterError
from .cost import TooExpensive
from .impressions import InvalidImpression
from .reloader import Busy
from .schemas import Problem
from .store import Conflict, NotStored

_DESCRIPTIONS = {
    400: "The request could not be parsed.",
    401: "The token is missing or wrong.",
    403: "The role of the token does not allow it.",
    404: "The document, version or path does not exist.",
    408: "The body of the request arrived too slowly.",
    409: "The request conflicts with the stored state.",
    413: "The request is too large.",
    421: "The host name is not one of this service.",
    422: "A field is missing, unknown or out of range.",
    429: "Too many requests; `Retry-After` says when to try again.",
    503: "The database does not answer, or the service is stopping; the same request may be sent again.",
}
_EVERY_REQUEST = (400, 401, 403, 408, 413, 421, 429)
_RETRY_AFTER = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}


class NotFound(DataError):
    """A request named an unknown document or version."""


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI responses for these statuses and for those of every request."""
    responses: dict[int | str, dict[str, Any]] = {
        status: {"model": Problem, "description": _DESCRIPTIONS[status]}
        for status in sorted({*statuses, *_EVERY_REQUEST})
    }
    responses[429]["headers"] = _RETRY_AFTER
    return responses


def problem(status: int, detail: str, headers: dict[str, str] | None = None) -> Response:
    """Return an error response."""
    return Response(json.dumps({"detail": detail}), status, headers, "application/json")


def add_exception_handlers(app: FastAPI) -> None:
    """Register a handler for every expected exception; the middleware handles the others."""
    app.add_exception_handler(RequestValidationError, _handle_validation)
    app.add_exception_handler(HTTPException, _handle_http)
    for exception, status in (
        (NotFound, 404),
        (Conflict, 409),
        (FilterError, 422),
        (InvalidImpression, 422),
        (TooExpensive, 422),
        (Busy, 429),
        (NotStored, 503),
    ):
        app.add_exception_handler(exception, _handler(status))


def _handler(status: int) -> Any:
    waits = {429: "1", 503: "5"}
    headers = {"retry-after": waits[status]} if status in waits else None

    async def handle(request: Request, error: Exception) -> Response:
        return problem(status, str(error), headers)

    return handle


async def _handle_validation(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return problem(422, f"the body is not JSON: {first.get('ctx', {}).get('error', 'it cannot be parsed')}")
    place = [str(part) for part in first["loc"]]
    if place == ["body"]:
        return problem(422, "the body must be a JSON object, sent as application/json")
    return problem(422, f"{place[0]}, {'.'.join(place[1:])}: {first['msg'][:1].lower()}{first['msg'][1:]}")


async def _handle_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == 404:
        return problem(404, "there is no such path; /openapi.json lists all paths", headers)
    if error.status_code == 405:
        return problem(405, f"use {headers.get('Allow', 'another method')} here, not {request.method}", headers)
    return problem(error.status_code, str(error.detail), headers)
