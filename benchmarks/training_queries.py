"""Held-out training queries, and nDCG@10 on them for one change of the text ranker at a time.

A quarter of the judged training queries is held out, near-duplicates together, and W is learned from the others. The
pair weight, the query ridge, and the rate and epochs of a loss are tuned on one half of the quarter and measured on the
other half, and vice versa. No other split is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sparserank as sr
from sparserank._kernels.weights import row_lengths, scale_rows
from sparserank.optim.closed_form import ClosedForm, Side, compute_middle, factorize, solve_factorized
from sparserank.optim.penalties import Ridge
from sparserank.text_ranker.candidates import CandidateSearch
from sparserank.text_ranker.held_out import HeldOut, hold_out
from sparserank.text_ranker.lexical import LexicalModel
from sparserank.text_ranker.model_selection import MAX_EPOCHS, PAIR_WEIGHTS, RIDGES
from sparserank.text_ranker.pair_learner import RATES, PairLearner
from sparserank.text_ranker.query_vocabulary import NEIGHBOR_WEIGHT, QueryVocabulary
from sparserank.text_ranker.training_data import TrainingData, TrainingMatrices

Scores = NDArray[np.float32]
PerQuery = NDArray[np.float64]
QUERY_NORMALIZATION, RIDGE = 0.25, Ridge(1.0, 1.0)
"""Query normalization and penalty where they are not what is varied."""
NO_LIMIT = 1 << 30
"""Gram matrices of any size."""


@dataclass(frozen=True)
class Weights:
    """How rows are weighted before they have unit length; the defaults are the ranker's.

    query_idf, document_idf : the power of idf on each side.
    neighbours : the weight of a pair of neighbouring query words. own_words : words that only queries have count.
    """

    query_idf: float = 0.5
    document_idf: float = 0.5
    neighbours: float = NEIGHBOR_WEIGHT
    own_words: bool = True


@dataclass(frozen=True, eq=False)
class Split:
    """Queries to learn from, queries to measure on, and the columns' idf and kind."""

    train: TrainingMatrices
    measured: HeldOut
    words: QueryVocabulary

    @cached_property
    def form(self) -> ClosedForm:
        return ClosedForm(self.train.lists.D, NO_LIMIT)

    @cached_property
    def halves(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Of the queries measured on that have a relevant document; near-duplicates stay together."""
        _, number = np.unique(self.measured.groups, return_inverse=True)
        first = np.random.default_rng(0).permutation(number.max() + 1)[number] % 2 == 0
        return first, ~first

    @property
    def lexical(self) -> PerQuery:
        """Of the lexical score alone."""
        return self.measured.ndcg(self.measured.candidates.base)[0]

    def weighted(self, weights: Weights) -> Split:
        """The same with other weights: rows have unit length, so columns are scaled and lengths mended."""
        features, words = self.words.documents, self.words.words
        known = len(features.words_)
        idf = np.full(len(words), np.log1p((features.documents_ + 0.5) / 0.5))
        idf[:known] = features.idf_
        neighbours = np.fromiter((" " in word for word in words), np.bool_, len(words))
        query = idf ** (weights.query_idf - 0.5) * np.where(neighbours, weights.neighbours / NEIGHBOR_WEIGHT, 1.0)
        if not weights.own_words:
            query[known:] *= neighbours[known:]
        document = idf[:known] ** (weights.document_idf - 0.5)
        D = _scaled(self.train.lists.D, document)
        train, queries = (_with(part, _scaled(part.lists.Q, query), D) for part in (self.train, self.measured.queries))
        return Split(train, replace(self.measured, queries=queries), self.words)


def training_data(collection: Any) -> tuple[LexicalModel, TrainingData]:
    """A collection's training queries, those of the first split where none is called train."""
    qrels = collection.qrels.get("train") or next(iter(collection.qrels.values()))
    lexical, documents = LexicalModel(), collection.documents
    data = TrainingData.validate(documents, collection.queries, qrels, exclude_self=collection.exclude_self)
    return lexical, replace(data, lexical_rows=lexical.fit(documents))


def quarters(lexical: LexicalModel, data: TrainingData, turns: int = 1) -> list[tuple[Any, Any]]:
    """Which queries are set aside, and which are not; of few queries, each quarter in turn."""
    vocabulary = QueryVocabulary.from_texts(lexical.features, data.texts)
    groups = data.encode(lexical, vocabulary).grouped(vocabulary).group_numbers
    found = hold_out(groups, 0)
    return found if len(found) > 1 else [hold_out(groups, seed)[0] for seed in range(turns)]


def splits(name: str, turns: int = 1) -> Iterator[Split]:
    """Of a collection's training queries."""
    lexical, data = training_data(sr.data.load(name))
    for held, rest in quarters(lexical, data, turns):
        vocabulary = QueryVocabulary.from_texts(lexical.features, [data.texts[i] for i in rest])
        matrices = data.encode(lexical, vocabulary)
        yield Split(matrices[rest], HeldOut.of(matrices[held], None), vocabulary)


def dense(
    split: Split,
    query_normalization: float = QUERY_NORMALIZATION,
    query_ridge: Sequence[float] = RIDGES,
    document_ridge: float = RIDGE.document,
) -> PerQuery:
    """Of the closed form's W before pruning; the penalty on the query side is chosen from `query_ridge`."""
    lists = replace(split.train.lists, query_normalization=query_normalization)
    left, right = Side.of(lists.Q, lists.weight, NO_LIMIT), split.form.documents
    gram, across = left.compute_gram(), left.project(split.measured.queries.lists.Q)
    middle, factor = compute_middle(left, right, lists), right.factorize(document_ridge)
    tried = []
    for a in query_ridge:
        solved = solve_factorized(factorize(gram, left.ridge_diagonal(a)), np.ascontiguousarray(across.T))
        M = solve_factorized(factor, np.ascontiguousarray((solved.T @ middle).T)).T
        tried += by_pair_weight(split, split.measured.take(M @ right.project(lists.D).T))
    return chosen_by_halves(split, tried)


def sparse(split: Split, W: Any) -> PerQuery:
    """Of a W."""
    return chosen_by_halves(split, by_pair_weight(split, split.measured.pair_scores(W)))


def relearned(split: Split, W: Any, loss: str) -> PerQuery:
    """Of a W from which another loss goes on, at the weight that is best for it; rate and epochs are chosen."""
    learner, train = PairLearner(loss=loss), split.train
    lists = learner.candidate_lists(train, CandidateSearch.of(train))
    scores = split.measured.pair_scores(W)
    start, out = by_pair_weight(split, scores), np.zeros(len(split.lexical))
    known: dict[float, list[PerQuery]] = {}
    for chosen, measured in (split.halves, split.halves[::-1]):
        gain = _pair_weights(split, scores)[_best(start, chosen)]
        if gain not in known:
            again = (one for r in RATES for one in learner.refit_by_loss(W, train, lists, gain, r, MAX_EPOCHS))
            known[gain] = [_ndcg(split, split.measured.pair_scores(one), gain) for one in again]
        out[measured] = known[gain][_best(known[gain], chosen)][measured]
    return out


def by_pair_weight(split: Split, scores: Scores) -> list[PerQuery]:
    """For every weight of the scores beside the lexical ones."""
    return [_ndcg(split, scores, gain) for gain in _pair_weights(split, scores)]


def chosen_by_halves(split: Split, tried: Sequence[PerQuery]) -> PerQuery:
    """Each half under the setting that is best on the other."""
    out = np.zeros(len(tried[0]))
    for chosen, measured in (split.halves, split.halves[::-1]):
        out[measured] = tried[_best(tried, chosen)][measured]
    return out


def _best(tried: Sequence[PerQuery], queries: NDArray[np.bool_]) -> int:
    return int(np.argmax([one[queries].mean() for one in tried]))


def _pair_weights(split: Split, scores: Scores) -> list[float]:
    """Weights of the scores, `PAIR_WEIGHTS` being in standard deviations of both."""
    base = split.measured.candidates.base
    unit = float(np.std(base, dtype=np.float64)) / (float(np.std(scores, dtype=np.float64)) or 1.0)
    return [gain * unit for gain in PAIR_WEIGHTS]


def _ndcg(split: Split, scores: Scores, gain: float) -> PerQuery:
    return split.measured.ndcg(split.measured.candidates.base + np.float32(gain) * scores)[0]


def _scaled(X: Any, scale: NDArray[np.float64]) -> Any:
    X = X.copy()
    X.data *= scale[X.indices].astype(np.float32)
    X.eliminate_zeros()
    scale_rows(X.indptr, X.data, row_lengths(X.indptr, X.data))
    return X


def _with(data: TrainingMatrices, Q: Any, D: Any) -> TrainingMatrices:
    lists = replace(data.lists, Q=Q, D=D)
    return replace(data, lists=lists)
