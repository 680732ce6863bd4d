"""The classes behind preferences that were made from labels: which items prefer one another."""

from __future__ import annotations

import numpy as np

from .columns import Ints
from .preferences import EACH, Preferences


def classes_of(prefs: Preferences) -> Ints | None:
    """out[i] = the number of item i's class, 0, 1, … in the order of the labels; None where no labels were given.

    >>> classes_of(Preferences.from_labels(["b", "a", "c", "b", "a"])).tolist()
    [1, 0, 2, 1, 0]
    >>> classes_of(Preferences.from_triples([0], [1], [2])) is None
    True
    """
    n = prefs.n_items
    if len(prefs) == 0 or (prefs.query != EACH).any() or len(prefs.order) != 2 * n:
        return None
    begins = np.ones(n, bool)  # the items stand class by class; one that is in no window is alone in its class
    for start, stop in prefs.better:
        begins[start + 1 : stop] = False
    out = np.empty(n, np.int64)
    out[prefs.order[:n]] = np.cumsum(begins) - 1
    return out
