"""The words of a query that no document has, as the query spells them."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from ..search import Index
from ..text import Analyzer
from ..text.segmentation import covered_parts
from .lexical import LexicalModel


def unknown_words(lexical: LexicalModel, index: Index | None, text: str) -> list[str]:
    """Return the words of a query that no document of the index has; stop words are left out."""
    analyzer, columns = lexical.analyzer, lexical.features.vocabulary_

    def known(form: str) -> bool:
        return form in columns and (index is None or bool(index.has_term(columns[form])))

    if not analyzer.is_plain:
        return covered_parts(text, [(start, end) for start, end, form in analyzer.spans(text) if not known(form)])
    spelling: dict[str, str] = {}
    for word in _without_normalization(analyzer).tokens(text):
        for form in _forms(analyzer, word):
            spelling.setdefault(form, word)
    return list(dict.fromkeys(word for form, word in spelling.items() if not known(form)))


@lru_cache(maxsize=4)
def _without_normalization(analyzer: Analyzer) -> Analyzer:
    return replace(analyzer, ngrams=1, lowercase=False, stem=None, stop_words=None)


@lru_cache(maxsize=4096)
def _forms(analyzer: Analyzer, word: str) -> tuple[str, ...]:
    """The stems of a word; cached, because queries share words."""
    return tuple(replace(analyzer, ngrams=1).tokens(word))
