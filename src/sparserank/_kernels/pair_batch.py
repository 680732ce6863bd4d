"""One batch of triples: its vectors, its rows of W, its Gram matrices, and the violations of Algorithm 1.

Step t of a batch changes W by rate[t] · left_t right_tᵀ, so within the batch
margin_t = left_tᵀ W right_t + sum over s < t of rate[s] (left_s · left_t)(right_s · right_t).
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def gather(rows, ptr, idx, val, out_ptr, out_idx, out_val):
    """Copy rows of a CSR matrix: out[t] = x[rows[t]]."""
    n = 0
    for t in range(len(rows)):
        out_ptr[t] = n
        for k in range(ptr[rows[t]], ptr[rows[t] + 1]):
            out_idx[n], out_val[n] = idx[k], val[k]
            n += 1
    out_ptr[len(rows)] = n


@njit(cache=True, nogil=True)
def subtract(plus, minus, ptr, idx, val, out_ptr, out_idx, out_val):
    """Differences of rows of a CSR matrix with rising indices: out[t] = x[plus[t]] - x[minus[t]], without zeros."""
    n = 0
    for t in range(len(plus)):
        a, a_end = ptr[plus[t]], ptr[plus[t] + 1]
        b, b_end = ptr[minus[t]], ptr[minus[t] + 1]
        out_ptr[t] = n
        while a < a_end and b < b_end:
            i, j = idx[a], idx[b]
            if i < j:
                out_idx[n], out_val[n] = i, val[a]
                a += 1
                n += 1
            elif j < i:
                out_idx[n], out_val[n] = j, -val[b]
                b += 1
                n += 1
            else:
                out_idx[n], out_val[n] = i, val[a] - val[b]
                n += val[a] != val[b]
                a += 1
                b += 1
        while a < a_end:
            out_idx[n], out_val[n] = idx[a], val[a]
            a += 1
            n += 1
        while b < b_end:
            out_idx[n], out_val[n] = idx[b], -val[b]
            b += 1
            n += 1
    out_ptr[len(plus)] = n


@njit(cache=True, nogil=True)
def split_at(steps, ptr, idx, sizes, out):
    """out[t, level] = the position in row t of the first index that is not below sizes[level]."""
    for t in range(steps):
        k = ptr[t]
        for level in range(len(sizes)):
            while k < ptr[t + 1] and idx[k] < sizes[level]:
                k += 1
            out[t, level] = k


@njit(cache=True, nogil=True)
def group_by_row(steps, ptr, idx, val, n_blocks, position, slot, rows, row_ptr, entry_step, entry_val, block_ptr):
    """Group the left vectors by row of W: row rows[r] occurs in the steps entry_step[row_ptr[r]:row_ptr[r + 1]].

    Row i belongs to block i % n_blocks, and the rows of a block are contiguous. position[:, slot] is -1 on entry, and
    position[i, slot] = r for the rows of the batch on return. Returns the number of rows.
    """
    n_rows = 0
    for k in range(ptr[0], ptr[steps]):
        i = idx[k]
        if position[i, slot] < 0:
            position[i, slot] = 0
            rows[n_rows] = i
            n_rows += 1
        position[i, slot] += 1
    block_ptr[: n_blocks + 1] = 0
    for r in range(n_rows):
        block_ptr[rows[r] % n_blocks + 1] += 1
    for b in range(n_blocks):
        block_ptr[b + 1] += block_ptr[b]
    fill = block_ptr[:n_blocks].copy()
    ordered = np.empty(n_rows, np.int64)
    for r in range(n_rows):
        b = rows[r] % n_blocks
        ordered[fill[b]] = rows[r]
        fill[b] += 1
    n = 0
    for r in range(n_rows):
        rows[r] = ordered[r]
        row_ptr[r] = n
        n += position[ordered[r], slot]
        position[ordered[r], slot] = r
    row_ptr[n_rows] = n
    at = row_ptr[:n_rows].copy()
    for t in range(steps):
        for k in range(ptr[t], ptr[t + 1]):
            r = position[idx[k], slot]
            entry_step[at[r]], entry_val[at[r]] = t, val[k]
            at[r] += 1
    return n_rows


@njit(cache=True, nogil=True)
def scatter_front(steps, ptr, idx, val, rank, out):
    """out[t, rank[j]] = x_t[j] for the columns of rank ≥ 0, 0 elsewhere."""
    for t in range(steps):
        for j in range(out.shape[1]):
            out[t, j] = np.float32(0.0)
        for k in range(ptr[t], ptr[t + 1]):
            if rank[idx[k]] >= 0:
                out[t, rank[idx[k]]] = val[k]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _front_product(front, t, s):
    total = np.float32(0.0)
    for j in range(front.shape[1]):
        total += front[t, j] * front[s, j]
    return total


@njit(cache=True, nogil=True)
def gram(steps, ptr, idx, val, rank, front, head, item_step, item_val, link, out):
    """out[t, s] = x_t · x_s for s ≤ t: columns of rank ≥ 0 from `front`, the others from linked lists by column.

    `head` is -1 everywhere, on entry and on return.
    """
    for t in range(steps):
        for s in range(t + 1):
            out[t, s] = _front_product(front, t, s)
    n = 0
    for t in range(steps):
        for k in range(ptr[t], ptr[t + 1]):
            c, v = idx[k], val[k]
            if rank[c] >= 0:
                continue
            item_step[n], item_val[n], link[n] = t, v, head[c]
            head[c] = n
            e = n
            while e >= 0:
                out[t, item_step[e]] += v * item_val[e]
                e = link[e]
            n += 1
    for k in range(ptr[0], ptr[steps]):
        head[idx[k]] = -1


@njit(cache=True, nogil=True)
def find_violations(steps, margin, eta, required, left, right, rate):
    """rate[t] = eta[t] if margin_t < required, else 0, step by step; on return margin[t] is exact.

    Returns the number of violations, the summed hinge loss, and the squared Frobenius norm of the change of W.
    """
    violated, loss, change = 0, 0.0, 0.0
    for t in range(steps):
        m, pull = margin[t], 0.0
        for s in range(t):
            if rate[s] != 0.0:
                pull += rate[s] * np.float64(left[t, s]) * np.float64(right[t, s])
        m += pull
        margin[t] = m
        rate[t] = 0.0
        if m < required:
            rate[t] = eta[t]
            violated += 1
            loss += required - m
            change += eta[t] * (2.0 * pull + eta[t] * np.float64(left[t, t]) * np.float64(right[t, t]))
    return violated, loss, change
