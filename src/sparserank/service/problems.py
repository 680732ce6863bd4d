"""What is answered where something is wrong: one sentence that says what, and what to do."""

from __future__ import annotations

import json
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from .answers import NotHere
from .feedback import Conflict, NotStored
from .schemas import Problem

_ABOUT = {
    400: "The request could not be read.",
    401: "The token is missing or wrong.",
    404: "There is no such thing here.",
    408: "The body of the request came too slowly.",
    409: "It contradicts what is there.",
    413: "The request is too large.",
    421: "The service was called by a name that is not its own.",
    422: "A field is missing, unknown or out of its range.",
    429: "Too many requests; `Retry-After` says when to come back.",
    503: "The database does not answer; the same request may be sent again.",
}
_RETRY = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """For the OpenAPI document: these, and those that any request may meet."""
    out: dict[int | str, dict[str, Any]] = {
        status: {"model": Problem, "description": _ABOUT[status]}
        for status in sorted({*statuses, 400, 401, 408, 413, 421, 429})
    }
    out[429]["headers"] = _RETRY
    return out


def problem(status: int, detail: str, headers: dict[str, str] | None = None) -> Response:
    """An answer that says what is wrong."""
    return Response(json.dumps({"detail": detail}), status, headers, "application/json")


def add_handlers(app: FastAPI) -> None:
    """Every error that is foreseen becomes one sentence; the others are the guard's."""
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    for kind, status in ((NotHere, 404), (Conflict, 409), (NotStored, 503)):
        app.add_exception_handler(kind, _said(status))


def _said(status: int) -> Any:
    async def handler(request: Request, error: Exception) -> Response:
        return problem(status, str(error), {"retry-after": "5"} if status == 503 else None)

    return handler


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return problem(422, f"the body is not JSON: {first.get('ctx', {}).get('error', 'it cannot be read')}")
    place = [str(part) for part in first["loc"]]
    if place == ["body"]:
        return problem(422, "the body must be a JSON object, sent as application/json")
    return problem(422, f"{place[0]}, {'.'.join(place[1:])}: {first['msg'][:1].lower()}{first['msg'][1:]}")


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == 404:
        return problem(404, "there is nothing here; /openapi.json names what there is", headers)
    if error.status_code == 405:
        return problem(405, f"this takes {headers.get('Allow', 'another method')}, not {request.method}", headers)
    return problem(error.status_code, str(error.detail), headers)
