"""Rows of W while it is learned: a dense head and a sparse tail, visited when a batch reads them.

Columns are numbered by falling frequency, so a row's head – its first sizes[level[i]] columns, none at level 0 – is
well filled, and its tail is a list of (column, value). The first columns of a head are its front: batches keep their
right vectors dense there, and whole vectors are added and multiplied.

Batches are added late: a row takes what the batches since the last settling have for it, in their order, when it is
read next. And the L1 penalty is paid late. Since the last settling every entry owes the same `debt`, the sum of the
thresholds of the batches since then: an entry stored as z stands for soft(z, debt). One that changes in a batch is
stored with the debt of that moment added to its size, z = v + sign(v) · owed. So no entry depends on when its row was
visited, and those that nobody touches shrink by doing nothing.

A block's state is [end of its lists, end of its heads]. Heads live in `heads`, which is zero where nobody lives;
free[level] begins a chain of free places of that size, -1 ends it, and `links` holds the rest of the chain. Lists live
in `idx` and `val`, in rooms of the sizes `rooms`; vacant[c] begins the chain of empty rooms of size rooms[c], and the
first number of an empty room's `idx` is the next one.
"""

import numpy as np
from numba import njit

_TINY = np.float32(1e-37)
_ZERO = np.float32(0.0)
_NOBODY = np.uint32(0xFFFFFFFF)


@njit(cache=True, nogil=True, inline="always")
def _soft(z, s):
    """sign(z) · max(0, |z| - s)"""
    return z - min(max(z, -s), s)


@njit(cache=True, nogil=True)
def _soft_dot(w, s, index, value, slot, begin, end):
    """sum of soft(w[index], s) · value over a part of a slot; four sums side by side, because gathering is slow."""
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
    """sum of w · x[slot, t], in whatever order is fastest; it is the same in every run."""
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
    """out = v + sign(v) · s; 0 becomes s, which stands for 0 from now on."""
    for j in range(n):
        out[j] = v[j] + np.copysign(s, v[j])


@njit(cache=True, nogil=True)
def _add_to_head(w, s, c, index, value, slot, begin, end):
    """soft(w, s) += c · value at the given places."""
    for k in range(begin, end):
        j = index[slot, k]
        v = _soft(w[j], s) + c * value[slot, k]
        w[j] = v + np.copysign(s, v)


@njit(cache=True, nogil=True)
def _warm(w, begin):
    """Read a number of every cache line: reading in order is several times as fast as here and there."""
    total = _ZERO
    for j in range(begin, len(w), 16):
        total += w[j]
    return total


@njit(cache=True, nogil=True)
def _add_to_tail(w, s, fresh, n, c, index, value, slot, begin, end):
    """The same for a tail spread out in w, where 0 means "not in it"; columns that come in are listed in fresh."""
    for k in range(begin, end):
        j = index[slot, k]
        z = w[j]
        fresh[n] = j
        n += z == _ZERO
        v = _soft(z, s) + c * value[slot, k]
        z = v + np.copysign(s, v)
        w[j] = z if z != _ZERO else _TINY
    return n


