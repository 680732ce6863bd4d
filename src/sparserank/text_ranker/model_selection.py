"""Model selection: tune the hyperparameters of word pairs on held-out queries, and test whether pairs help at all.

1. `query_normalization` and the ridge are those with the best nDCG@10 of the closed form's W before pruning, on
   held-out queries. A large collection is tuned with its heaviest words. A ridge is a ratio of variances, that of the
   noise to that of the weights, so it does not depend on the number of words.
2. Pairs must improve held-out queries significantly, else the model keeps the lexical score alone.
3. The weight of the pair score, whether pairs are refitted by the squared loss, and the learning rate and epochs of
   another loss are those with the best nDCG@10 after pruning, of W from all other queries.
4. Queries that are names of documents are ranked by the lexical score alone, unless this costs held-out queries more
   than `NAME_TOLERANCE`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..evaluation.significance import max_t_p_value
from ..optim.candidate_lists import CandidateLists
from ..optim.closed_form import ClosedForm, Side, compute_middle, factorize, solve_factorized
from ..optim.penalties import Ridge
from ..optim.pruning import empty_pattern
from .candidates import ALL_DOCUMENTS, CandidateSearch
from .checkpoint import Checkpoint
from .document_names import NAME_SHARES
from .held_out import HeldOut, Scores, hold_out, searched_ndcg
from .pair_learner import RATES, PairLearner
from .progress import Callback, Note, Progress, part_of
from .training_data import TrainingMatrices

if TYPE_CHECKING:
    from scipy.sparse import csr_array

RIDGES = (0.3, 1.0, 3.0)
QUERY_NORMALIZATIONS = (0.25, 0.5)
PAIR_WEIGHTS = (0.1, 0.14, 0.2, 0.28, 0.4, 0.56, 0.8, 1.1, 1.6, 2.2, 3.1)
"""The values to try; pair weights are in standard deviations of both scores."""
MAX_EPOCHS = 6
"""Epochs of the loss to try; fewer if one is worse than the one before."""
TUNING_SIZE = 4_000
"""The largest Gram matrix of the closed form while the ridge is tuned."""
UNLIKELY = 0.5
"""Above this p-value, a message says early that pairs are unlikely to help."""
SIGNIFICANCE_LEVEL = 0.01
"""Pairs are kept if the p-value of their improvement on held-out queries is at most this. Up to `ALL_DOCUMENTS`
documents this tests W before pruning. With more there is only the test of pruned pairs; its level is divided by the
number of variants, refitted or not. The share of collections with nothing to learn that keep pairs is not exactly the
level, because the test assumes symmetric gains; `make bench ARGS=never_worse` counts it for both."""
TEST_DEPTH = 100
"""The test uses nDCG at this rank. It varies less between queries than nDCG@10, so fewer queries show whether pairs
help (`python -m benchmarks.acceptance`)."""
PRUNED_LEVEL = 0.2
"""After that test, pruned pairs are tested again on nDCG@10, at this level: the smallest that keeps as many real
improvements as a larger one (`python -m benchmarks.acceptance`)."""

NAME_TOLERANCE = 0.005
"""The mean nDCG@10 of held-out queries that may be lost by ranking names of documents by the lexical score alone."""


@dataclass(frozen=True)
class TuningResult:
    """The chosen hyperparameters, and nDCG@10 on held-out queries without and with pairs.

    pair_weight : 0 if pairs do not help.
    refit : whether pairs are refitted by the squared loss before another loss.
    rate, epochs : of a loss other than the squared one; 0 epochs if the squared loss is better.
    tried : every rate and number of epochs, and its nDCG@10.
    name_share : queries that are at least this share of a title are ranked by the lexical score; None: no query is.
    """

    query_normalization: float
    ridge: Ridge
    pair_weight: float
    lexical_ndcg: float
    ndcg: float
    refit: bool = False
    rate: float = 0.0
    epochs: int = 0
    tried: tuple[tuple[str, float], ...] = ()
    p_value: float = 1.0
    name_share: float | None = None


class RidgeChoice(NamedTuple):
    """The chosen regularization, nDCG@10 without and with pairs, and the p-value of W before pruning."""

    query_normalization: float
    ridge_query: float
    ridge_document: float
    lexical_ndcg: float
    ndcg: float
    p_value: float


class Fold(NamedTuple):
    """Training queries, and held-out queries."""

    train: TrainingMatrices
    held_out: TrainingMatrices


class HeldOutScores(NamedTuple):
    """Held-out queries of one fold, and their pair scores by the W of its training queries."""

    held_out: HeldOut
    pairs: Scores


def learn_pairs(
    learner: PairLearner,
    data: TrainingMatrices,
    callback: Callback = lambda message: None,
    checkpoint: Checkpoint | None = None,
) -> tuple[csr_array, TuningResult]:
    """Tune the hyperparameters, test the pairs, and learn W from all queries; W is empty if pairs do not help."""
    stages = Checkpoint() if checkpoint is None else checkpoint
    search, folds = CandidateSearch.of(data, learner.n_jobs), make_folds(data, learner.random_state)
    choice = RidgeChoice(*stages.fact("ridge", lambda: list(tune_ridge(folds, search, callback, learner.max_size))))
    normalization, ridge = choice.query_normalization, Ridge(choice.ridge_query, choice.ridge_document)
    is_tested = data.lists.D.shape[0] <= ALL_DOCUMENTS  # the test needs rankings of all documents
    if is_tested and choice.p_value > SIGNIFICANCE_LEVEL:
        lexical = choice.lexical_ndcg
        result = TuningResult(normalization, ridge, 0.0, lexical, lexical, p_value=choice.p_value)
        return empty_pattern(data.lists.shape), result
    closed_form, best = ClosedForm(data.lists.D, learner.max_size), None
    refits = learner.refits()

    @cache
    def find_pairs(number: int) -> csr_array | None:
        is_ridge, lists = learner.penalty == "ridge", folds[number].train.lists
        step = part_of(report, number / len(folds), (number + 1) / len(folds))
        return learner.find_pairs(closed_form, lists, normalization, ridge, any(refits), step) if is_ridge else None

    def fit_fold(number: int, refit: bool) -> csr_array:
        lists, step = folds[number].train.lists, part_of(report, number / len(folds), (number + 1) / len(folds))
        return learner.fit(closed_form, lists, normalization, ridge, refit, find_pairs(number), step)

    @cache
    def candidate_lists() -> list[CandidateLists]:
        return [learner.candidate_lists(fold.train, search) for fold in folds]

    for refit in refits:
        if refit and learner.loss != "squared" and not learner.can_refit(folds[0].train.lists, find_pairs(0)):
            continue
        report = Progress(callback, f"learning pairs{' and refitting them' * refit} without the held-out queries")
        stage = f"fold {{}}{' refitted' * refit}"
        parts = [stages.matrix(stage.format(n), partial(fit_fold, n, refit)) for n in range(len(folds))]
        scored = [score_held_out(fold.held_out, search, W) for fold, W in zip(folds, parts, strict=True)]
        level = PRUNED_LEVEL if is_tested else SIGNIFICANCE_LEVEL / len(refits)
        result = tune_pair_weight(scored, normalization, ridge, level)
        result = replace(result, refit=refit, p_value=choice.p_value if is_tested else result.p_value)
        if result.pair_weight > 0.0:
            tune = partial(tune_loss, learner, parts, folds, search, scored, result, callback, candidate_lists)
            ndcg, rate, epochs, tried = stages.fact(f"loss{' refitted' * refit}", tune)
            result = replace(result, ndcg=ndcg, rate=rate, epochs=epochs, tried=tuple(map(tuple, tried)))
        if best is None or result.ndcg > best.ndcg:
            best = result
    assert best is not None
    if best.pair_weight == 0.0:
        return empty_pattern(data.lists.shape), best
    report = Progress(callback, "learning pairs from all queries")
    fit = partial(learner.fit, closed_form, data.lists, normalization, ridge, best.refit, report=report)
    W = stages.matrix("all", fit)
    if best.epochs:
        lists = learner.candidate_lists(data, search)
        report = Progress(callback, f"learning the weights of pairs by the {learner.loss} loss")
        *_, W = learner.refit_by_loss(W, data, lists, best.pair_weight, best.rate, best.epochs, report)
    return W, best


def make_folds(data: TrainingMatrices, random_state: int) -> list[Fold]:
    """Divide the queries into training and held-out ones."""
    return [Fold(data[rest], data[held_out]) for held_out, rest in hold_out(data.group_numbers, random_state)]


# ---- the test


def improvement_p_value(improvement: NDArray[np.float64], groups: NDArray[np.int64]) -> float:
    """Return the one-sided p-value of "pairs improve the ranking at some weight", corrected for the weights tried.

    improvement[s, w, q] is the difference of nDCG to the lexical score for setting s, pair weight w and query q. It is
    averaged over settings, because the best of many settings looks too good.
    """
    return max_t_p_value(improvement.mean(axis=0), groups)


def _p_value(folds: list[HeldOut], ndcg: Any, k: int = 10) -> float:
    """The p-value of nDCG@k, where ndcg[s, w] is that of setting s and pair weight w for every query."""
    improvement = np.array(ndcg) - _ndcg(folds, [fold.candidates.base for fold in folds], (k,))[0]
    groups = [fold.groups for fold in folds]
    return improvement_p_value(improvement, np.concatenate(groups))


def _ndcg(folds: list[HeldOut], scores: list[Scores], cutoffs: Sequence[int] = (10,)) -> list[NDArray[np.float64]]:
    """For each cutoff k, nDCG@k of the queries of all folds."""
    by_fold = [fold.ndcg(one, cutoffs) for fold, one in zip(folds, scores, strict=True)]
    return [np.concatenate(values) for values in zip(*by_fold, strict=True)]


def _mean(ndcg: NDArray[np.float64]) -> float:
    return float(np.mean(ndcg)) if len(ndcg) else 0.0


# ---- tuning


def tune_ridge(
    folds: list[Fold], search: CandidateSearch, callback: Callback, max_size: int = TUNING_SIZE
) -> RidgeChoice:
    """Choose query normalization and ridge by the held-out nDCG@10 of W before pruning.

    W has the heaviest words of a large collection only, and a ranking of a held-out query has its best documents by the
    lexical score. `max_size` is the largest Gram matrix that fits the memory.
    """
    max_size = min(TUNING_SIZE, max_size)
    report = Progress(callback, "tuning the regularization of pairs")
    held_out = [HeldOut.search(fold.held_out, search) for fold in folds]
    documents = Side.of(folds[0].train.lists.D, max_size=max_size)
    gram = documents.compute_gram()
    factors = {b: factorize(gram, b) for b in RIDGES}
    lexical = _mean(_ndcg(held_out, [one.candidates.base for one in held_out])[0])
    best, chosen, ndcg_of_all = -1.0, (QUERY_NORMALIZATIONS[0], Ridge()), []
    pairs = [
        _iterate_pair_scores(documents, factors, fold.train, one, max_size)
        for fold, one in zip(folds, held_out, strict=True)
    ]
    for number, candidates in enumerate(zip(*pairs, strict=True), 1):
        report(number / (len(RIDGES) ** 2 * len(QUERY_NORMALIZATIONS)))
        scored = [HeldOutScores(one, scores) for one, (_, _, scores) in zip(held_out, candidates, strict=True)]
        of_weights, ndcg = [], 0.0
        for _, scores in mixed_scores(scored):
            at_10, at_depth = _ndcg(held_out, scores, (10, TEST_DEPTH))
            of_weights.append(at_depth)
            ndcg = max(ndcg, _mean(at_10))
        ndcg_of_all.append(of_weights)
        if ndcg > best:
            best, chosen = ndcg, candidates[0][:2]
    p_value = _p_value(held_out, ndcg_of_all, TEST_DEPTH)
    if p_value > UNLIKELY:
        callback(
            Note(
                f"word pairs are unlikely to help here: nDCG@10 on held-out queries is {lexical:.3f} without and "
                f"{best:.3f} with all pairs"
            )
        )
    power, ridge = chosen
    return RidgeChoice(power, ridge.query, ridge.document, lexical, best, p_value)


def _iterate_pair_scores(
    documents: Side, factors: dict[float, Any], train: TrainingMatrices, held_out: HeldOut, max_size: int = TUNING_SIZE
) -> Iterator[tuple[float, Ridge, Scores]]:
    """Every query normalization and ridge to try, and the held-out scores of the closed form's W."""
    queries = Side.of(train.lists.Q, train.lists.weight, max_size)
    gram, across = queries.compute_gram(), queries.project(held_out.queries.lists.Q)
    problems = [replace(train.lists, query_normalization=power) for power in QUERY_NORMALIZATIONS]
    middles = [compute_middle(queries, documents, problem) for problem in problems]
    for a in RIDGES:
        left = solve_factorized(factorize(gram, queries.ridge_diagonal(a)), across.T).T
        for power, middle in zip(QUERY_NORMALIZATIONS, middles, strict=True):
            smooth = (left @ middle).T  # by columns, as LAPACK has it
            for b, factor in factors.items():
                right = solve_factorized(factor, smooth)
                if documents.words is None:  # (DDᵀ + b)⁻¹ DDᵀ = 1 - b (DDᵀ + b)⁻¹
                    scores = held_out.take((smooth - np.float32(b) * right).T)
                else:
                    scores = held_out.score_expanded(right.T, documents.words)
                yield power, Ridge(a, b), scores


