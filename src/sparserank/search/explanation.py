"""Explanations of a score: which query word met which document word, and what the pair added."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..parameters import html_table


class _Contribution(NamedTuple):
    query: str
    document: str
    contribution: float


class Contribution(_Contribution):
    """A word pair and what it adds to the score: the tuple (query, document, contribution), with a note.

    Attributes
    ----------
    query, document : str
        The two words.
    contribution : float
        What the pair adds.
    note : str
        How the document word comes from the query, such as "typo of apple" or "begins with app"; empty if the query
        has it, or if the pair was learned.

    Examples
    --------
    >>> pair = Contribution("aple", "apple", 2.0, "typo of apple")
    >>> pair, pair.note
    (Contribution(query='aple', document='apple', contribution=2.0), 'typo of apple')
    """

    note: str

    def __new__(cls, query: str, document: str, contribution: float, note: str = "") -> Contribution:
        """Return a contribution."""
        pair = super().__new__(cls, query, document, contribution)
        pair.note = note
        return pair

    def __reduce__(self) -> tuple[type[Contribution], tuple[Any, ...]]:
        return Contribution, (*self, self.note)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object: the fields, and the note if there is one."""
        return self._asdict() | ({"note": self.note} if self.note else {})


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
        notes = {pair[:2]: pair.note for pair in other.pairs + self.pairs}
        for query, document, contribution in self.pairs + other.pairs:
            total[query, document] = total.get((query, document), 0.0) + contribution
        order = sorted(total, key=lambda pair: -abs(total[pair]))
        pairs = tuple(Contribution(*pair, total[pair], notes[pair]) for pair in order if total[pair] != 0.0)
        return Explanation(float(np.float32(sum(total.values()))), pairs)

    def __repr__(self) -> str:
        pairs = ", ".join(_line(pair) for pair in self.pairs[:10])
        return f"Explanation({self.score:.4g} = {pairs}{', …' if len(self.pairs) > 10 else ''})"

    def _repr_html_(self) -> str:
        names, n = ("query word", "document word", "contribution", ""), 4 if any(p.note for p in self.pairs) else 3
        rows = [(pair.query, pair.document, f"{pair.contribution:+.4g}", pair.note)[:n] for pair in self.pairs]
        return html_table(names[:n], rows, f"score {self.score:.4g}")

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of `sparserank explain --json`."""
        return {"score": self.score, "pairs": [pair.to_dict() for pair in self.pairs]}


def _line(pair: Contribution) -> str:
    note = f" ({pair.note})" if pair.note else ""
    return f"{pair.query} → {pair.document} {pair.contribution:+.4g}{note}"
