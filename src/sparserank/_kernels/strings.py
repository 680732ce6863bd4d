"""Binary search among strings in one array of UTF-8."""

from numba import njit


@njit(cache=True, nogil=True)
def find_descending(utf8, ends, key):
    """Return the position of `key` among the strings utf8[ends[i]:ends[i + 1]], which descend, or -1.

    The result -2 - i says that string i, which was compared, lies outside of the array.
    """
    low, high = 0, len(ends) - 1
    while low < high:
        middle = (low + high) // 2
        begin, end = ends[middle], ends[middle + 1]
        if not 0 <= begin <= end <= len(utf8):
            return -2 - middle
        shorter, i = min(end - begin, len(key)), 0
        while i < shorter and utf8[begin + i] == key[i]:
            i += 1
        if i == shorter and end - begin == len(key):
            return middle
        is_larger = utf8[begin + i] > key[i] if i < shorter else end - begin > len(key)
        if is_larger:
            low = middle + 1
        else:
            high = middle
    return -1
