"""Passes over all rows of W, stored as in `pair_segments`: the pending soft threshold, row norms and scales.

A call takes rows first, first + stride, first + 2 stride, …: those of one block.
"""

import numpy as np
from numba import njit

from .pair_rows import add_updates, first_threshold
from .pair_segments import (
    TINY,
    change_threshold,
    clear_tail,
    pack_head,
    prefetch_quarter,
    read_row,
    reserve,
    words_of_bits,
    write_row,
)

# digest of the imported kernels: 37078e4ef4b3f5fe

_ZERO = np.float32(0.0)


@njit(cache=True, nogil=True)
def apply_threshold(
    i, stride, pending, pending_threshold, min_fill, position, row_ptr, entry_step, entry_val, rate, threshold,
    split, rptr, ridx, rval, front, front_level, rows, head_sizes, state, segment_sizes, free_segments,
    words, chunks, values, scratch, columns, bits, packed,
):  # fmt: skip
    """Apply the updates of the batches `pending`, then the pending soft threshold; remove zeros and enlarge heads.

    The head of a row grows to the columns that its tail fills to at least `min_fill`, which takes no memory. Takes rows
    i, i + stride, …, and returns the row, still unchanged, for which there is no free segment, or a place after the
    last row.
    """
    now, dirty = np.float32(pending_threshold), 0
    while i < len(rows):
        row, following = rows[i], rows[min(i + stride, len(rows) - 1)]
        prefetch_quarter(following, 0, head_sizes, values)
        s = first_threshold(i, pending, position, threshold, now)
        read_row(row, s, head_sizes, words, chunks, values, scratch, columns, dirty)
        prefetch_quarter(following, 1, head_sizes, values)
        n, s = add_updates(
            i, row["level"], row["tail"], s, pending, position, row_ptr, entry_step, entry_val, rate, threshold,
            split, rptr, ridx, rval, front, front_level, head_sizes, scratch, columns,
        )  # fmt: skip
        if s != now:
            change_threshold(head_sizes[row["level"]], n, s, now, scratch, columns)
        kept = 0
        for k in range(n):
            columns[kept] = columns[k]
            is_kept = abs(scratch[columns[k]]) > TINY
            scratch[columns[k]] *= np.float32(is_kept)
            kept += is_kept
        prefetch_quarter(following, 2, head_sizes, values)
        level = _choose_level(row["level"], columns, kept, head_sizes, min_fill)
        dirty = head_sizes[level]
        if level > row["level"]:
            n, kept = kept, 0
            for k in range(n):
                columns[kept] = columns[k]
                kept += columns[k] >= dirty
        n_head, nonzeros = pack_head(dirty, _ZERO, _ZERO, scratch, bits, packed)
        need = words_of_bits(dirty) + n_head + 2 * kept
        if need > row["capacity"] and not reserve(row, need, state, segment_sizes, free_segments, words):
            clear_tail(scratch, columns, kept)
            break
        for slot in pending:
            position[i, slot] = -1
        prefetch_quarter(following, 3, head_sizes, values)
        write_row(
            row, level, n_head, nonzeros, kept, _ZERO, _ZERO, head_sizes, words, chunks, values,
            scratch, columns, bits, packed,
        )  # fmt: skip
        clear_tail(scratch, columns, kept)
        i += stride
    scratch[:dirty] = _ZERO
    return i


@njit(cache=True, nogil=True)
def _choose_level(current, columns, n, head_sizes, min_fill):
    """The highest level of which columns[:n] fill at least the share `min_fill` of what it adds to the current head."""
    highest = current
    while highest + 1 < len(head_sizes) and n >= min_fill * np.float64(head_sizes[highest + 1] - head_sizes[current]):
        highest += 1
    best = current
    for candidate in range(current + 1, highest + 1):
        length, inside = np.uint32(head_sizes[candidate]), 0
        for k in range(n):
            inside += columns[k] < length
        if np.float64(inside) >= min_fill * np.float64(head_sizes[candidate] - head_sizes[current]):
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
