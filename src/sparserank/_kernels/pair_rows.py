"""Rows of W during training: pending updates, a lazy soft threshold, and products with the vectors of a batch.

`pair_segments` describes how rows are stored. The right vectors of a batch are stored densely over the front, the first
columns of a head, so that there whole vectors are added and multiplied.

Updates are applied late: a row receives the updates of earlier batches, in their order, when a later batch reads it.

The L1 penalty is lazy too. Since the last `apply_threshold` the thresholds of all batches add up to
`pending_threshold`, the same for every entry: an entry stored as z has the value soft(z, pending_threshold). An entry
that a batch changes to v is stored as v + sign(v) · threshold, with the sum of the thresholds up to that batch. So the
value of an entry does not depend on when its row was updated, and shrinking entries that do not change costs nothing.
"""

import numpy as np
from numba import njit

from .instructions import prefetch
from .pair_segments import TINY, clear_tail, pack_head, prefetch_quarter, read_row, reserve, soft, words_of_bits, write_row

_ZERO = np.float32(0.0)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _soft_dot(w, s, index, value, slot, begin, end):
    """sum_k soft(w[index[slot, k]], s) · value[slot, k], in an order that the compiler chooses."""
    total, index, value = _ZERO, index[slot], value[slot]
    for k in range(np.uint64(begin), np.uint64(end)):  # unsigned: no check for negative indices in the loop
        total += soft(w[index[k]], s) * value[k]
    return total


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
        out[j] = soft(z[j], s)


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
        v = soft(w[j], s) + c * value[slot, k]
        w[j] = v + np.copysign(s, v)


@njit(cache=True, nogil=True)
def _add_to_tail(w, s, columns, n, c, index, value, slot, begin, end):
    """The same for a tail scattered into w, where 0 means "no entry"; returns the end of `columns`, which get the new ones."""
    for k in range(begin, end):
        j = index[slot, k]
        z = w[j]
        columns[n] = j
        n += z == _ZERO
        v = soft(z, s) + c * value[slot, k]
        z = v + np.copysign(s, v)
        w[j] = z if z != _ZERO else TINY
    return n


@njit(cache=True, nogil=True)
def add_updates(i, head, n, pending, lefts, rights, head_sizes, buffers):
    """Add the updates of the batches in the slots `pending` to row i, which has been read and has a tail of n columns.

    Returns the number of columns that the tail has then.
    """
    position, row_ptr, entry_step, entry_val, rate, threshold = lefts
    split, rptr, ridx, rval, front, front_level = rights
    scratch, columns, _, _, buffer = buffers
    front_head = min(head, front_level)
    width = head_sizes[front_head]
    for slot in pending:
        r = position[i, slot]
        if r >= 0:
            s = np.float32(threshold[slot])
            _decode(scratch, s, buffer, width)
            for e in range(row_ptr[slot, r], row_ptr[slot, r + 1]):
                t = entry_step[slot, e]
                if rate[slot, t] != 0.0:
                    c = np.float32(rate[slot, t] * entry_val[slot, e])
                    a, b = split[slot, t, front_head], split[slot, t, head]
                    _add(buffer, c, front, slot, t, width)
                    _add_to_head(scratch, s, c, ridx, rval, slot, a, b)
                    n = _add_to_tail(scratch, s, columns, n, c, ridx, rval, slot, b, rptr[slot, t + 1])
            _encode(buffer, s, scratch, width)
    return n


@njit(cache=True, nogil=True)
def count_pending(i, pending, position):
    """How many of the batches in the slots `pending` change row i."""
    n = 0
    for slot in pending:
        n += position[i, slot] >= 0
    return n


@njit(cache=True, nogil=True)
def update_rows(
    at, end, batch_rows, pending, new, pending_threshold, lefts, rights, rows, head_sizes, free, memory, buffers, out
):
    """Apply the updates of the batches in the slots `pending` to batch_rows[at:end], and multiply by the batch `new`.

    out[t] += left[t, i] · (W[i] · right[t]) for the new batch. With new < 0 nothing is multiplied, and rows without a
    pending update are skipped. position[i, slot] becomes -1 when the update of row i is applied. Returns `end`, or
    the position of the row, still unchanged, for which there is no free segment.
    """
    position, row_ptr, entry_step, entry_val, _, _ = lefts
    split, rptr, ridx, rval, front, front_level = rights
    scratch, columns, _, _, buffer = buffers
    now, dirty = np.float32(pending_threshold), 0
    smallest = max(now, TINY)
    while at < end:
        i = batch_rows[at]
        prefetch(position, batch_rows[min(at + 3, end - 1)] * position.shape[1])
        following = rows[batch_rows[min(at + 1, end - 1)]]
        prefetch_quarter(following, 0, head_sizes, memory)
        n_pending = count_pending(i, pending, position)
        if n_pending == 0 and new < 0:
            at += 1
            continue
        row = rows[i]
        head, n = row["level"], row["tail"]
        length, front_head = head_sizes[head], min(head, front_level)
        width = head_sizes[front_head]
        read_row(row, head_sizes, memory, buffers, dirty)
        dirty = length
        prefetch_quarter(following, 1, head_sizes, memory)
        if n_pending:
            n = add_updates(i, head, n, pending, lefts, rights, head_sizes, buffers)
            prefetch_quarter(following, 2, head_sizes, memory)
            n_head = pack_head(length, smallest, buffers)
            need = words_of_bits(length) + n_head + 2 * n
            if need > row["capacity"]:
                need += 2 * (_count_above(columns, scratch, n, smallest) + 1 - n)
            if not reserve(row, need, free, memory):
                clear_tail(scratch, columns, n)
                break
            for slot in pending:
                position[i, slot] = -1
            write_row(row, head, n_head, n, smallest, head_sizes, memory, buffers)
        prefetch_quarter(following, 3, head_sizes, memory)
        if new >= 0:
            r = position[i, new]
            _decode(scratch, now, buffer, width)
            for e in range(row_ptr[new, r], row_ptr[new, r + 1]):
                t = entry_step[new, e]
                total = _dot(buffer, front, new, t, width)
                last = rptr[new, t + 1] if n > 0 else split[new, t, head]
                total += _soft_dot(scratch, now, ridx, rval, new, split[new, t, front_head], last)
                out[t] += np.float64(entry_val[new, e]) * np.float64(total)
        clear_tail(scratch, columns, n)
        at += 1
    scratch[:dirty] = _ZERO
    return at


@njit(cache=True, nogil=True)
def _count_above(columns, w, n, smallest):
    """The number of columns[:n] with |w| above `smallest`."""
    total = 0
    for k in range(n):
        total += abs(w[columns[k]]) > smallest
    return total
