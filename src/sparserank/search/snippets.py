"""The part of a document that earned its score, and where the words that earned it stand in it.

A mark covers a word as the document spells it: words are found as the analyzer finds them, and no two marks overlap.
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

from ..text import Analyzer

LONGEST = 100_000
"""Characters of a document that are looked at: keeps the time of a request bounded whatever a document's length."""
ROOM = 12_000_000
"""Characters of documents whose words are kept: about 64 MB, whether documents are many or long."""
_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"[.!?:;]\s")
_CUT = "…"


class Mark(NamedTuple):
    """text[start:end] is a word that `pairs` (numbers of the pairs given, ascending) met."""

    start: int
    end: int
    pairs: tuple[int, ...]


@dataclass(frozen=True)
class Passage:
    """A part of a document, on one line; an ellipsis says where it was cut. Marks are in the order of the text."""

    text: str
    marks: tuple[Mark, ...] = ()


class _Words(NamedTuple):
    """Words of a document, in its order: where each begins and ends, and what it counts as."""

    starts: array[int]
    ends: array[int]
    forms: list[str]


_Place = tuple[int, int, str, tuple[tuple[int, int], ...]]
"""A document word of the pairs, met in the document: start, end, word, and (start, end) of every word in it."""


def passage(analyzer: Analyzer, text: str, pairs: Iterable[tuple[str, float]], length: int = 320) -> Passage:
    """The `length` characters of `text` where the pairs – (document word, what it adds) – add most.

    Every word counts once, so a part with several words is better than one that repeats the best of them. A document
    word of several words (an n-gram) is met where they are neighbours, and each of them is marked.

    >>> analyzer = Analyzer(stem="english", stop_words="english")
    >>> text = "Lists first. Then the sorting\\nof lists."
    >>> found = passage(analyzer, text, [("sort", 2.0), ("list", 1.0)], length=26)
    >>> found.text
    '… Then the sorting of lists.'
    >>> [(found.text[start:end], pairs) for start, end, pairs in found.marks]
    [('sorting', (0,)), ('lists', (1,))]
    """
    line = " ".join(text[:LONGEST].split())
    numbers: dict[str, list[int]] = {}
    adds: dict[str, int] = {}  # billionths: sums are exact, whatever is added and taken away again
    for number, (word, contribution) in enumerate(pairs):
        added = round(1e9 * contribution) if contribution > 0.0 else 0
        if word in numbers:
            numbers[word].append(number)
            adds[word] += added
        else:
            numbers[word], adds[word] = [number], added
    places = _places(analyzer, line, numbers)
    start, end = _around(line, *_best(places, adds, length), length)
    before = f"{_CUT} " if start else ""
    after = f" {_CUT}" if end < len(line) or len(text) > LONGEST else ""
    shift = len(before) - start
    met: dict[tuple[int, int], set[int]] = {}
    for first, last, word, parts in places:
        if first < end and last > start:
            for a, b in parts:
                if start <= a and b <= end:
                    met.setdefault((a, b), set()).update(numbers[word])
    marks = tuple(Mark(a + shift, b + shift, tuple(sorted(found))) for (a, b), found in sorted(met.items()))
    return Passage(before + line[start:end] + after, marks)


class Read:
    """The words of documents, of which the last ones asked for are kept: what is found often is read once."""

    def __init__(self, room: int) -> None:
        self._room, self.characters = room, 0
        self._kept: OrderedDict[tuple[Analyzer, str], _Words] = OrderedDict()
        self._changing = Lock()

    def words(self, analyzer: Analyzer, text: str) -> _Words:
        """Every word that counts."""
        key = analyzer, text
        with self._changing:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        found = _words(analyzer, text)
        with self._changing:
            if key not in self._kept:
                self._kept[key] = found
                self.characters += len(text)
            while self.characters > self._room:
                (_, gone), _ = self._kept.popitem(last=False)
                self.characters -= len(gone)
        return found


