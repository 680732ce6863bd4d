"""Model selection: tune the hyperparameters of word pairs on held-out queries, and test whether pairs help at all.

1. A quarter of the judged queries is held out; of few queries, each quarter in turn.
2. `query_normalization` and the ridge are those with the best nDCG@10 of the closed form's W before pruning.
3. Pairs must improve the held-out queries significantly, else the model keeps the lexical score alone.
4. The weight of the pair score and the strength of the loss are those with the best nDCG@10 after pruning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..evaluation.significance import max_t_p_value
from ..optim.closed_form import ClosedForm, compute_gram, factorize, solve_factorized
from ..optim.penalties import Ridge
from ..optim.problems import Matrix
from . import training_data
from .pair_learner import STRENGTHS, PairLearner, empty_weights, has_closed_form
from .training_data import TrainingMatrices

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Callback = Callable[[str], None]
Folds = list[tuple[TrainingMatrices, TrainingMatrices]]
"""(training queries, held-out queries) of each fold."""

RIDGES = (0.3, 1.0, 3.0)
QUERY_NORMALIZATIONS = (0.25, 0.5)
PAIR_WEIGHTS = (0.1, 0.14, 0.2, 0.28, 0.4, 0.56, 0.8, 1.1, 1.6, 2.2, 3.1)
"""The values to try; pair weights are in standard deviations of both scores."""
HELD_OUT_PARTS = 4
"""One query of this many is held out."""
MAX_ROTATED_QUERIES = 500
"""Up to this number of queries, each part is held out in turn."""
SIGNIFICANCE_LEVEL = 0.01
"""Pairs are kept if the p-value of their improvement on held-out queries is at most this. It is the expected share of
collections with nothing to learn that keep pairs (`make bench ARGS=never_worse` counts them)."""
TEST_DEPTH = 100
"""The test uses nDCG at this rank. It varies less between queries than nDCG@10, so fewer queries show whether pairs
help (`python -m benchmarks.acceptance`)."""
PRUNED_LEVEL = 0.2
"""After that test, pruned pairs are tested again on nDCG@10, at this level: the smallest that keeps as many real
improvements as a larger one (`python -m benchmarks.acceptance`)."""


@dataclass(frozen=True)
class TuningResult:
    """The chosen hyperparameters, and nDCG@10 on held-out queries without and with pairs.

    pair_weight : 0 if pairs do not help.
    strength : of a loss other than the squared one; None if the squared loss is better.
    tried : every loss strength and its nDCG@10.
    """

    query_normalization: float
    ridge: Ridge
    pair_weight: float
    lexical_ndcg: float
    ndcg: float
    strength: float | None = None
    tried: tuple[tuple[str, float], ...] = ()
    p_value: float = 1.0


class RidgeChoice(NamedTuple):
    """The chosen regularization, and the p-value of W before pruning; None if nothing was tuned."""

    closed_form: ClosedForm
    query_normalization: float
    ridge: Ridge
    p_value: float | None = None


def learn_pairs(
    learner: PairLearner, data: TrainingMatrices, callback: Callback = lambda message: None
) -> tuple[csr_array, TuningResult]:
    """Tune the hyperparameters, test the pairs, and learn W from all queries; W is empty if pairs do not help."""
    folds = make_folds(data, learner.random_state)
    held_out = TrainingMatrices.concatenate([part for _, part in folds])
    closed_form, normalization, ridge, p_value = tune_ridge(folds, callback)
    if p_value is not None and p_value > SIGNIFICANCE_LEVEL:
        lexical = held_out.mean_ndcg(held_out.lexical_scores)
        result = TuningResult(normalization, ridge, 0.0, lexical, lexical, p_value=p_value)
        return empty_weights(data.lists.shape), result
    callback("learning pairs without the held-out queries")
    parts = [learner.fit(closed_form, train.lists, normalization, ridge) for train, _ in folds]
    level = SIGNIFICANCE_LEVEL if p_value is None else PRUNED_LEVEL
    result = tune_pair_weight(held_out_scores(parts, folds), held_out, normalization, ridge, level)
    if result.pair_weight == 0.0:
        return empty_weights(data.lists.shape), result
    if p_value is not None:
        result = replace(result, p_value=p_value)
    result = tune_strength(learner, parts, folds, held_out, result, callback)
    callback("learning pairs from all queries")
    W = learner.fit(closed_form, data.lists, normalization, ridge)
    return learner.refit_by_loss(W, data, result.pair_weight, result.strength), result


# ---- held-out queries


def hold_out(groups: NDArray[np.int64], random_state: int) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Return (held-out, other) queries: one quarter, or each of the four quarters if there are few queries.

    The queries of a group are never divided.
    """
    n, order = len(groups), np.random.default_rng(random_state).permutation(len(groups))
    _, first, sizes = np.unique(groups[order], return_index=True, return_counts=True)
    if len(first) < 2:
        raise DataError(f"{n} judged queries form {len(first)} group of near-duplicates; at least two are needed")
    part_of, part_sizes = {}, [0] * min(len(first), HELD_OUT_PARTS)
    for at in np.argsort(first).tolist():
        smallest = part_sizes.index(min(part_sizes))
        part_of[int(groups[order[first[at]]])] = smallest
        part_sizes[smallest] += int(sizes[at])
    part = np.array([part_of[group] for group in groups.tolist()])
    closest = int(np.argmin(np.abs(np.array(part_sizes) - n / HELD_OUT_PARTS)))
    turns = range(len(part_sizes)) if n <= MAX_ROTATED_QUERIES else [closest]
    return [(np.flatnonzero(part == turn), np.flatnonzero(part != turn)) for turn in turns]


