"""Rows of W during training: a dense head and a sparse tail, with pending updates and a lazy soft threshold.

Columns are numbered by falling frequency. The head of row i is dense: its first head_sizes[head_level[i]] columns, none
at level 0. The tail is a list of (column, value). The right vectors of a batch are stored densely over the front, the
first columns of a head, so that there whole vectors are added and multiplied.

Updates are applied late: a row receives the updates of earlier batches, in their order, when a later batch reads it.

The L1 penalty is lazy too. Since the last `apply_threshold` the thresholds of all batches add up to
`pending_threshold`, the same for every entry: an entry stored as z has the value soft(z, pending_threshold). An entry
that a batch changes to v is stored as v + sign(v) · threshold, with the sum of the thresholds up to that batch. So the
value of an entry does not depend on when its row was updated, and shrinking entries that do not change costs nothing.

The state of a block is [end of the tails, end of the heads]. Tails are stored in `idx` and `val`, in segments of the
lengths `segment_sizes`. free_segments[c] is the first free segment of length segment_sizes[c], or -1, and the first
number of a free segment's `idx` is the next one. Free heads are linked in the same way, by `free_heads` and
`next_free`; `heads` is zero outside the heads in use. The passes over all rows are in `pair_shrinkage`.
"""

import numpy as np
from numba import njit

_TINY = np.float32(1e-37)
_ZERO = np.float32(0.0)
_END = np.uint32(0xFFFFFFFF)


@njit(cache=True, nogil=True, inline="always")
def _soft(z, s):
    """sign(z) · max(0, |z| - s)"""
    return z - min(max(z, -s), s)


@njit(cache=True, nogil=True)
def _soft_dot(w, s, index, value, slot, begin, end):
    """sum_k soft(w[index[slot, k]], s) · value[slot, k]; four partial sums hide the latency of the gathers."""
    a, b, c, d = _ZERO, _ZERO, _ZERO, _ZERO
    k = begin
    while k + 4 <= end:
        a += _soft(w[index[slot, k]], s) * value[slot, k]
        b += _soft(w[index[slot, k + 1]], s) * value[slot, k + 1]
        c += _soft(w[index[slot, k + 2]], s) * value[slot, k + 2]
        d += _soft(w[index[slot, k + 3]], s) * value[slot, k + 3]
        k += 4
    while k < end:
        a += _soft(w[index[slot, k]], s) * value[slot, k]
        k += 1
    return (a + b) + (c + d)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _dot(w, x, slot, t, n):
    """sum_j w[j] · x[slot, t, j]; the compiler chooses the order of the sum, which is the same in every run."""
    total = _ZERO
    for j in range(n):
        total += w[j] * x[slot, t, j]
    return total


@njit(cache=True, nogil=True)
def _add(w, c, x, slot, t, n):
    """w += c · x[slot, t]"""
    for j in range(n):
        w[j] += c * x[slot, t, j]


@njit(cache=True, nogil=True)
def _decode(z, s, out, n):
    """out = soft(z, s)"""
    for j in range(n):
        out[j] = _soft(z[j], s)


@njit(cache=True, nogil=True)
def _encode(v, s, out, n):
    """out = v + sign(v) · s, so that soft(out, s) = v; 0 is stored as s."""
    for j in range(n):
        out[j] = v[j] + np.copysign(s, v[j])


@njit(cache=True, nogil=True)
def _add_to_head(w, s, c, index, value, slot, begin, end):
    """Add c · value[slot, k] to the entries index[slot, k] of a head stored in w."""
    for k in range(begin, end):
        j = index[slot, k]
        v = _soft(w[j], s) + c * value[slot, k]
        w[j] = v + np.copysign(s, v)


@njit(cache=True, nogil=True)
def _prefetch(w, begin):
    """Read one number of every cache line: sequential reads are several times faster than the gathers that follow."""
    total = _ZERO
    for j in range(begin, len(w), 16):
        total += w[j]
    return total


@njit(cache=True, nogil=True)
def _add_to_tail(w, s, added, n, c, index, value, slot, begin, end):
    """The same for a tail scattered into w, where 0 means "no entry"; returns the end of `added`, the new columns."""
    for k in range(begin, end):
        j = index[slot, k]
        z = w[j]
        added[n] = j
        n += z == _ZERO
        v = _soft(z, s) + c * value[slot, k]
        z = v + np.copysign(s, v)
        w[j] = z if z != _ZERO else _TINY
    return n


