"""Rankings of scores: the best items of a row, and pairs in the wrong order, counted without listing them."""

import numpy as np
from numba import njit

_ALL = np.uint32(0xFFFFFFFF)
_SIGN = np.uint32(0x80000000)
_MAGNITUDE = np.uint32(0x7FFFFFFF)
_INFINITY = np.uint32(0x7F800000)
_HALF = np.uint64(32)
MAX_COUNTED = 12
"""Up to this many relevant places of a list, `top_gains` counts what ranks before each."""


@njit(cache=True, nogil=True)
def wrong_pairs(score, grade, retrieved, start):
    """wrong[q] and pairs[q]: pairs (i, j) of query q with grade_i > grade_j, and those of them with s_i < s_j.

    Rows start[q] to start[q + 1] belong to query q: the retrieved items, by falling score, then the others, which
    have no score. A pair whose better item was not retrieved is wrong. A run of equal scores is counted against a
    Fenwick tree over the grades before it enters the tree, so that an item meets those that score strictly more.
    """
    queries = len(start) - 1
    wrong = np.zeros(queries, dtype=np.int64)
    pairs = np.zeros(queries, dtype=np.int64)
    for q in range(queries):
        first, last = start[q], start[q + 1]
        level, below = _levels(grade[first:last])
        tree = np.zeros(last - first + 1, dtype=np.int64)
        i = first
        while i < last:
            end = i
            while end < last and retrieved[end] == retrieved[i] and (score[end] == score[i] or not retrieved[i]):
                end += 1
            if not retrieved[i]:
                _enter(tree, level, i - first, end - first)
            for k in range(i, end):
                wrong[q] += _count_to(tree, level[k - first] - 1)
                pairs[q] += below[k - first]
            if retrieved[i]:
                _enter(tree, level, i - first, end - first)
            i = end
    return wrong, pairs


@njit(cache=True, nogil=True)
def _levels(grade):
    """level[i] = 1 + how many distinct grades are below grade[i]; below[i] = how many items have a lower grade."""
    n = len(grade)
    order = np.argsort(grade)
    level = np.empty(n, dtype=np.int64)
    below = np.empty(n, dtype=np.int64)
    current, lower = 0, 0
    for k in range(n):
        if k == 0 or grade[order[k]] > grade[order[k - 1]]:
            current += 1
            lower = k
        level[order[k]] = current
        below[order[k]] = lower
    return level, below


@njit(cache=True, nogil=True)
def _enter(tree, level, first, last):
    for k in range(first, last):
        _add(tree, level[k])


@njit(cache=True, nogil=True)
def _add(tree, level):
    while level < len(tree):
        tree[level] += 1
        level += level & -level


@njit(cache=True, nogil=True)
def _count_to(tree, level):
    """How many were added at levels 1 to `level`."""
    count = 0
    while level > 0:
        count += tree[level]
        level -= level & -level
    return count


@njit(cache=True, nogil=True)
def sparse_rows(indptr, indices, data, t_indptr, t_indices, t_data, columns):
    """out[r, i] = sum_j A[r, j] B[j, i] for sparse A and B (B's rows are the columns of D: postings), dense out."""
    rows = len(indptr) - 1
    out = np.zeros((rows, columns), dtype=np.float32)
    for r in range(rows):
        for p in range(indptr[r], indptr[r + 1]):
            j, value = indices[p], data[p]
            for k in range(t_indptr[j], t_indptr[j + 1]):
                out[r, t_indices[k]] += value * t_data[k]
    return out


@njit(cache=True, nogil=True)
def class_rows(bits, first_query, label, member, member_start, tie, precision, error):
    """The average precision and the share of wrong pairs of each row of a block; returns -1, or the place of a NaN.

    Row r ranks every item for query q = first_query + r, itself left out; bits[r, j] are the bits of item j's float32
    score. Relevant are the other members of q's class: member[member_start[c]] to member[member_start[c + 1]]. Only
    they are sorted; the rest are binary searched into them. Rows whose class has one member are skipped.

    An item's key orders by score, then by `tie` (its id's place in rising order): the higher key ranks first.
    """
    rows, n = bits.shape
    for r in range(rows):
        q = first_query + r
        first, last = member_start[label[q]], member_start[label[q] + 1]
        m = last - first - 1
        if m == 0:
            continue
        key = np.empty(m, dtype=np.uint64)
        k = 0
        for p in range(first, last):
            j = member[p]
            if j != q:
                if _is_nan(bits[r, j]):
                    return r * n + j
                key[k] = _key(bits[r, j], tie[j])
                k += 1
        key.sort()
        run_end = _run_ends(key)
        at = np.zeros(m + 1, dtype=np.int64)
        wrong = 0
        for j in range(n):
            if label[j] != label[q]:
                if _is_nan(bits[r, j]):
                    return r * n + j
                here = _key(bits[r, j], tie[j])
                beaten = _lower(key, here)
                at[beaten] += 1
                wrong += beaten if beaten == m or key[beaten] >> _HALF != here >> _HALF else run_end[beaten]
        precision[q] = _average_precision(at, m)
        error[q] = wrong / (m * (n - m - 1))
    return -1


