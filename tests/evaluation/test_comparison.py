"""Two systems on the same queries: what is compared, which queries got worse, and when a system is not worse."""

from __future__ import annotations

import json

import pytest

from sparserank.errors import DataError
from sparserank.evaluation import compare, compare_runs, evaluate_run, not_worse

QRELS = {"q1": {"a": 1, "b": 0}, "q2": {"b": 2, "c": 1}, "q3": {"a": 1}}
OLD = {"q1": {"a": 3.0, "b": 2.0}, "q2": {"a": 3.0, "b": 2.0}, "q3": {"b": 2.0, "a": 1.0}}
NEW = {"q1": {"b": 3.0, "c": 2.0, "a": 1.0}, "q2": {"b": 3.0, "c": 2.0}, "q3": {"b": 2.0, "a": 1.0}}


def test_values_and_tests_are_those_of_compare():
    found = compare_runs(OLD, NEW, QRELS, "RR nDCG@10", random_state=3)
    before, after = (evaluate_run(run, QRELS, "RR nDCG@10", random_state=3) for run in (OLD, NEW))
    assert found.comparisons == compare(before, after, random_state=3)
    assert found.to_dict()["measures"] == before.to_dict()
    assert list(found.to_dict()["comparisons"]) == ["RR", "nDCG@10"]


def test_the_queries_that_got_worse_come_with_values_and_both_rankings():
    (one,) = compare_runs(OLD, NEW, QRELS, "RR").worse()
    assert (one.query, one.baseline_values, one.values) == ("q1", {"RR": 1.0}, {"RR": pytest.approx(1 / 3)})
    assert one.ranking == (("b", 0.0), ("c", 0.0), ("a", 1.0))
    assert one.baseline_ranking == (("a", 1.0), ("b", 0.0))
    assert json.loads(json.dumps(one.to_dict()))["baseline_ranking"][0] == {"id": "a", "grade": 1.0}


def test_the_largest_loss_comes_first_and_the_list_can_be_cut():
    found = compare_runs(NEW | {"q3": {"a": 1.0}}, OLD, QRELS, "RR")
    assert [(one.query, one.values["RR"]) for one in found.worse()] == [("q2", 0.5), ("q3", 0.5)]
    assert [one["query"] for one in found.to_dict(most=1)["worse"]] == ["q2"]


def test_a_system_is_not_worse_if_its_mean_is_not_lower():
    assert compare_runs(OLD, OLD, QRELS, "RR").not_worse()
    assert compare_runs(OLD, OLD, QRELS, "RR").worse() == []
    assert not compare_runs(OLD, NEW, QRELS, "RR").not_worse()  # 1 + 1/2 + 1/2 against 1/3 + 1 + 1/2
    assert compare_runs(OLD, NEW, QRELS, "RR").not_worse(without={"q1"})
    assert compare_runs(OLD, NEW, QRELS, "RR").not_worse(without=set(QRELS)), "there is nothing to be worse on"


def test_rounding_errors_make_no_system_worse():
    assert not_worse(0.5, 0.5 - 1e-12)
    assert not not_worse(0.5, 0.5 - 1e-6)
    assert not_worse(0.5, 0.6)


def test_a_query_that_finds_nothing_counts_and_has_no_ranking():
    found = compare_runs(OLD, {"q1": {"b": 1.0}, "q2": OLD["q2"], "q3": OLD["q3"]}, QRELS, "RR")
    assert found.worse()[0].values == {"RR": 0.0}
    assert compare_runs({"q3": {"a": 1.0}}, {"q3": {}}, {"q3": {"a": 1}}, "RR").worse()[0].ranking == ()


def test_the_mean_leaves_queries_out():
    found = evaluate_run(OLD, QRELS, "RR")
    assert found.mean() == pytest.approx(2 / 3)
    assert found.mean(without={"q1"}) == 0.5
    assert found.mean(without=set(QRELS)) is None


def test_evaluations_of_other_queries_raise():
    with pytest.raises(DataError, match="same queries"):
        compare(evaluate_run(OLD, QRELS, "RR"), evaluate_run(OLD, {"q1": QRELS["q1"]}, "RR"))
