"""Why one document ranks above another, and the fewest word pairs whose removal would swap them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .explanation import Explanation


class PairDifference(NamedTuple):
    """A word pair, what it adds to each of two documents, and the first value minus the second."""

    query: str
    document: str
    first: float
    second: float
    difference: float


@dataclass(frozen=True)
class Comparison:
    """Two documents for one query: their ids, their scores and their word pairs.

    pairs : in descending order of magnitude; their differences sum to `difference`.
    swap : the fewest pairs without which the lower document would rank higher; None if no set of pairs suffices.
    """

    first: str
    second: str
    first_score: float
    second_score: float
    pairs: tuple[PairDifference, ...]
    swap: tuple[PairDifference, ...] | None

    @property
    def difference(self) -> float:
        """The first score minus the second."""
        return self.first_score - self.second_score

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of `sparserank explain --against --json`."""
        return {
            "first": {"id": self.first, "score": self.first_score},
            "second": {"id": self.second, "score": self.second_score},
            "difference": self.difference,
            "pairs": [pair._asdict() for pair in self.pairs],
            "swap": None if self.swap is None else [pair._asdict() for pair in self.swap],
        }


def compare(first: str, second: str, first_explanation: Explanation, second_explanation: Explanation) -> Comparison:
    """Compare two documents by the explanations of their scores for the same query.

    >>> from sparserank.search.explanation import Contribution
    >>> explanation = Explanation(3.0, (Contribution("q", "red", 2.0), Contribution("q", "apple", 1.0)))
    >>> comparison = compare("a", "b", explanation, Explanation(1.5, (Contribution("q", "pear", 1.5),)))
    >>> [pair.document for pair in comparison.swap]
    ['red']
    """
    a, b = ({pair[:2]: pair.contribution for pair in e.pairs} for e in (first_explanation, second_explanation))
    pairs = [
        PairDifference(*pair, a.get(pair, 0.0), b.get(pair, 0.0), a.get(pair, 0.0) - b.get(pair, 0.0))
        for pair in dict.fromkeys([*a, *b])
    ]
    pairs.sort(key=lambda pair: -abs(pair.difference))
    scores = first_explanation.score, second_explanation.score
    return Comparison(first, second, *scores, tuple(pairs), _smallest_swap(first, second, pairs))


def _smallest_swap(first: str, second: str, pairs: list[PairDifference]) -> tuple[PairDifference, ...] | None:
    """Return the fewest pairs whose removal swaps the documents.

    Removing a set of pairs changes the difference by a sum, so no set of the same size changes it more than the
    pairs with the largest differences.
    """
    scores = [sum(pair.first for pair in pairs), sum(pair.second for pair in pairs)]
    ahead = _ranks_before(first, scores[0], second, scores[1])
    sign = 1.0 if ahead else -1.0
    by_difference = sorted(pairs, key=lambda pair: -sign * pair.difference)
    for count, pair in enumerate(by_difference, start=1):
        if sign * pair.difference <= 0.0:
            return None
        scores[0] -= pair.first
        scores[1] -= pair.second
        if _ranks_before(first, scores[0], second, scores[1]) != ahead:
            return tuple(by_difference[:count])
    return None


def _ranks_before(first: str, first_score: float, second: str, second_score: float) -> bool:
    """Apply the tie rule: the larger float32 score, then the larger id."""
    return (np.float32(first_score), first) > (np.float32(second_score), second)
