"""How a user constrains the word pairs of a text ranker: pins, forbidden pairs, forbidden words.

Each method updates the parameter `constraints`, so that a later fit keeps to it, and the pairs learned so far.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Self

from ..errors import ConfigError, DataError, NotFitted
from .constraints import Constraints, Pair
from .searching import Searching


class Constrained(Searching):
    """A text ranker with the parameter `constraints`."""

    constraints: Constraints | None

    def set_pair(self, query: str, document: str, weight: float) -> Self:
        """What this pair adds where both words count 1, from now on; a later fit may learn it anew."""
        pair = self._pair(query, document)
        self.model_ = replace(self.model_.edited(Constraints().pin(pair, weight)), edits=self.model_.edits)
        return self

    def pin(self, query: str, document: str, weight: float | None = None) -> Self:
        """This pair keeps this weight (None: the one it has), whatever is learned later."""
        pair = self._pair(query, document)
        weight = self.model_.named_pairs().get(pair, 0.0) if weight is None else weight
        return self._edited(self._constrained().pin(pair, weight))

    def forbid(self, query: str, document: str) -> Self:
        """This pair goes, and is never learned again."""
        return self._edited(self._constrained().forbid(self._pair(query, document)))

    def forbid_word(self, word: str) -> Self:
        """No pair with this word, on either side, now or later. Its own match in the lexical score stays."""
        return self._edited(self._constrained().forbid_word(self.counted(word)))

    def free(self, query: str, document: str) -> Self:
        """This pair is learned like any other, from the next fit on."""
        self.constraints = self._constrained().free(self._pair(query, document))
        self.model_ = replace(self.model_, edits=self.constraints)
        return self

    def _constrained(self) -> Constraints:
        """The parameter, validated."""
        if self.constraints is None:
            return Constraints()
        if not isinstance(self.constraints, Constraints):
            kind = type(self.constraints).__name__
            raise ConfigError(f"The 'constraints' parameter must be an sr.Constraints or None. Got a {kind}.")
        return self.constraints

    def _edited(self, constraints: Constraints) -> Self:
        self.model_ = self._fitted().edited(constraints)
        self.constraints = constraints
        return self

    def _pair(self, query: str, document: str) -> Pair:
        pair, model = (self.counted(query), self.counted(document)), self._fitted()
        if model.words is None:
            raise NotFitted("this ranker has no word pairs to edit; fit it on judged queries first")
        if model.words.column(pair[0]) is None:
            raise DataError(f"{query!r} is not among the {len(model.words.words)} words of queries")
        if pair[1] not in model.lexical.features.vocabulary_:
            raise DataError(f"{document!r} is not among the {len(model.lexical.words)} words of documents")
        return pair
