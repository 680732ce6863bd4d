"""Windows against their definition: every listed or drawn triple, and how often it is drawn."""

from __future__ import annotations

import re
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparserank import Preferences
from sparserank.errors import ConfigError, DataError

labels = st.lists(st.integers(0, 3), min_size=3, max_size=9).filter(
    lambda y: len(set(y)) > 1 and max(Counter(y).values()) > 1
)
judged = st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 3)), min_size=1, max_size=12)


def listed(prefs):
    return Counter(zip(*(column.tolist() for column in prefs.first(10**6)), strict=True))


def drawn_shares(prefs, n=60_000):
    counts = Counter(zip(*(column.tolist() for column in prefs.draw(n, random_state=5)), strict=True))
    return {triple: count / n for triple, count in counts.items()}


def assert_drawn_like(prefs, expected, n=60_000):
    """Shares within five standard deviations of their probabilities, and nothing of probability 0."""
    shares = drawn_shares(prefs, n)
    assert set(shares) <= {triple for triple, p in expected.items() if p > 0}
    for triple, p in expected.items():
        assert abs(shares.get(triple, 0.0) - p) <= 5 * np.sqrt(p * (1 - p) / n) + 1e-12, triple


@given(labels)
def test_labels_stand_for_every_triple_of_the_paper(y):
    n = range(len(y))
    expected = Counter((q, a, b) for q in n for a in n for b in n if a != q and y[a] == y[q] and y[b] != y[q])
    prefs = Preferences.from_labels(y)
    assert listed(prefs) == expected
    assert prefs.n_pairs == sum(expected.values())
    assert prefs.skipped == sum(count == 1 for count in Counter(y).values())


def test_label_draws_follow_chen_et_al():
    """q uniform, d+ uniform in q's class without q, d- uniform in the other classes."""
    y = [0, 0, 0, 1, 1, 2]
    n, asking = range(6), 5
    expected = {
        (q, a, b): 1 / asking / (y.count(y[q]) - 1) / (6 - y.count(y[q]))
        for q in n
        for a in n
        for b in n
        if a != q and y[a] == y[q] and y[b] != y[q]
    }
    assert_drawn_like(Preferences.from_labels(y), expected)


@given(judged)
def test_grades_stand_for_every_pair_of_a_query(rows):
    qid, grade = [q for q, _ in rows], [g for _, g in rows]
    n = range(len(rows))
    names = sorted(set(qid))
    expected = Counter((names.index(qid[a]), a, b) for a in n for b in n if qid[a] == qid[b] and grade[a] > grade[b])
    prefs = Preferences.from_grades(grade, qid)
    assert listed(prefs) == expected
    assert prefs.skipped == sum(len({g for q, g in rows if q == name}) == 1 for name in names)
    assert len(prefs.order) == len(rows)


def test_graded_draws_take_the_query_uniformly_and_the_winner_by_weight():
    prefs = Preferences.from_grades([2, 1, 0, 0, 1, 0], qid=["b", "b", "b", "b", "a", "a"], weight=[3, 1, 1, 1, 1, 1])
    expected = {
        (1, 0, 1): 0.5 * 0.75 / 3,
        (1, 0, 2): 0.5 * 0.75 / 3,
        (1, 0, 3): 0.5 * 0.75 / 3,
        (1, 1, 2): 0.5 * 0.25 / 2,
        (1, 1, 3): 0.5 * 0.25 / 2,
        (0, 4, 5): 0.5,
    }
    assert_drawn_like(prefs, expected)


qrels_worlds = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d3"]),
    st.dictionaries(st.sampled_from([f"d{i}" for i in range(6)]), st.integers(-1, 2), min_size=1),
    min_size=1,
)


@pytest.mark.parametrize("exclude_self", [False, True])
@pytest.mark.parametrize("unjudged", ["worse", "ignore"])
@given(qrels=qrels_worlds)
def test_judgments_stand_for_every_pair_their_grades_give(qrels, unjudged, exclude_self):
    queries, docs = ["a", "b", "c", "d3"], [f"d{i}" for i in range(6)]
    expected = Counter()
    for q, grades in qrels.items():
        graded = {d: max(grades.get(d, 0), 0) for d in docs} if unjudged == "worse" else dict(grades)
        if exclude_self:
            graded.pop(q, None)
        for a, high in graded.items():
            for b, low in graded.items():
                if high > low:
                    expected[queries.index(q), docs.index(a), docs.index(b)] += 1
    if not expected:
        with pytest.raises(DataError, match="no query prefers"):
            Preferences.from_qrels(qrels, queries, docs, unjudged=unjudged, exclude_self=exclude_self)
        return
    prefs = Preferences.from_qrels(qrels, queries, docs, unjudged=unjudged, exclude_self=exclude_self)
    assert listed(prefs) == expected
    assert prefs.skipped == 4 - len({q for q, _, _ in expected})
    assert set(drawn_shares(prefs, 2_000)) <= set(expected)


