"""Split texts into words: `Analyzer`, and `tokenize`, which reads many texts at once.

Every text is read once; stop words and stems are looked up once for each distinct word, not once for each token.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..deprecated import renamed_attribute
from ..errors import ConfigError, DataError
from ..parameters import Parameters

CHUNK_CHARACTERS = 1 << 23
"""Characters read at a time; this limits the memory that the integer form of the texts takes."""

ENGLISH_STOP_WORDS = frozenset({
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not", "of",
    "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was", "will", "with",
})  # fmt: skip
"""The short list of Lucene's English analyzer. It has no words with a topic, so "fire" stays a word."""


class Tokens(NamedTuple):
    """A chunk of texts: text i consists of names[t] for t in tokens[stops[i - 1]:stops[i]]."""

    names: list[str]
    tokens: NDArray[np.int32]
    stops: NDArray[np.int64]


@dataclass(unsafe_hash=True, repr=False)
class Analyzer(Parameters):
    """Split texts into words. It is a scikit-learn transformer without state.

    A word is a run of letters, digits and underscores. Stop words are removed before stemming; n-grams consist of the
    words that are left, joined by a blank.

    Parameters
    ----------
    language : str or None, default=None
        A Snowball language, such as "english" or "german". It selects the stemmer and, for English, the stop words.
        None selects neither.
    stem : str or None, default="auto"
        The Snowball language of the stemmer, or None for no stemming. "auto" is `language`.
    stop_words : "english", collection of str or None, default="auto"
        Words to remove. "auto" is "english" if `language` is "english", else None.
    ngrams : int, default=1
        The longest sequence of neighbouring words to add; 2 adds pairs.
    lowercase : bool, default=True
        Whether to convert texts to lower case.
    shortest : int, default=2
        The smallest number of characters of a word.

    Examples
    --------
    >>> Analyzer("english", ngrams=2).tokens("The ranking of documents")
    ['rank', 'document', 'rank document']
    >>> Analyzer().fit_transform(["The ranking", "of documents"])
    [['the', 'ranking'], ['of', 'documents']]
    """

    language: str | None = None
    stem: str | None = "auto"
    stop_words: str | tuple[str, ...] | None = "auto"
    ngrams: int = 1
    lowercase: bool = True
    shortest: int = 2

    stopped = renamed_attribute("stopped", "stop_word_set")

    def __post_init__(self) -> None:
        validation.flag("lowercase", self.lowercase)
        validation.count("shortest", self.shortest, low=1, high=1000)
        validation.count("ngrams", self.ngrams, low=1, high=8)
        if isinstance(self.stop_words, str):
            validation.choice("stop_words", self.stop_words, ("auto", "english"))
        elif self.stop_words is not None:
            self.stop_words = tuple(self.stop_words)
            if not all(isinstance(word, str) for word in self.stop_words):
                raise ConfigError(f"The 'stop_words' parameter must hold words. Got {self.stop_words!r:.100} instead.")
        for name, value in (("language", self.language), ("stem", self.stem)):
            if value is not None and value != "auto":
                import Stemmer

                validation.choice(name, value, Stemmer.algorithms())

    @property
    def stemmer(self) -> str | None:
        """The Snowball language of the stemmer, or None."""
        return self.language if self.stem == "auto" else self.stem

    @property
    def stop_word_set(self) -> frozenset[str]:
        """The words that are removed."""
        chosen = self.language if self.stop_words == "auto" else self.stop_words
        if isinstance(chosen, str | None):
            return ENGLISH_STOP_WORDS if chosen == "english" else frozenset()
        return frozenset(chosen)

    def set_params(self, **params: Any) -> Self:
        """Change parameters; see `Analyzer` for their names.

        Parameters
        ----------
        **params : object
            New values by name.
        """
        type(self)(**self.get_params(deep=False) | {name: params[name] for name in params if name in self._names()})
        return super().set_params(**params)

    def tokens(self, text: str) -> list[str]:
        """Return the words of one text, followed by its n-grams.

        Parameters
        ----------
        text : str
            The text.

        Examples
        --------
        >>> Analyzer("english").tokens("Red apples")
        ['red', 'appl']
        """
        return [names[token] for names, tokens, _ in tokenize(self, [text]) for token in tokens]

    def fit(self, texts: Any = None, y: Any = None) -> Self:
        """Do nothing: an analyzer learns nothing from texts.

        Parameters
        ----------
        texts, y : object, default=None
            Ignored.
        """
        return self

    def transform(self, texts: Iterable[str]) -> list[list[str]]:
        """Return the tokens of every text.

        Parameters
        ----------
        texts : iterable of str
            The texts.
        """
        return [self.tokens(text) for text in _checked_texts(texts)]

    def fit_transform(self, texts: Iterable[str], y: Any = None) -> list[list[str]]:
        """Return the tokens of every text; the same as `transform`.

        Parameters
        ----------
        texts, y : iterable of str, and object
            The texts; `y` is ignored.
        """
        return self.transform(texts)

    def normal_forms(self, words: list[str]) -> list[str | None]:
        """Return the stem of each word, or None for a stop word.

        Parameters
        ----------
        words : list of str
            Words in lower case.
        """
        removed = self.stop_word_set
        forms: list[str | None] = [None if word in removed else word for word in words]
        if self.stemmer is None:
            return forms
        import Stemmer

        stems = Stemmer.Stemmer(self.stemmer, maxCacheSize=0).stemWords([word or "" for word in forms])
        return [stem or None for stem in stems]

    def __sklearn_is_fitted__(self) -> bool:
        """An analyzer needs no fit."""
        return True