@njit(cache=True, nogil=True)
def update_rows(
    at, end, rows, pending, new, pending_threshold,
    position, row_ptr, entry_step, entry_val, rate, threshold, split, rptr, ridx, rval, front,
    head_level, head_start, tail_start, tail_size, tail_capacity, head_sizes, front_level, heads,
    state, segment_sizes, free_segments, idx, val, scratch, added, buffer, out,
):  # fmt: skip
    """Apply the updates of the batches in the slots `pending` to rows[at:end], and multiply by the batch in slot `new`.

    out[t] += left[t, i] · (W[i] · right[t]) for the new batch. With new < 0 nothing is multiplied, and rows without a
    pending update are skipped. position[i, slot] becomes -1 when the update of row i is applied. Returns `end`, or
    the position of the row, still unchanged, for whose tail there is no free segment.
    """
    now = np.float32(pending_threshold)
    smallest, sink = max(now, _TINY), _ZERO
    while at < end:
        i = rows[at]
        n_pending = 0
        for slot in pending:
            n_pending += position[i, slot] >= 0
        if n_pending == 0 and new < 0:
            at += 1
            continue
        head, a, b, n = head_level[i], tail_start[i], tail_start[i] + tail_size[i], 0
        front_head = min(head, front_level)
        width = head_sizes[front_head]
        for k in range(a, b):
            scratch[idx[k]] = val[k]
        w = heads[head_start[i] : head_start[i] + head_sizes[head]]
        sink += _prefetch(w, width)
        if n_pending:
            for slot in pending:
                r = position[i, slot]
                if r >= 0:
                    s = np.float32(threshold[slot])
                    for e in range(row_ptr[slot, r], row_ptr[slot, r + 1]):
                        t = entry_step[slot, e]
                        if rate[slot, t] != 0.0:
                            c = np.float32(rate[slot, t] * entry_val[slot, e])
                            n = _add_to_tail(
                                scratch, s, added, n, c, ridx, rval, slot, split[slot, t, head], rptr[slot, t + 1]
                            )
            to, capacity = a, tail_capacity[i]
            if b - a + n > capacity:
                need = _count_above(idx, scratch, a, b, smallest) + _count_above(added, scratch, 0, n, smallest)
                if need >= capacity:
                    to, length = _allocate(need, state, segment_sizes, free_segments, idx)
                    if to < 0:
                        _clear(idx, scratch, a, b)
                        _clear(added, scratch, 0, n)
                        return at
                    tail_capacity[i] = length
            if head > 0:
                for slot in pending:
                    r = position[i, slot]
                    if r >= 0:
                        s = np.float32(threshold[slot])
                        _decode(w, s, buffer, width)
                        for e in range(row_ptr[slot, r], row_ptr[slot, r + 1]):
                            t = entry_step[slot, e]
                            if rate[slot, t] != 0.0:
                                c = np.float32(rate[slot, t] * entry_val[slot, e])
                                _add(buffer, c, front, slot, t, width)
                                _add_to_head(
                                    w, s, c, ridx, rval, slot, split[slot, t, front_head], split[slot, t, head]
                                )
                        _encode(buffer, s, w, width)
            for slot in pending:
                position[i, slot] = -1
            tail_start[i] = to
        if new >= 0:
            r = position[i, new]
            if head > 0:
                _decode(w, now, buffer, width)
            for e in range(row_ptr[new, r], row_ptr[new, r + 1]):
                t = entry_step[new, e]
                total = _ZERO
                if head > 0:
                    total += _dot(buffer, front, new, t, width)
                    total += _soft_dot(w, now, ridx, rval, new, split[new, t, front_head], split[new, t, head])
                if b > a or n > 0:
                    total += _soft_dot(scratch, now, ridx, rval, new, split[new, t, head], rptr[new, t + 1])
                out[t] += np.float64(entry_val[new, e]) * np.float64(total)
        if n_pending:
            to = tail_start[i]
            middle = _compress(idx, a, b, scratch, smallest, to, idx, val)
            tail_size[i] = _compress(added, 0, n, scratch, smallest, middle, idx, val) - to
            if to != a:
                _release(a, capacity, segment_sizes, free_segments, idx)
        else:
            _clear(idx, scratch, a, b)
        at += 1
    buffer[0] = sink  # a result that is used, so that the compiler keeps `_prefetch`
    return at


