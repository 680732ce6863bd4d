"""Exact top-k search in an inverted index, term at a time, with queries expanded through W.

Of two equal scores the smaller document number ranks first. Sums are taken in float64 over ascending columns and
rounded to float32 once, so one query alone and eight at a time give the same bits. A document with score 0 is not a
result. Invalid document numbers and NaN weights of a damaged file are ignored.
"""

import numpy as np
from numba import njit

LANES = 8
"""Queries that are scored in one pass over the postings: one cache line of sums per document."""
FEW_COST = 8
"""Cost of searching a document in a list of postings, in postings read."""
CHUNK = 64
"""Documents whose scores are compared with the k-th best one together."""
BATCH_COST = 3
"""Cost of reading a posting for eight queries at once, in postings read for one query."""


@njit(cache=True, nogil=True, inline="always")
def _ranks_before(score, doc, other_score, other_doc):
    """Whether (score, doc) ranks before the other."""
    return score > other_score or (score == other_score and doc < other_doc)


@njit(cache=True, nogil=True)
def _sift_down(scores, docs, place, size):
    """Restore the heap below `place`: the root is the entry that ranks last."""
    score, doc = scores[place], docs[place]
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        right = child + 1
        if right < size and _ranks_before(scores[child], docs[child], scores[right], docs[right]):
            child = right
        if not _ranks_before(score, doc, scores[child], docs[child]):
            break
        scores[place], docs[place] = scores[child], docs[child]
        place = child
    scores[place], docs[place] = score, doc


@njit(cache=True, nogil=True)
def _push(score, doc, scores, docs, size):
    """Push (score, doc) onto the heap of at most len(scores) best entries; return the new size of the heap."""
    if size < len(scores):
        place = size
        while place > 0:
            parent = (place - 1) // 2
            if not _ranks_before(scores[parent], docs[parent], score, doc):
                break
            scores[place], docs[place] = scores[parent], docs[parent]
            place = parent
        scores[place], docs[place] = score, doc
        return size + 1
    if _ranks_before(score, doc, scores[0], docs[0]):
        scores[0], docs[0] = score, doc
        _sift_down(scores, docs, 0, size)
    return size


@njit(cache=True, nogil=True)
def _sort_heap(scores, docs, size):
    """Sort the heap, best first."""
    while size > 1:
        size -= 1
        score, doc = scores[size], docs[size]
        scores[size], docs[size] = scores[0], docs[0]
        scores[0], docs[0] = score, doc
        _sift_down(scores, docs, 0, size)


@njit(cache=True, nogil=True)
def _add(weight, docs, weights, begin, end, n_docs, total):
    for j in range(begin, end):
        doc = docs[j]
        if doc < n_docs:
            total[doc] += weight * np.float64(weights[j])


@njit(cache=True, nogil=True)
def _add_eight(at, query, docs, weights, begin, end, n_docs, total):
    """Add the postings of a column for eight queries at once: total[8 * doc + lane]."""
    q0, q1, q2, q3 = query[at], query[at + 1], query[at + 2], query[at + 3]
    q4, q5, q6, q7 = query[at + 4], query[at + 5], query[at + 6], query[at + 7]
    for j in range(begin, end):
        doc = docs[j]
        if doc < n_docs:
            w, o = np.float64(weights[j]), np.int64(doc) * LANES
            total[o] += q0 * w
            total[o + 1] += q1 * w
            total[o + 2] += q2 * w
            total[o + 3] += q3 * w
            total[o + 4] += q4 * w
            total[o + 5] += q5 * w
            total[o + 6] += q6 * w
            total[o + 7] += q7 * w


@njit(cache=True, nogil=True)
def _add_dense(weight, row, total):
    for doc in range(len(row)):
        total[doc] += weight * np.float64(row[doc])


@njit(cache=True, nogil=True)
def _add_eight_dense(at, query, row, total):
    for doc in range(len(row)):
        w, o = np.float64(row[doc]), doc * LANES
        for lane in range(LANES):
            total[o + lane] += query[at + lane] * w


