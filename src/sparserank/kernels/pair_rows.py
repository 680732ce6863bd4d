"""Rows of W while it is learned: a dense head and a sparse tail, visited once a batch.

Columns are numbered by falling frequency, so a row's head – its first sizes[level[i]] columns, none at level 0 – is
well filled, and its tail is a list of (column, value).

The L1 penalty is paid late. Since the last settling every entry owes the same `debt`, the sum of the thresholds of the
batches since then: an entry stored as z stands for soft(z, debt). One that changes is stored with the debt added to its
size, z = v + sign(v) · debt. So a batch touches only the entries it changes; the others shrink by doing nothing.

A block's state is [end of its lists, end of its heads]. Heads live in `heads`, which is zero where nobody lives;
free[level] begins a chain of free places of that size, -1 ends it, and `links` holds the rest of the chain.
"""

import numpy as np
from numba import njit

_TINY = np.float32(1e-37)
_ZERO = np.float32(0.0)


@njit(cache=True, nogil=True, inline="always")
def _soft(z, s):
    """sign(z) · max(0, |z| - s)"""
    return z - min(max(z, -s), s)


@njit(cache=True, nogil=True)
def _soft_dot(w, s, index, value, begin, end):
    """sum of soft(w[index], s) · value; four sums side by side, because gather instructions are slower than loads."""
    a, b, c, d = _ZERO, _ZERO, _ZERO, _ZERO
    k = begin
    while k + 4 <= end:
        a += _soft(w[index[k]], s) * value[k]
        b += _soft(w[index[k + 1]], s) * value[k + 1]
        c += _soft(w[index[k + 2]], s) * value[k + 2]
        d += _soft(w[index[k + 3]], s) * value[k + 3]
        k += 4
    while k < end:
        a += _soft(w[index[k]], s) * value[k]
        k += 1
    return (a + b) + (c + d)


@njit(cache=True, nogil=True)
def _add_to_head(w, s, c, index, value, begin, end):
    """soft(w, s) += c · value at the given places."""
    for k in range(begin, end):
        j = index[k]
        v = _soft(w[j], s) + c * value[k]
        w[j] = v + np.copysign(s, v)


@njit(cache=True, nogil=True)
def _add_to_tail(w, s, fresh, n, c, index, value, begin, end):
    """The same for a tail spread out in w, where 0 means "not in it"; columns that come in are listed in fresh."""
    for k in range(begin, end):
        j = index[k]
        z = w[j]
        fresh[n] = j
        n += z == _ZERO
        v = _soft(z, s) + c * value[k]
        z = v + np.copysign(s, v)
        w[j] = z if z != _ZERO else _TINY
    return n


