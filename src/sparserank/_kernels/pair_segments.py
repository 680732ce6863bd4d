"""The memory of rows of W: how a row is stored in a segment, is read, and finds a segment of another length.

Columns are numbered by falling frequency. The *head* of row i is its first head_sizes[level] columns, none at level 0:
a bit for each column, set where a number is stored, and these numbers. They are those that are not zero; without
AVX-512 they are 16 at a time. The *tail* is a list of (column, number) in any order. A segment has them in this order:

    head_sizes[level] bits, in words of 32 | numbers of the head | column, number, column, number, …

`values` are the segments of a block of rows, `words` the same memory as integers, `chunks` as integers of 16 bits.
rows[i] is a `ROW`.

A row is read to `scratch`, which is zero outside the row that was read last, and the columns of its tail to `columns`;
its head is packed again to `bits` and `packed`. A number z is stored where v = soft(z, s) is meant: scratch has v.

Segments have the lengths `segment_sizes`. free_segments[c] is the first free segment of length segment_sizes[c], or -1,
and its first word is the next one. state[0] is the end of the segments in use.

The kernels get every array as an argument: Numba counts references to arrays in tuples and to slices, atomically.
"""

import numpy as np
from numba import njit

from .instructions import compress16, expand16, lowest_bit, popcount, prefetch, soft

# digest of the imported kernels: 3ee4a1bf973b966c

TINY = np.float32(1e-37)
"""An entry of this size counts as zero, and is removed when its row is packed."""
_ZERO = np.float32(0.0)
_END = np.uint32(0xFFFFFFFF)

ROW = np.dtype([(name, np.int64) for name in ("level", "start", "capacity", "head", "nonzeros", "tail")])
"""A row: its level, its segment, the numbers stored for its head and how many are not zero, the entries of its tail."""
SHORT = 128
"""A row in which at most one of so many columns is not zero is copied by sorting its columns."""
SPARE = 16
"""Words after the last segment that may be read, and numbers after the packed ones that may be written."""


@njit(cache=True, nogil=True, inline="always")
def nonzero(v):
    """v, or TINY if it is 0: in scratch, 0 means that the tail has no such entry."""
    return v if v != _ZERO else TINY


@njit(cache=True, nogil=True, inline="always")
def words_of_bits(length):
    """The words that the bits of a head take."""
    return (length + 31) >> 5


@njit(cache=True, nogil=True, inline="always")
def used_words(row, head_sizes):
    """The words of its segment that a row uses."""
    return words_of_bits(head_sizes[row["level"]]) + row["head"] + 2 * row["tail"]


@njit(cache=True, nogil=True, inline="always")
def prefetch_quarter(row, quarter, head_sizes, values):
    """Start to load a quarter of a row: a processor drops requests beyond the few dozen that it can wait for."""
    n = used_words(row, head_sizes)
    start, end = row["start"] + (quarter * n >> 2), row["start"] + ((quarter + 1) * n >> 2)
    for k in range(start, end, 16):
        prefetch(values, k)


@njit(cache=True, nogil=True, inline="always")
def read_row(row, s, head_sizes, words, chunks, values, scratch, columns, dirty):
    """Read soft(row, s) to scratch and columns[: row["tail"]]; scratch[:dirty] has the head of another row."""
    length, first = head_sizes[row["level"]], 2 * row["start"]
    at = row["start"] + words_of_bits(length)
    n_chunks = (length + 15) >> 4
    for k in range(n_chunks):
        mask = np.int64(chunks[first + k])
        expand16(values, at, mask, s, scratch, 16 * k)
        at += popcount(mask)
    for j in range(np.uint64(16 * n_chunks), np.uint64(dirty)):
        scratch[j] = _ZERO
    place = np.uint64(at)
    for k in range(row["tail"]):
        j = words[place]
        columns[k], scratch[j] = j, nonzero(soft(values[place + np.uint64(1)], s))
        place += np.uint64(2)


@njit(cache=True, nogil=True)
def change_threshold(length, n_tail, s, now, scratch, columns):
    """Change what was read under the threshold s to what it is under the threshold `now`."""
    for j in range(length):
        scratch[j] = soft(scratch[j] + np.copysign(s, scratch[j]), now)
    for k in range(n_tail):
        v = scratch[columns[k]]
        scratch[columns[k]] = nonzero(soft(v + np.copysign(s, v), now))


