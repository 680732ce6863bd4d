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


def items(scores: Mapping[str, float], judged: Mapping[str, float]) -> list[tuple[float, float, bool]]:
    """(float32 score, grade, retrieved) of every document: unjudged is grade 0, not retrieved is below all."""
    everyone = {**scores, **judged}
    with np.errstate(over="ignore"):
        return [(np.float32(scores.get(d, -math.inf)), judged.get(d, 0.0), d in scores) for d in everyone]


def domination_error(scores: Mapping[str, float], judged: Mapping[str, float]) -> float:
    """The share, of the items with someone to beat, of those with someone of a lower grade strictly above them.

    An item that was not retrieved is wrong.
    """
    everyone = items(scores, judged)
    lost = [
        not found or any(other_score > score for other_score, other, _ in everyone if other < grade)
        for score, grade, found in everyone
        if any(other < grade for _, other, _ in everyone)
    ]
    return sum(lost) / len(lost) if lost else math.nan


def pair_error(scores: Mapping[str, float], judged: Mapping[str, float]) -> float:
    """The share, of the pairs (better, worse), of those with the worse one strictly above, or the better one missed."""
    everyone = items(scores, judged)
    wrong = [
        not found or better < worse for better, high, found in everyone for worse, low, _ in everyone if high > low
    ]
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


def class_error_of_triples(scores, y) -> float:
    """Of all triples (query, same class, other class) the share that is not in that order, counted one by one."""
    wrong = total = 0
    for q in range(len(y)):
        for plus in range(len(y)):
            for minus in range(len(y)):
                if plus != q and y[plus] == y[q] and y[minus] != y[q]:
                    total += 1
                    wrong += np.float32(scores[q][plus]) <= np.float32(scores[q][minus])
    return wrong / total


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


# ------------------------------------------------------------------------------------------------ graded rows by query


def pairs(y, qid):
    """Every (better, worse) of one query."""
    return [(i, j) for i in range(len(y)) for j in range(len(y)) if qid[i] == qid[j] and y[i] > y[j]]


def pair_hinge(scores, y, qid, weight, squared):
    """Σ over pairs of w_i max(0, 1 - (s_i - s_j)), or of its square."""
    power = 2 if squared else 1
    return sum(weight[i] * max(0.0, 1.0 - (scores[i] - scores[j])) ** power for i, j in pairs(y, qid))


def average_precision(relevant: Sequence[bool]) -> float:
    """Of a ranking, best first."""
    hits = [sum(relevant[: rank + 1]) / (rank + 1) for rank, hit in enumerate(relevant) if hit]
    return sum(hits) / len(hits) if hits else 0.0


def dcg(gains: Sequence[float], k: int) -> float:
    """Gains with discount 1 / log2(1 + rank), of the first k ranks."""
    return sum(gain / math.log2(1 + rank) for rank, gain in enumerate(gains[:k], start=1))


def over_ties(scores: Sequence[float], values: Sequence[float], measure) -> float:
    """The mean of measure(values in ranked order) over every order that falls in score."""
    from itertools import pairwise, permutations

    found = [
        measure([values[i] for i in order])
        for order in permutations(range(len(scores)))
        if all(scores[a] >= scores[b] for a, b in pairwise(order))
    ]
    return sum(found) / len(found)


def adarank(X, y, qid, rounds, worth):
    """AdaRank by the book: worth(scores, grades) of one query; queries whose worth cannot change take no part."""
    X, y, qid = np.asarray(X, float), np.asarray(y, float), np.asarray(qid)
    queries = [np.flatnonzero(qid == q) for q in np.unique(qid)]
    queries = [
        rows for rows in queries if (y[rows] > y.min()).any() and worth(y[rows], y[rows]) > worth(-y[rows], y[rows])
    ]
    P = np.full(len(queries), 1 / len(queries))
    chosen, scores = [], np.zeros(len(y))
    for _ in range(rounds):
        E = np.array([[worth(X[rows, f], y[rows]) for f in range(X.shape[1])] for rows in queries])
        feature = int((P @ E).argmax())
        performance = P @ E[:, feature]
        alpha = 0.5 * math.log((1 + performance) / (1 - performance))
        chosen.append((feature, alpha))
        scores = scores + alpha * X[:, feature]
        P = np.array([math.exp(-worth(scores[rows], y[rows])) for rows in queries])
        P /= P.sum()
    return chosen