def make_folds(data: TrainingMatrices, random_state: int) -> Folds:
    """Divide the queries into training and held-out ones; if there are very many documents, hold out fewer queries."""
    most = max(1, training_data.MAX_DENSE_SCORES // max(int(data.lists.D.shape[0]), 1))
    return [
        (data[rest], data[held_out[:most]].dense()) for held_out, rest in hold_out(data.group_numbers, random_state)
    ]


def held_out_scores(parts: list[csr_array], folds: Folds) -> Matrix:
    """Return the pair scores of each fold's held-out queries, by the W of its training queries."""
    return np.concatenate([held_out.pair_scores(W) for W, (_, held_out) in zip(parts, folds, strict=True)])


# ---- the test


def improvement_p_value(improvement: NDArray[np.float64], groups: NDArray[np.int64]) -> float:
    """Return the one-sided p-value of "pairs improve the ranking at some weight", corrected for the weights tried.

    improvement[s, w, q] is the difference of nDCG to the lexical score for setting s, pair weight w and query q. It is
    averaged over settings, because the best of many settings looks too good.
    """
    return max_t_p_value(improvement.mean(axis=0), groups)


def _p_value(held_out: TrainingMatrices, ndcg: Any, k: int = 10) -> float:
    """The p-value of nDCG@k, where ndcg[s, w] is that of setting s and pair weight w for every query."""
    has_relevant = np.diff(held_out.lists.relevant.indptr) > 0
    improvement = np.array(ndcg) - held_out.ndcg(held_out.lexical_scores, k)
    return improvement_p_value(improvement, held_out.group_numbers[has_relevant])


# ---- tuning


def tune_ridge(folds: Folds, callback: Callback) -> RidgeChoice:
    """Choose query normalization and ridge by the held-out nDCG@10 of W before pruning."""
    closed_form, held_out = ClosedForm(folds[0][0].lists.D), TrainingMatrices.concatenate([part for _, part in folds])
    if not has_closed_form(folds[0][0].lists):
        return RidgeChoice(closed_form, QUERY_NORMALIZATIONS[0], Ridge())
    callback("tuning the regularization of pairs")
    factors = {b: closed_form.factorize(b) for b in RIDGES}
    best, chosen, ndcg_of_all = -1.0, (QUERY_NORMALIZATIONS[0], Ridge()), []
    for candidates in zip(*(_candidates(factors, *fold) for fold in folds), strict=True):
        pair_scores = np.concatenate([scores for _, _, scores in candidates])
        of_weights, ndcg = [], 0.0
        for _, scores in _mixed_scores(held_out, pair_scores):
            of_weights.append(held_out.ndcg(scores, TEST_DEPTH))
            ndcg = max(ndcg, held_out.mean_ndcg(scores))
        ndcg_of_all.append(of_weights)
        if ndcg > best:
            best, chosen = ndcg, candidates[0][:2]
    return RidgeChoice(closed_form, *chosen, _p_value(held_out, ndcg_of_all, TEST_DEPTH))


def _candidates(
    factors: dict[float, Any], train: TrainingMatrices, held_out: TrainingMatrices
) -> Iterator[tuple[float, Ridge, Matrix]]:
    """Every query normalization and ridge to try, and the held-out scores of the closed form's W."""
    K, across = compute_gram(train.lists.Q), compute_gram(held_out.lists.Q, train.lists.Q)
    targets = {power: replace(train.lists, query_normalization=power).dense_targets() for power in QUERY_NORMALIZATIONS}
    for a in RIDGES:
        left = solve_factorized(factorize(K, a / train.lists.query_weights), np.ascontiguousarray(across.T)).T
        for power in QUERY_NORMALIZATIONS:
            smooth = np.ascontiguousarray((left @ targets[power]).T)
            for b, factor in factors.items():
                # (DDᵀ + b)⁻¹ DDᵀ = 1 - b (DDᵀ + b)⁻¹
                scores = smooth - np.float32(b) * solve_factorized(factor, smooth)
                yield power, Ridge(a, b), np.ascontiguousarray(scores.T)


def tune_pair_weight(
    pair_scores: Matrix,
    held_out: TrainingMatrices,
    query_normalization: float,
    ridge: Ridge,
    level: float | None = None,
) -> TuningResult:
    """Choose the weight of the pair scores by held-out nDCG@10; it is 0 if the p-value is above `level`."""
    lexical = held_out.mean_ndcg(held_out.lexical_scores)
    tried = [(weight, held_out.ndcg(scores)) for weight, scores in _mixed_scores(held_out, pair_scores)]
    means = [float(np.mean(ndcg)) if len(ndcg) else 0.0 for _, ndcg in tried]
    ndcg, weight = max(means), tried[int(np.argmax(means))][0]
    if (deviation := _deviation(pair_scores)) > 0.0:
        weight *= (_deviation(held_out.lexical_scores) or 1.0) / deviation
    p_value = _p_value(held_out, [[ndcg for _, ndcg in tried]])
    if p_value > (SIGNIFICANCE_LEVEL if level is None else level):
        weight, ndcg = 0.0, lexical
    return TuningResult(query_normalization, ridge, weight, lexical, ndcg, p_value=p_value)


def tune_strength(
    learner: PairLearner,
    parts: list[csr_array],
    folds: Folds,
    held_out: TrainingMatrices,
    squared: TuningResult,
    callback: Callback,
) -> TuningResult:
    """Choose the strength of the loss by held-out nDCG@10, at the pair weight of the squared loss."""
    best, tried = squared, []
    strengths = STRENGTHS[learner.loss] if all(train.fits_in_memory for train, _ in folds) else ()
    for strength in strengths:
        callback(f"tuning the {learner.loss} loss: strength {strength:g}")
        weight, pairs = squared.pair_weight, zip(parts, folds, strict=True)
        refitted = [learner.refit_by_loss(W, train, weight, strength) for W, (train, _) in pairs]
        scores = held_out.lexical_scores + np.float32(weight) * held_out_scores(refitted, folds)
        ndcg = held_out.mean_ndcg(scores)
        tried.append((f"{learner.loss} {strength:g}", ndcg))
        if ndcg > best.ndcg:
            best = replace(squared, ndcg=ndcg, strength=strength)
    return replace(best, tried=tuple(tried))


def _mixed_scores(held_out: TrainingMatrices, pair_scores: Matrix) -> Iterator[tuple[float, Matrix]]:
    """Lexical plus pair scores for every pair weight to try."""
    deviation = _deviation(pair_scores)
    unit = pair_scores / np.float32(deviation or 1.0)
    base = held_out.lexical_scores / np.float32(_deviation(held_out.lexical_scores) or 1.0)
    for weight in PAIR_WEIGHTS:
        yield (weight, base + np.float32(weight) * unit) if deviation else (0.0, base)


def _deviation(scores: Matrix) -> float:
    return float(np.std(scores, dtype=np.float64))
