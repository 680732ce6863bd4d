"""Explanations of a score: which query word met which document word, and what the pair added."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..parameters import html_table


class Contribution(NamedTuple):
    """A word pair and what it adds to the score.

    Attributes
    ----------
    query, document : str
        The two words.
    contribution : float
        What the pair adds.
    """

    query: str
    document: str
    contribution: float


@dataclass(frozen=True)
class Explanation:
    """The contributions that sum to a score.

    Parameters
    ----------
    score : float
        The score.
    pairs : tuple of Contribution
        The contributions, in descending order of magnitude.

    Examples
    --------
    >>> Explanation(2.0, (Contribution("car", "motor", 2.0),)).to_dict()
    {'score': 2.0, 'pairs': [{'query': 'car', 'document': 'motor', 'contribution': 2.0}]}
    """

    score: float
    pairs: tuple[Contribution, ...]

    def plus(self, other: Explanation) -> Explanation:
        """Add another explanation; a pair that is in both becomes one contribution.

        Parameters
        ----------
        other : Explanation
            Explanation of another part of the same score.
        """
        total: dict[tuple[str, str], float] = {}
        for query, document, contribution in self.pairs + other.pairs:
            total[query, document] = total.get((query, document), 0.0) + contribution
        order = sorted(total, key=lambda pair: -abs(total[pair]))
        pairs = tuple(Contribution(*pair, total[pair]) for pair in order if total[pair] != 0.0)
        return Explanation(float(np.float32(sum(total.values()))), pairs)

    def __repr__(self) -> str:
        pairs = ", ".join(f"{query} → {document} {added:+.4g}" for query, document, added in self.pairs[:10])
        return f"Explanation({self.score:.4g} = {pairs}{', …' if len(self.pairs) > 10 else ''})"

    def _repr_html_(self) -> str:
        rows = [(query, document, f"{added:+.4g}") for query, document, added in self.pairs]
        return html_table(("query word", "document word", "contribution"), rows, f"score {self.score:.4g}")

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of `sparserank explain --json`."""
        return {"score": self.score, "pairs": [pair._asdict() for pair in self.pairs]}
