"""Records: what they take, what they refuse, and that nothing writes into them."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from datetime import UTC, date, datetime

import numpy as np
import pytest
from scipy.sparse import csr_array

from sparserank.data.records import Collection, Documents, LabeledData, Letor, Stories
from sparserank.errors import DataError

DOCS = Documents(("d1", "d2"), ("", "T"), ("some words", "more words"))


def test_documents_are_made_of_texts_or_of_titles_and_texts() -> None:
    assert Documents.of({"d1": "some words", "d2": {"title": "T", "text": "more words"}}) == DOCS
    assert Documents.of(DOCS) is DOCS
    assert len(DOCS) == 2


def test_a_title_or_a_text_left_out_is_empty() -> None:
    assert Documents.of({"a": {}, "b": {"title": None}}) == Documents(("a", "b"), ("", ""), ("", ""))  # type: ignore[dict-item]


def test_metadata_is_stored_with_dates_as_text_and_without_null_values() -> None:
    docs = Documents.of({"a": {"text": "x", "metadata": {"n": 1, "at": date(2024, 1, 31), "no": None}}, "b": "y"})
    assert docs.metadata == ({"n": 1, "at": "2024-01-31"}, {})
    at = datetime(2024, 1, 31, 5, tzinfo=UTC)
    assert Documents(("a",), ("",), ("",), ({"at": [at]},)).metadata == ({"at": ["2024-01-31T05:00:00+00:00"]},)
    assert Documents.of({"a": {"metadata": {"no": None}}}).metadata == ()


@pytest.mark.parametrize("value", [{"nested": 1}, float("nan"), b"bytes", [["list"]]])
def test_a_value_of_another_type_is_rejected_with_its_document_and_field(value: object) -> None:
    with pytest.raises(DataError, match=r"document 'a': metadata 'field' must be text, a finite number"):
        Documents.of({"a": {"metadata": {"field": value}}})


def test_metadata_of_another_shape_raise() -> None:
    with pytest.raises(DataError, match="2 documents need as many metadata, or none; got 1"):
        Documents(("a", "b"), ("", ""), ("", ""), ({"n": 1},))
    with pytest.raises(DataError, match="document 'a': a field of metadata must be non-empty text; got 1"):
        Documents.of({"a": {"metadata": {1: 2}}})


def test_documents_are_selected_and_updated_with_their_metadata() -> None:
    docs = Documents.of({"a": {"metadata": {"n": 1}}, "b": "x"})
    assert docs.take([1, 0]) == Documents(("b", "a"), ("", ""), ("x", ""), ({}, {"n": 1}))
    new = docs.updated(Documents.of({"c": "z", "b": {"metadata": {"n": 2}}}))
    assert new == Documents(("a", "b", "c"), ("",) * 3, ("", "", "z"), ({"n": 1}, {"n": 2}, {}))


@pytest.mark.parametrize(
    ("docs", "sentence"),
    [
        (["d1"], "must be a mapping of ids to texts, or a table; got list"),
        ({1: "text"}, "ids must be text; got 1"),
        ({"d1": 3}, "document 'd1' must be a text or a mapping"),
    ],
)
def test_documents_of_another_shape_raise(docs: object, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        Documents.of(docs)  # type: ignore[arg-type]


def test_columns_of_unequal_length_and_ids_said_twice_raise() -> None:
    with pytest.raises(DataError, match="got 2 ids, 1 titles and 2 texts"):
        Documents(("a", "b"), ("",), ("x", "y"))
    with pytest.raises(DataError, match="'b' occurs more than once"):
        Documents(("a", "b", "c", "b"), ("",) * 4, ("",) * 4)


def test_a_collection_gives_its_splits_by_name() -> None:
    collection = Collection("tiny", DOCS, {"q": "words"}, {"train": {"q": {"d1": 1.0}}})
    assert collection.split("train") == {"q": {"d1": 1.0}}
    with pytest.raises(DataError, match="tiny has no split 'test'; it has: train"):
        collection.split("test")
    with pytest.raises(DataError, match="it has: none"):
        Collection("tiny", DOCS, {}, {}).split("test")


def test_a_record_is_as_long_as_its_rows() -> None:
    assert len(Letor(csr_array((3, 2)), np.zeros(3), np.zeros(3, dtype=np.int64))) == 3
    assert len(LabeledData(["a", "b"], np.array([0, 1]), ("x", "y"))) == 2
    assert len(Stories(csr_array((4, 2)), csr_array((4, 1)), np.zeros(4, dtype=np.int8), ("t",))) == 4


def test_a_record_cannot_be_written_into() -> None:
    with pytest.raises(FrozenInstanceError):
        DOCS.ids = ()  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        Collection("tiny", DOCS, {}, {}).name = "other"  # type: ignore[misc]
