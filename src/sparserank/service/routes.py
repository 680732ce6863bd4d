"""One function per route. Responses are serialized here and not validated a second time."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic_core import PydanticSerializationError, to_json

from ..errors import SparseRankError
from ..search import Hit
from ..search.snippets import passage
from ..text_ranker.explain import QueryExplainer
from ..versions import Version
from . import impressions, schemas, store
from .access import may
from .config import MAX_FACET_VALUES, MAX_ID_CHARACTERS, MAX_JUDGMENTS, MAX_RESULTS, ServiceConfig
from .cost import MIN_HEAVY_TERMS, Work, check_size
from .exception_handlers import NotFound, error_responses, problem
from .feedback import Feedback
from .learning.learner import Learner
from .metrics import CONTENT_TYPE, Metrics
from .middleware import client_address
from .reloader import LoadedModel, ModelReloader, Weights
from .store import FeedbackStore, NotStored

T = TypeVar("T")

router = APIRouter()
NEEDS_TOKEN: dict[str, Any] = {"security": [{"token": []}]}
SNIPPET_PAIRS = 20
"""The largest pairs of a result, whose words its passage marks."""


@dataclass
class Service:
    """The objects that the routes use; `is_draining` is True from SIGTERM to the end of the worker."""

    reloader: ModelReloader
    store: FeedbackStore
    metrics: Metrics
    learner: Learner | None
    config: ServiceConfig
    is_draining: bool = False
    heavy: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


def _model(request: Request) -> LoadedModel:
    return _service(request).reloader.model()


def json_response(content: Any, status: int = 200, limited: bool = True) -> Response:
    """Serialize to JSON; text with lone surrogates is escaped. A document is as large as it was indexed."""
    try:
        text = to_json(content)
    except PydanticSerializationError:
        text = json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
    return Response(check_size(text) if limited else text, status, media_type="application/json")


async def _wait_for_database(future: Future[T]) -> T:
    """Wait for the database for a limited time; the operation continues if this request ends."""
    try:
        return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), store.DATABASE_TIMEOUT_S)
    except TimeoutError:
        raise NotStored("the database does not answer; send it again later with the same id") from None


@router.post("/search", response_model=schemas.SearchResponse, responses=error_responses(422))
async def search(body: schemas.SearchRequest, request: Request) -> Response:
    """Find the best documents for a query; `explain` adds why each of them is there. A click sends `impression`."""
    start, model, key = time.perf_counter(), _model(request), _service(request).store.key
    work = request.scope["work"] = Work()
    ranker, explainer = model.ranker, None
    forgiving: dict[str, Any] = {"typos": body.typos, "prefix": body.prefix}
    if body.explain or body.snippets:
        explainer = ranker.explainer(body.query, **forgiving)
        work.explain(explainer.n_terms, body.k)
    hits = ranker.search(body.query, body.k, body.filter, body.offset, body.facets, **forgiving)
    results = [_result(hit) for hit in hits]
    version, shown = model.version.number, [hit.id for hit in hits]
    impression = impressions.sign(key, body.query, shown, version, body.offset)
    content: dict[str, Any] = {
        "query": body.query, "version": version, "impression": impression, "results": results,
    }  # fmt: skip
    if explainer is not None:
        is_heavy = explainer.n_terms * len(results) > MIN_HEAVY_TERMS
        async with _service(request).heavy if is_heavy else nullcontext():
            await _explain_results(model, explainer, results, body, work)
    if body.lexical:
        lexical = ranker.search_lexical(body.query, body.k, body.filter, body.offset, **forgiving)
        content["lexical"] = [_result(hit) for hit in lexical]
    if body.facets:
        facets = hits.facets.items()
        content["facets"] = {name: dict(islice(values.items(), MAX_FACET_VALUES)) for name, values in facets}
    content["corrections"] = [correction._asdict() for correction in hits.corrections]
    content["unknown"] = ranker.unknown(body.query)
    content["typed"] = _typed(model, body.query)
    content["display"] = _display(model, [pair for result in results for pair in result.get("pairs", ())])
    content["milliseconds"] = round(1000.0 * (time.perf_counter() - start), 3)
    return json_response(content)


def _typed(model: LoadedModel, query: str) -> dict[str, str]:
    """Return how the user spelled the words of the query, by stem."""
    spans = model.ranker.lexical_.analyzer.spans(query)
    return {form: query[start:end] for start, end, form in spans if form != query[start:end]}


async def _explain_results(
    model: LoadedModel,
    explainer: QueryExplainer,
    results: list[dict[str, Any]],
    body: schemas.SearchRequest,
    work: Work,
) -> None:
    """Add passages, and pairs if the request wants them."""
    for result in results:
        explanation = _explanation(model, explainer, result["id"], body.pairs if body.explain else SNIPPET_PAIRS)
        if body.explain:
            work.add_pairs(len(explanation["pairs"]))
        result.update(explanation if body.explain else {"passage": explanation["passage"]})
        await work.pause()


def _result(hit: Hit) -> dict[str, Any]:
    return {**hit._asdict(), "metadata": hit.metadata}


@router.get("/documents/{id:path}", response_model=schemas.DocumentResponse, responses=error_responses(404, 422))
async def document(id: Annotated[str, Path(min_length=1, max_length=MAX_ID_CHARACTERS)], request: Request) -> Response:
    """Return a document as it was indexed."""
    model = _model(request)
    _require_documents(model, id)
    index = model.ranker.index_
    texts = {"title": index.title_of(id), "text": index.text_of(id)}
    return json_response({"id": id, **texts, "metadata": index.metadata_of(id)}, limited=False)


def _explanation(
    model: LoadedModel, explainer: QueryExplainer, document: str, max_pairs: int | None, with_score: bool = False
) -> dict[str, Any]:
    """Return passage and pairs; with `max_pairs` also what the other pairs add."""
    ranker = model.ranker
    score, pairs, rest, notes = explainer.top(document, max_pairs)
    words = [(word, contribution) for _, word, contribution, _ in pairs]
    snippet = passage(ranker.lexical_.analyzer, ranker.index_.text_of(document), words)
    names = ("query", "document", "contribution", "learned")
    body: dict[str, Any] = {
        "passage": {"text": snippet.text, "marks": [mark._asdict() for mark in snippet.marks]},
        "pairs": [
            dict(zip(names, pair, strict=True)) | ({"note": note} if note else {})
            for pair, note in zip(pairs, notes, strict=True)
        ],
    }
    if max_pairs is not None:
        body["rest"] = rest._asdict()
    if with_score:
        body["score"] = score
    return body


def _require_documents(model: LoadedModel, *documents: str) -> None:
    for document in documents:
        if document not in model.ranker.index_:
            raise NotFound(f"there is no document {document!r}; use an id from the results of /search")


@router.post("/explain", response_model=schemas.ExplainResponse, responses=error_responses(404, 422))
async def explain(body: schemas.ExplainRequest, request: Request) -> Response:
    """Explain a score: which query word met which document word, and what the pair added."""
    model = _model(request)
    _require_documents(model, body.document)
    work, explainer = Work(), model.ranker.explainer(body.query, typos=body.typos, prefix=body.prefix)
    request.scope["work"] = work
    work.explain(explainer.n_terms, 1)
    explanation = _explanation(model, explainer, body.document, body.pairs, with_score=True)
    work.add_pairs(len(explanation["pairs"]))
    display = _display(model, explanation["pairs"])
    return json_response({"version": model.version.number, **explanation, "display": display})


@router.post("/compare", response_model=schemas.CompareResponse, responses=error_responses(404, 422))
async def compare(body: schemas.CompareRequest, request: Request) -> Response:
    """Explain why one document ranks above another, with the fewest pairs that would swap them."""
    if body.first == body.second:
        return problem(422, f"body, second: {body.first!r} was given twice; name two different documents")
    model = _model(request)
    _require_documents(model, body.first, body.second)
    work, forgiving = Work(), {"typos": body.typos, "prefix": body.prefix}
    request.scope["work"] = work
    work.explain(model.ranker.explainer(body.query, **forgiving).n_terms, 2)
    compared = model.ranker.compare(body.query, body.first, body.second, **forgiving).to_dict()
    return json_response({**compared, "version": model.version.number, "display": _display(model, compared["pairs"])})


@router.post(
    "/feedback", response_model=schemas.FeedbackResponse, status_code=201, openapi_extra=NEEDS_TOKEN,
    responses=error_responses(403, 404, 409, 422, 503)
    | {200: {"model": schemas.FeedbackResponse, "description": "It was stored before."}},
)  # fmt: skip
async def feedback(body: schemas.FeedbackRequest, request: Request) -> Response:
    """Store a click or a judgment; it is on disk when the response arrives. Each id is stored once.

    A click counts if it carries the `impression` of its search, once per impression and document, and a few times per
    visitor and query. Clicks need the role "click", judgments the role "judge".
    """
    service, role = _service(request), request.scope["role"]
    if body.kind == "judgment" and not may(role, "judge"):
        return problem(403, f"the token of the role {role!r} may not judge; use the token of the role 'judge'")
    _require_documents(_model(request), body.document)
    if body.kind == "click" and body.document not in body.shown:
        return problem(422, "body, shown: a click needs its document among the shown ones")
    entry = _checked_feedback(service, body, client_address(request.scope))
    receipt = await _wait_for_database(service.store.submit(entry))
    if receipt.stored:
        service.metrics.stored.inc()
    reason = receipt.reason or ("" if receipt.counted else NO_IMPRESSION if not body.impression else LIMITED)
    content = {"id": body.id, "stored": receipt.stored, "counted": receipt.counted, "reason": reason}
    return json_response(content, 201 if receipt.stored else 200)


NO_IMPRESSION = "a click without the impression of its search does not count"
LIMITED = "this click did not count when it was stored"


def _checked_feedback(service: Service, body: schemas.FeedbackRequest, address: str) -> Feedback:
    """Return what to store; a click with a false impression raises InvalidImpression."""
    entry = Feedback(
        body.id, body.kind, body.query, body.document, tuple(body.shown), body.grade,
        impression=body.impression or "", visitor=body.visitor or "",
        address=impressions.address_digest(service.store.key, address),
    )  # fmt: skip
    if body.kind == "click" and body.impression:
        impressions.verify(service.store.key, body.impression, body.query, body.shown)
        return entry
    return replace(entry, counted=body.kind == "judgment" or service.config.unsigned_clicks)


@router.get(
    "/judgments", response_model=schemas.JudgmentsResponse, openapi_extra=NEEDS_TOKEN,
    responses=error_responses(422, 503),
)  # fmt: skip
async def judgments(
    request: Request,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    k: Annotated[int, Query(ge=1, le=MAX_JUDGMENTS)] = MAX_JUDGMENTS,
) -> Response:
    """List stored judgments, oldest first; a later judgment of the same query and document replaces an earlier one."""
    found = await asyncio.to_thread(_service(request).store.judgments, after, k)
    names = ("number", "query", "document", "grade")
    return json_response({"judgments": [{name: getattr(one, name) for name in names} for one in found]})


@router.get("/related/{word:path}", response_model=schemas.RelatedResponse, responses=error_responses(404, 422))
async def related(
    word: Annotated[str, Path(min_length=1, max_length=100)],
    request: Request,
    k: Annotated[int, Query(ge=1, le=MAX_RESULTS)] = 10,
) -> Response:
    """List the document words that a query word looks for, and the query words that look for it."""
    model = _model(request)
    forward, backward = model.related(word, k)
    display = model.ranker.lexical_.surface_forms(one for one, _ in [*forward, *backward])
    related = {"related": _weights(forward), "looked_for_by": _weights(backward)}
    return json_response({"word": word, **related, "display": display})


def _display(model: LoadedModel, pairs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return how the documents spell the stems of pairs."""
    return model.ranker.lexical_.surface_forms(pair[side] for pair in pairs for side in ("query", "document"))


