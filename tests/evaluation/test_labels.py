from __future__ import annotations

import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from sparserank.errors import ConfigError, DataError
from sparserank.evaluation import bilinear_blocks, evaluate_classes
from sparserank.evaluation.labels import BLOCK_BYTES, default_block_rows

from .. import oracles


def blocks_of(scores: np.ndarray) -> Callable[[int, int], np.ndarray]:
    return lambda start, stop: scores[start:stop]


@given(st.integers(0, 2**32), st.integers(4, 12), st.integers(2, 5), st.integers(1, 4))
def test_values_equal_the_definitions_however_many_ties(seed: int, n: int, levels: int, block_rows: int) -> None:
    random = np.random.default_rng(seed)
    scores = random.integers(0, levels, size=(n, n)) / 7.0
    y = np.array([0, 0, 1, *random.integers(0, 4, size=n - 3)])
    ids = [str(name) for name in random.permutation(n * 3)[:n]]
    found = evaluate_classes(blocks_of(scores), y, ids=ids, block_rows=block_rows)
    queries = [q for q in range(n) if np.sum(y == y[q]) > 1]
    assert found.queries.tolist() == queries
    assert found.left_out == n - len(queries)
    precisions = [oracles.class_average_precision(scores[q], y, ids, q) for q in queries]
    errors = [oracles.class_error(scores[q], y, q) for q in queries]
    assert_allclose(found.average_precisions, precisions, rtol=1e-12)
    assert_allclose(found.errors, errors, rtol=1e-12)
    assert found.map.value == pytest.approx(np.mean(precisions))
    assert found.error.value == pytest.approx(np.mean(errors))
    assert found.error_of_triples.value == pytest.approx(oracles.class_error_of_triples(scores, y))
    for one in (found.map, found.error, found.error_of_triples):
        assert one.low <= one.value + 1e-12
        assert one.value <= one.high + 1e-12


def test_the_error_over_queries_and_the_error_over_triples_are_two_numbers() -> None:
    # Items 0, 1, 2 of one class: 2 · 2 triples each, none wrong. Items 3, 4 of another: 1 · 3 each, all wrong.
    scores = np.array([[2, 2, 2, 1, 1]] * 3 + [[1, 1, 1, 0, 0]] * 2, dtype=float)
    found = evaluate_classes(blocks_of(scores), [0, 0, 0, 1, 1]).to_dict()
    assert found["error"]["value"] == pytest.approx(2 / 5)
    assert found["error_of_triples"]["value"] == pytest.approx(6 / 18)
    assert found["error_of_triples"]["low"] < 6 / 18 < found["error_of_triples"]["high"]


def test_a_constant_scorer_is_always_wrong() -> None:
    found = evaluate_classes(lambda start, stop: np.zeros((stop - start, 6)), [0, 0, 0, 1, 1, 1])
    assert found.error.to_dict() == {"value": 1.0, "low": 1.0, "high": 1.0}


def test_ties_go_by_the_items_numbers_as_text() -> None:
    # All scores equal: 10 other items in falling string order 9 8 7 6 5 4 3 2 10 1; item 0 seeks item 9, the first.
    y = [0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1]
    found = evaluate_classes(lambda start, stop: np.zeros((stop - start, 11)), y)
    assert found.average_precisions[0] == 1.0


def test_classes_may_have_any_names() -> None:
    scores = np.random.default_rng(0).random((6, 6))
    numbers = evaluate_classes(blocks_of(scores), [2, 7, 2, 7, 2, 9])
    names = evaluate_classes(blocks_of(scores), ["b", "f", "b", "f", "b", "x"])
    assert numbers.to_dict() == names.to_dict()
    assert numbers.to_dict()["left_out"] == 1


@pytest.mark.parametrize(("n_jobs", "block_rows"), [(1, 1), (2, 7), (4, 13), (3, None), (8, 200)])
def test_threads_and_blocks_change_no_bit(n_jobs: int, block_rows: int | None) -> None:
    random = np.random.default_rng(1)
    scores, y = random.normal(size=(150, 150)).round(1), random.integers(0, 5, size=150)
    alone = evaluate_classes(blocks_of(scores), y, n_jobs=1)
    found = evaluate_classes(blocks_of(scores), y, n_jobs=n_jobs, block_rows=block_rows)
    assert_array_equal(found.average_precisions, alone.average_precisions)
    assert_array_equal(found.errors, alone.errors)
    assert found.to_dict() == alone.to_dict()


MEASURE_7532_ITEMS = """
import resource, sys
from pathlib import Path
import numpy as np
from scipy.sparse import random_array
from sparserank.evaluation import bilinear_blocks, evaluate_classes
from sparserank.evaluation.labels import WORKERS

rng = np.random.default_rng(0)
X = random_array((7532, 10_000), density=0.004, rng=rng, format="csr", dtype=np.float32)
W = random_array((10_000, 10_000), density=0.0005, rng=rng, format="csr", dtype=np.float32)
found = evaluate_classes(bilinear_blocks(X, W, X), np.arange(7532) % 20, n_jobs=WORKERS)
status = Path("/proc/self/status")
if status.exists():  # there, the peak that getrusage tells includes that of the process that started this one
    peak = int(status.read_text().split("VmHWM:")[1].split()[0]) * 1024
else:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(len(found.queries), peak)
"""


