"""UBI logs and Quepid's ratings: literal readers, grades by hand, and a model that learns from clicks alone."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparserank import data
from sparserank.data.formats.ubi import Search
from sparserank.errors import DataError
from sparserank.preferences import ClickLog, Propensity, search_grades
from tests.fruits import fruits


def write_lines(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def click(query_id, document, position=None, action="click"):
    attributes = {"object": {"object_id": document, "object_id_field": "id"}}
    if position is not None:
        attributes["position"] = {"ordinal": position}
    return {"query_id": query_id, "action_name": action, "event_attributes": attributes, "timestamp": "2025-01-01"}


def test_searches_have_what_was_shown_and_clicked(tmp_path):
    queries = write_lines(
        tmp_path / "queries.ndjson",
        [
            {"query_id": "1", "user_query": " red   tv ", "query_response_hit_ids": ["a", "b", "c"], "client_id": "x"},
            {"_index": "ubi_queries", "_source": {"query_id": "2", "user_query": "tv"}},
            {"query_id": "3", "user_query": ""},
        ],
    )
    events = write_lines(
        tmp_path / "events.ndjson",
        [
            {"index": {}},
            click("1", "c", 9),
            click("1", "b", action="item_hover"),
            click("2", "z", 4),
            click("2", "y", action="purchase"),
            click("unknown", "a"),
        ],
    )
    assert data.read_ubi(queries, events) == [
        Search("red tv", ("a", "b", "c"), {"c": 3}),
        Search("tv", (), {"z": 4, "y": 0}),
    ]
    assert data.read_ubi(queries, events, actions=["item_hover"])[0].clicks == {"b": 2}


def test_grades_with_impressions_are_those_of_the_click_log():
    searches = [Search("tv", ("a", "b"), {"b": 2}), Search("tv", ("b", "a"), {"b": 1}), Search("pc", ("c",), {"c": 1})]
    log = ClickLog.of([0, 0, 1, 1, 2], ["tv"] * 4 + ["pc"], ["a", "b", "b", "a", "c"], [1, 2, 1, 2, 1], [0, 1, 1, 0, 1])
    assert search_grades(searches) == log.grades()


def test_clicks_without_impressions_count_per_search_and_by_position():
    searches = [
        Search("tv", (), {"a": 1, "b": 4}),
        Search("tv", (), {"a": 0}),
        Search("tv", (), {}),
        Search("pc", (), {}),
    ]
    grades = search_grades(searches, Propensity(eta=0.5))
    assert grades == {"tv": {"a": pytest.approx(2 / 3), "b": pytest.approx(2 / 3)}}
    mixed = [*searches, Search("tv", ("b", "a"), {"b": 1})]
    assert search_grades(mixed) == {"tv": {"b": 1.0}}, "impressions are worth more than clicks alone"


@pytest.mark.parametrize(
    ("queries", "events", "message"),
    [
        ("", "", "contains no queries"),
        ("{", "", r"queries\.ndjson:1: not a JSON object"),
        ("[]", "", r"queries\.ndjson:1: expected a JSON object"),
        ('{"user_query": "x"}', "", r"queries\.ndjson:1: 'query_id' must be text"),
        ('{"query_id": "1"}', "", r"queries\.ndjson:1: 'user_query' must be text"),
        ('{"query_id": "1", "user_query": "x", "query_response_hit_ids": "a"}', "", "must be a list"),
        (
            '{"query_id": 1, "user_query": "x"}',
            '{"query_id": 1, "action_name": "click"}',
            r"events\.ndjson:1: 'object_id'",
        ),
    ],
)
def test_a_wrong_line_is_named(tmp_path, queries, events, message):
    (tmp_path / "queries.ndjson").write_text(queries)
    (tmp_path / "events.ndjson").write_text(events)
    with pytest.raises(DataError, match=message):
        data.read_ubi(tmp_path / "queries.ndjson", tmp_path / "events.ndjson")


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1),
        st.dictionaries(st.text("abc, \"'", min_size=1), st.integers(0, 3).map(float), min_size=1),
        max_size=4,
    )
)
def test_ratings_of_quepid_go_out_and_in(tmp_path_factory, qrels):
    path = tmp_path_factory.mktemp("quepid") / "ratings.csv"
    data.write_quepid(path, qrels)
    with path.open(newline="", encoding="utf-8") as file:
        assert [(r["query"], r["docid"], float(r["rating"])) for r in csv.DictReader(file)] == [
            (query, document, grade) for query, grades in qrels.items() for document, grade in grades.items()
        ]
    assert data.read_quepid(path) == qrels


def test_quepid_files_with_more_columns_and_without_ratings(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text("Query,DocID,Rating,Comment\ntv,a,3,good\ntv,b,,\n")
    assert data.read_quepid(path) == {"tv": {"a": 3.0}}
    path.write_text("query,docid,rating\ntv,a,best\n")
    with pytest.raises(DataError, match=r"ratings\.csv:2: the rating must be a finite number"):
        data.read_quepid(path)
    path.write_text("query,document\n")
    with pytest.raises(DataError, match="missing: docid, rating"):
        data.read_quepid(path)
    with pytest.raises(DataError, match="'q' has judgments and no text"):
        data.write_quepid(path, {"q": {"a": 1}}, {})


def test_files_of_chorus_are_read_as_they_are(tmp_path):
    """A rated query set that Quepid exported, and a dump of the indexes of UBI, with the fields that its shop logs."""
    (tmp_path / "Broad_Query_Set_rated.csv").write_text(
        "query,docid,rating\nred lamp,1001,0\nred lamp,1002,3\nlamp,1002,1\n"
    )
    assert data.read_quepid(tmp_path / "Broad_Query_Set_rated.csv") == {
        "red lamp": {"1001": 0.0, "1002": 3.0}, "lamp": {"1002": 1.0},
    }  # fmt: skip
    query = {
        "query_response_id": "r-1", "user_query": "red lamp", "query_id": "q-1", "client_id": "USER-1",
        "query_response_object_ids": ["1001", "1002"], "query_response_hit_ids": ["1001", "1002"],
        "query": "{}", "query_attributes": {"application": "chorus"}, "timestamp": 1763500000000,
    }  # fmt: skip
    event = {
        "client_id": "USER-1", "session_id": "SESSION-1", "query_id": "q-1", "page_id": "/", "message_type": "INFO",
        "timestamp": 1763500000001,
    }  # fmt: skip
    product = {"object_id_field": "product", "object_id": "1002", "description": "A lamp", "object_detail": {"id": 7}}
    where = {"browser": "Firefox", "session_id": "SESSION-1", "page_id": "/"}
    actions = {
        "on_search": where,
        "brand_filter": where | {"object": {"object_id_field": "filter_data", "object_id": "OBJECT-1"}},
        "add_to_cart": where | {"object": product},
        "positive": where | {"object": product | {"object_id": "1001"}},
    }
    queries = write_lines(tmp_path / "ubi_queries.ndjson", [{"_index": "ubi_queries", "_id": "1", "_source": query}])
    events = write_lines(
        tmp_path / "ubi_events.ndjson",
        [
            {
                "_index": "ubi_events",
                "_id": name,
                "_source": event | {"action_name": name, "event_attributes": attributes},
            }
            for name, attributes in actions.items()
        ],
    )
    searches = data.read_ubi(queries, events)
    assert searches == [Search("red lamp", ("1001", "1002"), {"1002": 2})]
    grades = search_grades(searches)["red lamp"]
    assert grades["1002"] > grades.get("1001", 0.0)
    assert data.read_ubi(queries, events, actions=["add_to_cart", "positive"])[0].clicks == {"1001": 1, "1002": 2}


def test_the_command_learns_from_clicks_alone(tmp_path):
    fruit = fruits()
    data.write_beir(tmp_path / "fruit", fruit)
    queries = [{"query_id": q, "user_query": text} for q, text in fruit.queries.items()]
    events = [click(q, d, 1) for q, docs in fruit.qrels["train"].items() for d in docs]
    files = (
        write_lines(tmp_path / "q.ndjson", queries),
        write_lines(tmp_path / "e.ndjson", [*events, click("q1", "gone")]),
    )
    train = [
        sys.executable,
        "-m",
        "sparserank",
        "train",
        str(tmp_path / "fruit"),
        "--output",
        str(tmp_path / "m.safetensors"),
    ]
    command = [*train, "--ubi", *map(str, files), "--missing", "drop", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    trained = json.loads(done.stdout)
    assert (trained["documents"], trained["left_out"]) == (60, 1)
    wrong = subprocess.run([*command, "--split", "train"], capture_output=True, text=True)
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    assert "--ubi has queries and clicks" in wrong.stderr
