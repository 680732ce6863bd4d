"""Triples of windows: the n-th one, or one drawn by a counter-based random generator.

Random numbers are a function of (seed, number of the draw, number within the draw). There is no state, so any part of
the sequence can be drawn at any time, on any number of threads, with the same result.
"""

import numpy as np
from numba import njit

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)


@njit(cache=True, nogil=True, inline="always")
def _mix(h):
    h = (h ^ (h >> _30)) * _MIX_1
    h = (h ^ (h >> _27)) * _MIX_2
    return h ^ (h >> _31)


@njit(cache=True, nogil=True, inline="always")
def _uniform(seed, draw, part):
    """A number in [0, 1) with 53 random bits."""
    h = _mix(_mix(seed + _GOLDEN * (draw + np.uint64(1))) + _GOLDEN * (part + np.uint64(1)))
    return np.float64(h >> _11) * (1.0 / 9007199254740992.0)


@njit(cache=True, nogil=True)
def _below(u, n):
    """A whole number in [0, n) from u in [0, 1)."""
    return min(np.int64(u * n), n - 1)


@njit(cache=True, nogil=True)
def _cell(cumulative, begin, end, target):
    """The first i in [begin, end) with cumulative[i + 1] > target, the last one if there is none."""
    low, high = begin, end - 1
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle + 1] > target:
            high = middle
        else:
            low = middle + 1
    return low


@njit(cache=True, nogil=True)
def _outsider(rank, members, begin, end):
    """The rank-th item (from 0) that is not among members[begin:end], which rise strictly."""
    low, high = begin, end
    while low < high:
        middle = (low + high) // 2
        if members[middle] - (middle - begin) <= rank:
            low = middle + 1
        else:
            high = middle
    return rank + (low - begin)


@njit(cache=True, nogil=True)
def _loser(rank, row, order, worse, group, members):
    """Loser number `rank` of a row: first the window's items, then those outside the row's group."""
    window = worse[row, 1] - worse[row, 0]
    if rank < window:
        return order[worse[row, 0] + rank]
    return _outsider(rank - window, members, group[row, 0], group[row, 1])


@njit(cache=True, nogil=True)
def draw_triples(seed, first, out, query, order, better, worse, group, members, losers, chance, weight):
    """out[k] = (query, better, worse) of draw first + k.

    chance[r + 1] - chance[r] is the probability of row r; weight is cumulative over `order`, empty for equal weights.
    If the query of a row is below 0, each of its better items is a query, and does not beat itself.
    """
    for k in range(len(out)):
        draw = np.uint64(first + k)
        row = _cell(chance, 0, len(query), _uniform(seed, draw, np.uint64(0)) * chance[len(query)])
        begin, end = better[row, 0], better[row, 1]
        u = _uniform(seed, draw, np.uint64(1))
        if len(weight):
            winner = _cell(weight, begin, end, weight[begin] + u * (weight[end] - weight[begin]))
        else:
            winner = begin + _below(u, end - begin)
        q = query[row]
        if q < 0:
            q = order[winner]
            other = begin + _below(_uniform(seed, draw, np.uint64(3)), end - begin - 1)
            winner = other + 1 if other >= winner else other
        rank = _below(_uniform(seed, draw, np.uint64(2)), losers[row])
        out[k, 0], out[k, 1] = q, order[winner]
        out[k, 2] = _loser(rank, row, order, worse, group, members)


@njit(cache=True, nogil=True)
def list_triples(first, out, query, order, better, worse, group, members, losers, pairs):
    """out[k] = triple number first + k, counted row by row, winner by winner, loser by loser; pairs is cumulative."""
    for k in range(len(out)):
        n = first + k
        row = _cell(pairs, 0, len(query), n)
        n -= pairs[row]
        begin, end = better[row, 0], better[row, 1]
        rank, n = n % losers[row], n // losers[row]
        q = query[row]
        winner = begin + n
        if q < 0:
            others = end - begin - 1
            asking = begin + n // others
            winner = begin + n % others
            if winner >= asking:
                winner += 1
            q = order[asking]
        out[k, 0], out[k, 1] = q, order[winner]
        out[k, 2] = _loser(rank, row, order, worse, group, members)
