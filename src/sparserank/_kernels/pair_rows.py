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
from .pair_segments import (
    TINY,
    change_threshold,
    clear_tail,
    nonzero,
    pack_head,
    prefetch_quarter,
    read_row,
    reserve,
    words_of_bits,
    write_row,
)

# digest of the imported kernels: 823adb777c6298f3

_ZERO = np.float32(0.0)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _dot(w, x, slot, t, n):
    """sum_j w[j] · x[slot, t, j]; the compiler chooses the order of the sum, which is the same in every run."""
    total = _ZERO
    for j in range(n):
        total += w[j] * x[slot, t, j]
    return total


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _sparse_dot(w, index, value, slot, begin, end):
    """sum_k w[index[slot, k]] · value[slot, k]"""
    total = _ZERO
    for k in range(np.uint64(begin), np.uint64(end)):  # unsigned: no check for negative indices in the loop
        total += w[index[slot, k]] * value[slot, k]
    return total


@njit(cache=True, nogil=True)
def _add(w, c, x, slot, t, n):
    """w += c · x[slot, t]"""
    for j in range(n):
        w[j] += c * x[slot, t, j]


@njit(cache=True, nogil=True)
def _add_to_head(w, c, index, value, slot, begin, end):
    """w[index[slot, k]] += c · value[slot, k]"""
    for k in range(np.uint64(begin), np.uint64(end)):
        w[index[slot, k]] += c * value[slot, k]


@njit(cache=True, nogil=True)
def _add_to_tail(w, columns, n, c, index, value, slot, begin, end):
    """The same for a tail; returns the end of `columns`, which get the new ones."""
    for k in range(np.uint64(begin), np.uint64(end)):
        j = index[slot, k]
        columns[n] = j
        n += w[j] == _ZERO
        w[j] = nonzero(w[j] + c * value[slot, k])
    return n


@njit(cache=True, nogil=True, inline="always")
def first_threshold(i, pending, position, threshold, otherwise):
    """The threshold of the first of the batches in the slots `pending` that changes row i."""
    for slot in pending:
        if position[i, slot] >= 0:
            return np.float32(threshold[slot])
    return otherwise


@njit(cache=True, nogil=True, inline="always")
def add_updates(
    i, head, n, s, pending, position, row_ptr, entry_step, entry_val, rate, threshold,
    split, rptr, ridx, rval, front, front_level, head_sizes, scratch, columns,
):  # fmt: skip
    """Add the updates of the batches in the slots `pending` to row i, which was read under the threshold s.

    Its tail has n columns. Returns how many it has then, and the threshold of the last of these batches.
    """
    front_head = min(head, front_level)
    for slot in pending:
        r = position[i, slot]
        if r >= 0:
            now = np.float32(threshold[slot])
            if now != s:
                change_threshold(head_sizes[head], n, s, now, scratch, columns)
                s = now
            for e in range(row_ptr[slot, r], row_ptr[slot, r + 1]):
                t = entry_step[slot, e]
                if rate[slot, t] != 0.0:
                    c = np.float32(rate[slot, t] * entry_val[slot, e])
                    a, b = split[slot, t, front_head], split[slot, t, head]
                    _add(scratch, c, front, slot, t, head_sizes[front_head])
                    _add_to_head(scratch, c, ridx, rval, slot, a, b)
                    n = _add_to_tail(scratch, columns, n, c, ridx, rval, slot, b, rptr[slot, t + 1])
    return n, s


@njit(cache=True, nogil=True, _nrt=False)
def update_rows(
    at, end, batch_rows, pending, new, pending_threshold, position, row_ptr, entry_step, entry_val, rate, threshold,
    split, rptr, ridx, rval, front, front_level, rows, head_sizes, state, segment_sizes, free_segments,
    words, chunks, values, scratch, columns, bits, packed, out,
):  # fmt: skip
    """Apply the updates of the batches in the slots `pending` to batch_rows[at:end], and multiply by the batch `new`.

    out[t] += left[t, i] · (W[i] · right[t]) for the new batch. With new < 0 nothing is multiplied, and rows without a
    pending update are skipped. position[i, slot] becomes -1 when the update of row i is applied. Returns `end`, or
    the position of the row, still unchanged, for which there is no free segment.
    """
    now, dirty, unchanged = np.float32(pending_threshold), 0, np.float32(-1.0)
    while at < end:
        i = batch_rows[at]
        later = batch_rows[min(at + 3, end - 1)]
        prefetch(rows, later)
        prefetch(position, later * position.shape[1])
        following = rows[batch_rows[min(at + 1, end - 1)]]
        prefetch_quarter(following, 0, head_sizes, values)
        s = first_threshold(i, pending, position, threshold, unchanged)
        if s == unchanged and new < 0:
            at += 1
            continue
        row = rows[i]
        head, n = row["level"], row["tail"]
        length, front_head = head_sizes[head], min(head, front_level)
        read_row(row, now if s == unchanged else s, head_sizes, words, chunks, values, scratch, columns, dirty)
        dirty = length
        prefetch_quarter(following, 1, head_sizes, values)
        if s != unchanged:
            n, s = add_updates(
                i, head, n, s, pending, position, row_ptr, entry_step, entry_val, rate, threshold,
                split, rptr, ridx, rval, front, front_level, head_sizes, scratch, columns,
            )  # fmt: skip
            prefetch_quarter(following, 2, head_sizes, values)
            n_head, nonzeros = pack_head(length, s, now, scratch, bits, packed)
            need = words_of_bits(length) + n_head + 2 * n
            if need > row["capacity"]:
                need += 2 * (_count_above(columns, n, scratch, s, max(now, TINY)) + 1 - n)
            if need > row["capacity"] and not reserve(row, need, state, segment_sizes, free_segments, words):
                clear_tail(scratch, columns, n)
                break
            for slot in pending:
                position[i, slot] = -1
            write_row(
                row, head, n_head, nonzeros, n, s, now, head_sizes, words, chunks, values,
                scratch, columns, bits, packed,
            )  # fmt: skip
        prefetch_quarter(following, 3, head_sizes, values)
        if new >= 0:
            r = position[i, new]
            for e in range(row_ptr[new, r], row_ptr[new, r + 1]):
                t = entry_step[new, e]
                total = _dot(scratch, front, new, t, head_sizes[front_head])
                last = rptr[new, t + 1] if n > 0 else split[new, t, head]
                total += _sparse_dot(scratch, ridx, rval, new, split[new, t, front_head], last)
                out[t] += np.float64(entry_val[new, e]) * np.float64(total)
        clear_tail(scratch, columns, n)
        at += 1
    scratch[:dirty] = _ZERO
    return at


@njit(cache=True, nogil=True)
def _count_above(columns, n, w, s, smallest):
    """The number of columns[:n] with |w| + s above `smallest`."""
    total = 0
    for k in range(n):
        total += abs(w[columns[k]]) + s > smallest
    return total
