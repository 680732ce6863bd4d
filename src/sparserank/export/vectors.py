"""Documents and queries as sparse vectors: score = Σ over terms of query weight · document weight.

A model has two columns per word: the word itself, and the target of learned pairs. So a word is two terms, `word` and
`word~`; their names and numbers do not depend on the documents. Document weights are positive, query weights signed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from ..deprecated import renamed_attribute
from ..errors import ModelError
from ..search import Index
from ..text_ranker.model import TextModel
from .metadata import MetadataField, metadata_fields, typed_metadata

if TYPE_CHECKING:
    from scipy.sparse import csr_array

LEARNED = "~"
"""Suffix of the term of a word's learned column."""
MAX_TERMS = 1 << 32
"""Engines number terms in 32 bits."""
_SPECIAL = re.compile(r"[^\w ]")


def term_name(word: str, learned: bool = False) -> str:
    """Name the term of a word without dots, which engines read as paths, and without blanks, which separate terms.

    >>> term_name("heart attack"), term_name("rank", learned=True), term_name("a.b")
    ('heart+attack', 'rank~', 'a%2Eb')
    """
    escaped = _SPECIAL.sub(lambda match: _escape(match[0]), word).replace(" ", "+")
    return escaped + LEARNED if learned else escaped


def _escape(character: str) -> str:
    return "%2E" if character == "." else "%7E" if character == "~" else quote(character, safe="")


class Document(NamedTuple):
    """A document and its weights; `terms` are ascending term numbers."""

    id: str
    title: str
    text: str
    terms: NDArray[np.int64]
    weights: NDArray[np.float32]
    metadata: Mapping[str, Any]

    def fields(self) -> dict[str, str]:
        """Return its texts by field."""
        return {"id": self.id, "title": self.title, "text": self.text}

    def vector(self) -> dict[int, float]:
        """Return {number of a term: weight}."""
        return dict(zip(self.terms.tolist(), self.weights.tolist(), strict=True))


@dataclass(frozen=True)
class Vectors:
    """The sparse vectors of a model's queries and of the documents in its index.

    Parameters
    ----------
    model : TextModel
        The model of a `TextRanker`.
    index : Index
        An index of the same model; another one raises ModelError.

    Examples
    --------
    >>> from sparserank import TextRanker
    >>> ranker = TextRanker().fit({"a": "red apple", "b": "pear"})
    >>> vectors = Vectors(ranker.model_, ranker.index_)
    >>> vectors.by_name(vectors.query("An apple, or plums"))
    {'appl': 1.0}
    """

    model: TextModel
    index: Index

    def __post_init__(self) -> None:
        if self.index.n_terms != self.model.n_terms:
            raise ModelError(
                f"the index has {self.index.n_terms} terms, the model {self.model.n_terms}; they do not match"
            )
        if self.model.n_terms >= MAX_TERMS:
            raise ModelError(f"{self.model.n_terms} terms; engines number at most 2**32")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The term name of every column."""
        words = self.model.lexical.words
        names = tuple(map(term_name, words))
        return names if self.model.W is None else names + tuple(term_name(word, learned=True) for word in words)

    @cached_property
    def matrix(self) -> csr_array:
        """Documents × terms, in the order of `index.documents`, with ascending terms and without zeros."""
        out = self.index.matrix()
        out.eliminate_zeros()
        out.sort_indices()
        return out

    @cached_property
    def metadata_fields(self) -> tuple[MetadataField, ...]:
        """The metadata fields of the documents."""
        return metadata_fields(self.index.documents.metadata)

    @cached_property
    def largest(self) -> NDArray[np.float64]:
        """The largest weight of each term in any document."""
        out = np.zeros(self.model.n_terms)
        np.maximum.at(out, self.matrix.indices, self.matrix.data)
        return out

    @cached_property
    def max_norm(self) -> float:
        """The largest norm of a document, over the learned columns (then it is 1) if the model has pairs."""
        learned = self.model.W is not None
        rows = self.matrix[:, len(self.model.lexical.words) :] if learned else self.matrix
        return float(np.sqrt(rows.multiply(rows).sum(axis=1).max(initial=0.0)))

    longest, most_of = renamed_attribute("longest", "max_norm"), renamed_attribute("most_of", "upper_bound")
    named = renamed_attribute("named", "by_name")

    def upper_bound(self, weights: Mapping[int, float]) -> float:
        """Return an upper bound on Σ weight · d over all documents d.

        Parameters
        ----------
        weights : mapping of int to float
            {number of a learned term: positive weight}.

        Returns
        -------
        bound : float
            The smaller of two bounds: by the largest weight of each term, and by the norms (Cauchy–Schwarz).
        """
        terms, values = np.array(list(weights), np.int64), np.array(list(weights.values()), np.float64)
        by_term = float(values @ self.largest[terms])
        return min(by_term, float(np.linalg.norm(values)) * self.max_norm * (1 + 1e-5))

    def documents(self) -> Iterator[Document]:
        """Iterate over the documents in the order of the index."""
        rows = self.matrix
        for i, (doc_id, (title, text, metadata)) in enumerate(self.index.documents.rows().items()):
            part = slice(rows.indptr[i], rows.indptr[i + 1])
            given = typed_metadata(self.metadata_fields, metadata)
            yield Document(doc_id, title, text, rows.indices[part].astype(np.int64), rows.data[part], given)

    def queries(self, texts: Iterable[str]) -> csr_array:
        """Encode queries.

        Parameters
        ----------
        texts : iterable of str
            The queries.

        Returns
        -------
        Q : csr_array of shape (n_queries, n_terms)
            Signed weights, without the terms that no document has.
        """
        out = self.model.encode_queries(texts).expand()
        out.data[self.largest[out.indices] == 0.0] = 0.0
        out.eliminate_zeros()
        out.sort_indices()
        return out

    def query(self, text: str) -> dict[int, float]:
        """Encode one query.

        Parameters
        ----------
        text : str
            The query.

        Returns
        -------
        weights : dict of int to float
            {number of a term: weight}.
        """
        row = self.queries([text])
        return dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))

    def by_name(self, weights: Mapping[int, float]) -> dict[str, float]:
        """Replace the numbers of terms by their names.

        Parameters
        ----------
        weights : mapping of int to float
            {number of a term: weight}.

        Returns
        -------
        weights : dict of str to float
            {term: weight}; weights have the fewest digits that identify a 32-bit number.
        """
        return {self.names[term]: short(weight) for term, weight in weights.items()}


def short(weight: float) -> float:
    """Round a weight to the fewest digits that identify it among 32-bit numbers.

    >>> import numpy as np
    >>> short(np.float32(0.1)), float(np.float32(0.1))
    (0.1, 0.10000000149011612)
    """
    return float(f"{weight:.9g}") if np.float32(f"{weight:.7g}") != np.float32(weight) else float(f"{weight:.7g}")


def shorts(weights: Sequence[float] | NDArray[np.float32]) -> list[float]:
    """Apply `short` to many weights."""
    return [short(weight) for weight in np.asarray(weights, np.float32)]
