"""What the service answers, over real HTTP."""

from __future__ import annotations

import json

import pytest

import sparserank as sr
from sparserank.service import cost
from sparserank.text_ranker import load_text


@pytest.fixture(scope="module")
def ranker(small_model):
    return load_text(small_model)


def post(service, path, **asked):
    answer = service.client.post(path, json=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_search_answers_what_the_ranker_finds(service, ranker):
    found = post(service, "/search", query="purple car zzz", k=5)
    assert [(one["id"], one["score"], one["title"]) for one in found["results"]] == ranker.search("purple car zzz", 5)
    assert found["query"] == "purple car zzz"
    assert found["version"] == 1
    assert set(found["unknown"]) == {"purple", "zzz", "car"}
    assert set(found["results"][0]) == {"id", "score", "title", "metadata"}
    assert "lexical" not in found
    assert found["milliseconds"] > 0


def test_a_search_shows_the_lexical_ranking_beside_the_learned_one(service, ranker):
    found = post(service, "/search", query="red car", lexical=True)
    wanted = ranker.search_lexical("red car", 10)
    assert found["lexical"] == [{**hit._asdict(), "metadata": hit.metadata} for hit in wanted]
    assert found["lexical"] != found["results"]


def test_a_search_is_filtered_counted_and_continued(service, ranker):
    asked = {"query": "red car", "filter": "number<4 AND NOT thing:boat", "facets": ["thing"], "lexical": True}
    found = post(service, "/search", **asked, k=3)
    wanted = ranker.search("red car", 3, filter=asked["filter"], facets=["thing"])
    assert found["results"] == [{**hit._asdict(), "metadata": hit.metadata} for hit in wanted]
    assert found["facets"] == wanted.facets
    assert all(one["metadata"]["number"] < 4 for one in found["results"] + found["lexical"])
    mapping = {"number": {"<": 4}, "thing": ["automobile", "bicycle"]}
    assert post(service, "/search", query="red car", filter=mapping, k=3)["results"] == found["results"]
    assert post(service, "/search", **asked, k=2, offset=1)["results"] == found["results"][1:]


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"filter": "thing:"}, "filter: expected a value after 'thing:' at position 6"),
        ({"filter": "thong:x"}, "filter: there is no field 'thong' at position 0; the fields are number, thing"),
        ({"filter": {"thing": {"~": 1}}}, "filter: the comparisons of 'thing' are >=, >, <=, <; got '~'"),
        ({"facets": ["x"]}, "facets: there is no field 'x'; the fields are number, thing"),
        ({"facets": ["thing"] * 11}, "body, facets: list should have at most 10 items"),
        ({"filter": "x" * 1001}, "body, filter"),
        ({"offset": -1}, "body, offset: input should be greater than or equal to 0"),
    ],
)
def test_a_bad_filter_or_facet_is_one_sentence(service, asked, sentence):
    answer = service.client.post("/search", json={"query": "red car", **asked})
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(sentence)


def test_a_document_is_returned_as_it_was_indexed(service):
    answer = service.client.get("/documents/boat-red")
    assert answer.json() == {
        "id": "boat-red",
        "title": "red boat",
        "text": "It has a sail number0.",
        "metadata": {"thing": "boat", "number": 0},
        "next": None,
    }
    missing = service.client.get("/documents/no/such")
    assert (missing.status_code, missing.json()["detail"][:31]) == (404, "there is no document 'no/such';")


def test_a_long_text_comes_in_parts(service, monkeypatch):
    monkeypatch.setattr(cost, "MAX_TEXT_CHARACTERS", 8)
    parts, offset = [], 0
    while offset is not None:
        answer = service.client.get("/documents/boat-red", params={"offset": offset}).json()
        parts.append(answer["text"])
        offset = answer["next"]
    assert parts == ["It has ", "a sail ", "number0."]
    monkeypatch.setattr(cost, "MAX_TEXT_CHARACTERS", 3)
    assert service.client.get("/documents/boat-red", params={"offset": 14}).json()["text"] == "num"
    beyond = service.client.get("/documents/boat-red", params={"offset": 100}).json()
    assert (beyond["text"], beyond["next"]) == ("", None)