@njit(cache=True, nogil=True)
def visit(
    at, end, todo_row, todo_old, todo_new,
    old_ptr, old_step, old_val, old_rate, old_split, old_rptr, old_ridx, old_rval,
    new_ptr, new_step, new_val, new_split, new_rptr, new_ridx, new_rval,
    level, place, start, size, cap, debt, tau,
    sizes, heads, state, idx, val, scratch, fresh, out,
):  # fmt: skip
    """Visit rows at … end - 1 of the plan: add the old batch, shrink by tau, and take the new batch's products.

    out[t] += left[t, i] · (W[i] · right[t]) for the new batch. Returns `end`, or the row before which the lists were
    full (nothing of that row has been done).
    """
    owed, after = np.float32(debt), np.float32(debt + tau)
    least = max(after, _TINY)
    while at < end:
        i, old, new = todo_row[at], todo_old[at], todo_new[at]
        head, a, b, n = level[i], start[i], start[i] + size[i], 0
        for k in range(a, b):
            scratch[idx[k]] = val[k]
        if old >= 0:
            for e in range(old_ptr[old], old_ptr[old + 1]):
                t = old_step[e]
                if old_rate[t] != 0.0:
                    c = np.float32(old_rate[t] * old_val[e])
                    begin = old_split[t, head]
                    n = _add_to_tail(scratch, owed, fresh, n, c, old_ridx, old_rval, begin, old_rptr[t + 1])
            alive = 0
            for k in range(n):
                j = fresh[k]
                z = scratch[j]
                keep = abs(z) > least
                fresh[alive] = j
                scratch[j] = z if keep else _ZERO
                alive += keep
            if b + alive > a + cap[i]:
                to, need = a, _live(idx, scratch, a, b, least) + alive
                if need > cap[i]:
                    to = state[0]
                    if to + need + need // 4 + 8 > len(idx):
                        for k in range(alive):
                            scratch[fresh[k]] = _ZERO
                        for k in range(a, b):
                            scratch[idx[k]] = _ZERO
                        return at
                    start[i], cap[i] = to, need + need // 4 + 8
                    state[0] = to + cap[i]
                b = _keep_live(idx, scratch, a, b, to, least)
                a = to
            for k in range(alive):
                idx[b + k] = fresh[k]
            b += alive
            w = heads[place[i] : place[i] + sizes[head]]
            for e in range(old_ptr[old], old_ptr[old + 1]):
                t = old_step[e]
                if old_rate[t] != 0.0:
                    c = np.float32(old_rate[t] * old_val[e])
                    _add_to_head(w, owed, c, old_ridx, old_rval, old_rptr[t], old_split[t, head])
        if new >= 0:
            w = heads[place[i] : place[i] + sizes[head]]
            for e in range(new_ptr[new], new_ptr[new + 1]):
                t = new_step[e]
                middle = new_split[t, head]
                total = _soft_dot(w, after, new_ridx, new_rval, new_rptr[t], middle)
                if b > a:
                    total += _soft_dot(scratch, after, new_ridx, new_rval, middle, new_rptr[t + 1])
                out[t] += np.float64(new_val[e]) * np.float64(total)
        for k in range(a, b):
            j = idx[k]
            val[k] = scratch[j]
            scratch[j] = _ZERO
        size[i] = b - a
        at += 1
    return at


@njit(cache=True, nogil=True)
def _live(idx, w, begin, end, least):
    """How many entries of a list, spread out in w, are still alive."""
    n = 0
    for k in range(begin, end):
        n += abs(w[idx[k]]) > least
    return n


@njit(cache=True, nogil=True)
def _keep_live(idx, w, begin, end, to, least):
    """Copy the columns that are alive to `to` (which may be `begin`), clear the others; returns where the copy ends."""
    for k in range(begin, end):
        j = idx[k]
        z = w[j]
        keep = abs(z) > least
        idx[to] = j
        w[j] = z if keep else _ZERO
        to += keep
    return to


@njit(cache=True, nogil=True)
def settle(first, stride, debt, fill, level, place, sizes, heads, state, free, links, start, size, idx, val, filled):
    """Let every entry of a block pay what it owes, drop what has died, and lengthen heads where that saves room.

    filled[i] = the nonzeros of row i's head.
    """
    s = np.float32(debt)
    for i in range(first, len(level), stride):
        a, n, alive = start[i], size[i], 0
        for k in range(a, a + n):
            v = _soft(val[k], s)
            idx[a + alive], val[a + alive] = idx[k], v
            alive += v != _ZERO
        size[i] = alive
        if level[i] > 0:
            w, count = heads[place[i] : place[i] + sizes[level[i]]], 0
            for j in range(len(w)):
                v = _soft(w[j], s)
                w[j] = v
                count += v != _ZERO
            filled[i] = count
        target = _wanted_level(level[i], idx[a : a + alive], sizes, fill)
        if target > level[i] and _grow_head(i, target, level, place, sizes, heads, state, free, links):
            kept, length = 0, sizes[target]
            for k in range(a, a + alive):
                if idx[k] < length:
                    heads[place[i] + idx[k]] = val[k]
                else:
                    idx[a + kept], val[a + kept] = idx[k], val[k]
                    kept += 1
            filled[i] += alive - kept
            size[i] = kept


