"""How readers spell a normal form: the most frequent word among those that share a stem.

Stems such as "appl" are columns; people read "apples".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray


class Spellings:
    """Counts of the words behind every normal form.

    >>> spellings = Spellings()
    >>> spellings.add(["apples", "apple", "pear"], ["appl", "appl", "pear"], np.array([0, 1, 0, 2]))
    >>> spellings.most_frequent()
    {'appl': 'apples'}
    """

    def __init__(self) -> None:
        self.counts: dict[tuple[str, str], int] = {}

    def add(self, words: Sequence[str], forms: Sequence[str | None], tokens: NDArray[np.int32]) -> None:
        """Count tokens, which are numbers of words; forms[i] is the normal form of words[i]."""
        counts = self.counts
        occurrences = np.bincount(tokens, minlength=len(words)).tolist()
        for word, form, count in zip(words, forms, occurrences, strict=True):
            if form is not None:
                key = form, word
                counts[key] = counts.get(key, 0) + count

    def add_runs(
        self, runs: Sequence[str], words: Sequence[Sequence[tuple[int, int, str]]], tokens: NDArray[np.int32]
    ) -> None:
        """Count tokens, which are numbers of runs; words[i] are start, end and form of the words of runs[i]."""
        counts = self.counts
        occurrences = np.bincount(tokens, minlength=len(runs)).tolist()
        for run, found, count in zip(runs, words, occurrences, strict=True):
            for start, end, form in found:
                key = form, run[start:end]
                counts[key] = counts.get(key, 0) + count

    def most_frequent(self) -> dict[str, str]:
        """Return {normal form: word} where the two differ; of equally frequent words the first in code-point order."""
        return most_frequent(self.counts)


def most_frequent(counts: Mapping[tuple[str, str], int]) -> dict[str, str]:
    """Return {normal form: its most frequent word} for {(normal form, word): count} where the two differ."""
    best: dict[str, tuple[int, str]] = {}
    for (form, word), count in counts.items():
        known = best.get(form)
        if known is None or (-count, word) < known:
            best[form] = -count, word
    return {form: word for form, (_, word) in best.items() if word != form}
