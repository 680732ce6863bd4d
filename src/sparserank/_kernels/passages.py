"""Where target words occur in a document, and the window of it whose words add most."""

import numpy as np
from numba import njit

_FILTER_SIZE = 1024


@njit(cache=True, nogil=True)
def _find_matches(forms, starts, ends, part_starts, parts):
    """Return the first token, the last token and the target of each match, by where it starts and ends in the text."""
    is_first = np.zeros(_FILTER_SIZE, np.uint8)
    for t in range(len(part_starts) - 1):
        is_first[parts[part_starts[t]] % _FILTER_SIZE] = 1
    matches, n = np.empty((3, 64), np.int64), 0
    for i in range(len(forms)):
        if not is_first[forms[i] % _FILTER_SIZE]:
            continue
        for t in range(len(part_starts) - 1):
            length = part_starts[t + 1] - part_starts[t]
            j = 0
            while j < length and i + j < len(forms) and forms[i + j] == parts[part_starts[t] + j]:
                j += 1
            if j < length:
                continue
            if n == matches.shape[1]:
                larger = np.empty((3, 2 * n), np.int64)
                larger[:, :n] = matches
                matches = larger
            # tokens of one compound overlap, so that a match may start before the one that was found last
            at, last = n, i + length - 1
            while at > 0 and (starts[i], ends[last]) < (starts[matches[0, at - 1]], ends[matches[1, at - 1]]):
                matches[:, at] = matches[:, at - 1]
                at -= 1
            matches[0, at], matches[1, at], matches[2, at] = i, last, t
            n += 1
    return matches[0, :n], matches[1, :n], matches[2, :n]


@njit(cache=True, nogil=True)
def best_window(starts, ends, forms, part_starts, parts, contributions, length):
    """Return the window of at most `length` whose targets add most, and all matches; ties: more, then first.

    Token i of the document is the form forms[i] at text[starts[i]:ends[i]]. Target t is the sequence of forms
    parts[part_starts[t]:part_starts[t + 1]]; it matches where the document has these forms one after another, and adds
    contributions[t] once. Contributions are integers, whose sums stay exact when targets are added and removed.
    """
    first, last, targets = _find_matches(forms, starts, ends, part_starts, parts)
    best_total, best_size, window_start, window_end = 0, 0, 0, 0
    counts, left, total = np.zeros(len(contributions), np.int64), 0, 0
    for right in range(len(targets)):
        if counts[targets[right]] == 0:
            total += contributions[targets[right]]
        counts[targets[right]] += 1
        while ends[last[right]] - starts[first[left]] > length and left < right:
            counts[targets[left]] -= 1
            if counts[targets[left]] == 0:
                total -= contributions[targets[left]]
            left += 1
        size = right + 1 - left
        if total > best_total or (total == best_total and size > best_size):
            best_total, best_size = total, size
            window_start, window_end = starts[first[left]], ends[last[right]]
    return window_start, window_end, first, last, targets


@njit(cache=True, nogil=True)
def find_marks(starts, ends, first, last, targets, begin, end):
    """Return the marks of the words of matches inside text[begin:end], from left to right.

    Mark i covers text[bounds[0, i]:bounds[1, i]], and numbers[mark_ends[i - 1]:mark_ends[i]] are its targets.
    Words that overlap, such as bigrams, share a mark.
    """
    n = 0
    for i in range(len(first)):
        n += last[i] + 1 - first[i]
    spans, n = np.empty((n, 3), np.int64), 0
    for i in range(len(first)):
        for token in range(first[i], last[i] + 1):
            if not begin <= starts[token] <= ends[token] <= end:
                continue
            at = n
            while at > 0 and (starts[token], ends[token], targets[i]) < (
                spans[at - 1, 0],
                spans[at - 1, 1],
                spans[at - 1, 2],
            ):
                spans[at] = spans[at - 1]
                at -= 1
            spans[at, 0], spans[at, 1], spans[at, 2] = starts[token], ends[token], targets[i]
            n += 1
    bounds, mark_ends, numbers = np.empty((2, n), np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    n_marks, n_numbers, own = 0, 0, 0
    for i in range(n):
        if n_marks == 0 or spans[i, 0] >= bounds[1, n_marks - 1]:
            bounds[0, n_marks], bounds[1, n_marks], own = spans[i, 0], spans[i, 1], n_numbers
            n_marks += 1
        bounds[1, n_marks - 1] = max(bounds[1, n_marks - 1], spans[i, 1])
        at = n_numbers
        while at > own and numbers[at - 1] > spans[i, 2]:
            numbers[at] = numbers[at - 1]
            at -= 1
        if at > own and numbers[at - 1] == spans[i, 2]:  # shift back: the number is there
            numbers[at:n_numbers] = numbers[at + 1 : n_numbers + 1]
        else:
            numbers[at] = spans[i, 2]
            n_numbers += 1
        mark_ends[n_marks - 1] = n_numbers
    return bounds[:, :n_marks].copy(), mark_ends[:n_marks], numbers[:n_numbers]