@njit(cache=True, nogil=True)
def visit(
    at, end, rows, slots, new, debt,
    place, row_ptr, entry_step, entry_val, rate, owed, split, rptr, ridx, rval, front,
    level, home, start, size, cap, sizes, front_level, heads,
    state, rooms, vacant, idx, val, scratch, fresh, buffer, out,
):  # fmt: skip
    """Visit rows[at:end]: add what the batches in `slots` have for them, and take products with batch `new`.

    out[t] += left[t, i] · (W[i] · right[t]) for the new batch; new < 0: rows that nothing waits for are left alone.
    place[i, slot] becomes -1 where a batch has been added. Returns `end`, or the row before which the lists were full
    (nothing of that row has been done).
    """
    now = np.float32(debt)
    least, warm = max(now, _TINY), _ZERO
    while at < end:
        i = rows[at]
        waiting = 0
        for slot in slots:
            waiting += place[i, slot] >= 0
        if waiting == 0 and new < 0:
            at += 1
            continue
        head, a, b, n = level[i], start[i], start[i] + size[i], 0
        near = min(head, front_level)
        width = sizes[near]
        for k in range(a, b):
            scratch[idx[k]] = val[k]
        w = heads[home[i] : home[i] + sizes[head]]
        warm += _warm(w, width)
        if waiting:
            for slot in slots:
                r = place[i, slot]
                if r >= 0:
                    s = np.float32(owed[slot])
                    for e in range(row_ptr[slot, r], row_ptr[slot, r + 1]):
                        t = entry_step[slot, e]
                        if rate[slot, t] != 0.0:
                            c = np.float32(rate[slot, t] * entry_val[slot, e])
                            n = _add_to_tail(
                                scratch, s, fresh, n, c, ridx, rval, slot, split[slot, t, head], rptr[slot, t + 1]
                            )
            to, left = a, cap[i]
            if b - a + n > left:
                need = _live(idx, scratch, a, b, least) + _live(fresh, scratch, 0, n, least)
                if need >= left:
                    to, length = _take_room(need, state, rooms, vacant, idx)
                    if to < 0:
                        _clear(idx, scratch, a, b)
                        _clear(fresh, scratch, 0, n)
                        return at
                    cap[i] = length
            if head > 0:
                for slot in slots:
                    r = place[i, slot]
                    if r >= 0:
                        s = np.float32(owed[slot])
                        _decode(w, s, buffer, width)
                        for e in range(row_ptr[slot, r], row_ptr[slot, r + 1]):
                            t = entry_step[slot, e]
                            if rate[slot, t] != 0.0:
                                c = np.float32(rate[slot, t] * entry_val[slot, e])
                                _add(buffer, c, front, slot, t, width)
                                _add_to_head(w, s, c, ridx, rval, slot, split[slot, t, near], split[slot, t, head])
                        _encode(buffer, s, w, width)
            for slot in slots:
                place[i, slot] = -1
            start[i] = to
        if new >= 0:
            r = place[i, new]
            if head > 0:
                _decode(w, now, buffer, width)
            for e in range(row_ptr[new, r], row_ptr[new, r + 1]):
                t = entry_step[new, e]
                total = _ZERO
                if head > 0:
                    total += _dot(buffer, front, new, t, width)
                    total += _soft_dot(w, now, ridx, rval, new, split[new, t, near], split[new, t, head])
                if b > a or n > 0:
                    total += _soft_dot(scratch, now, ridx, rval, new, split[new, t, head], rptr[new, t + 1])
                out[t] += np.float64(entry_val[new, e]) * np.float64(total)
        if waiting:
            to = start[i]
            middle = _collect(idx, a, b, scratch, least, to, idx, val)
            size[i] = _collect(fresh, 0, n, scratch, least, middle, idx, val) - to
            if to != a:
                _leave_room(a, left, rooms, vacant, idx)
        else:
            _clear(idx, scratch, a, b)
        at += 1
    buffer[0] = warm
    return at


@njit(cache=True, nogil=True)
def _room_for(n, rooms):
    """The smallest kind of room that holds more than n entries, with an eighth to spare."""
    kind = 0
    while rooms[kind] <= n + n // 8:
        kind += 1
    return kind


@njit(cache=True, nogil=True)
def _take_room(n, state, rooms, vacant, idx):
    """(start, length) of a room for n entries: one that fits, a vacant one up to twice as long, or a new one.

    (-1, 0) where there is no place left.
    """
    kind = _room_for(n, rooms)
    for other in range(kind, min(kind + 4, len(rooms))):
        found = vacant[other]
        if found >= 0:
            following = idx[found]
            vacant[other] = -1 if following == _NOBODY else np.int64(following)
            return found, rooms[other]
    found = state[0]
    if found + rooms[kind] > len(idx):
        return -1, 0
    state[0] = found + rooms[kind]
    return found, rooms[kind]


@njit(cache=True, nogil=True)
def _leave_room(begin, length, rooms, vacant, idx):
    """Let others have the room that begins there."""
    kind = 0
    while rooms[kind] != length:
        kind += 1
    idx[begin] = _NOBODY if vacant[kind] < 0 else np.uint32(vacant[kind])
    vacant[kind] = begin


@njit(cache=True, nogil=True)
def _live(columns, w, begin, end, least):
    """How many listed entries of w are still alive."""
    n = 0
    for k in range(begin, end):
        n += abs(w[columns[k]]) > least
    return n


@njit(cache=True, nogil=True)
def _clear(columns, w, begin, end):
    for k in range(begin, end):
        w[columns[k]] = _ZERO


@njit(cache=True, nogil=True)
def _collect(columns, begin, end, w, least, to, idx, val):
    """Write the listed entries of w that are alive to idx[to:], val[to:], and clear w; returns where they end."""
    n = np.uint64(to)  # unsigned: no check for negative places in the loop
    for k in range(np.uint64(begin), np.uint64(end)):
        j = columns[k]
        z = w[j]
        idx[n], val[n] = j, z
        n += np.uint64(abs(z) > least)
        w[j] = _ZERO
    return np.int64(n)


