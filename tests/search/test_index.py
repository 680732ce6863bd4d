"""The inverted index against brute force: the same documents, the same scores, the same order."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

from sparserank.data.records import Documents
from sparserank.data.tensors import write_tensors
from sparserank.errors import ConfigError, DataError, ModelError
from sparserank.search import Index, explain


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
    assert list(index.run(Q, ["c", "x"], drop_self=True)["c"]) == ["b", "a"]
    assert list(index.run(Q, ["c", "x"], drop_self=True)["x"]) == ["c", "b", "a"]
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
    assert Index.load(tmp_path / "i").docs.tolist() == [0, 1, 0]


def test_the_arrays_of_an_index_cannot_be_written(tmp_path):
    built = Index.build(csr_array([[1.0], [2.0]]), Documents.of({"a": "", "b": ""}))
    built.save(tmp_path / "i")
    for index in (built, Index.load(tmp_path / "i")):
        with pytest.raises(ValueError, match="read-only"):
            index.weights[0] = 5.0
        assert not index.starts.flags.writeable
        assert not index.docs.flags.writeable


def damaged(index, **changes):
    from sparserank.data.tensors import pack_strings

    arrays = {"starts": index.starts, "docs": index.docs, "weights": index.weights}
    for name in ("ids", "titles", "texts"):
        arrays |= pack_strings(name, getattr(index.documents, name))
    return arrays | changes


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"docs": np.array([0, 9], np.int32)}, "outside [0, 2)"),
        ({"docs": np.array([0, -1], np.int32)}, "outside [0, 2)"),
        ({"docs": np.array([0], np.int32)}, "must have 2 entries; got 1"),
        ({"starts": np.array([0, 3], np.int64)}, "does not rise from 0 to 2"),
        ({"starts": np.array([0, 2, 1, 2], np.int64)}, "does not rise"),
        ({"starts": np.array([0, 2**63 - 1, -2, 2], np.int64)}, "does not rise"),
        ({"docs": np.array([1, 0], np.int32)}, "the documents of a word do not rise"),
        ({"docs": np.array([1, 1], np.int32)}, "the documents of a word do not rise"),
        ({"starts": np.array([0, 2], np.int32)}, "must be a row of int64"),
        ({"weights": np.array([1.0, np.nan], np.float32)}, "not finite"),
        ({"ids.utf8": np.frombuffer(b"ab", np.uint8)}, "not in order"),
        ({"ids.utf8": np.frombuffer(b"\xff\xfe", np.uint8)}, "not UTF-8"),
    ],
)
def test_an_inconsistent_index_is_refused_by_name(tmp_path, change, says):
    index = Index.build(csr_array([[1.0], [2.0]]), Documents.of({"a": "", "b": ""}))
    write_tensors(tmp_path / "bad", "index", {"made_for": ""}, damaged(index, **change))
    with pytest.raises(ModelError, match=re.escape(says)):
        Index.load(tmp_path / "bad")


def test_bad_input_is_refused():
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
