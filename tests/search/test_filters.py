"""Filters, facets and offsets against their literal definitions, the notations of a filter, and its mistakes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sparserank.data.metadata import value_texts
from sparserank.data.records import Documents
from sparserank.errors import FilterError, ModelError
from sparserank.search import Index, metadata_columns, top_k
from sparserank.search.filters import (
    And,
    Equals,
    Exists,
    Filter,
    Not,
    Or,
    Range,
    parse_date,
    parse_filter,
    parse_number,
)

ONE_LAYOUT = [HealthCheck.function_scoped_fixture]
"""All examples of a test share the layout of its fixture."""
FIELDS = ("kind", "n", "when")
TEXTS = st.sampled_from(
    ["a", "b", "two words", "", "true", "3", "10", "2.5", "2024-01-31", "2024-01-31T12:00:00+02:00", "é"]
)
VALUES = TEXTS | st.integers(-3, 12) | st.booleans() | st.sampled_from([2.5, 3.0, -0.5])
METADATA = st.dictionaries(st.sampled_from(FIELDS), VALUES | st.lists(VALUES, max_size=3))


def oracle(expression: Filter, metadata: dict[str, Any]) -> bool:
    """Whether a document matches, by the definition."""
    if isinstance(expression, Not):
        return not oracle(expression.part, metadata)
    if isinstance(expression, And):
        return all(oracle(part, metadata) for part in expression.parts)
    if isinstance(expression, Or):
        return any(oracle(part, metadata) for part in expression.parts)
    texts = value_texts(metadata.get(expression.field, []))
    if isinstance(expression, Exists):
        return bool(texts)
    if isinstance(expression, Equals):
        return any(text in expression.values for text in texts)
    return any(in_range(text, expression) for text in texts)


def in_range(text: str, wanted: Range) -> bool:
    """Whether a text lies between two ends; the kind of the ends decides how it is read."""
    end = wanted.high if wanted.low is None else wanted.low
    if end is None:
        return True
    parse: Any = parse_number if parse_number(end) is not None else parse_date if parse_date(end) is not None else str
    value = parse(text)
    if value is None:
        return False
    day = 86_400 if parse is parse_date else 0
    length = [day if one is not None and len(one) == 10 else 0 for one in (wanted.low, wanted.high)]
    above = wanted.low is None or (
        value >= parse(wanted.low)
        if wanted.includes[0]
        else (value >= parse(wanted.low) + length[0] if length[0] else value > parse(wanted.low))
    )
    below = wanted.high is None or (
        (value < parse(wanted.high) + length[1] if length[1] else value <= parse(wanted.high))
        if wanted.includes[1]
        else value < parse(wanted.high)
    )
    return bool(above and below)


NAMES = st.sampled_from(FIELDS)
ENDS = st.sampled_from(
    [("2", "10"), ("-0.5", "3"), ("2024-01-31", "2024-02-01"), ("2024-01-31T10:00", "2024-01-31"), ("a", "é")]
)
RANGES = st.builds(
    lambda name, ends, low, high, includes: Range(name, ends[0] if low else None, ends[1] if high else None, includes),
    NAMES, ENDS, st.booleans(), st.booleans(), st.tuples(st.booleans(), st.booleans()),
)  # fmt: skip
LEAVES: st.SearchStrategy[Filter] = (
    st.builds(Equals, NAMES, st.lists(TEXTS, min_size=1, max_size=2).map(tuple)) | st.builds(Exists, NAMES) | RANGES
)
FILTERS = st.recursive(
    LEAVES,
    lambda part: (
        st.builds(Not, part)
        | st.builds(And, st.lists(part, min_size=2, max_size=3).map(tuple))
        | st.builds(Or, st.lists(part, min_size=2, max_size=3).map(tuple))
    ),
    max_leaves=5,
)


def notation(expression: Filter) -> str:
    """The text of a filter."""
    if isinstance(expression, Not):
        return f"NOT ({notation(expression.part)})"
    if isinstance(expression, And | Or):
        word = " AND " if isinstance(expression, And) else " OR "
        return f"({word.join(map(notation, expression.parts))})"
    if isinstance(expression, Exists):
        return f"{expression.field}:*"
    if isinstance(expression, Equals):
        return f"({' OR '.join(f'{expression.field}:{quoted(value)}' for value in expression.values)})"
    if expression.includes == (True, True):
        ends = ("*" if end is None else quoted(end) for end in (expression.low, expression.high))
        return f"{expression.field}:[{' TO '.join(ends)}]"
    name, (with_low, with_high) = expression.field, expression.includes
    parts = [] if expression.low is None else [f"{name}{'>=' if with_low else '>'}{quoted(expression.low)}"]
    parts += [] if expression.high is None else [f"{name}{'<=' if with_high else '<'}{quoted(expression.high)}"]
    return f"({' AND '.join(parts or [f'{name}:*'])})"


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


@st.composite
def indexes(draw: st.DrawFn) -> tuple[Index, Documents, csr_array]:
    """An index of a few segments, with deleted documents, the documents that are left, and a query."""
    records = draw(st.lists(METADATA, min_size=1, max_size=40))
    weights = draw(st.lists(st.integers(-2, 3), min_size=3 * len(records), max_size=3 * len(records)))
    matrix = csr_array(np.array(weights, np.float64).reshape(-1, 3))
    docs = Documents(
        tuple(f"d{i:02}" for i in range(len(records))), ("",) * len(records), ("",) * len(records), tuple(records)
    )
    cut = draw(st.integers(1, len(records)))
    index = Index.build(matrix[:cut], docs.take(range(cut)))
    if cut < len(records):
        index = index.with_documents(matrix[cut:], docs.take(range(cut, len(records))))
    gone = draw(st.sets(st.sampled_from(docs.ids), max_size=len(records) - 1))
    left = [i for i, doc_id in enumerate(docs.ids) if doc_id not in gone]
    query = csr_array(np.array([draw(st.lists(st.integers(-1, 2), min_size=3, max_size=3))], np.float64))
    return index.without(gone), docs.take(left), query


def rows_by_id(documents: Documents) -> dict[str, dict[str, Any]]:
    return {doc_id: dict(metadata) for doc_id, (_, _, metadata) in documents.rows().items()}


@pytest.fixture(params=[(1, 1), (32, 1000)], ids=["lists", "bitmaps"])
def bits_per_position(request: pytest.FixtureRequest) -> Iterator[None]:
    """1 makes lists of nearly all values, 32 bitmaps of most; a share of 1 scores the selected documents alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metadata_columns, "BITS_PER_POSITION", request.param[0])
        patch.setattr(top_k, "FEW_SHARE", request.param[1])
        yield


