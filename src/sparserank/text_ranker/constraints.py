"""User-fixed weights: pinned pairs, forbidden pairs and forbidden words; and the difference of two models.

`Constraints` names words and is a parameter of `TextRanker`; `PairConstraints` holds the same by vocabulary position.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..base.parameters_file import storable
from ..deprecated import renamed_names
from ..errors import ConfigError, ModelError
from .query_vocabulary import QueryVocabulary

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Pair = tuple[str, str]
Mask = NDArray[np.bool_]

__getattr__ = renamed_names(__name__, {"PairEdits": "Constraints"})


@storable
@dataclass(frozen=True)
class Constraints:
    """Word pairs that a user fixes or forbids.

    Words are stems: `TextRanker.normalize(word)` returns the stem of a word.

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
        """Return constraints that fix the weight of a pair.

        Parameters
        ----------
        pair : (str, str)
            A query word and a document word.
        weight : float
            Its weight.
        """
        weight = validation.number("weight", weight)
        return replace(self, pinned={**self.pinned, pair: weight}, forbidden=self.forbidden - {pair})

    def forbid(self, pair: Pair) -> Constraints:
        """Return constraints that forbid a pair.

        Parameters
        ----------
        pair : (str, str)
            A query word and a document word.
        """
        released = self.free(pair)
        return replace(released, forbidden=released.forbidden | {pair})

    def forbid_word(self, word: str) -> Constraints:
        """Return constraints that forbid all pairs with a word, alone or in a sequence of neighbouring words.

        Parameters
        ----------
        word : str
            The word.
        """
        pinned = {pair: w for pair, w in self.pinned.items() if not any(_contains(name, {word}) for name in pair)}
        return replace(self, pinned=pinned, words=self.words | {word})

    def free(self, pair: Pair) -> Constraints:
        """Return constraints that neither pin nor forbid a pair.

        Parameters
        ----------
        pair : (str, str)
            A query word and a document word.
        """
        pinned = {other: weight for other, weight in self.pinned.items() if other != pair}
        return replace(self, pinned=pinned, forbidden=self.forbidden - {pair})

    def index(self, vocabulary: QueryVocabulary, pair_weight: float = 1.0) -> PairConstraints:
        """Return the constraints by vocabulary position.

        Parameters
        ----------
        vocabulary : QueryVocabulary
            The words of queries and documents.
        pair_weight : float, default=1.0
            Pinned weights are divided by it.
        """
        pinned = {pair: weight / pair_weight for pair, weight in self.pinned.items()}
        forbidden = _matrix(vocabulary, dict.fromkeys(self.forbidden, 1.0))
        forbidden_words = None
        if self.words:
            sides = (vocabulary.words, vocabulary.documents.words_)
            rows, columns = (np.array([_contains(name, self.words) for name in side], np.bool_) for side in sides)
            forbidden_words = rows, columns
        return PairConstraints(_matrix(vocabulary, pinned), forbidden, forbidden_words)

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists for a model file."""
        return {
            "pinned": [[*pair, weight] for pair, weight in sorted(self.pinned.items())],
            "forbidden": sorted(map(list, self.forbidden)),
            "words": sorted(self.words),
        }

    @classmethod
    def from_dict(cls, stored: Any, path: str) -> Constraints:
        """Return the constraints that `to_dict` stored; raises ModelError with the path for anything else.

        Parameters
        ----------
        stored : object
            What `to_dict` returned.
        path : str
            The file.
        """
        try:
            pinned = {(str(q), str(d)): validation.number("weight", weight) for q, d, weight in stored["pinned"]}
            forbidden = frozenset((str(q), str(d)) for q, d in stored["forbidden"])
            return cls(pinned, forbidden, frozenset(map(str, stored["words"])))
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(f"{path}: invalid constraints: {error}") from None


@dataclass(frozen=True)
class PairConstraints:
    """Constraints by vocabulary position: pinned weights and forbidden entries of W, rows and columns without pairs."""

    pinned: csr_array | None = None
    forbidden: csr_array | None = None
    forbidden_words: tuple[Mask, Mask] | None = None

    def without_forbidden_words(self, W: csr_array) -> csr_array:
        """Return W without the rows and columns of forbidden words."""
        if self.forbidden_words is None:
            return W
        W = W.copy()
        row = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))
        W.data[self.forbidden_words[0][row] | self.forbidden_words[1][W.indices]] = 0.0
        W.eliminate_zeros()
        return W

    def with_pinned(self, W: csr_array) -> tuple[csr_array, Mask | None]:
        """Return W with the pinned weights, and which of its entries are pinned."""
        if self.pinned is None:
            return W, None
        from scipy.sparse import csr_array

        row, column = self.pinned.nonzero()
        ones = csr_array((np.ones(len(row), np.float32), (row, column)), shape=W.shape)
        W = csr_array(W - W.multiply(ones) + self.pinned).astype(np.float32)
        W.sort_indices()
        position = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr)) * np.int64(W.shape[1]) + W.indices
        return W, np.isin(position, row * np.int64(W.shape[1]) + column)

    def apply(self, W: csr_array) -> csr_array:
        """Return W with all constraints."""
        from scipy.sparse import csr_array

        if self.forbidden is not None:
            W = W - W.multiply(self.forbidden)
        W = csr_array(self.without_forbidden_words(self.with_pinned(csr_array(W))[0])).astype(np.float32)
        W.eliminate_zeros()
        W.sort_indices()
        return W


def _pair(value: Any) -> Pair:
    if not isinstance(value, tuple | list) or len(value) != 2 or not all(isinstance(word, str) for word in value):
        raise ConfigError(f"A constraint is on a pair (query word, document word). Got {value!r}.")
    return value[0], value[1]


def _contains(name: str, words: Set[str]) -> bool:
    return not words.isdisjoint(name.split(" "))


def _matrix(vocabulary: QueryVocabulary, weights: Mapping[Pair, float]) -> csr_array | None:
    """A matrix of W's shape with these weights; None if no pair is in the vocabulary."""
    from scipy.sparse import csr_array

    entries = [
        (row, column, weight)
        for (query, document), weight in weights.items()
        if (row := vocabulary.column(query)) is not None
        and (column := vocabulary.documents.vocabulary_.get(document)) is not None
    ]
    if not entries:
        return None
    position, weight = np.array([entry[:2] for entry in entries]), np.array([e[2] for e in entries], np.float32)
    return csr_array((weight, position.T), shape=(len(vocabulary.words), len(vocabulary.documents.words_)))


class Change(NamedTuple):
    """A pair whose weight differs between two models; 0 means that the model does not have it."""

    query: str
    document: str
    before: float
    after: float


def changes(before: Mapping[Pair, float], after: Mapping[Pair, float], k: int | None = None) -> list[Change]:
    """Return the pairs whose weights differ, the largest difference first.

    >>> changes({("car", "auto"): 1.0}, {("car", "auto"): 1.5, ("car", "road"): 2.0})[0]
    Change(query='car', document='road', before=0.0, after=2.0)
    """
    differences = [
        Change(*pair, before.get(pair, 0.0), after.get(pair, 0.0))
        for pair in before.keys() | after.keys()
        if before.get(pair, 0.0) != after.get(pair, 0.0)
    ]
    differences.sort(key=lambda change: (-abs(change.after - change.before), change.query, change.document))
    return differences[: None if k is None else validation.count("k", k, low=1)]
