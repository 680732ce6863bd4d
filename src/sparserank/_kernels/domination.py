"""The domination loss over nested windows, and coordinate descent on it (Stevens et al., Fig. 1.1 and its extensions).

    loss = sum_i c_i log(1 + sum_{j below i} exp(s_j - s_i)),   s = X w - margins

Rows are sorted into levels: query by query, from the highest grade down. A level's losers are all the levels below it
in its query, so with B_k the sum of exp over level k, Z_k = B_{k+1} + Z_{k+1} and everything is linear in the rows.

Nothing overflows: a level's exponentials as losers are relative to `LOW`, those of its winners to `HIGH`, the largest
`LOW` below it, both taken at the last `rebuild`; a step that strays too far from them makes a new one. Between two of
them only the exponentials move, by factors; the scores stay as they were.

Z changes with almost every step, and with it the sums T_n = sum_i c_i / (Z + u_i)^n over all winners of a level. They
are kept at a nearby Z0 and carried to Z by their Taylor series (dT_n/dZ = -n T_{n+1}); Z0 moves when Z has left it by
half a percent, so that most steps cost no more than the rows that have the feature, and the series is exact to 1e-9
(and better near the optimum, where Z hardly moves).
"""

import math

import numpy as np
from numba import njit

LOW, HIGH, BLOCK, WHOLE, Z, Z0, T1, T2, T3, T4, T, TT, FALL, LIFT, M1, M2, V1 = range(17)
"""Columns of `sums`, one row a level.

LOW, HIGH : what exponents of its losers and of its winners are relative to.
BLOCK, WHOLE : sum of the level's exponentials now, and at its largest since it was last summed.
Z, Z0, T1 … T4 : the losers' sum, the reference and the winners' sums there. T, TT : T1 and T2 carried to Z.
FALL, LIFT : exp(HIGH_{k+1} - HIGH_k) and exp(LOW_{k+1} - HIGH_k).
M1, M2, V1 : moments of the column at hand; zero between two columns.
"""
COLUMNS = 17
_NEAR = 5e-3
_LOST = 1e-4
_LARGEST = 700.0
_FAR = 1e70
_LEAST, _MOST = 1e-290, 1e290


@njit(cache=True, nogil=True, error_model="numpy")
def _exp(t):
    """exp(t): by seven terms of the series where t is small, as most steps are."""
    if abs(t) < 0.03:
        return 1.0 + t * (1.0 + t * (1 / 2 + t * (1 / 6 + t * (1 / 24 + t * (1 / 120 + t * (1 / 720))))))
    return math.exp(min(t, _LARGEST))


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc"})
def _winners(k, begin, cost, high, sums):
    """The winners' sums of level k, afresh, at Z0 = Z."""
    z = sums[k, Z]
    t1, t2, t3, t4 = 0.0, 0.0, 0.0, 0.0
    for i in range(begin[k], begin[k + 1]):
        s = 1.0 / (z + high[i])
        c = cost[i] * s
        t1 += c
        c *= s
        t2 += c
        c *= s
        t3 += c
        t4 += c * s
    sums[k, Z0], sums[k, T], sums[k, TT] = z, t1, t2
    sums[k, T1], sums[k, T2], sums[k, T3], sums[k, T4] = t1, t2, t3, t4


@njit(cache=True, nogil=True, error_model="numpy")
def _carry(k, sums):
    """The winners' sums of level k, from Z0 to Z by their series."""
    dz = sums[k, Z] - sums[k, Z0]
    t2, t3, t4 = sums[k, T2], sums[k, T3], sums[k, T4]
    sums[k, T] = sums[k, T1] - dz * (t2 - dz * (t3 - dz * t4))
    sums[k, TT] = t2 - dz * (2.0 * t3 - 3.0 * dz * t4)


