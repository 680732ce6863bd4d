"""Words of a text as integers, counted into rows: whole chunks of documents in one call.

A word table is four arrays. Word i is `pool[starts[i]:starts[i + 1]]` (code points) with hash `hashes[i]`;
`slots` is an open-addressing table (a power of two, at most half full) of word ids, -1 where free.
"""

import numpy as np
from numba import njit

_OFFSET = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_30, _27, _31 = np.uint64(30), np.uint64(27), np.uint64(31)


@njit(cache=True, nogil=True, inline="always")
def _mix(h):
    """A one-to-one scramble of 64 bits whose low bits depend on all of them."""
    h = (h ^ (h >> _30)) * _MIX_1
    h = (h ^ (h >> _27)) * _MIX_2
    return h ^ (h >> _31)


@njit(cache=True, nogil=True)
def find_words(codes, at, ends, doc, is_word, shortest, slots, hashes, starts, pool, n_words, tokens, n_tokens, stops):
    """Append every maximal run of word characters to `tokens` as a word id; stops[doc] = tokens after document doc.

    Returns (at, doc, n_words, n_tokens). at < ends[-1] says that the table was full before the word at `at`:
    enlarge the table and call again with what was returned.
    """
    mask = np.uint64(len(slots) - 1)
    room, n_docs = len(slots) // 2, len(ends)
    while doc < n_docs:
        end = ends[doc]
        while at < end:
            if not is_word[codes[at]]:
                at += 1
                continue
            begin, h = at, _OFFSET
            while at < end and is_word[codes[at]]:
                h = (h ^ np.uint64(codes[at])) * _PRIME
                at += 1
            length = at - begin
            if length < shortest:
                continue
            h = _mix(h)
            slot = h & mask
            word = slots[slot]
            while word >= 0:
                if hashes[word] == h and starts[word + 1] - starts[word] == length:
                    first, same = starts[word], True
                    for j in range(length):
                        if pool[first + j] != codes[begin + j]:
                            same = False
                            break
                    if same:
                        break
                slot = (slot + np.uint64(1)) & mask
                word = slots[slot]
            if word < 0:
                used = starts[n_words]
                if n_words >= room or used + length > len(pool):
                    return begin, doc, n_words, n_tokens
                for j in range(length):
                    pool[used + j] = codes[begin + j]
                word = n_words
                slots[slot], hashes[word], starts[word + 1] = word, h, used + length
                n_words += 1
            tokens[n_tokens] = word
            n_tokens += 1
        stops[doc] = n_tokens
        doc += 1
    return at, doc, n_words, n_tokens


@njit(cache=True, nogil=True)
def word_bounds(codes, is_word, shortest, n_tokens):
    """Return where each of the `n_tokens` words that `find_words` finds in a text starts and ends."""
    starts, ends = np.empty(n_tokens, np.intc), np.empty(n_tokens, np.intc)
    at, n = 0, 0
    while at < len(codes) and n < n_tokens:
        if not is_word[codes[at]]:
            at += 1
            continue
        begin = at
        while at < len(codes) and is_word[codes[at]]:
            at += 1
        if at - begin >= shortest:
            starts[n], ends[n] = begin, at
            n += 1
    return starts, ends


@njit(cache=True, nogil=True)
def rehash(hashes, n_words, slots):
    """Put words 0 … n_words - 1 into an empty, larger table."""
    mask = np.uint64(len(slots) - 1)
    for word in range(n_words):
        slot = hashes[word] & mask
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = word


@njit(cache=True, nogil=True)
def hash_strings(codes, starts):
    """out[i] = the 64-bit hash of codes[starts[i]:starts[i + 1]], the same on every machine."""
    out = np.empty(len(starts) - 1, np.uint64)
    for i in range(len(out)):
        h = _OFFSET
        for j in range(starts[i], starts[i + 1]):
            h = (h ^ np.uint64(codes[j])) * _PRIME
        out[i] = _mix(h)
    return out


@njit(cache=True, nogil=True)
def keep_tokens(tokens, stops, target):
    """Replace every token by target[token], drop those below 0; returns the new tokens and stops."""
    kept, kept_stops, n = np.empty_like(tokens), np.empty_like(stops), 0
    at = 0
    for doc in range(len(stops)):
        while at < stops[doc]:
            word = target[tokens[at]]
            if word >= 0:
                kept[n] = word
                n += 1
            at += 1
        kept_stops[doc] = n
    return kept[:n].copy(), kept_stops


@njit(cache=True, nogil=True)
def join_grams(left, left_stops, words, word_stops, size, slots, pairs):
    """Ids of (left[i], words[i + size - 1]) in each document: n-grams of `size` words from those of `size - 1`.

    pairs[g] is the left id in its high and the word id in its low 32 bits. `slots` must have more than twice as many
    places as there are tokens. Returns the grams, their stops, and how many are distinct.
    """
    mask = np.uint64(len(slots) - 1)
    grams, stops = np.empty_like(left), np.empty_like(left_stops)
    n, distinct, at, word_at = 0, 0, 0, 0
    for doc in range(len(stops)):
        count = max(0, word_stops[doc] - word_at - size + 1)
        for i in range(count):
            pair = (np.int64(left[at + i]) << np.int64(32)) | np.int64(words[word_at + i + size - 1])
            slot = _mix(np.uint64(pair) * _GOLDEN) & mask
            gram = slots[slot]
            while gram >= 0 and pairs[gram] != pair:
                slot = (slot + np.uint64(1)) & mask
                gram = slots[slot]
            if gram < 0:
                gram = distinct
                slots[slot], pairs[gram] = gram, pair
                distinct += 1
            grams[n] = gram
            n += 1
        at, word_at, stops[doc] = left_stops[doc], word_stops[doc], n
    return grams[:n].copy(), stops, distinct


@njit(cache=True, nogil=True)
def count_tokens(tokens, stops, columns):
    """Rows of (column, count): columns[token] counted a document, tokens with a column below 0 counted as unseen.

    Returns indptr, indices (in order of appearance; two tokens of one column stay apart), counts and unseen.
    """
    n_docs, n_words = len(stops), len(columns)
    place, row_of = np.empty(n_words, np.int64), np.full(n_words, -1, np.int64)
    indices, counts = np.empty(len(tokens), np.int32), np.empty(len(tokens), np.float32)
    indptr, unseen = np.zeros(n_docs + 1, np.int64), np.zeros(n_docs, np.int64)
    n, at = 0, 0
    for doc in range(n_docs):
        while at < stops[doc]:
            word = tokens[at]
            at += 1
            if columns[word] < 0:
                unseen[doc] += 1
            elif row_of[word] == doc:
                counts[place[word]] += np.float32(1.0)
            else:
                row_of[word], place[word] = doc, n
                indices[n], counts[n] = columns[word], np.float32(1.0)
                n += 1
        indptr[doc + 1] = n
    return indptr, indices[:n].copy(), counts[:n].copy(), unseen


@njit(cache=True, nogil=True)
def expand_tokens(tokens, stops, ends, ids):
    """Replace every token t by ids[ends[t]:ends[t + 1]]; returns the new tokens and stops."""
    n = 0
    for token in tokens:
        n += ends[token + 1] - ends[token]
    out, out_stops = np.empty(n, np.int32), np.empty_like(stops)
    n, at = 0, 0
    for doc in range(len(stops)):
        while at < stops[doc]:
            for i in range(ends[tokens[at]], ends[tokens[at] + 1]):
                out[n] = ids[i]
                n += 1
            at += 1
        out_stops[doc] = n
    return out, out_stops
