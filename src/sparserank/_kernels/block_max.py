"""Exact top-k search with block maxima: documents whose upper bound is below the k-th best score are not scored.

Documents are grouped in blocks of 8 neighbours. For each term the index knows the largest weight in each block, its
*level*: in 255ths of the term's largest weight, rounded up. A query adds these levels up, which bounds the score of
every document of a block, and scores the most promising blocks. The k-th best score is a threshold: a block whose bound
is below it contains no result; the others are scored as well. Scores are the sums of `inverted.search` (float64,
ascending columns, rounded to float32 once), so the results have the same bits.

A term of at least one document in DENSE_SHARE has a row of levels, of masks (bit i: document i of the block has the
term) and of groups (the number of postings before each 64 documents). Another term has a list of its blocks: entries
block · 256 + level, and masks. A term of a few documents has neither. A wrong value in a damaged file cannot make these
functions access anything outside of their arrays.
"""

import numpy as np
from numba import njit

SHIFT = 3
BLOCK = 1 << SHIFT
"""Documents of a block."""
CHUNK = 16
"""Blocks whose bounds are compared together."""
TILE = 4096
"""Blocks whose bounds stay in the first cache while the dense terms are added."""
DENSE_SHARE = 64
MIN_POSTINGS = 8
"""A shorter list has no blocks."""
EXTRA_CHUNKS = 54
"""The first blocks to be scored have bounds at least as large as those of the best k + EXTRA_CHUNKS chunks."""
SEEDS_PER_CHUNK = 4
"""The largest number of blocks that are scored first for each of these chunks."""
BLOCK_COST = 3
"""Cost of scoring a block for one term, in postings read by the exhaustive search."""
ROUNDING = 1.2e-7
"""Relative error of one float32 addition."""
SMALLEST, LARGEST = 1e-30, 1e30
"""Bounds are not used beyond: float32 has fewer digits there, or none."""
_8, _255 = np.uint32(8), np.uint32(255)
_ONES, _TWOS, _FOURS = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333), np.uint64(0x0F0F0F0F0F0F0F0F)
_BYTES, _1, _2, _4, _56 = np.uint64(0x0101010101010101), np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)


@njit(cache=True, nogil=True)
def count_blocks(starts, docs, n_docs):
    """Return the number of entries of each term, and the row of each dense term (-1 for others)."""
    n_terms = len(starts) - 1
    counts, dense_row, n_dense = np.zeros(n_terms, np.int64), np.full(n_terms, -1, np.int32), 0
    for term in range(n_terms):
        begin, end = starts[term], starts[term + 1]
        if end - begin < MIN_POSTINGS:
            continue
        if (end - begin) * DENSE_SHARE >= n_docs:
            dense_row[term] = n_dense
            n_dense += 1
            continue
        last = -1
        for j in range(begin, end):
            block = docs[j] >> SHIFT
            counts[term] += block != last
            last = block
    return counts, dense_row


@njit(cache=True, nogil=True)
def _level(weight, peak):
    """Return the smallest number of 255ths of `peak` that is not below abs(weight)."""
    if peak == 0.0:
        return 0
    return min(np.int64(np.ceil(abs(np.float64(weight)) * 255.0 / np.float64(peak))), 255)


@njit(cache=True, nogil=True)
def fill_blocks(starts, docs, weights, b_starts, dense_row, entries, masks, levels, dense_masks, groups, peaks):
    """Fill the arrays; peaks[term] is the largest absolute weight, with a minus if a weight of the term is negative."""
    for term in range(len(starts) - 1):
        begin, end, row = starts[term], starts[term + 1], dense_row[term]
        peak, signed = np.float32(0.0), False
        for j in range(begin, end):
            peak = max(peak, abs(weights[j]))
            signed |= weights[j] < 0.0
        peaks[term] = -peak if signed else peak
        if row >= 0:
            group = 0
            for j in range(begin, end):
                doc, block = docs[j], docs[j] >> SHIFT
                levels[row, block] = max(levels[row, block], _level(weights[j], peak))
                dense_masks[row, block] |= 1 << (doc & (BLOCK - 1))
                while group <= block >> 3:
                    groups[row, group] = j - begin
                    group += 1
        elif b_starts[term] < b_starts[term + 1]:
            at, last, level = b_starts[term] - 1, -1, 0
            for j in range(begin, end):
                doc, block = docs[j], docs[j] >> SHIFT
                if block != last:
                    at, last, level = at + 1, block, 0
                level = max(level, _level(weights[j], peak))
                entries[at] = (np.int64(block) << 8) | level
                masks[at] |= 1 << (doc & (BLOCK - 1))


