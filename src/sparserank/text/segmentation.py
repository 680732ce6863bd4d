"""Words in scripts that write no blanks: overlapping bigrams, or a segmenter from another package.

Han and kana are segmented together; Thai, Lao, Khmer and Myanmar each by itself. Korean writes blanks, and bigrams of
Hangul find less than whole words, so Hangul is not segmented.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from threading import Lock

from ..errors import NotInstalled

SEGMENTED = re.compile(
    "([\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3041-\u312f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U0001aff0-\U0001b16f\U00020000-\U0003ffff]+)"
    "|([\u0e00-\u0e7f]+)|([\u0e80-\u0eff]+)|([\u1780-\u17ff]+)|([\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f]+)"
)
"""A piece of a segmented script: Han and kana, Thai, Lao, Khmer, Myanmar, by the number of its group."""
CJK = 1

PACKAGES = {"jieba": ("jieba",), "fugashi": ("fugashi", "unidic-lite"), "icu": ("icu4py",)}
"""The packages that a segmenter needs; their versions decide where words end."""
SEGMENTERS = ("bigrams", *PACKAGES)


def bigrams(text: str) -> list[tuple[int, int]]:
    """Return the positions of overlapping pairs of characters; a single character stands for itself.

    >>> [("日本語"[start:end]) for start, end in bigrams("日本語")]
    ['日本', '本語']
    """
    return [(start, start + 2) for start in range(len(text) - 1)] or [(0, 1)]


def segment(segmenter: str, run: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and kind of each piece of a run: "run" of another script, "bigram", or "word" of a segmenter.

    >>> [("css属性値"[start:end], kind) for start, end, kind in segment("bigrams", "css属性値")]
    [('css', 'run'), ('属性', 'bigram'), ('性値', 'bigram')]
    """
    at = 0
    for match in SEGMENTED.finditer(run):
        if at < match.start():
            yield at, match.start(), "run"
        first, at = match.span()
        serves = segmenter == "icu" or (segmenter != "bigrams" and match.lastindex == CJK)
        positions = _words(segmenter, match[0]) if serves else bigrams(match[0])
        for start, end in positions:
            yield first + start, first + end, "word" if serves else "bigram"
    if at < len(run):
        yield at, len(run), "run"


def covered_parts(text: str, spans: Iterable[tuple[int, int]]) -> list[str]:
    """Return the distinct parts of a text that spans cover; spans that overlap, such as bigrams, are one part.

    >>> covered_parts("日本語 and 日本", [(0, 2), (1, 3), (8, 10)])
    ['日本語', '日本']
    """
    parts: list[tuple[int, int]] = []
    for start, end in spans:
        if parts and start < parts[-1][1]:
            start, end = parts[-1][0], max(parts.pop()[1], end)
        parts.append((start, end))
    return list(dict.fromkeys(text[start:end] for start, end in parts))


def segmenter_version(segmenter: str | None) -> str | None:
    """Return the versions of a segmenter's packages, such as "0.42.1"; None for bigrams; raises NotInstalled.

    >>> segmenter_version("bigrams")
    """
    if segmenter not in PACKAGES:
        return None
    try:
        return " ".join(version(package) for package in PACKAGES[segmenter])
    except PackageNotFoundError as error:
        raise NotInstalled(
            f"segmenter={segmenter!r} needs the package {error.name}: pip install 'sparserank[segmenters]'"
        ) from None


def _words(segmenter: str, text: str) -> list[tuple[int, int]]:
    out, at = [], 0
    for word in _cutter(segmenter)(text):
        out.append((at, at + len(word)))
        at += len(word)
    return out


@cache
def _cutter(segmenter: str) -> Callable[[str], list[str]]:
    """Return a function that cuts a text without blanks into words, which joined are the text."""
    segmenter_version(segmenter)
    if segmenter == "jieba":
        with warnings.catch_warnings():  # it imports the deprecated pkg_resources
            warnings.simplefilter("ignore")
            import jieba
        jieba.setLogLevel("WARNING")
        cut: Callable[[str], list[str]] = jieba.Tokenizer().lcut
        return cut
    if segmenter == "fugashi":
        import fugashi
        import unidic_lite

        tagger, lock = fugashi.Tagger(f"-d {unidic_lite.DICDIR}"), Lock()

        def cut_japanese(text: str) -> list[str]:
            with lock:
                return [word.surface for word in tagger(text)]

        return cut_japanese
    from icu4py.breakers import WordBreaker

    return lambda text: list(WordBreaker(text, "root"))
