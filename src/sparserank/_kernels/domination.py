"""The domination loss over nested windows, and coordinate descent on it (Stevens et al., Fig. 1.1 and its extensions).

    loss = sum_i c_i log(1 + sum_{j below i} exp(s_j - s_i)),   s = X w - margins

Rows are sorted into levels: query by query, from the highest grade down. The losers of a level are all lower levels of
its query. With B_k the sum of the exponentials of level k, Z_k = B_{k+1} + Z_{k+1}, so the time is linear in the rows.

Exponents are shifted so that nothing overflows: those of a level as losers by its largest score, those of its winners
by the largest score below it, both as of the last `rebuild`. A step only multiplies exponentials by factors and does
not update the scores. When an exponential leaves the range in which it is accurate, `rebuild` starts afresh.

Almost every step changes Z, and with it the sums T_n = sum_i c_i / (Z + u_i)^n over the winners of a level. They are
stored at a reference Z0 and extrapolated to Z by their Taylor series (dT_n/dZ = -n T_{n+1}). If Z differs from Z0 by
more than half a percent, the sums are computed again at Z. So most steps take no longer than the rows that have the
feature, and the series is exact to 1e-9 (and better near the optimum, where Z hardly changes).
"""

import math

import numpy as np
from numba import njit

LOSER_SHIFT, WINNER_SHIFT, LOSER_SUM, LARGEST_SUM = range(4)
Z, Z0, T1, T2, T3, T4, T, TT = range(4, 12)
WINNER_RATIO, LOSER_RATIO, M1, M2, V1 = range(12, 17)
"""Columns of `sums`, which has one row for each level.

LOSER_SHIFT, WINNER_SHIFT : the shifts of the exponents of the level's rows as losers and as winners.
LOSER_SUM, LARGEST_SUM : the sum of the level's exponentials as losers, and its maximum since the last `rebuild`.
Z, Z0, T1 … T4 : the sum over the losers, the reference, and the winners' sums at it. T, TT : T1 and T2 at Z.
WINNER_RATIO, LOSER_RATIO : the factors that convert WINNER_SHIFT and LOSER_SHIFT of level k + 1 to WINNER_SHIFT of k.
M1, M2, V1 : moments of the current feature; zero between two features.
"""
COLUMNS = 17
_MAX_DRIFT = 5e-3
"""The largest relative difference of Z from Z0."""
_MIN_SHARE = 1e-4
"""A sum that has fallen below this share of its maximum has lost too many digits to cancellation."""
_MAX_EXPONENT = 700.0
_MAX_LOSER = 1e70
_MIN_EXP, _MAX_EXP = 1e-290, 1e290


@njit(cache=True, nogil=True, error_model="numpy")
def _exp(t):
    """exp(t); by seven terms of the series if t is small, as it is in most steps."""
    if abs(t) < 0.03:
        return 1.0 + t * (1.0 + t * (1 / 2 + t * (1 / 6 + t * (1 / 24 + t * (1 / 120 + t * (1 / 720))))))
    return math.exp(min(t, _MAX_EXPONENT))


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc"})
def _sum_winners(k, level_start, weight, winner_exp, sums):
    """Compute the winners' sums of level k at Z, and set Z0 = Z."""
    z = sums[k, Z]
    t1, t2, t3, t4 = 0.0, 0.0, 0.0, 0.0
    for i in range(level_start[k], level_start[k + 1]):
        s = 1.0 / (z + winner_exp[i])
        c = weight[i] * s
        t1 += c
        c *= s
        t2 += c
        c *= s
        t3 += c
        t4 += c * s
    sums[k, Z0], sums[k, T], sums[k, TT] = z, t1, t2
    sums[k, T1], sums[k, T2], sums[k, T3], sums[k, T4] = t1, t2, t3, t4


@njit(cache=True, nogil=True, error_model="numpy")
def _extrapolate(k, sums):
    """Extrapolate the winners' sums of level k from Z0 to Z."""
    dz = sums[k, Z] - sums[k, Z0]
    t2, t3, t4 = sums[k, T2], sums[k, T3], sums[k, T4]
    sums[k, T] = sums[k, T1] - dz * (t2 - dz * (t3 - dz * t4))
    sums[k, TT] = t2 - dz * (2.0 * t3 - 3.0 * dz * t4)


