"""Parse LETOR / svmlight text into arrays, byte by byte.

Every number becomes the double nearest to its decimal. If 64-bit arithmetic cannot decide which that is, the array gets
a NaN that encodes the position of the number in the text, and the caller parses it; the format itself has no NaN.

The text must end with a newline, where every scan stops, so that no loop has to check for the end.
"""

import math

import numpy as np
from numba import njit

OK, BAD_GRADE, BAD_QID, BAD_INDEX, BAD_VALUE, WIDE_INDEX, NOT_RISING = range(7)

ROW, QID, COMMENT = range(3)
"""The columns of `at`: the positions of a row, of its query id and of its '#' (-1 if it has none)."""

DOUBT = np.uint64(0x7FF8_0000_0000_0000)
"""The bits of a NaN; a number that the caller must parse is DOUBT + its position in the text."""

EXACT, DOUBTFUL, MALFORMED = range(3)

_LOWEST, _HIGHEST = -330, 310
"""Powers of ten beyond which no number of 19 digits is a normal double."""


def _ten_to(power: int) -> tuple[int, int]:
    """(t, e) with t = floor(10**power / 2**e) and 2**63 <= t < 2**64."""
    if power >= 0:
        exponent = (10**power).bit_length() - 64
        return (10**power >> exponent if exponent > 0 else 10**power << -exponent), exponent
    exponent = -63 - (10**-power).bit_length()
    whole = (1 << -exponent) // 10**-power
    return (whole, exponent) if whole < 1 << 64 else (whole >> 1, exponent + 1)


_TABLE = [_ten_to(power) for power in range(_LOWEST, _HIGHEST + 1)]
_TEN = np.array([t for t, _ in _TABLE], dtype=np.uint64)
_TEN_EXPONENT = np.array([e for _, e in _TABLE], dtype=np.int64)
_EXACT_TEN = np.array([float(10**power) for power in range(23)])

_EXACT_MANTISSA = np.uint64(1 << 53)
_TOP_BIT = np.uint64(1 << 63)
_LOW_HALF = np.uint64(0xFFFF_FFFF)
_ONE, _TEN_U, _DROPPED, _HALF_WORD = np.uint64(1), np.uint64(10), np.uint64(11), np.uint64(32)


@njit(cache=True, nogil=True)
def count_marks(text, start, stop):
    """Newlines and colons in text[start:stop]: upper bounds of its rows and its features."""
    lines = 0
    colons = 0
    for i in range(start, stop):
        lines += text[i] == 10
        colons += text[i] == 58
    return lines, colons


@njit(cache=True, nogil=True)
def _high_and_low(a, b):
    """The 128-bit product a * b as two words."""
    a_low, a_high = a & _LOW_HALF, a >> _HALF_WORD
    b_low, b_high = b & _LOW_HALF, b >> _HALF_WORD
    low = a_low * b_low
    middle = a_high * b_low + (low >> _HALF_WORD)
    other = a_low * b_high + (middle & _LOW_HALF)
    return a_high * b_high + (middle >> _HALF_WORD) + (other >> _HALF_WORD), a * b


@njit(cache=True, nogil=True)
def nearest(mantissa, power, cut):
    """(value, status): the double nearest to mantissa * 10**power; DOUBTFUL if 64 bits cannot decide.

    With t as in `_ten_to`, the true number lies in [m*t, m*(t+1)) * 2**e. If digits were dropped (`cut`: then mantissa
    >= 10**18), its mantissa lies in [m, m+1). In units of the product's upper 64 bits that interval is narrower than 3,
    or than 40 with `cut`. The result is certain if no midpoint between two doubles lies in the interval.
    """
    if mantissa <= _EXACT_MANTISSA and -22 <= power <= 22 and not cut:
        if power < 0:
            return np.float64(mantissa) / _EXACT_TEN[-power], EXACT
        return np.float64(mantissa) * _EXACT_TEN[power], EXACT
    if mantissa == np.uint64(0):
        return 0.0, EXACT
    if power < _LOWEST or power > _HIGHEST:
        return 0.0, DOUBTFUL
    exponent = _TEN_EXPONENT[power - _LOWEST] + 64 + 11
    while mantissa < _TOP_BIT:
        mantissa = mantissa << _ONE
        exponent -= 1
    high, low = _high_and_low(mantissa, _TEN[power - _LOWEST])
    if high < _TOP_BIT:
        high = (high << _ONE) | (low >> np.uint64(63))
        exponent -= 1
    rest = np.int64(high & np.uint64(2047))
    high = high >> _DROPPED
    if rest > 1024:
        high = high + _ONE
    elif rest + (40 if cut else 3) > 1024:
        return 0.0, DOUBTFUL
    if exponent < -1074 or exponent > 970:
        return 0.0, DOUBTFUL
    return math.ldexp(np.float64(high), int(exponent)), EXACT


