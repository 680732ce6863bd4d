"""Passes over all rows of W, stored as in `pair_segments`: the pending soft threshold, row norms and scales.

A call takes rows first, first + stride, first + 2 stride, …: those of one block.
"""

import numpy as np
from numba import njit

from .pair_segments import clear_tail, pack_head, prefetch_quarter, read_row, soft, words_of_bits, write_row

_ZERO = np.float32(0.0)


@njit(cache=True, nogil=True)
def apply_threshold(
    first, stride, pending_threshold, min_fill, rows, head_sizes, words, chunks, values, scratch, columns, bits, packed
):
    """Apply the pending soft threshold to every entry, remove zeros, and enlarge heads.

    The head of a row grows to the columns that its tail fills to at least `min_fill`: a row never needs more memory.
    """
    s, dirty = np.float32(pending_threshold), 0
    for i in range(first, len(rows), stride):
        row = rows[i]
        following = rows[min(i + stride, len(rows) - 1)]
        prefetch_quarter(following, 0, head_sizes, values)
        read_row(row, head_sizes, words, chunks, values, scratch, columns, dirty)
        prefetch_quarter(following, 1, head_sizes, values)
        for j in range(head_sizes[row["level"]]):
            scratch[j] = soft(scratch[j], s)
        n, kept = row["tail"], 0
        for k in range(n):
            j = columns[k]
            v = soft(scratch[j], s)
            scratch[j] = v
            columns[kept] = j
            kept += v != _ZERO
        prefetch_quarter(following, 2, head_sizes, values)
        level = _choose_level(row["level"], columns[:kept], head_sizes, min_fill)
        dirty = head_sizes[level]
        if level > row["level"]:
            n, kept = kept, 0
            for k in range(n):
                columns[kept] = columns[k]
                kept += columns[k] >= dirty
        n_head = pack_head(scratch, dirty, _ZERO, bits, packed)
        prefetch_quarter(following, 3, head_sizes, values)
        write_row(
            row, level, n_head, kept, head_sizes, words, chunks, values, scratch, columns, _ZERO, bits, packed
        )
        clear_tail(scratch, columns, kept)
    scratch[:dirty] = _ZERO


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