@njit(cache=True, nogil=True)
def _size_class(n, segment_sizes):
    """The class of the shortest segments for more than n entries, with an eighth to spare."""
    c = 0
    while segment_sizes[c] <= n + n // 8:
        c += 1
    return c


@njit(cache=True, nogil=True)
def _allocate(n, state, segment_sizes, free_segments, idx):
    """(start, length) of a segment for n entries: a free one of up to twice the length, or a new one at the end.

    Returns (-1, 0) if there is no memory left.
    """
    c = _size_class(n, segment_sizes)
    for other in range(c, min(c + 4, len(segment_sizes))):
        segment = free_segments[other]
        if segment >= 0:
            following = idx[segment]
            free_segments[other] = -1 if following == _END else np.int64(following)
            return segment, segment_sizes[other]
    segment = state[0]
    if segment + segment_sizes[c] > len(idx):
        return -1, 0
    state[0] = segment + segment_sizes[c]
    return segment, segment_sizes[c]


@njit(cache=True, nogil=True)
def _release(segment, length, segment_sizes, free_segments, idx):
    """Add a segment to the free ones."""
    c = 0
    while segment_sizes[c] != length:
        c += 1
    idx[segment] = _END if free_segments[c] < 0 else np.uint32(free_segments[c])
    free_segments[c] = segment


@njit(cache=True, nogil=True)
def _count_above(columns, w, begin, end, smallest):
    """The number of columns[begin:end] with |w| above `smallest`."""
    n = 0
    for k in range(begin, end):
        n += abs(w[columns[k]]) > smallest
    return n


@njit(cache=True, nogil=True)
def _clear(columns, w, begin, end):
    for k in range(begin, end):
        w[columns[k]] = _ZERO


@njit(cache=True, nogil=True)
def _compress(columns, begin, end, w, smallest, to, idx, val):
    """Write the entries columns[begin:end] of w with |w| above `smallest` to idx[to:] and val[to:], and clear w.

    Returns the end of what was written.
    """
    n = np.uint64(to)  # unsigned: no check for negative indices in the loop
    for k in range(np.uint64(begin), np.uint64(end)):
        j = columns[k]
        z = w[j]
        idx[n], val[n] = j, z
        n += np.uint64(abs(z) > smallest)
        w[j] = _ZERO
    return np.int64(n)


@njit(cache=True, nogil=True)
def shorten_segments(
    first, stride, tail_start, tail_size, tail_capacity, state, segment_sizes, free_segments, idx, val
):
    """Move tails to shorter segments if one is free or if at most half of the present one is needed."""
    for i in range(first, len(tail_start), stride):
        a, n = tail_start[i], tail_size[i]
        c = _size_class(n, segment_sizes)
        if segment_sizes[c] < tail_capacity[i] and (free_segments[c] >= 0 or 2 * segment_sizes[c] <= tail_capacity[i]):
            to, length = _allocate(n, state, segment_sizes, free_segments, idx)
            if to >= 0:
                for k in range(n):
                    idx[to + k], val[to + k] = idx[a + k], val[a + k]
                _release(a, tail_capacity[i], segment_sizes, free_segments, idx)
                tail_start[i], tail_capacity[i] = to, length


@njit(cache=True, nogil=True)
def compact(order, tail_start, tail_size, tail_capacity, segment_sizes, idx, val):
    """Move the tails of the rows in `order` (by rising start) together; returns the end of the last one."""
    end = 0
    for i in order:
        a, n = tail_start[i], tail_size[i]
        for k in range(n):
            idx[end + k], val[end + k] = idx[a + k], val[a + k]
        shortest = segment_sizes[_size_class(n, segment_sizes)]
        tail_start[i], tail_capacity[i] = end, min(tail_capacity[i], shortest)
        end += tail_capacity[i]
    return end
