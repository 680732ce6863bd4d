"""The kernels behind passages and shares of a score, against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sparserank._kernels.passages import best_window, find_marks
from sparserank._kernels.rescoring import contributions
from sparserank.data.records import Documents
from sparserank.errors import ModelError
from sparserank.search import Index
from sparserank.search.string_array import StringArray


@given(st.integers(0, 2**32 - 1))
def test_the_weights_of_several_documents_are_those_of_their_rows(seed):
    random = np.random.default_rng(seed)
    D = random.integers(0, 3, (40, 7)).astype(np.float32) * (random.random((40, 7)) < random.random(7))
    ids = [f"{i:02d}" for i in range(40)]
    index = Index.build(csr_array(D[:25]), Documents(ids[:25], ids[:25], ids[:25]))
    index = index.with_documents(csr_array(D[25:28]), Documents(ids[25:28], ids[25:28], ids[25:28]))
    wanted = random.permutation(28)[:9]
    terms = random.integers(0, 7, 12)
    found = index.weights_at([index.number(ids[i]) for i in wanted], terms)
    assert found.tolist() == D[wanted][:, terms].tolist()


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=12), st.integers(0, 6))
def test_contributions_are_the_largest_ones_and_their_sums(values, k):
    found = np.abs(np.array([values], np.float32))
    terms = np.arange(len(values))[::-1].copy()
    weights = np.sign(values).astype(np.float64)[terms]
    top, counts, sums = contributions(found, terms, weights, 2, k)
    value = np.array(values, np.float64)[terms]
    order = [i for i in np.argsort(-np.abs(value), kind="stable") if value[i]][:k]
    assert top[0, : counts[0]].tolist() == order
    positive = np.maximum(value, 0.0)
    assert sums[0].tolist() == [positive[:2].sum(), positive[2:].sum(), np.minimum(value, 0.0).sum()]


FORMS = st.lists(st.integers(0, 3), max_size=30)
TARGETS = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=3), max_size=5)


@given(FORMS, TARGETS, st.lists(st.integers(0, 3), min_size=5, max_size=5), st.integers(1, 20))
def test_the_best_window_is_that_of_all_windows(forms, targets, added, length):
    starts = np.arange(len(forms), dtype=np.intc) * 2
    ends = starts + np.intc(1)
    part_starts = np.cumsum([0, *map(len, targets)])
    parts = np.array([part for target in targets for part in target], np.intc)
    matches = sorted(
        (i, i + len(target) - 1, t)
        for t, target in enumerate(targets)
        for i in range(len(forms))
        if forms[i : i + len(target)] == target
    )
    values = np.array(added[: len(targets)], np.int64)
    begin, end, first, last, found = best_window(
        starts, ends, np.array(forms, np.intc), part_starts, parts, values, length
    )
    assert sorted(zip(first.tolist(), last.tolist(), found.tolist(), strict=True)) == matches

    def total(begin, end):
        inside = {t for i, j, t in matches if begin <= starts[i] and ends[j] <= end}
        return sum(values[t] for t in inside)

    windows = [(starts[i], ends[j]) for i, _, _ in matches for _, j, _ in matches if 0 <= ends[j] - starts[i] <= length]
    if all(ends[j] - starts[i] <= length for i, j, _ in matches):  # a longer match is a window of its own
        assert total(begin, end) == max((total(*window) for window in windows), default=0)


def test_words_that_overlap_share_a_mark_with_the_numbers_of_all():
    starts, ends = np.array([0, 1, 2, 9], np.intc), np.array([2, 3, 4, 12], np.intc)
    first, last, targets = np.array([0, 1, 1, 3]), np.array([1, 2, 1, 3]), np.array([4, 0, 4, 2])
    bounds, stops, numbers = find_marks(starts, ends, first, last, targets, 0, 12)
    assert (bounds.tolist(), stops.tolist(), numbers.tolist()) == ([[0, 9], [4, 12]], [2, 3], [0, 4, 2])
    assert find_marks(starts, ends, first, last, targets, 0, 11)[0].tolist() == [[0], [4]]


@given(st.sets(st.text(max_size=4), max_size=20), st.text(max_size=4))
def test_a_string_is_found_where_it_is(strings, other):
    ordered = sorted(strings, reverse=True)
    array = StringArray.from_strings(ordered)
    assert [array.find_descending(one) for one in ordered] == list(range(len(ordered)))
    assert array.find_descending(other) == (ordered.index(other) if other in strings else -1)


def test_a_string_outside_of_a_damaged_array_raises_an_error():
    with pytest.raises(ModelError, match="string 0 lies outside"):
        StringArray(np.zeros(3, np.uint8), np.array([0, 9])).find_descending("a")


@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.integers(0, 5))
def test_a_search_that_counts_finds_what_a_search_finds(seed, k, offset):
    random = np.random.default_rng(seed)
    D = csr_array(random.integers(-2, 3, (30, 5)).astype(np.float32) * (random.random((30, 5)) < 0.3))
    ids = tuple(f"{i:02d}" for i in range(30))
    index = Index.build(D, Documents(ids, ids, ids)).without(["07", "21"])
    if seed % 2:
        index = index.with_documents(D[:2], Documents(ids[6:8], ids[6:8], ids[6:8]))
    query = csr_array(random.integers(-1, 3, (1, 5)).astype(np.float32))
    hits, total, _ = index.search_and_count(query, k, offset)
    assert hits == index.search(query, k, offset=offset)[0]
    assert total == len(index.search(query, 40)[0])