@njit(cache=True, nogil=True)
def _leading_digits(text, i):
    """(mantissa, power) of the first 19 significant digits of the number at i."""
    mantissa = np.uint64(0)
    power = 0
    digits = 0
    dot = False
    while True:
        c = np.int64(text[i])
        if c == 46:
            dot = True
        elif c < 48 or c > 57:
            return mantissa, power
        elif digits < 19:
            mantissa = mantissa * _TEN_U + np.uint64(c - 48)
            digits += mantissa != np.uint64(0)
            power -= dot
        else:
            power += not dot
        i += 1


@njit(cache=True, nogil=True)
def _sign(text, i):
    """(position after the sign, whether it is a minus) of the number at i."""
    c = np.int64(text[i])
    return i + (c == 45 or c == 43), c == 45


@njit(cache=True, nogil=True)
def number(text, i):
    """(end, value, status) of the decimal at i, read as Python's float() reads it; no underscores, inf or nan."""
    first, negative = _sign(text, i)
    i, mantissa = first, np.uint64(0)
    c = np.int64(text[i])
    while 48 <= c <= 57:  # repeated below: as a function this loop makes parsing a tenth slower
        mantissa = mantissa * _TEN_U + np.uint64(c - 48)
        i += 1
        c = np.int64(text[i])
    digits = i - first
    power = 0
    if c == 46:
        i += 1
        dot = i
        c = np.int64(text[i])
        while 48 <= c <= 57:
            mantissa = mantissa * _TEN_U + np.uint64(c - 48)
            i += 1
            c = np.int64(text[i])
        power = dot - i
        digits -= power
    if digits == 0:
        return i, 0.0, MALFORMED
    cut = digits > 19
    if cut:
        mantissa, power = _leading_digits(text, first)
        cut = mantissa >= np.uint64(1_000_000_000_000_000_000)
    if c == 101 or c == 69:
        i, shift = _exponent(text, i + 1)
        if i < 0:
            return -i, 0.0, MALFORMED
        power += shift
    value, status = nearest(mantissa, power, cut)
    return i, -value if negative else value, status


@njit(cache=True, nogil=True)
def _exponent(text, i):
    """(end, exponent) of the exponent at i, capped at a billion; the end is negative if it is malformed."""
    first, negative = _sign(text, i)
    i = first
    exponent = 0
    c = np.int64(text[i])
    while 48 <= c <= 57:
        if exponent < 1_000_000_000:
            exponent = exponent * 10 + (c - 48)
        i += 1
        c = np.int64(text[i])
    if i == first:
        return -i, 0
    return i, -exponent if negative else exponent


@njit(cache=True, nogil=True)
def _blank(c):
    return c == 32 or c == 9 or (11 <= c <= 13)


@njit(cache=True, nogil=True)
def _word_ends(c):
    return c == 32 or (9 <= c <= 13) or c == 35


@njit(cache=True, nogil=True)
def _past_blanks(text, i):
    while _blank(np.int64(text[i])):
        i += 1
    return i


@njit(cache=True, nogil=True)
def _line_end(text, i):
    while text[i] != 10:
        i += 1
    return i


