"""Passes over all rows of W, stored as in `pair_segments`: the pending soft threshold, row norms and scales.

A call takes rows first, first + stride, first + 2 stride, …: those of one block.
"""

import numpy as np
from numba import njit

from .pair_rows import add_updates, count_pending
from .pair_segments import TINY, clear_tail, pack_head, prefetch_quarter, read_row, reserve, soft, words_of_bits, write_row

_ZERO = np.float32(0.0)


@njit(cache=True, nogil=True)
def apply_threshold(
    i, stride, pending, pending_threshold, min_fill, lefts, rights, rows, head_sizes, free, memory, buffers
):
    """Apply the updates of the batches `pending`, then the pending soft threshold; remove zeros and enlarge heads.

    The head of a row grows to the columns that its tail fills to at least `min_fill`, which takes no memory. Takes rows
    i, i + stride, …, and returns the row, still unchanged, for which there is no free segment, or at least their number.
    """
    position, scratch, columns = lefts[0], buffers[0], buffers[1]
    s, dirty = np.float32(pending_threshold), 0
    while i < len(rows):
        row, following = rows[i], rows[min(i + stride, len(rows) - 1)]
        prefetch_quarter(following, 0, head_sizes, memory)
        read_row(row, head_sizes, memory, buffers, dirty)
        prefetch_quarter(following, 1, head_sizes, memory)
        n, kept = row["tail"], 0
        if count_pending(i, pending, position):
            n = add_updates(i, row["level"], n, pending, lefts, rights, head_sizes, buffers)
        for j in range(head_sizes[row["level"]]):
            scratch[j] = soft(scratch[j], s)
        for k in range(n):
            j = columns[k]
            v = soft(scratch[j], s)
            scratch[j] = v
            columns[kept] = j
            kept += abs(v) > TINY
        prefetch_quarter(following, 2, head_sizes, memory)
        level = _choose_level(row["level"], columns[:kept], head_sizes, min_fill)
        dirty = head_sizes[level]
        if level > row["level"]:
            n, kept = kept, 0
            for k in range(n):
                columns[kept] = columns[k]
                kept += columns[k] >= dirty
        n_head = pack_head(dirty, TINY, buffers)
        if not reserve(row, words_of_bits(dirty) + n_head + 2 * kept, free, memory):
            clear_tail(scratch, columns, kept)
            break
        for slot in pending:
            position[i, slot] = -1
        prefetch_quarter(following, 3, head_sizes, memory)
        write_row(row, level, n_head, kept, TINY, head_sizes, memory, buffers)
        clear_tail(scratch, columns, kept)
        i += stride
    scratch[:dirty] = _ZERO
    return i


@njit(cache=True, nogil=True)
def _choose_level(current, columns, head_sizes, min_fill):
    """The highest level of which `columns` fill at least the share `min_fill` of what it adds to the current head."""
    n, highest = np.float64(len(columns)), current
    while highest + 1 < len(head_sizes) and n >= min_fill * np.float64(head_sizes[highest + 1] - head_sizes[current]):
        highest += 1
    inside = np.zeros(len(head_sizes), np.int64)
    if highest > current:
        for k in range(len(columns)):
            candidate = current + 1
            while candidate <= highest and columns[k] >= head_sizes[candidate]:
                candidate += 1
            if candidate <= highest:
                inside[candidate] += 1
    best, total = current, 0
    for candidate in range(current + 1, highest + 1):
        total += inside[candidate]
        if np.float64(total) >= min_fill * np.float64(head_sizes[candidate] - head_sizes[current]):
            best = candidate
    return best


@njit(cache=True, nogil=True)
def scale(first, stride, factor, rows, head_sizes, values):
    """W[i] *= factor[i]; no threshold may be pending."""
    for i in range(first, len(rows), stride):
        f, row = np.float32(factor[i]), rows[i]
        if f != np.float32(1.0):
            at = row["start"] + words_of_bits(head_sizes[row["level"]])
            for k in range(at, at + row["head"]):
                values[k] *= f
            at += row["head"]
            for k in range(at + 1, at + 2 * row["tail"], 2):
                values[k] *= f


@njit(cache=True, nogil=True)
def squared_norms(first, stride, rows, head_sizes, values, out):
    """out[i] = ‖W[i]‖²; no threshold may be pending."""
    for i in range(first, len(rows), stride):
        row, total = rows[i], 0.0
        at = row["start"] + words_of_bits(head_sizes[row["level"]])
        for k in range(at, at + row["head"]):
            total += np.float64(values[k]) * np.float64(values[k])
        at += row["head"]
        for k in range(at + 1, at + 2 * row["tail"], 2):
            total += np.float64(values[k]) * np.float64(values[k])
        out[i] = total