_read = Read(ROOM)


def _words(analyzer: Analyzer, text: str) -> _Words:
    lowered = text.lower() if analyzer.lowercase else text
    spelled, forms = set(_WORD.findall(lowered)), _forms(analyzer)
    new = [word for word in spelled if word not in forms]
    forms |= dict(zip(new, analyzer.normal_forms(new), strict=True))
    forms |= {word: None for word in new if len(word) < analyzer.shortest}
    found = [
        (match.start(), match.end(), form) for match in _WORD.finditer(lowered) if (form := forms[match[0]]) is not None
    ]
    if len(lowered) != len(text):  # one letter may become two: back to where the document has them
        where = [i for i, letter in enumerate(text) for _ in letter.lower()]
        found = [(where[a], where[b - 1] + 1, form) for a, b, form in found]
    starts, ends, counted = zip(*found, strict=True) if found else ((), (), ())
    return _Words(array("i", starts), array("i", ends), list(counted))


@lru_cache(maxsize=4)
def _forms(analyzer: Analyzer) -> dict[str, str | None]:
    """What the words of documents met so far are counted as: they share them, and a stem costs more than a look."""
    return {}


def _places(analyzer: Analyzer, text: str, wanted: Iterable[str]) -> list[_Place]:
    """Where the wanted document words stand, in the order of their starts."""
    sought = set(wanted)
    if not sought:
        return []
    starts, ends, forms = _read.words(analyzer, text)
    met = [i for i, form in enumerate(forms) if form in sought]
    out: list[_Place] = [((a := starts[i]), (b := ends[i]), forms[i], ((a, b),)) for i in met]
    sizes = {word.count(" ") + 1 for word in sought} - {1}
    for size in sizes:
        for i, parts in enumerate(zip(*(forms[skip:] for skip in range(size)), strict=False)):
            form = " ".join(parts)
            if form in sought:
                extents = tuple((starts[j], ends[j]) for j in range(i, i + size))
                out.append((starts[i], ends[i + size - 1], form, extents))
    return sorted(out) if sizes else out


def _best(places: list[_Place], adds: dict[str, int], length: int) -> tuple[int, int]:
    """The extent of the places, no longer than `length`, whose distinct words add most; on ties most places, first."""
    best, extent = (0, 0), (0, 0)
    left, total = 0, 0
    inside: dict[str, int] = {}
    for right, (_, end, word, _) in enumerate(places):
        count = inside.get(word, 0)
        if not count:
            total += adds[word]
        inside[word] = count + 1
        while end - places[left][0] > length and left < right:
            gone = places[left][2]
            inside[gone] -= 1
            total -= 0 if inside[gone] else adds[gone]
            left += 1
        if total >= best[0] and (total, right + 1 - left) > best:
            best, extent = (total, right + 1 - left), (places[left][0], end)
    return extent


def _around(text: str, start: int, end: int, length: int) -> tuple[int, int]:
    """At most `length` characters that hold text[start:end], from the head of a sentence where there is room for it."""
    if len(text) <= length:
        return 0, len(text)
    lowest = max(end - length, 0)
    heads = [] if lowest else [0]
    heads += [match.end() for match in _SENTENCE.finditer(text, max(lowest - 2, 0), start)]
    first = heads[-1] if heads else _word_from(text, (lowest + start) // 2, start)
    if len(text) - first < length:  # little is left behind it: more of what stands before
        lowest = len(text) - length
        first = next((head for head in heads if head >= lowest), _word_from(text, lowest, start))
    last = min(max(first + length, end), len(text))
    if last < len(text) and text[last] != " ":
        last = max(text.rfind(" ", end, last), end)
    return first, last


def _word_from(text: str, at: int, latest: int) -> int:
    """The head of the first word from `at` on, at the latest `latest`."""
    if at == 0 or text[at - 1] == " ":
        return at
    blank = text.find(" ", at, latest)
    return latest if blank < 0 else blank + 1
