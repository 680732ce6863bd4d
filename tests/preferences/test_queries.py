"""Rows by query: the order that rankers learn from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparserank.errors import DataError
from sparserank.preferences.queries import Queries

from .. import oracles

ROWS = st.lists(st.tuples(st.sampled_from([-1.5, 0.0, 0.5, 2.0]), st.sampled_from(["b", "a", "c"])), max_size=12)


@given(ROWS)
def test_losers_are_windows_and_the_pairs_are_all_pairs(rows):
    y, qid = [grade for grade, _ in rows], [query for _, query in rows]
    queries = Queries.of(y, np.array(qid, dtype="U1"))
    windows = {
        (int(queries.order[p]), int(queries.order[j]))
        for p in range(len(y))
        for j in range(queries.first_loser[p], queries.query_end[p])
    }
    assert windows == set(oracles.pairs(y, qid))
    assert queries.n_pairs == len(windows)
    assert [y[row] for row in queries.order] == queries.grade.tolist()
    assert queries.by_row(queries.grade).tolist() == y
    assert [queries.ids[q] for q in queries.query] == [qid[row] for row in queries.order]
    assert queries.skipped == sum(len({y[i] for i in range(len(y)) if qid[i] == q}) == 1 for q in set(qid))


@given(ROWS)
def test_levels_are_nested_in_queries(rows):
    queries = Queries.of([grade for grade, _ in rows], np.array([query for _, query in rows], dtype="U1"))
    for q in range(len(queries)):
        levels = range(queries.query_levels[q], queries.query_levels[q + 1])
        grades = [set(queries.grade[queries.level[at] : queries.level[at + 1]]) for at in levels]
        assert all(len(grade) == 1 for grade in grades)
        falling = [grade.pop() for grade in grades]
        assert falling == sorted(falling, reverse=True)
        assert queries.level[levels[0]] == queries.start[q]


def test_nothing_downstream_can_write_into_it():
    with pytest.raises(ValueError, match="read-only"):
        Queries.of([1, 0]).order[0] = 5


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"grades": [1, 0], "qid": [1]}, "2 rows need 2 qids; got 1"),
        ({"grades": [1, np.nan]}, r"y\[1\] is not a finite number"),
        ({"grades": [1, 0], "qid": [1.0, np.inf]}, r"qid\[1\] is not a finite number"),
        ({"grades": [1, 0], "qid": [1, None]}, "all numbers or all strings"),
        ({"grades": [1, 0], "weight": [1]}, "2 rows need 2 values in sample_weight; got 1"),
        ({"grades": [1, 0], "weight": [1, -1]}, r"sample_weight\[1\] is negative"),
        ({"grades": [1, 0], "weight": [0, 0]}, "must not be zero for every row"),
    ],
)
def test_what_cannot_be_read_is_rejected_by_place(arguments, match):
    with pytest.raises(DataError, match=match):
        Queries.of(**arguments)


@pytest.mark.parametrize(
    ("y", "qid", "weight", "match"),
    [
        ([1, 1], None, None, "no query has rows of two different grades"),
        ([1], None, None, "1 sample in 1 query"),
        ([1, 0], ["a", "b"], None, "2 samples in 2 queries"),
        ([1, 0], None, [0, 1], "zero for every row that has another one to beat"),
    ],
)
def test_rows_that_prefer_nothing_are_rejected_where_preferences_are_wanted(y, qid, weight, match):
    with pytest.raises(DataError, match=match):
        Queries.of(y, qid, weight).require_pairs()
