"""Exact top-k over an inverted index, term at a time.

Documents are numbered so that of two equal scores the smaller number ranks first. Sums are taken in 64 bits and
rounded to float32 once, so that their order does not show. A document whose score is 0 is not a result.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, inline="always")
def _before(score, doc, other_score, other_doc):
    """Whether (score, doc) ranks before the other."""
    return score > other_score or (score == other_score and doc < other_doc)


@njit(cache=True, nogil=True)
def _sink(scores, docs, place, size):
    """Restore the heap below `place`: the root is the entry that ranks last."""
    score, doc = scores[place], docs[place]
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        right = child + 1
        if right < size and _before(scores[child], docs[child], scores[right], docs[right]):
            child = right
        if not _before(score, doc, scores[child], docs[child]):
            break
        scores[place], docs[place] = scores[child], docs[child]
        place = child
    scores[place], docs[place] = score, doc


@njit(cache=True, nogil=True)
def _offer(score, doc, scores, docs, size):
    """Take (score, doc) into the heap of at most len(scores) best entries; returns the heap's new size."""
    if size < len(scores):
        place = size
        while place > 0:
            parent = (place - 1) // 2
            if not _before(scores[parent], docs[parent], score, doc):
                break
            scores[place], docs[place] = scores[parent], docs[parent]
            place = parent
        scores[place], docs[place] = score, doc
        return size + 1
    if _before(score, doc, scores[0], docs[0]):
        scores[0], docs[0] = score, doc
        _sink(scores, docs, 0, size)
    return size


@njit(cache=True, nogil=True)
def _unheap(scores, docs, size):
    """Turn the heap into a list, best first."""
    while size > 1:
        size -= 1
        score, doc = scores[size], docs[size]
        scores[size], docs[size] = scores[0], docs[0]
        scores[0], docs[0] = score, doc
        _sink(scores, docs, 0, size)


@njit(cache=True, nogil=True)
def _add(weight, docs, weights, begin, end, total):
    for j in range(begin, end):
        total[docs[j]] += weight * np.float64(weights[j])


@njit(cache=True, nogil=True)
def _from_all(total, scores, docs):
    """The best positive scores, by a walk over every document; clears the sums."""
    size, least = 0, 0.0
    for doc in range(len(total)):
        value = total[doc]
        if value > least:
            size = _offer(np.float32(value), doc, scores, docs, size)
            if size == len(scores):
                least = np.float64(scores[0])
        total[doc] = 0.0
    return size


@njit(cache=True, nogil=True)
def _from_postings(terms, starts, docs, total, best_scores, best_docs):
    """The best scores of either sign, by a walk over the query's postings; clears the sums."""
    size = 0
    for term in terms:
        for j in range(starts[term], starts[term + 1]):
            doc = docs[j]
            value = total[doc]
            if value != 0.0:
                size = _offer(np.float32(value), np.int64(doc), best_scores, best_docs, size)
                total[doc] = 0.0
    return size


@njit(cache=True, nogil=True)
def search(
    first, last, q_starts, q_terms, q_weights, starts, docs, weights, n_docs, signed, skip, out_scores, out_docs
):
    """For each query first … last - 1 its best documents and their scores; returns how many each has.

    total[d] = sum over terms t of q[t] * weights[t, d]; document skip[query] (-1: none) is left out. `signed` says
    that a score may be negative.
    """
    total, counts = np.zeros(n_docs, np.float64), np.zeros(last - first, np.int64)
    for query in range(first, last):
        terms = q_terms[q_starts[query] : q_starts[query + 1]]
        postings = 0
        for i in range(len(terms)):
            begin, end = starts[terms[i]], starts[terms[i] + 1]
            postings += end - begin
            _add(np.float64(q_weights[q_starts[query] + i]), docs, weights, begin, end, total)
        if skip[query] >= 0:
            total[skip[query]] = 0.0
        best_scores, best_docs = out_scores[query], out_docs[query]
        if signed or postings * 4 < n_docs:
            size = _from_postings(terms, starts, docs, total, best_scores, best_docs)
        else:
            size = _from_all(total, best_scores, best_docs)
        _unheap(best_scores, best_docs, size)
        counts[query - first] = size
    return counts
