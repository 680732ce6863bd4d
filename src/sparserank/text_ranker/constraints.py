"""Constraints on word pairs: weights that a user fixes, pairs and words that a user forbids; and the difference of two
models in words.

Constraints are a parameter of `TextRanker`: every fit respects them.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..base.parameters_file import storable
from ..errors import ConfigError, ModelError
from .fixed_pairs import Edits
from .query_words import QueryWords

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Pair = tuple[str, str]
Mask = NDArray[np.bool_]


@storable
@dataclass(frozen=True)
class Constraints:
    """Word pairs that a user fixes or forbids.

    Words are spelled as the ranker counts them, which is their stem: `TextRanker.counted(word)` gives it.

    Parameters
    ----------
    pinned : mapping of (str, str) to float, default={}
        The weight of each pair (query word, document word) that is not learned.
    forbidden : collection of (str, str), default=()
        Pairs that have no weight.
    words : collection of str, default=()
        Words that are in no pair, on either side.

    Examples
    --------
    >>> Constraints(pinned={("car", "boat"): 0.5}).forbid(("car", "red")).forbidden
    frozenset({('car', 'red')})
    """

    pinned: Mapping[Pair, float] = field(default_factory=dict)
    forbidden: frozenset[Pair] = frozenset()
    words: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not isinstance(self.pinned, Mapping):
            raise ConfigError(f"The 'pinned' constraints must be a mapping of pairs to weights. Got {self.pinned!r}.")
        if isinstance(self.words, str):
            raise ConfigError(f"The 'words' of constraints must be a collection of words. Got {self.words!r}.")
        pinned = {_pair(pair): validation.number("weight", weight) for pair, weight in self.pinned.items()}
        object.__setattr__(self, "pinned", pinned)
        object.__setattr__(self, "forbidden", frozenset(map(_pair, self.forbidden)))
        object.__setattr__(self, "words", frozenset(self.words))

    def __bool__(self) -> bool:
        return bool(self.pinned or self.forbidden or self.words)

    def pin(self, pair: Pair, weight: float) -> Constraints:
        """This pair has this weight."""
        weight = validation.number("weight", weight)
        return replace(self, pinned={**self.pinned, pair: weight}, forbidden=self.forbidden - {pair})

    def forbid(self, pair: Pair) -> Constraints:
        """This pair is not to be."""
        pinned = {other: weight for other, weight in self.pinned.items() if other != pair}
        return replace(self, pinned=pinned, forbidden=self.forbidden | {pair})

    def forbid_word(self, word: str) -> Constraints:
        """No pair has this word, on either side, alone or within a pair of neighbours."""
        pinned = {pair: weight for pair, weight in self.pinned.items() if not any(_has({word}, name) for name in pair)}
        return replace(self, pinned=pinned, words=self.words | {word})

    def free(self, pair: Pair) -> Constraints:
        """Nothing is said about this pair any more."""
        pinned = {other: weight for other, weight in self.pinned.items() if other != pair}
        return replace(self, pinned=pinned, forbidden=self.forbidden - {pair})

    def pinned_in(self, words: QueryWords) -> csr_array | None:
        """The pinned weights, as a matrix of W's shape; None where there is none."""
        return _matrix(words, self.pinned)

    def forbidden_in(self, words: QueryWords) -> csr_array | None:
        """The forbidden places, as a matrix of W's shape; None where there is none."""
        return _matrix(words, dict.fromkeys(self.forbidden, 1.0))

    def barred_in(self, words: QueryWords) -> tuple[Mask, Mask] | None:
        """Rows and columns of W whose words are forbidden."""
        if not self.words:
            return None
        sides = (words.words, words.documents.words_)
        row, column = (np.fromiter((_has(self.words, name) for name in side), np.bool_, len(side)) for side in sides)
        return row, column

    def apply(self, W: csr_array, words: QueryWords) -> csr_array:
        """W with these edits."""
        from scipy.sparse import csr_array

        pinned, barred = self.pinned_in(words), self.barred_in(words)
        for told in (pinned, self.forbidden_in(words)):
            if told is not None:
                W = W - W.multiply(told != 0)
        W = csr_array(W if pinned is None else W + pinned).astype(np.float32)
        W = Edits(barred=barred).without_barred(W)
        W.eliminate_zeros()
        W.sort_indices()
        return W

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, for a model file."""
        return {
            "pinned": [[*pair, weight] for pair, weight in sorted(self.pinned.items())],
            "forbidden": sorted(map(list, self.forbidden)),
            "words": sorted(self.words),
        }

    @classmethod
    def from_dict(cls, told: Any, where: str) -> Constraints:
        """What `to_dict` gave; anything else is refused by the name of its file."""
        try:
            pinned = {(str(q), str(d)): validation.number("weight", weight) for q, d, weight in told["pinned"]}
            forbidden = frozenset((str(q), str(d)) for q, d in told["forbidden"])
            return cls(pinned, forbidden, frozenset(map(str, told["words"])))
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(f"{where}: its edits cannot be read: {error}") from None


PairEdits = Constraints
"""The name of 0.1."""


def _pair(given: Any) -> Pair:
    if not isinstance(given, tuple | list) or len(given) != 2 or not all(isinstance(word, str) for word in given):
        raise ConfigError(f"A constraint is on a pair (query word, document word). Got {given!r}.")
    return given[0], given[1]


def _has(forbidden: Set[str], name: str) -> bool:
    return not forbidden.isdisjoint(name.split(" "))


def _matrix(words: QueryWords, told: Mapping[Pair, float]) -> csr_array | None:
    from scipy.sparse import csr_array

    places = [
        (row, column, weight)
        for (query, document), weight in told.items()
        if (row := words.column(query)) is not None
        and (column := words.documents.vocabulary_.get(document)) is not None
    ]
    if not places:
        return None
    at = np.array([place[:2] for place in places])
    weight = np.array([place[2] for place in places], np.float32)
    return csr_array((weight, at.T), shape=(len(words.words), len(words.documents.words_)))


class Change(NamedTuple):
    """A pair whose weight differs between two models; 0 is where it is not there."""

    query: str
    document: str
    before: float
    after: float


def changes(before: Mapping[Pair, float], after: Mapping[Pair, float], k: int | None = None) -> list[Change]:
    """The pairs that differ, the largest difference first.

    >>> changes({("car", "auto"): 1.0}, {("car", "auto"): 1.5, ("car", "road"): 2.0})[0]
    Change(query='car', document='road', before=0.0, after=2.0)
    """
    found = [
        Change(*pair, before.get(pair, 0.0), after.get(pair, 0.0))
        for pair in before.keys() | after.keys()
        if before.get(pair, 0.0) != after.get(pair, 0.0)
    ]
    found.sort(key=lambda change: (-abs(change.after - change.before), change.query, change.document))
    return found[: None if k is None else validation.count("k", k, low=1)]
