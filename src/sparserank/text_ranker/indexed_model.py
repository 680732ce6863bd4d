"""IndexedModel: a text model and the index of its documents, which can be changed without training."""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import replace
from time import process_time
from typing import Any, Self

import numpy as np

from ..data.records import Documents
from ..deprecated import renamed_attribute, renamed_parameters
from ..errors import ModelError, NotFitted, count_of
from ..search import Index
from ..search.expansion import MAX_EXPANSION_BYTES, Expansion
from .lexical import LexicalModel
from .model import TextModel

Docs = Documents | Mapping[str, "str | Mapping[str, Any]"]
log = logging.getLogger(__name__)


class OtherIndex(ModelError):
    """The index was built for another model."""


class IndexedModel:
    """A fitted model (`model_`) and an index of documents (`index_`)."""

    model_: TextModel
    index_: Index

    gain_of_expanding = renamed_attribute("gain_of_expanding", "expansion_speedup")

    def index(self, docs: Docs) -> Index:
        """Build an index of another collection, with the fitted vocabulary and document frequencies.

        A warning names text fields that the model does not search.

        Parameters
        ----------
        docs : mapping
            {id: text} or {id: {"title": …, "text": …}}.
        """
        documents = self._more_documents(docs)
        return Index.build(self.fitted_model().encode_documents(documents), documents, made_for=self.fingerprint())

    def over(self, docs: Docs) -> Self:
        """Return a ranker with the same model and an index of another collection.

        Parameters
        ----------
        docs : mapping
            {id: text} or {id: {"title": …, "text": …}}.
        """
        other = copy(self)
        other.index_ = self.index(docs)
        return other

    def add(self, docs: Docs) -> Self:
        """Add documents to the index, or replace those with the same ids; the model does not change.

        A word that no training document had is not found, and a warning names text fields that the model does not
        search.

        Parameters
        ----------
        docs : mapping
            {id: text} or {id: {"title": …, "text": …}}.

        Examples
        --------
        >>> from sparserank import TextRanker
        >>> ranker = TextRanker().fit({"d1": "red apples", "d2": "a pear"})
        >>> [hit.id for hit in ranker.add({"d3": "red pear"}).remove(["d2"]).search("pear")]
        ['d3']
        """
        documents = self._more_documents(docs)
        self.index_ = self._require_index().with_documents(self.model_.encode_documents(documents), documents)
        return self

    def remove(self, doc_ids: Iterable[str]) -> Self:
        """Remove documents from the index; raises DataError if one is not there.

        Parameters
        ----------
        doc_ids : iterable of str
            The documents.
        """
        self.index_ = self._require_index().without(doc_ids)
        return self

    def serves(self, documents: Documents) -> bool:
        """Return whether the index holds exactly these documents.

        Parameters
        ----------
        documents : Documents
            The documents.
        """
        return hasattr(self, "index_") and self.index_.documents.rows() == documents.rows()

    @renamed_parameters({"most_bytes": "max_bytes"})
    def expand(self, max_bytes: int = MAX_EXPANSION_BYTES) -> bool:
        """Expand the indexed documents through the learned pairs, which makes some queries faster.

        Results do not change: `search` uses the faster plan for each query. New pairs make the expansion invalid.

        Parameters
        ----------
        max_bytes : int, default=MAX_EXPANSION_BYTES
            The largest size. If the expansion is larger, or there are no pairs, nothing changes and False is returned.
        """
        index = self._require_index()
        expansion = Expansion.build(index.segments, self.model_.encode_queries([""]), max_bytes)
        if expansion is not None:
            self.index_ = replace(index, expansion=expansion)
        return expansion is not None

    def expansion_speedup(self, queries: int = 64) -> float:
        """Measure how many times faster the expanded documents answer, with titles of documents as queries.

        Parameters
        ----------
        queries : int, default=64
            About how many queries to time.
        """
        index, segment = self._require_index(), self._require_index().segments[0]
        sample = range(0, len(segment), max(1, len(segment) // queries))
        texts = [index.title_at(i) or " ".join(segment.texts[i].split()[:8]) for i in sample]
        encoded, seconds = [self.model_.encode_queries([text]) for text in texts], {}
        for plan in ("query", "documents") * 2:  # the first round warms up
            started = process_time()
            for query in encoded:
                index.top(query, 10, n_jobs=1, plan=plan)
            seconds[plan] = process_time() - started
        return seconds["query"] / max(seconds["documents"], 1e-9)

    def fingerprint(self) -> str:
        """Return a digest of everything that decides how documents are weighted; an index fits one fingerprint.

        Pairs belong to the query side: a model that learns more of them keeps its index.
        """
        settings, arrays = self.lexical_.state()
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
        for name in sorted(arrays):
            digest.update(np.ascontiguousarray(arrays[name]).tobytes())
        return digest.hexdigest()

    @property
    def lexical_(self) -> LexicalModel:
        """The lexical part of the model."""
        return self.fitted_model().lexical

    def fitted_model(self) -> TextModel:
        """Return `model_`; raises NotFitted before the first fit."""
        if not hasattr(self, "model_"):
            raise NotFitted("this ranker is not fitted; call fit first")
        return self.model_

    def _more_documents(self, docs: Docs) -> Documents:
        """Return documents that the model was not fitted on; a warning names text fields that it does not search."""
        documents = Documents.of(docs)
        warn_not_searched(self.lexical_, self.lexical_.not_searched(documents))
        return documents

    def _require_index(self) -> Index:
        self.fitted_model()
        if not hasattr(self, "index_"):
            raise NotFitted(
                "this ranker has no index; build it with `sparserank index MODEL DATA --output MODEL.index`"
            )
        return self.index_


def warn_not_searched(lexical: LexicalModel, fields: Counter[str]) -> None:
    """Log the text fields of documents that a model does not search, with the number of documents of each."""
    if fields:
        found = ", ".join(f"{name} in {count_of(n, 'document')}" for name, n in fields.items())
        log.warning("not searched: %s (the model searches %s)", found, ", ".join(lexical.weight_of_field))