def test_memory_of_judgments_does_not_grow_with_the_collection():
    prefs = Preferences.from_qrels({"q": {"5": 1}}, ["q"], [str(i) for i in range(100_000)])
    assert prefs.n_pairs == 99_999
    assert len(prefs.order) == 1
    assert prefs.first(3).worse.tolist() == [0, 1, 2]
    assert prefs.first(5, skip=4).worse.tolist() == [4, 6, 7, 8, 9]


def test_triples_are_listed_in_order_and_drawn_by_weight():
    prefs = Preferences.from_triples([0, 1, 0], [2, 3, 4], [5, 6, 7], weight=[1, 0, 3])
    assert [c.tolist() for c in prefs.first(2)] == [[0, 1], [2, 3], [5, 6]]
    assert_drawn_like(prefs, {(0, 2, 5): 0.25, (1, 3, 6): 0.0, (0, 4, 7): 0.75})
    assert (prefs.n_items, prefs.n_queries, len(prefs)) == (8, 2, 3)


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 2**64 - 1))
def test_any_stretch_of_the_draws_is_the_same(first, n, seed):
    prefs = Preferences.from_labels([0, 0, 1, 1, 1, 2])
    whole, part = prefs.draw(first + n, seed), prefs.draw(n, seed, first)
    for a, b in zip(whole, part, strict=True):
        assert a[first:].tolist() == b.tolist()


def test_a_stream_gives_the_triples_of_its_batches():
    batches = [
        SimpleNamespace(query=["q1", "q0"], better=["b", "a"], worse=["a", "c"], weight=None),
        SimpleNamespace(query=["q1", "zz"], better=["c", "a"], worse=["a", "b"], weight=[2.0, 1.0]),
    ]
    streamed = list(Preferences.stream(iter(batches), ["q0", "q1", "q2"], ["a", "b", "c", "d"], missing="drop"))
    assert [listed(p) for p in streamed] == [Counter([(1, 1, 0), (0, 0, 2)]), Counter([(1, 2, 0)])]
    assert streamed[1].weight.tolist() == [2.0, 2.0]
    assert [(p.n_items, p.n_queries) for p in streamed] == [(4, 3), (4, 3)], "those of the collection, not the batch"
    with pytest.raises(DataError, match="'zz'"):
        list(Preferences.stream(iter(batches), ["q0", "q1", "q2"], ["a", "b", "c", "d"]))


def test_a_batch_with_nothing_to_draw_is_skipped_and_a_negative_weight_is_not():
    def batch(*weight):
        return SimpleNamespace(query=["q"] * 2, better=["a"] * 2, worse=["b", "c"], weight=weight)

    streamed = Preferences.stream([batch(0.0, 0.0), batch(0.0, 2.0)], ["q"], ["a", "b", "c"])
    assert [p.weight.tolist() for p in streamed] == [[0.0, 0.0, 2.0, 2.0]]
    with pytest.raises(DataError, match="negative"):
        list(Preferences.stream([batch(-1.0, 0.0)], ["q"], ["a", "b", "c"]))


def test_the_arrays_of_a_record_cannot_be_written_and_the_users_own_still_can():
    query, better, worse = np.array([0, 1]), np.array([1, 2]), np.array([3, 3])
    prefs = Preferences.from_triples(query, better, worse)
    for array in (prefs.query, prefs.order, prefs.better, prefs.worse, prefs.group, prefs.chance, prefs.query_ids):
        assert not array.flags.writeable
    assert query.flags.writeable
    assert Preferences(**{**vars(prefs), "query": query}).first(2).better.tolist() == [1, 2]
    assert query.flags.writeable


def test_a_skip_past_the_end_lists_nothing():
    assert Preferences.from_labels([0, 0, 1]).first(5, skip=2**70).query.tolist() == []