def test_a_search_explains_every_result_and_pairs_sum_to_its_score(service, ranker):
    found = post(service, "/search", query="red car", explain=True, k=100)
    assert len(found["results"]) > 8, "more than are explained without a pause"
    for result in found["results"]:
        assert sum(pair["contribution"] for pair in result["pairs"]) == pytest.approx(result["score"], rel=1e-5)
        passage = result["passage"]
        for mark in passage["marks"]:
            assert passage["text"][mark["start"] : mark["end"]]
            assert all(0 <= number < len(result["pairs"]) for number in mark["pairs"])
    assert {pair["learned"] for pair in found["results"][0]["pairs"]} == {True, False}


@pytest.mark.parametrize("pairs", [0, 1, 3, 1000])
def test_a_search_may_want_the_largest_pairs_only_and_is_told_what_the_others_add(service, pairs):
    query = "red blue green car ship"
    every = post(service, "/search", query=query, explain=True)["results"]
    some = post(service, "/search", query=query, explain=True, pairs=pairs)["results"]
    assert max(len(result["pairs"]) for result in every) > 3
    for result, whole in zip(some, every, strict=True):
        assert result["pairs"] == whole["pairs"][:pairs]
        left = whole["pairs"][pairs:]
        assert result["rest"]["pairs"] == len(left)
        for part, chosen in {
            "lexical": [one for one in left if not one["learned"] and one["contribution"] > 0],
            "learned": [one for one in left if one["learned"] and one["contribution"] > 0],
            "away": [one for one in left if one["contribution"] < 0],
        }.items():
            assert result["rest"][part] == pytest.approx(sum(one["contribution"] for one in chosen))
        assert all(number < len(result["pairs"]) for mark in result["passage"]["marks"] for number in mark["pairs"])
    assert "rest" not in every[0]


def test_an_explanation_is_the_rankers(service, ranker):
    found = post(service, "/explain", query="red car", document="automobile-red")
    why = ranker.explain("red car", "automobile-red")
    assert found["score"] == why.score
    assert sum(pair["contribution"] for pair in found["pairs"]) == pytest.approx(why.score, rel=1e-5)
    assert any(pair["learned"] and pair["query"] == "car" for pair in found["pairs"])
    assert abs(found["pairs"][0]["contribution"]) >= abs(found["pairs"][-1]["contribution"])
    assert found["version"] == 1


@pytest.mark.parametrize("pairs", [None, 0, 1])
def test_an_explanation_has_the_learned_pairs_in_groups(service, ranker, pairs):
    query = "red blue green car ship"
    found = post(service, "/explain", query=query, document="automobile-red", pairs=pairs)
    why = ranker.explain(query, "automobile-red")
    assert len(why.learned_groups) > 1
    expected = [group._asdict() for group in why.learned_groups][:pairs]
    assert found["groups"] == json.loads(json.dumps(expected))
    assert found["explained_share"] == why.explained_share
    named = {word for group in expected for word in group["documents"]} | {one["document"] for one in found["pairs"]}
    assert ("automobil" in found["display"]) == ("automobil" in named)
    stop_words = post(service, "/explain", query="the", document="automobile-red")
    assert (stop_words["groups"], stop_words["explained_share"]) == ([], None)


def test_two_documents_are_compared(service, ranker):
    found = post(service, "/compare", query="red car", first="automobile-red", second="boat-red")
    expected = ranker.compare("red car", "automobile-red", "boat-red").to_dict()
    expected |= {"version": 1, "display": {"automobil": "automobile"}}
    assert found == json.loads(json.dumps(expected))


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/explain", {"query": "red", "document": "nothing"}),
        ("/compare", {"query": "red", "first": "boat-red", "second": "nothing"}),
        ("/feedback", {"id": "a", "kind": "judgment", "query": "red", "document": "nothing"}),
    ],
)
def test_a_document_that_is_not_there_is_404_by_name(service, path, asked):
    answer = service.client.post(path, json=asked)
    assert answer.status_code == 404
    assert "'nothing'" in answer.json()["detail"]


