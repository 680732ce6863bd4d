"""What the page needs besides searching: examples, fields, spellings, judgments, changes of a version."""

from __future__ import annotations

from sparserank.text_ranker import TextRanker

from .conftest import COLOURS, python, wait_until
from .process import taught


def test_the_model_names_its_metadata_fields_with_the_number_of_their_values(service):
    assert service.client.get("/model").json()["fields"] == {"number": len(COLOURS), "thing": 3}


def test_example_queries_find_documents_by_learned_words(service):
    examples = service.client.get("/model").json()["examples"]
    assert 1 <= len(examples) <= 6
    for example in examples:
        related = service.client.get(f"/related/{example}").json()["related"]
        assert any(one["word"] != example and one["weight"] > 0 for one in related)
        assert service.client.post("/search", json={"query": example}).json()["results"], example


def test_without_learned_pairs_the_examples_are_short_titles(serve, model):
    docs = {f"d{n}": {"title": f"number {n}", "text": "dry"} for n in range(9)} | {"long": {"title": "x" * 61}}
    TextRanker("bm25").fit(docs).save(model)
    examples = serve().client.get("/model").json()["examples"]
    assert len(examples) == 6
    assert all(len(one) <= 60 for one in examples)


def test_a_search_tells_how_the_user_spelled_its_stems(service):
    found = service.client.post("/search", json={"query": "Boats and red WHEELS"}).json()
    assert found["typed"] == {"boat": "Boats", "wheel": "WHEELS"}


def test_judgments_are_listed_in_the_order_of_storage_and_clicks_are_not(serve):
    running = serve()
    about = {"query": "red car", "document": "boat-red"}
    for number, grade in enumerate((2.0, -1.0, 0.0)):
        running.client.post("/feedback", json={"id": f"j{number}", "kind": "judgment", "grade": grade, **about})
        click = {"id": f"c{number}", "kind": "click", "shown": ["boat-red"], **about}
        running.client.post("/feedback", json=click)
    found = running.client.get("/judgments").json()["judgments"]
    assert [one["grade"] for one in found] == [2.0, -1.0, 0.0]
    assert {(one["query"], one["document"]) for one in found} == {("red car", "boat-red")}
    rest = running.client.get("/judgments", params={"after": found[0]["number"], "k": 1}).json()["judgments"]
    assert rest == found[1:2]
    assert running.client.get("/judgments", headers={"Authorization": ""}).status_code == 401


def test_the_changes_of_one_version_are_those_in_its_parent(serve, model):
    running = serve()
    taught(model)
    wait_until(lambda: running.client.get("/health").json()["version"] == 2)
    found = running.client.get("/changes", params={"version": 2}).json()
    assert (found["before"], found["after"]) == (1, 2)
    assert [(one["query"], one["document"]) for one in found["changes"]] == [("car", "boat")]
    running.client.post("/model/rollback", json={"to": 1})
    assert running.client.get("/changes", params={"version": 2}).json() == found, "whichever version is served"
    assert running.client.get("/changes", params={"version": 1}).json()["changes"] == []
    assert running.client.get("/changes", params={"version": 7}).status_code == 404


PAGE_SEARCHES = """
import sys
from numba.core.dispatcher import Dispatcher
from fastapi.testclient import TestClient
from sparserank.service.app import create_app
from sparserank.service.config import ServiceConfig

app = create_app(ServiceConfig(sys.argv[1], "a-token-of-the-tests", learn=False))
compiled, compile = [], Dispatcher.compile
Dispatcher.compile = lambda kernel, signature: compiled.append(kernel.__name__) or compile(kernel, signature)
client = TestClient(app, base_url="http://127.0.0.1")
forgiving = {"typos": True, "prefix": True}
asked = {"query": "redd automob", "explain": True, "pairs": 20, "lexical": True, "facets": ["thing"], **forgiving}
(first, *_) = client.post("/search", json=asked).json()["results"]
print(first["id"], compiled)
"""


def test_the_first_search_of_the_page_waits_for_no_compilation(model):
    found = python(PAGE_SEARCHES, str(model))
    said, errors = found.communicate(timeout=120)
    assert said == "automobile-red []\n", errors