def rankboost(X, y, qid, weight, rounds):
    """RankBoost by the book: a distribution over listed pairs, every cut between two values of every feature."""
    X = np.asarray(X, float)
    listed = pairs(y, qid)
    D = np.array([weight[i] for i, _ in listed], float)
    D /= D.sum()
    scores = np.zeros(len(y))
    losses = []
    for _ in range(rounds):
        best = (0.0, 0, 0.0)
        for f in range(X.shape[1]):
            values = np.unique(X[:, f])
            for cut in (values[1:] + values[:-1]) / 2:
                h = X[:, f] > cut
                r = sum(d * (float(h[i]) - float(h[j])) for d, (i, j) in zip(D, listed, strict=True))
                if abs(r) > abs(best[0]) + 1e-12:
                    best = (r, f, cut)
        r, f, cut = best
        alpha = 0.5 * math.log((1 + r) / (1 - r))
        scores = scores + alpha * (X[:, f] > cut)
        D = np.array([weight[i] * math.exp(scores[j] - scores[i]) for i, j in listed])
        losses.append(D.sum() / sum(weight[i] for i, _ in listed))
        D /= D.sum()
    return scores, losses


def pamir(X, triples, C, average):
    """w after the triples (better, worse), or the mean of w after each of them."""
    w, seen = np.zeros(np.shape(X)[1]), []
    for better, worse in triples:
        delta = np.asarray(X[better], float) - np.asarray(X[worse], float)
        loss = max(0.0, 1.0 - w @ delta)
        if loss > 0 and delta @ delta > 0:
            w = w + min(C, loss / (delta @ delta)) * delta
        seen.append(w)
    return np.mean(seen, axis=0) if average else w


def pamir_bilinear(Q, D, triples, C, average):
    """W after the triples (query, better, worse), or the mean of W after each of them."""
    W, seen = np.zeros((np.shape(Q)[1], np.shape(D)[1])), []
    for query, better, worse in triples:
        q, delta = np.asarray(Q[query], float), np.asarray(D[better], float) - np.asarray(D[worse], float)
        loss = max(0.0, 1.0 - q @ W @ delta)
        size = (q @ q) * (delta @ delta)
        if loss > 0 and size > 0:
            W = W + min(C, loss / size) * np.outer(q, delta)
        seen.append(W)
    return np.mean(seen, axis=0) if average else W


def gaussian_basis(X, centres, variances):
    """Φ: φ_0 = 1, φ_j(x) = exp(-½ (x - μ_j)ᵀ Σ⁻¹ (x - μ_j))."""
    inverse = np.diag(1 / np.asarray(variances, float))
    return np.array([[1.0] + [math.exp(-0.5 * (x - m) @ inverse @ (x - m)) for m in centres] for x in np.asarray(X)])


def squared_descent(phi, target, alpha, rate):
    """w from 0, one row a step: w -= η (-(t - w·φ) φ + alpha w), with rate(i) the η of step i, counted from 1."""
    w = np.zeros(phi.shape[1])
    for i, (row, t) in enumerate(zip(phi, target, strict=True), start=1):
        w = w - rate(i) * (-(t - w @ row) * row + alpha * w)
    return w


# ------------------------------------------------------------------------------------------------ domination


def below(i, y, qid, windows="graded"):
    """D(i): the rows of i's query that it should beat."""
    wins = (lambda j: y[i] > y[j]) if windows == "graded" else (lambda j: y[i] > 0 >= y[j])
    return [j for j in range(len(y)) if qid[i] == qid[j] and wins(j)]