@njit(cache=True, nogil=True, error_model="numpy")
def rebuild(score, order, level_start, query_start, weight, loser_exp, winner_exp, sums):
    """Compute all exponentials and sums from the scores; returns the loss.

    order[level_start[k]:level_start[k+1]] are the rows of level k, and query_start[q]:query_start[q+1] are the levels
    of query q. loser_exp[row] and winner_exp[position in order] are a row's exponentials as a loser and as a winner.
    """
    loss = 0.0
    for q in range(len(query_start) - 1):
        lowest = query_start[q + 1] - 1
        for k in range(lowest, query_start[q] - 1, -1):
            best = -math.inf
            for i in range(level_start[k], level_start[k + 1]):
                best = max(best, score[order[i]])
            total = 0.0
            for i in range(level_start[k], level_start[k + 1]):
                row = order[i]
                loser_exp[row] = math.exp(score[row] - best)
                total += loser_exp[row]
            sums[k, LOSER_SHIFT], sums[k, LOSER_SUM], sums[k, LARGEST_SUM] = best, total, total
            sums[k, M1] = sums[k, M2] = sums[k, V1] = 0.0
            if k == lowest:
                sums[k, Z], sums[k, WINNER_SHIFT], sums[k, T], sums[k, TT] = 0.0, -math.inf, 0.0, 0.0
                continue
            top = max(sums[k + 1, WINNER_SHIFT], sums[k + 1, LOSER_SHIFT])
            sums[k, WINNER_SHIFT] = top
            sums[k, WINNER_RATIO] = math.exp(sums[k + 1, WINNER_SHIFT] - top)
            sums[k, LOSER_RATIO] = math.exp(sums[k + 1, LOSER_SHIFT] - top)
            sums[k, Z] = sums[k + 1, Z] * sums[k, WINNER_RATIO] + sums[k + 1, LOSER_SUM] * sums[k, LOSER_RATIO]
            z = math.log(sums[k, Z])
            for i in range(level_start[k], level_start[k + 1]):
                distance = score[order[i]] - top
                winner_exp[i] = math.exp(min(distance, _MAX_EXPONENT))
                if weight[i] > 0.0:
                    loss += weight[i] * (max(z - distance, 0.0) + math.log1p(math.exp(-abs(z - distance))))
            _sum_winners(k, level_start, weight, winner_exp, sums)
    return loss


@njit(cache=True, nogil=True, error_model="numpy")
def score_gradient(order, level_start, query_start, weight, loser_exp, winner_exp, sums, out):
    """out[row] = d loss / d score[row]."""
    for q in range(len(query_start) - 1):
        above = 0.0
        for k in range(query_start[q], query_start[q + 1]):
            loser_factor = above * sums[k - 1, LOSER_RATIO] if k > query_start[q] else 0.0
            is_winner = k < query_start[q + 1] - 1
            z = sums[k, Z]
            for i in range(level_start[k], level_start[k + 1]):
                row = order[i]
                out[row] = loser_exp[row] * loser_factor
                if is_winner:
                    out[row] -= weight[i] * z / (z + winner_exp[i])
            if is_winner:
                above = sums[k, T] + (above * sums[k - 1, WINNER_RATIO] if k > query_start[q] else 0.0)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc"})
def feature_gradient(pointer, rows, values, score_gradient, columns, out):
    """out[c] = sum_i X[i, columns[c]] score_gradient[i]."""
    for c in range(len(columns)):
        total = 0.0
        for p in range(pointer[columns[c]], pointer[columns[c] + 1]):
            total += values[p] * score_gradient[rows[p]]
        out[c] = total


@njit(cache=True, nogil=True, error_model="numpy")
def compute_scores(pointer, rows, values, weights, offset, score):
    """score[i] = sum_r X[i, r] weights[r] - offset[i]."""
    for i in range(len(score)):
        score[i] = -offset[i]
    for r in range(len(weights)):
        w = weights[r]
        if w != 0.0:
            for p in range(pointer[r], pointer[r + 1]):
                score[rows[p]] += values[p] * w


