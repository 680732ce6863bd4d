"""The part of a document that earned its score, and where the words that earned it stand in it.

A mark covers a word as the document spells it: words are found as the analyzer finds them, and no two marks overlap.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from ..text import Analyzer

LONGEST = 100_000
"""Characters of a document that are looked at: keeps the time of a request bounded whatever a document's length."""
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


class _Place(NamedTuple):
    """A document word of the pairs, met in the document: its extent, and that of every word it is made of."""

    start: int
    end: int
    word: str
    parts: tuple[tuple[int, int], ...]


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
        numbers.setdefault(word, []).append(number)
        adds[word] = adds.get(word, 0) + round(1e9 * max(contribution, 0.0))
    places = _places(analyzer, line, numbers)
    start, end = _around(line, *_best(places, adds, length), length)
    before = f"{_CUT} " if start else ""
    after = f" {_CUT}" if end < len(line) or len(text) > LONGEST else ""
    shift = len(before) - start
    met: dict[tuple[int, int], set[int]] = {}
    for place in places:
        for a, b in place.parts:
            if start <= a and b <= end:
                met.setdefault((a, b), set()).update(numbers[place.word])
    marks = tuple(Mark(a + shift, b + shift, tuple(sorted(found))) for (a, b), found in sorted(met.items()))
    return Passage(before + line[start:end] + after, marks)


@lru_cache(maxsize=512)
def _words(analyzer: Analyzer, text: str) -> list[tuple[int, int, str]]:
    """(start, end, form) of every word that counts; what is found often is read once."""
    lowered = text.lower() if analyzer.lowercase else text
    found = [match.span() for match in _WORD.finditer(lowered)]
    found = [span for span in found if span[1] - span[0] >= analyzer.shortest]
    spelled = [lowered[a:b] for a, b in found]
    forms = _forms(analyzer)
    new = list({word for word in spelled if word not in forms})
    forms |= dict(zip(new, analyzer.normal_forms(new), strict=True))
    if len(lowered) != len(text):  # one letter may become two: back to where the document has them
        where = [i for i, letter in enumerate(text) for _ in letter.lower()]
        found = [(where[a], where[b - 1] + 1) for a, b in found]
    counted = ((a, b, forms[word]) for (a, b), word in zip(found, spelled, strict=True))
    return [(a, b, form) for a, b, form in counted if form is not None]


@lru_cache(maxsize=4)
def _forms(analyzer: Analyzer) -> dict[str, str | None]:
    """What the words of documents met so far are counted as: they share them, and a stem costs more than a look."""
    return {}


def _places(analyzer: Analyzer, text: str, wanted: Iterable[str]) -> list[_Place]:
    """Where the wanted document words stand, in the order of their starts."""
    sought = set(wanted)
    if not sought:
        return []
    words = _words(analyzer, text)
    out = [_Place(a, b, form, ((a, b),)) for a, b, form in words if form in sought]
    for size in {word.count(" ") + 1 for word in sought} - {1}:
        for parts in zip(*(words[i:] for i in range(size)), strict=False):
            form = " ".join(part[2] for part in parts)
            if form in sought:
                out.append(_Place(parts[0][0], parts[-1][1], form, tuple((a, b) for a, b, _ in parts)))
    return sorted(out)


def _best(places: list[_Place], adds: dict[str, int], length: int) -> tuple[int, int]:
    """The extent of the places, no longer than `length`, whose distinct words add most; on ties most places, first."""
    best, extent = (0, 0), (0, 0)
    left, total = 0, 0
    inside: dict[str, int] = {}
    for right, place in enumerate(places):
        if not inside.get(place.word):
            total += adds[place.word]
        inside[place.word] = inside.get(place.word, 0) + 1
        while place.end - places[left].start > length and left < right:
            gone = places[left].word
            inside[gone] -= 1
            total -= 0 if inside[gone] else adds[gone]
            left += 1
        if (total, right + 1 - left) > best:
            best, extent = (total, right + 1 - left), (places[left].start, place.end)
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
