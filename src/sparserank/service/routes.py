"""One function per route. Responses are serialized here and not validated a second time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from ..search import Hit
from ..search.explanation import Explanation
from ..search.snippets import MAX_CHARACTERS, Passage, passage
from ..text_ranker.explain import QueryExplainer
from . import cost, impressions, schemas
from .access import may
from .config import MAX_FACET_VALUES, MAX_ID_CHARACTERS, MAX_JUDGMENTS, MAX_RESULTS
from .cost import MAX_LIGHT_CHARACTERS, MIN_HEAVY_BYTES, MIN_HEAVY_TERMS, SLICE_BYTES, Work
from .exception_handlers import NotFound, error_responses, problem
from .feedback import Feedback
from .middleware import client_address
from .reloader import LoadedModel, Weights
from .state import NEEDS_TOKEN, Service, json_response, model_of, service_of, spellings, wait_for_database
from .trial import Interleaved

router = APIRouter()
SNIPPET_PAIRS = 20
"""The largest pairs of a result, whose words its passage marks."""


@router.post("/search", response_model=schemas.SearchResponse, responses=error_responses(422))
async def search(body: schemas.SearchRequest, request: Request) -> Response:
    """Find the best documents for a query; `explain` adds why each of them is there. A click sends `impression`."""
    start, service = time.perf_counter(), service_of(request)
    work = request.scope["work"] = Work()
    async with work.turn(service.heavy, len(body.query) > MAX_LIGHT_CHARACTERS):
        content = await _search(body, request, work)
        content["milliseconds"] = round(1000.0 * (time.perf_counter() - start), 3)
        return json_response(content)


async def _search(body: schemas.SearchRequest, request: Request, work: Work) -> dict[str, Any]:
    """Return the content of the answer."""
    service, model = service_of(request), model_of(request)
    ranker = model.ranker
    forgiving: dict[str, Any] = {"typos": body.typos, "prefix": body.prefix}
    explainers: dict[int, QueryExplainer] = {}
    if body.explain or body.snippets:
        explainers[model.version.number] = ranker.explainer(body.query, **forgiving)
        work.explain(explainers[model.version.number].n_terms, body.k)
    options: dict[str, Any] = {"filter": body.filter, "facets": body.facets, "total": body.total, **forgiving}
    with service.telemetry.span("search", k=body.k, offset=body.offset, version=model.version.number):
        drawn = Interleaved.draw(
            model, service.reloader.trial(), service.store.key, client_address(request.scope), time.time(),
            body.query, body.k, body.offset, **options,
        )  # fmt: skip
        found = drawn.served if drawn else ranker.search(body.query, body.k, offset=body.offset, **options)
    await work.pause()
    hits = drawn.hits if drawn else found
    models = drawn.models if drawn else [model] * len(hits)
    results = [_result(hit) for hit in hits]
    shown = impressions.Impression(model.version.number, body.offset, int(time.time()))
    if drawn:
        shown = shown._replace(seed=drawn.seed, candidate=drawn.candidate, drafted=drawn.drafted)
        for result, one in zip(results, models, strict=True):
            result["version"] = one.version.number
    content: dict[str, Any] = {
        "query": body.query, "version": model.version.number, "results": results,
        "impression": impressions.sign(service.store.key, body.query, [hit.id for hit in hits], shown),
    }  # fmt: skip
    if explainers:
        for one in models:
            if one.version.number not in explainers:
                explainers[one.version.number] = one.ranker.explainer(body.query, **forgiving)
        n_terms = max(one.n_terms for one in explainers.values())
        read = sum(_bytes_read(one, hit.id) for one, hit in zip(models, hits, strict=True))
        is_heavy = n_terms * len(results) > MIN_HEAVY_TERMS or read > MIN_HEAVY_BYTES
        with service.telemetry.span("explain", documents=len(results)):
            async with work.turn(service.heavy, is_heavy):
                await _explain_results(models, explainers, results, body, work)
    if body.lexical:
        lexical = ranker.search_lexical(body.query, body.k, body.filter, body.offset, **forgiving)
        content["lexical"] = [_result(hit) for hit in lexical]
    if body.facets:
        facets = found.facets.items()
        content["facets"] = {name: dict(islice(values.items(), MAX_FACET_VALUES)) for name, values in facets}
    content["corrections"] = [correction._asdict() for correction in found.corrections]
    content["total"] = found.total
    content["total_is_exact"] = found.total is not None and drawn is None
    content["completed"] = sorted({word for one in explainers.values() for word in one.query.completed})
    content["unknown"] = ranker.unknown(body.query)
    content["typed"] = _typed(model, body.query)
    content["display"] = spellings(model, [pair for result in results for pair in result.get("pairs", ())])
    return content


def _bytes_read(model: LoadedModel, document: str) -> int:
    """Return how much of a document is read for its passage."""
    return min(model.ranker.index_.text_bytes(document), MAX_CHARACTERS)


def _typed(model: LoadedModel, query: str) -> dict[str, str]:
    """Return how the user spelled the words of the query, by stem."""
    spans = model.ranker.lexical_.analyzer.spans(query)
    return {form: query[start:end] for start, end, form in spans if form != query[start:end]}


async def _explain_results(
    models: Sequence[LoadedModel],
    explainers: Mapping[int, QueryExplainer],
    results: list[dict[str, Any]],
    body: schemas.SearchRequest,
    work: Work,
) -> None:
    """Add passages, and pairs if the request wants them; the model that found a result explains it."""
    if not body.explain:
        for number, explainer in explainers.items():
            own = [
                (result, _bytes_read(model, result["id"]))
                for model, result in zip(models, results, strict=True)
                if model.version.number == number
            ]
            for part in _slices(own, max(1, MIN_HEAVY_TERMS // max(explainer.n_terms, 1))):
                _add_snippets(explainer, part, body.split)
                await work.pause()
        return
    for model, result in zip(models, results, strict=True):
        explanation = _explanation(model, explainers[model.version.number], result["id"], body.pairs)
        work.add_pairs(len(explanation["pairs"]))
        if not body.split:
            del explanation["split"]
        result.update(explanation)
        await work.pause()


def _slices(results: Iterable[tuple[dict[str, Any], int]], size: int) -> Iterator[list[dict[str, Any]]]:
    """Split results with the bytes of their texts into slices of at most `size` results and about SLICE_BYTES.

    >>> list(_slices([({"id": "a"}, 9_000), ({"id": "b"}, 9_000), ({"id": "c"}, 90_000), ({"id": "d"}, 10)], 10))
    [[{'id': 'a'}, {'id': 'b'}], [{'id': 'c'}], [{'id': 'd'}]]
    """
    part: list[dict[str, Any]] = []
    total = 0
    for result, length in results:
        if part and (len(part) == size or total + length > SLICE_BYTES):
            yield part
            part, total = [], 0
        part.append(result)
        total += length
    if part:
        yield part


def _add_snippets(explainer: QueryExplainer, results: Sequence[dict[str, Any]], with_split: bool) -> None:
    """Add passages without their pairs, and what words and pairs add to the score."""
    found = explainer.snippets([result["id"] for result in results], SNIPPET_PAIRS)
    for result, snippet in zip(results, found, strict=True):
        result["passage"] = _passage(snippet.passage, snippet.learned)
        if with_split:
            result["split"] = snippet.split._asdict()


def _passage(found: Passage, learned: Sequence[bool]) -> dict[str, Any]:
    """Return a passage; a mark is learned if all of its pairs are."""
    marks = [
        {"start": start, "end": end, "pairs": pairs, "learned": all(learned[i] for i in pairs)}
        for start, end, pairs in found.marks
    ]
    return {"text": found.text, "marks": marks}


def _result(hit: Hit) -> dict[str, Any]:
    return {**hit._asdict(), "metadata": hit.metadata}


@router.get("/documents/{id:path}", response_model=schemas.DocumentResponse, responses=error_responses(404, 422))
async def document(
    id: Annotated[str, Path(min_length=1, max_length=MAX_ID_CHARACTERS)],
    request: Request,
    offset: Annotated[int, Query(ge=0, le=2**53)] = 0,
) -> Response:
    """Return a document as it was indexed; the rest of a long text is at `offset=next`."""
    request.scope["work"] = Work()
    model, trial = model_of(request), service_of(request).reloader.trial()
    if trial is not None and id not in model.ranker.index_:
        model = trial.model
    _require_documents(model, id)
    index = model.ranker.index_
    text, end = index.text_of(id), offset + cost.MAX_TEXT_CHARACTERS
    if end < len(text):
        end = text.rfind(" ", offset, end) + 1 or end  # no part ends inside a word
    content = {"id": id, "title": index.title_of(id), "text": text[offset:end], "metadata": index.metadata_of(id)}
    return json_response({**content, "next": end if end < len(text) else None})


def _explanation(
    model: LoadedModel, explainer: QueryExplainer, document: str, max_pairs: int | None, with_score: bool = False
) -> dict[str, Any]:
    """Return passage and pairs; with `max_pairs` also what the other pairs add."""
    ranker = model.ranker
    score, pairs, rest, notes = top = explainer.top(document, max_pairs)
    words = [(word, contribution) for _, word, contribution, _ in pairs]
    snippet = passage(ranker.lexical_.analyzer, ranker.index_.text_of(document), words)
    names = ("query", "document", "contribution", "learned")
    body: dict[str, Any] = {
        "passage": _passage(snippet, [learned for *_, learned in pairs]),
        "split": top.split._asdict(),
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


def _model_of_version(request: Request, version: int | None) -> LoadedModel:
    """Return the served model, or the candidate if a request names it: the version of an interleaved result."""
    trial = service_of(request).reloader.trial()
    return trial.model if trial is not None and trial.trial.version == version else model_of(request)


def _explain_one(
    model: LoadedModel, explainer: QueryExplainer, body: schemas.ExplainRequest
) -> tuple[dict[str, Any], Explanation]:
    """Return the explanation of a score, and that of its learned part."""
    explanation = _explanation(model, explainer, body.document, body.pairs, with_score=True)
    return explanation, explainer.learned(body.document)


@router.post("/explain", response_model=schemas.ExplainResponse, responses=error_responses(404, 422))
async def explain(body: schemas.ExplainRequest, request: Request) -> Response:
    """Explain a score: which query word met which document word, and what the pair added."""
    model, service = _model_of_version(request, body.version), service_of(request)
    _require_documents(model, body.document)
    work = request.scope["work"] = Work()
    async with work.turn(service.heavy, len(body.query) > MAX_LIGHT_CHARACTERS):
        explainer = model.ranker.explainer(body.query, typos=body.typos, prefix=body.prefix)
        work.explain(explainer.n_terms, 1)
        is_heavy = explainer.n_terms > MIN_HEAVY_TERMS
        with service.telemetry.span("explain", documents=1):
            explanation, learned = await work.run(service.heavy, is_heavy, _explain_one, model, explainer, body)
    work.add_pairs(len(explanation["pairs"]))
    groups = learned.learned_groups[: body.pairs]
    explanation["groups"] = [group._asdict() for group in groups]
    explanation["explained_share"] = learned.explained_share
    grouped = [{"query": group.query, "document": word} for group in groups for word in group.documents]
    display = spellings(model, [*explanation["pairs"], *grouped])
    return json_response({"version": model.version.number, **explanation, "display": display})


@router.post("/compare", response_model=schemas.CompareResponse, responses=error_responses(404, 422))
async def compare(body: schemas.CompareRequest, request: Request) -> Response:
    """Explain why one document ranks above another, with the fewest pairs that would swap them."""
    if body.first == body.second:
        return problem(422, f"body, second: {body.first!r} was given twice; name two different documents")
    model = model_of(request)
    _require_documents(model, body.first, body.second)
    service, forgiving = service_of(request), {"typos": body.typos, "prefix": body.prefix}
    work = request.scope["work"] = Work()
    async with work.turn(service.heavy, len(body.query) > MAX_LIGHT_CHARACTERS):
        n_terms = model.ranker.explainer(body.query, **forgiving).n_terms
        work.explain(n_terms, 2)
        compare = partial(model.ranker.compare, body.query, body.first, body.second, **forgiving)
        compared = (await work.run(service.heavy, 2 * n_terms > MIN_HEAVY_TERMS, compare)).to_dict()
    return json_response({**compared, "version": model.version.number, "display": spellings(model, compared["pairs"])})


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
    service, role = service_of(request), request.scope["role"]
    if body.kind == "judgment" and not may(role, "judge"):
        return problem(403, f"the token of the role {role!r} may not judge; use the token of the role 'judge'")
    trial, model = service.reloader.trial(), model_of(request)
    if trial is None or body.document not in trial.model.ranker.index_:
        _require_documents(model, body.document)
    if body.kind == "click" and body.document not in body.shown:
        return problem(422, "body, shown: a click needs its document among the shown ones")
    entry = _checked_feedback(service, body, client_address(request.scope))
    with service.telemetry.span("store", kind=body.kind):
        receipt = await wait_for_database(service.store.submit(entry))
    if receipt.stored:
        service.metrics.stored(service.name)
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
    found = await asyncio.to_thread(service_of(request).store.judgments, after, k)
    names = ("number", "query", "document", "grade")
    return json_response({"judgments": [{name: getattr(one, name) for name in names} for one in found]})


@router.get("/related/{word:path}", response_model=schemas.RelatedResponse, responses=error_responses(404, 422))
async def related(
    word: Annotated[str, Path(min_length=1, max_length=100)],
    request: Request,
    k: Annotated[int, Query(ge=1, le=MAX_RESULTS)] = 10,
) -> Response:
    """List the document words that a query word looks for, and the query words that look for it."""
    model = model_of(request)
    forward, backward = model.related(word, k)
    display = model.ranker.lexical_.surface_forms(one for one, _ in [*forward, *backward])
    related = {"related": _weights(forward), "looked_for_by": _weights(backward)}
    return json_response({"word": word, **related, "display": display})


def _weights(pairs: Weights) -> list[dict[str, Any]]:
    return [{"word": word, "weight": weight} for word, weight in pairs]
