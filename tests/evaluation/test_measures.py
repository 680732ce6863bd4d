from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import pytrec_eval
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from sparserank.errors import ConfigError, DataError
from sparserank.evaluation import evaluate_rows, evaluate_run, measures
from sparserank.evaluation import ir_measures as foreign
from sparserank.evaluation.items import Items
from sparserank.evaluation.measures import Measure, evaluate_ranking, parse, parse_all, ranking_order

from .. import oracles

# Scores full of ties: few values, values that differ only beyond float32, values beyond its range, and both zeros.
SCORES = st.sampled_from([0.0, -0.0, 1.0, 1.0 + 1e-9, 1.0 + 2e-7, 0.1, 0.1 + 1e-10, -3.5, 1e39, 1e40, -1e39, 1e-46]) | (
    st.floats(-1e3, 1e3)
)
DOCS = st.sampled_from([f"d{i}" for i in range(12)] + ["é", "z", "Z", "𝔘", "\uffee", "10", "9", "a b", "doc-1"])
RUNS = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3", "lost"]), st.dictionaries(DOCS, SCORES, max_size=12), min_size=1
)
QRELS = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3", "q4"]),
    st.dictionaries(DOCS, st.integers(-2, 4), min_size=1, max_size=12),
    min_size=1,
)

TREC_NAMES = {
    "nDCG": "ndcg", "nDCG@3": "ndcg_cut_3", "nDCG@10": "ndcg_cut_10", "AP": "map", "AP@2": "map_cut_2", "P@1": "P_1",
    "P@5": "P_5", "R@2": "recall_2", "R@100": "recall_100", "RR": "recip_rank", "Success@3": "success_3",
}  # fmt: skip


def per_query(run: Any, qrels: Any, measures: Any) -> dict[str, dict[str, float]]:
    return evaluate_run(run, qrels, measures).per_query


def per_group(*rows: Any, ids: Any = None) -> dict[str, dict[str, float]]:
    return evaluate_rows(*rows, ids=ids).per_query


def assert_equal_to_trec_eval(run: Any, qrels: Any, names: dict[str, str], rel: int = 1) -> None:
    assume(run.keys() & qrels.keys())
    # pytrec_eval overruns its memory where all grades of a query are negative; such a query is worth 0.
    safe = {query: judged for query, judged in qrels.items() if max(judged.values()) >= 0}
    theirs = pytrec_eval.RelevanceEvaluator(safe, set(names.values()), relevance_level=rel).evaluate(run)
    ours = per_query(run, qrels, names)
    for name, trec_name in names.items():
        expected = {query: theirs.get(query, {}).get(trec_name, 0.0) for query in qrels}
        assert ours[str(parse(name))] == pytest.approx(expected, abs=1e-9), name


@given(RUNS, QRELS)
def test_values_equal_those_of_trec_eval(run: Any, qrels: Any) -> None:
    assert_equal_to_trec_eval(run, qrels, TREC_NAMES)


@given(RUNS, QRELS, st.integers(1, 3))
def test_a_least_relevant_grade_equals_that_of_trec_eval(run: Any, qrels: Any, rel: int) -> None:
    names = {f"AP(rel={rel})": "map", f"P(rel={rel})@5": "P_5", f"RR(rel={rel})": "recip_rank", "R@3": "recall_3"}
    assert_equal_to_trec_eval(
        run, qrels, {name: trec for name, trec in names.items() if rel == 1 or "rel" in name}, rel
    )


def test_reciprocal_rank_with_a_cutoff_is_cut() -> None:
    assert [evaluate_ranking(f"RR@{k}", [0, 0, 1, 1]) for k in (2, 3, 4)] == [0.0, 1 / 3, 1 / 3]


@given(st.dictionaries(DOCS, SCORES, max_size=20))
def test_ranking_order_is_the_tie_rule(scores: dict[str, float]) -> None:
    ids = list(scores)
    assert [ids[i] for i in ranking_order(list(scores.values()), ids)] == oracles.tie_rule(scores)


def test_scores_that_differ_only_beyond_single_precision_are_tied() -> None:
    assert ranking_order([1.0 + 1e-9, 1.0], ["a", "b"]).tolist() == [1, 0]


def test_ids_break_ties_as_text_and_not_as_numbers() -> None:
    assert ranking_order([1.0, 1.0, 1.0], ["10", "9", "100"]).tolist() == [1, 2, 0]


