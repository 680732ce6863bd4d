"""The inverted index against brute force: the same documents, the same scores, the same order."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

from sparserank.data.formats.tensors import write_tensors
from sparserank.data.records import Documents
from sparserank.errors import ConfigError, DataError, ModelError
from sparserank.search import Index
from sparserank.search import index as index_module
from sparserank.search.index_file import index_state
from sparserank.text_ranker.explain import explain


def world(seed, n_docs=40, n_terms=12, n_queries=6, signed=False, coarse=True):
    rng = np.random.default_rng(seed)

    def values(size):
        drawn = rng.integers(1, 4, size) if coarse else rng.random(size) + 0.01
        return (drawn * (rng.choice([-1, 1], size) if signed else 1)).astype(np.float32)

    D = csr_array(random_array((n_docs, n_terms), density=0.3, rng=rng, data_sampler=values))
    Q = csr_array(random_array((n_queries, n_terms), density=0.4, rng=rng, data_sampler=values))
    ids = tuple(f"{i:x}" for i in rng.permutation(n_docs))
    return D, Q, Documents(ids, tuple(f"title {i}" for i in ids), ("",) * n_docs)


def brute_force(D, Q, ids, k):
    """Every nonzero score as float32, falling; equal scores by falling id."""
    full = (Q.astype(np.float64) @ D.astype(np.float64).T).toarray().astype(np.float32)
    return [sorted(((float(s), i) for s, i in zip(row, ids, strict=True) if s), reverse=True)[:k] for row in full]


@given(st.integers(0, 10**6), st.sampled_from([1, 3, 10, 1000]), st.booleans(), st.booleans())
def test_search_equals_brute_force(seed, k, signed, coarse):
    D, Q, documents = world(seed, signed=signed, coarse=coarse)
    hits = Index.build(D, documents).search(Q, k)
    assert [[(h.score, h.id) for h in row] for row in hits] == brute_force(D, Q, documents.ids, k)


@pytest.mark.parametrize("signed", [False, True])
def test_any_number_of_threads_gives_the_same_bits(signed):
    D, Q, documents = world(3, n_docs=500, n_queries=100, signed=signed, coarse=False)
    index = Index.build(D, documents)
    one = index.top(Q, 10, n_jobs=1)
    for n_jobs in (2, 5):
        for a, b in zip(one, index.top(Q, 10, n_jobs=n_jobs), strict=True):
            assert np.array_equal(a, b)


def test_k_larger_than_the_collection_returns_fewer():
    index = Index.build(csr_array([[1.0], [2.0]]), Documents.of({"a": "", "b": ""}))
    assert [h.id for h in index.search(csr_array([[1.0]]), k=10**9)[0]] == ["b", "a"]


def test_a_document_without_a_shared_term_is_no_result():
    index = Index.build(csr_array([[1.0, 0.0], [0.0, 1.0]]), Documents.of({"a": "", "b": ""}))
    assert [h.id for h in index.search(csr_array([[1.0, 0.0]]))[0]] == ["a"]
    assert index.search(csr_array((1, 2), dtype=np.float32)) == [[]]


def test_a_run_leaves_out_the_querys_own_document_on_request():
    index = Index.build(csr_array([[1.0], [2.0], [3.0]]), Documents.of({"a": "", "b": "", "c": ""}))
    Q = csr_array([[1.0], [1.0]])
    assert list(index.run(Q, ["c", "x"], exclude_self=True)["c"]) == ["b", "a"]
    assert list(index.run(Q, ["c", "x"], exclude_self=True)["x"]) == ["c", "b", "a"]
    assert list(index.run(Q, ["c", "x"])["c"]) == ["c", "b", "a"]


@given(st.integers(0, 10**6), st.booleans())
def test_contributions_sum_to_the_score_of_the_search(seed, signed):
    D, Q, documents = world(seed, signed=signed, coarse=False)
    index = Index.build(D, documents)
    words = [f"w{i}" for i in range(D.shape[1])]
    for i, hits in enumerate(index.search(Q, 5)):
        for hit in hits:
            why = explain(index, Q[[i]], hit.id, words)
            assert why.score == hit.score
            assert sum(p.contribution for p in why.pairs) == pytest.approx(why.score, rel=1e-6, abs=1e-6)
            assert why.to_dict()["pairs"][0].keys() == {"query", "document", "contribution"}


def test_a_saved_index_finds_the_same(tmp_path):
    D, Q, documents = world(1)
    index = Index.build(D, documents, made_for="me")
    index.save(tmp_path / "i")
    again = Index.load(tmp_path / "i")
    assert again.search(Q) == index.search(Q)
    assert (again.made_for, again.documents) == ("me", index.documents)
    first = (tmp_path / "i").read_bytes()
    again.save(tmp_path / "i")
    assert (tmp_path / "i").read_bytes() == first


def test_the_documents_of_the_next_word_may_begin_below(tmp_path):
    index = Index.build(csr_array([[1.0, 1.0], [2.0, 0.0]]), Documents.of({"b": "", "a": ""}))
    index.save(tmp_path / "i")
    assert Index.load(tmp_path / "i").segments[0].docs.tolist() == [0, 1, 0]


def test_the_arrays_of_an_index_cannot_be_written(tmp_path):
    built = Index.build(csr_array([[1.0], [2.0]]), Documents.of({"a": "", "b": ""}))
    built.save(tmp_path / "i")
    for index in (built, Index.load(tmp_path / "i")):
        (segment,) = index.segments
        with pytest.raises(ValueError, match="read-only"):
            segment.weights[0] = 5.0
        assert not segment.starts.flags.writeable
        assert not segment.docs.flags.writeable


def damaged(index, **changes):
    settings, arrays = index_state(index.segments, "", None)
    return settings, arrays | {f"0.{name}": array for name, array in changes.items()}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"docs": np.array([0, 9], np.int32)}, "outside [0, 2)"),
        ({"docs": np.array([0, -1], np.int32)}, "outside [0, 2)"),
        ({"docs": np.array([0], np.int32)}, "must have 2 entries; got 1"),
        ({"starts": np.array([0, 3], np.int64)}, "does not increase from 0 to 2"),
        ({"starts": np.array([0, 2, 1, 2], np.int64)}, "does not increase"),
        ({"starts": np.array([0, 2**63 - 1, -2, 2], np.int64)}, "does not increase"),
        ({"docs": np.array([1, 0], np.int32)}, "the documents of a term are not in ascending order"),
        ({"docs": np.array([1, 1], np.int32)}, "the documents of a term are not in ascending order"),
        ({"starts": np.array([0, 2], np.int32)}, "does not match its digest"),
        ({"weights": np.array([1.0, np.nan], np.float32)}, "not finite"),
        ({"ids.utf8": np.frombuffer(b"ab", np.uint8)}, "not in order"),
        ({"ids.utf8": np.frombuffer(b"\xff\xfe", np.uint8)}, "not UTF-8"),
        ({"ids.ends": np.zeros(0, np.int64)}, "has no strings"),
        ({"ids.ends": np.array([0, 2], np.int64)}, "not in order"),
        ({"gone": np.array([1, 0], np.int32)}, "the deleted documents are not in ascending order"),
        ({"gone": np.array([2], np.int32)}, "outside [0, 2)"),
        ({"weights": np.array([1.0, 2.5], np.float32)}, "does not match its digest"),
        ({"metadata.records.ends": np.zeros(0, np.int64)}, "0.metadata.records has no strings"),
        ({"metadata.records.ends": np.zeros(2, np.int64)}, "the metadata does not match the documents"),
        ({"metadata.counts": np.zeros(2, np.int32)}, "the metadata does not match the documents"),
        ({"metadata.value_starts": np.array([0, 2], np.int64)}, "does not increase from 0 to 1"),
        ({"metadata.bitmaps": np.zeros(2, np.uint8)}, "do not match their counts"),
        ({"metadata.values.utf8": np.frombuffer(b"\xff", np.uint8)}, "not UTF-8"),
        ({"metadata.bitmaps": np.zeros(1, np.uint8)}, "does not match its digest"),
    ],
)
def test_loading_an_inconsistent_index_raises_and_names_the_file(tmp_path, change, message):
    index = Index.build(csr_array([[1.0], [2.0]]), Documents.of({"a": {"metadata": {"n": 1}}, "b": ""}))
    write_tensors(tmp_path / "bad", "index", *damaged(index, **change))
    with pytest.raises(ModelError, match=re.escape(message)):
        Index.load(tmp_path / "bad")


def test_invalid_input_raises():
    documents = Documents.of({"a": "", "b": ""})
    index = Index.build(csr_array([[1.0], [2.0]]), documents)
    with pytest.raises(DataError, match="2 documents need as many rows; got 1"):
        Index.build(csr_array([[1.0]]), documents)
    with pytest.raises(DataError, match="document weight is not finite"):
        Index.build(csr_array([[np.nan], [2.0]]), documents)
    with pytest.raises(DataError, match="must have 1 columns; got 2"):
        index.search(csr_array([[1.0, 1.0]]))
    with pytest.raises(DataError, match="query weight is not finite"):
        index.search(csr_array([[np.inf]]))
    with pytest.raises(ConfigError, match="'k'"):
        index.search(csr_array([[1.0]]), k=0)
    with pytest.raises(DataError, match="no document 'zz'"):
        index.weights_of("zz", np.array([0]))


# ---- large files are mapped, and safe whatever they hold


def test_a_file_from_before_segments_raises_with_the_remedy(tmp_path):
    write_tensors(tmp_path / "old", "index", {"made_for": ""}, {})
    with pytest.raises(ModelError, match="rebuild it with `sparserank index`"):
        Index.load(tmp_path / "old")


@pytest.mark.parametrize(
    ("change", "does"),
    [
        ({"docs": np.array([7, -1], np.int32)}, []),  # numbers of no document: passed over
        ({"weights": np.array([1.0, np.nan], np.float32)}, ["b"]),
        ({"weights": np.array([1.0, np.inf], np.float32)}, "a weight is not finite"),
        ({"ids.ends": np.array([0, 1, 99], np.int64)}, "string 1 lies outside of its array"),
        ({"ids.utf8": np.frombuffer(b"\xff\xfe", np.uint8)}, "not UTF-8"),
    ],
)
def test_a_large_file_is_not_read_at_first_and_is_safe_to_search_whatever_it_holds(tmp_path, monkeypatch, change, does):
    index = Index.build(csr_array([[1.0], [2.0]]), Documents.of({"a": "", "b": ""}))
    write_tensors(tmp_path / "bad", "index", *damaged(index, **change))
    monkeypatch.setattr(index_module, "MAX_CHECKED_BYTES", 0)
    loaded = Index.load(tmp_path / "bad")
    if isinstance(does, list):
        assert [hit.id for hit in loaded.search(csr_array([[1.0]]))[0]] == does
    else:
        with pytest.raises(ModelError, match=does):
            loaded.search(csr_array([[1.0]]))
    with pytest.raises(ModelError):
        Index.check(tmp_path / "bad")


def test_a_loaded_index_leaves_its_arrays_in_the_file(tmp_path):
    D, _, documents = world(5)
    Index.build(D, documents).save(tmp_path / "i")
    segment = Index.load(tmp_path / "i").segments[0]
    for array in (segment.docs, segment.weights, segment.ids.utf8, segment.texts.utf8):
        while array.base is not None and not isinstance(array, np.memmap):
            array = array.base
        assert not isinstance(array, np.ndarray) or isinstance(array, np.memmap)


# ---- documents come and go


@given(st.integers(0, 10**6), st.lists(st.tuples(st.booleans(), st.integers(1, 12)), max_size=8))
def test_an_index_that_was_changed_finds_what_one_built_from_scratch_would(seed, changes):
    rng = np.random.default_rng(seed)
    D, Q, documents = world(seed, n_docs=12)
    index, rows = Index.build(D, documents), dict(zip(documents.ids, D.toarray(), strict=True))
    for adds, count in changes:
        if adds:
            ids = [f"{i:x}" for i in rng.choice(40, count, replace=False)]
            more = rng.integers(0, 3, (count, D.shape[1])).astype(np.float32)
            index = index.with_documents(csr_array(more), Documents.of(dict.fromkeys(ids, "")))
            rows |= dict(zip(ids, more, strict=True))
        else:
            gone = [str(i) for i in rng.choice(sorted(rows), min(count, len(rows)), replace=False)] if rows else []
            index = index.without(gone)
            rows = {i: row for i, row in rows.items() if i not in gone}
    whole = csr_array(np.array(list(rows.values())).reshape(len(rows), D.shape[1]))
    for k in (1, 5, 100):
        found = [[(h.score, h.id) for h in row] for row in index.search(Q, k)]
        assert found == brute_force(whole, Q, list(rows), k)
    assert len(index) == len(rows)
    assert index.documents.ids == tuple(sorted(rows, reverse=True))
    assert np.array_equal(
        index.matrix().toarray(), np.array([rows[i] for i in index.documents.ids]).reshape(whole.shape)
    )


def test_an_index_of_several_segments_is_saved_whole(tmp_path):
    D, Q, documents = world(2, n_docs=30)
    index = Index.build(D, documents).without(documents.ids[:3])
    index = index.with_documents(D[:4], Documents.of({"x": "", "y": "one", documents.ids[9]: "new", "z": ""}))
    assert len(index.segments) == 2
    index.save(tmp_path / "i")
    again = Index.load(tmp_path / "i")
    assert again.search(Q, 20) == index.search(Q, 20)
    assert (again.text_of(documents.ids[9]), again.text_of("y")) == ("new", "one")
    assert documents.ids[0] not in again
    skipped = again.run(Q, ["y"] * 6, exclude_self=True)
    assert all("y" not in found for found in skipped.values())


def test_many_additions_leave_few_segments():
    index = Index.build(csr_array(np.ones((2, 1))), Documents.of({"a": "", "b": ""}))
    for i in range(100):
        index = index.with_documents(csr_array([[float(i)]]), Documents.of({f"d{i}": ""}))
    assert len(index) == 102
    assert len(index.segments) <= 7
    assert [hit.id for hit in index.search(csr_array([[1.0]]), 2)[0]] == ["d99", "d98"]


def test_deleting_an_unknown_document_changes_nothing():
    index = Index.build(csr_array([[1.0]]), Documents.of({"a": ""}))
    with pytest.raises(DataError, match="no document 'zz'"):
        index.without(["a", "zz"])
    with pytest.raises(DataError, match="must have 1 columns; got 2"):
        index.with_documents(csr_array([[1.0, 2.0]]), Documents.of({"b": ""}))
    assert index.without(["a"]).search(csr_array([[1.0]])) == [[]]
    assert len(index) == 1
