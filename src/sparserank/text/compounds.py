"""Split compounds, as German has them, into words of the collection: "Dateiname" also counts as "Datei" and "Name".

A split is taken if the geometric mean of the document frequencies of its parts is above that of the compound (Koehn
and Knight, 2003). A part may carry a linking element, as "Ausrichtung" does in "Ausrichtungscontainer".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

MIN_PART, MIN_DOCUMENTS = 3, 2
"""Letters of a part, and documents that it is in, at least: the best of nine settings by BM25 on training queries of
mdn-de (`python -m benchmarks.languages --tune-compounds`).
"""
MIN_COMPOUND, MAX_PARTS = 8, 4
LINKS = ("", "s", "es", "n", "en", "er", "e")

Parts = tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class Compounds:
    """Words of a collection with their document frequencies, by which longer words are split.

    Parameters
    ----------
    documents : mapping of str to int
        The number of documents of each word; words of less than MIN_DOCUMENTS are ignored.

    Examples
    --------
    >>> compounds = Compounds({"datei": 9, "name": 20, "dateiname": 5})
    >>> ["dateiname"[start:end] for start, end in compounds.split("dateiname")]
    ['datei', 'name']
    >>> compounds.split("dateisystem")
    ()
    """

    documents: Mapping[str, int] = field(repr=False)
    split: Callable[[str], Parts] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        known = {w: n for w, n in self.documents.items() if n >= MIN_DOCUMENTS and len(w) >= MIN_PART and w.isalpha()}
        object.__setattr__(self, "documents", known)
        object.__setattr__(self, "split", lru_cache(maxsize=1 << 18)(self._split))

    def __reduce__(self) -> tuple[type[Compounds], tuple[dict[str, int]]]:
        return Compounds, (dict(self.documents),)

    def _split(self, word: str) -> Parts:
        """Return the positions of the parts of a word, without linking elements; none if it is no compound."""
        if len(word) < MIN_COMPOUND or not word.isalpha():
            return ()
        found = self._best(word, 0, MAX_PARTS)
        if found is None or found[0] / len(found[1]) <= math.log(self.documents.get(word, 0) + 1):
            return ()
        return found[1]

    def _best(self, word: str, start: int, most: int) -> tuple[float, Parts] | None:
        """Return the sum of log frequencies and the parts of word[start:]: the fewest, then the most frequent ones."""
        rest = self.documents.get(word[start:])
        if rest is not None and start > 0:
            return math.log(rest), ((start, len(word)),)
        best: tuple[float, Parts] | None = None
        for end in range(start + MIN_PART, len(word) - MIN_PART + 1) if most > 1 else ():
            heads = [stop for link in LINKS if (stop := end - len(link)) >= start + MIN_PART and word[stop:end] == link]
            known = [stop for stop in heads if word[start:stop] in self.documents]
            if not known or (tail := self._best(word, end, most - 1)) is None:
                continue
            for stop in known:
                found = math.log(self.documents[word[start:stop]]) + tail[0], ((start, stop), *tail[1])
                if best is None or (-len(found[1]), found[0]) > (-len(best[1]), best[0]):
                    best = found
        return best
