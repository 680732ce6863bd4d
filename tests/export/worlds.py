"""Small collections with learned pairs of both signs, and what the engine's answers are held against."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, random_array

import sparserank as sr
from sparserank.data.records import Documents
from sparserank.export import vectors_of
from sparserank.text_ranker.model import TextModel
from sparserank.text_ranker.query_vocabulary import QueryVocabulary

WORDS = [f"{a}{b}" for a in ("al", "be", "ci", "do", "eu") for b in ("kan", "lur", "mot", "nix", "pol", "quar")]


def with_pairs(ranker, queries, seed=0, density=0.2, gain=4.0):
    """A ranker of words alone, given random pairs of both signs."""
    rng = np.random.default_rng(seed)
    words = QueryVocabulary.from_texts(ranker.lexical_.features, queries)
    shape = (len(words.words), len(ranker.lexical_.words))
    W = csr_array(random_array(shape, density=density, rng=rng, data_sampler=lambda size: rng.normal(size=size)))
    ranker.model_ = TextModel(ranker.lexical_, words, W.astype(np.float32), gain)
    ranker.index_ = ranker.index(ranker.index_.documents)
    return ranker


def world(seed=0, documents=60, **pairs):
    """(ranker, queries): texts of random words; one document is empty, one query knows no word."""
    rng = np.random.default_rng(seed)
    texts = {f"d{i:03d}": " ".join(rng.choice(WORDS, rng.integers(1, 9))) for i in range(documents)}
    texts["empty"] = ""
    docs = Documents.of({name: {"title": text.split(" ")[0], "text": text} for name, text in texts.items()})
    queries = {f"q{i}": " ".join(rng.choice(WORDS, rng.integers(1, 4))) for i in range(20)} | {"none": "zzzz"}
    known = [text for name, text in queries.items() if name != "none"]
    return with_pairs(sr.TextRanker("bm25").fit(docs), known, seed, **pairs), queries


def vectors_and_queries(seed=0, **settings):
    ranker, queries = world(seed, **settings)
    return vectors_of(ranker), queries


def exact(vectors, text, k=10):
    """By the definition: every document's inner product, those of 0 left out, by score and then falling id."""
    query, rows, ids = vectors.query(text), vectors.matrix.toarray(), vectors.index.documents.ids
    scores = [sum(weight * float(row[term]) for term, weight in query.items()) for row in rows]
    found = [(np.float32(score), doc) for doc, score in zip(ids, scores, strict=True) if abs(score) > 1e-9]
    return [(doc, float(score)) for score, doc in sorted(found, reverse=True)[:k]]


def same_results(got, expected, tolerance=1e-4):
    """Equal scores in order, and the same documents but where scores are as good as equal."""
    assert len(got) == len(expected)
    np.testing.assert_allclose([s for _, s in got], [s for _, s in expected], rtol=tolerance, atol=tolerance)
    score = dict(expected)
    last = expected[-1][1] if expected else 0.0
    for doc, value in got:
        assert abs(score.get(doc, last) - value) <= tolerance * (1 + abs(value)), doc


def reachable(vectors, text, k=10):
    """`exact` among documents that have a term of positive weight: those a first stage can find."""
    positive = [term for term, weight in vectors.query(text).items() if weight > 0.0]
    shares = vectors.matrix.toarray()[:, positive].any(axis=1)
    there = {doc for doc, found in zip(vectors.index.documents.ids, shares, strict=True) if found}
    return [(doc, score) for doc, score in exact(vectors, text, len(vectors.index)) if doc in there][:k]
