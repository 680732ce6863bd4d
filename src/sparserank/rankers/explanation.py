"""Why a score is what it is: which query word met which document word, and what it added."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple


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

    def to_dict(self) -> dict[str, Any]:
        """As the command line prints it."""
        return {"score": self.score, "pairs": [pair._asdict() for pair in self.pairs]}
