"""The memory plan: within the limit, or one clear error before the work starts."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sparserank as sr
from sparserank.data.memory import free_memory
from sparserank.errors import ConfigError
from sparserank.optim.closed_form import MAX_SIZE
from sparserank.text_ranker import memory
from sparserank.text_ranker.memory import MemoryPlan, check_texts, parse_memory


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


PEAK = """
import re
import sys
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import sparserank as sr

def memory(field):
    return 1024 * int(re.search(field + r":\\s+(\\d+)", open("/proc/self/status").read())[1])

def fit(n_documents, n_queries, limit=None):
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 20_000, (n_documents, 60))
    docs = {f"d{i}": " ".join(f"w{w}" for w in row) for i, row in enumerate(rows.tolist())}
    queries = {f"q{i}": " ".join(f"s{w}" for w in row[:5]) for i, row in enumerate(rows[:n_queries].tolist())}
    analyzer = sr.Analyzer(stem=None, stop_words=None)
    ranker = sr.TextRanker(analyzer=analyzer, max_pairs=100_000, memory_limit=limit)
    ranker.fit(docs, queries, {f"q{i}": {f"d{i}": 1} for i in range(n_queries)}, callback=messages.append)

messages = []
fit(200, 100)  # kernels are compiled
messages.clear()
before = memory("VmRSS")
open("/proc/self/clear_refs", "w").write("5")  # forgets the peak so far
fit(4_000, 600, sys.argv[1])
print(next(message for message in messages if message.startswith("training needs")))
print(memory("VmHWM") - before)
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux tells the peak since a moment")
@pytest.mark.parametrize(("limit", "is_bounded"), [("150MB", True), ("20GB", False)])
def test_training_stays_within_the_limit_and_within_its_plan(limit, is_bounded):
    done = subprocess.run([sys.executable, "-c", PEAK, limit], capture_output=True, text=True, check=True)
    plan, peak = done.stdout.splitlines()
    planned = parse_memory(re.search(r"about ([\d.]+ \w+):", plan)[1])
    assert float(peak) <= 1.01 * planned  # the plan is printed to two digits
    assert (float(peak) <= 150e6) == (planned <= 151e6) == is_bounded


def test_a_limit_that_no_plan_keeps_is_an_error_before_the_tuning():
    docs = {f"d{i}": f"red w{i} w{i % 7}" for i in range(40)}
    queries = {f"q{i}": f"s{i}" for i in range(20)}
    messages = []
    with pytest.raises(ConfigError, match=r"training needs at least .* for 40 documents and 20 queries, .* is 0\.2 MB"):
        sr.TextRanker(memory_limit="200kB").fit(
            docs, queries, {f"q{i}": {f"d{i}": 1} for i in range(20)}, callback=messages.append
        )
    assert not any("tuning" in message for message in messages)
