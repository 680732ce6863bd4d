from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparserank.errors import DataError
from sparserank.evaluation.measures import Measure, PerQuery
from sparserank.evaluation.significance import (
    PERMUTATIONS,
    estimate_difference,
    estimates,
    resample_sums,
    sign_flip_p_value,
)


def column(values: np.ndarray, name: str = "AP", weights: np.ndarray | None = None) -> PerQuery:
    queries = tuple(str(i) for i in range(len(values)))
    return PerQuery(Measure(name), queries, values, np.ones(len(values)) if weights is None else weights)


def test_the_interval_of_a_mean_of_many_values_is_the_analytic_one() -> None:
    values = np.random.default_rng(3).normal(0.4, 0.2, size=2000)
    (found,) = estimates([column(values)])
    half = 1.959964 * values.std() / math.sqrt(2000)
    assert found.value == pytest.approx(values.mean(), abs=1e-12)
    assert (found.low, found.high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.04 * half)


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    random = np.random.default_rng(5)
    found = estimates([column(random.normal(1.0, 1.0, size=50)) for _ in range(300)])
    held = sum(each.low <= 1.0 <= each.high for each in found)
    assert 0.91 <= held / 300 <= 0.98


def test_values_that_do_not_differ_have_an_interval_of_no_width() -> None:
    assert estimates([column(np.full(9, 0.25))])[0].to_dict() == {"value": 0.25, "low": 0.25, "high": 0.25}
    assert estimates([column(np.array([0.7]))])[0].to_dict() == {"value": 0.7, "low": 0.7, "high": 0.7}


def test_the_same_seed_gives_the_same_bits_and_another_seed_others() -> None:
    values = np.random.default_rng(0).random(40)
    assert estimates([column(values)], random_state=7) == estimates([column(values)], random_state=7)
    assert estimates([column(values)], random_state=7) != estimates([column(values)], random_state=8)


def test_columns_measured_together_have_the_intervals_they_have_alone() -> None:
    random = np.random.default_rng(1)
    columns = [column(random.random(30)), column(random.random(12)), column(random.random(30), "RMSE")]
    assert estimates(columns) == [estimates([each])[0] for each in columns]


def test_draws_hold_as_many_queries_as_there_are_and_every_draw_is_made() -> None:
    sums = resample_sums(np.array([np.ones(700), np.arange(700.0)]), resamples=999)
    assert sums.shape == (2, 999)
    assert np.all(sums[0] == 700)
    assert len(np.unique(sums[1])) > 900


def test_rmse_is_resampled_as_a_ratio_of_sums() -> None:
    # Of two queries, with 1 and 3 rows, a draw takes (a, a), (a, b), (b, a) or (b, b): three different values.
    found = estimates([column(np.array([3.0, 1.0]), "RMSE", np.array([1.0, 3.0]))])[0]
    assert found.value == pytest.approx(math.sqrt(3))
    assert (found.low, found.high) == (1.0, 3.0)


def test_a_difference_is_paired() -> None:
    hard = np.random.default_rng(2).random(100)
    found = estimate_difference(column(hard), column(hard + 0.01))
    assert (found.value, found.low, found.high) == pytest.approx((0.01, 0.01, 0.01))
    with pytest.raises(DataError, match="the same queries"):
        estimate_difference(column(hard), column(hard[:50]))


@given(st.lists(st.integers(-3, 3).map(lambda x: x / 10), min_size=1, max_size=9))
def test_the_exact_test_counts_every_sign_pattern(differences: list[float]) -> None:
    observed = abs(sum(differences))
    patterns = list(itertools.product([1, -1], repeat=len(differences)))
    extreme = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True))) >= observed - 1e-9 for signs in patterns
    ]
    assert sign_flip_p_value(np.array(differences)) == pytest.approx(sum(extreme) / len(patterns))


def test_drawn_patterns_agree_with_all_patterns() -> None:
    differences = np.random.default_rng(4).normal(0.25, 1.0, size=18)
    sums = np.array([0.0])
    for difference in differences:
        sums = np.concatenate([sums + difference, sums - difference])
    exact = np.mean(np.abs(sums) >= abs(differences.sum()) - 1e-12)
    assert 0.05 < exact < 0.95
    assert sign_flip_p_value(differences) == pytest.approx(exact, abs=0.015)
    assert sign_flip_p_value(differences, random_state=1) == sign_flip_p_value(differences, random_state=1)


def test_systems_that_never_differ_have_p_one_and_p_is_never_zero() -> None:
    assert sign_flip_p_value(np.zeros(50)) == 1.0
    assert sign_flip_p_value(np.ones(50)) == 1 / (1 + PERMUTATIONS)


def test_systems_that_are_alike_are_rarely_called_different() -> None:
    random = np.random.default_rng(6)
    called = [sign_flip_p_value(random.normal(size=12)) < 0.05 for _ in range(400)]
    assert 0.02 < np.mean(called) < 0.08
