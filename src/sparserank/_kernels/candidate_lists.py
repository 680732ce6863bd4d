"""Scores, losses and gradients of word pairs on candidate lists: s = base + qᵀ W d for the documents of each list.

W is a CSR pattern with weights. `expanded` and `projected` are work arrays, one number for each column of W, that are
zero before and after.
"""

import numpy as np
from numba import njit

DOMINATION, SOFTMAX, HINGE = 0, 1, 2
TINY = np.float32(1e-12)
"""Added to the root of the squared gradients, which may be 0 in float32."""


@njit(cache=True, nogil=True)
def _expand(query, q_start, q_column, q_value, w_start, w_column, weight, expanded):
    """expanded = Wᵀ q"""
    for a in range(q_start[query], q_start[query + 1]):
        row, value = q_column[a], q_value[a]
        for t in range(w_start[row], w_start[row + 1]):
            expanded[w_column[t]] += value * weight[t]


@njit(cache=True, nogil=True)
def _clear(query, q_start, q_column, w_start, w_column, expanded):
    """Set the entries of Wᵀ q to 0."""
    for a in range(q_start[query], q_start[query + 1]):
        row = q_column[a]
        for t in range(w_start[row], w_start[row + 1]):
            expanded[w_column[t]] = 0.0


@njit(cache=True, nogil=True)
def score(
    first, last, q_start, q_column, q_value, w_start, w_column, weight, d_start, d_column, d_value,
    list_start, document, expanded, out,
):  # fmt: skip
    """out[l] = qᵀ W d for every place l of the lists of queries first … last - 1."""
    for query in range(first, last):
        _expand(query, q_start, q_column, q_value, w_start, w_column, weight, expanded)
        for place in range(list_start[query], list_start[query + 1]):
            d, total = document[place], np.float32(0.0)
            for t in range(d_start[d], d_start[d + 1]):
                total += expanded[d_column[t]] * d_value[t]
            out[place] = total
        _clear(query, q_start, q_column, w_start, w_column, expanded)


@njit(cache=True, nogil=True)
def score_expanded(expanded, d_start, d_column, d_value, list_start, document, out):
    """out[l] = expanded[query] · d for every place l of the list of every query."""
    for query in range(len(list_start) - 1):
        for place in range(list_start[query], list_start[query + 1]):
            d, total = document[place], np.float32(0.0)
            for t in range(d_start[d], d_start[d + 1]):
                total += expanded[query, d_column[t]] * d_value[t]
            out[place] = total


@njit(cache=True, nogil=True)
def _highest(score, share, all_documents):
    """The highest score of the documents that are not relevant, or of all."""
    highest = -np.inf
    for p in range(len(score)):
        if all_documents or share[p] <= 0.0:
            highest = max(highest, score[p])
    return highest


@njit(cache=True, nogil=True)
def exponential_loss(score, share, softmax, gradient):
    """The domination or softmax loss of one list, with its gradient.

    domination: sum_p share_p log(1 + sum_n exp(s_n - s_p)); p has a share above 0, n has none
    softmax:    sum_p share_p log(sum_d exp(s_d - s_p)); d is any document
    """
    top = _highest(score, share, softmax)
    gradient[:] = 0.0
    if top == -np.inf:  # everything is relevant
        return 0.0
    total, loss, lost = 0.0, 0.0, 0.0
    for p in range(len(score)):
        if softmax or share[p] <= 0.0:
            gradient[p] = np.exp(score[p] - top)
            total += gradient[p]
    for p in range(len(score)):
        if share[p] <= 0.0:
            continue
        away = np.log(total) + top - score[p]
        if softmax:
            loss += share[p] * away
            lost += share[p]
        else:
            loss += share[p] * (max(away, 0.0) + np.log1p(np.exp(-abs(away))))
            lost += share[p] / (1.0 + np.exp(min(-away, 700.0)))
    for p in range(len(score)):
        gradient[p] *= lost / total
        if share[p] > 0.0:
            away = np.log(total) + top - score[p]
            gradient[p] -= share[p] if softmax else share[p] / (1.0 + np.exp(min(-away, 700.0)))
    return loss


@njit(cache=True, nogil=True)
def hinge_loss(score, share, margin, gradient):
    """sum_p share_p mean_n max(0, margin - (s_p - s_n)) of one list, with its gradient."""
    gradient[:] = 0.0
    negatives, loss = 0, 0.0
    for n in range(len(score)):
        if share[n] <= 0.0:
            negatives += 1
    for p in range(len(score)):
        if share[p] <= 0.0:
            continue
        for n in range(len(score)):
            short = margin - score[p] + score[n]
            if share[n] <= 0.0 and short > 0.0:
                loss += share[p] * short / negatives
                gradient[p] -= share[p] / negatives
                gradient[n] += share[p] / negatives
    return loss


@njit(cache=True, nogil=True)
def evaluate(
    queries, q_start, q_column, q_value, w_start, w_column, weight, d_start, d_column, d_value,
    list_start, document, base, share, kind, margin, expanded, projected, gradient,
):  # fmt: skip
    """Return the loss of some queries, and add its gradient by the weights of W to `gradient`."""
    loss = 0.0
    for query in queries:
        begin, end = list_start[query], list_start[query + 1]
        _expand(query, q_start, q_column, q_value, w_start, w_column, weight, expanded)
        s, by_score = np.empty(end - begin, np.float64), np.empty(end - begin, np.float64)
        for place in range(begin, end):
            d, total = document[place], np.float32(0.0)
            for t in range(d_start[d], d_start[d + 1]):
                total += expanded[d_column[t]] * d_value[t]
            s[place - begin] = np.float64(base[place]) + np.float64(total)
        _clear(query, q_start, q_column, w_start, w_column, expanded)
        if kind == HINGE:
            loss += hinge_loss(s, share[begin:end], margin, by_score)
        else:
            loss += exponential_loss(s, share[begin:end], kind == SOFTMAX, by_score)
        for place in range(begin, end):
            d, factor = document[place], np.float32(by_score[place - begin])
            if factor != 0.0:
                for t in range(d_start[d], d_start[d + 1]):
                    projected[d_column[t]] += factor * d_value[t]
        for a in range(q_start[query], q_start[query + 1]):
            row, value = q_column[a], q_value[a]
            for t in range(w_start[row], w_start[row + 1]):
                gradient[t] += value * projected[w_column[t]]
        for place in range(begin, end):
            d = document[place]
            for t in range(d_start[d], d_start[d + 1]):
                projected[d_column[t]] = 0.0
    return loss


@njit(cache=True, nogil=True)
def adagrad_step(first, last, weight, squares, gradients, rate, free, nonnegative):
    """One Adagrad step of the weights first … last - 1, by the sum of the parts of the gradient, which become 0."""
    for t in range(first, last):
        gradient = np.float32(0.0)
        for part in range(len(gradients)):
            gradient += gradients[part, t]
            gradients[part, t] = 0.0
        if gradient != 0.0 and free[t]:
            squares[t] += gradient * gradient
            weight[t] -= rate * gradient / (np.sqrt(squares[t]) + TINY)
            if nonnegative and weight[t] < 0.0:
                weight[t] = 0.0