@njit(cache=True, nogil=True, error_model="numpy")
def rebuild(score, order, begin, first, cost, low, high, sums):
    """Everything that follows from the scores, afresh; returns the loss.

    order[begin[k]:begin[k+1]] are the rows of level k, first[q]:first[q+1] the levels of query q. low[row] and
    high[place in order] are a row's exponentials as a loser and as a winner.
    """
    loss = 0.0
    for q in range(len(first) - 1):
        bottom = first[q + 1] - 1
        for k in range(bottom, first[q] - 1, -1):
            best = -math.inf
            for i in range(begin[k], begin[k + 1]):
                best = max(best, score[order[i]])
            total = 0.0
            for i in range(begin[k], begin[k + 1]):
                row = order[i]
                low[row] = math.exp(score[row] - best)
                total += low[row]
            sums[k, LOW], sums[k, BLOCK], sums[k, WHOLE] = best, total, total
            sums[k, M1] = sums[k, M2] = sums[k, V1] = 0.0
            if k == bottom:
                sums[k, Z], sums[k, HIGH], sums[k, T], sums[k, TT] = 0.0, -math.inf, 0.0, 0.0
                continue
            top = max(sums[k + 1, HIGH], sums[k + 1, LOW])
            sums[k, HIGH] = top
            sums[k, FALL] = math.exp(sums[k + 1, HIGH] - top)
            sums[k, LIFT] = math.exp(sums[k + 1, LOW] - top)
            sums[k, Z] = sums[k + 1, Z] * sums[k, FALL] + sums[k + 1, BLOCK] * sums[k, LIFT]
            z = math.log(sums[k, Z])
            for i in range(begin[k], begin[k + 1]):
                away = score[order[i]] - top
                high[i] = math.exp(min(away, _LARGEST))
                if cost[i] > 0.0:
                    loss += cost[i] * (max(z - away, 0.0) + math.log1p(math.exp(-abs(z - away))))
            _winners(k, begin, cost, high, sums)
    return loss


@njit(cache=True, nogil=True, error_model="numpy")
def pull(order, begin, first, cost, low, high, sums, out):
    """out[row] = the derivative of the loss with respect to the row's score."""
    for q in range(len(first) - 1):
        above = 0.0
        for k in range(first[q], first[q + 1]):
            lose = above * sums[k - 1, LIFT] if k > first[q] else 0.0
            wins = k < first[q + 1] - 1
            z = sums[k, Z]
            for i in range(begin[k], begin[k + 1]):
                row = order[i]
                out[row] = low[row] * lose
                if wins:
                    out[row] -= cost[i] * z / (z + high[i])
            if wins:
                above = sums[k, T] + (above * sums[k - 1, FALL] if k > first[q] else 0.0)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc"})
def against(pointer, rows, values, pulled, columns, out):
    """out[c] = sum_i X[i, columns[c]] pulled[i]."""
    for c in range(len(columns)):
        total = 0.0
        for p in range(pointer[columns[c]], pointer[columns[c] + 1]):
            total += values[p] * pulled[rows[p]]
        out[c] = total


@njit(cache=True, nogil=True, error_model="numpy")
def rescore(pointer, rows, values, weights, offset, score):
    """score[i] = sum_r X[i, r] weights[r] - offset[i]."""
    for i in range(len(score)):
        score[i] = -offset[i]
    for r in range(len(weights)):
        w = weights[r]
        if w != 0.0:
            for p in range(pointer[r], pointer[r + 1]):
                score[rows[p]] += values[p] * w