@njit(cache=True, nogil=True)
def settle(
    first, stride, debt, fill, level, home, sizes, heads, state, free, links,
    start, size, cap, rooms, vacant, idx, val, filled,
):  # fmt: skip
    """Let every entry of a block pay what it owes, drop what has died, lengthen heads and change rooms where it saves.

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
            w, count = heads[home[i] : home[i] + sizes[level[i]]], 0
            for j in range(len(w)):
                v = _soft(w[j], s)
                w[j] = v
                count += v != _ZERO
            filled[i] = count
        target = _choose_level(level[i], idx[a : a + alive], sizes, fill[i])
        if target > level[i] and _grow_head(i, target, level, home, sizes, heads, state, free, links):
            kept, length = 0, sizes[target]
            for k in range(a, a + alive):
                if idx[k] < length:
                    heads[home[i] + idx[k]] = val[k]
                else:
                    idx[a + kept], val[a + kept] = idx[k], val[k]
                    kept += 1
            filled[i] += alive - kept
            size[i] = kept
        kind = _room_for(size[i], rooms)
        if rooms[kind] < cap[i] and (vacant[kind] >= 0 or 2 * rooms[kind] <= cap[i]):
            to, length = _take_room(size[i], state, rooms, vacant, idx)
            if to >= 0:
                for k in range(size[i]):
                    idx[to + k], val[to + k] = idx[a + k], val[a + k]
                _leave_room(a, cap[i], rooms, vacant, idx)
                start[i], cap[i] = to, length


@njit(cache=True, nogil=True)
def _choose_level(current, columns, sizes, fill):
    """The highest level whose added columns are filled to at least `fill` by the listed ones."""
    n, highest = np.float64(len(columns)), current
    while highest + 1 < len(sizes) and n >= fill * np.float64(sizes[highest + 1] - sizes[current]):
        highest += 1
    inside = np.zeros(len(sizes), np.int64)
    if highest > current:
        for k in range(len(columns)):
            candidate = current + 1
            while candidate <= highest and columns[k] >= sizes[candidate]:
                candidate += 1
            if candidate <= highest:
                inside[candidate] += 1
    best, total = current, 0
    for candidate in range(current + 1, highest + 1):
        total += inside[candidate]
        if np.float64(total) >= fill * np.float64(sizes[candidate] - sizes[current]):
            best = candidate
    return best


@njit(cache=True, nogil=True)
def _grow_head(i, target, level, home, sizes, heads, state, free, links):
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
        old = home[i]
        for j in range(sizes[level[i]]):
            heads[found + j] = heads[old + j]
            heads[old + j] = _ZERO
        links[old // sizes[1]] = free[level[i]]
        free[level[i]] = old
    home[i], level[i] = found, target
    return True


@njit(cache=True, nogil=True)
def compact(order, start, size, cap, rooms, idx, val):
    """Move the lists of the rows in `order` (by rising start) into rooms side by side; returns where they end."""
    end = 0
    for i in order:
        a, n = start[i], size[i]
        for k in range(n):
            idx[end + k], val[end + k] = idx[a + k], val[a + k]
        start[i], cap[i] = end, min(cap[i], rooms[_room_for(n, rooms)])
        end += cap[i]
    return end


@njit(cache=True, nogil=True)
def scale(first, stride, factor, level, home, sizes, heads, start, size, val):
    """Multiply row i by factor[i]; the rows must owe nothing."""
    for i in range(first, len(level), stride):
        f = np.float32(factor[i])
        if f != np.float32(1.0):
            for j in range(home[i], home[i] + sizes[level[i]]):
                heads[j] *= f
            for k in range(start[i], start[i] + size[i]):
                val[k] *= f


@njit(cache=True, nogil=True)
def squared_lengths(first, stride, level, home, sizes, heads, start, size, val, out):
    """out[i] = sum of the squares of row i; the rows must owe nothing."""
    for i in range(first, len(level), stride):
        total = 0.0
        for j in range(home[i], home[i] + sizes[level[i]]):
            total += np.float64(heads[j]) * np.float64(heads[j])
        for k in range(start[i], start[i] + size[i]):
            total += np.float64(val[k]) * np.float64(val[k])
        out[i] = total


@njit(cache=True, nogil=True)
def unload(first, stride, debt, level, home, sizes, heads, start, size, idx, val, ptr, out_idx, out_val):
    """Copy the rows of a block, their debts paid, to out[ptr[i]:]; counts[i] = how many there are.

    With empty `out_idx` only the counting is done.
    """
    s, counting = np.float32(debt), len(out_idx) == 0
    counts = np.zeros(len(level), np.int64)
    for i in range(first, len(level), stride):
        n = ptr[i]
        for j in range(sizes[level[i]]):
            v = _soft(heads[home[i] + j], s)
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
