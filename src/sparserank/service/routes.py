"""One function a question. Answers are made as bytes here: nothing is validated a second time on the way out."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic_core import PydanticSerializationError, to_json

from ..errors import SparseRankError
from . import answers, schemas
from . import feedback as feedback_store
from .feedback import FeedbackStore, NotStored
from .learning.changes import Changes
from .learning.learner import Learner
from .metrics import TEXT, Metrics
from .pages import files
from .problems import problem, responses
from .records import Feedback
from .served import Served
from .settings import MOST_RESULTS

Found = TypeVar("Found")

router = APIRouter()
TOKEN: dict[str, Any] = {"security": [{"token": []}]}


class Service:
    """What the routes stand on."""

    def __init__(self, served: Served, store: FeedbackStore, metrics: Metrics, learner: Learner | None) -> None:
        self.served, self.store, self.metrics, self.learner = served, store, metrics, learner
        self.changes = Changes(served)


def _service(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


def answer(content: Any, status: int = 200) -> Response:
    """As JSON; where some document has half a character in it, in ASCII."""
    try:
        text = to_json(content)
    except PydanticSerializationError:
        text = json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
    return Response(text, status, media_type="application/json")


async def _patiently(done: Future[Found]) -> Found:
    """What the database answers; it may not answer at all. What was begun goes on, even where this request ends."""
    try:
        return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(done)), feedback_store.PATIENCE)
    except TimeoutError:
        raise NotStored("the database does not answer; send it again later with the same id") from None


@router.post("/search", response_model=schemas.SearchAnswer, responses=responses(422))
async def search(asked: schemas.SearchAsked, request: Request) -> Response:
    """The best documents for a query; with `explain`, why each of them is there."""
    out: dict[str, Any] | None = None
    for out in answers.searched(_service(request).served.now(), asked):
        if out is None:
            await asyncio.sleep(0)
    return answer(out)


@router.post("/explain", response_model=schemas.ExplainAnswer, responses=responses(404, 422))
async def explain(asked: schemas.ExplainAsked, request: Request) -> Response:
    """Which word of the query met which word of the document, and what it added to the score."""
    return answer(answers.explained(_service(request).served.now(), asked.query, asked.document))


@router.post("/compare", response_model=schemas.CompareAnswer, responses=responses(404, 422))
async def compare(asked: schemas.CompareAsked, request: Request) -> Response:
    """Why the first document is above the second, and the fewest pairs that would swap them."""
    if asked.first == asked.second:
        return problem(422, f"body, second: two documents are compared; {asked.first!r} was given twice")
    return answer(answers.compared(_service(request).served.now(), asked.query, asked.first, asked.second))


@router.post(
    "/feedback", response_model=schemas.FeedbackAnswer, status_code=201, openapi_extra=TOKEN,
    responses=responses(404, 409, 422, 503)
    | {200: {"model": schemas.FeedbackAnswer, "description": "It was stored before."}},
)  # fmt: skip
async def feedback(asked: schemas.FeedbackAsked, request: Request) -> Response:
    """A click or a judgment; it is on the disk when it is answered. The same id again is stored once."""
    service = _service(request)
    answers.there(service.served.now(), asked.document)
    if asked.kind == "click" and asked.document not in asked.shown:
        return problem(422, "body, shown: a click's document must be among those that were shown")
    one = Feedback(asked.id, asked.kind, asked.query, asked.document, tuple(asked.shown), asked.grade)
    stored = await _patiently(service.store.submit(one))
    if stored:
        service.metrics.stored.inc()
    return answer({"id": asked.id, "stored": stored}, 201 if stored else 200)


@router.get("/related/{word:path}", response_model=schemas.RelatedAnswer, responses=responses(404, 422))
async def related(
    word: Annotated[str, Path(min_length=1, max_length=100)],
    request: Request,
    k: Annotated[int, Query(ge=1, le=MOST_RESULTS)] = 10,
) -> Response:
    """What a word has learned to look for, and what looks for it."""
    return answer(answers.related(_service(request).served.now(), word, k))


@router.get("/model", response_model=schemas.ModelAnswer, responses=responses())
async def model(request: Request) -> Response:
    """The version being served, all versions, and how learning goes."""
    service = _service(request)
    serving = service.served.now()
    return answer(
        {
            **{name: getattr(serving.version, name) for name in ("made", "why", "pairs")},
            "version": serving.version.number,
            "documents": len(serving.ranker.index_),
            "words": len(serving.ranker.lexical_.words),
            "versions": [_version(one) for one in service.served.listed()],
            "learner": {"learning": False} if service.learner is None else service.learner.state(),
        }
    )


def _version(version: Any) -> dict[str, Any]:
    out: dict[str, Any] = version.to_dict()
    out.pop("index", None)  # the name of a file is nobody's business
    return out


@router.get("/changes", response_model=schemas.ChangesAnswer, responses=responses(409, 422))
async def changes(
    request: Request,
    days: Annotated[float, Query(ge=0, le=3650)] = 1.0,
    k: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> Response:
    """The word pairs that changed most since then."""
    since = datetime.now(UTC) - timedelta(days=days)
    try:
        return answer(await asyncio.to_thread(_service(request).changes.since, since, k))
    except SparseRankError as error:  # a version of then that is damaged, say
        return problem(409, str(error))


@router.post(
    "/model/rollback", response_model=schemas.VersionAnswer, openapi_extra=TOKEN, responses=responses(404, 409, 422)
)
async def rollback(asked: schemas.RollbackAsked, request: Request) -> Response:
    """Serve an earlier version again."""
    served = _service(request).served
    if asked.to not in {version.number for version in served.listed()}:
        raise answers.NotHere(f"there is no version {asked.to}; /model lists those there are")
    try:
        chosen = await asyncio.to_thread(served.rollback, asked.to)
    except SparseRankError as error:
        return problem(409, str(error))
    return answer(_version(chosen))


@router.get("/health", response_model=schemas.HealthAnswer, responses=responses(503))
async def health(request: Request) -> Response:
    """Whether it answers."""
    service = _service(request)
    serving, last = service.served.now(), await _patiently(service.store.look())
    about = {"version": serving.version.number, "documents": len(serving.ranker.index_), "feedback": last}
    return answer({"status": "ok", **about})


@router.get(
    "/metrics", response_class=Response,
    responses=responses() | {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)  # fmt: skip
async def metrics(request: Request) -> Response:
    """Figures for Prometheus, of all workers together."""
    service = _service(request)
    serving, figures = service.served.now(), service.metrics
    figures.version.set(serving.version.number)
    figures.documents.set(len(serving.ranker.index_))
    figures.pairs.set(serving.version.pairs)
    return Response(figures.text(), headers={"content-type": TEXT})


@router.get("/", include_in_schema=False)
async def page() -> Response:
    """The page."""
    return _file("index.html")


@router.get("/page/{name}", include_in_schema=False)
async def page_file(name: str) -> Response:
    """A part of the page."""
    return _file(name)


def _file(name: str) -> Response:
    if name not in files():
        return problem(404, "there is no such page; begin at /")
    content, kind = files()[name]
    return Response(content, headers={"content-type": kind, "cache-control": "no-cache"})
