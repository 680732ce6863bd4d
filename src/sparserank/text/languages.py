"""The languages that an analyzer knows by name: script, stemmer, stop words; and which of them a text is in.

Stems are those of the Snowball project, stop words those of the package stop-words, except for English.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache

from .. import validation
from ..errors import ConfigError

ENGLISH_STOP_WORDS = frozenset({
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not", "of",
    "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was", "will", "with",
})  # fmt: skip
"""The short list of Lucene's English analyzer. It has no words with a topic, so "fire" stays a word."""

AUTO = "auto"
NOT_LATIN = {
    "arabic": "ARABIC", "armenian": "ARMENIAN", "bulgarian": "CYRILLIC", "chinese": "CJK", "greek": "GREEK",
    "gujarati": "GUJARATI", "hebrew": "HEBREW", "hindi": "DEVANAGARI", "japanese": "CJK", "korean": "HANGUL",
    "nepali": "DEVANAGARI", "persian": "ARABIC", "russian": "CYRILLIC", "tamil": "TAMIL", "thai": "THAI",
    "ukrainian": "CYRILLIC", "yiddish": "HEBREW",
}  # fmt: skip
"""The script of each language that is not written in Latin letters, as Unicode names it."""
ACCENTS_OPTIONAL = frozenset({"catalan", "french", "greek", "italian", "portuguese", "spanish"})
"""Languages whose readers often type no accents, and in which a letter with an accent is not a letter of its own."""
OTHER_ALGORITHMS = ("dutch_porter", "porter")
"""Stemmers beside the one that has its language's name; they are not detected."""
MIN_STOP_WORD_SHARE = 0.1
"""A text has a language if at least this share of its words in the language's script are stop words. Of running text
a third to a half are; of names and program code almost none."""
MIN_SCRIPT_SHARE = 0.05
"""A script with a smaller share of the words is quoted, such as Greek letters in formulas."""
MIN_KANA_SHARE = 0.05
"""Han text with at least this share of kana is Japanese, which has about half; Chinese text quotes a few."""


@cache
def stemmers() -> frozenset[str]:
    """Return the languages that have a Snowball stemmer."""
    import Stemmer

    return frozenset(Stemmer.algorithms())


@cache
def listed_stop_words() -> frozenset[str]:
    """Return the languages that have stop words."""
    import stop_words

    names = {"malay" if name == "malaysian" else name for name in stop_words.AVAILABLE_LANGUAGES}
    return frozenset(names | {"english"})


@cache
def languages() -> frozenset[str]:
    """Return the names that `Analyzer(language=…)` takes, beside "auto"."""
    return stemmers() | listed_stop_words() | NOT_LATIN.keys()


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the stop words of a language; the empty set if there is no list."""
    if language == "english" or language not in listed_stop_words():
        return ENGLISH_STOP_WORDS if language == "english" else frozenset()
    from stop_words import get_stop_words

    return frozenset(get_stop_words("malaysian" if language == "malay" else language))


def script_of(language: str) -> str:
    """Return the script of a language, such as "LATIN"."""
    return NOT_LATIN.get(language, "LATIN")


@lru_cache(maxsize=1 << 14)
def script(letter: str) -> str:
    """Return the script of a letter: the first word of its Unicode name, "CJK" for kana, "" for a digit or a mark."""
    name = unicodedata.name(letter, "").split(" ")[0].split("-")[0]
    if name in ("HIRAGANA", "KATAKANA", "IDEOGRAPHIC", "BOPOMOFO"):
        return "CJK"
    return "" if name in ("DIGIT", "LOW", "COMBINING") else name


def word_script(word: str) -> str:
    """Return the script of the first letter of a word."""
    return next((found for letter in word if (found := script(letter))), "")


def split_names(language: str) -> tuple[str, ...]:
    """Return the languages of "german" or "japanese+english"; at most one for each script."""
    names = tuple(language.split("+"))
    for name in names:
        validation.choice("language", name, sorted(languages()))
    scripts = Counter(script_of(name) for name in names)
    for name in names:
        if scripts[script_of(name)] > 1:
            both = " and ".join(one for one in names if script_of(one) == script_of(name))
            raise ConfigError(f"The 'language' parameter takes one language for each script; {both} share theirs.")
    return names


@cache
def _languages_of_stop_word() -> dict[str, tuple[str, ...]]:
    out: dict[str, list[str]] = {}
    for language in sorted(listed_stop_words()):
        for word in stop_words(language):
            out.setdefault(word, []).append(language)
    return {word: tuple(names) for word, names in out.items()}


def count_evidence(words: Iterable[tuple[str, int]]) -> Counter[str]:
    """Count what tells the language of words in lower case: words by script, stop words by language, kana.

    `words` are words and how often they occur. Counts of several texts add up.
    """
    out: Counter[str] = Counter()
    known = _languages_of_stop_word()
    for word, count in words:
        found = word_script(word)
        if not found:
            continue
        out[found] += count * (len(word) if found == "CJK" else 1)
        if found == "CJK":
            out["kana"] += count * sum(1 for letter in word if "\u3041" <= letter <= "\u30ff")
        for language in known.get(word, ()):
            if script_of(language) == found:
                out[f"stop:{language}"] += count
    return out


def detect_language(evidence: Mapping[str, int]) -> str | None:
    """Return the language of texts by their evidence, the most frequent script first; None if nothing was found.

    Scripts below MIN_SCRIPT_SHARE are left out. Han text is Japanese or Chinese by its share of kana. In every other
    script the language with the most stop words is taken if they are at least MIN_STOP_WORD_SHARE of the words.

    >>> detect_language(count_evidence([("der", 3), ("und", 2), ("baum", 1), ("the", 1)]))
    'german'
    """
    total = {name: n for name, n in evidence.items() if name.isupper()}
    found = []
    for name in sorted(total, key=lambda one: (-total[one], one)):
        if total[name] < MIN_SCRIPT_SHARE * sum(total.values()):
            break
        if name == "CJK":
            found.append("japanese" if evidence.get("kana", 0) >= MIN_KANA_SHARE * total[name] else "chinese")
            continue
        candidates = sorted(one for one in languages() if script_of(one) == name and one not in OTHER_ALGORITHMS)
        if not candidates:
            continue
        best = max(candidates, key=lambda one: evidence.get(f"stop:{one}", 0))
        if len(candidates) == 1 or evidence.get(f"stop:{best}", 0) >= MIN_STOP_WORD_SHARE * total[name]:
            found.append(best)
    return "+".join(found) or None
