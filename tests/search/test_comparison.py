"""Why A is above B: the differences sum, and the pairs named are the fewest that would swap the two."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparserank as sr
from sparserank.errors import DataError
from sparserank.search.comparison import compare
from sparserank.search.explanation import Contribution, Explanation

from ..motors import DOCS, QRELS, QUERIES, learned_anyway

added = st.dictionaries(st.sampled_from("abcdef"), st.integers(-4, 4).filter(bool), max_size=6)


def explained(contributions):
    pairs = tuple(Contribution("q", word, float(value)) for word, value in contributions.items())
    return Explanation(float(sum(contributions.values())), pairs)


def ahead(one, other, without=()):
    """Whether document x, explained by `one`, ranks before y when these pairs are gone."""
    scores = [np.float32(sum(v for word, v in side.items() if word not in without)) for side in (one, other)]
    return (scores[0], "x") > (scores[1], "y")


@given(added, added)
def test_differences_sum_to_the_difference_of_the_scores(one, other):
    found = compare("x", "y", explained(one), explained(other))
    assert sum(pair.difference for pair in found.pairs) == found.difference
    assert [abs(pair.difference) for pair in found.pairs] == sorted(abs(p.difference) for p in found.pairs)[::-1]


@given(added, added)
def test_the_swap_is_as_small_as_any_set_of_pairs_that_would_do(one, other):
    found = compare("x", "y", explained(one), explained(other))
    words = sorted({*one, *other})
    enough = [
        gone for n in range(len(words) + 1) for gone in combinations(words, n)
        if ahead(one, other, gone) != ahead(one, other)
    ]  # fmt: skip
    if found.swap is None:
        assert not enough
    else:
        assert ahead(one, other, {pair.document for pair in found.swap}) != ahead(one, other)
        assert len(found.swap) == len(enough[0])


def learned():
    ranker = learned_anyway(DOCS, QUERIES, QRELS)
    if ranker.model_.W is None:
        pytest.fail("nothing was learned")
    return ranker


def test_forbidding_the_pairs_of_the_swap_swaps_two_results_of_a_real_search():
    ranker = learned()
    first, second = (hit.id for hit in ranker.search("motor", 2))
    found = ranker.compare("motor", first, second)
    assert found.difference > 0
    assert found.swap
    for pair in found.swap:
        ranker.forbid(pair.query, pair.document)
    order = [hit.id for hit in ranker.search("motor")]
    assert first not in order or order.index(second) < order.index(first)


def test_a_lexical_search_is_that_of_a_model_without_pairs():
    ranker = learned()
    docs = {i: ranker.index_.text_of(i) for i in ("a", "b", "c", "d")}
    plain = sr.TextRanker("bm25").fit(docs)
    for text in ("boat engine", "motor", "plum or car"):
        assert ranker.search_lexical(text) == plain.search(text)


def test_a_document_is_not_compared_with_itself():
    with pytest.raises(DataError, match="got 'a' twice"):
        sr.TextRanker().fit({"a": "x y", "b": "yy"}).compare("yy", "a", "a")
