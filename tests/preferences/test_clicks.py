"""Clicks: what stood low is looked at less, and what is made of a log allows for it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparserank.errors import ConfigError, DataError
from sparserank.preferences.clicks import ClickLog, ClickPreferences, Propensity

WORTH = {"best": 0.8, "good": 0.65, "fair": 0.5, "poor": 0.35}
SHOWN = ["poor", "fair", "good", "best"]  # the worst of all orders, mostly
"""How many of those who look would take each document, and the order that is shown."""


def simulated(sessions, seed=0, eta=1.0):
    """People look at position p with chance p^-eta and take what they look at by its worth.

    In one session of ten the order is drawn, so that every document is seen at every position.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for session in range(sessions):
        order = rng.permutation(SHOWN) if rng.random() < 0.1 else SHOWN
        for position, document in enumerate(order, start=1):
            clicked = rng.random() < position**-eta * WORTH[str(document)]
            rows.append((session, "q", str(document), position, int(clicked)))
    return ClickLog.of(*zip(*rows, strict=True))


def test_inverse_propensity_finds_the_worth_where_counts_of_clicks_get_the_order_wrong():
    log = simulated(20_000)
    raw = log.grades(Propensity(eta=0.0))["q"]
    assert sorted(WORTH, key=raw.__getitem__) == list(WORTH)
    found = log.grades(Propensity(eta=1.0))["q"]
    assert sorted(WORTH, key=found.__getitem__, reverse=True) == list(WORTH)
    for document, worth in WORTH.items():
        assert found[document] == pytest.approx(worth, abs=0.03)


def test_propensities_that_are_given_do_the_same_as_the_formula():
    log = simulated(500)
    assert log.grades(Propensity(by_position=(1.0, 1 / 2, 1 / 3, 1 / 4))) == log.grades(Propensity(eta=1.0))
    assert Propensity(by_position=(1.0, 0.4)).of([1, 2, 3, 9]).tolist() == [1.0, 0.4, 0.4, 0.4]


def test_propensities_are_clipped_so_that_no_click_counts_beyond_that():
    log = ClickLog.of([0], ["q"], ["d"], [1000], [1])
    assert log.grades(Propensity(eta=2.0, minimum=0.1)) == {"q": {"d": pytest.approx(10.0)}}


def test_what_is_never_clicked_has_no_grade_and_ids_may_be_numbers():
    log = ClickLog.of([1, 1], [7, 7], [3, 4], [1, 2], [True, False])
    assert log.grades() == {7: {3: 1.0}}


rows = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from("qr"), st.sampled_from("abcd"), st.integers(1, 6), st.booleans()),
    min_size=1,
    max_size=30,
)


@given(rows)
def test_skip_above_is_every_click_against_what_its_session_showed_above_and_nobody_took(rows):
    expected = {}
    for session, query, better, low, clicked in rows:
        for other, query_2, worse, high, clicked_2 in rows:
            same = (session, query) == (other, query_2)
            if same and clicked and not clicked_2 and high < low and better != worse:
                expected[query, better, worse] = expected.get((query, better, worse), 0) + 1
    found = ClickLog.of(*zip(*rows, strict=True)).skip_above()
    listed = zip(found.query.tolist(), found.better.tolist(), found.worse.tolist(), strict=True)
    assert dict(zip(listed, found.weight.tolist(), strict=True)) == expected


@given(rows)
def test_grades_and_sessions_are_sums_over_the_rows_whatever_their_order(rows):
    log = ClickLog.of(*zip(*rows, strict=True))
    for query in "qr":
        mine = [row for row in rows if row[1] == query]
        assert log.shown([query])[0] == len({row[0] for row in mine})
        for document in "abcd":
            shown = [row for row in mine if row[2] == document]
            taken = sum(min(row[3], 20) for row in shown if row[4])
            assert log.grades().get(query, {}).get(document, 0.0) == pytest.approx(taken / max(len(shown), 1))
    backwards = ClickLog.of(*zip(*rows[::-1], strict=True))
    assert vars_of(backwards.skip_above()) == vars_of(log.skip_above())


def vars_of(preferred: ClickPreferences):
    return {name: column.tolist() for name, column in vars(preferred).items()}


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("position", [0, 1], r"position\[0\] must be a whole number, counted from 1"),
        ("position", [1, 1.5], r"position\[1\]"),
        ("clicked", [0, 2], r"clicked\[1\] must be 0 or 1"),
        ("document", ["a"], "differ in length"),
        ("query", [["a", "b"]], "query must be one column"),
    ],
)
def test_rows_that_say_nothing_are_rejected_by_column_and_place(column, value, message):
    good = {"session": [0, 0], "query": ["q", "q"], "document": ["a", "b"], "position": [1, 2], "clicked": [0, 1]}
    with pytest.raises(DataError, match=message):
        ClickLog.of(**(good | {column: value}))


@pytest.mark.parametrize("wrong", [{"eta": -1.0}, {"minimum": 0.0}, {"by_position": ()}, {"by_position": (1.0, 2.0)}])
def test_propensities_that_cannot_be_raise(wrong):
    with pytest.raises(ConfigError):
        Propensity(**wrong)


def test_names_of_0_1_warn_and_work():
    with pytest.warns(DeprecationWarning, match="use 'by_position' instead"):
        assert Propensity(given=(1.0, 0.4)) == Propensity(by_position=(1.0, 0.4))
    with pytest.warns(DeprecationWarning, match="use 'minimum' instead"):
        old = Propensity(least=0.5)
    with pytest.warns(DeprecationWarning, match=r"Propensity\.least is deprecated"):
        assert old.least == 0.5