@njit(cache=True, nogil=True)
def query_lists(columns, query, starts, b_starts, dense_row, peaks):
    """Return what the index has for each term of a query, together: the memory is then read once.

    lists[i] is the first posting and the end, the first entry and the end, and the dense row (-1: none). units[i] is
    the largest contribution of the term divided by 255; 0 if the term cannot increase a score.
    """
    n = len(columns)
    lists, units = np.empty((n, 5), np.int64), np.empty(n, np.float32)
    for i in range(n):
        column = columns[i]
        lists[i, 0], lists[i, 1] = starts[column], starts[column + 1]
        lists[i, 2], lists[i, 3] = b_starts[column], b_starts[column + 1]
        lists[i, 4] = dense_row[column]
        peak = np.float64(peaks[column])
        units[i] = 0.0 if query[i] < 0.0 and peak >= 0.0 else np.float32(abs(query[i]) * abs(peak) / 255.0)
    return lists, units


@njit(cache=True, nogil=True)
def add_bounds(query, lists, units, docs, weights, entries, levels, bounds):
    """Add to the bound of every block what each term contributes at most."""
    n_blocks = np.uint32(len(bounds))
    for i in range(len(query)):
        unit = units[i]
        if unit == 0.0 or lists[i, 4] >= 0:
            continue
        if lists[i, 2] < lists[i, 3]:
            for e in range(lists[i, 2], lists[i, 3]):
                entry = entries[e]
                block = entry >> _8
                if block < n_blocks:
                    bounds[block] += unit * np.float32(entry & _255)
        else:
            weight = np.float32(abs(query[i]))
            for j in range(lists[i, 0], lists[i, 1]):
                block = docs[j] >> np.uint32(SHIFT)
                if block < n_blocks:
                    bounds[block] += weight * abs(weights[j])
    for begin in range(0, len(bounds), TILE):
        end = min(begin + TILE, len(bounds))
        part = bounds[begin:end]
        for i in range(len(query)):
            unit, row = units[i], lists[i, 4]
            if unit != 0.0 and row >= 0:
                level = levels[row, begin:end]
                for b in range(len(part)):
                    part[b] += unit * np.float32(level[b])


@njit(cache=True, nogil=True, inline="always")
def _popcount(word):
    """Return the number of bits that are set in a 64-bit word."""
    word = word - ((word >> _1) & _ONES)
    word = (word & _TWOS) + ((word >> _2) & _TWOS)
    return np.int64((((word + (word >> _4)) & _FOURS) * _BYTES) >> _56)


@njit(cache=True, nogil=True, inline="always")
def _add_block(block, mask, weight, j, weights, total):
    """Add the postings of one block, from posting j on."""
    doc = np.int64(block) << SHIFT
    while mask:
        if mask & 1:
            total[doc] += weight * np.float64(weights[j])
            j += 1
        doc += 1
        mask >>= 1


@njit(cache=True, nogil=True)
def score_blocks(query, lists, docs, weights, entries, masks, dense_masks, groups, live, blocks, total):
    """Sum the scores of the documents of `blocks`, which are those with live[block] = 1, over ascending columns."""
    n_blocks = np.uint32(len(live))
    for i in range(len(query)):
        weight, begin, end, row = query[i], lists[i, 0], lists[i, 1], lists[i, 4]
        if row >= 0:
            words = dense_masks[row].view(np.uint64)
            for block in blocks:
                mask = np.int64(dense_masks[row, block])
                if mask:
                    before = words[block >> 3] & ((_1 << np.uint64((block & 7) << 3)) - _1)
                    j = begin + np.int64(groups[row, block >> 3]) + _popcount(before)
                    if begin <= j and j + _popcount(np.uint64(mask)) <= end:
                        _add_block(block, mask, weight, j, weights, total)
        elif lists[i, 2] < lists[i, 3]:
            j = begin
            for e in range(lists[i, 2], lists[i, 3]):
                block, length = entries[e] >> _8, _popcount(np.uint64(masks[e]))
                if block < n_blocks and live[block] and j + length <= end:
                    _add_block(block, np.int64(masks[e]), weight, j, weights, total)
                j += length
        else:
            for j in range(begin, end):
                block = docs[j] >> np.uint32(SHIFT)
                if block < n_blocks and live[block]:
                    total[docs[j]] += weight * np.float64(weights[j])


@njit(cache=True, nogil=True)
def insert(score, doc, scores, docs, size):
    """Insert into the best len(scores) entries, sorted by descending score and ascending doc; return their number."""
    if size == len(scores):
        if score < scores[size - 1] or (score == scores[size - 1] and doc > docs[size - 1]):
            return size
        size -= 1
    at = size
    while at > 0 and (scores[at - 1] < score or (scores[at - 1] == score and docs[at - 1] > doc)):
        scores[at], docs[at] = scores[at - 1], docs[at - 1]
        at -= 1
    scores[at], docs[at] = score, doc
    return size + 1


@njit(cache=True, nogil=True)
def select(blocks, n_docs, allowed, skip, total, scores, found, size):
    """Insert the scores of the allowed documents of `blocks` and clear the sums; return the number of results."""
    for block in blocks:
        for doc in range(block << SHIFT, (block + 1) << SHIFT):
            value = total[doc]
            total[doc] = 0.0
            if doc < n_docs and value > -np.inf:
                score = np.float32(value)
                if score == np.float32(0.0) or (size == len(scores) and score < scores[size - 1]):
                    continue
                if doc != skip and (len(allowed) == 0 or (allowed[block] >> (doc & (BLOCK - 1))) & 1):
                    size = insert(score, doc, scores, found, size)
    return size


