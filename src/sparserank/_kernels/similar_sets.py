"""Connect similar sets: a join by prefixes of rare elements, with filters by size and by position."""

import math

import numpy as np
from numba import njit

SLACK = 1e-9
"""Bounds are lower by this much, so that rounding cannot hide a pair; every pair is compared in the end."""


@njit(cache=True)
def find_root(parent, i):
    """The root of i in a union-find forest; paths are halved on the way."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@njit(cache=True)
def shared_elements(a, a_end, b, b_end, element):
    """The number of equal elements in two ascending spans."""
    both = 0
    while a < a_end and b < b_end:
        if element[a] == element[b]:
            both += 1
            a += 1
            b += 1
        elif element[a] < element[b]:
            a += 1
        else:
            b += 1
    return both


@njit(cache=True)
def connect_similar(start, element, n_elements, threshold, first, second):
    """Edges that connect all sets with a Jaccard similarity of at least `threshold`; returns their number.

    Sets come by ascending size. Set i is element[start[i] : start[i + 1]], in ascending order; rare elements have low
    numbers. The smaller one of two sets of similarity t is at least t times as large. They share one of the
    ⌊(1 - t)·size⌋ + 1 first elements of the larger set and of the ⌊(1 - t) / (1 + t)·size⌋ + 1 first ones of the
    smaller set, so only those are listed. Sets that are connected already are not compared.
    """
    n = len(start) - 1
    listed = np.zeros(n_elements + 1, np.int64)
    for i in range(n):
        size = start[i + 1] - start[i]
        for at in range(start[i], start[i] + size - math.ceil(2.0 * threshold / (1.0 + threshold) * size - SLACK) + 1):
            listed[element[at] + 1] += 1
    begin = np.cumsum(listed)
    end = begin[:-1].copy()
    member, place = np.empty(begin[-1], np.int32), np.empty(begin[-1], np.int32)
    parent, last, n_edges = np.arange(n), np.full(n, -1, np.int64), 0
    for i in range(n):
        size = start[i + 1] - start[i]
        least = math.ceil(threshold * size - SLACK)
        for p in range(size - least + 1):
            e = element[start[i] + p]
            while begin[e] < end[e] and start[member[begin[e]] + 1] - start[member[begin[e]]] < least:
                begin[e] += 1  # too small for this set and for all after it
            for at in range(begin[e], end[e]):
                j = member[at]
                if last[j] == i:
                    continue
                last[j] = i  # their first common element: none of the elements before it is shared
                other = start[j + 1] - start[j]
                needed = threshold / (1.0 + threshold) * (size + other) - SLACK
                if min(size - p, other - place[at]) < needed:
                    continue
                a, b = find_root(parent, i), find_root(parent, j)
                if a == b:
                    continue
                both = shared_elements(start[i] + p, start[i + 1], start[j] + place[at], start[j + 1], element)
                if both / (size + other - both) >= threshold:
                    parent[max(a, b)] = min(a, b)
                    first[n_edges], second[n_edges] = i, j
                    n_edges += 1
        for p in range(size - math.ceil(2.0 * threshold / (1.0 + threshold) * size - SLACK) + 1):
            e = element[start[i] + p]
            member[end[e]], place[end[e]] = i, p
            end[e] += 1
    return n_edges
