"""Algorithm 1 on a fixed pattern, step by step: only the entries that are there change.

The batched form of `pair_batch` is not possible here: an update changes only entries of the pattern, so its effect on a
later margin does not follow from Gram matrices. A row has a head, its first sizes[level[i]] columns, stored dense with
a mask `inside` of the columns in the pattern, and a tail, a list of ascending columns.
"""

import numpy as np
from numba import njit

_ZERO = np.float32(0.0)


@njit(cache=True, nogil=True)
def lay_out(ptr, idx, val, sizes, fill, level, place, start, size, heads, inside, tail_idx, tail_val):
    """Split the rows of a CSR pattern with rising indices into heads and tails; returns (head, tail) ends.

    With empty `heads` and `tail_idx` only level and the ends are found.
    """
    head_end, tail_end = 0, 0
    for i in range(len(ptr) - 1):
        a, b = ptr[i], ptr[i + 1]
        best, inner, k = 0, a, a
        for candidate in range(1, len(sizes)):
            while k < b and idx[k] < sizes[candidate]:
                k += 1
            if np.float64(k - a) >= fill * np.float64(sizes[candidate]):
                best, inner = candidate, k
        level[i], place[i], start[i], size[i] = best, head_end, tail_end, b - inner
        if len(heads):
            for k in range(a, inner):
                heads[head_end + idx[k]], inside[head_end + idx[k]] = val[k], np.float32(1.0)
        if len(tail_idx):
            for k in range(inner, b):
                tail_idx[tail_end + k - inner], tail_val[tail_end + k - inner] = idx[k], val[k]
        head_end += sizes[best]
        tail_end += b - inner
    return head_end, tail_end


@njit(cache=True, nogil=True)
def _find(idx, low, high, column):
    """The first place in idx[low:high], which rises, that is not below column."""
    step = 1
    while low + step < high and idx[low + step] < column:
        low += step
        step *= 2
    high = min(high, low + step + 1)
    while low < high:
        middle = (low + high) // 2
        if idx[middle] < column:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def _head_dot(w, index, value, end):
    a, b, c, d, k = _ZERO, _ZERO, _ZERO, _ZERO, 0
    while k + 4 <= end:
        a += w[index[k]] * value[k]
        b += w[index[k + 1]] * value[k + 1]
        c += w[index[k + 2]] * value[k + 2]
        d += w[index[k + 3]] * value[k + 3]
        k += 4
    while k < end:
        a += w[index[k]] * value[k]
        k += 1
    return (a + b) + (c + d)


@njit(cache=True, nogil=True)
def _difference(plus, minus, ptr, idx, val, out_idx, out_val):
    """x[plus] - x[minus] with rising indices, zeros left out; returns its length."""
    a, a_end, b, b_end, n = ptr[plus], ptr[plus + 1], ptr[minus], ptr[minus + 1], 0
    while a < a_end or b < b_end:
        if b >= b_end or (a < a_end and idx[a] < idx[b]):
            out_idx[n], out_val[n] = idx[a], val[a]
            a += 1
            n += 1
        elif a >= a_end or idx[b] < idx[a]:
            out_idx[n], out_val[n] = idx[b], -val[b]
            b += 1
            n += 1
        else:
            out_idx[n], out_val[n] = idx[a], val[a] - val[b]
            n += val[a] != val[b]
            a += 1
            b += 1
    return n


@njit(cache=True, nogil=True)
def steps(
    first, eta, shrink, every, still, required, learn, query, better, worse,
    q_ptr, q_idx, q_val, d_ptr, d_idx, d_val,
    sizes, level, place, start, size, heads, inside, tail_idx, tail_val,
    right_idx, right_val, split,
):  # fmt: skip
    """Take the triples in order; eta[t] is the rate of step t, still[t] the part of its margin that W does not change.

    After step first + t + 1, if that is a multiple of `every`, all entries shrink by shrink[t]. With learn = False
    nothing changes. Returns the number of violations and the summed loss.
    """
    violated, loss = 0, 0.0
    for t in range(len(query)):
        n = _difference(better[t], worse[t], d_ptr, d_idx, d_val, right_idx, right_val)
        k = 0
        for candidate in range(len(sizes)):
            while k < n and right_idx[k] < sizes[candidate]:
                k += 1
            split[candidate] = k
        margin = still[t]
        for e in range(q_ptr[query[t]], q_ptr[query[t] + 1]):
            i = q_idx[e]
            w = heads[place[i] : place[i] + sizes[level[i]]]
            total = _head_dot(w, right_idx, right_val, split[level[i]])
            at, end = start[i], start[i] + size[i]
            for k in range(split[level[i]], n):
                if at == end:
                    break
                at = _find(tail_idx, at, end, right_idx[k])
                if at < end and tail_idx[at] == right_idx[k]:
                    total += tail_val[at] * right_val[k]
            margin += np.float64(q_val[e]) * np.float64(total)
        if margin < required:
            violated += 1
            loss += required - margin
            if learn:
                for e in range(q_ptr[query[t]], q_ptr[query[t] + 1]):
                    i = q_idx[e]
                    c = np.float32(eta[t] * q_val[e])
                    for k in range(split[level[i]]):
                        j = place[i] + right_idx[k]
                        heads[j] += c * right_val[k] * inside[j]
                    at, end = start[i], start[i] + size[i]
                    for k in range(split[level[i]], n):
                        if at == end:
                            break
                        at = _find(tail_idx, at, end, right_idx[k])
                        if at < end and tail_idx[at] == right_idx[k]:
                            tail_val[at] += c * right_val[k]
        if learn and (first + t + 1) % every == 0 and shrink[t] > 0.0:
            s = np.float32(shrink[t])
            for k in range(len(heads)):
                heads[k] -= min(max(heads[k], -s), s)
            for k in range(len(tail_val)):
                tail_val[k] -= min(max(tail_val[k], -s), s)
    return violated, loss