@njit(cache=True, nogil=True)
def _select_from_all(total, n_docs, scores, docs):
    """Select the best scores from all documents and clear the sums. Vector instructions pass over most chunks."""
    size, least = 0, -np.inf
    chunks = total[: -(-n_docs // CHUNK) * CHUNK].reshape(-1, CHUNK)
    for chunk in range(len(chunks)):
        n_larger = 0
        for i in range(CHUNK):
            n_larger += chunks[chunk, i] > least
        if n_larger > 0:
            for i in range(CHUNK):
                value = chunks[chunk, i]
                if value > least and np.float32(value) != np.float32(0.0):
                    size = _push(np.float32(value), chunk * CHUNK + i, scores, docs, size)
                    if size == len(scores):
                        least = np.float64(scores[0])
    total[:n_docs] = 0.0
    return size


@njit(cache=True, nogil=True)
def _select_from_lane(total, n_docs, lane, lanes, scores, docs):
    """Select the best scores of one of several queries from all documents and clear the sums."""
    size, least = 0, -np.inf
    for doc in range(n_docs):
        value = total[doc * lanes + lane]
        if value > least and np.float32(value) != np.float32(0.0):
            size = _push(np.float32(value), doc, scores, docs, size)
            if size == len(scores):
                least = np.float64(scores[0])
        total[doc * lanes + lane] = 0.0
    return size


@njit(cache=True, nogil=True)
def _select_from_postings(columns, n_columns, query, lane, lanes, starts, docs, n_docs, total, best_scores, best_docs):
    """Select the best scores from the documents in the postings of the query and clear the sums."""
    size = 0
    for i in range(n_columns):
        column = columns[i]
        if query[column * lanes + lane] == 0.0:
            continue
        for j in range(starts[column], starts[column + 1]):
            doc = docs[j]
            if doc < n_docs:
                value = total[doc]
                if value > -np.inf and np.float32(value) != np.float32(0.0):
                    size = _push(np.float32(value), np.int64(doc), best_scores, best_docs, size)
                total[doc] = 0.0
    return size


@njit(cache=True, nogil=True)
def _add_column(column, seen, columns, n_columns):
    if seen[column] == 0:
        seen[column] = 1
        columns[n_columns] = column
        return n_columns + 1
    return n_columns


@njit(cache=True, nogil=True)
def expand(
    lane, lanes, query_at, q_starts, q_terms, q_weights, w_starts, w_rows, w_weights, W_starts, W_columns, W_values,
    pair_weight, pair_offset, seen, columns, n_columns, expanded,
):  # fmt: skip
    """Write a query into its lane of `expanded`: its terms, and from `pair_offset` on its words expanded through W.

    New columns are appended to `columns`; return the number of columns.
    """
    for i in range(q_starts[query_at], q_starts[query_at + 1]):
        column = np.int64(q_terms[i])
        n_columns = _add_column(column, seen, columns, n_columns)
        expanded[column * lanes + lane] += np.float64(q_weights[i])
    for i in range(w_starts[query_at], w_starts[query_at + 1]):
        row, weight = w_rows[i], pair_weight * np.float64(w_weights[i])
        for j in range(W_starts[row], W_starts[row + 1]):
            column = pair_offset + np.int64(W_columns[j])
            n_columns = _add_column(column, seen, columns, n_columns)
            expanded[column * lanes + lane] += weight * np.float64(W_values[j])
    return n_columns


@njit(cache=True, nogil=True)
def expand_queries(
    first, last, q_starts, q_terms, q_weights, w_starts, w_rows, w_weights, W_starts, W_columns, W_values,
    pair_weight, pair_offset, seen, columns, expanded,
):  # fmt: skip
    """Return queries first … last - 1 expanded, as starts, ascending columns and weights that are not 0."""
    starts, room = np.zeros(last - first + 1, np.int64), q_starts[last] - q_starts[first]
    for i in range(w_starts[first], w_starts[last]):
        room += W_starts[w_rows[i] + 1] - W_starts[w_rows[i]]
    out_columns, out_weights, n = np.empty(room, np.int64), np.empty(room, np.float64), 0
    for query in range(first, last):
        n_columns = expand(
            0, 1, query, q_starts, q_terms, q_weights, w_starts, w_rows, w_weights,
            W_starts, W_columns, W_values, pair_weight, pair_offset, seen, columns, 0, expanded,
        )  # fmt: skip
        columns[:n_columns].sort()
        for i in range(n_columns):
            column = columns[i]
            if expanded[column] != 0.0:
                out_columns[n], out_weights[n] = column, expanded[column]
                n += 1
            seen[column], expanded[column] = 0, 0.0
        starts[query - first + 1] = n
    return starts, out_columns[:n], out_weights[:n]


@njit(cache=True, nogil=True)
def _postings_to_read(columns, n_columns, expanded, lanes, starts, dense_row, n_docs):
    """Count the postings to read for each query alone, and for all queries at once."""
    alone, together = 0, 0
    for i in range(n_columns):
        column = columns[i]
        length = n_docs if dense_row[column] >= 0 else starts[column + 1] - starts[column]
        together += length
        for lane in range(lanes):
            if expanded[column * lanes + lane] != 0.0:
                alone += length
    return alone, together


@njit(cache=True, nogil=True)
def _search_one(
    query_at, lane, lanes, columns, n_columns, expanded, starts, docs, weights, dense_row, dense, n_docs, deleted, skip,
    total, scores, out,
):  # fmt: skip
    """Search one query of a block alone."""
    postings = 0
    for i in range(n_columns):
        column = columns[i]
        weight = expanded[column * lanes + lane]
        if weight != 0.0 and dense_row[column] >= 0:
            postings += n_docs
            _add_dense(weight, dense[dense_row[column]], total)
        elif weight != 0.0:
            begin, end = starts[column], starts[column + 1]
            postings += end - begin
            _add(weight, docs, weights, begin, end, n_docs, total)
    for doc in deleted:
        total[doc] = 0.0
    if skip[query_at] >= 0:
        total[skip[query_at]] = 0.0
    if postings * 4 < n_docs:
        return _select_from_postings(
            columns, n_columns, expanded, lane, lanes, starts, docs, n_docs, total, scores, out
        )
    return _select_from_all(total, n_docs, scores, out)


@njit(cache=True, nogil=True)
def _score_batch(
    queries, columns, n_columns, expanded, starts, docs, weights, dense_row, dense, n_docs, deleted, skip, total
):
    """Sum the scores of eight queries at once."""
    for i in range(n_columns):
        column = columns[i]
        if dense_row[column] >= 0:
            _add_eight_dense(column * LANES, expanded, dense[dense_row[column]], total)
            continue
        _add_eight(column * LANES, expanded, docs, weights, starts[column], starts[column + 1], n_docs, total)
    for lane in range(LANES):
        for doc in deleted:
            total[np.int64(doc) * LANES + lane] = 0.0
        if skip[queries[lane]] >= 0:
            total[skip[queries[lane]] * LANES + lane] = 0.0


@njit(cache=True, nogil=True)
def search(
    rows, q_starts, q_terms, q_weights, w_starts, w_rows, w_weights, W_starts, W_columns, W_values,
    pair_weight, pair_offset, starts, docs, weights, dense_row, dense, n_docs, deleted, skip,
    seen, columns, expanded, total, out_scores, out_docs, counts,
):  # fmt: skip
    """Find the best documents of the queries `rows` and set counts[query] to the number of results of each.

    The weights of a query are q in its term columns plus pair_weight * w @ W in the columns from `pair_offset` on. A
    column of most documents is the row dense[dense_row[column]]; dense_row is -1 for the others. `deleted` documents
    and skip[query] (-1: none) are left out. seen, columns, expanded and total are work arrays, all 0 before and after,
    for `lanes` queries at a time, where lanes = len(expanded) / len(seen) is 1 or 8. total has room for whole chunks.
    """
    lanes = len(expanded) // max(len(seen), 1)
    for block in range(0, len(rows), lanes):
        queries, n_columns = rows[block : block + lanes], 0
        for lane in range(len(queries)):
            n_columns = expand(
                lane, lanes, queries[lane], q_starts, q_terms, q_weights, w_starts, w_rows, w_weights,
                W_starts, W_columns, W_values, pair_weight, pair_offset, seen, columns, n_columns, expanded,
            )  # fmt: skip
        columns[:n_columns].sort()
        alone, together = (0, 1)
        if len(queries) == LANES:
            alone, together = _postings_to_read(columns, n_columns, expanded, lanes, starts, dense_row, n_docs)
        at_once = together * BATCH_COST < alone
        if at_once:
            _score_batch(
                queries, columns, n_columns, expanded, starts, docs, weights, dense_row, dense, n_docs, deleted, skip,
                total,
            )  # fmt: skip
        for lane in range(len(queries)):
            query = queries[lane]
            if at_once:
                counts[query] = _select_from_lane(total, n_docs, lane, lanes, out_scores[query], out_docs[query])
            else:
                counts[query] = _search_one(
                    query, lane, lanes, columns, n_columns, expanded, starts, docs, weights, dense_row, dense, n_docs,
                    deleted, skip, total, out_scores[query], out_docs[query],
                )  # fmt: skip
            _sort_heap(out_scores[query], out_docs[query], counts[query])
        for i in range(n_columns):
            seen[columns[i]] = 0
            expanded[columns[i] * lanes : (columns[i] + 1) * lanes] = 0.0


@njit(cache=True, nogil=True)
def score_all(columns, query, starts, docs, weights, n_docs, total):
    """Add the scores of an expanded query, whose columns ascend, to the sums of all documents."""
    for i in range(len(columns)):
        _add(query[i], docs, weights, starts[columns[i]], starts[columns[i] + 1], n_docs, total)


@njit(cache=True, nogil=True)
def select_best(scores, is_live, out_scores, out_docs):
    """Mark the live documents whose score is not 0 and select the best; return the marks and how many are selected."""
    matches, size = np.empty(len(scores), np.bool_), 0
    for doc in range(len(scores)):
        value = scores[doc]
        matches[doc] = is_live[doc] and value != np.float32(0.0)
        if matches[doc] and value > -np.inf and (size < len(out_scores) or value > out_scores[0]):
            size = _push(value, doc, out_scores, out_docs, size)
    _sort_heap(out_scores, out_docs, size)
    return matches, size


@njit(cache=True, nogil=True)
def _add_few(weight, docs, weights, begin, end, few, total):
    """Add the postings of the documents `few`, which ascend: exponential search for each, from the last one on."""
    for doc in few:
        step = 1
        while begin + step < end and docs[begin + step] < doc:
            begin += step
            step *= 2
        high = min(begin + step, end)
        while begin < high:
            middle = (begin + high) // 2
            if docs[middle] < doc:
                begin = middle + 1
            else:
                high = middle
        if begin >= end:
            break
        if docs[begin] == doc:
            total[doc] += weight * np.float64(weights[begin])


@njit(cache=True, nogil=True)
def search_few(
    first, e_starts, e_columns, e_weights, starts, docs, weights, few, is_allowed, skip, total,
    out_scores, out_docs, counts,
):  # fmt: skip
    """Find the best of the documents `few` for queries first, first + 1, …, which are expanded; set counts[query].

    `few` ascend, and is_allowed[doc] says which documents they are. `total` is a work array, 0 before and after.
    """
    for i in range(len(e_starts) - 1):
        query = first + i
        for c in range(e_starts[i], e_starts[i + 1]):
            weight, begin, end = e_weights[c], starts[e_columns[c]], starts[e_columns[c] + 1]
            if end - begin > FEW_COST * len(few):
                _add_few(weight, docs, weights, begin, end, few, total)
                continue
            for j in range(begin, end):
                doc = docs[j]
                if doc < len(is_allowed) and is_allowed[doc]:
                    total[doc] += weight * np.float64(weights[j])
        size, scores, found = 0, out_scores[query], out_docs[query]
        for doc in few:
            value = total[doc]
            total[doc] = 0.0
            if value > -np.inf and np.float32(value) != np.float32(0.0) and doc != skip[query]:
                size = _push(np.float32(value), doc, scores, found, size)
        _sort_heap(scores, found, size)
        counts[query] = size
