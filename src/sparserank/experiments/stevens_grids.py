"""The settings that each method of Table 1.1 tries on the validation part of each fold: as many for each method."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any


def grid(**values: Sequence[Any]) -> list[dict[str, Any]]:
    """Every combination.

    >>> grid(C=(1, 2), average=(True,))
    [{'C': 1, 'average': True}, {'C': 2, 'average': True}]
    """
    return [dict(zip(values, one, strict=True)) for one in product(*values.values())]


_ALPHAS = (0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 100.0)
_ROUNDS = (1, 3, 5, 10, 20, 30, 50, 70, 100, 150, 200, 300)
_COSTS = (1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 1.0)

TRIED: dict[str, list[dict[str, Any]]] = {
    "domination": grid(alpha=_ALPHAS),
    "domination-base": grid(alpha=_ALPHAS),
    "domination-margin": grid(alpha=(1.0, 3.0, 10.0, 30.0), margin=(0.1, 0.3, 1.0)),
    "adarank-ndcg": grid(cutoff=(10, 5, 3), max_iter=(10, 50, 100, 300)),
    "adarank": grid(max_iter=_ROUNDS),
    "rankboost": grid(max_iter=_ROUNDS),
    "ranksvm": grid(C=_COSTS),
}
"""By the names of `rankers.chosen`."""

LAMBDAMART = grid(learning_rate=(0.02, 0.05, 0.1), num_leaves=(4, 7, 15, 31))
"""Early stopping chooses the number of rounds besides."""
