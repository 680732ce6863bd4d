"""Why one document is above another: the difference of their explanations, and what would have to go to swap them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .explanation import Explanation


class Difference(NamedTuple):
    """One word pair: what it adds to each of the two documents, and the first less the second."""

    query: str
    document: str
    first: float
    second: float
    difference: float


@dataclass(frozen=True)
class Comparison:
    """Two documents for one query. The differences of the pairs sum to that of the scores; the largest comes first.

    swap : the fewest pairs without which the one that ranks lower would rank higher; None where no pairs would do.
    """

    first: str
    second: str
    first_score: float
    second_score: float
    pairs: tuple[Difference, ...]
    swap: tuple[Difference, ...] | None

    @property
    def difference(self) -> float:
        """The first score less the second."""
        return self.first_score - self.second_score

    def to_dict(self) -> dict[str, Any]:
        """As the command line prints it."""
        return {
            "first": {"id": self.first, "score": self.first_score},
            "second": {"id": self.second, "score": self.second_score},
            "difference": self.difference,
            "pairs": [pair._asdict() for pair in self.pairs],
            "swap": None if self.swap is None else [pair._asdict() for pair in self.swap],
        }


def compare(first: str, second: str, one: Explanation, other: Explanation) -> Comparison:
    """Two documents by the explanations of their scores.

    >>> from sparserank.search.explanation import Contribution
    >>> why = Explanation(3.0, (Contribution("q", "red", 2.0), Contribution("q", "apple", 1.0)))
    >>> found = compare("a", "b", why, Explanation(1.5, (Contribution("q", "pear", 1.5),)))
    >>> [pair.document for pair in found.swap]
    ['red']
    """
    added = ({pair[:2]: pair.contribution for pair in why.pairs} for why in (one, other))
    here, there = added
    pairs = [
        Difference(*pair, here.get(pair, 0.0), there.get(pair, 0.0), here.get(pair, 0.0) - there.get(pair, 0.0))
        for pair in dict.fromkeys([*here, *there])
    ]
    pairs.sort(key=lambda pair: -abs(pair.difference))
    return Comparison(first, second, one.score, other.score, tuple(pairs), _swap(first, second, tuple(pairs)))


def _swap(first: str, second: str, pairs: tuple[Difference, ...]) -> tuple[Difference, ...] | None:
    """The fewest pairs whose going would swap the two: those that hold them apart most.

    What a set of pairs takes away is a sum, so no set of the same size takes more than the largest ones.
    """
    scores = [sum(pair.first for pair in pairs), sum(pair.second for pair in pairs)]
    ahead = _before(first, scores[0], second, scores[1])
    sign = 1.0 if ahead else -1.0
    apart = sorted(pairs, key=lambda pair: -sign * pair.difference)
    for count, pair in enumerate(apart, start=1):
        if sign * pair.difference <= 0.0:
            return None
        scores[0] -= pair.first
        scores[1] -= pair.second
        if _before(first, scores[0], second, scores[1]) != ahead:
            return tuple(apart[:count])
    return None


def _before(first: str, first_score: float, second: str, second_score: float) -> bool:
    """By the one tie rule: the larger score as float32, then the larger id."""
    return (np.float32(first_score), first) > (np.float32(second_score), second)
