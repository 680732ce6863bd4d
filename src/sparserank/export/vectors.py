"""Documents and queries as term → weight in one space: score = Σ over terms of query weight · document weight.

A model has two columns a word: the word itself, and what learned pairs look for. So a word is two terms, `word` and
`word~`, whose names and numbers do not depend on the documents. Document weights are above 0; a query's have signs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError
from ..search import Index
from ..text_ranker.model import TextModel

if TYPE_CHECKING:
    from scipy.sparse import csr_array

LEARNED = "~"
"""What the term of a word's learned column ends in."""
MOST_TERMS = 1 << 32
"""Engines number terms in 32 bits."""
_PLAIN = re.compile(r"[^\w ]")


def term_name(word: str, learned: bool = False) -> str:
    """The name of a word's term: no dots, which engines take for paths, and no blanks, which part terms in files.

    >>> term_name("heart attack"), term_name("rank", learned=True), term_name("a.b")
    ('heart+attack', 'rank~', 'a%2Eb')
    """
    escaped = _PLAIN.sub(lambda found: _escaped(found[0]), word).replace(" ", "+")
    return escaped + LEARNED if learned else escaped


def _escaped(character: str) -> str:
    return "%2E" if character == "." else "%7E" if character == "~" else quote(character, safe="")


def term_word(name: str) -> tuple[str, bool]:
    """The word of a term, and whether it is the learned column's.

    >>> term_word("heart+attack~")
    ('heart attack', True)
    """
    learned = name.endswith(LEARNED)
    return unquote(name.removesuffix(LEARNED).replace("+", " ")), learned


class Document(NamedTuple):
    """A document and its weights; `terms` are numbers, rising."""

    id: str
    title: str
    text: str
    terms: NDArray[np.int64]
    weights: NDArray[np.float32]


@dataclass(frozen=True)
class Vectors:
    """A model and an index made for it."""

    model: TextModel
    index: Index

    def __post_init__(self) -> None:
        if self.index.n_terms != self.model.n_terms:
            raise ModelError(f"the index has {self.index.n_terms} terms, the model {self.model.n_terms}: not its own")
        if self.model.n_terms >= MOST_TERMS:
            raise ModelError(f"{self.model.n_terms} terms are more than 32 bits can number")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The term of every column."""
        words = self.model.lexical.words
        names = tuple(map(term_name, words))
        return names if self.model.W is None else names + tuple(term_name(word, learned=True) for word in words)

    @cached_property
    def matrix(self) -> csr_array:
        """Documents × terms, in the order of `index.documents`, terms rising, without zeros."""
        out = self.index.matrix()
        out.eliminate_zeros()
        out.sort_indices()
        return out

    @cached_property
    def largest(self) -> NDArray[np.float64]:
        """The largest weight any document has for each term."""
        out = np.zeros(self.model.n_terms)
        np.maximum.at(out, self.matrix.indices, self.matrix.data)
        return out

    @cached_property
    def longest(self) -> float:
        """The largest length of any document's weights, learned columns alone where there are any: then it is 1."""
        learned = self.model.W is not None
        rows = self.matrix[:, len(self.model.lexical.words) :] if learned else self.matrix
        return float(np.sqrt(rows.multiply(rows).sum(axis=1).max(initial=0.0)))

    def most_of(self, weights: Mapping[int, float]) -> float:
        """A bound on Σ weight · d for weights of learned terms: by the largest d of each, or by lengths."""
        terms, values = np.array(list(weights), np.int64), np.array(list(weights.values()), np.float64)
        by_term = float(values @ self.largest[terms])
        return min(by_term, float(np.linalg.norm(values)) * self.longest * (1 + 1e-5))

    def documents(self) -> Iterator[Document]:
        """Every document, by falling id."""
        rows, records = self.matrix, self.index.documents
        for i, told in enumerate(zip(records.ids, records.titles, records.texts, strict=True)):
            part = slice(rows.indptr[i], rows.indptr[i + 1])
            yield Document(*told, rows.indices[part].astype(np.int64), rows.data[part])

    def queries(self, texts: Iterable[str]) -> csr_array:
        """Queries × terms, with signs, in 64 bits; terms that no document has are left out: they meet nothing."""
        out = self.model.encode_queries(texts).expand()
        out.data[self.largest[out.indices] == 0.0] = 0.0
        out.eliminate_zeros()
        out.sort_indices()
        return out

    def query(self, text: str) -> dict[int, float]:
        """One query, {number of a term: weight}.

        >>> from sparserank import TextRanker
        >>> ranker = TextRanker().fit({"a": "red apple", "b": "pear"})
        >>> vectors = Vectors(ranker.model_, ranker.index_)
        >>> {vectors.names[term]: weight for term, weight in vectors.query("An apple, or plums").items()}
        {'appl': 1.0}
        """
        row = self.queries([text])
        return dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))

    def named(self, weights: Mapping[int, float]) -> dict[str, float]:
        """{term: weight}, numbers as short as 32 bits need."""
        return {self.names[term]: short(weight) for term, weight in weights.items()}


def short(weight: float) -> float:
    """A weight in as few digits as tell it from other numbers of 32 bits.

    >>> import numpy as np
    >>> short(np.float32(0.1)), float(np.float32(0.1))
    (0.1, 0.10000000149011612)
    """
    return float(f"{weight:.9g}") if np.float32(f"{weight:.7g}") != np.float32(weight) else float(f"{weight:.7g}")


def shorts(weights: Sequence[float] | NDArray[np.float32]) -> list[float]:
    """`short` of many."""
    return [short(weight) for weight in np.asarray(weights, np.float32)]
