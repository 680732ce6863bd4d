"""The inverted index on cases small enough to run as plain Python: one query, eight at a time, both plans."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from sparserank.data.records import Documents
from sparserank.search import Index
from sparserank.search.encoded_query import EncodedQuery
from sparserank.search.expansion import Expansion


def small(n_docs=12, n_queries=17, terms=4, words=3):
    rng = np.random.default_rng(5)

    def matrix(*shape):
        return csr_array((rng.integers(-2, 3, shape) * (rng.random(shape) < 0.7)).astype(np.float32))

    ids = tuple(f"{i:02d}" for i in range(n_docs))[::-1]
    D, own = matrix(n_docs, 2 * terms), matrix(n_queries, terms)
    own.resize((n_queries, 2 * terms))
    queries = EncodedQuery(own, matrix(n_queries, words), matrix(words, terms), 2.0, terms, "W")
    index = Index.build(D, Documents(ids, ids, ids))
    return Index(index.segments, "", Expansion.build(index.segments, queries)), queries, D


def test_the_best_of_every_query_are_those_of_the_full_matrix():
    index, queries, D = small()
    full = (queries.expand() @ D.astype(np.float64).T).toarray()
    for plan in ("query", "documents"):
        places, scores, counts = index.top(queries, 5, n_jobs=2, plan=plan)
        for i, row in enumerate(full):
            wanted = [d for d in np.lexsort((np.arange(len(row)), -row)) if row[d] != 0.0][:5]
            assert places[i, : counts[i]].tolist() == wanted
            assert scores[i, : counts[i]].tolist() == row[wanted].tolist()


def test_one_query_over_few_postings_walks_only_those():
    D = csr_array((np.ones(2, np.float32), (np.array([3, 7]), np.array([0, 0]))), shape=(40, 2))
    ids = tuple(f"{i:02d}" for i in range(40))[::-1]
    index = Index.build(D, Documents(ids, ids, ids)).without(["36"])
    places, _, counts = index.top(csr_array([[1.0, 1.0]]), 3)
    assert places[0, : counts[0]].tolist() == [7]
    found = index.run(csr_array([[1.0, 1.0]]), ["32"], exclude_self=True)
    assert found == {"32": {}}


def test_the_weights_of_a_document_are_those_of_its_row():
    index, _, D = small()
    terms = np.array([3, 0, 7, 3])
    for row, doc_id in zip(D.toarray(), index.documents.ids, strict=True):
        assert index.weights_of(doc_id, terms).tolist() == row[terms].tolist()
