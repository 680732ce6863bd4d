"""Two plans, one result: queries expanded through W, or documents."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

import sparserank as sr
from sparserank.data.formats.tensors import write_tensors
from sparserank.data.records import Documents
from sparserank.errors import ConfigError, DataError, ModelError
from sparserank.search import Index
from sparserank.search import index as index_module
from sparserank.search.encoded_query import EncodedQuery
from sparserank.search.expansion import Expansion
from sparserank.search.index_file import arrays_digest, index_state

from ..motors import DOCS, QRELS, QUERIES, learned_anyway

WORDS, TERMS = 9, 14


def sparse(rng, shape, coarse, density=0.35):
    def values(size):
        drawn = rng.integers(1, 4, size) if coarse else rng.random(size) + 0.01
        return (drawn * rng.choice([-1, 1], size)).astype(np.float32)

    return csr_array(random_array(shape, density=density, rng=rng, data_sampler=values))


def world(seed, n_docs=60, n_queries=20, coarse=False, shift=TERMS, pair_weight=0.7):
    """Documents of `shift` lexical columns and TERMS others, and queries that are expanded into the latter."""
    rng = np.random.default_rng(seed)
    D = sparse(rng, (n_docs, shift + TERMS), coarse)
    own = sparse(rng, (n_queries, shift), coarse)
    own.resize((n_queries, shift + TERMS))
    words, W = sparse(rng, (n_queries, WORDS), coarse), sparse(rng, (WORDS, TERMS), coarse)
    queries = EncodedQuery(own, words, W, 1.0 if coarse else pair_weight, shift, pairs_digest="these")
    ids = tuple(f"{i:x}" for i in rng.permutation(n_docs))
    return Index.build(D, Documents(ids, ids, ids)), queries, D, ids


def expanded(index, queries, **options):
    made = Expansion.build(index.segments, queries, **options)
    return Index(index.segments, index.made_for, made)


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@given(st.integers(0, 10**6), st.sampled_from([1, 3, 10, 100]), st.booleans(), st.sampled_from([0, TERMS]))
def test_both_plans_give_the_same_bits_and_those_of_brute_force(seed, k, coarse, shift):
    index, queries, D, ids = world(seed, coarse=coarse, shift=shift)
    index = expanded(index, queries)
    by_query, by_documents, auto = (index.top(queries, k, plan=plan) for plan in ("query", "documents", "auto"))
    assert same(by_query, by_documents)
    assert same(by_query, auto)
    full = np.asarray((queries.expand() @ D.astype(np.float64).T).todense())
    for row, (numbers, scores, count) in zip(full, zip(*by_query, strict=True), strict=True):
        wanted = sorted(((np.float32(s), i) for s, i in zip(row, ids, strict=True) if s), reverse=True)[:k]
        assert count == len(wanted)
        assert np.allclose(scores[:count], [s for s, _ in wanted], rtol=1e-6, atol=1e-6)
        if coarse:
            assert [index.id_at(d) for d in numbers[:count]] == [i for _, i in wanted]


@given(st.integers(0, 10**6), st.sampled_from([1, 3, 10, 100]), st.booleans(), st.sampled_from([0.02, 0.3, 0.9]))
def test_both_plans_give_the_same_bits_under_a_filter(seed, k, coarse, share):
    index, queries, D, ids = world(seed, coarse=coarse)
    metadata = tuple({"n": int(chance < share)} for chance in np.random.default_rng(seed).random(len(ids)))
    index = expanded(Index.build(D, Documents(ids, ids, ids, ({"n": 1}, *metadata[1:]))), queries)
    filtered = index.filtered("n:1")
    assert filtered.expansion is not None
    every = index.top(queries, len(ids), plan="query")
    selected = {filtered.number(doc_id) for doc_id in filtered.documents.ids}
    for plan in ("query", "documents", "auto"):
        found = filtered.top(queries, k, plan=plan)
        for query, count in enumerate(every.counts):
            ranking = zip(every.docs[query, :count].tolist(), every.scores[query, :count].tolist(), strict=True)
            wanted = [(doc, score) for doc, score in ranking if doc in selected][:k]
            n = found.counts[query]
            assert list(zip(found.docs[query, :n].tolist(), found.scores[query, :n].tolist(), strict=True)) == wanted


def test_eight_queries_at_a_time_give_the_bits_of_one_at_a_time():
    index, queries, _, _ = world(3, n_docs=400, n_queries=64)
    together = index.top(queries, 10)
    for i in range(64):
        one = EncodedQuery(queries.terms[[i]], queries.words[[i]], queries.W, queries.pair_weight, queries.pair_offset)
        assert all(np.array_equal(a[i], b[0]) for a, b in zip(together, index.top(one, 10), strict=True))
    for n_jobs in (1, 2, 3):
        assert same(together, index.top(queries, 10, n_jobs=n_jobs))
        assert same(together, expanded(index, queries).top(queries, 10, n_jobs=n_jobs, plan="documents"))


@pytest.mark.parametrize("lexical", ["bm25", "cosine"])
@pytest.mark.parametrize("learned", [True, False])
def test_one_text_is_encoded_like_a_row_of_a_batch(lexical, learned):
    """One text has no matrices until they are used; a long text and an empty one take other ways."""
    params = {"lexical": lexical, "random_state": 0}
    ranker = learned_anyway(DOCS, QUERIES, QRELS, **params) if learned else sr.TextRanker(**params).fit(DOCS)
    texts = [*QUERIES.values(), "", "unheard", "car motor car " * 200]
    batch = ranker.model_.encode_queries(texts)
    assert (batch.W is not None) == learned
    for i, text in enumerate(texts):
        for one, wanted in (
            (ranker.model_.encode_queries([text]), batch.take([i])),
            (ranker.model_.encode_lexical_query(text), EncodedQuery(batch.terms[[i]])),
        ):
            assert all(np.array_equal(a, b) for a, b in zip(one.kernel_arguments, wanted.kernel_arguments, strict=True))
            assert (one.expand() != wanted.expand()).nnz == 0
            assert one.pairs_digest == wanted.pairs_digest


def test_scores_that_rounding_cannot_tell_apart_are_told_apart_exactly():
    """All documents are nearly the same: the lists of the second plan round them to the same numbers."""
    n = 200
    D = csr_array((1.0 + np.arange(n)[:, None] * 2.0**-23 * np.array([[1.0, 3.0]])).astype(np.float32))
    ids = tuple(f"{i:03d}" for i in range(n))
    W = csr_array(np.array([[1.0, -0.99999]], np.float32))
    queries = EncodedQuery(
        csr_array((1, 2), dtype=np.float32), csr_array(np.array([[1.0]], np.float32)), W, 1.0, 0, "these"
    )
    index = expanded(Index.build(D, Documents(ids, ids, ids)), queries)
    assert same(index.top(queries, 5, plan="query"), index.top(queries, 5, plan="documents"))


def test_a_score_that_rounding_takes_for_nothing_is_found_by_both_plans():
    """Lists of the second plan cancel to 0; the exact sum is 2⁻⁴⁶."""
    D = csr_array(np.array([[1.0 + 2.0**-23, 1.0], [1.0, 0.0], [0.0, 1.0]], np.float32))
    W = csr_array(np.diag([1.0 + 2.0**-23, -(1.0 + 2.0**-22)]).astype(np.float32))
    words = csr_array(np.array([[1.0, 1.0]], np.float32))
    queries = EncodedQuery(csr_array((1, 2), dtype=np.float32), words, W, 1.0, 0, "these")
    index = expanded(Index.build(D, Documents.of({"a": "", "b": "", "c": ""})), queries)
    for k in (1, 2, 3):
        assert same(index.top(queries, k, plan="query"), index.top(queries, k, plan="documents"))
    numbers, scores, counts = index.top(queries, 3, plan="documents")
    assert ([index.id_at(i) for i in numbers[0]], counts.tolist()) == (["b", "a", "c"], [3])
    assert scores[0, 1] == 2.0**-46


def test_a_score_too_small_for_32_bits_is_none_by_either_plan():
    D = csr_array(np.array([[1e-30], [1.0]], np.float32))
    W = csr_array(np.array([[1e-30]], np.float32))
    queries = EncodedQuery(
        csr_array((1, 1), dtype=np.float32), csr_array(np.array([[1.0]], np.float32)), W, 1.0, 0, "these"
    )
    index = expanded(Index.build(D, Documents.of({"a": "", "b": ""})), queries)
    for plan in ("query", "documents"):
        numbers, _, counts = index.top(queries, 2, plan=plan)
        assert ([index.id_at(i) for i in numbers[0, : counts[0]]], counts.tolist()) == (["b"], [1])


@pytest.mark.parametrize(
    ("array", "value"),
    [
        ("rows.terms", -(2**31)),
        ("rows.terms", 2**31 - 1),
        ("docs", -1),
        ("docs", 2**31 - 1),
        ("weights", np.nan),
        ("rows.weights", np.inf),
    ],
)
def test_loading_an_invalid_expansion_raises_and_searching_it_is_safe(tmp_path, monkeypatch, array, value):
    index, queries, _, _ = world(6)
    settings, arrays = index_state(expanded(index, queries).segments, "", expanded(index, queries).expansion)
    arrays[f"x0.{array}"] = np.full_like(arrays[f"x0.{array}"], value)
    write_tensors(tmp_path / "bad", "index", settings | {"digest": arrays_digest(arrays)}, arrays)
    for load in (Index.load, Index.check):
        with pytest.raises(ModelError, match=f"x0.{array}"):
            load(tmp_path / "bad")
    monkeypatch.setattr(index_module, "MAX_CHECKED_BYTES", 0)
    unchecked = Index.load(tmp_path / "bad")
    try:
        _, scores, _ = unchecked.top(queries, 5, plan="documents")
        assert np.isfinite(scores).all()
    except ModelError as error:
        assert "damaged" in str(error)


def test_auto_takes_the_plan_that_reads_fewer_postings():
    """Word 0 looks for every term, word 1 for one that a single document has."""
    weights = np.ones((51, 6), np.float32)
    weights[:, 5] = 0.0
    weights[7, 5] = 1.0
    D = csr_array(weights)
    ids = tuple(f"{i:02d}" for i in range(51))
    W = csr_array(np.array([[1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 1]], np.float32))
    words = csr_array(np.array([[1, 0], [0, 1]], np.float32))
    queries = EncodedQuery(csr_array((2, 6), dtype=np.float32), words, W, 1.0, 0, "these")
    index = expanded(Index.build(D, Documents(ids, ids, ids)), queries)
    assert index.expansion.parts[0].is_cheaper(index.segments[0], queries).tolist() == [True, False]
    assert same(index.top(queries, 3), index.top(queries, 3, plan="query"))


def test_an_expansion_is_not_used_for_other_pairs_nor_made_beyond_its_limit():
    index, queries, _, _ = world(1)
    assert Expansion.build(index.segments, queries, max_bytes=1000) is None
    assert Expansion.build(index.segments, EncodedQuery(queries.terms)) is None
    other = EncodedQuery(
        queries.terms,
        queries.words,
        queries.W * np.float32(2.0),
        queries.pair_weight,
        queries.pair_offset,
        pairs_digest="others",
    )
    with_it = expanded(index, queries)
    assert same(with_it.top(other, 10, plan="documents"), index.top(other, 10))
    assert same(with_it.top(EncodedQuery(queries.terms), 10), index.top(EncodedQuery(queries.terms), 10))


def test_an_expansion_outlives_its_file_and_changes_of_the_documents(tmp_path):
    index, queries, D, ids = world(4)
    index = expanded(index, queries).without(ids[:5])
    index = index.with_documents(D[:3], Documents.of({"x": "", "y": "", "z": ""}))
    index.save(tmp_path / "i")
    again = Index.load(tmp_path / "i")
    assert again.expansion.parts[0] is not None
    assert again.expansion.parts[1] is None
    assert same(again.top(queries, 20, plan="documents"), index.top(queries, 20, plan="query"))


def test_loading_a_damaged_expansion_raises(tmp_path):
    index, queries, _, _ = world(4)
    settings, arrays = index_state(index.segments, "", expanded(index, queries).expansion)
    for change, message in (
        ({"x0.docs": arrays["x0.docs"][:-1]}, "differ in length"),
        ({"x0.rows.starts": arrays["x0.rows.starts"][:-1]}, "must have 61 entries"),
        ({"x0.rows.weights": arrays["x0.rows.weights"] * np.float32(2)}, "does not match its digest"),
    ):
        write_tensors(tmp_path / "bad", "index", settings, arrays | change)
        with pytest.raises(ModelError, match=message):
            Index.load(tmp_path / "bad")
    write_tensors(tmp_path / "bad", "index", settings | {"expansion": {"pairs": 3, "parts": [True]}}, arrays)
    with pytest.raises(ModelError, match="does not match the segments"):
        Index.load(tmp_path / "bad")


def test_queries_of_another_shape_raise():
    index, queries, _, _ = world(0)
    with pytest.raises(ConfigError, match="'plan'"):
        index.top(queries, 3, plan="best")
    with pytest.raises(DataError, match="words must have shape"):
        EncodedQuery(queries.terms, queries.words[:3], queries.W)
    with pytest.raises(DataError, match="from column 20"):
        EncodedQuery(queries.terms, queries.words, queries.W, 1.0, 20)
    with pytest.raises(DataError, match="not finite"):
        EncodedQuery(queries.terms, queries.words, queries.W, np.inf)


def test_a_ranker_finds_the_same_before_and_after_it_expands_its_documents(tmp_path):
    ranker = learned_anyway(DOCS, QUERIES, QRELS)
    texts = ["motor boat", "sweet vehicle", "cake", "nothing"]
    before = ranker.search_many(texts)
    assert ranker.expand()
    assert ranker.search_many(texts) == before
    ranker.save(tmp_path / "m")
    assert sr.load(tmp_path / "m").search_many(texts) == before
    assert ranker.forbid("motor", "car").search_many(texts) != before
    assert not sr.TextRanker("bm25").fit(DOCS).expand()
