"""What can be asked of a model of texts and an index of documents: search, scores, explanations, related words."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import lru_cache
from time import process_time
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ..data.records import Documents
from ..errors import DataError, NotFitted
from ..search import Explanation, Hit, Index
from ..search.comparison import Comparison, compare
from ..search.expansion import MAX_EXPANSION_BYTES, Expansion
from ..search.explanation import Contribution
from ..text import Analyzer
from .explain import Explaining
from .lexical import LexicalRanker
from .model import PairTable, TextModel

Docs = Documents | Mapping[str, "str | Mapping[str, str]"]


class Searching:
    """A model, and an index of documents made for it."""

    model_: TextModel
    index_: Index

    @property
    def lexical_(self) -> LexicalRanker:
        """The lexical part of what was learned."""
        return self._fitted().lexical

    def index(self, docs: Docs) -> Index:
        """Make another collection ready for this ranker, in the words and frequencies it has learned."""
        documents = Documents.of(docs)
        return Index.build(self._fitted().documents(documents), documents, made_for=self.fingerprint())

    def over(self, docs: Docs) -> Self:
        """This ranker over another collection; what it has learned stays, only the index changes."""
        other = copy(self)
        other.index_ = self.index(docs)
        return other

    def add(self, docs: Docs) -> Self:
        """Add documents to the index, or put them in the place of those with their ids; nothing else is made again.

        They are weighted in the words and frequencies that were learned: a word no document had before is not found.

        >>> from sparserank import TextRanker
        >>> ranker = TextRanker().fit({"d1": "red apples", "d2": "a pear"})
        >>> [hit.id for hit in ranker.add({"d3": "red pear"}).remove(["d2"]).search("pear")]
        ['d3']
        """
        documents = Documents.of(docs)
        self.index_ = self._searched().with_documents(self._fitted().documents(documents), documents)
        return self

    def remove(self, doc_ids: Iterable[str]) -> Self:
        """Take documents out of the index; one that is not there is refused by name."""
        self.index_ = self._searched().without(doc_ids)
        return self

    def expand(self, most_bytes: int = MAX_EXPANSION_BYTES) -> bool:
        """Expand the documents of the index through the pairs there are, for the second plan of search; see Index.top.

        False, and nothing changes, where there are no pairs or where it would take more bytes. Results are the same;
        `search` takes for each query the plan that reads less. New pairs leave the expansion behind, unused.
        """
        index = self._searched()
        expansion = Expansion.build(index.segments, self._fitted().asked([""]), most_bytes)
        if expansion is not None:
            self.index_ = replace(index, expansion=expansion)
        return expansion is not None

    def gain_of_expanding(self, queries: int = 64) -> float:
        """How many times as fast the second plan answers, measured on titles of the documents, one after another."""
        index, asked = self._searched(), self._fitted().asked
        step = max(1, len(index.segments[0]) // queries)
        some = range(0, len(index.segments[0]), step)
        texts = [index.title_at(i) or " ".join(index.segments[0].texts[i].split()[:8]) for i in some]
        rows, seconds = [asked([text]) for text in texts], {}
        for plan in ("query", "documents") * 2:  # the first round warms up
            started = process_time()
            for one in rows:
                index.top(one, 10, n_jobs=1, plan=plan)
            seconds[plan] = process_time() - started
        return seconds["query"] / max(seconds["documents"], 1e-9)

    def serves(self, documents: Documents) -> bool:
        """Whether the index at hand holds exactly these documents."""
        if not hasattr(self, "index_"):
            return False
        there = self.index_.documents
        return dict(zip(there.ids, zip(there.titles, there.texts, strict=True), strict=True)) == dict(
            zip(documents.ids, zip(documents.titles, documents.texts, strict=True), strict=True)
        )

    def search(self, text: str, k: int = 10) -> list[Hit]:
        """The best k documents for a text, best first; only those that share a word with it, or that a pair looks for.

        >>> from sparserank import TextRanker
        >>> TextRanker().fit({"d1": "apple", "d2": "pear"}).search("plum")
        []
        """
        return self.search_many([text], k)[0]

    def search_lexical(self, text: str, k: int = 10) -> list[Hit]:
        """`search` by the lexical score alone, as if no pair had been learned."""
        return self._searched().search(self._fitted().lexical_asked(text), k)[0]

    def search_many(self, texts: Iterable[str], k: int = 10, n_jobs: int | None = None) -> list[list[Hit]]:
        """`search` for many texts at once, on all cores."""
        return self._searched().search(self._fitted().asked(texts), k, n_jobs)

    def run(self, queries: Mapping[str, str], k: int = 1000, drop_self: bool = False) -> dict[str, dict[str, float]]:
        """{query id: {document id: score}} for every query, best first."""
        asked = self._fitted().asked(queries.values())
        return self._searched().run(asked, list(queries), k, drop_self)

    def scores(self, texts: Iterable[str], doc_ids: Sequence[str] | None = None) -> NDArray[np.float32]:
        """out[i, j] = score of document j (all, in the order of `index_.documents`, or those named) for text i."""
        asked, docs = self._fitted().asked(texts), self._searched().matrix(doc_ids)
        return np.asarray((asked.expand() @ docs.astype(np.float64).T).todense(), dtype=np.float32)

    def explain(self, text: str, doc_id: str) -> Explanation:
        """Which word of the text met which word of the document, and what it added to the score."""
        return self.explaining(text).whole(doc_id)

    def explain_parts(self, text: str, doc_id: str) -> tuple[Explanation, Explanation]:
        """`explain` in two parts: words that met themselves in the lexical score, and learned pairs."""
        return self.explaining(text).parts(doc_id)

    def explaining(self, text: str) -> Explaining:
        """To explain one text for many documents."""
        return Explaining(self._fitted(), self._searched(), text)

    def compare(self, text: str, first: str, second: str) -> Comparison:
        """Why the first document is above the second, or below it, and which pairs would have to go to swap them."""
        if first == second:
            raise DataError(f"two documents are compared; {first!r} was given twice")
        explaining = self.explaining(text)
        return compare(first, second, explaining.whole(first), explaining.whole(second))

    def unknown(self, text: str) -> list[str]:
        """The words of a text that no document of the index has, as the text spells them; stop words do not count.

        >>> from sparserank import TextRanker
        >>> TextRanker().fit({"d1": "apples"}).unknown("The Plums and the apple")
        ['Plums']
        """
        analyzer = self._fitted().lexical.settings.analyzer
        spelled: dict[str, str] = {}
        for word in _as_written(analyzer).tokens(text):
            for form in _forms(analyzer, word):
                spelled.setdefault(form, word)
        return list(dict.fromkeys(word for form, word in spelled.items() if not self._occurs(form)))

    def _occurs(self, form: str) -> bool:
        column = self._fitted().lexical.features.vocabulary_.get(form)
        if column is None or not hasattr(self, "index_"):
            return column is not None
        return self.index_.has_term(column)

    def related(self, word: str, k: int = 5) -> list[tuple[str, float]]:
        """The document words that a query word has learned to look for, and how much: the largest of its row of W."""
        return self.pairs_.related(self.counted(word), k)

    def top_pairs(self, k: int = 20) -> list[Contribution]:
        """The largest pairs, whatever their sign."""
        return self.pairs_.top_pairs(k)

    @property
    def pairs_(self) -> PairTable:
        """The learned pairs; a model without any is refused."""
        pairs = self._fitted().pairs
        if pairs is None:
            raise NotFitted("this ranker has no word pairs: each word looks for itself alone")
        return pairs

    def counted(self, word: str) -> str:
        """A word (or neighbouring words) as it is counted: its stem."""
        analyzer = replace(self._fitted().lexical.settings.analyzer, ngrams=1, stop_words=None)
        forms = analyzer.tokens(word)
        if not forms:
            raise DataError(f"{word!r} holds no word")
        return " ".join(forms)

    def fingerprint(self) -> str:
        """A digest of all that decides how documents are weighted; an index is refused by any other model.

        Pairs are on the side of queries: a model that learns more of them keeps its index.
        """
        settings, arrays = self._fitted().lexical.state()
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
        for name in sorted(arrays):
            digest.update(np.ascontiguousarray(arrays[name]).tobytes())
        return digest.hexdigest()

    def _fitted(self) -> TextModel:
        if not hasattr(self, "model_"):
            raise NotFitted("this ranker has seen no documents yet; call fit first")
        return self.model_

    def _searched(self) -> Index:
        self._fitted()
        if not hasattr(self, "index_"):
            raise NotFitted(
                "this ranker has no index; make one with `sparserank index MODEL DATA --output MODEL.index`"
            )
        return self.index_


@lru_cache(maxsize=4)
def _as_written(analyzer: Analyzer) -> Analyzer:
    """Finds words as a text spells them."""
    return replace(analyzer, ngrams=1, lowercase=False, stem=None, stop_words=None)


@lru_cache(maxsize=4096)
def _forms(analyzer: Analyzer, word: str) -> tuple[str, ...]:
    """What a word is counted as; queries have much the same words."""
    return tuple(replace(analyzer, ngrams=1).tokens(word))