def _weights(pairs: Weights) -> list[dict[str, Any]]:
    return [{"word": word, "weight": weight} for word, weight in pairs]


@router.get("/model", response_model=schemas.ModelResponse, responses=error_responses())
async def model(request: Request) -> Response:
    """Describe the served version, all versions, and the state of the learner."""
    service, loaded = _service(request), _model(request)
    return json_response(
        {
            **{name: getattr(loaded.version, name) for name in ("made", "why", "pairs")},
            "version": loaded.version.number,
            "documents": len(loaded.ranker.index_),
            "words": len(loaded.ranker.lexical_.words),
            "fields": loaded.ranker.index_.value_counts,
            "examples": loaded.examples,
            "versions": [_version_body(version) for version in service.reloader.versions()],
            "learner": {"learning": False} if service.learner is None else service.learner.state(),
        }
    )


def _version_body(version: Version) -> dict[str, Any]:
    return {name: value for name, value in version.to_dict().items() if name != "index"}  # file names are not public


@router.get("/changes", response_model=schemas.ChangesResponse, responses=error_responses(404, 409, 422))
async def changes(
    request: Request,
    days: Annotated[float, Query(ge=0, le=3650)] = 1.0,
    k: Annotated[int, Query(ge=1, le=1000)] = 50,
    version: Annotated[int | None, Query(ge=1, le=10**9)] = None,
) -> Response:
    """List the word pairs that changed most in the last days, or those that one version changed in its parent."""
    reloader = _service(request).reloader
    if version is not None and version not in {one.number for one in reloader.versions()}:
        raise NotFound(f"there is no version {version}; /model lists all versions")
    since = datetime.now(UTC) - timedelta(days=days)
    try:
        compare = (reloader.changes_since, since, k) if version is None else (reloader.changes_of, version, k)
        found = await asyncio.to_thread(*compare)
        return json_response({**found, "display": _display(_model(request), found["changes"])})
    except SparseRankError as error:  # for example a damaged old version
        return problem(409, str(error))


