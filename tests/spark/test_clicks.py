"""Grades and pairs of a click log by Spark SQL are those of the local ClickLog."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparserank.data import read_triples
from sparserank.errors import DataError
from sparserank.preferences import ClickLog, Propensity, win_rates
from sparserank.spark import click_grades, click_preferences, click_sessions, read_clicks
from sparserank.spark.clicks import MAX_POSITION, triple_grades
from sparserank.spark.clicks import read_triples as read_triples_of

SCHEMA = "session string, query string, document string, position int, clicked boolean"


def local(rows):
    return ClickLog.of(*zip(*rows, strict=True))


def grades_in(frame):
    out = {}
    for query, document, grade in frame.collect():
        out.setdefault(query, {})[document] = grade
    return out


def pairs_in(frame):
    return sorted(tuple(row) for row in frame.collect())


def pairs_of(preferred):
    columns = (preferred.query, preferred.better, preferred.worse, preferred.weight)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """20,000 events in Parquet: lists of ten from a skewed choice of queries and documents, clicked more at the top."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(7)
    visits = 2_000
    query = np.minimum(rng.zipf(1.5, visits), 500)
    document = query[:, None] * 20 + rng.permuted(np.tile(np.arange(20), (visits, 1)), axis=1)[:, :10]
    position = np.tile(np.arange(1, 11), (visits, 1))
    clicked = rng.random((visits, 10)) < 0.5 / position
    table = pa.table(
        {
            "session": np.repeat(np.arange(visits) // 2, 10),
            "query": [f"q{one}" for one in np.repeat(query, 10).tolist()],
            "document": document.ravel(),
            "position": position.ravel(),
            "clicked": clicked.ravel(),
            "agent": np.zeros(visits * 10, np.int8),
        }
    )
    folder = tmp_path_factory.mktemp("clicks") / "log.parquet"
    folder.mkdir()
    for part, rows in enumerate((table.slice(0, 18_000), table.slice(18_000), table.slice(0, 0))):
        pq.write_table(rows, folder / f"part-{part}.parquet")
    columns = (table[name].to_numpy() for name in ("session", "query", "document", "position", "clicked"))
    return str(folder), ClickLog.of(*columns)


def test_grades_are_those_of_the_local_log(spark, log):
    path, known = log
    for propensity in (Propensity(), Propensity(eta=0.7, minimum=0.2), Propensity(by_position=(1.0, 0.6, 0.3))):
        ours, theirs = grades_in(click_grades(read_clicks(spark, path), propensity)), known.grades(propensity)
        assert ours.keys() == theirs.keys()
        for query, grades in theirs.items():
            assert ours[query] == pytest.approx(grades, rel=1e-12)


def test_pairs_are_those_of_the_local_log_and_can_be_read_as_triples(spark, log, tmp_path):
    path, known = log
    found = click_preferences(read_clicks(spark, path))
    expected = pairs_of(known.skip_above())
    assert len(expected) > 1_000
    assert pairs_in(found) == expected
    found.coalesce(1).write.parquet(str(tmp_path / "pairs"))
    (part,) = (tmp_path / "pairs").glob("*.parquet")
    assert pairs_of(read_triples(part)) == expected


def test_sessions_are_counted_as_the_local_log_counts_them(spark, log):
    path, known = log
    counted = {row["query"]: row["sessions"] for row in click_sessions(read_clicks(spark, path)).collect()}
    queries = known.query_ids.tolist()
    assert [float(counted[query]) for query in queries] == known.shown(queries).tolist()


def test_grades_do_not_depend_on_the_partitions(spark, log):
    visits = read_clicks(spark, log[0])
    assert grades_in(click_grades(visits.repartition(7))) == grades_in(click_grades(visits))


ROW = st.tuples(st.sampled_from("st"), st.sampled_from("qr"), st.sampled_from("abc"), st.integers(1, 4), st.booleans())


@settings(max_examples=3)
@given(st.lists(ROW, min_size=1, max_size=30))
def test_odd_logs_with_repeated_rows_and_shared_positions_agree(spark, rows):
    visits, known = spark.createDataFrame(rows, SCHEMA).repartition(3), local(rows)
    assert pairs_in(click_preferences(visits)) == pairs_of(known.skip_above())
    ours, theirs = grades_in(click_grades(visits)), known.grades()
    assert {q: pytest.approx(g) for q, g in theirs.items()} == ours


def test_with_a_propensity_a_pair_weighs_more_the_deeper_the_click(spark):
    rows = [("s", "q", "a", 1, False), ("s", "q", "b", 2, True), ("t", "q", "a", 1, False), ("t", "q", "b", 4, True)]
    found = click_preferences(spark.createDataFrame(rows, SCHEMA), Propensity(eta=1.0))
    assert pairs_in(found) == [("q", "b", "a", 2.0 + 4.0)]


def test_a_position_past_32_bits_counts_as_the_deepest(spark):
    rows = [("s", "q", "a", 1, False), ("s", "q", "b", 3_000_000_000, True), ("t", "q", "b", MAX_POSITION, True)]
    visits = spark.createDataFrame(rows, SCHEMA.replace("position int", "position bigint"))
    assert grades_in(click_grades(visits)) == {"q": {"b": pytest.approx(1 / Propensity().minimum)}}
    assert pairs_in(click_preferences(visits, Propensity())) == [
        ("q", "b", "a", pytest.approx(1 / Propensity().minimum))
    ]


@pytest.mark.parametrize(
    ("schema", "row", "said"),
    [
        ("session string, query string, document string, position int", ("s", "q", "d", 1), "no column 'clicked'"),
        (
            SCHEMA.replace("position int", "position string"),
            ("s", "q", "d", "1", True),
            "'position' must be whole",
        ),
        (SCHEMA.replace("document string", "document double"), ("s", "q", 1.5, 1, True), "'document' must be id"),
        (SCHEMA, ("s", "q", None, 1, True), "'document' is empty in 1 rows"),
        (SCHEMA, ("s", "q", "d", 0, True), "'position' must be a whole number, counted from 1; it is not in 1 rows"),
        (SCHEMA.replace("boolean", "int"), ("s", "q", "d", 1, 2), "'clicked' must be 0 or 1; it is not in 1 rows"),
    ],
)
def test_a_table_that_is_no_click_log_raises_an_error_of_one_line(spark, schema, row, said):
    with pytest.raises(DataError, match=said) as refused:
        click_preferences(spark.createDataFrame([row], schema))
    assert "\n" not in str(refused.value)


def test_an_empty_log_and_a_path_without_one_raise_an_error(spark, tmp_path):
    with pytest.raises(DataError, match="click log: it has no rows"):
        click_grades(spark.createDataFrame([], SCHEMA))
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        read_clicks(spark, str(tmp_path / "none.parquet"))
    (tmp_path / "text.parquet").write_text("not Parquet at all")
    with pytest.raises(DataError, match="cannot be read as Parquet") as refused:
        read_clicks(spark, str(tmp_path / "text.parquet"))
    assert "\n" not in str(refused.value)


ITEMS = st.sampled_from("abcd")
ROW = st.tuples(st.sampled_from("qr"), ITEMS, ITEMS, st.sampled_from([0, 0.1, 3, 7.7]))
COMPARED = st.lists(ROW.filter(lambda row: row[1] != row[2]), min_size=1, max_size=30)


@settings(max_examples=4, deadline=None)
@given(rows=COMPARED)
def test_what_documents_won_is_the_same_to_the_bit_in_any_order(spark, rows):
    schema = "query string, better string, worse string, weight double"
    named = [(q, b, w, float(weight)) for q, b, w, weight in rows]
    expected = win_rates(*zip(*named, strict=True))
    assert grades_in(triple_grades(spark.createDataFrame(named[::-1], schema))) == expected


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (("q", "a", "b", -1.0), "'weight' must be finite, 0 or more; it is not in 1 rows"),
        (("q", "a", "b", float("nan")), "'weight' must be finite, 0 or more"),
        (("q", "a", "a", 1.0), "1 rows name one document as better and as worse"),
        (("q", None, "a", 1.0), "column 'better' is empty in 1 rows"),
    ],
)
def test_invalid_triples_raise_an_error(spark, row, said):
    frame = spark.createDataFrame([row], "query string, better string, worse string, weight double")
    with pytest.raises(DataError, match=said):
        triple_grades(frame)


def test_triples_in_parquet_without_weights_weigh_one(spark, tmp_path):
    spark.createDataFrame([("q", "a", "b")], "query string, better string, worse string").write.parquet(
        str(tmp_path / "t.parquet")
    )
    assert grades_in(triple_grades(read_triples_of(spark, str(tmp_path / "t.parquet")))) == {"q": {"a": 1.0, "b": 0.0}}
