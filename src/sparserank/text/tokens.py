"""Split many texts into words at once: `tokenize`; and one short text: `short_text_tokens`.

Every text is read once; stop words and stems are looked up once for each distinct word, not once for each token.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from .analyzer import Analyzer
from .normalization import fold, word_characters, word_pattern
from .spellings import Spellings

CHUNK_CHARACTERS = 1 << 23
"""Characters read at a time; this limits the memory that the integer form of the texts takes."""


class Tokens(NamedTuple):
    """A chunk of texts: text i consists of names[t] for t in tokens[stops[i - 1]:stops[i]]."""

    names: list[str]
    tokens: NDArray[np.int32]
    stops: NDArray[np.int64]


def tokenize(analyzer: Analyzer, texts: Iterable[str], spellings: Spellings | None = None) -> Iterator[Tokens]:
    """Yield the tokens of the texts, chunk by chunk; every chunk numbers its own names.

    `spellings` counts how the words of every normal form are spelled.
    """
    from .._kernels.words import expand_tokens, keep_tokens

    for chunk in _chunks(texts, analyzer):
        shortest = analyzer.shortest if analyzer.is_plain else 1
        words, tokens, stops = _find_words(chunk, shortest, analyzer.normalizes)
        places: dict[str, int] = {}
        if not analyzer.is_plain:
            runs = analyzer.split_runs(words)
            if spellings is not None:
                spellings.add(words, runs, tokens)
            ids = [places.setdefault(form, len(places)) for run in runs for _, _, form in run]
            ends = np.cumsum([0, *map(len, runs)])
            tokens, stops = expand_tokens(tokens, stops, ends, np.array(ids, np.int32))
            words = list(places)
        elif analyzer.stemmers or analyzer.stop_word_set:
            forms = analyzer.normal_forms(words)
            if spellings is not None:
                spellings.add(words, forms, tokens)
            target = [-1 if form is None else places.setdefault(form, len(places)) for form in forms]
            tokens, stops = keep_tokens(tokens, stops, np.array(target, np.int32))
            words = list(places)
        result = Tokens(words, tokens, stops)
        yield _with_grams(result, analyzer.ngrams) if analyzer.ngrams > 1 else result


def short_text_tokens(analyzer: Analyzer, text: str) -> list[str]:
    """Return the tokens of one short text, as `tokenize` does; several times as fast for a query."""
    return with_grams(short_text_words(analyzer, text), analyzer.ngrams)


def short_text_words(analyzer: Analyzer, text: str) -> list[str]:
    """Return the tokens of one short text without n-grams."""
    if not analyzer.is_plain:
        folded = _folded(text, analyzer)
        found = word_pattern(analyzer.normalizes).findall(folded)
        return [form for run in found for form in _run_forms(analyzer, run)]
    found = re.findall(r"\w+", text.lower() if analyzer.lowercase else text)
    words, removed = [word for word in found if len(word) >= analyzer.shortest], analyzer.stop_word_set
    if removed:
        words = [word for word in words if word not in removed]
    if (stemmer := analyzer.stemmer) is not None:
        words = [stem for word in words if (stem := _stem(stemmer, word))]
    return words


def with_grams(words: list[str], longest: int) -> list[str]:
    """Return words, followed by the n-grams of 2 to `longest` neighbouring ones.

    >>> with_grams(["big", "red", "apple"], 2)
    ['big', 'red', 'apple', 'big red', 'red apple']
    """
    grams = list(words)
    for size in range(2, longest + 1):
        grams += [" ".join(words[i : i + size]) for i in range(len(words) - size + 1)]
    return grams


def count_columns(
    words: Sequence[str], vocabulary: Mapping[str, int]
) -> tuple[NDArray[np.int32], NDArray[np.float32], int]:
    """Return the columns of the known words, in ascending order, their counts, and the number of other words."""
    counted: dict[int, int] = {}
    for word in words:
        column = vocabulary.get(word, -1)
        counted[column] = counted.get(column, 0) + 1
    unseen = counted.pop(-1, 0)
    columns = sorted(counted)
    return np.array(columns, np.int32), np.array([counted[column] for column in columns], np.float32), unseen


@lru_cache(maxsize=1 << 16)
def _run_forms(analyzer: Analyzer, run: str) -> tuple[str, ...]:
    """Return the words of a run; cached, because queries share them."""
    return tuple(form for _, _, form in analyzer.split_runs([run])[0])


@lru_cache(maxsize=1 << 16)
def _stem(language: str, word: str) -> str:
    """Return the stem of a word; cached, because queries share words."""
    import Stemmer

    return str(Stemmer.Stemmer(language, maxCacheSize=0).stemWord(word))


def checked_texts(texts: Iterable[str]) -> Iterator[str]:
    """Yield the texts; raises DataError at one that is not a text."""
    if isinstance(texts, str):
        raise DataError("texts must be a list of texts; got one text. Put it in a list.")
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise DataError(f"text {position} is not a text but {type(text).__name__}: {text!r:.60}")
        yield text


def _folded(text: str, analyzer: Analyzer) -> str:
    if analyzer.normalizes:
        return fold(text, analyzer.lowercase)
    return text.lower() if analyzer.lowercase else text


def _chunks(texts: Iterable[str], analyzer: Analyzer) -> Iterator[list[str]]:
    chunk: list[str] = []
    size, plain, lowercase = 0, not analyzer.normalizes, analyzer.lowercase
    for text in checked_texts(texts):
        chunk.append(text.lower() if plain and lowercase else _folded(text, analyzer))
        size += len(text)
        if size >= CHUNK_CHARACTERS:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def code_points(texts: list[str]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the code points of all texts, one after another, and where each text ends."""
    codes = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
    return codes, np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))