@njit(cache=True, nogil=True, error_model="numpy")
def _look(r, pointer, rows, values, level, place, owner, first, cost, low, high, sums, stamp, now, touched):
    """First and second derivative of the loss along feature r, the size of what was summed, and the queries met.

    Neighbouring rows are mostly of one level, whose sums are kept in registers until another one comes.
    """
    g, h, count, at = 0.0, 0.0, 0, -1
    m1, m2, v1, z, wins = 0.0, 0.0, 0.0, 0.0, False
    for p in range(pointer[r], pointer[r + 1]):
        row = rows[p]
        k = level[row]
        if k != at:
            if at >= 0:
                sums[at, M1], sums[at, M2], sums[at, V1] = m1, m2, v1
            at = k
            if k < 0:
                continue
            q = owner[k]
            m1, m2, v1, z, wins = sums[k, M1], sums[k, M2], sums[k, V1], sums[k, Z], k < first[q + 1] - 1
            if stamp[q] != now:
                stamp[q] = now
                touched[count] = q
                count += 1
        elif k < 0:
            continue
        x = np.float64(values[p])
        term = low[row] * x
        m1 += term
        m2 += term * x
        if wins:
            i = place[row]
            s = 1.0 / (z + high[i])
            lost = z * s
            g -= cost[i] * x * lost
            pressed = cost[i] * (1.0 - lost) * s * x
            h += pressed * x * z
            v1 += pressed
    if at >= 0:
        sums[at, M1], sums[at, M2], sums[at, V1] = m1, m2, v1
    size = h
    for t in range(count):
        q = touched[t]
        m1, m2 = 0.0, 0.0
        for k in range(first[q + 1] - 2, first[q] - 1, -1):
            m1 = m1 * sums[k, FALL] + sums[k + 1, M1] * sums[k, LIFT]
            m2 = m2 * sums[k, FALL] + sums[k + 1, M2] * sums[k, LIFT]
            g += m1 * sums[k, T]
            gain = m2 * sums[k, T]
            size += gain
            h += gain - m1 * (m1 * sums[k, TT] + 2.0 * sums[k, V1])
        for k in range(first[q], first[q + 1]):
            sums[k, M1] = sums[k, M2] = sums[k, V1] = 0.0
    return g, h, size, count


@njit(cache=True, nogil=True, error_model="numpy")
def _moved(r, step, pointer, rows, values, level, place, owner, first, cost, low, high, sums, fresh):
    """Exponentials after a step along feature r; False where one has left the range that its shift allows."""
    near, at = True, -1
    block, z, wins, loses = 0.0, 0.0, False, False
    t1, t2, t3, t4 = 0.0, 0.0, 0.0, 0.0
    for p in range(pointer[r], pointer[r + 1]):
        row = rows[p]
        k = level[row]
        if k < 0:
            continue
        if k != at:
            if at >= 0:
                _keep(at, block, t1, t2, t3, t4, sums)
            at, q = k, owner[k]
            block, z = sums[k, BLOCK], sums[k, Z0]
            t1, t2, t3, t4 = sums[k, T1], sums[k, T2], sums[k, T3], sums[k, T4]
            loses, wins = k > first[q], k < first[q + 1] - 1
        t = step * np.float64(values[p])
        factor = _exp(t)
        if loses:
            old = low[row]
            new = old * factor if t <= 0.0 or old < _FAR / factor else _FAR
            near &= new < _FAR and (t <= 0.0 or old > _LEAST)
            block += new - old
            low[row] = new
        if wins:
            i = place[row]
            old = high[i]
            new = old * factor if t <= 0.0 or old < _MOST / factor else _MOST
            near &= max(old, new) < _MOST and (t <= 0.0 or old > _LEAST)
            high[i] = new
            if not fresh:
                a, b = 1.0 / (z + new), 1.0 / (z + old)
                c, aa, bb = cost[i], a * a, b * b
                t1 += c * (a - b)
                t2 += c * (aa - bb)
                t3 += c * (aa * a - bb * b)
                t4 += c * (aa * aa - bb * bb)
    if at >= 0:
        _keep(at, block, t1, t2, t3, t4, sums)
    return near


@njit(cache=True, nogil=True, error_model="numpy")
def _keep(k, block, t1, t2, t3, t4, sums):
    sums[k, BLOCK], sums[k, T1], sums[k, T2], sums[k, T3], sums[k, T4] = block, t1, t2, t3, t4


@njit(cache=True, nogil=True, error_model="numpy")
def _settled(touched, count, begin, first, cost, high, sums, fresh):
    """Z and the winners' sums of the queries met; False where a sum has lost its digits."""
    near = True
    for t in range(count):
        q = touched[t]
        bottom = first[q + 1] - 1
        for k in range(bottom, first[q] - 1, -1):
            block = sums[k, BLOCK]
            sums[k, WHOLE] = max(sums[k, WHOLE], block)
            near &= k == first[q] or block > _LOST * sums[k, WHOLE]
            if k == bottom:
                continue
            z = sums[k + 1, Z] * sums[k, FALL] + sums[k + 1, BLOCK] * sums[k, LIFT]
            near &= z > _LOST
            sums[k, Z] = z
            if fresh or abs(z - sums[k, Z0]) > _NEAR * sums[k, Z0]:
                _winners(k, begin, cost, high, sums)
            else:
                _carry(k, sums)
    return near