@pytest.mark.usefixtures("bits_per_position")
@settings(max_examples=150, deadline=None, suppress_health_check=ONE_LAYOUT)
@given(indexes(), FILTERS, st.integers(1, 8), st.integers(0, 5))
def test_a_filtered_search_is_the_exhaustive_ranking_without_the_other_documents(made, expression, k, offset) -> None:
    index, documents, query = made
    metadata = rows_by_id(documents)
    everything = index.run(query, ["q"], k=len(documents))["q"]
    wanted = [(doc_id, score) for doc_id, score in everything.items() if oracle(expression, metadata[doc_id])]
    filtered = restricted(index, expression)
    found = filtered.search(query, k, offset=offset)[0]
    assert [(hit.id, hit.score) for hit in found] == wanted[offset : offset + k]
    assert all(hit.metadata == metadata[hit.id] for hit in found)
    for plan in ("query", "exhaustive"):
        top = filtered.top(query, k, plan=plan)
        assert [filtered.id_at(number) for number in top.docs[0, : top.counts[0]]] == [name for name, _ in wanted[:k]]


@pytest.mark.usefixtures("bits_per_position")
@settings(max_examples=100, deadline=None, suppress_health_check=ONE_LAYOUT)
@given(indexes(), FILTERS)
def test_facets_count_the_values_of_all_results(made, expression) -> None:
    index, documents, query = made
    metadata = rows_by_id(documents)
    results = [name for name in index.run(query, ["q"], k=len(documents))["q"] if oracle(expression, metadata[name])]
    wanted: dict[str, dict[str, int]] = {}
    for name in index.fields:
        texts = [text for doc_id in results for text in set(value_texts(metadata[doc_id].get(name, [])))]
        counts = sorted(((text, texts.count(text)) for text in set(texts)), key=lambda one: (-one[1], one[0]))
        wanted[name] = dict(counts)
    found = restricted(index, expression).facets(query, index.fields)
    assert found == wanted
    assert [list(values) for values in found.values()] == [list(values) for values in wanted.values()]


def restricted(index: Index, expression: Filter) -> Index:
    """A filtered index, by the text of the filter if the index has its fields."""
    try:
        return index.filtered(notation(expression))
    except FilterError as error:
        assert "there is no field" in str(error)
        with_fields = replace(index, segments=index.segments)
        with_fields.__dict__["fields"] = FIELDS
        return with_fields.filtered(notation(expression))


