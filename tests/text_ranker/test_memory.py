"""The memory plan: within the limit, or one clear error before the work starts."""

import numpy as np
import pytest

import sparserank as sr
from sparserank.errors import ConfigError
from sparserank.optim.closed_form import MAX_SIZE
from sparserank.text_ranker import memory
from sparserank.text_ranker.memory import MemoryPlan, check_texts, free_memory, parse_memory


@pytest.mark.parametrize(
    ("text", "size"), [("8GB", 8e9), ("1.5 gb", 1.5e9), ("200M", 2e8), ("2GiB", 2e9), (1000, 1e3), (2.5e9, 2.5e9)]
)
def test_sizes_are_numbers_of_bytes_or_texts(text, size):
    assert parse_memory(text) == size


@pytest.mark.parametrize("wrong", ["lots", "", "-1GB", "0", 0, -5.0, float("nan"), float("inf"), "1.2.3GB"])
def test_a_wrong_size_is_an_error(wrong):
    with pytest.raises(ConfigError, match="memory_limit"):
        parse_memory(wrong)


def test_the_default_is_half_of_what_is_free():
    assert parse_memory(None) == pytest.approx(free_memory() / 2, rel=0.3)


def test_a_plan_takes_the_largest_closed_form_that_fits():
    arguments = 10**7, (10**5, 10**6), (200_000, 300_000), 10**6
    sizes = [MemoryPlan.of(*arguments, limit).max_size for limit in (2.2e9, 3e9, 1e12)]
    assert sizes == sorted(sizes)
    assert sizes[-1] == MAX_SIZE
    for limit in (2.2e9, 3e9):
        assert MemoryPlan.of(*arguments, limit).total <= limit


def test_a_small_collection_is_never_cut():
    plan = MemoryPlan.of(10**5, (1_000, 2_000), (5_000, 8_000), 10**5, 1e12)
    assert plan.max_size == 2_000


def test_what_cannot_fit_is_said_before_texts_are_split(monkeypatch):
    monkeypatch.setattr(memory, "CHARACTERS_PER_WEIGHT", 1e-9)
    docs, queries = {"d1": "red apples", "d2": "green pears"}, {"q1": "fruit", "q2": "trees"}
    with pytest.raises(ConfigError, match=r"2 documents of .* of text need at least .* memory limit is 999 MB"):
        sr.TextRanker(memory_limit=999_000_000).fit(docs, queries, {"q1": {"d1": 1}, "q2": {"d2": 1}})
    check_texts(10, 1, np.inf)


def test_a_plan_beyond_the_limit_names_the_remedies():
    with pytest.raises(ConfigError, match=r"at least 48 GB|--memory"):
        MemoryPlan.of(10**9, (10, 10**7), (10, 10), 10, 1e9)


def test_the_limit_is_a_parameter_of_the_ranker(tmp_path):
    ranker = sr.TextRanker(memory_limit="2GB").fit({"d1": "apple", "d2": "pear"})
    ranker.save(tmp_path / "model")
    assert sr.load(tmp_path / "model").get_params() == ranker.get_params()
