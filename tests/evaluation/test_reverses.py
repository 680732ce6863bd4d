"""Judgments whose reverse is in training: which they are, and figures without them."""

from __future__ import annotations

import pytest

from sparserank.data.records import Collection, Documents
from sparserank.evaluation import Reverses, evaluate_run

TRAIN = {"b": {"a": 1, "c": 0}, "d": {"e": 1}, "x": {"a": 1}}
TEST = {"a": {"b": 1, "c": 2, "x": 0, "d": 1}, "c": {"b": 1}, "e": {"d": 1}}
RUN = {"a": {"b": 4.0, "z": 3.0, "c": 2.0}, "c": {"b": 1.0}, "e": {"d": 1.0}}


def collection(**splits):
    documents = Documents.of(dict.fromkeys("abcdexz", "text"))
    return Collection("links", documents, dict.fromkeys("abcdex", "text"), splits)


def test_a_reverse_is_a_training_query_to_which_this_query_is_relevant():
    found = Reverses.between(TEST, TRAIN)
    assert {q: set(of) for q, of in found.known.items()} == {"a": {"b"}, "c": set(), "e": {"d"}}
    assert (found.judgments, found.of, found.share) == (2, 5, 0.4)
    assert str(found) == "2 of 5 judgments (40.0%) have their reverse in training"
    assert found.to_dict() == {"judgments": 2, "of": 5, "share": 0.4}


def test_between_folds_a_reverse_is_in_another_fold():
    """a–b is mutual across folds, c–d within one, and b–d has no reverse."""
    qrels = {"a": {"b": 1}, "b": {"a": 1, "d": 1}, "c": {"d": 1, "x": 1}, "d": {"c": 1}}
    found = Reverses.between_folds(qrels, {"a": 0, "b": 1, "c": 1, "d": 1})
    assert {q: set(of) for q, of in found.known.items()} == {"a": {"b"}, "b": {"a"}, "c": set(), "d": set()}
    assert (found.judgments, found.of) == (2, 6)


def test_without_them_a_query_that_has_nothing_left_to_find_is_left_out():
    assert Reverses.between(TEST, TRAIN).without(TEST) == {"a": {"c": 2, "x": 0, "d": 1}, "c": {"b": 1}}


def test_a_document_that_is_left_out_is_neither_a_gain_nor_a_loss():
    """As if it were not in the collection: z is first for a, and c second."""
    found = Reverses.between(TEST, TRAIN).evaluate(RUN, TEST, "RR nDCG@10")
    literal = evaluate_run(
        {"a": {"z": 3.0, "c": 2.0}, "c": {"b": 1.0}}, {"a": {"c": 2, "x": 0, "d": 1}, "c": {"b": 1}}, "RR nDCG@10"
    )
    assert found.per_query == literal.per_query
    assert found["RR"].value == pytest.approx((1 / 2 + 1) / 2)


def test_where_every_judgment_has_its_reverse_there_is_no_figure():
    found = Reverses.between({"e": {"d": 1}}, TRAIN)
    assert found.evaluate(RUN, {"e": {"d": 1}}, "RR") is None
    assert found.sentences({"BM25": None})[-1] == "Without them no relevant judgment is left."


def test_the_sentences_have_the_share_and_each_systems_figures():
    found = Reverses.between(TEST, TRAIN)
    first, second = found.sentences({"BM25": found.evaluate(RUN, TEST, "RR")})
    assert first.startswith("2 of 5 judgments (40.0%) have their reverse in training")
    assert second == "Without them, BM25: RR 0.7500 (2 queries)."


def test_only_collections_whose_queries_are_documents_are_looked_at():
    assert Reverses.in_collection(collection(train=TRAIN, test=TEST), TEST).judgments == 2
    assert Reverses.in_collection(collection(train=TRAIN, test=TEST), TRAIN) is None, "the training split itself"
    assert Reverses.in_collection(collection(test=TEST), TEST) is None, "no training split"
    assert Reverses.in_collection(collection(all=TRAIN, test=TEST), TEST, "all").judgments == 2
    assert Reverses.in_collection(collection(train=TRAIN), {"q1": {"b": 1}}) is None, "a query that is no document"


def test_pydocs_has_reverses_of_two_fifths_of_its_test_judgments():
    import sparserank as sr

    docs = sr.data.load("pydocs")
    qrels, train = docs.split("test"), docs.split("train")
    found = Reverses.in_collection(docs, qrels)
    literal = sum(q in train.get(d, {}) for q, of in qrels.items() for d in of)
    assert found.judgments == literal
    assert found.of == sum(map(len, qrels.values()))
    assert 0.3 < found.share < 0.5