def domination_loss(scores, y, qid, weight=None, margin=0.0, windows="graded", margins=None):
    """Σ_i c_i log(1 + Σ_{j∈D(i)} exp(s_j - s_i + Δ_ij)) and its slope in the scores, pair by pair.

    Δ_ij = m_i - m_j; m is margin · y, or margin[y] where it is a mapping, plus margins of the item.
    """
    of_grade = (lambda grade: margin[grade]) if isinstance(margin, Mapping) else (lambda grade: margin * grade)
    m = [of_grade(y[i]) + (0.0 if margins is None else margins[i]) for i in range(len(y))]
    loss, slope = 0.0, np.zeros(len(y))
    for i in range(len(y)):
        losers = below(i, y, qid, windows)
        if not losers:
            continue
        c = 1.0 if weight is None else weight[i]
        terms = [math.exp(scores[j] - scores[i] + m[i] - m[j]) for j in losers]
        loss += c * math.log(1 + sum(terms))
        for j, term in zip(losers, terms, strict=True):
            slope[j] += c * term / (1 + sum(terms))
            slope[i] -= c * term / (1 + sum(terms))
    return loss, slope


def domination_curvature(x, scores, y, qid, weight=None, margin=0.0):
    """Σ_i c_i Var(x) under p_i, the softmax over i and D(i)."""
    total = 0.0
    for i in range(len(y)):
        rows = [i, *below(i, y, qid)]
        e = np.array([math.exp(scores[k] - margin * y[k]) for k in rows])
        p, values = e / e.sum(), np.array([x[k] for k in rows])
        total += (1.0 if weight is None else weight[i]) * (p @ values**2 - (p @ values) ** 2)
    return total


def domination_optimum(X, y, qid, l1=0.0, l2=0.0, **loss):
    """The least value of the literal objective, by L-BFGS-B on w = u - v with u, v ≥ 0."""
    from scipy.optimize import minimize

    X = np.asarray(X, float)
    d = X.shape[1]

    def objective(z):
        w = z[:d] - z[d:]
        value, slope = domination_loss(X @ w, y, qid, **loss)
        g = X.T @ slope + 2 * l2 * w
        return value + l1 * z.sum() + l2 * w @ w, np.concatenate([g, -g]) + l1

    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10_000, "maxfun": 100_000}
    return minimize(objective, np.zeros(2 * d), jac=True, bounds=[(0, None)] * (2 * d), options=options).fun


def bm25f(query, document, documents, weights, k1, b):
    """Σ_t idf(t) tf / (k1 + tf), tf = Σ_f w_f tf_f / (1 - b + b len_f / mean len_f); documents are {field: [word]}."""
    total, n = 0.0, len(documents)
    for word in query:
        df = sum(any(word in words for words in one.values()) for one in documents)
        if df == 0:
            continue
        tf = 0.0
        for field, weight in weights.items():
            mean = sum(len(one.get(field, [])) for one in documents) / n
            words = document.get(field, [])
            if words:
                tf += weight * words.count(word) / (1 - b + b * len(words) / mean)
        if tf:
            total += math.log(1 + (n - df + 0.5) / (df + 0.5)) * tf / (k1 + tf)
    return total


# ------------------------------------------------------------------------------------------------ words


def edit_distance(a: str, b: str) -> int:
    """The fewest insertions, deletions, substitutions and transpositions of neighbours that turn a into b, if no letter
    is changed twice (optimal string alignment).
    """
    d = {(i, 0): i for i in range(len(a) + 1)} | {(0, j): j for j in range(len(b) + 1)}
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + (a[i - 1] != b[j - 1]))
            if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                d[i, j] = min(d[i, j], d[i - 2, j - 2] + 1)
    return d[len(a), len(b)]