@njit(cache=True, nogil=True)
def _query_id(text, i):
    """(end, id, whether the id is an integer of 64 bits) of the query id at i."""
    digits, negative = _sign(text, i)
    i = digits
    size = np.uint64(0)
    whole = True
    c = np.int64(text[i])
    while not _word_ends(c):
        if c < 48 or c > 57 or size > np.uint64(922_337_203_685_477_580):
            whole = False
        else:
            size = size * _TEN_U + np.uint64(c - 48)
        i += 1
        c = np.int64(text[i])
    if i == digits or size > np.uint64(9_223_372_036_854_775_807) + np.uint64(negative):
        whole = False
    if not whole:
        return i, np.int64(0), whole
    value = np.int64(size)
    return i, -value if negative else value, whole


@njit(cache=True, nogil=True)
def _head(text, i, row, grades, grade_bits, qids, at):
    """Read the grade and the query id of the row at i. Returns (code, end, doubtful numbers, ids of text)."""
    at[row, ROW] = i
    at[row, QID] = -1
    end, grades[row], status = number(text, i)
    if status == MALFORMED or not _word_ends(text[end]):
        return BAD_GRADE, i, 0, 0
    if status == DOUBTFUL:
        grade_bits[row] = DOUBT + np.uint64(i)
    i = _past_blanks(text, end)
    if text[i] != 113:
        return OK, i, status, 0
    if text[i + 1] != 105 or text[i + 2] != 100 or text[i + 3] != 58 or _word_ends(text[i + 4]):
        return BAD_QID, i, 0, 0
    at[row, QID] = i + 4
    end, qids[row], whole = _query_id(text, i + 4)
    return OK, end, status, 0 if whole else 1


@njit(cache=True, nogil=True)
def _features(text, i, n, indices, values, value_bits, widest):
    """Read the features from i to the line's end or comment. Returns (code, end, n, last index, doubtful numbers)."""
    previous = -1
    doubts = 0
    while True:
        i = _past_blanks(text, i)
        c = np.int64(text[i])
        if c == 10 or c == 35:
            return OK, i, n, previous, doubts
        first = i
        index = 0
        while 48 <= c <= 57:
            index = index * 10 + (c - 48)
            if index > widest:
                return WIDE_INDEX, first, n, previous, doubts
            i += 1
            c = np.int64(text[i])
        if c != 58 or i == first:
            return BAD_INDEX, first, n, previous, doubts
        end, values[n], status = number(text, i + 1)
        if status == MALFORMED or not _word_ends(text[end]):
            return BAD_VALUE, first, n, previous, doubts
        if index <= previous:
            return NOT_RISING, first, n, previous, doubts
        if status == DOUBTFUL:
            value_bits[n] = DOUBT + np.uint64(i + 1)
            doubts += 1
        indices[n] = previous = index
        n += 1
        i = end


@njit(cache=True, nogil=True)
def fill(text, start, stop, grades, grade_bits, qids, at, ends, indices, values, value_bits, widest):
    """Read the lines of text[start:stop], which must be whole lines, into the arrays.

    `grade_bits` and `value_bits` are `grades` and `values` viewed as uint64; row r ends before feature `ends[r]`.
    Returns (code, position of the error, rows, features, smallest index, largest index, doubtful numbers, query ids of
    text); an index above `widest` is an error.
    """
    code, rows, n, doubts, words = OK, 0, 0, 0, 0
    smallest, largest = widest, -1
    i = start
    while i < stop:
        i = _past_blanks(text, i)
        if text[i] != 10 and text[i] != 35:
            code, i, doubtful, word = _head(text, i, rows, grades, grade_bits, qids, at)
            if code != OK:
                break
            begin = n
            code, i, n, last, more = _features(text, i, n, indices, values, value_bits, widest)
            if code != OK:
                break
            if n > begin:
                smallest, largest = min(smallest, indices[begin]), max(largest, last)
            at[rows, COMMENT] = i if text[i] == 35 else -1
            doubts += doubtful + more
            words += word
            ends[rows] = n
            rows += 1
        i = _line_end(text, i) + 1
    return code, i, rows, n, smallest, largest, doubts, words