def test_a_document_is_not_compared_with_itself(service):
    answer = service.client.post("/compare", json={"query": "red", "first": "boat-red", "second": "boat-red"})
    assert answer.status_code == 422
    assert "given twice" in answer.json()["detail"]


def test_related_words_are_a_row_and_a_column_of_the_pairs(service, ranker):
    pairs = {(pair.query, pair.document): pair.contribution for pair in ranker.top_pairs(1000)}
    found = service.client.get("/related/cars?k=3").json()
    row = sorted((weight for (query, _), weight in pairs.items() if query == "car"), reverse=True)
    assert found["word"] == "cars"
    assert {one["word"] for one in found["related"][:2]} == {"automobil", "wheel"}  # every automobile has a wheel
    assert [one["weight"] for one in found["related"]] == pytest.approx(row[:3])
    column = {query: weight for (query, document), weight in pairs.items() if document == "automobil"}
    found = service.client.get("/related/automobile?k=100").json()["looked_for_by"]
    assert {one["word"]: one["weight"] for one in found} == pytest.approx(column)
    assert [one["weight"] for one in found] == sorted(column.values(), reverse=True)


@pytest.mark.parametrize("word", ["unheardof", "%20", "!!", "%E2%80%A6", "tcp%2Fip", "tcp/ip", "/"])
def test_a_word_without_pairs_has_empty_lists(service, word):
    found = service.client.get(f"/related/{word}")
    assert found.status_code == 200
    assert (found.json()["related"], found.json()["looked_for_by"]) == ([], [])


def test_a_model_without_pairs_is_served(tmp_path, serve, model):
    sr.TextRanker("bm25").fit({"d1": "red apples"}).save(model)
    running = serve()
    assert post(running, "/search", query="apple", explain=True)["results"][0]["id"] == "d1"
    assert running.client.get("/related/apple").json()["related"] == []
    assert running.client.get("/model").json()["pairs"] == 0


def test_the_model_and_its_versions_are_told(service, ranker):
    found = service.client.get("/model").json()
    assert (found["version"], found["documents"], found["pairs"]) == (1, 24, ranker.model_.n_pairs)
    assert found["words"] == len(ranker.lexical_.words)
    assert [one["number"] for one in found["versions"]] == [1]
    assert len(found["versions"][0]["sha256"]) == 64
    assert found["learner"] == {"learning": False}


CLICK = {
    "id": "c1",
    "kind": "click",
    "query": "red car",
    "document": "boat-red",
    "shown": ["automobile-red", "boat-red"],
}


def test_feedback_is_stored_once_and_counted(serve):
    running = serve()
    first = running.client.post("/feedback", json=CLICK)
    assert (first.status_code, first.json()["stored"]) == (201, True)
    again = running.client.post("/feedback", json=CLICK)
    assert (again.status_code, again.json()["stored"]) == (200, False)
    other = running.client.post("/feedback", json=CLICK | {"query": "blue car"})
    assert other.status_code == 409
    assert "'c1'" in other.json()["detail"]
    assert running.client.get("/health").json() == {"status": "ok", "version": 1, "documents": 24, "feedback": 1}
    (stored,) = running.app.state.service.store.since(0)
    assert (stored.id, stored.kind, stored.shown, stored.grade) == ("c1", "click", tuple(CLICK["shown"]), 1.0)


@pytest.mark.parametrize("path", ["/health", "/ready"])
def test_load_balancers_may_ask_with_head(service, path):
    asked, read = service.client.head(path), service.client.get(path)
    assert (asked.status_code, asked.content) == (200, b"")
    assert asked.headers["content-type"] == read.headers["content-type"]
    assert asked.headers["content-length"] == str(len(read.content))


def test_a_click_is_on_a_document_that_was_shown(service):
    answer = service.client.post("/feedback", json=CLICK | {"shown": ["automobile-red"]})
    assert answer.status_code == 422
    assert "needs its document among the shown ones" in answer.json()["detail"]