@given(FILTERS)
def test_the_text_of_a_filter_parses_to_an_equal_meaning(expression: Filter) -> None:
    parsed = parse_filter(notation(expression))
    for value in ("a", 3, True, ["b", 2.5], "2024-01-31", "2024-01-31T12:00:00+02:00", []):
        for name in FIELDS:
            single = {name: value}
            if not _splits_a_range(expression):
                assert oracle(parsed, single) == oracle(expression, single)


def _splits_a_range(expression: Filter) -> bool:
    """Whether a list of values may match `low AND high` by two values."""
    if isinstance(expression, Not):
        return _splits_a_range(expression.part)
    if isinstance(expression, And | Or):
        return any(map(_splits_a_range, expression.parts))
    return isinstance(expression, Range) and expression.includes != (True, True)


DOCS = Documents.of(
    {
        "a": {"title": "A", "metadata": {"kind": "function", "year": 1999, "tags": ["x", "y"], "open": True}},
        "b": {"metadata": {"kind": "struct", "year": 2004.5, "seen": date(2024, 1, 31), "open": False}},
        "c": {"metadata": {"kind": "two words", "seen": "2024-02-01T08:00:00", "tags": "y"}},
        "d": "no metadata",
    }
)
INDEX = Index.build(csr_array(np.ones((4, 1))), DOCS)


def ids(given_filter: str | dict[str, Any]) -> str:
    return "".join(sorted(hit.id for hit in INDEX.filtered(given_filter).search(csr_array([[1.0]]))[0]))


@pytest.mark.parametrize(
    ("given_filter", "wanted"),
    [
        ("kind:function", "a"),
        ('kind:"two words"', "c"),
        ("NOT kind:function", "bcd"),
        ("kind:function OR tags:y AND seen:*", "ac"),
        ("(kind:function OR tags:y) AND seen:*", "c"),
        ("year>=1999", "ab"),
        ("year > 1999", "b"),
        ("year:[1990 TO 2000]", "a"),
        ("year:[2000 TO *]", "b"),
        ("seen<=2024-01-31", "b"),
        ("seen>2024-01-31", "c"),
        ("seen<2024-02-01T09:00+01:00", "b"),
        ("open:true", "a"),
        ("kind>=struct", "bc"),
        ('"kind":struct', "b"),
        ({"kind": "function"}, "a"),
        ({"kind": ["function", "struct"], "year": {">=": 2000}}, "b"),
        ({"open": False}, "b"),
        ({"year": 1999.0}, "a"),
        ({"seen": {">": date(2024, 1, 31)}}, "c"),
        ({"seen": {">=": date(2024, 1, 31), "<": "2024-02-01"}}, "b"),
    ],
)
def test_a_filter_selects(given_filter: str | dict[str, Any], wanted: str) -> None:
    assert ids(given_filter) == wanted


@pytest.mark.parametrize(
    ("given_filter", "sentence"),
    [
        ("", "filter: expected a field at position 0"),
        ("kind", "filter: expected ':' or a comparison after 'kind' at position 4"),
        ("kind:", "filter: expected a value after 'kind:' at position 5"),
        ("kind:a b", "filter: expected AND, OR or the end at position 7, found 'b'"),
        ("(kind:a", "filter: expected AND, OR or ')' at position 7"),
        ('kind:"abc', "filter: the quotes at position 5 are not closed"),
        ("year:[1 5]", "filter: expected TO at position 8, found '5]'"),
        ("year:[1 TO x]", "filter: a range needs two numbers, two dates or two texts; got '1' and 'x' at position 0"),
        ("(" * 60 + "a:b", "filter: more than 50 nested parts at position 50"),
        (
            "kind:a AND knd:b",
            "filter: there is no field 'knd' at position 11; the fields are kind, open, seen, tags, year",
        ),
        ({"knd": 1}, "filter: there is no field 'knd'; the fields are kind, open, seen, tags, year"),
        ({}, "filter: the mapping is empty; leave the filter out"),
        ({"kind": []}, "filter: the list of values of 'kind' is empty"),
        ({"kind": {"=": 1}}, "filter: the comparisons of 'kind' are >=, >, <=, <; got '='"),
        ({"kind": {">": 1, ">=": 1}}, "filter: 'kind' has two comparisons of the same kind: >, >="),
        ({"kind": None}, "filter: a value of 'kind' must be text, a number, true or false, or a date; got None"),
        ({1: 2}, "filter: a field must be non-empty text; got 1"),
        (3, "filter: must be text or a mapping of fields to values; got 3"),
    ],
)
def test_a_mistake_is_one_line_with_its_position(given_filter: Any, sentence: str) -> None:
    with pytest.raises(FilterError) as caught:
        INDEX.filtered(given_filter)
    assert str(caught.value) == sentence


