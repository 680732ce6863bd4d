"""Training matrices in which every query word has a synonym that only documents say, and dense scores of them."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, eye_array

from sparserank.evaluation.ndcg import ndcg
from sparserank.optim.problems import ListProblem
from sparserank.optim.pruning import PairBudget
from sparserank.text_ranker.constraints import PairConstraints
from sparserank.text_ranker.pair_learner import PairLearner
from sparserank.text_ranker.training_data import LexicalRows, TrainingMatrices

WORDS = 12
"""Words 0 … 5 are what queries say; word w + 6 is what relevant documents say instead of w."""
PLANTED = {(w, w + 6) for w in range(6)}


def rows_of(words_of_each):
    """Rows of unit length with these words."""
    out = np.zeros((len(words_of_each), WORDS), np.float32)
    for row, words in zip(out, words_of_each, strict=True):
        row[list(words)] = 1.0
    length = np.linalg.norm(out, axis=1, keepdims=True)
    return csr_array(out / np.where(length > 0, length, 1.0))


def world(seed=0, queries=40, documents=60, lexical=1.0, noise=False):
    """Queries of two words each, documents of three; relevant is a document with both synonyms, or a random one."""
    rng = np.random.default_rng(seed)
    asked = [set(rng.choice(6, 2, replace=False).tolist()) for _ in range(queries)]
    told = [set(rng.choice(WORDS, 5, replace=False).tolist()) for _ in range(documents)]
    Q, D = rows_of(asked), rows_of(told)
    wanted = np.array([[{w + 6 for w in q} <= d for d in told] for q in asked])
    grades = rng.random(wanted.shape) < 0.08 if noise else wanted
    lists = ListProblem(Q, D, csr_array(grades.astype(np.float32)))
    return TrainingMatrices(lists, LexicalRows(np.float32(lexical) * Q, D), np.full(queries, -1))


def learner(pairs=30, **options):
    """A learner with this budget, one thread and no constraints unless they are given."""
    fixed = {name: options.pop(name) for name in ("pinned", "forbidden") if name in options}
    limits = {name: options.pop(name) for name in ("pairs_per_word", "nonnegative") if name in options}
    options = {"n_jobs": 1} | options
    return PairLearner(PairBudget(pairs, **limits), constraints=PairConstraints(**fixed), **options)


def as_rows(scores):
    """Lexical rows whose scores are these."""
    return LexicalRows(csr_array(scores.astype(np.float32)), eye_array(scores.shape[1], dtype=np.float32, format="csr"))


def lexical_scores(data):
    """Dense lexical scores."""
    return (data.lexical.queries @ data.lexical.documents.T).toarray()


def learned_scores(data, W, pair_weight):
    """Dense scores with pairs."""
    return lexical_scores(data) + np.float32(pair_weight) * (data.lists.Q @ W @ data.lists.D.T).toarray()


def dense_ndcg(data, scores, k=10):
    """nDCG@k of every query that has a relevant document, of dense scores of all documents."""
    scores, (n, m) = np.array(scores, np.float32), scores.shape
    query = np.flatnonzero(data.excluded >= 0)
    scores[query, data.excluded[query]] = -np.inf
    grades = np.maximum(data.lists.grades.toarray(), 0.0)
    grades[query, data.excluded[query]] = 0.0
    return ndcg(np.arange(n + 1) * m, scores.ravel(), grades.ravel(), (k,))[0]


def mean_ndcg(data, scores):
    """The mean of nDCG@10."""
    return float(dense_ndcg(data, scores).mean())


def best_pairs(W, n=6):
    """The places of the largest weights."""
    return {divmod(int(place), W.shape[1]) for place in np.argsort(-W.toarray(), axis=None, kind="stable")[:n]}
