"""Unicode normalization: compatibility forms, width and case folded, with the position of every character.

Half-width and full-width forms, ligatures and letters with combining accents become one form (NFKC).
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

import numpy as np
from numpy.typing import NDArray

_MAY_COMBINE = re.compile("[\u1160-\u11ff]")
"""Hangul vowels and final consonants; every other character that joins the one before it is a mark."""


def fold(text: str, lowercase: bool) -> str:
    """Return a text in normal form NFKC and, with `lowercase`, without differences of case.

    >>> fold("ＨＴＭＬ ﬁle Straße ｶﾞ", lowercase=True)
    'html file strasse ガ'
    """
    if text.isascii():  # the normal form of ASCII is itself
        return text.lower() if lowercase else text
    text = unicodedata.normalize("NFKC", text)
    return unicodedata.normalize("NFKC", text.casefold()) if lowercase else text


def fold_with_positions(text: str, lowercase: bool) -> tuple[str, list[int]]:
    """Return a folded text, and for each of its characters and its end the position in the original text."""
    if text.isascii():
        return fold(text, lowercase), list(range(len(text) + 1))
    starts = [at for at, letter in enumerate(text) if at == 0 or not _joins(letter)]
    parts, positions = [], []
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        folded = fold(text[start:end], lowercase)
        parts.append(folded)
        # a letter may become several, and several may become one
        positions += [start] * len(folded)
    return "".join(parts), [*positions, len(text)]


@cache
def _joins(letter: str) -> bool:
    """Return whether a character can change together with the one before it."""
    if letter.isascii():
        return False
    first = unicodedata.normalize("NFKD", letter)[0]
    return unicodedata.category(first)[0] == "M" or _MAY_COMBINE.match(first) is not None


def strip_accents(word: str) -> str:
    """Return a word without the accents of Latin and Greek letters.

    >>> strip_accents("créée"), strip_accents("й"), strip_accents("が")
    ('creee', 'й', 'が')
    """
    if word.isascii():
        return word
    return "".join(_without_accent(letter) for letter in word)


@cache
def _without_accent(letter: str) -> str:
    first = unicodedata.normalize("NFKD", letter)[0]
    return first if unicodedata.name(first, "").startswith(("LATIN", "GREEK")) else letter


@cache
def word_characters(marks: bool) -> NDArray[np.bool_]:
    r"""table[code point] = whether \w matches it, or, with `marks`, it is a mark: a vowel of Hindi or Thai is one."""
    table = np.zeros(0x110000, np.bool_)
    table[[ord(c) for c in re.findall(r"\w", "".join(map(chr, range(0x110000))))]] = True
    if marks:
        table[[c for c in range(0x110000) if unicodedata.category(chr(c)) in ("Mn", "Mc")]] = True
    return table


@cache
def word_pattern(marks: bool) -> re.Pattern[str]:
    """Return the regular expression of a maximal run of word characters."""
    if not marks:
        return re.compile(r"\w+")
    edges = np.flatnonzero(np.diff(word_characters(True), prepend=False, append=False)).reshape(-1, 2).tolist()
    return re.compile("[" + "".join(f"{re.escape(chr(a))}-{re.escape(chr(b - 1))}" for a, b in edges) + "]+")