def test_ties_rank_worst_in_rr_and_are_no_error_in_errors_of_strict_order() -> None:
    """Stevens et al., section 1.2: the loss is one if there exists j in D(i) such that f(x_j) > f(x_i)."""
    qrels = {"q": {"a": 1, "b": 0, "c": 0}}
    run = {"q": dict.fromkeys("abc", 7.0)}
    assert per_query(run, qrels, "RR DominationError PairError") == {
        "RR": {"q": 1 / 3},
        "DominationError": {"q": 0.0},
        "PairError": {"q": 0.0},
    }


def test_what_was_not_retrieved_is_wrong_and_never_tied() -> None:
    qrels = {"q": {"a": 1, "b": 0, "c": 2}, "unanswered": {"a": 1, "b": 0}}
    found = per_query({"q": {"b": -np.inf, "c": 1.0}}, qrels, "DominationError PairError")
    assert found["DominationError"] == {"q": 0.5, "unanswered": 1.0}
    assert found["PairError"] == {"q": pytest.approx(1 / 3), "unanswered": 1.0}


@given(RUNS, QRELS)
def test_domination_and_pair_error_equal_their_definitions(run: Any, qrels: Any) -> None:
    assume(run.keys() & qrels.keys())
    for name, oracle in (("DominationError", oracles.domination_error), ("PairError", oracles.pair_error)):
        expected = {query: oracle(run.get(query, {}), judged) for query, judged in qrels.items()}
        defined = {query: value for query, value in expected.items() if not math.isnan(value)}
        if not defined:
            with pytest.raises(DataError, match=f"{name} is undefined for every query"):
                per_query(run, qrels, name)
        else:
            assert per_query(run, qrels, name)[name] == pytest.approx(defined, abs=1e-12)


def test_errors_on_numbers_worked_by_hand() -> None:
    # By score: b(grade 1) 4, a(2) 3, d(0) 2 = c(1) 2, e(0) 1. Beating someone: a (b c d e), b and c (d e).
    # a loses to b; b beats d and e; c is tied with d, which is no error. Pairs: a-b wrong, the other 7 of 8 right.
    run = {"q": {"a": 3.0, "b": 4.0, "c": 2.0, "d": 2.0, "e": 1.0}}
    qrels = {"q": {"a": 2, "b": 1, "c": 1, "d": 0, "e": 0}}
    assert per_query(run, qrels, "DominationError")["DominationError"]["q"] == pytest.approx(1 / 3)
    assert per_query(run, qrels, "PairError")["PairError"]["q"] == 0.125


def test_letor4_on_numbers_worked_by_hand() -> None:
    """Grades 1 0 2 0 1 in ranked order.

    Gains            1, 0, 3, 0, 1         discounts 1, 1, 1/log2(3) = 0.6309297536, 1/2, 1/log2(5) = 0.4306765581
    DCG@1..5         1, 1, 2.8927892607, 2.8927892607, 3.3234658188
    best order       3, 1, 1, 0, 0
    best DCG@1..5    3, 4, 4.6309297536, 4.6309297536, 4.6309297536
    NDCG@1..5        0.3333333333, 0.25, 0.6246670571, 0.6246670571, 0.7176670767      mean 0.5100669048
    AP               (1/1 + 2/3 + 3/5) / 3 = 0.7555555556
    """
    grades = [1, 0, 2, 0, 1]
    at = [evaluate_ranking(f"nDCG-letor4@{k}", grades) for k in (1, 2, 3, 4, 5)]
    assert_allclose(at, [0.3333333333, 0.25, 0.6246670571, 0.6246670571, 0.7176670767], rtol=0, atol=6e-11)
    assert evaluate_ranking("nDCG-letor4", grades) == pytest.approx(0.5100669048, abs=5e-11)
    assert evaluate_ranking("AP-letor4", grades) == pytest.approx(0.7555555556, abs=5e-11)
    assert evaluate_ranking("nDCG-letor4@6", grades) == 0.0, "a list with fewer than k documents counts 0"


def test_letor4_averages_over_queries_without_relevant_documents() -> None:
    values = per_group([3, 2, 1, 2, 1], [0, 0, 0, 1, 0], [1, 1, 1, 2, 2], "nDCG-letor4@2 nDCG-letor4@3 AP-letor4")
    assert values == {
        "nDCG-letor4@2": {"1": 0.0, "2": 1.0},
        "nDCG-letor4@3": {"1": 0.0, "2": 0.0},
        "AP-letor4": {"1": 0.0, "2": 1.0},
    }


