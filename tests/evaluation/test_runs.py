from __future__ import annotations

import json
import math
import subprocess
import sys

import numpy as np
import pytest

from sparserank.errors import ConfigError, DataError
from sparserank.evaluation import compare, evaluate_rows, evaluate_run

QRELS = {f"q{i}": {"a": 2, "b": 1, "c": 0} for i in range(4)}
BEST = {f"q{i}": {"a": 3.0, "b": 2.0, "c": 1.0} for i in range(4)}
WORST = {f"q{i}": {"a": 1.0, "b": 2.0, "c": 3.0} for i in range(4)}
MIXED = {"q0": BEST["q0"], "q1": BEST["q1"], "q2": WORST["q2"], "q3": {"a": 3.0, "c": 2.0}}


def test_a_value_is_the_mean_over_judged_queries_and_lies_in_its_interval() -> None:
    result = evaluate_run({"q0": BEST["q0"], "other": BEST["q0"]}, QRELS, "AP P@1")
    assert result["AP"].value == 0.25, "three of four queries are not answered"
    assert result.queries == ("q0", "q1", "q2", "q3")
    assert result.per_query["P@1"] == {"q0": 1.0, "q1": 0.0, "q2": 0.0, "q3": 0.0}
    assert 0.0 <= result["AP"].low < 0.25 < result["AP"].high <= 1.0


def test_the_dictionary_has_the_shape_that_programs_read() -> None:
    result = evaluate_run(MIXED, QRELS)
    assert list(result.to_dict()) == ["nDCG@10", "AP", "R@100"]
    assert all(list(entry) == ["value", "low", "high"] for entry in result.to_dict().values())
    assert json.loads(json.dumps(result.to_dict())) == result.to_dict()


def test_a_measure_that_was_not_measured_is_named() -> None:
    with pytest.raises(DataError, match="ERR was not measured; there are: AP"):
        evaluate_run(BEST, QRELS, "AP")["ERR"]


def test_rows_are_measured_as_runs_are() -> None:
    rows = [(MIXED[q].get(d, -9.0), grade, q, d) for q, judged in QRELS.items() for d, grade in judged.items()]
    scores, grades, qid, ids = zip(*rows, strict=True)
    full = {q: {d: MIXED[q].get(d, -9.0) for d in judged} for q, judged in QRELS.items()}
    ours = evaluate_rows(scores, grades, qid, "nDCG@2 PairError", ids=ids)
    assert ours.to_dict() == evaluate_run(full, QRELS, "nDCG@2 PairError").to_dict()


def test_a_comparison_counts_queries_won_lost_and_tied() -> None:
    found = compare(evaluate_run(WORST, QRELS, "AP PairError"), evaluate_run(MIXED, QRELS, "PairError AP"))
    # AP: the worst order has (1/2 + 2/3) / 2 everywhere; q2 is the same; q3 finds only "a": 1/2.
    assert (found["AP"].wins, found["AP"].losses, found["AP"].ties) == (2, 1, 1)
    # Lower is better: all three pairs wrong everywhere, but none in q0 and q1, and in q3 one, b being below c.
    assert (found["PairError"].wins, found["PairError"].losses, found["PairError"].ties) == (3, 0, 1)
    assert found["PairError"].difference.value == pytest.approx(-(1 + 1 + 0 + 2 / 3) / 4)
    assert found["PairError"].per_query["q3"] == pytest.approx(-2 / 3)
    assert found["PairError"].p == 0.25, "2 of 8 sign patterns are as far from 0"


def test_a_verdict_needs_more_than_chance_and_knows_errors_from_merits() -> None:
    qrels = {f"q{i}": {"a": 1, "b": 0} for i in range(20)}
    good = evaluate_run({q: {"a": 2.0, "b": 1.0} for q in qrels}, qrels, "AP PairError")
    bad = evaluate_run({q: {"a": 1.0, "b": 2.0} for q in qrels}, qrels, "AP PairError")
    assert [c.better for c in compare(bad, good).values()] == [True, True]
    assert [c.better for c in compare(good, bad).values()] == [False, False]
    assert [c.better for c in compare(good, good).values()] == [None, None]
    assert compare(good, good)["AP"].p == 1.0


def test_the_difference_of_rmse_is_that_of_the_two_values() -> None:
    a = evaluate_rows([3, 1, 1, 1], [0, 0, 0, 0], [1, 2, 2, 2], "RMSE")
    b = evaluate_rows([1, 1, 1, 1], [0, 0, 0, 0], [1, 2, 2, 2], "RMSE")
    found = compare(a, b)["RMSE"]
    assert (found.baseline, found.value) == pytest.approx((math.sqrt(3), 1.0))
    assert found.difference.value == pytest.approx(1 - math.sqrt(3))
    assert found.difference.low <= found.difference.value <= found.difference.high
    assert (found.wins, found.losses, found.ties) == (1, 0, 1)


def test_queries_undefined_for_one_system_are_left_out_of_the_comparison() -> None:
    # q1 has one grade among its judged documents; only the second run adds an unjudged one, which makes a pair.
    qrels = {"q0": {"a": 1, "b": 0}, "q1": {"a": 1}}
    first = evaluate_run({"q0": {"a": 1.0, "b": 2.0}, "q1": {"a": 1.0}}, qrels, "PairError")
    second = evaluate_run({"q0": {"a": 2.0, "b": 1.0}, "q1": {"a": 1.0, "x": 2.0}}, qrels, "PairError")
    assert list(compare(first, second)["PairError"].per_query) == ["q0"]
    only_q1 = evaluate_run({"q1": {"a": 1.0, "x": 2.0}, "q0": {}}, {"q1": {"a": 1}, "q0": {"a": 1}}, "PairError")
    only_q0 = evaluate_run({"q0": {"a": 1.0, "x": 2.0}, "q1": {}}, {"q1": {"a": 1}, "q0": {"a": 1}}, "PairError")
    with pytest.raises(DataError, match="no query has a value of PairError in both"):
        compare(only_q0, only_q1)


def test_evaluations_that_cannot_be_compared_raise() -> None:
    one = evaluate_run(BEST, QRELS, "AP")
    with pytest.raises(DataError, match="'q3' was judged for one of them only"):
        compare(one, evaluate_run(BEST, {q: QRELS[q] for q in ("q0", "q1", "q2")}, "AP"))
    with pytest.raises(DataError, match="no measure in common"):
        compare(one, evaluate_run(BEST, QRELS, "RR"))


def test_a_seed_is_a_whole_number() -> None:
    with pytest.raises(ConfigError, match="'random_state' parameter"):
        evaluate_run(BEST, QRELS, "AP", random_state=-1)


def test_hundreds_of_queries_stay_in_order() -> None:
    random = np.random.default_rng(0)
    qrels = {f"q{i}": {f"d{j}": int(random.integers(0, 3)) for j in range(5)} for i in range(200)}
    run = {q: {d: float(random.normal()) for d in judged} for q, judged in reversed(qrels.items())}
    result = evaluate_run(run, qrels, "nDCG@3")
    assert result["nDCG@3"].value == pytest.approx(np.mean(list(result.per_query["nDCG@3"].values())))
    assert list(result.per_query["nDCG@3"]) == list(qrels)


def test_evaluation_loads_no_heavy_library_until_one_is_needed() -> None:
    code = (
        "import sys; from sparserank import evaluation;"
        "evaluation.evaluate_run({'q': {'a': 1.0}}, {'q': {'a': 1}}).to_dict();"
        "print(*{'numba', 'scipy', 'sklearn', 'polars', 'ir_measures', 'matplotlib'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"