@njit(cache=True, nogil=True, error_model="numpy")
def _derivatives(
    r, pointer, rows, values, level, position, level_query, query_start, weight, loser_exp, winner_exp, sums,
    stamp, now, touched,
):  # fmt: skip
    """First and second derivative of the loss along feature r, the sum of the second's terms, the number of queries.

    touched[:count] are the queries with a row that has the feature. Neighbouring rows are mostly of one level, whose
    sums stay in registers until the level changes.
    """
    g, h, count, at = 0.0, 0.0, 0, -1
    m1, m2, v1, z, is_winner = 0.0, 0.0, 0.0, 0.0, False
    for p in range(pointer[r], pointer[r + 1]):
        row = rows[p]
        k = level[row]
        if k != at:
            if at >= 0:
                sums[at, M1], sums[at, M2], sums[at, V1] = m1, m2, v1
            at = k
            if k < 0:
                continue
            q = level_query[k]
            m1, m2, v1, z, is_winner = sums[k, M1], sums[k, M2], sums[k, V1], sums[k, Z], k < query_start[q + 1] - 1
            if stamp[q] != now:
                stamp[q] = now
                touched[count] = q
                count += 1
        elif k < 0:
            continue
        x = np.float64(values[p])
        term = loser_exp[row] * x
        m1 += term
        m2 += term * x
        if is_winner:
            i = position[row]
            s = 1.0 / (z + winner_exp[i])
            loss_share = z * s
            g -= weight[i] * x * loss_share
            derivative = weight[i] * (1.0 - loss_share) * s * x
            h += derivative * x * z
            v1 += derivative
    if at >= 0:
        sums[at, M1], sums[at, M2], sums[at, V1] = m1, m2, v1
    size = h
    for t in range(count):
        q = touched[t]
        m1, m2 = 0.0, 0.0
        for k in range(query_start[q + 1] - 2, query_start[q] - 1, -1):
            m1 = m1 * sums[k, WINNER_RATIO] + sums[k + 1, M1] * sums[k, LOSER_RATIO]
            m2 = m2 * sums[k, WINNER_RATIO] + sums[k + 1, M2] * sums[k, LOSER_RATIO]
            g += m1 * sums[k, T]
            gain = m2 * sums[k, T]
            size += gain
            h += gain - m1 * (m1 * sums[k, TT] + 2.0 * sums[k, V1])
        for k in range(query_start[q], query_start[q + 1]):
            sums[k, M1] = sums[k, M2] = sums[k, V1] = 0.0
    return g, h, size, count


@njit(cache=True, nogil=True, error_model="numpy")
def _multiply_exponentials(
    r, step, pointer, rows, values, level, position, level_query, query_start, weight, loser_exp, winner_exp, sums,
    resum,
):  # fmt: skip
    """Multiply the exponentials after a step along feature r; False if one left the range that its shift allows."""
    accurate, at = True, -1
    loser_sum, z, is_winner, is_loser = 0.0, 0.0, False, False
    t1, t2, t3, t4 = 0.0, 0.0, 0.0, 0.0
    for p in range(pointer[r], pointer[r + 1]):
        row = rows[p]
        k = level[row]
        if k < 0:
            continue
        if k != at:
            if at >= 0:
                _store(at, loser_sum, t1, t2, t3, t4, sums)
            at, q = k, level_query[k]
            loser_sum, z = sums[k, LOSER_SUM], sums[k, Z0]
            t1, t2, t3, t4 = sums[k, T1], sums[k, T2], sums[k, T3], sums[k, T4]
            is_loser, is_winner = k > query_start[q], k < query_start[q + 1] - 1
        t = step * np.float64(values[p])
        factor = _exp(t)
        if is_loser:
            old = loser_exp[row]
            new = old * factor if t <= 0.0 or old < _MAX_LOSER / factor else _MAX_LOSER
            accurate &= new < _MAX_LOSER and (t <= 0.0 or old > _MIN_EXP)
            loser_sum += new - old
            loser_exp[row] = new
        if is_winner:
            i = position[row]
            old = winner_exp[i]
            new = old * factor if t <= 0.0 or old < _MAX_EXP / factor else _MAX_EXP
            accurate &= max(old, new) < _MAX_EXP and (t <= 0.0 or old > _MIN_EXP)
            winner_exp[i] = new
            if not resum:
                a, b = 1.0 / (z + new), 1.0 / (z + old)
                c, aa, bb = weight[i], a * a, b * b
                t1 += c * (a - b)
                t2 += c * (aa - bb)
                t3 += c * (aa * a - bb * b)
                t4 += c * (aa * aa - bb * bb)
    if at >= 0:
        _store(at, loser_sum, t1, t2, t3, t4, sums)
    return accurate


@njit(cache=True, nogil=True, error_model="numpy")
def _store(k, loser_sum, t1, t2, t3, t4, sums):
    sums[k, LOSER_SUM], sums[k, T1], sums[k, T2], sums[k, T3], sums[k, T4] = loser_sum, t1, t2, t3, t4


@njit(cache=True, nogil=True, error_model="numpy")
def _update_sums(touched, count, level_start, query_start, weight, winner_exp, sums, resum):
    """Update Z and the winners' sums of the touched queries; False if a sum lost too many digits."""
    accurate = True
    for t in range(count):
        q = touched[t]
        lowest = query_start[q + 1] - 1
        for k in range(lowest, query_start[q] - 1, -1):
            loser_sum = sums[k, LOSER_SUM]
            sums[k, LARGEST_SUM] = max(sums[k, LARGEST_SUM], loser_sum)
            accurate &= k == query_start[q] or loser_sum > _MIN_SHARE * sums[k, LARGEST_SUM]
            if k == lowest:
                continue
            z = sums[k + 1, Z] * sums[k, WINNER_RATIO] + sums[k + 1, LOSER_SUM] * sums[k, LOSER_RATIO]
            accurate &= z > _MIN_SHARE
            sums[k, Z] = z
            if resum or abs(z - sums[k, Z0]) > _MAX_DRIFT * sums[k, Z0]:
                _sum_winners(k, level_start, weight, winner_exp, sums)
            else:
                _extrapolate(k, sums)
    return accurate