@njit(cache=True, nogil=True)
def chunk_maxima(bounds, tops):
    """Set tops[c] to the largest bound of each chunk. Bounds are not negative, so their bits compare as integers."""
    bits, highest = bounds.view(np.int32), tops.view(np.int32)
    n_full = len(bounds) // CHUNK
    for chunk in range(n_full):
        top = bits[chunk * CHUNK]
        for block in range(chunk * CHUNK + 1, (chunk + 1) * CHUNK):
            top = max(top, bits[block])
        highest[chunk] = top
    if n_full < len(tops):
        highest[n_full] = bits[n_full * CHUNK :].max()


@njit(cache=True, nogil=True)
def nth_largest(values, n):
    """Return the n-th largest value, or the smallest positive float32 if fewer values are positive."""
    largest, places, size = np.zeros(n, np.float32), np.zeros(n, np.int64), 0
    for i in range(len(values)):
        if values[i] > largest[n - 1]:
            size = insert(values[i], i, largest, places, size)
    return largest[n - 1] if size == n else np.float32(1e-45)


@njit(cache=True, nogil=True)
def blocks_from(least, bounds, tops, limit, live, out):
    """Write up to `limit` blocks whose bound is at least `least`, mark them in `live`, and return their number."""
    n = 0
    for chunk in range(len(tops)):
        if tops[chunk] >= least:
            for block in range(chunk * CHUNK, min((chunk + 1) * CHUNK, len(bounds))):
                if bounds[block] >= least and n < limit:
                    out[n], live[block] = block, 1
                    n += 1
    return n


@njit(cache=True, nogil=True)
def _search_pruned(
    query, lists, units, docs, weights, n_docs, allowed, skip, postings, entries, masks, levels, dense_masks, groups,
    total, bounds, tops, live, blocks, scores, found,
):  # fmt: skip
    """Find the best documents of one query; return their number, or -1 if the exhaustive search must find them.

    That is so if fewer than k documents have a positive score, because documents with negative scores are results too,
    or if the bounds exclude too few blocks.
    """
    k, n = len(scores), len(query)
    add_bounds(query, lists, units, docs, weights, entries, levels, bounds)
    for block in range(len(allowed)):
        if allowed[block] == 0:
            bounds[block] = 0.0
    chunk_maxima(bounds, tops)
    least = nth_largest(tops, k + EXTRA_CHUNKS)
    first = blocks[: blocks_from(least, bounds, tops, SEEDS_PER_CHUNK * (k + EXTRA_CHUNKS), live, blocks)]
    score_blocks(query, lists, docs, weights, entries, masks, dense_masks, groups, live, first, total)
    size = select(first, n_docs, allowed, skip, total, scores, found, 0)
    for block in first:
        live[block], bounds[block] = 0, -1.0
    if size == k and scores[k - 1] > SMALLEST:
        least = np.float32(np.float64(scores[k - 1]) / (1.0 + ROUNDING * (n + 16)))
        others = blocks[: blocks_from(least, bounds, tops, len(bounds), live, blocks)]
        size = -1
        if len(others) * n * BLOCK_COST <= postings:
            score_blocks(query, lists, docs, weights, entries, masks, dense_masks, groups, live, others, total)
            size = select(others, n_docs, allowed, skip, total, scores, found, k)
        for block in others:
            live[block] = 0
    else:
        size = -1
    bounds[:] = 0.0
    return size


@njit(cache=True, nogil=True)
def search_pruned(
    first, e_starts, e_columns, e_weights, starts, docs, weights, n_docs, allowed, skip,
    b_starts, entries, masks, rows, levels, dense_masks, groups, peaks, min_postings, min_per_term,
    total, bounds, tops, live, blocks, out_scores, out_docs, counts,
):  # fmt: skip
    """Find the best documents of queries first, first + 1, …, which are expanded; set counts[query], if possible.

    The count of a query is not set if the exhaustive search must answer it, or if it reads fewer than
    min_postings + min_per_term * terms postings. Columns ascend within a query. Bit doc & 7 of allowed[doc >> 3] says
    whether a document may be a result; all may if `allowed` is empty. skip[query] is left out (-1: none). total,
    bounds, tops, live and blocks are work arrays, 0 before; total has room for 8 · blocks.
    """
    for i in range(len(e_starts) - 1):
        columns, query = e_columns[e_starts[i] : e_starts[i + 1]], e_weights[e_starts[i] : e_starts[i + 1]]
        lists, units = query_lists(columns, query, starts, b_starts, rows, peaks)
        postings, n, at = (lists[:, 1] - lists[:, 0]).sum(), len(query), first + i
        if n > 0 and postings >= min_postings + min_per_term * n and units.max() < LARGEST:
            size = _search_pruned(
                query, lists, units, docs, weights, n_docs, allowed, skip[at], postings, entries, masks, levels,
                dense_masks, groups, total, bounds, tops, live, blocks, out_scores[at], out_docs[at],
            )  # fmt: skip
            if size >= 0:
                counts[at] = size
