"""Words within an edit distance, by a walk through a trie.

The nodes of a trie are by depth and then in the order of the words, so the children of node v are the neighbours
child[v] … child[v + 1] - 1. Node v adds letter[v] to its parent; word[v] is the word that ends there, or -1. Node 0
is the root. Every node on the way gets, for each number of errors, a bit vector: bit i says that the letters of the
node are at most so many errors away from the first i letters of the query (Wu and Manber, 1992).
"""

import numpy as np
from numba import njit

_1, _2 = np.uint64(1), np.uint64(2)


@njit(cache=True, nogil=True)
def build_trie(codes, starts, longest):
    """Return letter, child and word of the trie of distinct words in ascending order.

    Word i is codes[starts[i]:starts[i + 1]]; it has 1 to `longest` letters.
    """
    n_words, shared = len(starts) - 1, np.zeros(len(starts), np.int64)
    at_depth = np.zeros(longest + 2, np.int64)
    for i in range(n_words):
        length = starts[i + 1] - starts[i]
        if i:
            before, n = starts[i - 1], min(length, starts[i] - starts[i - 1])
            while shared[i] < n and codes[before + shared[i]] == codes[starts[i] + shared[i]]:
                shared[i] += 1
        for d in range(shared[i] + 1, length + 1):
            at_depth[d + 1] += 1
    at_depth[1] = 1
    following = np.cumsum(at_depth)  # following[d] is the next free node of depth d
    n_nodes = following[-1]
    letter, word = np.zeros(n_nodes, np.uint32), np.full(n_nodes, -1, np.int32)
    child, path = np.full(n_nodes + 1, -1, np.int32), np.zeros(longest + 1, np.int64)
    for i in range(n_words):
        for d in range(shared[i] + 1, starts[i + 1] - starts[i] + 1):
            node = following[d]
            following[d] += 1
            letter[node], path[d] = codes[starts[i] + d - 1], node
            if child[path[d - 1]] < 0:
                child[path[d - 1]] = node
        word[path[starts[i + 1] - starts[i]]] = i
    child[n_nodes] = n_nodes
    for node in range(n_nodes - 1, -1, -1):
        if child[node] < 0:
            child[node] = child[node + 1]
    return letter, child, word


@njit(cache=True, nogil=True)
def words_within(letter, child, word, begin, stop, masks, n, allowed, beginnings, words, numbers):
    """Write the words with at most len(allowed) - 1 errors and their numbers of errors; return how many there are.

    With `beginnings`, the words may go on: write the first word of each node whose letters have at most so many errors
    and whose parents have more, and the number of its letters.

    An error is an insertion, a deletion, a substitution or a transposition of neighbours, and no letter is changed
    twice (optimal string alignment). The query has n < 62 letters; bit i of masks[c] says that its letter i - 1 is c.
    The walk leaves a node unless it has j errors for the first i letters and bit i of allowed[j] is set, for some i
    and j. It starts at the nodes begin … stop - 1. If `words` is too short, the number that is returned is larger than
    its length.
    """
    k, end, found = len(allowed), _1 << np.uint64(n), 0
    rows = np.zeros((n + k + 2, k), np.uint64)  # rows[d + 1] belongs to depth d; rows[0] has no bits
    for j in range(k):
        rows[1, j] = (_1 << np.uint64(j + 1)) - _1
    path, at, last = np.zeros(n + k + 1, np.uint64), np.zeros(n + k + 2, np.int64), np.zeros(n + k + 2, np.int64)
    at[1], last[1], d = begin, stop, 1
    while d:
        if at[d] == last[d]:
            d -= 1
            continue
        node = at[d]
        at[d] += 1
        mask, before = masks[letter[node]], path[d - 1]
        alive, distance = np.uint64(0), -1
        for j in range(k):
            bits = (rows[d, j] << _1) & mask
            if j:
                swapped = (rows[d - 1, j - 1] << _2) & before & (mask << _1)
                bits |= rows[d, j - 1] | ((rows[d, j - 1] | rows[d + 1, j - 1]) << _1) | swapped
            rows[d + 1, j] = bits
            alive |= bits & allowed[j]
            if distance < 0 and bits & end:
                distance = j
        if distance >= 0 and (beginnings or word[node] >= 0):
            if found < len(words):
                first = node
                while word[first] < 0:
                    first = child[first]
                words[found], numbers[found] = word[first], d if beginnings else distance
            found += 1
            if beginnings:
                continue
        if alive and d < n + k:
            path[d] = mask
            d += 1
            at[d], last[d] = child[node], child[node + 1]
    return found