@njit(cache=True, nogil=True)
def _is_nan(bits):
    return (bits & _MAGNITUDE) > _INFINITY


@njit(cache=True, nogil=True)
def _key(bits, tie):
    """The score's bits, made to order as numbers do (and -0 as 0), above the tie rank."""
    if bits == _SIGN:
        bits = np.uint32(0)
    ordered = bits ^ (_ALL if bits & _SIGN else _SIGN)
    return (np.uint64(ordered) << _HALF) | np.uint64(tie)


@njit(cache=True, nogil=True)
def _lower(key, here):
    """The number of sorted keys below `here`, by halving without a branch to mispredict."""
    base, length = 0, len(key)
    while length > 1:
        half = length >> 1
        base += half if key[base + half - 1] < here else 0
        length -= half
    return base + (1 if key[base] < here else 0)


@njit(cache=True, nogil=True)
def _run_ends(key):
    """end[i] = where the run of keys with key[i]'s score ends."""
    m = len(key)
    end = np.empty(m, dtype=np.int64)
    for back in range(m):
        i = m - 1 - back
        end[i] = end[i + 1] if i + 1 < m and key[i] >> _HALF == key[i + 1] >> _HALF else i + 1
    return end


@njit(cache=True, nogil=True)
def _average_precision(at, m):
    """From at[i] = the irrelevant items that rank above exactly the i lowest relevant ones."""
    above = 0
    total = 0.0
    for better in range(m):
        above += at[m - better]
        total += (better + 1) / (better + 1 + above)
    return total / m


@njit(cache=True, nogil=True)
def top_gains(start, scores, grade, out, ideal):
    """out[i, r] = the grade at rank r + 1 of list i by score; ideal[i, r] = that of the best order; grades are >= 0.

    List i is at start[i] … start[i + 1] - 1. Ties go to the earlier place. A place at -inf is not ranked. In a list
    with few relevant places, what ranks before each is counted, which is faster than to find the best places of all.
    """
    relevant = np.empty(MAX_COUNTED, np.int64)
    for i in range(len(start) - 1):
        first, last, n = start[i], start[i + 1], 0
        for p in range(first, last):
            if grade[p] > 0.0:
                if n < MAX_COUNTED:
                    relevant[n] = p
                n += 1
                _insert(grade[p], ideal[i])
        if n > MAX_COUNTED:
            _rank_all(scores[first:last], grade[first:last], out[i])
            continue
        for p in relevant[:n]:
            if scores[p] > -np.inf:
                rank = _count_above(scores[first:last], scores[p], p - first)
                if rank < out.shape[1]:
                    out[i, rank] = grade[p]


@njit(cache=True, nogil=True)
def _insert(value, falling):
    """Insert a value into falling values, the last of which leaves."""
    at = len(falling) - 1
    if value > falling[at]:
        while at > 0 and value > falling[at - 1]:
            falling[at] = falling[at - 1]
            at -= 1
        falling[at] = value


@njit(cache=True, nogil=True)
def _count_above(scores, score, place):
    """How many places rank before this one."""
    count = 0
    for p in range(place):
        count += scores[p] >= score
    for p in range(place + 1, len(scores)):
        count += scores[p] > score
    return count


@njit(cache=True, nogil=True)
def _rank_all(scores, grade, out):
    """out[r] = the grade at rank r + 1."""
    k, filled = len(out), 0
    top_score, top_place = np.full(k, -np.inf), np.empty(k, np.int64)
    for p in range(len(scores)):
        s = scores[p]
        if s > top_score[k - 1]:
            at = k - 1
            while at > 0 and s > top_score[at - 1]:
                top_score[at], top_place[at] = top_score[at - 1], top_place[at - 1]
                at -= 1
            top_score[at], top_place[at] = s, p
            filled = min(filled + 1, k)
    for rank in range(filled):
        out[rank] = grade[top_place[rank]]
