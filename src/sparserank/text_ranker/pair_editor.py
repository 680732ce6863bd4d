"""Pairs that a person fixes: pinned weights, forbidden pairs and forbidden words of a fitted ranker."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Self

from ..errors import ConfigError, DataError
from .constraints import Change, Constraints, Pair, changes
from .searcher import TextSearcher
from .synonyms import Synonyms, as_synonyms


class PairEditor(TextSearcher):
    """The methods of `TextRanker` that change its pairs."""

    constraints: Constraints | None
    synonyms: Synonyms | None

    def use_synonyms(self, synonyms: Synonyms | None) -> Self:
        """Replace the synonyms, now and in later fits; the index stays valid.

        Parameters
        ----------
        synonyms : Synonyms or None
            The new synonyms.

        Examples
        --------
        >>> from sparserank import Synonyms, TextRanker
        >>> ranker = TextRanker("bm25").fit({"d1": "television", "d2": "radio"})
        >>> [hit.id for hit in ranker.use_synonyms(Synonyms("tv => television")).search("tv")]
        ['d1']
        """
        lexical = copy(self.lexical_)
        lexical.use_synonyms(as_synonyms(synonyms))
        self.synonyms, self.model_ = synonyms, replace(self.model_, lexical=lexical)
        return self

    def pin(self, query: str, document: str, weight: float | None = None) -> Self:
        """Fix the weight of a pair, now and in later fits.

        Parameters
        ----------
        query, document : str
            The query word and the document word.
        weight : float or None, default=None
            What the pair adds if both words count 1; None keeps the present weight.
        """
        pair = self._pair(query, document)
        weight = self.model_.named_pairs().get(pair, 0.0) if weight is None else weight
        return self._constrain(self._constraints().pin(pair, weight))

    def forbid(self, query: str, document: str) -> Self:
        """Remove a pair, now and in later fits.

        Parameters
        ----------
        query, document : str
            The query word and the document word.
        """
        return self._constrain(self._constraints().forbid(self._pair(query, document)))

    def forbid_word(self, word: str) -> Self:
        """Remove all pairs with a word, now and in later fits; its match with itself in the lexical score stays.

        Parameters
        ----------
        word : str
            The word.
        """
        return self._constrain(self._constraints().forbid_word(self.normalize(word)))

    def free(self, query: str, document: str) -> Self:
        """Learn a pair again from the next fit on.

        Parameters
        ----------
        query, document : str
            The query word and the document word.
        """
        self.constraints = self._constraints().free(self._pair(query, document))
        self.model_ = replace(self.model_, constraints=self.constraints)
        return self

    def set_pair(self, query: str, document: str, weight: float) -> Self:
        """Set the weight of a pair until the next fit.

        Parameters
        ----------
        query, document : str
            The query word and the document word.
        weight : float
            What the pair adds if both words count 1.
        """
        pinned = Constraints().pin(self._pair(query, document), weight)
        self.model_ = replace(self.model_.with_constraints(pinned), constraints=self.model_.constraints)
        return self

    def _constrain(self, constraints: Constraints) -> Self:
        self.model_ = self.fitted_model().with_constraints(constraints)
        self.constraints = constraints
        return self

    def _pair(self, query: str, document: str) -> Pair:
        pair, model = (self.normalize(query), self.normalize(document)), self.fitted_model()
        if model.vocabulary is None:
            reason = model.info.get("no_pairs", "it was not fitted on judged queries")
            raise DataError(f"this ranker has no word pairs to change: {reason}")
        if model.vocabulary.column(pair[0]) is None:
            raise DataError(f"{query!r} is not among the {len(model.vocabulary.words)} words of queries")
        if pair[1] not in model.lexical.features.vocabulary_:
            raise DataError(f"{document!r} is not among the {len(model.lexical.words)} words of documents")
        return pair

    def _constraints(self) -> Constraints:
        if self.constraints is None:
            return Constraints()
        if not isinstance(self.constraints, Constraints):
            kind = type(self.constraints).__name__
            raise ConfigError(f"The 'constraints' parameter must be an sr.Constraints or None. Got a {kind}.")
        return self.constraints


def diff(before: PairEditor, after: PairEditor, k: int | None = None) -> list[Change]:
    """Return the word pairs whose weights differ between two rankers, the largest difference first.

    Parameters
    ----------
    before, after : TextRanker
        The two rankers.
    k : int or None, default=None
        The largest number of pairs; None returns all.

    Examples
    --------
    >>> from sparserank import TextRanker
    >>> ranker = TextRanker().fit({"d1": "red apple"})
    >>> diff(ranker, ranker)
    []
    """
    return changes(before.fitted_model().named_pairs(), after.fitted_model().named_pairs(), k)
