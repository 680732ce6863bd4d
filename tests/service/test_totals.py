"""The number of all results, and what the page asks of a search: passages and shares without pairs."""

from __future__ import annotations

import pytest

PAGE = {"snippets": True, "split": True, "total": True, "typos": True, "prefix": True}


def found(service, **body):
    return service.client.post("/search", json=body).json()


def test_the_total_counts_every_document_that_a_longer_list_would_show(service):
    everything = found(service, query="red car", k=100)["results"]
    answer = found(service, query="red car", k=3, total=True)
    assert (answer["total"], answer["total_is_exact"]) == (len(everything), True)
    assert len(everything) > 3


def test_the_total_is_that_of_the_filter(service):
    answer = found(service, query="red car", k=1, total=True, filter="thing:boat")
    assert answer["total"] == len(found(service, query="red car", k=100, filter="thing:boat")["results"])


def test_without_a_count_the_total_is_known_when_a_list_ends(service):
    everything = len(found(service, query="red car", k=100)["results"])
    assert found(service, query="red car", k=2)["total"] is None
    assert found(service, query="red car", k=100)["total"] == everything
    assert found(service, query="red car", k=5, offset=everything - 2)["total"] == everything
    assert found(service, query="red car", k=5, offset=everything + 2)["total"] is None
    assert found(service, query="zzz", k=5)["total"] == 0


def test_the_split_sums_up_the_pairs_of_each_result_and_marks_say_what_they_are(service):
    page = found(service, query="red car", k=5, **PAGE)
    whole = found(service, query="red car", k=5, explain=True, typos=True, prefix=True)
    for one, other in zip(page["results"], whole["results"], strict=True):
        assert "pairs" not in one
        sums = {"lexical": 0.0, "learned": 0.0, "away": 0.0}
        for pair in other["pairs"]:
            kind = "away" if pair["contribution"] < 0 else "learned" if pair["learned"] else "lexical"
            sums[kind] += pair["contribution"]
        assert one["split"] == pytest.approx(sums)
        assert one["passage"]["text"] == other["passage"]["text"]
        for mark in other["passage"]["marks"]:
            assert mark["learned"] == all(other["pairs"][number]["learned"] for number in mark["pairs"])


def test_an_unfinished_word_is_named(service):
    assert found(service, query="red automob", **PAGE)["completed"] == ["automob"]
    assert found(service, query="red automobile", **PAGE)["completed"] == []
