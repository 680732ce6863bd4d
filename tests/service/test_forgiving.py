"""Forgiving search over HTTP: off unless it is asked for, corrections beside the results, notes on the pairs."""

from __future__ import annotations

import pytest


def search(service, **body):
    answer = service.client.post("/search", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_search_forgives_only_if_asked_to(service):
    assert search(service, query="bicylce")["results"] == []
    assert search(service, query="bicylce")["corrections"] == []
    assert search(service, query="bicy")["results"] == []
    assert service.client.post("/search", json={"query": "x", "typos": "yes"}).status_code == 422


def test_corrections_are_told_apart_from_the_query(service):
    found = search(service, query="red bicylce", typos=True, explain=True, lexical=True)
    right = search(service, query="red bicycle", explain=True, lexical=True)
    assert found["query"] == "red bicylce"
    assert found["corrections"] == [{"word": "bicylce", "replacement": "bicycle"}]
    assert [(one["id"], one["score"]) for one in found["results"]] == [
        (one["id"], one["score"]) for one in right["results"]
    ]
    assert found["lexical"] == right["lexical"]
    notes = {pair.get("note") for one in found["results"] for pair in one["pairs"] if pair["query"] == "bicylce"}
    assert notes == {"typo of bicycle"}
    for one in found["results"]:
        assert sum(pair["contribution"] for pair in one["pairs"]) == pytest.approx(one["score"], rel=1e-5)


def test_an_unfinished_word_is_explained_and_compared(service):
    found = search(service, query="bicy", prefix=True, explain=True)
    assert {pair["note"] for one in found["results"] for pair in one["pairs"]} == {"begins with bicy"}
    first, second = (one["id"] for one in found["results"][:2])
    body = {"query": "bicy", "prefix": True}
    told = service.client.post("/explain", json={**body, "document": first}).json()
    assert told["score"] == found["results"][0]["score"]
    compared = service.client.post("/compare", json={**body, "first": first, "second": second}).json()
    assert compared["first"]["score"] == told["score"]
