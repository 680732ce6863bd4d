"""Long documents and long queries: what is heavy waits for its turn and lets other requests run, on every route."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import httpx
import pytest

import sparserank as sr
from sparserank.search import snippets
from sparserank.service import cost, routes
from sparserank.service.app import create_app
from sparserank.service.config import ServiceConfig

from .conftest import TOKEN

LONG = {"query": "common", "k": 6, "snippets": True, "filter": "length:long"}
SHORT = LONG | {"filter": "length:short"}
MANY_WORDS = " ".join(f"word{number}" for number in range(90))


@pytest.fixture(scope="module")
def long_model(tmp_path_factory):
    """Six documents of 100,000 and more characters, and six short ones, with the same common word."""
    docs = {}
    for number in range(6):
        words = " ".join(f"word{at % 500}" for at in range(number, number + 20_000))
        docs[f"long-{number}"] = {"text": f"common {words}", "metadata": {"length": "long"}}
        docs[f"short-{number}"] = {"text": f"common word{number}", "metadata": {"length": "short"}}
    assert min(len(docs[f"long-{number}"]["text"]) for number in range(6)) > snippets.MAX_CHARACTERS
    path = tmp_path_factory.mktemp("long") / "model.safetensors"
    sr.TextRanker("bm25").fit(docs).save(path)
    return path


@pytest.fixture
def app(long_model):
    made = create_app(ServiceConfig(str(long_model), TOKEN, learn=False, rate=1e9))
    yield made
    made.state.service.store.close()


def in_a_loop(app, use: Callable[[httpx.AsyncClient], Awaitable[None]]) -> None:
    async def run() -> None:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=60) as client:
            await use(client)

    asyncio.run(run())


@pytest.mark.parametrize("options", [{}, {"explain": True, "pairs": 5}])
def test_a_search_lets_others_run_after_each_long_document_also_when_it_is_repeated(app, monkeypatch, options):
    monkeypatch.setattr(cost, "SLICE_S", 0.0)
    ticks, seen = 0, []
    has_turn = app.state.service.heavy.locked

    def watch(name: str, documents: Callable[..., int]) -> None:
        compute = getattr(routes, name)
        monkeypatch.setattr(
            routes, name, lambda *args: seen.append((ticks, documents(*args), has_turn())) or compute(*args)
        )

    watch("_add_snippets", lambda explainer, results, split: len(results))
    watch("_explanation", lambda *_: 1)

    async def use(client: httpx.AsyncClient) -> None:
        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        for body in (LONG, LONG, SHORT):
            answer = await client.post("/search", json=body | options)
            assert len(answer.json()["results"]) == 6
        ticking.cancel()

    in_a_loop(app, use)
    long, short = seen[:12], seen[12:]
    assert [documents for _, documents, _ in long] == [1] * 12
    assert len({tick for tick, _, _ in long}) == 12, "others ran after each of them"
    assert all(turn for _, _, turn in long), "it had its turn among the heavy requests"
    assert sum(documents for _, documents, _ in short) == 6


@pytest.mark.parametrize(
    ("path", "heavy", "light"),
    [
        ("/search", LONG, SHORT),
        ("/explain", {"query": MANY_WORDS, "document": "long-0"}, {"query": "common", "document": "short-0"}),
        ("/compare", {"query": MANY_WORDS, "first": "long-0", "second": "long-1"},
         {"query": "common word1", "first": "short-0", "second": "short-1"}),
    ],
)  # fmt: skip
def test_heavy_requests_of_every_route_wait_for_their_turn_and_light_ones_do_not(app, path, heavy, light):
    async def use(client: httpx.AsyncClient) -> None:
        turns = app.state.service.heavy
        await turns.acquire()
        waiting = asyncio.create_task(client.post(path, json=heavy))
        for _ in range(3):
            assert (await client.post(path, json=light)).status_code == 200
        assert not waiting.done()
        turns.release()
        assert (await waiting).status_code == 200

    in_a_loop(app, use)


@pytest.mark.parametrize("path", ["/explain", "/compare"])
def test_explanations_of_many_terms_are_computed_in_a_thread_in_their_turn(app, monkeypatch, path):
    monkeypatch.setattr(routes, "MIN_HEAVY_TERMS", 1)
    bodies = {"/explain": {"document": "long-0"}, "/compare": {"first": "long-0", "second": "long-1"}}

    async def use(client: httpx.AsyncClient) -> None:
        turns = app.state.service.heavy
        await turns.acquire()
        waiting = asyncio.create_task(client.post(path, json={"query": "word1 word2", **bodies[path]}))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not waiting.done()
        turns.release()
        assert (await waiting).status_code == 200

    in_a_loop(app, use)


def test_the_words_of_long_documents_are_kept_by_what_is_read_of_them():
    cache = snippets.WordCache(2 * snippets.MAX_CHARACTERS)
    analyzer, text = sr.Analyzer(), "common " * snippets.MAX_CHARACTERS
    first = cache.words(analyzer, text)
    assert cache.characters == snippets.MAX_CHARACTERS
    assert cache.words(analyzer, text) is first
