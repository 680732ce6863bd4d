"""Passes over all rows of W, stored as in `pair_rows`: the pending soft threshold, row norms and scales, and the copy.

A call takes rows first, first + stride, first + 2 stride, …: those of one block.
"""

import numpy as np
from numba import njit

_ZERO = np.float32(0.0)


@njit(cache=True, nogil=True, inline="always")
def _soft(z, s):
    """sign(z) · max(0, |z| - s)"""
    return z - min(max(z, -s), s)


@njit(cache=True, nogil=True)
def apply_threshold(
    first, stride, pending_threshold, min_fill, head_level, head_start, head_sizes, heads, state, free_heads,
    next_free, tail_start, tail_size, idx, val, head_nonzeros,
):  # fmt: skip
    """Apply the pending soft threshold to every entry, remove zeros from the tails, and enlarge heads.

    The head of row i grows to the columns that its tail fills to at least min_fill[i]. On return head_nonzeros[i] is
    the number of nonzeros of the head.
    """
    s = np.float32(pending_threshold)
    for i in range(first, len(head_level), stride):
        a, nonzero = tail_start[i], 0
        for k in range(a, a + tail_size[i]):
            v = _soft(val[k], s)
            idx[a + nonzero], val[a + nonzero] = idx[k], v
            nonzero += v != _ZERO
        tail_size[i] = nonzero
        if head_level[i] > 0:
            w, count = heads[head_start[i] : head_start[i] + head_sizes[head_level[i]]], 0
            for j in range(len(w)):
                v = _soft(w[j], s)
                w[j] = v
                count += v != _ZERO
            head_nonzeros[i] = count
        target = _choose_level(head_level[i], idx[a : a + nonzero], head_sizes, min_fill[i])
        if target > head_level[i] and _grow_head(
            i, target, head_level, head_start, head_sizes, heads, state, free_heads, next_free
        ):
            kept, length = 0, head_sizes[target]
            for k in range(a, a + nonzero):
                if idx[k] < length:
                    heads[head_start[i] + idx[k]] = val[k]
                else:
                    idx[a + kept], val[a + kept] = idx[k], val[k]
                    kept += 1
            head_nonzeros[i] += nonzero - kept
            tail_size[i] = kept


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
def _grow_head(i, target, head_level, head_start, head_sizes, heads, state, free_heads, next_free):
    """Move the head of row i to a longer one of level `target`; returns whether there was memory for it."""
    new = free_heads[target]
    if new >= 0:
        free_heads[target] = next_free[new // head_sizes[1]]
    else:
        new = state[1]
        if new + head_sizes[target] > len(heads):
            return False
        state[1] = new + head_sizes[target]
    if head_level[i] > 0:
        old = head_start[i]
        for j in range(head_sizes[head_level[i]]):
            heads[new + j] = heads[old + j]
            heads[old + j] = _ZERO
        next_free[old // head_sizes[1]] = free_heads[head_level[i]]
        free_heads[head_level[i]] = old
    head_start[i], head_level[i] = new, target
    return True


@njit(cache=True, nogil=True)
def scale(first, stride, factor, head_level, head_start, head_sizes, heads, tail_start, tail_size, val):
    """W[i] *= factor[i]; no threshold may be pending."""
    for i in range(first, len(head_level), stride):
        f = np.float32(factor[i])
        if f != np.float32(1.0):
            for j in range(head_start[i], head_start[i] + head_sizes[head_level[i]]):
                heads[j] *= f
            for k in range(tail_start[i], tail_start[i] + tail_size[i]):
                val[k] *= f


@njit(cache=True, nogil=True)
def squared_norms(first, stride, head_level, head_start, head_sizes, heads, tail_start, tail_size, val, out):
    """out[i] = ‖W[i]‖²; no threshold may be pending."""
    for i in range(first, len(head_level), stride):
        total = 0.0
        for j in range(head_start[i], head_start[i] + head_sizes[head_level[i]]):
            total += np.float64(heads[j]) * np.float64(heads[j])
        for k in range(tail_start[i], tail_start[i] + tail_size[i]):
            total += np.float64(val[k]) * np.float64(val[k])
        out[i] = total


@njit(cache=True, nogil=True)
def copy_rows(
    first, stride, pending_threshold, head_level, head_start, head_sizes, heads,
    tail_start, tail_size, idx, val, ptr, out_idx, out_val,
):  # fmt: skip
    """Copy the nonzeros of W[i], with the pending threshold applied, to out[ptr[i]:]; returns their number by row.

    With an empty `out_idx` they are only counted.
    """
    s, counting = np.float32(pending_threshold), len(out_idx) == 0
    counts = np.zeros(len(head_level), np.int64)
    for i in range(first, len(head_level), stride):
        n = ptr[i]
        for j in range(head_sizes[head_level[i]]):
            v = _soft(heads[head_start[i] + j], s)
            if v != _ZERO:
                if not counting:
                    out_idx[n], out_val[n] = j, v
                n += 1
        for k in range(tail_start[i], tail_start[i] + tail_size[i]):
            v = _soft(val[k], s)
            if v != _ZERO:
                if not counting:
                    out_idx[n], out_val[n] = idx[k], v
                n += 1
        counts[i] = n - ptr[i]
    return counts
