"""The names of documents. A query that is a name asks for that document, so it is ranked by the lexical score alone.

The names of a document are its title, and the beginnings and ends of the title that have a share of its idf: of
"numpy.linalg.solve" also "linalg.solve" and "solve". Without a title they are the first 2, 3, …, 24 words of the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from ..text import TextFeatures
from ..text.tokens import short_text_tokens

NAME_SHARES = (0.2, 0.5, 1.0)
"""The shares of the idf of a title that a part of it must have, to try; the widest that costs little is used."""
OPENING_SHARES = {2: 0.2, 3: 0.5} | dict.fromkeys(range(4, 25), 1.0)
"""How many words at the beginning of a text without a title are a name, and which share each counts as."""
MAX_NAMES = 1_000_000
"""The most names of a model (8 bytes each); of more, those that are the largest shares of a title."""
OPENING_CHARACTERS = 400
"""The beginning of a text that is searched for these words."""


@dataclass(frozen=True)
class DocumentNames:
    """The digests of all names in ascending order, and the share of the title that each is.

    A name is a sequence of words as the analyzer returns them.

    >>> features = TextFeatures().fit(["numpy sort", "numpy lexsort"])
    >>> names = DocumentNames.of(features, ["numpy.sort", "numpy.lexsort"], ["", ""])
    >>> names.shares(features, ["numpy.sort", "Sort", "numpy", "sort numpy"]).astype(float).round(1).tolist()
    [1.0, 0.6, 0.4, 0.0]
    """

    digests: NDArray[np.int64]
    share: NDArray[np.float32]

    @classmethod
    def of(cls, features: TextFeatures, titles: Iterable[str], texts: Iterable[str]) -> DocumentNames:
        """Return the names of documents with these titles and texts."""
        found: dict[int, float] = {}
        for title, text in zip(titles, texts, strict=True):
            for words, share in names_of(features, title, text):
                digest = digest_of(words)
                found[digest] = max(share, found.get(digest, 0.0))
        return cls.join([cls(np.array(list(found), np.int64), np.array(list(found.values()), np.float32))])

    @classmethod
    def stored(cls, digests: NDArray[np.int64]) -> DocumentNames:
        """Return the names of a model file, which has no shares: all count as 1."""
        return cls(digests, np.ones(len(digests), np.float32))

    @classmethod
    def join(cls, parts: Sequence[DocumentNames]) -> DocumentNames:
        """Return the names of several parts of the documents; a name has its largest share."""
        digests = np.concatenate([np.empty(0, np.int64), *(part.digests for part in parts)])
        share = np.concatenate([np.empty(0, np.float32), *(part.share for part in parts)])
        order = np.lexsort((-share, digests))
        digests, first = np.unique(digests[order], return_index=True)
        share = share[order][first]
        if len(digests) > MAX_NAMES:
            kept = np.sort(np.argsort(-share, kind="stable")[:MAX_NAMES])
            digests, share = digests[kept], share[kept]
        return cls(digests, share)

    def shares(self, features: TextFeatures, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return which share of a title each text is; 0 if it is no name."""
        if len(self.digests) == 0:
            return np.zeros(len(texts), np.float32)
        digests = _digests_of(features, texts)
        place = np.minimum(np.searchsorted(self.digests, digests), len(self.digests) - 1)
        return np.where(self.digests[place] == digests, self.share[place], np.float32(0.0))

    def has(self, words: Sequence[str]) -> bool:
        """Return whether these words are a name.

        >>> features = TextFeatures().fit(["numpy sort"])
        >>> names = DocumentNames.of(features, ["numpy.sort"], [""])
        >>> names.has(["numpy", "sort"]), names.has(["sort", "numpy"])
        (True, False)
        """
        digest = np.int64(digest_of(words))
        place = self.digests.searchsorted(digest)
        return bool(place < len(self.digests) and self.digests[place] == digest)

    def at_least(self, share: float) -> DocumentNames:
        """Return the names that are at least this share of a title."""
        wide = self.share >= np.float32(share)
        return DocumentNames(self.digests[wide], self.share[wide])

    def without(self, features: TextFeatures, texts: Sequence[str]) -> DocumentNames:
        """Return the names that are none of these texts: judgments say more about a query than its words."""
        others = ~np.isin(self.digests, _digests_of(features, texts))
        return DocumentNames(self.digests[others], self.share[others])


def names_of(features: TextFeatures, title: str, text: str) -> Iterator[tuple[list[str], float]]:
    """Yield the names of a document, and their shares of the title."""
    words = features.analyzer_.tokens(title)
    if not words:
        opening = features.analyzer_.tokens(text[:OPENING_CHARACTERS])
        yield from ((opening[:n], share) for n, share in OPENING_SHARES.items() if n <= len(opening))
        return
    columns, idf = features.vocabulary_, features.idf_
    weight = np.array([float(idf[columns[word]]) if word in columns else 0.0 for word in words])
    first, total = np.cumsum(weight), float(weight.sum()) or 1.0
    for n in range(1, len(words)):
        head = float(first[n - 1]) / total
        yield from (
            (part, share) for part, share in ((words[:n], head), (words[n:], 1.0 - head)) if share >= min(NAME_SHARES)
        )
    yield words, 1.0


def _digests_of(features: TextFeatures, texts: Sequence[str]) -> NDArray[np.int64]:
    return np.array([digest_of(short_text_tokens(features.analyzer_, text)) for text in texts], np.int64)


def digest_of(words: Sequence[str]) -> int:
    """Return the digest of a name."""
    return int.from_bytes(blake2b("\n".join(words).encode(), digest_size=8).digest(), "big", signed=True)