def score_held_out(queries: TrainingMatrices, search: CandidateSearch, W: csr_array) -> HeldOutScores:
    """Return held-out queries with their candidates, and the pair scores of those."""
    held_out = HeldOut.search(queries, search, W)
    return HeldOutScores(held_out, held_out.pair_scores(W))


def tune_pair_weight(
    folds: list[HeldOutScores], query_normalization: float, ridge: Ridge, level: float = SIGNIFICANCE_LEVEL
) -> TuningResult:
    """Choose the weight of the pair scores by held-out nDCG@10; it is 0 if the p-value is above `level`."""
    held_out = [fold.held_out for fold in folds]
    without_pairs = _ndcg(held_out, [one.candidates.base for one in held_out])[0]
    lexical = _mean(without_pairs)
    tried = [(weight, _ndcg(held_out, scores)[0]) for weight, scores in mixed_scores(folds)]
    means = [_mean(ndcg) for _, ndcg in tried]
    ndcg, (weight, with_pairs) = max(means), tried[int(np.argmax(means))]
    gain, named = with_pairs - without_pairs, np.concatenate([one.named for one in held_out])
    cheap = (share for share in NAME_SHARES if _mean(gain * (named >= np.float32(share))) <= NAME_TOLERANCE)
    lexical_deviation, pair_deviation = _deviations(folds)
    if pair_deviation > 0.0:
        weight *= (lexical_deviation or 1.0) / pair_deviation
    p_value = _p_value(held_out, [[ndcg for _, ndcg in tried]])
    if p_value > level:
        weight, ndcg = 0.0, lexical
    return TuningResult(
        query_normalization, ridge, weight, lexical, ndcg, p_value=p_value, name_share=next(cheap, None)
    )


