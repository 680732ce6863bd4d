"""Judgments from triples: what a document won of all it took part in."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .columns import Floats, groups_of, numbers


def won_shares(query: ArrayLike, better: ArrayLike, worse: ArrayLike, weight: ArrayLike) -> dict[str, dict[str, float]]:
    """query → document → the weight it won over all the weight it won or lost, from 0 to 1; ids as text.

    >>> won_shares(["q", "q", "q"], ["a", "a", "b"], ["b", "c", "a"], [1, 1, 2])
    {'q': {'a': 0.5, 'b': 0.6666666666666666, 'c': 0.0}}
    """
    queries, asked = groups_of("query", query)
    documents, item = groups_of("document", np.concatenate([better, worse]))
    matters, n = numbers("weight", weight), len(asked)
    pair, code = np.unique(np.tile(asked, 2) * np.int64(len(documents)) + item, return_inverse=True)
    won, lost = (_sums(code[part], matters, len(pair)) for part in (slice(n), slice(n, None)))
    total = won + lost
    share = np.divide(won, total, out=np.zeros(len(pair)), where=total > 0.0)
    out: dict[str, dict[str, float]] = {}
    for place, grade in zip(pair.tolist(), share.tolist(), strict=True):
        number, document = divmod(place, len(documents))
        out.setdefault(str(queries[number]), {})[str(documents[document])] = grade
    return out


def _sums(code: NDArray[np.intp], weight: Floats, n: int) -> Floats:
    """By code; weights are added from the smallest on, so that their order in the file does not matter."""
    order = np.lexsort((weight, code))
    return np.bincount(code[order], weight[order], n).astype(np.float64, copy=False)