class WordTable:
    """The distinct words of texts, by number; texts that are read later add their words.

    >>> table = WordTable(marks=False)
    >>> table.find(["red apple", "an apple"], shortest=1)[0].tolist(), table.words()
    ([0, 1, 2, 1], ['red', 'apple', 'an'])
    """

    def __init__(self, marks: bool, characters: int = 0) -> None:
        self._is_word = word_characters(marks)
        size = min(1 << 16, max(16, 1 << characters.bit_length()))
        self._hashes, self._starts = np.empty(size // 2, np.uint64), np.zeros(size // 2 + 1, np.int64)
        self._pool, self._n_words = np.empty(max(4 * size, 256), np.uint32), 0
        self._slots = self._place_words(size)

    def __len__(self) -> int:
        return self._n_words

    def find(self, texts: list[str], shortest: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the words of the texts as numbers, and where each text ends among them."""
        from .._kernels.words import find_words

        codes, ends = code_points(texts)
        tokens, stops = np.empty(len(codes), np.int32), np.zeros(len(texts), np.int64)
        at = doc = n_tokens = 0
        while True:
            at, doc, self._n_words, n_tokens = find_words(
                codes, at, ends, doc, self._is_word, shortest,
                self._slots, self._hashes, self._starts, self._pool, self._n_words, tokens, n_tokens, stops,
            )  # fmt: skip
            if doc == len(texts):
                return tokens[:n_tokens].copy(), stops
            size = 2 * len(self._hashes)
            self._hashes, self._starts = np.resize(self._hashes, size), np.resize(self._starts, size + 1)
            self._pool = np.resize(self._pool, max(2 * len(self._pool), len(self._pool) + len(texts[doc])))
            self._slots = self._place_words(2 * size)

    def _place_words(self, size: int) -> NDArray[np.int32]:
        """Return a hash table of this size with the numbers of the words."""
        from .._kernels.words import rehash

        slots = np.full(size, -1, np.int32)
        rehash(self._hashes, self._n_words, slots)
        return slots

    def find_in(self, text: str, shortest: int) -> tuple[NDArray[np.int32], NDArray[np.intc], NDArray[np.intc]]:
        """Return the words of one text as numbers, and where each of them starts and ends."""
        from .._kernels.words import word_bounds

        tokens, _ = self.find([text], shortest)
        return tokens, *word_bounds(code_points([text])[0], self._is_word, shortest, len(tokens))

    def words(self, first: int = 0) -> list[str]:
        """Return the words, from number `first` on."""
        bounds = self._starts[first : self._n_words + 1].tolist()
        letters = self._pool[bounds[0] : bounds[-1]].tobytes().decode("utf-32-le", "surrogatepass")
        return [letters[a - bounds[0] : b - bounds[0]] for a, b in pairwise(bounds)]


def _find_words(texts: list[str], shortest: int, marks: bool) -> Tokens:
    table = WordTable(marks, sum(map(len, texts)))
    tokens, stops = table.find(texts, shortest)
    return Tokens(table.words(), tokens, stops)


def _with_grams(words_of_texts: Tokens, longest: int) -> Tokens:
    """Add the n-grams of 2 to `longest` neighbouring tokens after the words of each text."""
    from .._kernels.words import join_grams

    words, tokens, stops = words_of_texts
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


def hash_names(names: list[str]) -> NDArray[np.uint64]:
    """Return the 64-bit hash of each name, the same on every machine."""
    from .._kernels.words import hash_strings

    codes, ends = code_points(names)
    out: NDArray[np.uint64] = hash_strings(codes, np.concatenate([[0], ends]).astype(np.int64))
    return out