@njit(cache=True, nogil=True, error_model="numpy")
def best_step(w, g, h, feature_range, bound, l1, l2):
    """The step that minimises an upper bound of  loss + l1 |w| + l2 w²  along one feature.

    g, h : first and second derivative of the loss. feature_range : the largest range R of the feature within a query.
    Then |f'''| <= R f'', so that  f(d) <= f(0) + g d + h (exp(R|d|) - R|d| - 1) / R².  If h is 0 or inaccurate, the
    quadratic bound of curvature `bound` = sum_q c_q R_q² / 4 is minimised instead (the paper has m max x²).
    """
    if not h > _MIN_EXP:
        return quadratic_step(w, g, bound, l1, l2)
    distance = min(feature_range * abs(w), _MAX_EXPONENT)
    gradient = g - math.copysign(h * math.expm1(distance) / feature_range, w)
    if abs(gradient) <= l1:
        return -w
    total_gradient = g + 2.0 * l2 * w - math.copysign(l1, gradient)
    size = abs(total_gradient)
    ratio = feature_range * size / h
    d = (math.log1p(ratio) if ratio < math.inf else math.log(feature_range * size) - math.log(h)) / feature_range
    if l2 > 0.0:
        d = min(d, size / (2.0 * l2))
        for _ in range(50):
            tail = math.expm1(feature_range * d)
            less = (h * tail / feature_range + 2.0 * l2 * d - size) / (h * (tail + 1.0) + 2.0 * l2)
            d -= less
            if less <= 1e-12 * d:
                break
    return -math.copysign(d, total_gradient)


@njit(cache=True, nogil=True, error_model="numpy")
def quadratic_step(w, g, beta, l1, l2):
    """The minimum of  g d + beta d² / 2 + l1 |w + d| + l2 (w + d)²  (Lemmas 1 and 2)."""
    if abs(g - beta * w) <= l1:
        return -w
    sign = 1.0 if beta * w - g > 0.0 else -1.0
    return -(g + 2.0 * l2 * w + sign * l1) / (beta + 2.0 * l2)


@njit(cache=True, nogil=True, error_model="numpy")
def violation(w, g, l1, l2):
    """The distance of 0 from the subdifferential of the objective along one feature."""
    if w == 0.0:
        return max(abs(g) - l1, 0.0)
    return abs(g + 2.0 * l2 * w + math.copysign(l1, w))


@njit(cache=True, nogil=True, error_model="numpy")
def descend(
    pointer, rows, values, level, position, level_query, order, level_start, query_start, weight, columns, active,
    weights, feature_range, bound, l1, l2, slack, offset, score, loser_exp, winner_exp, sums, stamp, clock, touched,
):  # fmt: skip
    """One pass over columns[:active]; returns the number of columns that stay active, and the largest violation.

    A feature with weight zero whose gradient is below l1 by more than `slack` is moved behind the active ones.
    """
    largest, c = 0.0, 0
    n_rows = len(order)
    while c < active:
        r = columns[c]
        clock[0] += 1
        g, h, size, count = _derivatives(
            r, pointer, rows, values, level, position, level_query, query_start, weight, loser_exp, winner_exp, sums,
            stamp, clock[0], touched,
        )  # fmt: skip
        w = weights[r]
        if w == 0.0 and abs(g) < l1 - slack:
            active -= 1
            columns[c], columns[active] = columns[active], r
            continue
        c += 1
        violated = violation(w, g, l1, l2)
        largest = max(largest, violated)
        if violated == 0.0:
            continue
        step = best_step(w, g, h if h > 1e-9 * size else 0.0, feature_range[r], bound[r], l1, l2)
        if step == 0.0:
            continue
        weights[r] = 0.0 if step == -w else w + step
        resum = 4 * (pointer[r + 1] - pointer[r]) > n_rows
        accurate = _multiply_exponentials(
            r, step, pointer, rows, values, level, position, level_query, query_start, weight, loser_exp, winner_exp,
            sums, resum,
        )  # fmt: skip
        accurate &= _update_sums(touched, count, level_start, query_start, weight, winner_exp, sums, resum)
        if not accurate:
            compute_scores(pointer, rows, values, weights, offset, score)
            rebuild(score, order, level_start, query_start, weight, loser_exp, winner_exp, sums)
    return active, largest
