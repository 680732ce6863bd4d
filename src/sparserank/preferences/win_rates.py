"""Judgments from triples: the win rate of each document."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .columns import Floats, factorize, numbers


def win_rates(query: ArrayLike, better: ArrayLike, worse: ArrayLike, weight: ArrayLike) -> dict[str, dict[str, float]]:
    """Compute the weighted share of its comparisons that each document wins.

    Parameters
    ----------
    query, better, worse : array-like of shape (n_triples,)
        For query[i], document better[i] is better than document worse[i].
    weight : array-like of shape (n_triples,)
        Weight of each triple.

    Returns
    -------
    dict
        {query id: {document id: win rate from 0 to 1}}; ids as text.

    Examples
    --------
    >>> win_rates(["q", "q", "q"], ["a", "a", "b"], ["b", "c", "a"], [1, 1, 2])
    {'q': {'a': 0.5, 'b': 0.6666666666666666, 'c': 0.0}}
    """
    queries, code = factorize("query", query)
    documents, item = factorize("document", np.concatenate([better, worse]))
    weights, n = numbers("weight", weight), len(code)
    pair, row = np.unique(np.tile(code, 2) * np.int64(len(documents)) + item, return_inverse=True)
    won, lost = (_sums(row[part], weights, len(pair)) for part in (slice(n), slice(n, None)))
    total = won + lost
    rate = np.divide(won, total, out=np.zeros(len(pair)), where=total > 0.0)
    out: dict[str, dict[str, float]] = {}
    for number, grade in zip(pair.tolist(), rate.tolist(), strict=True):
        q, document = divmod(number, len(documents))
        out.setdefault(str(queries[q]), {})[str(documents[document])] = grade
    return out


def _sums(code: NDArray[np.intp], weight: Floats, n: int) -> Floats:
    """Sums by code; weights are added in ascending order, so that their order in the file does not matter."""
    order = np.lexsort((weight, code))
    return np.bincount(code[order], weight[order], n).astype(np.float64, copy=False)