@njit(cache=True, nogil=True)
def _wanted_level(current, columns, sizes, fill):
    """The highest level whose added columns are filled to at least `fill` by the listed ones."""
    best = current
    for candidate in range(current + 1, len(sizes)):
        need = fill * np.float64(sizes[candidate] - sizes[current])
        if np.float64(len(columns)) < need:
            break
        inside = 0
        for k in range(len(columns)):
            inside += columns[k] < sizes[candidate]
        if np.float64(inside) >= need:
            best = candidate
    return best


@njit(cache=True, nogil=True)
def _grow_head(i, target, level, place, sizes, heads, state, free, links):
    """Move row i's head to a place of another level; returns whether there was one."""
    found = free[target]
    if found >= 0:
        free[target] = links[found // sizes[1]]
    else:
        found = state[1]
        if found + sizes[target] > len(heads):
            return False
        state[1] = found + sizes[target]
    if level[i] > 0:
        old = place[i]
        for j in range(sizes[level[i]]):
            heads[found + j] = heads[old + j]
            heads[old + j] = _ZERO
        links[old // sizes[1]] = free[level[i]]
        free[level[i]] = old
    place[i], level[i] = found, target
    return True


@njit(cache=True, nogil=True)
def compact(order, start, size, cap, idx, val):
    """Slide the tails of the rows in `order` (by rising start) together; returns where they end."""
    end = 0
    for i in order:
        a, n = start[i], size[i]
        for k in range(n):
            idx[end + k], val[end + k] = idx[a + k], val[a + k]
        start[i], cap[i] = end, n
        end += n
    return end


@njit(cache=True, nogil=True)
def spread(order, start, size, cap, idx, val):
    """Give the tails that `compact` has left side by side a quarter more room each; returns where they end."""
    end = 0
    for i in order:
        cap[i] = size[i] + size[i] // 4 + 8
        end += cap[i]
    to = end
    for r in range(len(order) - 1, -1, -1):
        i = order[r]
        to -= cap[i]
        for k in range(size[i] - 1, -1, -1):
            idx[to + k], val[to + k] = idx[start[i] + k], val[start[i] + k]
        start[i] = to
    return end


@njit(cache=True, nogil=True)
def scale(first, stride, factor, level, place, sizes, heads, start, size, val):
    """Multiply row i by factor[i]; the rows must owe nothing."""
    for i in range(first, len(level), stride):
        f = np.float32(factor[i])
        if f != np.float32(1.0):
            for j in range(place[i], place[i] + sizes[level[i]]):
                heads[j] *= f
            for k in range(start[i], start[i] + size[i]):
                val[k] *= f


@njit(cache=True, nogil=True)
def squared_lengths(first, stride, level, place, sizes, heads, start, size, val, out):
    """out[i] = sum of the squares of row i; the rows must owe nothing."""
    for i in range(first, len(level), stride):
        total = 0.0
        for j in range(place[i], place[i] + sizes[level[i]]):
            total += np.float64(heads[j]) * np.float64(heads[j])
        for k in range(start[i], start[i] + size[i]):
            total += np.float64(val[k]) * np.float64(val[k])
        out[i] = total


@njit(cache=True, nogil=True)
def unload(first, stride, debt, level, place, sizes, heads, start, size, idx, val, ptr, out_idx, out_val):
    """Copy the rows of a block, their debts paid, to out[ptr[i]:]; counts[i] = how many there are.

    With empty `out_idx` only the counting is done.
    """
    s, counting = np.float32(debt), len(out_idx) == 0
    counts = np.zeros(len(level), np.int64)
    for i in range(first, len(level), stride):
        n = ptr[i]
        for j in range(sizes[level[i]]):
            v = _soft(heads[place[i] + j], s)
            if v != _ZERO:
                if not counting:
                    out_idx[n], out_val[n] = j, v
                n += 1
        for k in range(start[i], start[i] + size[i]):
            v = _soft(val[k], s)
            if v != _ZERO:
                if not counting:
                    out_idx[n], out_val[n] = idx[k], v
                n += 1
        counts[i] = n - ptr[i]
    return counts