def tune_loss(
    learner: PairLearner,
    parts: list[csr_array],
    folds: list[Fold],
    search: CandidateSearch,
    pools: list[HeldOutScores],
    squared: TuningResult,
    callback: Callback,
    candidate_lists: Callable[[], list[CandidateLists]],
) -> tuple[float, float, int, list[tuple[str, float]]]:
    """Choose the rate and epochs of the loss by held-out nDCG@10, at the pair weight of the squared loss.

    pools : the held-out queries of every fold with their candidates, which a ranking of many documents is made of.
    candidate_lists : returns the lists of the training queries of every fold.
    A rate ends at the first epoch that is worse than the one before, and the search at the first rate that is worse.

    Returns
    -------
    nDCG@10, rate, epochs, and the nDCG@10 of everything tried
    """
    if learner.loss == "squared":
        return squared.ndcg, 0.0, 0, []
    report = Progress(callback, f"tuning the {learner.loss} loss{' of refitted pairs' * squared.refit}")
    weight, is_searched = squared.pair_weight, search.D.shape[0] <= ALL_DOCUMENTS

    def measure(some: Iterable[csr_array]) -> float:
        if is_searched:
            by_fold = [searched_ndcg(fold.held_out, search, W, weight) for fold, W in zip(folds, some, strict=True)]
        else:
            by_fold = [pool.held_out.ndcg_of_pairs(W, weight) for pool, W in zip(pools, some, strict=True)]
        return _mean(np.concatenate(by_fold))

    lists = candidate_lists()
    best, tried = (measure(parts), 0.0, 0), []
    tried.append(("squared", best[0]))
    best_before = -1.0
    for number, rate in enumerate(RATES):
        epochs = [
            learner.refit_by_loss(W, fold.train, candidates, weight, rate, MAX_EPOCHS)
            for W, fold, candidates in zip(parts, folds, lists, strict=True)
        ]
        last = best_of_rate = -1.0
        for epoch, refitted in enumerate(zip(*epochs, strict=True), 1):
            ndcg = measure(refitted)
            report((number + epoch / MAX_EPOCHS) / len(RATES), f"rate {rate:g}, epoch {epoch}, nDCG@10 {ndcg:.4f}")
            tried.append((f"{learner.loss}, rate {rate:g}, {epoch} epochs", ndcg))
            best, best_of_rate = max(best, (ndcg, rate, epoch), key=lambda one: one[0]), max(best_of_rate, ndcg)
            if ndcg < last:
                break
            last = ndcg
        if best_of_rate < best_before:
            break
        best_before = best_of_rate
    return *best, tried


def mixed_scores(folds: list[HeldOutScores]) -> Iterator[tuple[float, list[Scores]]]:
    """Lexical plus pair scores of every fold, for every pair weight to try."""
    lexical, pairs = _deviations(folds)
    for weight in PAIR_WEIGHTS:
        factor = np.float32(weight / pairs if pairs else 0.0)
        yield (
            weight if pairs else 0.0,
            [fold.held_out.candidates.base / np.float32(lexical or 1.0) + factor * fold.pairs for fold in folds],
        )


def _deviations(folds: list[HeldOutScores]) -> tuple[float, float]:
    """The standard deviations of the lexical and of the pair scores."""
    lexical = np.concatenate([fold.held_out.candidates.base for fold in folds])
    pairs = np.concatenate([fold.pairs for fold in folds])
    return float(np.std(lexical, dtype=np.float64)), float(np.std(pairs, dtype=np.float64))
