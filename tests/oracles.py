"""Definitions written to be read: what the fast code must equal. Slow on purpose, as close to the words as it gets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

# ------------------------------------------------------------------------------------------------ measures


def tie_rule(scores: Mapping[str, float]) -> list[str]:
    """Documents by float32 score, falling; equal scores by id, falling in string order."""
    with np.errstate(over="ignore"):
        return sorted(scores, key=lambda doc: (np.float32(scores[doc]), doc), reverse=True)


def items(scores: Mapping[str, float], judged: Mapping[str, float]) -> list[tuple[float, float]]:
    """(float32 score, grade) of every document judged or retrieved: unjudged is grade 0, not retrieved is below all."""
    with np.errstate(over="ignore"):
        return [(np.float32(scores.get(d, -math.inf)), judged.get(d, 0.0)) for d in {**scores, **judged}]


def domination_error(scores: Mapping[str, float], judged: Mapping[str, float]) -> float:
    """The share, of the items with someone to beat, of those that fail to beat everyone they should."""
    everyone = items(scores, judged)
    lost = [
        any(other_score >= score for other_score, other in everyone if other < grade)
        for score, grade in everyone
        if any(other < grade for _, other in everyone)
    ]
    return sum(lost) / len(lost) if lost else math.nan


def pair_error(scores: Mapping[str, float], judged: Mapping[str, float]) -> float:
    """The share, of the pairs (better, worse), of those that the scores do not put in that order."""
    everyone = items(scores, judged)
    wrong = [better <= worse for better, high in everyone for worse, low in everyone if high > low]
    return sum(wrong) / len(wrong) if wrong else math.nan


def letor4_dcg(grades: Sequence[float], k: int) -> float:
    """Gains 2^grade - 1, discount 1 at rank 1 and 1/log2(rank) from rank 2."""
    return sum((2**grade - 1) / (1 if rank == 1 else math.log2(rank)) for rank, grade in enumerate(grades[:k], start=1))


def letor4_ndcg(grades: Sequence[float], k: int) -> float:
    """0 at a cutoff beyond the end of the list, and where nothing is relevant."""
    best = letor4_dcg(sorted(grades, reverse=True), k)
    return letor4_dcg(grades, k) / best if len(grades) >= k and best > 0 else 0.0


def letor4_mean_ndcg(grades: Sequence[float]) -> float:
    """The mean of NDCG at every cutoff that the list has."""
    return sum(letor4_ndcg(grades, k) for k in range(1, len(grades) + 1)) / len(grades)


# ------------------------------------------------------------------------------------------------ class-labelled data


def class_average_precision(row: Sequence[float], y: Sequence[int], ids: Sequence[str], query: int) -> float:
    """Rank all items but the query by the tie rule; relevant are those of its class."""
    ranking = tie_rule({ids[j]: row[j] for j in range(len(y)) if j != query})
    label = dict(zip(ids, y, strict=True))
    relevant = [label[doc] == y[query] for doc in ranking]
    precision = [sum(relevant[:rank]) / rank for rank in range(1, len(relevant) + 1)]
    return sum(p for p, hit in zip(precision, relevant, strict=True) if hit) / sum(relevant)


def class_error(row: Sequence[float], y: Sequence[int], query: int) -> float:
    """The share of pairs (same class, other class), the query itself left out, that are not in that order."""
    same = [np.float32(row[j]) for j in range(len(y)) if y[j] == y[query] and j != query]
    other = [np.float32(row[j]) for j in range(len(y)) if y[j] != y[query]]
    wrong = [plus <= minus for plus in same for minus in other]
    return sum(wrong) / len(wrong)


def algorithm_1(Q, D, triples, W, *, alpha, eta0, every, rate="decay", omega=None, centre=0.0, groups=None):
    """Algorithm 1 of paper C, step by step on a dense W in 64 bits.

    omega: only these places change (the refit, and a diagonal W). centre: what W is shrunk towards. groups: a label for
    each row; then the lengths of groups are shrunk instead of entries.
    """
    Q, D, W = (np.array(a, dtype=np.float64) for a in (Q, D, W))
    owed = 0.0
    for t, (q, better, worse) in enumerate(zip(*triples, strict=True), start=1):
        eta = eta0 / np.sqrt(t) if rate == "decay" else eta0
        owed += alpha * eta
        delta = D[better] - D[worse]
        if Q[q] @ W @ delta < 1:
            step = eta * np.outer(Q[q], delta)
            W += step if omega is None else np.where(omega, step, 0.0)
        if t % every == 0:
            V = W - centre
            if groups is None:
                V = np.sign(V) * np.maximum(np.abs(V) - owed, 0.0)
            else:
                for label in set(groups):
                    rows = np.asarray(groups) == label
                    length = np.sqrt((V[rows] ** 2).sum())
                    V[rows] *= max(0.0, 1.0 - owed / length) if length > 0 else 0.0
            W = V + centre
            owed = 0.0
    return W
