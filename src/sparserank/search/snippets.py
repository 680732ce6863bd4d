"""The passage of a document that explains its score best, with the matched words marked.

A mark covers a word as the document spells it. Words are found as the analyzer finds them; marks do not overlap.
"""

from __future__ import annotations

import re
from array import array
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import NamedTuple

import numpy as np

from ..text import Analyzer
from ..text.segmentation import SEGMENTED

MAX_CHARACTERS = 100_000
"""Characters of a document that are read, so that the time of a request is bounded."""
CACHE_CHARACTERS = 12_000_000
"""Characters of the documents whose words are cached, about 64 MB."""
_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"[.!?:;]\s|[。！？]")
_ELLIPSIS = "…"


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
    starts: array[int]
    ends: array[int]
    forms: array[int]


class _Match(NamedTuple):
    """A document word of the pairs, found in the document, with (start, end) of each of its tokens."""

    start: int
    end: int
    word: str
    tokens: tuple[tuple[int, int], ...]


def passage(analyzer: Analyzer, text: str, pairs: Iterable[tuple[str, float]], length: int = 320) -> Passage:
    """Return the passage of a text whose matched words contribute most.

    `pairs` are document words and their contributions, `length` is the maximum number of characters. Each word counts
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
    words = _cache.words(analyzer, text)
    line = words.line
    numbers: dict[str, list[int]] = {}
    contributions: dict[str, int] = {}  # in billionths: integer sums stay exact when words are added and removed
    for number, (word, contribution) in enumerate(pairs):
        numbers.setdefault(word, []).append(number)
        contributions[word] = contributions.get(word, 0) + (round(1e9 * contribution) if contribution > 0.0 else 0)
    matches = _find_matches(words, list(numbers), _form_numbers(analyzer))
    start, end = _extend(line, *_best_window(matches, contributions, length), length)
    before = f"{_ELLIPSIS} " if start else ""
    after = f" {_ELLIPSIS}" if end < len(line) or len(text) > MAX_CHARACTERS else ""
    shift = len(before) - start
    marked: dict[tuple[int, int], set[int]] = {}
    for match in matches:
        if match.start < end and match.end > start:
            for a, b in match.tokens:
                if start <= a and b <= end:
                    marked.setdefault((a, b), set()).update(numbers[match.word])
    marks = tuple(Mark(a + shift, b + shift, tuple(sorted(found))) for a, b, found in _disjoint(marked))
    return Passage(before + line[start:end] + after, marks)


def _disjoint(marked: dict[tuple[int, int], set[int]]) -> list[tuple[int, int, set[int]]]:
    """Return the marks from left to right; those that overlap, such as bigrams, become one."""
    out: list[tuple[int, int, set[int]]] = []
    for (start, end), found in sorted(marked.items()):
        if out and start < out[-1][1]:
            first, last, numbers = out.pop()
            start, end, found = first, max(last, end), numbers | found
        out.append((start, end, found))
    return out


class WordCache:
    """The words of recently used documents, up to a number of characters."""

    def __init__(self, max_characters: int) -> None:
        self._max_characters, self.characters = max_characters, 0
        self._entries: OrderedDict[tuple[Analyzer, str], _Words] = OrderedDict()
        self._lock = Lock()

    def words(self, analyzer: Analyzer, text: str) -> _Words:
        """Return the words of a text."""
        key = analyzer, text
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key]
        line = " ".join(text[:MAX_CHARACTERS].split())
        words = _Words(line, *_split(analyzer, line))
        with self._lock:
            if key not in self._entries:
                self._entries[key] = words
                self.characters += len(text)
            while self.characters > self._max_characters:
                (_, evicted), _ = self._entries.popitem(last=False)
                self.characters -= len(evicted)
        return words


_cache = WordCache(CACHE_CHARACTERS)


def _split(analyzer: Analyzer, text: str) -> tuple[array[int], array[int], array[int]]:
    """Find the words of a text and the numbers of their normal forms, without stop words."""
    numbers = _form_numbers(analyzer)
    if not analyzer.is_plain:
        return _as_arrays(analyzer.spans(text), numbers)
    lowered = text.lower() if analyzer.lowercase else text
    forms = _normal_forms(analyzer)
    new = [word for word in set(_WORD.findall(lowered)) if word not in forms]
    forms |= dict(zip(new, analyzer.normal_forms(new), strict=True))
    forms |= {word: None for word in new if len(word) < analyzer.shortest}
    words = [
        (match.start(), match.end(), form) for match in _WORD.finditer(lowered) if (form := forms[match[0]]) is not None
    ]
    if len(lowered) != len(text):  # a letter may become two in lower case: map back to the original positions
        original = [i for i, letter in enumerate(text) for _ in letter.lower()]
        words = [(original[a], original[b - 1] + 1, form) for a, b, form in words]
    return _as_arrays(words, numbers)


def _as_arrays(
    words: Iterable[tuple[int, int, str]], numbers: dict[str, int]
) -> tuple[array[int], array[int], array[int]]:
    starts, ends, forms = array("i"), array("i"), array("i")
    for start, end, form in words:
        starts.append(start)
        ends.append(end)
        forms.append(numbers.setdefault(form, len(numbers)))
    return starts, ends, forms


@lru_cache(maxsize=4)
def _form_numbers(analyzer: Analyzer) -> dict[str, int]:
    """Return the shared numbers of normal forms: a number is found in an array faster than a word in a list."""
    return {}


@lru_cache(maxsize=4)
def _normal_forms(analyzer: Analyzer) -> dict[str, str | None]:
    """Return the shared cache of normal forms: documents share words, and stemming costs more than a lookup."""
    return {}


def _find_matches(words: _Words, targets: list[str], numbers: dict[str, int]) -> list[_Match]:
    """Return where the target words occur, by their starts."""
    forms = np.frombuffer(words.forms, np.intc)
    out: list[_Match] = []
    for target in targets:
        parts = [numbers.get(part, -1) for part in target.split(" ")]
        if min(parts) < 0 or len(parts) > len(forms):
            continue
        found = np.flatnonzero(forms[: len(forms) - len(parts) + 1] == parts[0])
        for skip, part in enumerate(parts[1:], start=1):
            found = found[forms[found + skip] == part]
        for i in found.tolist():
            tokens = tuple((words.starts[j], words.ends[j]) for j in range(i, i + len(parts)))
            out.append(_Match(tokens[0][0], tokens[-1][1], target, tokens))
    return sorted(out)


def _best_window(matches: list[_Match], contributions: dict[str, int], length: int) -> tuple[int, int]:
    """Return the window of at most `length` whose distinct words add most; ties: more matches, then the first."""
    best, window = (0, 0), (0, 0)
    left, total = 0, 0
    counts: dict[str, int] = {}
    for right, match in enumerate(matches):
        count = counts.get(match.word, 0)
        if not count:
            total += contributions[match.word]
        counts[match.word] = count + 1
        while match.end - matches[left].start > length and left < right:
            dropped = matches[left].word
            counts[dropped] -= 1
            total -= 0 if counts[dropped] else contributions[dropped]
            left += 1
        if total >= best[0] and (total, right + 1 - left) > best:
            best, window = (total, right + 1 - left), (matches[left].start, match.end)
    return window


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
