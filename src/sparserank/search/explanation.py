"""Why a score is what it is: which query word met which document word, and what it added."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np


class Contribution(NamedTuple):
    """One word pair and what it adds to the score."""

    query: str
    document: str
    contribution: float


@dataclass(frozen=True)
class Explanation:
    """The contributions sum to the score; the largest comes first."""

    score: float
    pairs: tuple[Contribution, ...]

    def plus(self, other: Explanation) -> Explanation:
        """Both together; a pair that is in both is one contribution."""
        added: dict[tuple[str, str], float] = {}
        for query, document, contribution in self.pairs + other.pairs:
            added[query, document] = added.get((query, document), 0.0) + contribution
        order = sorted(added, key=lambda pair: -abs(added[pair]))
        pairs = tuple(Contribution(*pair, added[pair]) for pair in order if added[pair] != 0.0)
        return Explanation(float(np.float32(sum(added.values()))), pairs)

    def to_dict(self) -> dict[str, Any]:
        """As the command line prints it."""
        return {"score": self.score, "pairs": [pair._asdict() for pair in self.pairs]}