def test_feedback_that_cannot_be_stored_is_503_and_may_be_sent_again(serve, monkeypatch):
    from sqlalchemy.exc import OperationalError

    running = serve()
    store = running.app.state.service.store

    def full():
        raise OperationalError("COMMIT", None, Exception("database or disk is full"))

    with monkeypatch.context() as broken:
        broken.setattr(store._database, "writing", full)
        broken.setattr(store._database, "reading", full)
        answer = running.client.post("/feedback", json=CLICK)
        health = running.client.get("/health")
    assert health.status_code == 503
    assert health.json()["detail"] == "feedback cannot be read: database or disk is full"
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "5"
    assert answer.json()["detail"] == "not stored: database or disk is full; send it again later with the same id"
    assert running.client.post("/search", json={"query": "red"}).status_code == 200
    assert running.client.post("/feedback", json=CLICK).status_code == 201


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("{", "the body is not JSON"),
        ("", "must be a JSON object"),
        ("[]", "must be a JSON object"),
        ("null", "must be a JSON object"),
        ('{"query": ""}', "at least 1 character"),
        ('{"query": "' + "x" * 1001 + '"}', "at most 1000 characters"),
        ('{"query": "a\\u0000b"}', "body, query"),
        ('{"query": "\\ud800"}', "body, query"),
        ('{"query": "a", "k": 0}', "body, k: input should be greater than or equal to 1"),
        ('{"query": "a", "k": 101}', "body, k: input should be less than or equal to 100"),
        ('{"query": "a", "k": "10"}', "body, k: input should be a valid integer"),
        ('{"query": "a", "k": NaN}', "body, k"),
        ('{"query": "a", "explain": 1}', "body, explain"),
        ('{"query": "a", "other": 1}', "body, other: extra inputs are not permitted"),
        ('{"query": ["a"]}', "body, query: input should be a valid string"),
    ],
)
def test_a_question_that_is_not_one_is_422_in_one_sentence(service, body, told):
    answer = service.client.post("/search", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert told in answer.json()["detail"]
    assert "\n" not in answer.json()["detail"]


def test_a_body_of_endless_depth_is_rejected(service):
    for body in ("[" * 30_000, '{"query":' * 6_000):
        answer = service.client.post("/search", content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code in (400, 422)


def test_a_body_that_is_not_sent_as_json_is_rejected(service):
    answer = service.client.post("/search", content='{"query": "a"}', headers={"Content-Type": "text/plain"})
    assert answer.status_code == 422
    assert answer.json()["detail"] == "the body must be a JSON object, sent as application/json"


def test_what_is_not_there_and_what_is_asked_the_wrong_way_are_told(service):
    assert "openapi.json" in service.client.get("/nothing").json()["detail"]
    answer = service.client.put("/search")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert answer.json()["detail"] == "use POST here, not PUT"


@pytest.mark.parametrize(
    "path",
    ["/page/../app.py", "/page/..%2fapp.py", "/page/%2e%2e/app.py", "/page//etc/passwd", "/page/config.py", "/page/"],
)
def test_no_path_of_a_request_reaches_the_file_system(service, path):
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", service.port)
    connection.request("GET", path)  # as it is: other clients would tidy it first
    answer = connection.getresponse()
    assert answer.status in (404, 405)
    assert b"detail" in answer.read()
    connection.close()


def test_the_page_is_served_with_its_kinds(service):
    page = service.client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert service.client.get("/page/index.html").content == page.content
    assert service.client.get("/page/main.js").headers["content-type"] == "text/javascript; charset=utf-8"


def test_figures_count_requests_by_route_and_status_and_no_path_that_is_none(serve):
    running = serve()
    for path in ("/related/car", "/related/boat", "/nowhere/1", "/nowhere/2"):
        running.client.get(path)
    running.client.post("/feedback", json=CLICK)
    answer = running.client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    lines = answer.text.splitlines()
    assert 'sparserank_requests_total{route="/related/{word}",status="200"} 2.0' in lines
    assert 'sparserank_requests_total{route="other",status="404"} 2.0' in lines
    assert "sparserank_feedback_stored_total 1.0" in lines
    assert "sparserank_model_version 1.0" in lines
    assert "sparserank_documents 24.0" in lines
    assert "nowhere" not in answer.text
