"""What a word is, and texts as integers.

A text is read once; stop words and stems are looked up once a distinct word, not once a token.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..errors import ConfigError, DataError

CHUNK = 1 << 23
"""Characters read at a time: bounds the memory of the integer form of the texts."""

ENGLISH = frozenset({
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not", "of",
    "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was", "will", "with",
})  # fmt: skip
"""Words that carry no topic: the short list that Lucene's English analysis has always used, so "fire" stays a word."""


class Tokens(NamedTuple):
    """A chunk of texts: text i is names[t] for t in tokens[stops[i - 1]:stops[i]]."""

    names: list[str]
    tokens: NDArray[np.int32]
    stops: NDArray[np.int64]


@dataclass(frozen=True)
class Analyzer:
    """What a word is: a run of letters, digits and underscores of at least `shortest` characters, lower-cased.

    `stop_words` is None, "english" or your own words; `stem` is None or a Snowball language; `ngrams=2` adds pairs
    of neighbouring words, joined by a blank. Stop words go before stemming, and n-grams are made of what is left.

    >>> Analyzer(stem="english", stop_words="english", ngrams=2).tokens("The ranking of documents")
    ['rank', 'document', 'rank document']
    """

    lowercase: bool = True
    shortest: int = 2
    stop_words: str | tuple[str, ...] | None = None
    stem: str | None = None
    ngrams: int = 1

    def __post_init__(self) -> None:
        validation.flag("lowercase", self.lowercase)
        validation.count("shortest", self.shortest, low=1, high=1000)
        validation.count("ngrams", self.ngrams, low=1, high=8)
        if isinstance(self.stop_words, str):
            validation.choice("stop_words", self.stop_words, ("english",))
        elif self.stop_words is not None:
            object.__setattr__(self, "stop_words", tuple(self.stop_words))
            if not all(isinstance(word, str) for word in self.stop_words):
                raise ConfigError(f"The 'stop_words' parameter must hold words. Got {self.stop_words!r:.100} instead.")
        if self.stem is not None:
            import Stemmer

            validation.choice("stem", self.stem, Stemmer.algorithms())

    @cached_property
    def stopped(self) -> frozenset[str]:
        """The stop words as a set."""
        if self.stop_words == "english":
            return ENGLISH
        return frozenset(self.stop_words or ())

    def normal_forms(self, words: list[str]) -> list[str | None]:
        """Each word as it is counted: its stem, or None for a stop word."""
        stopped = self.stopped
        kept: list[str | None] = [None if word in stopped else word for word in words]
        if self.stem is None:
            return kept
        import Stemmer

        stems = Stemmer.Stemmer(self.stem, maxCacheSize=0).stemWords([word or "" for word in kept])
        return [stem or None for stem in stems]

    def tokens(self, text: str) -> list[str]:
        """The tokens of one text, n-grams after the words."""
        out = []
        for names, tokens, _ in read(self, [text]):
            out += [names[token] for token in tokens]
        return out


def read(analyzer: Analyzer, texts: Iterable[str]) -> Iterator[Tokens]:
    """The texts as tokens, chunk by chunk; every chunk numbers its own names."""
    from .._kernels.words import keep_tokens

    for chunk in _chunks(texts, analyzer.lowercase):
        words, tokens, stops = _find_words(chunk, analyzer.shortest)
        if analyzer.stem is not None or analyzer.stop_words is not None:
            places: dict[str, int] = {}
            forms = analyzer.normal_forms(words)
            target = [-1 if form is None else places.setdefault(form, len(places)) for form in forms]
            tokens, stops = keep_tokens(tokens, stops, np.array(target, np.int32))
            words = list(places)
        found = Tokens(words, tokens, stops)
        yield _with_grams(found, analyzer.ngrams) if analyzer.ngrams > 1 else found


def _chunks(texts: Iterable[str], lowercase: bool) -> Iterator[list[str]]:
    if isinstance(texts, str):
        raise DataError("texts must be a list of texts; got one text. Put it in a list.")
    chunk: list[str] = []
    size = 0
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise DataError(f"text {position} is not a text but {type(text).__name__}: {text!r:.60}")
        chunk.append(text.lower() if lowercase else text)
        size += len(text)
        if size >= CHUNK:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


@cache
def _word_characters() -> NDArray[np.bool_]:
    r"""table[code point] = whether the regular expression \w matches it."""
    table = np.zeros(0x110000, np.bool_)
    table[[ord(c) for c in re.findall(r"\w", "".join(map(chr, range(0x110000))))]] = True
    return table


def code_points(texts: list[str]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Code points of the texts, one after another, and where each text ends."""
    codes = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
    return codes, np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))


def _find_words(texts: list[str], shortest: int) -> Tokens:
    from .._kernels.words import find_words, rehash

    codes, ends = code_points(texts)
    size = min(1 << 16, max(16, 1 << len(codes).bit_length()))
    slots, hashes = np.full(size, -1, np.int32), np.empty(size // 2, np.uint64)
    starts, pool = np.zeros(size // 2 + 1, np.int64), np.empty(max(4 * size, 256), np.uint32)
    tokens, stops = np.empty(len(codes), np.int32), np.zeros(len(texts), np.int64)
    at = doc = n_words = n_tokens = 0
    while True:
        at, doc, n_words, n_tokens = find_words(
            codes, at, ends, doc, _word_characters(), shortest,
            slots, hashes, starts, pool, n_words, tokens, n_tokens, stops,
        )  # fmt: skip
        if doc == len(texts):
            break
        hashes, starts = np.resize(hashes, 2 * len(hashes)), np.resize(starts, 2 * len(hashes) + 1)
        pool = np.resize(pool, max(2 * len(pool), len(pool) + len(texts[doc])))
        slots = np.full(2 * len(slots), -1, np.int32)
        rehash(hashes, n_words, slots)
    letters = pool[: starts[n_words]].tobytes().decode("utf-32-le", "surrogatepass")
    bounds = starts[: n_words + 1].tolist()
    return Tokens([letters[a:b] for a, b in pairwise(bounds)], tokens[:n_tokens].copy(), stops)


def _with_grams(found: Tokens, longest: int) -> Tokens:
    """Add the n-grams of 2 … longest neighbouring tokens behind each text's words."""
    from .._kernels.words import join_grams

    words, tokens, stops = found
    names, levels, level_stops = list(words), [tokens], [stops]
    left, left_stops, left_names = tokens, stops, words
    for size in range(2, longest + 1):
        slots = np.full(1 << (2 * len(left) + 2).bit_length(), -1, np.int32)
        pairs = np.empty(len(left), np.int64)
        left, left_stops, distinct = join_grams(left, left_stops, tokens, stops, size, slots, pairs)
        heads, tails = (pairs[:distinct] >> 32).tolist(), (pairs[:distinct] & 0xFFFFFFFF).tolist()
        left_names = [f"{left_names[a]} {words[b]}" for a, b in zip(heads, tails, strict=True)]
        levels.append(left + np.int32(len(names)))
        level_stops.append(left_stops)
        names += left_names
    texts = np.arange(len(stops))
    text_of = np.concatenate([np.repeat(texts, np.diff(ends, prepend=0)) for ends in level_stops])
    merged = np.concatenate(levels)[np.argsort(text_of, kind="stable")]
    return Tokens(names, merged, np.sum(level_stops, axis=0))
