"""Explanations of a score: which query word met which document word, and what the pair added."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..parameters import html_table

SHOWN_LINES = 5
"""The lines of an explanation whose share of the learned part is reported."""
WORDS_PER_LINE = 6
"""Document words in a group: the smallest number with which five groups show 60 % of the learned part on held-out
training queries of pydocs and NFCorpus (`python -m benchmarks.explained_share`)."""


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


class Line(NamedTuple):
    """A document word, the query words that look for it, and what they add to the score together.

    Attributes
    ----------
    document : str
        The document word.
    queries : tuple of str
        The query words, the one that adds most first.
    contribution : float
        What all of them add.
    """

    document: str
    queries: tuple[str, ...]
    contribution: float


class WordGroup(NamedTuple):
    """A query word, at most WORDS_PER_LINE document words that it finds, and what they add to the score together.

    Attributes
    ----------
    query : str
        The query word.
    documents : tuple of str
        The document words, the one that adds most first. All raise the score, or all lower it.
    contribution : float
        What all of them add.
    """

    query: str
    documents: tuple[str, ...]
    contribution: float


def group_words(pairs: Iterable[tuple[str, str, float]], size: int = WORDS_PER_LINE) -> tuple[WordGroup, ...]:
    """Group document words by the query word that contributes most to them; the groups sum to the score.

    Words that lower the score are apart, and so are words beyond `size`. The largest absolute contribution is first.

    >>> group_words([("car", "motor", 2.0), ("car", "wheel", 1.0), ("red", "wheel", 0.5), ("car", "boat", -1.0)])[0]
    WordGroup(query='car', documents=('motor', 'wheel'), contribution=3.5)
    """
    pairs = sorted(pairs, key=lambda pair: -abs(pair[2]))
    total: dict[str, float] = {}
    for _, word, added in pairs:
        total[word] = total.get(word, 0.0) + added
    owner: dict[str, str] = {}
    for query, word, added in pairs:
        if added * total[word] > 0.0:
            owner.setdefault(word, query)
    groups: dict[tuple[str, bool], list[str]] = {}
    for word in sorted(owner, key=lambda word: -abs(total[word])):
        groups.setdefault((owner[word], total[word] > 0.0), []).append(word)
    parts = [
        (query, tuple(words[at : at + size]))
        for (query, _), words in groups.items()
        for at in range(0, len(words), size)
    ]
    out = [WordGroup(query, words, sum(map(total.__getitem__, words))) for query, words in parts]
    return tuple(sorted(out, key=lambda group: -abs(group.contribution)))


def shown_share(contributions: Any, k: int = SHOWN_LINES) -> float:
    """Return the share that the k largest absolute contributions have of the sum of all; 1 without contributions.

    >>> shown_share([4.0, -3.0, 1.0, 1.0, 1.0], k=2)
    0.7
    """
    size = np.sort(np.abs(np.asarray(contributions, np.float64)))[::-1]
    total = float(size.sum())
    return float(size[:k].sum()) / total if total > 0.0 else 1.0


@dataclass(frozen=True)
class Explanation:
    """The contributions that sum to a score.

    Parameters
    ----------
    score : float
        The score.
    pairs : tuple of Contribution
        The contributions, in descending order of magnitude.
    learned : tuple of Contribution, default=()
        The contributions of learned pairs, which `pairs` has too, added to those of the same words in the lexical
        score.

    Examples
    --------
    >>> Explanation(2.0, (Contribution("car", "motor", 2.0),)).to_dict()
    {'score': 2.0, 'pairs': [{'query': 'car', 'document': 'motor', 'contribution': 2.0}]}
    """

    score: float
    pairs: tuple[Contribution, ...]
    learned: tuple[Contribution, ...] = field(default=(), compare=False)

    @property
    def lines(self) -> tuple[Line, ...]:
        """The contributions by document word: one line for all query words that look for it. They sum to the score."""
        return _lines(self.pairs)

    @cached_property
    def learned_groups(self) -> tuple[WordGroup, ...]:
        """The contributions of learned pairs: query words with the document words that they find."""
        return group_words(self.learned)

    @property
    def explained_share(self) -> float | None:
        """The share of the learned part that its five largest groups show; None without a learned part."""
        return shown_share([group.contribution for group in self.learned_groups]) if self.learned else None

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


def _lines(pairs: tuple[Contribution, ...]) -> tuple[Line, ...]:
    """The pairs by document word, the largest absolute contribution first."""
    by_word: dict[str, list[Contribution]] = {}
    for pair in pairs:
        by_word.setdefault(pair.document, []).append(pair)
    lines = [
        Line(word, tuple(pair.query for pair in some), sum(pair.contribution for pair in some))
        for word, some in by_word.items()
    ]
    return tuple(sorted(lines, key=lambda line: -abs(line.contribution)))
