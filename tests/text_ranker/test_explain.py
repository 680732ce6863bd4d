"""What is listed of an explanation is what its parts say, in one order."""

from __future__ import annotations

import pytest

import sparserank as sr
from sparserank.errors import DataError

from ..motors import DOCS, QRELS, QUERIES, learned_anyway


@pytest.fixture(scope="module", params=[True, False], ids=["learned", "bm25"])
def ranker(request):
    return learned_anyway(DOCS, QUERIES, QRELS) if request.param else sr.TextRanker("bm25").fit(DOCS)


@pytest.mark.parametrize("text", ["motor boat", "car", "a plum car engine", "zebra", ""])
@pytest.mark.parametrize("document", DOCS)
def test_the_list_has_all_pairs_of_both_parts_the_largest_first(ranker, text, document):
    explainer = ranker.explainer(text)
    score, listed, rest, _ = explainer.top(document)
    assert rest == (0, 0.0, 0.0, 0.0)
    lexical, learned = explainer.parts(document)
    told = [(*pair, False) for pair in lexical.pairs] + [(*pair, True) for pair in learned.pairs]
    assert listed == sorted(told, key=lambda one: -abs(one[2]))
    assert score == pytest.approx(explainer.explain(document).score, rel=1e-6, abs=1e-7)
    assert score == pytest.approx(sum(added for _, _, added, _ in listed), rel=1e-6, abs=1e-7)


def test_learned_pairs_are_told_from_words_that_meet_themselves():
    ranker = learned_anyway(DOCS, QUERIES, QRELS)
    listed = ranker.explainer("motor car").top("a").pairs
    assert {(query, document, learned) for query, document, _, learned in listed} >= {("car", "car", False)}
    assert any(learned and query == "motor" for query, _, _, learned in listed)


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda r: r.scores("ab"), r"texts must be a list of strings; got the string 'ab': write \['ab'\]"),
        (lambda r: r.scores(["ab"], "d1"), "doc_ids must be a list of strings; got the string 'd1'"),
        (lambda r: r.search_many("ab"), "texts must be a list of strings; got the string 'ab'"),
        (lambda r: r.explain("red", None), "there is no document None in this index of 2 documents"),
        (lambda r: r.explain("red", 5), "there is no document 5 in this index"),
        (lambda r: r.compare("red", "d1", 5), "there is no document 5 in this index"),
    ],
)  # fmt: skip
def test_a_string_instead_of_a_list_and_an_id_that_is_no_string_raise(call, complaint):
    ranker = sr.TextRanker("bm25").fit({"d1": "red apples", "d2": "a pear"})
    with pytest.raises(DataError, match=complaint):
        call(ranker)
