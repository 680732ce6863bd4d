"""Queries that forgive: a word with a typing error is corrected, and the last word may be unfinished.

A word that no document has is replaced by the nearest word that documents have, and a rare word gets a much more
frequent neighbour beside it. An unfinished word stands for all words that begin with it; together they weigh as much as
one word that is as frequent as all of them. If no word begins with it and none is near, it stands for those that begin
with it but for the fewest typing errors. Words that are added beside a word which documents have are scaled down, so
that no document scores more through them than any document scores through the word itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..search.encoded_query import KernelRows
from ..search.index import Index
from ..search.results import Correction
from ..text.features import TextFeatures
from ..text.normalization import fold, word_pattern
from ..text.segmentation import SEGMENTED
from ..text.sparse_counts import inverse_document_frequency
from ..text.surface_forms import Candidate
from .model import TextModel

MIN_LETTERS = {1: 4, 2: 8}
"""The letters that a word needs for so many errors."""
MIN_LETTERS_UNFINISHED = {1: 2, 2: 8}
"""The letters that an unfinished word needs for so many errors."""
RARE_DOCUMENTS = 2
"""A word of at most so many documents may be a typing error of the documents themselves."""
FREQUENCY_RATIO = 20
"""A neighbour of a rare word counts only if it is so many times as frequent."""
BELOW_EXACT = 0.99
"""The largest score through added words, as a share of the smallest score through the exact word."""


BEGINS_WITH = "begins with"
"""The beginning of the note of a completion."""


class Note(NamedTuple):
    """Why a query has another word: the word as typed, and what the other word is to it."""

    word: str
    text: str


@dataclass(frozen=True)
class RewrittenQuery:
    """A query for an index: its columns, its rows of W, and what was changed.

    notes : by column of the lexical part, for columns that the query as typed does not have.
    word_notes : by word of the vocabulary of queries.
    """

    terms: KernelRows
    words: KernelRows | None
    corrections: tuple[Correction, ...] = ()
    notes: Mapping[int, Note] = field(default_factory=dict)
    word_notes: Mapping[str, Note] = field(default_factory=dict)

    @property
    def completed(self) -> set[str]:
        """The unfinished words that stand for words that begin with them."""
        return {note.word for note in self.notes.values() if note.text.startswith(BEGINS_WITH)}


def as_typed(model: TextModel, text: str) -> RewrittenQuery:
    """Return a query as it is, with its synonyms."""
    return RewrittenQuery(*model.query_rows(text), notes=synonym_notes(model, text))


def synonym_notes(model: TextModel, text: str) -> dict[int, Note]:
    """Return the notes of the columns that synonyms add to a query."""
    if not model.lexical.synonyms:
        return {}
    added = model.lexical.synonym_table.added(text)
    shown = model.lexical.surface_forms(word for _, word in added.values())
    return {column: Note(word, f"synonym of {shown.get(word, word)}") for column, (_, word) in added.items()}


class _Word(NamedTuple):
    """A word at text[start:end], folded, its stem, and its column, or -1."""

    start: int
    end: int
    spelling: str
    stem: str
    column: int


def rewrite(model: TextModel, index: Index, text: str, typos: bool, prefix: bool) -> RewrittenQuery:
    """Return a query with corrected words (`typos`) and completions of its last word (`prefix`)."""
    frequency, lexical = _Frequencies(index), model.lexical
    words = list(_words(lexical.features, text))
    start = _unfinished(lexical.features, text) if prefix else None
    unfinished = "" if start is None else text[start:]
    completions, n_typos = _completions(model, frequency, unfinished, words), 0
    finished = [word for word in words if not completions or word.end < len(text)]
    nearest = {word: _best_correction(model, frequency, word) for word in finished} if typos else {}
    if typos and not completions and _is_unknown(model, frequency, text, words) and not (words and nearest[words[-1]]):
        completions, n_typos = _near_completions(model, frequency, unfinished)
    added = [completions] if completions else []
    completed = f"{BEGINS_WITH} {unfinished}" + (f", {n_typos} typo{'s' * (n_typos > 1)}" if n_typos else "")
    notes = dict.fromkeys(completions, Note(unfinished, completed))
    corrected, corrections, word_notes = text, [], {}
    for word in reversed(nearest):  # from the end, so that positions before a change stay valid
        best = nearest[word]
        if best is None:
            continue
        spelling, stem = text[word.start : word.end], lexical.words[best.column]
        note = Note(spelling, f"typo of {best.spelling}")
        notes[best.column] = note
        corrections.append(Correction(spelling, best.spelling))
        if frequency.of(word.column):
            added.append({best.column: _scale(model, index, word.column, {best.column: 1.0})})
        else:
            corrected = corrected[: word.start] + best.spelling + corrected[word.end :]
            word_notes[stem] = note
    typed = set(lexical.features.count_words(text)[0].tolist())
    if completions and (exact := next((word.column for word in words if word.end == len(text)), -1)) in typed:
        scale = _scale(model, index, exact, completions)
        added[0] = {column: scale * weight for column, weight in completions.items()}
    columns, counts = lexical.query_counts(corrected)
    total = dict(zip(columns.tolist(), counts.tolist(), strict=True))
    for weights in added:
        for column, weight in weights.items():
            if column not in typed:
                total[column] = total.get(column, 0.0) + weight
    order = sorted(total)
    row = lexical.weigh_query(np.array(order, np.int32), np.array([total[column] for column in order], np.float32))
    return RewrittenQuery(
        KernelRows.from_row(*row), model.word_row(corrected), tuple(corrections[::-1]),
        synonym_notes(model, corrected) | {column: note for column, note in notes.items() if column not in typed},
        {word: note for word, note in word_notes.items() if lexical.features.vocabulary_[word] not in typed},
    )  # fmt: skip


class _Frequencies:
    """The number of documents of an index that have a column."""

    def __init__(self, index: Index) -> None:
        self._starts = [segment.starts for segment in index.segments]

    def of(self, column: int) -> int:
        return 0 if column < 0 else sum(int(starts[column + 1] - starts[column]) for starts in self._starts)

    def of_all(self, columns: NDArray[np.int32]) -> NDArray[np.int64]:
        counts = [starts[columns + 1] - starts[columns] for starts in self._starts]
        return np.asarray(np.sum(counts, axis=0), np.int64)


def _words(features: TextFeatures, text: str) -> Iterator[_Word]:
    """Yield the words that can be corrected; a compound is no unknown word if one of its parts is known."""
    analyzer = features.analyzer_
    word: _Word | None = None
    for start, end, form in analyzer.spans(text):
        column = features.vocabulary_.get(form, -1)
        if word is not None and end <= word.end:  # a part of a compound
            word = word._replace(column=max(word.column, column))
            continue
        if word is not None:
            yield word
        word = _Word(start, end, fold(text[start:end], analyzer.lowercase), form, column)
    if word is not None:
        yield word


def _unfinished(features: TextFeatures, text: str) -> int | None:
    """Return where the last word starts if nothing follows it; of a script without blanks, a single character."""
    runs = [match.span() for match in word_pattern(features.analyzer_.normalizes).finditer(text)]
    if not runs or runs[-1][1] < len(text):
        return None
    start = runs[-1][0]
    pieces = [match.span() for match in SEGMENTED.finditer(text, start)]
    if not pieces:
        return start
    first, last = pieces[-1]
    if last < len(text):
        return last
    return first if last - first == 1 else None


def _completions(model: TextModel, frequency: _Frequencies, typed: str, words: list[_Word]) -> dict[int, float]:
    """Return the columns of words that begin with the typed letters and are not the typed word, with their weights."""
    letters = fold(typed, model.lexical.features.analyzer_.lowercase)
    exact = words[-1].column if words and words[-1].spelling == letters else -1
    return _weights(model, frequency, [letters] if letters else [], exact)


def _near_completions(model: TextModel, frequency: _Frequencies, typed: str) -> tuple[dict[int, float], int]:
    """Return the columns of words that begin with the typed letters but for the fewest errors, and their number.

    Words with the same first letter are enough. Digits and scripts without blanks have no errors, as in corrections.
    """
    forms = model.lexical.spelling_index
    letters = fold(typed, model.lexical.features.analyzer_.lowercase)
    if SEGMENTED.search(letters) or not letters.isalpha():
        return {}, 0
    for errors, least in MIN_LETTERS_UNFINISHED.items():
        for same_first in (True, False) if len(letters) >= least else ():
            prefixes = forms.beginnings(letters, errors, same_first=same_first)
            if completions := _weights(model, frequency, prefixes):
                return completions, errors
    return {}, 0


def _is_unknown(model: TextModel, frequency: _Frequencies, text: str, words: list[_Word]) -> bool:
    """Return whether the end of a text is a word without documents and pairs, or the text has stop words only."""
    if not words:
        return True
    last = words[-1]
    return last.end == len(text) and not frequency.of(last.column) and not model.has_pairs(last.stem)


def _weights(model: TextModel, frequency: _Frequencies, prefixes: list[str], exact: int = -1) -> dict[int, float]:
    """Return the columns of words that begin with one of the prefixes, without one column, with their weights."""
    features = model.lexical.features
    columns, share = model.lexical.spelling_index.with_prefix(*prefixes)
    found = frequency.of_all(columns)
    kept = (found > 0) & (columns != exact)
    columns, share, found = columns[kept], share[kept], found[kept]
    frequency_of_all = np.minimum(found.sum(keepdims=True), features.documents_)
    together = inverse_document_frequency(frequency_of_all, features.documents_, features.weight)
    weights = share * np.minimum(together / features.idf_[columns], 1.0)
    return dict(zip(columns.tolist(), weights.tolist(), strict=True))


def _best_correction(model: TextModel, frequency: _Frequencies, word: _Word) -> Candidate | None:
    """Return the nearest word that documents have; of several, one with the same first letter, then the most frequent.

    If no spelling is near enough, stems are compared: documents may have a word in the plural only.
    A word with digits has no neighbours: 2019 is no typing error of 2018. A word that only queries have, and that has
    learned pairs, is none either.
    """
    documents = frequency.of(word.column)
    errors = _allowed_errors(word.spelling)
    if not errors or documents > RARE_DOCUMENTS or SEGMENTED.search(word.spelling) or not word.spelling.isalpha():
        return None
    if not documents and model.has_pairs(word.stem):
        return None
    if documents:
        errors = 1
    least = max(1, FREQUENCY_RATIO * documents)
    forms = model.lexical.spelling_index
    for stems in (False, True):
        typed = word.stem if stems else word.spelling
        allowed = min(errors, _allowed_errors(typed))
        ranked = [
            (one.errors, one.spelling[0] != typed[0], -n_documents, one)
            for one in (forms.within(typed, allowed, stems=stems) if allowed else ())
            if one.column != word.column and (n_documents := frequency.of(one.column)) >= least
        ]
        if ranked:
            return min(ranked)[-1]
    return None


def _allowed_errors(word: str) -> int:
    return sum(len(word) >= letters for letters in MIN_LETTERS.values())


def _scale(model: TextModel, index: Index, exact: int, added: Mapping[int, float]) -> float:
    """Return the largest factor with which the added words score less than the exact word in any document."""
    columns = np.array(sorted(added), np.int32)
    raw = model.lexical.query_weights(columns, np.array([added[column] for column in columns.tolist()], np.float32))
    query = model.encode_rows(KernelRows.from_row(columns, raw))
    own = float(model.lexical.query_weights(np.array([exact], np.int32), np.ones(1, np.float32))[0])
    least = [
        float(segment.weights[segment.starts[exact] : segment.starts[exact + 1]].min())
        for segment in index.segments
        if segment.starts[exact] < segment.starts[exact + 1]
    ]
    most = index.largest_score(query)
    return 1.0 if not least or most <= 0.0 else min(1.0, BELOW_EXACT * own * min(least) / most)