@njit(cache=True, nogil=True, inline="always")
def pack_head(length, s, now, scratch, bits, packed):
    """Pack the head, read or changed under the threshold s, without what is zero under the threshold `now`.

    Returns how many numbers are stored, and how many are not zero. In scratch they have the threshold `now` then.
    """
    n, nonzeros, n_chunks, smallest = 0, 0, (length + 15) >> 4, max(now, TINY)
    for k in range(n_chunks):
        mask = compress16(scratch, 16 * k, s, smallest, now, packed, n)
        bits[k] = mask & 0xFFFF
        n += popcount(mask & 0xFFFF)
        nonzeros += mask >> 16
    bits[n_chunks] = 0  # the other half of the last word
    return n, nonzeros


@njit(cache=True, nogil=True, inline="always")
def write_row(
    row, level, n_head, nonzeros, n_tail, s, now, head_sizes, words, chunks, values, scratch, columns, bits, packed
):
    """Write a packed head, and the tail, which is packed in the same way, to the segment of a row."""
    length, start, smallest = head_sizes[level], row["start"], max(now, TINY)
    _copy(bits, 2 * words_of_bits(length), chunks, 2 * start)
    first = start + words_of_bits(length) + n_head
    _copy(packed, n_head, values, first - n_head)
    at = np.uint64(first)
    for k in range(n_tail):
        j = columns[k]
        z = scratch[j] + np.copysign(s, scratch[j])
        scratch[j] = soft(z, now)
        words[at], values[at + np.uint64(1)] = j, z
        at += np.uint64(abs(z) > smallest) << np.uint64(1)
    row["level"], row["head"], row["nonzeros"], row["tail"] = level, n_head, nonzeros, (np.int64(at) - first) >> 1


@njit(cache=True, nogil=True, inline="always")
def _copy(source, n, target, first):
    """target[first:first + n] = source[:n]; unsigned places need no check for negative ones."""
    at = np.uint64(first)
    for k in range(np.uint64(n)):
        target[at + k] = source[k]


@njit(cache=True, nogil=True, inline="always")
def clear_tail(scratch, columns, n):
    """Set scratch to 0 at columns[:n]."""
    for k in range(n):
        scratch[columns[k]] = _ZERO


@njit(cache=True, nogil=True)
def load_rows(first, stride, ptr, idx, val, rows, head_sizes, words, chunks, values, scratch, columns, bits, packed):
    """Write rows of a CSR matrix to their segments; rows[i] has the level, and a segment that is long enough."""
    for i in range(first, len(rows), stride):
        length, n = head_sizes[rows[i]["level"]], 0
        for k in range(ptr[i], ptr[i + 1]):
            scratch[idx[k]] = val[k]
            columns[n] = idx[k]
            n += np.int64(idx[k] >= length)
        n_head, nonzeros = pack_head(length, _ZERO, _ZERO, scratch, bits, packed)
        write_row(
            rows[i], rows[i]["level"], n_head, nonzeros, n, _ZERO, _ZERO, head_sizes, words, chunks, values,
            scratch, columns, bits, packed,
        )  # fmt: skip
        for k in range(ptr[i], ptr[i + 1]):
            scratch[idx[k]] = _ZERO


@njit(cache=True, nogil=True)
def count_entries(first, stride, s, rows, head_sizes, values, counts):
    """counts[i] = the number of nonzeros of W[i], shrunk by s."""
    for i in range(first, len(rows), stride):
        row, n = rows[i], 0
        at = row["start"] + words_of_bits(head_sizes[row["level"]])
        end = at + row["head"]
        for k in range(at, end):
            n += abs(values[k]) > s
        for k in range(end + 1, end + 2 * row["tail"], 2):
            n += abs(values[k]) > s
        counts[i] = n


@njit(cache=True, nogil=True)
def copy_rows(first, stride, s, order, rows, head_sizes, words, chunks, values, scratch, packed, ptr, out_idx, out_val):
    """Copy the nonzeros of W[i], shrunk by s, to out[ptr[i]:ptr[i + 1]] as columns order[j], which rise.

    `scratch` is 0 for every column, on entry and on return; `packed` has room for 16 numbers. The columns of a short
    row are sorted. The others are found in `scratch`, 16 at a time.
    """
    n_chunks = np.uint64((len(order) + 15) >> 4)
    for i in range(first, len(rows), stride):
        row = rows[i]
        is_short = SHORT * (ptr[i + 1] - ptr[i]) < len(order)
        at, n = row["start"] + words_of_bits(head_sizes[row["level"]]), np.uint64(ptr[i])
        for chunk in range((head_sizes[row["level"]] + 15) >> 4):
            mask = np.int64(chunks[2 * row["start"] + chunk])
            while mask:
                k = 16 * chunk + lowest_bit(mask)
                z = soft(values[at], s)
                if z != _ZERO:  # a head that stores 16 numbers at a time has zeros behind the last column
                    scratch[order[k]] = z
                    if is_short:
                        out_idx[n] = order[k]
                        n += np.uint64(1)
                at += 1
                mask &= mask - 1
        for k in range(at, at + 2 * row["tail"], 2):
            z = soft(values[k + 1], s)
            scratch[order[words[k]]] = z
            if is_short and z != _ZERO:
                out_idx[n] = order[words[k]]
                n += np.uint64(1)
        if is_short:
            _move_sorted(ptr[i], ptr[i + 1], scratch, out_idx, out_val)
            continue
        for chunk in range(n_chunks):
            mask = compress16(scratch, 16 * chunk, _ZERO, _ZERO, _ZERO, packed, 0) & 0xFFFF
            while mask:
                j = np.uint64(16 * chunk + lowest_bit(mask))
                if scratch[j] != _ZERO:
                    out_idx[n], out_val[n] = j, scratch[j]
                    n += np.uint64(1)
                scratch[j] = _ZERO
                mask &= mask - 1