@pytest.mark.slow
def test_7532_items_are_measured_in_half_a_gibibyte() -> None:
    done = subprocess.run([sys.executable, "-c", MEASURE_7532_ITEMS], capture_output=True, text=True, check=True)
    queries, peak = map(int, done.stdout.split())
    assert queries == 7532
    assert peak < 1 << 29, "one gibibyte is allowed; without blocks it would be more than half of one"


def test_blocks_hold_one_row_at_least_and_all_rows_at_most() -> None:
    assert default_block_rows(BLOCK_BYTES) == 1
    assert default_block_rows(3) == 3


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("sparse_q", [True, False])
@pytest.mark.parametrize("sparse_d", [True, False])
@pytest.mark.parametrize("density", [0.02, 0.9])
def test_bilinear_blocks_are_the_product(weighted: bool, sparse_q: bool, sparse_d: bool, density: float) -> None:
    from scipy.sparse import csr_array

    random = np.random.default_rng(0)
    Q, D, W = (
        np.where(random.random(shape) < density, random.normal(size=shape), 0.0)
        for shape in ((9, 30), (7, 20 if weighted else 30), (30, 20))
    )
    expected = (Q[2:6] @ W if weighted else Q[2:6]) @ D.T
    block = bilinear_blocks(
        csr_array(Q) if sparse_q else Q, csr_array(W) if weighted else None, csr_array(D) if sparse_d else D
    )(2, 6)
    assert block.dtype == np.float32
    assert_allclose(block, expected, atol=1e-5)


def test_no_weights_are_the_identity_to_the_bit() -> None:
    from scipy.sparse import eye_array, random_array

    X = random_array((40, 200), density=0.05, rng=np.random.default_rng(0), format="csr")
    assert_array_equal(bilinear_blocks(X, None, X)(0, 40), bilinear_blocks(X, eye_array(200), X)(0, 40))


def test_matrices_that_do_not_fit_raise() -> None:
    with pytest.raises(DataError, match="Q has 3 columns and D 4: W must be 3 × 4"):
        bilinear_blocks(np.ones((2, 3)), np.ones((3, 3)), np.ones((2, 4)))
    with pytest.raises(DataError, match="Q has 3 columns and D 4: without W both need the same"):
        bilinear_blocks(np.ones((2, 3)), None, np.ones((2, 4)))


SQUARE = np.arange(16.0).reshape(4, 4)
HOLE = np.where(np.arange(16).reshape(4, 4) == 11, np.nan, SQUARE)


@pytest.mark.parametrize(
    ("scores", "y", "more", "message"),
    [
        (SQUARE, [1, 1, 1, 1], {}, "all items are of one class"),
        (SQUARE, [1, 2, 3, 4], {}, "every item is alone in its class"),
        (SQUARE, [], {}, "y must be a list of classes"),
        (SQUARE, [[1, 2], [1, 2]], {}, "y must be a list of classes"),
        (HOLE, [0, 0, 1, 1], {}, "the score of item 3 for query 2 is not a number"),
        (HOLE, [0, 0, 1, 1], {"block_rows": 1, "n_jobs": 2}, "the score of item 3 for query 2 is not a number"),
        (SQUARE[:, :3], [0, 0, 1, 1], {}, "must have shape \\(4, 4\\); got \\(4, 3\\)"),
        (SQUARE, [0, 0, 1, 1], {"ids": ["a", "b", "c"]}, "every row needs one id; got 3 ids for 4 rows"),
        (SQUARE, [0, 0, 1, 1], {"ids": ["a", "b", "c", "a"]}, "row 3: id 'a' occurs more than once"),
    ],
)
def test_what_cannot_be_measured_raises(scores: Any, y: Any, more: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        evaluate_classes(blocks_of(scores), y, **more)


def test_a_block_has_a_row() -> None:
    with pytest.raises(ConfigError, match="'block_rows' parameter"):
        evaluate_classes(blocks_of(SQUARE), [0, 0, 1, 1], block_rows=0)


@pytest.mark.data
@pytest.mark.slow
def test_the_identity_on_20_newsgroups_has_its_known_figures(real: Callable[[str], Path]) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    posts: dict[str, list[tuple[str, str]]] = {"train": [], "test": []}
    with tarfile.open(real("20newsgroups") / "20news-bydate.tar.xz") as archive:
        for member in archive:
            if member.isfile():
                split = "train" if "train" in member.name else "test"
                text = archive.extractfile(member).read().decode("latin-1")  # type: ignore[union-attr]
                posts[split].append((text, member.name.split("/")[-2]))
    words = TfidfVectorizer(max_features=10_000, sublinear_tf=True).fit(text for text, _ in posts["train"])
    X = words.transform(text for text, _ in posts["test"])
    found = evaluate_classes(bilinear_blocks(X, None, X), [group for _, group in posts["test"]])
    assert len(found.queries) == 7532
    assert found.map.value == pytest.approx(0.190, abs=0.003)
    assert found.error.value == pytest.approx(0.328, abs=0.003)