@router.post(
    "/model/rollback", response_model=schemas.VersionResponse, openapi_extra=NEEDS_TOKEN,
    responses=error_responses(403, 404, 409, 422),
)  # fmt: skip
async def rollback(body: schemas.RollbackRequest, request: Request) -> Response:
    """Serve an earlier version again."""
    reloader = _service(request).reloader
    if body.to not in {version.number for version in reloader.versions()}:
        raise NotFound(f"there is no version {body.to}; /model lists all versions")
    try:
        return json_response(_version_body(await asyncio.to_thread(reloader.rollback, body.to)))
    except SparseRankError as error:
        return problem(409, str(error))


@router.get("/health", response_model=schemas.HealthResponse, responses=error_responses(503))
async def health(request: Request) -> Response:
    """Report that the service and its database answer."""
    loaded, last = _model(request), await _wait_for_database(_service(request).store.submit_last())
    body = {"version": loaded.version.number, "documents": len(loaded.ranker.index_), "feedback": last}
    return json_response({"status": "ok", **body})


@router.get("/ready", response_model=schemas.ReadyResponse, responses=error_responses(503))
async def ready(request: Request) -> Response:
    """Report that this worker accepts requests; 503 from SIGTERM on. It does not ask the database."""
    if _service(request).is_draining:
        return problem(503, "the service is stopping; send requests to another one", {"retry-after": "5"})
    return json_response({"status": "ready", "version": _model(request).version.number})


@router.get(
    "/metrics", response_class=Response,
    responses=error_responses(403) | {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)  # fmt: skip
async def metrics(request: Request) -> Response:
    """Return Prometheus metrics of all workers."""
    loaded, figures = _model(request), _service(request).metrics
    figures.version.set(loaded.version.number)
    figures.documents.set(len(loaded.ranker.index_))
    figures.pairs.set(loaded.version.pairs)
    return Response(figures.text(), headers={"content-type": CONTENT_TYPE})
