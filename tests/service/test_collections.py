"""Several models in one service: each answers under its name, with feedback, versions and metrics of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress

import httpx
import pytest

import sparserank as sr
from sparserank.errors import ConfigError
from sparserank.service.config import RESERVED_NAMES, CollectionConfig, ServiceConfig
from sparserank.service.store import FeedbackStore

from ..cli.calling import call
from .conftest import wait_until
from .process import TOKEN, taught

pytestmark = pytest.mark.usefixtures("logging_as_it_was")


@pytest.fixture(scope="module")
def pies(tmp_path_factory):
    """Another model of other documents."""
    path = tmp_path_factory.mktemp("pies") / "pies.safetensors"
    docs = {f"pie-{word}": {"title": f"{word} pie", "text": "A red pie."} for word in ("apple", "plum", "pear")}
    sr.TextRanker("bm25").fit(docs).save(path)
    return path


@pytest.fixture
def models(model, pies, tmp_path):
    folder = tmp_path / "pies"
    shutil.copytree(pies.parent, folder)
    return {"vehicles": model, "pies": folder / pies.name}


@pytest.fixture
def both(models, serve):
    """A service of both in this process."""
    return serve(model="", collections=tuple(CollectionConfig(name, str(path)) for name, path in models.items()))


def serve_command(*words, **options):
    command = [sys.executable, "-m", "sparserank", "serve", *map(str, words), "--port", "0", "--json"]
    env = {**os.environ, "SPARSERANK_TOKEN": TOKEN}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env, **options)


def test_two_models_and_two_workers_answer_over_http_each_under_its_name(models):
    process = serve_command(*(f"{name}={path}" for name, path in models.items()), "--workers", "2", "--no-learn")
    try:
        told = json.loads(process.stdout.readline())
        assert told["collections"] == {name: f"sqlite:///{path}.feedback.sqlite" for name, path in models.items()}

        def ask(method, path, **options):
            # a connection of its own each time, so that both workers answer
            headers = {"Authorization": f"Bearer {TOKEN}"}
            return httpx.request(method, told["address"] + path, headers=headers, timeout=60, **options)

        for _ in range(6):
            cars = ask("POST", "vehicles/search", json={"query": "red car"}).json()["results"]
            pies = ask("POST", "pies/search", json={"query": "red car"}).json()["results"]
            assert cars[0]["id"] == "automobile-red"
            assert {one["id"] for one in pies} == {"pie-apple", "pie-plum", "pie-pear"}
        said = {"id": "1", "kind": "judgment", "query": "red", "document": "pie-apple"}
        assert ask("POST", "pies/feedback", json=said).status_code == 201
        assert ask("POST", "vehicles/feedback", json=said).status_code == 404, "no document of this collection"
        health = ask("GET", "health").json()
        assert {name: one["feedback"] for name, one in health["collections"].items()} == {"vehicles": 0, "pies": 1}
        text = ask("GET", "metrics").text
        assert 'sparserank_feedback_stored_total{collection="pies"} 1.0' in text
        assert 'sparserank_documents{collection="vehicles"} 24.0' in text
        assert 'sparserank_requests_total{collection="vehicles",route="/search",status="200"} 6.0' in text
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 0


def test_every_route_of_a_collection_works_and_no_route_without_a_name(both):
    get, post = both.client.get, both.client.post
    first = post("/vehicles/search", json={"query": "red car"}).json()["results"][0]["id"]
    pair = {"query": "red car", "first": first, "second": "boat-red"}
    assert post("/vehicles/explain", json={"query": "red car", "document": first}).json()["score"] > 0
    assert post("/vehicles/compare", json=pair).json()["difference"] > 0
    for path in ("related/car", f"documents/{first}", "model", "changes", "judgments", "health", "ready", "metrics"):
        assert get(f"/vehicles/{path}").status_code == 200, path
    assert post("/vehicles/model/rollback", json={"to": 1}).json()["number"] == 1
    for path in ("/search", "/model", "/nowhere/model", "/vehicles/vehicles/model", "//vehicles/model"):
        answer = post(path, json={"query": "x"}) if path == "/search" else get(path)
        assert answer.status_code == 404, path
    assert "/vehicles/, /pies/" in post("/search", json={"query": "x"}).json()["detail"]
    assert get("/ready").json()["collections"] == {"vehicles": {"version": 1}, "pies": {"version": 1}}
    model = get("/pies/model").json()
    assert (model["collection"], model["collections"]) == ("pies", ["vehicles", "pies"])


def test_the_page_of_each_collection_is_at_its_name(both):
    for path, to in (("/", "/vehicles/"), ("/pies", "/pies/")):
        answer = both.client.get(path)
        assert (answer.status_code, httpx.URL(answer.headers["location"]).path) == (307, to)
    assert "<title>SparseRank</title>" in both.client.get("/pies/").text
    assert both.client.get("/page/main.js").status_code == 200
    assert both.client.get("/pies/openapi.json").json()["servers"] == [{"url": "/pies"}]


def test_writes_need_their_role_under_every_name(both):
    nobody = {"Authorization": ""}
    for path in ("feedback", "judgments", "model/rollback"):
        for name in ("vehicles", "pies"):
            assert both.client.post(f"/{name}/{path}", json={}, headers=nobody).status_code == 401, path


def test_an_impression_of_one_collection_is_none_of_another(both):
    found = both.client.post("/vehicles/search", json={"query": "red"}).json()
    click = {"id": "c", "kind": "click", "query": "red", "document": "pie-plum", "shown": ["pie-plum"]}
    answer = both.client.post("/pies/feedback", json=click | {"impression": found["impression"]})
    assert answer.status_code == 422


def test_a_new_version_of_one_collection_leaves_the_other(both, models):
    taught(models["vehicles"])

    def version(name):
        return both.client.get(f"/{name}/health").json()["version"]

    wait_until(lambda: version("vehicles") == 2)
    assert version("pies") == 1


def test_the_feedback_of_collections_is_kept_apart_in_one_place(models, tmp_path, serve):
    collections = tuple(CollectionConfig(name, str(path)) for name, path in models.items())
    running = serve(model="", collections=collections, database=f"sqlite:///{tmp_path}/of-{{name}}.sqlite")
    said = {"id": "1", "kind": "judgment", "query": "red", "document": "pie-plum"}
    assert running.client.post("/pies/feedback", json=said).status_code == 201
    last = []
    for name in models:
        store = FeedbackStore(f"sqlite:///{tmp_path}/of-{name}.sqlite", create=False)
        last.append(store.last())
        store.close()
    assert last == [0, 1]


def test_one_model_without_a_name_is_served_as_before(serve):
    running = serve()
    assert running.client.post("/search", json={"query": "red car"}).status_code == 200
    model = running.client.get("/model").json()
    assert (model["collection"], model["collections"]) == ("", [])
    assert "sparserank_documents 24.0" in running.client.get("/metrics").text


@pytest.mark.parametrize("name", ["", "a b", "-a", "ä", "a/b", "x" * 65, *sorted(RESERVED_NAMES)[:3]])
def test_a_name_that_no_path_can_have_is_rejected(name):
    with pytest.raises(ConfigError, match="cannot have the name"):
        CollectionConfig(name, "m")


def test_collections_that_would_share_feedback_are_rejected():
    two = (CollectionConfig("a", "m"), CollectionConfig("b", "n"))
    with pytest.raises(ConfigError, match=r"write --database with \{name\}"):
        ServiceConfig("", TOKEN, database="sqlite:///one.sqlite", collections=two)
    with pytest.raises(ConfigError, match="same database"):
        ServiceConfig("", TOKEN, collections=(CollectionConfig("a", "m"), CollectionConfig("b", "./m")))
    with pytest.raises(ConfigError, match="same name"):
        ServiceConfig("", TOKEN, collections=(two[0], two[0]))


def test_two_collections_share_a_model_only_if_neither_learns():
    two, database = (CollectionConfig("a", "m"), CollectionConfig("b", "./m", "other.index")), "sqlite:///{name}.sqlite"
    with pytest.raises(ConfigError, match="learn into the same model"):
        ServiceConfig("", TOKEN, database=database, collections=two)
    shared = ServiceConfig("", TOKEN, database=database, collections=two, learn=False)
    assert [one.index for one in shared.by_collection.values()] == [None, "other.index"]


def test_the_file_has_a_table_for_each_collection(models, tmp_path, capsys):
    database = tmp_path / "own.sqlite"
    text = f'workers = 1\nlearn = false\n[collections.vehicles]\nmodel = "{models["vehicles"]}"\n'
    text += f'index = "{models["vehicles"]}.index"\n'
    text += f'[collections.pies]\nmodel = "{models["pies"]}"\ndatabase = "sqlite:///{database}"\n'
    (tmp_path / "s.toml").write_text(text)
    assert call("serve", "--config", tmp_path / "s.toml", "--check", "--json") == 0
    found = json.loads(capsys.readouterr().out)["collections"]
    assert {name: (one["documents"], one["database"]) for name, one in found.items()} == {
        "vehicles": (24, f"sqlite:///{models['vehicles']}.feedback.sqlite"),
        "pies": (3, f"sqlite:///{database}"),
    }


@pytest.mark.parametrize(
    ("words", "text", "message"),
    [
        (["a=m", "n"], "", "several models need names"),
        (["a=m", "--held-out", "x"], "", "those of one model"),
        (["page=m"], "", "cannot have the name 'page'"),
        ([], "[collections.a]\nmodell = 'm'", "there is no option 'modell'"),
        ([], "[collections.a]\nindex = 'm'", "the option 'model' is missing"),
        ([], "[collections.a]\nmodel = 'm'\nindex = 5", "[collections.a]: the option 'index' must be text; got 5"),
        ([], "collections = 3", "write a table"),
    ],
)
def test_a_mistake_is_one_line(words, text, message, tmp_path, capsys):
    (tmp_path / "s.toml").write_text(text)
    with suppress(FileNotFoundError):
        assert call("serve", *words, "--config", tmp_path / "s.toml", "--check") == 2
    assert message in capsys.readouterr().err.splitlines()[-1]