def test_missing_ids_are_dropped_on_request():
    qrels = {"q": {"a": 1, "gone": 2}, "lost": {"a": 1}}
    prefs = Preferences.from_qrels(qrels, ["q"], ["a", "b"], missing="drop")
    assert listed(prefs) == Counter([(0, 0, 1)])


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: Preferences.from_labels([1, 1, 1]), DataError, "at least two classes"),
        (lambda: Preferences.from_labels([]), DataError, "at least two classes"),
        (lambda: Preferences.from_labels([1, 2, 3]), DataError, "every class has one member"),
        (lambda: Preferences.from_labels([[1], [2]]), DataError, "shape (2, 1)"),
        (lambda: Preferences.from_labels([0.0, np.nan, 1.0]), DataError, "labels[1] is not a finite number"),
        (lambda: Preferences.from_labels([None, 1, 1]), DataError, "labels must be a column of one type"),
        (lambda: Preferences.from_labels([[1], [1, 2]]), DataError, "labels must be a column of one type"),
        (lambda: Preferences.from_grades([1, 2, 0], qid=["a", None, "a"]), DataError, "qid must be a column of one"),
        (lambda: Preferences.from_grades([1, 2], qid=[[1], [1]]), DataError, "qid must be one column"),
        (lambda: Preferences.from_grades(["a", "b"]), DataError, "grades must be a column of numbers; got ['a', 'b']"),
        (lambda: Preferences.from_grades([1.0, np.nan]), DataError, "grades[1]"),
        (lambda: Preferences.from_grades([[1.0]]), DataError, "one column"),
        (lambda: Preferences.from_grades([1.0, 2.0], qid=[1]), DataError, "2 qids; got 1"),
        (lambda: Preferences.from_grades([1.0, 2.0], weight=[-1, 2]), DataError, "negative"),
        (lambda: Preferences.from_grades([1.0, 2.0], weight=[1]), DataError, "2 rows need 2 values in weight; got 1"),
        (lambda: Preferences.from_grades([1, 1]).draw(1, random_state=0), DataError, "nothing to draw"),
        (lambda: Preferences.from_triples([0], [1], [1]), DataError, "triple 0: item 1 cannot be better than itself"),
        (lambda: Preferences.from_triples([0], [1, 2], [1]), DataError, "equal length"),
        (lambda: Preferences.from_triples([], [], []), DataError, "no triples"),
        (lambda: Preferences.from_triples([0], [-1], [1]), DataError, "better[0] is negative"),
        (lambda: Preferences.from_triples([0.5], [1], [2]), DataError, "whole numbers"),
        (lambda: Preferences.from_qrels({"x": {"a": 1}}, ["q"], ["a"]), DataError, "judged query 'x'"),
        (
            lambda: Preferences.from_qrels({"q": {"x": 1}}, ["q"], ["a"]),
            DataError,
            "document 'x', judged for query 'q'",
        ),
        *(
            (lambda grade=grade: Preferences.from_qrels({"q": {"a": grade}}, ["q"], ["a", "b"]), DataError, says)
            for grade, says in (
                (np.nan, "the grade of document 'a' for query 'q' is not a finite number: nan"),
                (np.inf, "is not a finite number: inf"),
                (-np.float32("inf"), "is not a finite number: "),
                (10**400, "is not a finite number: 1000"),
                ("2", "is not a finite number: '2'"),
                (None, "is not a finite number: None"),
            )
        ),
        (
            lambda: Preferences.from_qrels({"q": {"a": 1}}, ["q"], ["a", "b", "a"]),
            DataError,
            "document id 'a' occurs more than once, at 0 and 2",
        ),
        (lambda: Preferences.from_qrels({}, ["q", "q"], ["a"]), DataError, "query id 'q' occurs more than once"),
        (lambda: list(Preferences.stream([], ["q"], ["a", "a"])), DataError, "document id 'a' occurs more than once"),
        (lambda: Preferences.from_qrels({}, ["q"], ["a"], unjudged="bad"), ConfigError, "'unjudged'"),
        (lambda: Preferences.from_labels([0, 0, 1]).draw(-1, random_state=0), ConfigError, "'n'"),
        (lambda: Preferences.from_labels([0, 0, 1]).draw(1, None), ConfigError, "'random_state'"),
        (lambda: Preferences.from_labels([0, 0, 1]).draw(1, random_state=1.5), ConfigError, "'random_state'"),
        (lambda: Preferences.from_labels([0, 0, 1]).draw(1, random_state=0, first=-1), ConfigError, "'first'"),
        (lambda: Preferences.from_labels([0, 0, 1]).draw(1, random_state=0, first=2**64), ConfigError, "'first'"),
        (lambda: Preferences.from_labels([0, 0, 1]).first(1, skip=-1), ConfigError, "'skip'"),
    ],
)
def test_bad_input_is_rejected_by_name(make, error, says):
    with pytest.raises(error, match=re.escape(says)):
        make()


def test_the_old_name_of_the_seed_warns():
    with pytest.warns(DeprecationWarning, match="'seed' parameter of Preferences.draw"):
        assert len(Preferences.from_labels([0, 0, 1]).draw(2, seed=0).query) == 2
