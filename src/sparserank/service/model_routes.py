"""The routes about the model: what is served, what changed, and which version to serve."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from ..errors import SparseRankError
from ..versions import Version
from . import model_schemas, schemas
from .cost import Work
from .exception_handlers import NotFound, error_responses, problem
from .reloader import Busy
from .state import NEEDS_TOKEN, json_response, model_of, service_of, services_of, spellings

router = APIRouter()


@router.get("/model", response_model=model_schemas.ModelResponse, responses=error_responses())
async def model(request: Request) -> Response:
    """Describe the served version, all versions, and the state of the learner."""
    service, loaded = service_of(request), model_of(request)
    trial = await asyncio.to_thread(service.trial.state) if service.reloader.trial() else None
    return json_response(
        {
            **{name: getattr(loaded.version, name) for name in ("made", "why", "pairs")},
            "collection": service.name,
            "collections": [name for name in services_of(request) if name],
            "version": loaded.version.number,
            "documents": len(loaded.ranker.index_),
            "words": len(loaded.ranker.lexical_.words),
            "fields": loaded.ranker.index_.value_counts,
            "examples": loaded.examples,
            "versions": [_version_body(version) for version in service.reloader.versions()],
            "learner": {"learning": False} if service.learner is None else service.learner.state(),
            "trial": trial,
        }
    )


def _version_body(version: Version) -> dict[str, Any]:
    private = ("index", "is_copy")  # about files
    return {name: value for name, value in version.to_dict().items() if name not in private}


@router.get("/changes", response_model=model_schemas.ChangesResponse, responses=error_responses(404, 409, 422))
async def changes(
    request: Request,
    days: Annotated[float, Query(ge=0, le=3650)] = 1.0,
    k: Annotated[int, Query(ge=1, le=1000)] = 50,
    version: Annotated[int | None, Query(ge=1, le=10**9)] = None,
) -> Response:
    """List the word pairs that changed most in the last days, or those that one version changed in its parent."""
    reloader = service_of(request).reloader
    if version is not None and version not in {one.number for one in reloader.versions()}:
        raise NotFound(f"there is no version {version}; /model lists all versions")
    since, work = datetime.now(UTC) - timedelta(days=days), Work()
    request.scope["work"] = work
    try:
        if version is None:
            found = await work.in_thread(reloader.changes_since, since, k)
        else:
            found = await work.in_thread(reloader.changes_of, version, k)
        return json_response({**found, "display": spellings(model_of(request), found["changes"])})
    except Busy:
        raise
    except SparseRankError as error:  # for example a damaged old version
        return problem(409, str(error))


@router.post(
    "/model/rollback", response_model=model_schemas.VersionResponse, openapi_extra=NEEDS_TOKEN,
    responses=error_responses(403, 404, 409, 422),
)  # fmt: skip
async def rollback(body: schemas.RollbackRequest, request: Request) -> Response:
    """Serve an earlier version again."""
    reloader = service_of(request).reloader
    if body.to not in {version.number for version in reloader.versions()}:
        raise NotFound(f"there is no version {body.to}; /model lists all versions")
    try:
        return json_response(_version_body(await asyncio.to_thread(reloader.rollback, body.to)))
    except SparseRankError as error:
        return problem(409, str(error))


@router.post(
    "/model/promote", response_model=model_schemas.VersionResponse, openapi_extra=NEEDS_TOKEN,
    responses=error_responses(403, 409, 422),
)  # fmt: skip
async def promote(body: schemas.CandidateRequest, request: Request) -> Response:
    """Serve the candidate; its trial ends."""
    return await _end_trial(service_of(request).trial.promote, body.candidate)


@router.post(
    "/model/withdraw", response_model=model_schemas.VersionResponse, openapi_extra=NEEDS_TOKEN,
    responses=error_responses(403, 409, 422),
)  # fmt: skip
async def withdraw(body: schemas.CandidateRequest, request: Request) -> Response:
    """End the trial of the candidate; the served version stays."""
    return await _end_trial(service_of(request).trial.withdraw, body.candidate)


async def _end_trial(end: Callable[[int], Version], candidate: int) -> Response:
    try:
        return json_response(_version_body(await asyncio.to_thread(end, candidate)))
    except SparseRankError as error:
        return problem(409, str(error))
