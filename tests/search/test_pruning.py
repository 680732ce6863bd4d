"""Pruned search gives the bits of the exhaustive search, whatever the index and the queries hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sparserank._kernels import block_max
from sparserank.data.formats.tensors import write_tensors
from sparserank.data.records import Documents
from sparserank.errors import ModelError
from sparserank.search import Index, block_maxima, top_k
from sparserank.search import index as index_module
from sparserank.search.block_maxima import BlockMaxima
from sparserank.search.encoded_query import EncodedQuery
from sparserank.search.index_file import arrays_digest, index_state

N_TERMS, N_WORDS = 24, 9


@pytest.fixture(autouse=True)
def always_prune(monkeypatch):
    """Small segments have blocks, and every query is pruned."""
    monkeypatch.setattr(block_maxima, "MIN_DOCUMENTS", 1)
    monkeypatch.setattr(top_k, "MIN_PRUNED_POSTINGS", 0)
    monkeypatch.setattr(top_k, "MIN_PRUNED_POSTINGS_PER_TERM", 0)


def world(seed, n_docs=1500, n_queries=12, signed=False, coarse=False, scale=1.0):
    """Documents in random order and queries expanded through W; terms are short, lists of blocks, or dense."""
    rng = np.random.default_rng(seed)

    def values(size, negative):
        drawn = rng.integers(1, 4, size) if coarse else rng.exponential(size=size) + 0.01
        return (scale * drawn * (rng.choice([-1, 1], size) if negative else 1)).astype(np.float32)

    def sparse(shape, density, negative):
        return csr_array(values(shape, negative) * (rng.random(shape) < density).astype(np.float32))

    density = rng.choice([0.002, 0.01, 0.05, 0.5], 2 * N_TERMS)
    full = values((n_docs, 2 * N_TERMS), signed) * (rng.random((n_docs, 2 * N_TERMS)) < density)
    own = sparse((n_queries, N_TERMS), 0.15, False)
    own.resize((n_queries, 2 * N_TERMS))
    words, W = sparse((n_queries, N_WORDS), 0.3, False), sparse((N_WORDS, N_TERMS), 0.4, True)
    ids = tuple(f"{i:x}" for i in rng.permutation(n_docs))
    index = Index.build(csr_array(full.astype(np.float32)), Documents(ids, ids, ids))
    return index, EncodedQuery(own, words, W, 0.7, N_TERMS, "W")


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def assert_same_bits(index, queries, k, skip=None):
    for encoded in (queries, EncodedQuery(queries.terms)):
        wanted = index.top(encoded, k, skip, plan="exhaustive")
        assert same(index.top(encoded, k, skip, plan="query"), wanted)
        assert same(index.top(encoded, k, skip, n_jobs=3), wanted)


@given(st.integers(0, 10**6), st.sampled_from([1, 2, 5, 20, 60, 1000]), st.booleans(), st.booleans())
def test_pruned_search_gives_the_bits_of_the_exhaustive_search(seed, k, signed, coarse):
    """Small integers make many ties; k may exceed the number of matches."""
    assert_same_bits(*world(seed, signed=signed, coarse=coarse), k)


@given(st.integers(0, 10**6), st.sampled_from([1, 5, 40]), st.booleans())
def test_deleted_and_skipped_documents_and_several_segments(seed, k, coarse):
    rng = np.random.default_rng(seed)
    index, queries = world(seed, coarse=coarse)
    ids = index.documents.ids
    rows = index.matrix()[:40]
    index = index.without(rng.choice(ids, 60, replace=False).tolist())
    index = index.with_documents(rows, Documents.of({f"new {i}" if i % 3 else ids[i]: "" for i in range(40)}))
    assert len(index.segments) == 2
    assert_same_bits(index, queries, k, [None if i % 4 == 0 else str(rng.choice(ids)) for i in range(len(queries))])


@given(
    st.integers(0, 10**6), st.sampled_from([0.001, 0.01, 0.1, 0.5, 0.99]), st.sampled_from([1, 5, 40]), st.booleans()
)
def test_every_plan_gives_the_exhaustive_ranking_of_the_documents_that_a_filter_selects(seed, share, k, signed):
    rng = np.random.default_rng(seed)
    index, queries = world(seed, signed=signed, coarse=seed % 2 == 0)
    ids = index.documents.ids
    selected = {doc_id for doc_id, chance in zip(ids, rng.random(len(ids)), strict=True) if chance < share} | {ids[0]}
    metadata = tuple({"kind": "a" if doc_id in selected else "b"} for doc_id in ids)
    index = Index.build(index.matrix(), replace(index.documents, metadata=metadata))
    skip = [None if i % 4 == 0 else str(rng.choice(ids)) for i in range(len(queries))]
    everything = index.top(queries, len(ids), skip, plan="exhaustive")
    for plan in ("auto", "query", "exhaustive"):
        found = index.filtered("kind:a").top(queries, k, skip, plan=plan)
        for query, n_all in enumerate(everything.counts):
            every = zip(everything.docs[query, :n_all], everything.scores[query], strict=False)
            wanted = [(doc, score) for doc, score in every if index.id_at(doc) in selected][:k]
            n = int(found.counts[query])
            assert list(zip(found.docs[query, :n], found.scores[query, :n], strict=True)) == wanted


@pytest.mark.parametrize("scale", [1e-22, 1e-18, 1e-10, 1e10, 1e12])
def test_weights_at_the_limits_of_float32(scale):
    assert_same_bits(*world(7, scale=np.float32(scale)), 5)


def test_most_queries_of_a_larger_index_are_pruned(monkeypatch):
    """The threshold excludes blocks: without their maxima the results would be wrong."""
    index, queries = world(3, n_docs=6000)
    (segment,) = index.segments
    wrong = replace(segment.blocks, peaks=segment.blocks.peaks * np.float32(1e-3))
    broken = replace(index, segments=(replace(segment, blocks=wrong),))
    assert not same(broken.top(queries, 5, plan="query"), index.top(queries, 5, plan="query"))
    assert same(broken.top(queries, 5, plan="exhaustive"), index.top(queries, 5, plan="query"))


@given(st.integers(0, 10**6), st.booleans())
def test_levels_bound_the_weights_and_masks_are_the_documents(seed, signed):
    index, _ = world(seed, signed=signed)
    (segment,) = index.segments
    blocks, full = segment.blocks, segment.matrix().toarray()
    for term in range(segment.n_terms):
        docs = set(segment.docs[segment.starts[term] : segment.starts[term + 1]].tolist())
        peak = np.abs(full[:, term]).max()
        assert abs(blocks.peaks[term]) == peak
        assert (blocks.peaks[term] < 0) == (full[:, term] < 0).any()
        begin, end, row = blocks.starts[term], blocks.starts[term + 1], blocks.rows[term]
        if row >= 0:
            listed = [(b, blocks.levels[row, b], blocks.dense_masks[row, b]) for b in range(-(-len(segment) // 8))]
        elif end > begin:
            listed = [
                (e >> 8, e & 255, m) for e, m in zip(blocks.entries[begin:end], blocks.masks[begin:end], strict=True)
            ]
        else:
            assert len(docs) < block_max.MIN_POSTINGS
            continue
        assert {8 * b + i for b, _, mask in listed for i in range(8) if mask >> i & 1} == docs
        for block, level, _ in listed:
            assert np.float64(peak) * level >= 254.999 * np.abs(full[8 * block : 8 * block + 8, term]).max(initial=0.0)


def test_a_saved_index_keeps_its_blocks_and_one_without_is_searched_exhaustively(tmp_path):
    index, queries = world(2)
    index.save(tmp_path / "new")
    loaded = Index.load(tmp_path / "new")
    for name, array in index.segments[0].blocks.arrays("").items():
        assert np.array_equal(array, loaded.segments[0].blocks.arrays("")[name])
    assert same(loaded.top(queries, 5), index.top(queries, 5))
    old = replace(index, segments=tuple(replace(segment, blocks=None) for segment in index.segments))
    old.save(tmp_path / "old")
    assert Index.load(tmp_path / "old").segments[0].blocks is None
    assert same(Index.load(tmp_path / "old").top(queries, 5), index.top(queries, 5))


def test_the_size_decides_whether_a_segment_has_blocks(monkeypatch):
    one = np.array([0, 1]), np.zeros(1, np.int32), np.ones(1, np.float32)
    monkeypatch.setattr(block_maxima, "MIN_DOCUMENTS", 2)
    assert BlockMaxima.build(*one, 1) is None
    monkeypatch.setattr(block_maxima, "MAX_DOCUMENTS", 3)
    assert BlockMaxima.build(*one, 4) is None


@pytest.mark.parametrize("name", ["masks", "rows", "levels", "groups", "peaks"])
def test_loading_blocks_of_another_length_raises(tmp_path, name):
    index, _ = world(2)
    settings, arrays = index_state(index.segments, "", None)
    arrays[f"0.blocks.{name}"] = arrays[f"0.blocks.{name}"][:-1]
    write_tensors(tmp_path / "bad", "index", settings, arrays)
    with pytest.raises(ModelError, match=r"0\.blocks\."):
        Index.load(tmp_path / "bad")


@given(st.integers(0, 10**6), st.sampled_from(["entries", "masks", "levels", "dense_masks", "groups", "peaks"]))
def test_searching_damaged_blocks_is_safe(tmp_path_factory, seed, name):
    path = tmp_path_factory.mktemp("damaged") / "bad"
    index, queries = world(seed % 100)
    settings, arrays = index_state(index.segments, "", None)
    rng, old = np.random.default_rng(seed), arrays[f"0.blocks.{name}"]
    arrays[f"0.blocks.{name}"] = np.frombuffer(rng.bytes(old.nbytes), old.dtype)
    write_tensors(path, "index", settings | {"digest": arrays_digest(arrays)}, arrays)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_module, "MAX_CHECKED_BYTES", 0)
        top = Index.load(path).top(queries, 5)
    assert np.isfinite(top.scores).all()
    assert top.docs.max() < len(index)
