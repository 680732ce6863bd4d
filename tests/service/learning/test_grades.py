"""Feedback to grades: inverse propensity, skip-above, judgments above clicks, and the share that is held out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparserank.service.feedback import Feedback, normalize_query
from sparserank.service.learning.grades import (
    BAD_DEPTH,
    HELD_OUT_ONE_IN,
    HELD_OUT_ONE_IN_ALONE,
    SKIP_GRADE,
    GradedQueries,
    agreement,
    group_visits,
    is_held_out,
)

LIST = ("a", "b", "c", "d")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def click(document, query="q", shown=LIST, after=None):
    received = None if after is None else NOON + timedelta(minutes=after)
    return Feedback("x", "click", query, document, shown, received=received)


def judged(document, grade, query="q"):
    return Feedback("x", "judgment", query, document, grade=grade)


def grades(*feedback):
    return GradedQueries.from_feedback(feedback).grades.get("q", {})


def test_no_feedback_is_no_lesson():
    assert len(GradedQueries.from_feedback([])) == 0


def test_a_click_pushes_up_and_what_was_skipped_above_it_down():
    found = grades(click("c"))
    assert found == {"c": 0.5, "a": -SKIP_GRADE / 2, "b": -SKIP_GRADE / 2}
    assert "d" not in found, "nobody looked below the click"


def test_a_click_on_the_first_says_nothing_about_the_others():
    assert grades(click("a")) == {"a": 0.5}


def test_a_click_counts_by_inverse_propensity():
    """Taken at rank 2 in one visit of four; two looked there on average: half of them took it."""
    others = [click("a", after=60 * hour) for hour in range(3)]
    found = grades(*others, click("b", after=600))
    assert found["b"] == pytest.approx(2 / 4 * 1 / 2)
    assert found["a"] == pytest.approx(3 / 4 * 3 / 4)


def test_what_happens_more_often_counts_more_and_never_more_than_1():
    once, thrice, often = (grades(*[click("c")] * times)["c"] for times in (1, 3, 100))
    assert once < thrice < often < 1.0


def test_what_is_taken_now_and_then_is_not_pushed_down():
    assert grades(click("c", after=0), click("c", after=60), click("a", after=120))["a"] > 0


def test_clicks_on_one_list_are_one_visit_until_time_has_passed_or_one_is_taken_again():
    together = group_visits([click("a", after=0), click("c", after=29)])
    assert [visit.clicked for visit in together] == [["a", "c"]]
    assert grades(click("a", after=0), click("c", after=29)).get("a") > 0
    assert len(group_visits([click("a", after=0), click("c", after=31)])) == 2
    assert len(group_visits([click("a"), click("c")])) == 1
    assert len(group_visits([click("c"), click("c")])) == 2
    assert len(group_visits([click("a"), click("c", shown=("c", "a"))])) == 2
    assert len(group_visits([click("a"), click("a", query="r")])) == 2


def test_a_click_on_what_was_not_shown_says_nothing_about_what_was():
    assert grades(click("z")) == {"z": 0.5}


def test_a_document_that_was_shown_twice_stands_where_it_was_first():
    assert grades(click("b", shown=("a", "b", "a"))) == {"b": 0.5, "a": -SKIP_GRADE / 2}


def test_a_judgment_stands_above_clicks_and_the_latest_above_the_others():
    assert grades(click("c"), judged("c", -1.0))["c"] == -1.0
    assert grades(judged("c", -1.0), click("c"))["c"] == -1.0
    assert grades(judged("c", 4.0), judged("c", -1.0))["c"] == -1.0
    assert grades(click("c"), judged("a", 2.0))["a"] == 2.0


def test_a_judgment_of_0_takes_back_what_was_said():
    assert grades(judged("c", 1.0), judged("c", 0.0)) == {}
    assert "c" not in grades(click("c"), judged("c", 0.0))
    assert len(GradedQueries.from_feedback([judged("c", 0.0)])) == 0


def test_a_query_is_one_whatever_its_case_and_blanks():
    lessons = GradedQueries.from_feedback([judged("c", 1.0, " Red  Apple"), judged("d", -1.0, "red apple")])
    assert lessons.grades == {"red apple": {"c": 1.0, "d": -1.0}}
    assert lessons.texts == {"red apple": "red apple"}


def test_documents_that_are_not_there_any_more_teach_nothing():
    lessons = GradedQueries.from_feedback([judged("c", 1.0), judged("gone", 1.0), judged("gone", 1.0, "other")])
    assert lessons.restrict_to({"c"}).grades == {"q": {"c": 1.0}}


@pytest.mark.parametrize("one_in", [HELD_OUT_ONE_IN, HELD_OUT_ONE_IN_ALONE])
def test_the_share_that_is_held_out_is_about_what_it_should_be(one_in):
    queries = [f"query number {n}" for n in range(3000)]
    held = [query for query in queries if is_held_out(query, one_in)]
    assert len(queries) / one_in * 0.8 < len(held) < len(queries) / one_in * 1.2
    lessons = GradedQueries.from_feedback([judged("c", 1.0, query) for query in queries])
    learned, checked = lessons.split(one_in)
    assert list(checked) == held
    assert set(learned) | set(checked) == set(lessons)
    assert not set(learned) & set(checked)


def test_what_is_held_out_is_the_same_in_every_process_and_every_version():
    assert [n for n in range(100) if is_held_out(f"query number {n}")] == [65, 92]


def test_what_is_held_out_beside_judgments_is_held_out_without_them():
    queries = [f"query number {n}" for n in range(500)]
    assert {q for q in queries if is_held_out(q)} <= {q for q in queries if is_held_out(q, HELD_OUT_ONE_IN_ALONE)}


@given(st.text())
def test_any_text_is_held_out_or_not_like_its_plain_form(query):
    assert is_held_out(query) == is_held_out(normalize_query(query)) == is_held_out(f" {query}\n")


some_grades = st.dictionaries(st.sampled_from("abcdef"), st.floats(-1, 4).filter(lambda g: abs(g) > 1e-3), min_size=1)


@given(some_grades, st.permutations("abcdefghijkl"))
def test_agreement_is_between_0_and_1_and_a_better_order_has_more(told, ranked):
    found = agreement(told, ranked)
    assert -1e-9 <= found <= 1 + 1e-9
    for i in range(len(ranked) - 1):
        swapped = [*ranked[:i], ranked[i + 1], ranked[i], *ranked[i + 2 :]]
        better = told.get(ranked[i + 1], 0.0) - told.get(ranked[i], 0.0)
        difference = agreement(told, swapped) - found
        assert difference * better >= -1e-12
        if i < BAD_DEPTH and abs(better) > 1e-6:
            assert abs(difference) > 1e-12


def test_agreement_written_out():
    told = {"a": 2.0, "b": -1.0}
    assert agreement(told, ["a", "x", "y"]) == pytest.approx(1.0)
    assert agreement(told, ["b", "x", "y"]) == pytest.approx(0.0)
    assert agreement({"b": -1.0}, [*"acdefghijk", "b"]) == 1.0, "it is out of the way"
    assert agreement(told, ["b", "x", "a"]) == pytest.approx((2 / 2 - 1 + 1) / (2 + 1))