def test_an_index_without_metadata_says_so() -> None:
    index = Index.build(csr_array([[1.0]]), Documents.of({"a": ""}))
    with pytest.raises(FilterError, match="there is no field 'kind' at position 0; the documents have no metadata"):
        index.filtered("kind:a")
    with pytest.raises(FilterError, match="facets: there is no field 'kind'; the documents have no metadata"):
        index.facets(csr_array([[1.0]]), ["kind"])


def test_a_long_text_is_filtered_and_counted_whole() -> None:
    texts = {name: "word " * 200 + name for name in ("a", "b")} | {"c": "word", "d": "word " * 51 + "w"}
    docs = Documents.of({name: {"metadata": {"note": text}} for name, text in texts.items()})
    index, query = Index.build(csr_array(np.ones((4, 1))), docs), csr_array([[1.0]])
    found = index.filtered({"note": texts["a"]}).search(query)[0]
    assert {hit.id: hit.metadata["note"] for hit in found} == {"a": texts["a"]}
    assert len(index.filtered({"note": texts["a"][:256]})) == 1  # d alone
    assert index.facets(query, ["note"]) == {"note": dict.fromkeys(sorted(texts.values()), 1)}
    assert len(index.filtered("note:*")) == 4


def test_long_texts_that_many_documents_have_are_counted_whole() -> None:
    docs = Documents.of({str(n): {"metadata": {"note": "x" * 300 + str(n % 2)}} for n in range(100)})
    index, query = Index.build(csr_array(np.ones((100, 1))), docs), csr_array([[1.0]])
    assert index.facets(query, ["note"]) == {"note": {"x" * 300 + "0": 50, "x" * 300 + "1": 50}}


def test_a_range_compares_long_texts_and_refuses_long_ends() -> None:
    docs = Documents.of({name: {"metadata": {"note": "x" * 299 + name}} for name in "ab"})
    index = Index.build(csr_array(np.ones((2, 1))), docs)
    assert len(index.filtered({"note": {">": "x" * 256}})) == 2
    assert len(index.filtered({"note": {"<=": "x" * 256}})) == 0
    with pytest.raises(FilterError, match="an end of a range may have at most 256 characters at position 0"):
        index.filtered(f"note>{'x' * 257}")


def test_the_last_filters_are_cached_within_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    index = replace(INDEX, made_for="other")
    assert index.filtered("open:true") is index.filtered("open:true")
    monkeypatch.setattr("sparserank.search.index.MAX_FILTER_BYTES", 2 * 8 * len(DOCS))
    for name in ("a", "b", "c"):
        index.filtered(f"kind:{name}")
    assert list(index._filtered) == ["kind:b", "kind:c"]


def test_metadata_is_stored_in_the_file_and_survives_changes_and_merges(tmp_path: Path) -> None:
    INDEX.save(tmp_path / "i.index")
    loaded = Index.load(tmp_path / "i.index")
    assert rows_by_id(loaded.documents) == rows_by_id(DOCS)
    assert loaded.metadata_of("a") == {"kind": "function", "year": 1999, "tags": ["x", "y"], "open": True}
    more = Documents.of({"e": {"metadata": {"other": 1}}, "a": {"metadata": {"kind": "new"}}})
    changed = loaded.with_documents(csr_array(np.ones((2, 1))), more).without(["b"])
    wanted = {name: row for name, row in rows_by_id(DOCS.updated(more)).items() if name != "b"}
    assert rows_by_id(changed.documents) == wanted
    assert changed.filtered("kind:new OR other:1").documents.ids == ("e", "a")
    assert changed.fields == ("kind", "open", "other", "seen", "tags", "year")


@pytest.mark.parametrize("name", ["lists", "bitmaps", "counts"])
def test_a_damaged_column_raises_model_error(name: str) -> None:
    docs = Documents.of({str(i): {"metadata": {"n": i, "parity": i % 2}} for i in range(40)})
    segment = Index.build(csr_array(np.ones((40, 1))), docs).segments[0]
    columns = segment.metadata
    assert columns is not None
    array = getattr(columns, name)
    assert len(array)
    damages = [array[1:]] if name == "bitmaps" else [array[1:], array + 40]
    for damaged in damages:
        index = Index((replace(segment, metadata=replace(columns, **{name: damaged})),))
        with pytest.raises(ModelError, match="the index is damaged"):
            index.filtered("n:7 AND parity:1")