@njit(cache=True, nogil=True)
def _move_sorted(begin, end, scratch, out_idx, out_val):
    """Sort out_idx[begin:end], and move the numbers of these columns from scratch to out_val."""
    out_idx[begin:end].sort()
    for k in range(begin, end):
        out_val[k] = scratch[out_idx[k]]
        scratch[out_idx[k]] = _ZERO


@njit(cache=True, nogil=True)
def _size_class(n, segment_sizes):
    """The class of the shortest segments for more than n words, with an eighth to spare."""
    c = 0
    while segment_sizes[c] <= n + n // 8:
        c += 1
    return c


@njit(cache=True, nogil=True)
def reserve(row, need, state, segment_sizes, free_segments, words):
    """Give a row a longer segment, for `need` words; returns whether there was memory for it.

    The row is not copied.
    """
    start, length = _allocate(need, state, segment_sizes, free_segments, words)
    if start < 0:
        return False
    _release(row["start"], row["capacity"], segment_sizes, free_segments, words)
    row["start"], row["capacity"] = start, length
    return True


@njit(cache=True, nogil=True)
def _allocate(n, state, segment_sizes, free_segments, words):
    """(start, length) of a segment for n words: a free one of up to twice the length, or a new one at the end.

    Returns (-1, 0) if there is no memory left.
    """
    c = _size_class(n, segment_sizes)
    for other in range(c, min(c + 4, len(segment_sizes))):
        segment = free_segments[other]
        if segment >= 0:
            following = words[segment]
            free_segments[other] = -1 if following == _END else np.int64(following)
            return segment, segment_sizes[other]
    segment = state[0]
    if segment + segment_sizes[c] + SPARE > len(words):
        return -1, 0
    state[0] = segment + segment_sizes[c]
    return segment, segment_sizes[c]


@njit(cache=True, nogil=True)
def _release(segment, length, segment_sizes, free_segments, words):
    """Add a segment to the free ones."""
    c = 0
    while segment_sizes[c] != length:
        c += 1
    words[segment] = _END if free_segments[c] < 0 else np.uint32(free_segments[c])
    free_segments[c] = segment


@njit(cache=True, nogil=True)
def _move(words, start, to, n):
    source, target = np.uint64(start), np.uint64(to)
    for k in range(np.uint64(n)):
        words[target + k] = words[source + k]


@njit(cache=True, nogil=True)
def shorten_segments(first, stride, rows, head_sizes, state, segment_sizes, free_segments, words):
    """Move rows to shorter segments if one is free or if at most half of the present one is needed."""
    for i in range(first, len(rows), stride):
        row = rows[i]
        start, capacity, n = row["start"], row["capacity"], used_words(row, head_sizes)
        c = _size_class(n, segment_sizes)
        if segment_sizes[c] < capacity and (free_segments[c] >= 0 or 2 * segment_sizes[c] <= capacity):
            to, length = _allocate(n, state, segment_sizes, free_segments, words)
            if to >= 0:
                _move(words, start, to, n)
                _release(start, capacity, segment_sizes, free_segments, words)
                row["start"], row["capacity"] = to, length


@njit(cache=True, nogil=True)
def compact(order, rows, head_sizes, segment_sizes, words):
    """Move the segments of the rows in `order` (by rising start) together; returns the end of the last one."""
    end = 0
    for i in order:
        row = rows[i]
        n = used_words(row, head_sizes)
        _move(words, row["start"], end, n)
        row["start"], row["capacity"] = end, min(row["capacity"], segment_sizes[_size_class(n, segment_sizes)])
        end += row["capacity"]
    return end