@given(st.lists(st.integers(0, 4), min_size=1, max_size=15), st.integers(1, 16))
def test_letor4_equals_its_definition(grades: list[float], k: int) -> None:
    assert evaluate_ranking(f"nDCG-letor4@{k}", grades) == pytest.approx(oracles.letor4_ndcg(grades, k), abs=1e-12)
    assert evaluate_ranking("nDCG-letor4", grades) == pytest.approx(oracles.letor4_mean_ndcg(grades), abs=1e-12)


def test_letor4_counts_what_was_missed_as_a_document_that_earns_nothing() -> None:
    assert evaluate_ranking("nDCG-letor4@2", [1], missed=[1]) == pytest.approx(1 / 2)
    assert evaluate_ranking("nDCG-letor4@3", [1], missed=[1]) == 0.0


def test_letor4_refuses_grades_that_cannot_be_gains() -> None:
    with pytest.raises(DataError, match="2\\^grade"):
        evaluate_ranking("nDCG-letor4@3", [2000.0])


@given(
    st.lists(st.tuples(SCORES, st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30),
    st.permutations(range(30)),
)
def test_rows_have_the_values_of_the_same_run(rows: list[tuple[float, int, int]], names: list[int]) -> None:
    scores, grades, qid = zip(*rows, strict=True)
    ids = [str(name) for name in names[: len(rows)]]
    run: dict[str, dict[str, float]] = {str(query): {} for query in qid}
    qrels: dict[str, dict[str, float]] = {str(query): {} for query in qid}
    for score, grade, query, name in zip(scores, grades, qid, ids, strict=True):
        run[str(query)][name] = score
        qrels[str(query)][name] = grade
    wanted = "nDCG@2 AP R@3 nDCG-letor4"
    assert per_group(scores, grades, qid, wanted, ids=ids) == per_query(run, qrels, wanted)


def test_rows_without_ids_break_ties_by_their_number_as_text() -> None:
    scores, grades = np.zeros(11), np.zeros(11)
    grades[9] = 1  # "9" is the last of "0" … "10" in string order, so it comes first
    assert per_group(scores, grades, np.zeros(11, int), "RR") == {"RR": {"0": 1.0}}


def test_queries_keep_the_order_of_their_first_rows_and_need_not_be_sorted() -> None:
    values = per_group([1, 1, 2], [1, 0, 0], ["b", "a", "b"], "RR")
    assert list(values["RR"].items()) == [("b", 0.5), ("a", 0.0)]


def test_rmse_is_over_all_rows_and_not_a_mean_over_queries() -> None:
    # Misses: 3 in the first query; 1, 1, 1 in the second. sqrt((9 + 1 + 1 + 1) / 4) = sqrt(3), not (3 + 1) / 2.
    items = Items.from_rows([3, 1, 1, 1], [0, 0, 0, 0], [1, 2, 2, 2])
    (column,) = measures.compute(items, "RMSE")
    assert column.as_dict() == {"1": 3.0, "2": 1.0}
    assert column.mean == pytest.approx(math.sqrt(3))


def test_rmse_needs_a_score_for_every_judged_document_and_ignores_the_unjudged() -> None:
    assert per_query({"q": {"a": 2.0, "x": 100.0}}, {"q": {"a": 1}}, "RMSE") == {"RMSE": {"q": 1.0}}
    with pytest.raises(DataError, match="RMSE needs a finite score for every judged document; query 'q'"):
        per_query({"q": {"a": 2.0}}, {"q": {"a": 1, "b": 1}}, "RMSE")
    with pytest.raises(ConfigError, match="RMSE needs scores"):
        evaluate_ranking("RMSE", [1, 0])


@pytest.mark.parametrize(
    "name",
    ["nDCG", "nDCG@10", "AP", "AP(rel=2)@7", "P@5", "R(rel=3)@100", "RR", "RR@10", "Success@1", "nDCG-letor4@10",
     "nDCG-letor4", "AP-letor4", "DominationError", "PairError", "RMSE", "ERR@20", "Rprec", "AP(judged_only=True)"],
)  # fmt: skip
def test_a_measure_prints_as_the_name_it_is_parsed_from(name: str) -> None:
    assert str(parse(name)) == name
    assert parse(str(parse(name))) == parse(name)


def test_other_names_of_ir_measures_mean_the_same() -> None:
    assert [str(m) for m in parse_all("NDCG@3 MAP MRR@10 Precision@2 Recall@5 AP(rel=1)")] == [
        "nDCG@3", "AP", "RR@10", "P@2", "R@5",
    ]  # fmt: skip
    assert parse_all(Measure("AP")) == parse_all([Measure("AP"), "AP"]) == (Measure("AP"),)


def test_brackets_keep_commas_and_blanks_together() -> None:
    names = "nDCG(gains={1: 5, 2: 9})@3, AP(rel=2, judged_only=True)"
    assert [str(m) for m in parse_all(names)] == ["nDCG(gains={1:5,2:9})@3", "AP(rel=2,judged_only=True)"]


def test_lower_is_better_for_errors_only() -> None:
    assert [m.lower_is_better for m in parse_all("nDCG@3 Rprec PairError DominationError RMSE")] == [
        False, False, True, True, True,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ndcg@10", "unknown measure 'ndcg@10'; did you mean nDCG\\?"),
        ("Domination", "did you mean DominationError\\?"),
        ("swim", "unknown measure 'swim'\\. Known: nDCG, AP, .*RMSE, and the names of ir-measures"),
        ("P", "P needs a cutoff, such as P@10"),
        ("nDCG@0", "cutoff must be a whole number above 0"),
        ("nDCG@-1", "cutoff must be a whole number above 0"),
        ("nDCG@ten", "cutoff must be a whole number above 0; got 'ten'"),
        ("nDCG@" + "9" * 5000, "cutoff must be a whole number above 0; got '999"),
        ("AP(rel=0)", "'rel', the least relevant grade, must be"),
        ("PairError(rel=2)", "PairError takes no parameters"),
        ("nDCG-letor4(rel=2)", "nDCG-letor4 takes no parameters"),
        ("RMSE@3", "RMSE takes no cutoff"),
        ("nDCG(rel=2)", "ir-measures does not take it: unsupported params"),
        ("INST", "max_rel \\(it must be given\\)"),
        ("ERR@@", "ir-measures does not take it"),
        ("NumRet", "is a count, not a mean over queries"),
        ("", "a measure is a name such as 'nDCG@10'; got ''"),
        (None, "a measure is a name|unknown measure"),
    ],
)
def test_a_name_that_is_no_measure_is_rejected_with_a_hint(name: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(name)


def test_no_measure_at_all_raises() -> None:
    with pytest.raises(ConfigError, match="at least one measure"):
        parse_all(" ")


def test_ir_measures_computes_the_rest_in_our_tie_order() -> None:
    # "b" and "a" are tied beyond float32; string order puts "b" first. Ids with blanks and hyphens must not matter.
    run = {"q-1 x": {"a": 1.0 + 1e-9, "b": 1.0, "c d": 0.5}, "q2": {"a": 1.0}}
    qrels = {"q-1 x": {"a": 2, "c d": 1}, "q2": {"z": 1}, "q3": {"a": 1}}
    assert per_query(run, qrels, "Rprec SetR RR") == {
        "Rprec": {"q-1 x": 0.5, "q2": 0.0, "q3": 0.0},
        "SetR": {"q-1 x": 1.0, "q2": 0.0, "q3": 0.0},
        "RR": {"q-1 x": 0.5, "q2": 0.0, "q3": 0.0},
    }


def test_queries_with_negative_grades_only_are_worth_nothing_to_ir_measures_too() -> None:
    run = {f"q{i}": {"a": 1.0, "b": 0.5} for i in range(200)}
    qrels = {f"q{i}": {"a": -2, "b": -1} for i in range(200)}
    # pytrec_eval overruns its memory, sooner or later, where all grades of a query are negative: it must not see one.
    _, handed_over = foreign._with_plain_ids(Items.from_run(run, qrels))
    assert all(max(grades.values()) == 0 for grades in handed_over.values())
    values = per_query(run, qrels, "Rprec Bpref nDCG(gains={1: 2})@5 AP")
    assert {value for column in values.values() for value in column.values()} == {0.0}


def test_judged_counts_only_what_is_judged_in_what_is_retrieved() -> None:
    assert per_query({"q": {"a": 2.0, "b": 1.0}}, {"q": {"a": 0, "z": 1}}, "Judged@2") == {"Judged@2": {"q": 0.5}}


def test_ir_measures_takes_whole_grades_only_and_its_own_refusals_are_passed_on() -> None:
    with pytest.raises(DataError, match="Rprec is computed by ir-measures, which takes whole grades only"):
        per_query({"q": {"a": 1.0}}, {"q": {"a": 0.5}}, "Rprec")
    with pytest.raises(ConfigError, match="ir-measures cannot compute this here: Unsupported"):
        per_query({"q": {"a": 1.0}}, {"q": {"a": 1}}, "SDCG(max_rel=1)@5")


def test_grades_between_whole_numbers_are_gains_as_they_are() -> None:
    assert evaluate_ranking("nDCG@2", [0.5, 1.5]) == pytest.approx(
        (0.5 + 1.5 / math.log2(3)) / (1.5 + 0.5 / math.log2(3))
    )


Q = {"q": {"a": 1.0}}


@pytest.mark.parametrize(
    ("run", "qrels", "message"),
    [
        ({"q": {"a": 1.0, "b": math.nan}}, Q, "query 'q', document 'b': the score is nan, not a number"),
        ({"q": {"a": "x"}}, Q, "query 'q': every score must be a number; got \\['x'\\]"),
        (Q, {"q": {"a": math.inf}}, "query 'q', document 'a': the grade is inf"),
        ({}, Q, "the run must not be empty"),
        (Q, {}, "the judgments must not be empty"),
        (Q, {"q": {}}, "no query has a judgment"),
        ({"p": {"a": 1.0}}, Q, "the run answers no judged query: it has 'p', …; judged are 'q'"),
        ([1], Q, "the run must map query ids to documents; got list"),
    ],
)
def test_runs_and_judgments_that_cannot_be_measured_raise(run: Any, qrels: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        per_query(run, qrels, "AP")


def test_a_query_answered_with_nothing_counts_zero_and_one_judged_with_nothing_is_no_query() -> None:
    assert per_query({"q": {}, "r": {"a": 1.0}}, {"q": {"a": 1}, "r": {}}, "AP nDCG") == {
        "AP": {"q": 0.0},
        "nDCG": {"q": 0.0},
    }


@pytest.mark.parametrize(
    ("rows", "ids", "message"),
    [
        (([], [], []), None, "there are no rows"),
        (([1.0], [1.0, 2.0], [1]), None, "every row needs a score, a grade and a query"),
        (([[1.0]], [1.0], [1]), None, "every row needs a score, a grade and a query"),
        (([1.0, math.nan], [1, 0], ["u", "u"]), None, "row 1 \\(query 'u'\\): the score is nan"),
        (([1.0, 1.0], [1, math.inf], [5, 5]), None, "row 1 \\(query 5\\): the grade is inf"),
        ((["x"], [1], [1]), None, "every score must be a number; got \\['x'\\]"),
        (([1.0, 2.0], [1, 0], [1, 1]), ["a"], "every row needs one id; got 1 ids for 2 rows"),
        (([1.0, 2.0, 3.0], [1, 0, 0], [1, 2, 1]), ["a", "a", "a"], "row 2: id 'a' occurs more than once"),
    ],
)
def test_rows_that_cannot_be_measured_raise(rows: Any, ids: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        per_group(*rows, "AP", ids=ids)


def test_one_id_may_serve_several_queries() -> None:
    assert per_group([1, 2], [1, 1], ["u", "v"], "RR", ids=["a", "a"]) == {"RR": {"u": 1.0, "v": 1.0}}


def test_ranking_order_rejects_what_it_cannot_order() -> None:
    with pytest.raises(DataError, match="document 'b' is not a number"):
        ranking_order([1.0, math.nan], ["a", "b"])
    with pytest.raises(DataError, match="2 scores and 1 documents"):
        ranking_order([1.0, 2.0], ["a"])


def test_a_ranking_needs_a_document() -> None:
    with pytest.raises(DataError, match="at least one finite grade"):
        evaluate_ranking("AP", [])


def test_measures_load_no_heavy_library_until_one_is_needed() -> None:
    code = (
        "import sys; from sparserank.evaluation import measures; "
        "measures.evaluate_ranking('nDCG@3', [1, 0]);"
        "print(*{'numba', 'scipy', 'sklearn', 'polars', 'ir_measures', 'matplotlib'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"


def test_old_names_work_and_warn() -> None:
    with pytest.warns(DeprecationWarning, match="evaluate_run"):
        assert measures.per_query({"q": {"a": 1.0}}, {"q": {"a": 1}}, "RR") == {"RR": {"q": 1.0}}
    with pytest.warns(DeprecationWarning, match="evaluate_rows"):
        assert measures.per_group([1.0], [1], [7], "RR") == {"RR": {"7": 1.0}}
    with pytest.warns(DeprecationWarning, match="evaluate_ranking"):
        assert measures.of_ranking("RR", [0, 1]) == 0.5
    with pytest.warns(DeprecationWarning, match="'seed' parameter of evaluate_run"):
        assert evaluate_run({"q": {"a": 1.0}}, {"q": {"a": 1}}, "RR", seed=3).random_state == 3
