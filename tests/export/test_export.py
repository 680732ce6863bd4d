"""What every target refuses, before anything is written."""

from __future__ import annotations

import json

import pytest

from sparserank.errors import ConfigError, DataError
from sparserank.export import TARGETS, export, query_body

from ..motors import DOCS, QRELS, QUERIES, learned_anyway

HALF = "half \ud800"


@pytest.fixture(scope="module")
def ranker():
    return learned_anyway(DOCS, QUERIES, QRELS)


@pytest.mark.parametrize("target", TARGETS)
def test_ids_and_queries_that_are_no_utf8_are_rejected_by_name(ranker, tmp_path, target):
    odd = ranker.over(DOCS | {HALF: "car"})
    for model, queries, match in (
        (odd, None, r"the id of document \d of 5 in the index: half of a surrogate pair .*half \\ud800"),
        (ranker, {"a": "car", HALF: "car"}, r"the id of query 2 of 2: half of"),
        (ranker, {"a": "car", "b": HALF}, r"the text of query 'b': half of a surrogate pair .*half \\ud800"),
    ):
        with pytest.raises(DataError, match=match):
            export(model, target, tmp_path / "made", queries)
    if target != "static":  # its pages search by themselves
        with pytest.raises(DataError, match="the text of the query: half of"):
            query_body(ranker, target, HALF)
    assert list(tmp_path.iterdir()) == []


def test_a_query_that_is_made_up_can_be_written_whatever_the_titles_are(ranker, tmp_path):
    odd = ranker.over({"a": {"title": "a \ud800 car", "text": "engine"}})
    export(odd, "ciff", tmp_path / "made")
    assert "the first is 'a car'" in (tmp_path / "made/README.md").read_text()


def test_no_queries_at_all_are_rejected_and_none_given_are_made_up(ranker, tmp_path):
    with pytest.raises(ConfigError, match="there are no queries: give at least one, or leave them out"):
        export(ranker, "trec", tmp_path / "made", {})
    assert list(tmp_path.iterdir()) == []
    assert export(ranker, "trec", tmp_path / "made")["queries"] == 1
    assert json.loads((tmp_path / "made/queries.jsonl").read_text())["id"] == "example"