@njit(cache=True, nogil=True, error_model="numpy")
def best_step(w, g, h, reach, bound, l1, l2):
    """The step that minimises an upper bound of  loss + l1 |w| + l2 w²  along one feature.

    g, h : first and second derivative of the loss. reach : the largest range R of the feature within a query. Then
    |f'''| <= R f'', so that  f(d) <= f(0) + g d + h (exp(R|d|) - R|d| - 1) / R²;  where h is 0 or has lost its digits,
    the quadratic bound of curvature `bound` = sum_q c_q R_q² / 4 takes its place (the paper has m max x²).
    """
    if not h > _LEAST:
        return quadratic_step(w, g, bound, l1, l2)
    away = min(reach * abs(w), _LARGEST)
    gradient = g - math.copysign(h * math.expm1(away) / reach, w)
    if abs(gradient) <= l1:
        return -w
    pressed = g + 2.0 * l2 * w - math.copysign(l1, gradient)
    size = abs(pressed)
    ratio = reach * size / h
    d = (math.log1p(ratio) if ratio < math.inf else math.log(reach * size) - math.log(h)) / reach
    if l2 > 0.0:
        d = min(d, size / (2.0 * l2))
        for _ in range(50):
            tail = math.expm1(reach * d)
            less = (h * tail / reach + 2.0 * l2 * d - size) / (h * (tail + 1.0) + 2.0 * l2)
            d -= less
            if less <= 1e-12 * d:
                break
    return -math.copysign(d, pressed)


@njit(cache=True, nogil=True, error_model="numpy")
def quadratic_step(w, g, beta, l1, l2):
    """The minimum of  g d + beta d² / 2 + l1 |w + d| + l2 (w + d)²  (Lemmas 1 and 2)."""
    if abs(g - beta * w) <= l1:
        return -w
    sign = 1.0 if beta * w - g > 0.0 else -1.0
    return -(g + 2.0 * l2 * w + sign * l1) / (beta + 2.0 * l2)


@njit(cache=True, nogil=True, error_model="numpy")
def violation(w, g, l1, l2):
    """How far 0 is from the subdifferential of the objective along one feature."""
    if w == 0.0:
        return max(abs(g) - l1, 0.0)
    return abs(g + 2.0 * l2 * w + math.copysign(l1, w))


@njit(cache=True, nogil=True, error_model="numpy")
def descend(
    pointer, rows, values, level, place, owner, order, begin, first, cost, columns, active, weights, reach, bound,
    l1, l2, slack, offset, score, low, high, sums, stamp, clock, touched,
):  # fmt: skip
    """One pass over the first `active` of `columns`; returns how many are left of them, and the largest violation.

    A feature that is zero and stays so by more than `slack` goes behind the active ones until it is called for again.
    """
    worst, c = 0.0, 0
    n_rows = len(order)
    while c < active:
        r = columns[c]
        clock[0] += 1
        g, h, size, count = _look(
            r, pointer, rows, values, level, place, owner, first, cost, low, high, sums, stamp, clock[0], touched
        )
        w = weights[r]
        if w == 0.0 and abs(g) < l1 - slack:
            active -= 1
            columns[c], columns[active] = columns[active], r
            continue
        c += 1
        missed = violation(w, g, l1, l2)
        worst = max(worst, missed)
        if missed == 0.0:
            continue
        step = best_step(w, g, h if h > 1e-9 * size else 0.0, reach[r], bound[r], l1, l2)
        if step == 0.0:
            continue
        weights[r] = 0.0 if step == -w else w + step
        fresh = 4 * (pointer[r + 1] - pointer[r]) > n_rows
        near = _moved(r, step, pointer, rows, values, level, place, owner, first, cost, low, high, sums, fresh)
        near &= _settled(touched, count, begin, first, cost, high, sums, fresh)
        if not near:
            rescore(pointer, rows, values, weights, offset, score)
            rebuild(score, order, begin, first, cost, low, high, sums)
    return active, worst
