"""Synonyms of the user's own, from a file in Solr's format.

    # one group per line: each word also finds the others
    laptop, notebook, portable computer
    # one way: tv also finds television
    tv => television

A synonym adds words to the lexical part of a query. The words of one synonym share its weight.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from ..base.parameters_file import storable
from ..data.files import PathLike, read_text
from ..errors import ConfigError, DataError, ModelError
from ..text import Analyzer, TextFeatures
from ..text.tokens import short_text_tokens

SYNONYM_WEIGHT = 0.9
"""The weight of a synonym; the words of the query have the weight 1."""
_COMMA, _ARROW = re.compile(r"(?<!\\),"), re.compile(r"(?<!\\)=>")
_ESCAPED = re.compile(r"\\(.)")


class Rule(NamedTuple):
    """A line of the file: a query with one of `words` also finds each of `added` that it does not have."""

    line: int
    words: tuple[str, ...]
    added: tuple[str, ...]


@storable
@dataclass(frozen=True)
class Synonyms:
    """Synonyms that a user gives.

    Parameters
    ----------
    text : str, default=""
        The content of the file: a group of words per line, separated by commas, or `words => words` for one way only.
        Lines that start with `#` are comments; a backslash takes away the meaning of a comma.
    source : str, default="synonyms"
        The name of the file, for messages.

    Examples
    --------
    >>> from sparserank import TextRanker
    >>> synonyms = Synonyms("laptop, notebook, portable computer")
    >>> ranker = TextRanker("bm25", synonyms=synonyms).fit({"d1": "a notebook", "d2": "a pear"})
    >>> [hit.id for hit in ranker.search("laptops")]
    ['d1']
    """

    text: str = ""
    source: str = "synonyms"

    def __post_init__(self) -> None:
        for value in (self.text, self.source):
            if type(value) is not str:
                raise ConfigError(f"Synonyms need the text of a file. Got {value!r:.100} instead.")
        tuple(self.rules)

    @classmethod
    def read(cls, path: PathLike) -> Synonyms:
        """Read a file; a line that is not valid raises DataError with its number.

        Parameters
        ----------
        path : str or path
            The file.
        """
        return cls(read_text(path), str(path))

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The rules, in the order of the lines."""
        return tuple(self._parse())

    def _parse(self) -> Iterator[Rule]:
        for number, line in enumerate(self.text.removeprefix("\ufeff").splitlines(), start=1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            sides = [[_ESCAPED.sub(r"\1", word).strip() for word in _COMMA.split(side)] for side in _ARROW.split(line)]
            if len(sides) > 2:
                raise DataError(f"{self.source}:{number}: expected one '=>' at most, found {len(sides) - 1}: {line!r}")
            if not all(word for side in sides for word in side):
                raise DataError(f"{self.source}:{number}: a word is missing: {line!r}")
            if len(sides) == 1 and len(sides[0]) == 1:
                raise DataError(
                    f"{self.source}:{number}: expected words separated by commas, or 'word => word', found {line!r}"
                )
            yield Rule(number, tuple(sides[0]), tuple(sides[-1]))

    def stems(self, analyzer: Analyzer) -> dict[tuple[str, ...], list[tuple[str, ...]]]:
        """Return {sequence of stems: the sequences that it also finds}; a word without stems raises DataError.

        Parameters
        ----------
        analyzer : Analyzer
            The analyzer of the model; n-grams do not count.
        """
        out: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
        for rule in self.rules:
            stems = {word: tuple(short_text_tokens(analyzer, word)) for word in (*rule.words, *rule.added)}
            for word, found in stems.items():
                if not found:
                    raise DataError(f"{self.source}:{rule.line}: {word!r} contains no words that the analyzer keeps")
            for word in rule.words:
                others = [stems[one] for one in rule.added if stems[one] != stems[word]]
                known = out.setdefault(stems[word], [])
                known += [one for one in dict.fromkeys(others) if one not in known]
        return out

    def __bool__(self) -> bool:
        return bool(self.rules)


def as_synonyms(value: Any) -> Synonyms:
    """Return the synonyms for a parameter: None or an object."""
    if value is None:
        return Synonyms()
    if isinstance(value, Synonyms):
        return value
    raise ConfigError(
        f"The 'synonyms' parameter must be Synonyms, such as Synonyms.read(path), or None. Got {value!r:.100} instead."
    )


def stored_synonyms(stored: Any, path: str) -> Synonyms:
    """Return the synonyms of a model file; None for a file without."""
    if stored is None:
        return Synonyms()
    if not isinstance(stored, Mapping) or set(stored) != {"text", "source"}:
        raise ModelError(f"{path}: invalid synonyms: {stored!r:.100}")
    try:
        return Synonyms(**stored)
    except (ConfigError, DataError) as error:
        raise ModelError(f"{path}: invalid synonyms: {error}") from None


class SynonymTable:
    """Synonyms by the columns of a fitted vocabulary."""

    def __init__(self, synonyms: Synonyms, features: TextFeatures) -> None:
        self._features, self._analyzer = features, replace(features.analyzer_, ngrams=1)
        self._stems = synonyms.stems(self._analyzer)
        self._longest = max(map(len, self._stems), default=0)

    def added(self, text: str) -> dict[int, tuple[float, str]]:
        """Return {column: (weight, the words of the text that it is a synonym of)} of the columns that a text gains."""
        tokens = short_text_tokens(self._analyzer, text)
        out: dict[int, tuple[float, str]] = {}
        for phrase, others in self._found(tokens):
            for other in others:
                for stem in other:
                    column = self._features.vocabulary_.get(stem, -1)
                    if column >= 0 and stem not in tokens:
                        weight = SYNONYM_WEIGHT / len(other)
                        out[column] = max(out.get(column, (0.0, "")), (weight, " ".join(phrase)))
        return out

    def _found(self, tokens: list[str]) -> Iterable[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
        for size in range(1, self._longest + 1):
            for start in range(len(tokens) - size + 1):
                phrase = tuple(tokens[start : start + size])
                if phrase in self._stems:
                    yield phrase, self._stems[phrase]