def as_analyzer(value: Any) -> Analyzer:
    """Return the analyzer for a parameter: None is `Analyzer()`, a string names the language."""
    if isinstance(value, str | None):
        return Analyzer(value)
    if not isinstance(value, Analyzer):
        raise ConfigError(f"The 'analyzer' parameter must be an Analyzer, a language or None. Got {value!r:.100}.")
    return value


def tokenize(analyzer: Analyzer, texts: Iterable[str]) -> Iterator[Tokens]:
    """Yield the tokens of the texts, chunk by chunk; every chunk numbers its own names."""
    from .._kernels.words import keep_tokens

    for chunk in _chunks(texts, analyzer.lowercase):
        words, tokens, stops = _find_words(chunk, analyzer.shortest)
        if analyzer.stemmer is not None or analyzer.stop_word_set:
            places: dict[str, int] = {}
            forms = analyzer.normal_forms(words)
            target = [-1 if form is None else places.setdefault(form, len(places)) for form in forms]
            tokens, stops = keep_tokens(tokens, stops, np.array(target, np.int32))
            words = list(places)
        result = Tokens(words, tokens, stops)
        yield _with_grams(result, analyzer.ngrams) if analyzer.ngrams > 1 else result


def short_text_tokens(analyzer: Analyzer, text: str) -> list[str]:
    """Return the tokens of one short text, as `tokenize` does; several times as fast for a query."""
    found = re.findall(r"\w+", text.lower() if analyzer.lowercase else text)
    words, removed = [word for word in found if len(word) >= analyzer.shortest], analyzer.stop_word_set
    if removed:
        words = [word for word in words if word not in removed]
    if (stemmer := analyzer.stemmer) is not None:
        words = [stem for word in words if (stem := _stem(stemmer, word))]
    grams = list(words)
    for size in range(2, analyzer.ngrams + 1):
        grams += [" ".join(words[i : i + size]) for i in range(len(words) - size + 1)]
    return grams


@lru_cache(maxsize=1 << 16)
def _stem(language: str, word: str) -> str:
    """Return the stem of a word; cached, because queries share words."""
    import Stemmer

    return str(Stemmer.Stemmer(language, maxCacheSize=0).stemWord(word))


def _checked_texts(texts: Iterable[str]) -> Iterator[str]:
    if isinstance(texts, str):
        raise DataError("texts must be a list of texts; got one text. Put it in a list.")
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise DataError(f"text {position} is not a text but {type(text).__name__}: {text!r:.60}")
        yield text


def _chunks(texts: Iterable[str], lowercase: bool) -> Iterator[list[str]]:
    chunk: list[str] = []
    size = 0
    for text in _checked_texts(texts):
        chunk.append(text.lower() if lowercase else text)
        size += len(text)
        if size >= CHUNK_CHARACTERS:
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
    """Return the code points of all texts, one after another, and where each text ends."""
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
