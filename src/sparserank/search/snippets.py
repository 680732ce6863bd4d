"""The passage of a document that explains its score best, with the matched words marked.

A mark covers a word as the document spells it. Words are found as the analyzer finds them; marks do not overlap.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..text import Analyzer
from ..text.segmentation import SEGMENTED
from ..text.tokens import WordTable

MAX_CHARACTERS = 100_000
"""Characters of a document that are read, so that the time of a request is bounded."""
CACHE_CHARACTERS = 12_000_000
"""Characters of the documents whose words are cached, about 64 MB."""
_SENTENCE = re.compile(r"[.!?:;]\s|[。！？]")
_ELLIPSIS = "…"
_PRECISION, _MAX_CONTRIBUTION = 1e9, 1e6
"""Contributions are compared in billionths, as integers; one above the maximum counts as the maximum."""


class Mark(NamedTuple):
    """text[start:end] is a matched word; `pairs` are the ascending numbers of the pairs that matched it."""

    start: int
    end: int
    pairs: tuple[int, ...]


@dataclass(frozen=True)
class Passage:
    """A part of a document on one line, with an ellipsis where it was cut, and its marks from left to right."""

    text: str
    marks: tuple[Mark, ...] = ()


class _Words(NamedTuple):
    """A document on one line, and its words: start, end and normal form of each, the latter as a number."""

    line: str
    starts: NDArray[np.intc]
    ends: NDArray[np.intc]
    forms: NDArray[np.intc]


def passage(analyzer: Analyzer, text: str, pairs: Iterable[tuple[str, float]], length: int = 320) -> Passage:
    """Return the passage of a text whose matched words contribute most.

    `pairs` are document words and their contributions, `length` is the maximum number of characters. Each pair counts
    once, so a passage with several words beats one that repeats the best of them. An n-gram matches where its words
    are adjacent, and each of them is marked.

    >>> analyzer = Analyzer(stem="english", stop_words="english")
    >>> text = "Lists first. Then the sorting\\nof lists."
    >>> snippet = passage(analyzer, text, [("sort", 2.0), ("list", 1.0)], length=26)
    >>> snippet.text
    '… Then the sorting of lists.'
    >>> [(snippet.text[start:end], pairs) for start, end, pairs in snippet.marks]
    [('sorting', (0,)), ('lists', (1,))]
    """
    from .._kernels.passages import best_window, find_marks

    words, numbered = _cache.words(analyzer, text), _forms(analyzer)
    line = words.line
    parts, ends, contributions = list[int](), [0], list[float]()
    for word, contribution in pairs:
        parts += numbered.parts(word)
        ends.append(len(parts))
        contributions.append(contribution)
    positive = np.minimum(np.maximum(contributions, 0.0), _MAX_CONTRIBUTION)
    added = np.rint(_PRECISION * positive).astype(np.int64)
    start, end, tokens, lasts, numbers = best_window(
        *words[1:], np.array(ends), np.array(parts, np.intc), added, length
    )
    start, end = _extend(line, start, end, length)
    before = f"{_ELLIPSIS} " if start else ""
    after = f" {_ELLIPSIS}" if end < len(line) or len(text) > MAX_CHARACTERS else ""
    shift = len(before) - start
    bounds, mark_ends, found = find_marks(words.starts, words.ends, tokens, lasts, numbers, start, end)
    marks, at, found = [], 0, found.tolist()
    for a, b, stop in zip(*(bounds + shift).tolist(), mark_ends.tolist(), strict=True):
        marks.append(Mark(a, b, tuple(found[at:stop])))
        at = stop
    return Passage(before + line[start:end] + after, tuple(marks))


class WordCache:
    """The words of recently used documents, up to a number of characters."""

    def __init__(self, max_characters: int) -> None:
        self._max_characters, self.characters = max_characters, 0
        self._entries: OrderedDict[tuple[Analyzer, str], _Words] = OrderedDict()
        self._lock = Lock()

    def words(self, analyzer: Analyzer, text: str) -> _Words:
        """Return the words of a text."""
        text = text[:MAX_CHARACTERS]
        key = analyzer, text
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key]
        line = " ".join(text.split())
        words = _Words(line, *_forms(analyzer).split(line))
        with self._lock:
            if key not in self._entries:
                self._entries[key] = words
                self.characters += len(text)
            while self.characters > self._max_characters:
                (_, evicted), _ = self._entries.popitem(last=False)
                self.characters -= len(evicted)
        return words


_cache = WordCache(CACHE_CHARACTERS)


class _Forms:
    """The normal forms of an analyzer as numbers, which documents share: stemming costs more than a lookup."""

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer, self._lock = analyzer, Lock()
        self._numbers: dict[str, int] = {}
        self._parts: dict[str, tuple[int, ...]] = {}
        self._words = WordTable(marks=False)
        self._form_of = np.zeros(0, np.intc)

    def parts(self, word: str) -> tuple[int, ...]:
        """Return the numbers of the forms of a word of the vocabulary, which may be an n-gram."""
        parts = self._parts.get(word)
        if parts is None:
            parts = self._parts[word] = tuple(self._number(part) for part in word.split(" "))
        return parts

    def _number(self, form: str) -> int:
        return self._numbers.setdefault(form, len(self._numbers))

    def split(self, text: str) -> tuple[NDArray[np.intc], NDArray[np.intc], NDArray[np.intc]]:
        """Return start, end and form of the words of a text, without stop words."""
        with self._lock:
            if self._analyzer.is_plain:
                return self._split_plain(text)
            rows = [(start, end, self._number(form)) for start, end, form in self._analyzer.spans(text)]
        starts, ends, forms = np.array(rows, np.intc).reshape(-1, 3).T.copy()
        return starts, ends, forms

    def _split_plain(self, text: str) -> tuple[NDArray[np.intc], NDArray[np.intc], NDArray[np.intc]]:
        lowered, shortest = text.lower() if self._analyzer.lowercase else text, self._analyzer.shortest
        found, starts, ends = self._words.find_in(lowered, shortest)
        if len(self._words) > len(self._form_of):
            forms = self._analyzer.normal_forms(self._words.words(len(self._form_of)))
            added = [-1 if form is None else self._number(form) for form in forms]
            self._form_of = np.append(self._form_of, np.array(added, np.intc))
        forms_found = self._form_of[found]
        is_kept = forms_found >= 0
        starts, ends, kept = starts[is_kept], ends[is_kept], forms_found[is_kept]
        if len(lowered) != len(text):  # a letter may become two in lower case: map back to the original positions
            original = np.array([i for i, letter in enumerate(text) for _ in letter.lower()], np.intc)
            starts, ends = original[starts], original[ends - 1] + np.intc(1)
        return starts, ends, kept


@lru_cache(maxsize=4)
def _forms(analyzer: Analyzer) -> _Forms:
    return _Forms(analyzer)


def _extend(text: str, start: int, end: int, length: int) -> tuple[int, int]:
    """Extend a window to at most `length` characters, from the start of a sentence if there is room."""
    if len(text) <= length:
        return 0, len(text)
    lowest = max(end - length, 0)
    sentences = [] if lowest else [0]
    sentences += [match.end() for match in _SENTENCE.finditer(text, max(lowest - 2, 0), start)]
    first = sentences[-1] if sentences else _next_word(text, (lowest + start) // 2, start)
    if len(text) - first < length:  # little text follows: show more of the text before
        lowest = len(text) - length
        first = next((at for at in sentences if at >= lowest), _next_word(text, lowest, start))
    last = min(max(first + length, end), len(text))
    if last < len(text) and text[last] != " " and not SEGMENTED.match(text[last]):
        last = max(text.rfind(" ", end, last), end)
    return first, last


def _next_word(text: str, at: int, latest: int) -> int:
    """Return the start of the first word from `at` on, at most `latest`."""
    if at == 0 or text[at - 1] == " " or SEGMENTED.match(text[at]):
        return at
    blank = text.find(" ", at, latest)
    return latest if blank < 0 else blank + 1
