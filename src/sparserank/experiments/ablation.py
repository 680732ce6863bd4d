"""Which setting makes the difference: methods of Chen et al. (2010) with one thing changed at a time.

Where a row of Table II stays behind the paper's with the settings that the paper tells, this shows what would bring it
there. Every row is trained and measured as Table II is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..data import load
from ..preferences import Preferences
from ..rankers.bilinear import BilinearRanker
from . import tables
from .chen2010 import Tell, density, measured
from .problems import WORDS, Problem, problem

Features = Callable[[Problem], Problem]


@dataclass(frozen=True)
class Change:
    """A method with other settings (steps: so many times as many) or other features, and what that is called."""

    method: str
    what: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    steps: float = 1.0
    features: Features | None = None


def without_stop_words(given: Problem) -> Problem:
    """The texts' features without 33 English stop words."""
    from ..text import Analyzer, TextFeatures

    texts = load(given.name)
    features = TextFeatures("sublinear", columns=WORDS, analyzer=Analyzer(stop_words="english"))
    train, test = features.fit_transform(texts.train.items), features.transform(texts.test.items)
    return replace(given, train=train, test=test, words=tuple(features.words_))


def plain_counts(given: Problem) -> Problem:
    """tf · idf instead of (1 + ln tf) · idf."""
    from ..text import TextFeatures

    texts = load(given.name)
    features = TextFeatures("tfidf", columns=WORDS)
    return replace(given, train=features.fit_transform(texts.train.items), test=features.transform(texts.test.items))


def square_roots(given: Problem) -> Problem:
    """Square roots of the features, at unit length again."""
    return replace(given, train=_roots(given.train), test=_roots(given.test))


def _roots(rows: Any) -> Any:
    out = rows.copy()
    out.data = np.sqrt(out.data)
    length = np.sqrt(np.add.reduceat(np.append(out.data**2, 0), out.indptr[:-1]))
    empty = np.diff(out.indptr) == 0
    out.data /= np.repeat(np.where(empty, 1, length), np.diff(out.indptr)).astype(out.data.dtype)
    return out


FIXED, DECAYING = "SGD (fixed rate)", "SGD (decaying rate)"
_PIXELS = (
    Change("Identity", "as in Table II"),
    Change("Identity", "square roots of the grey values", features=square_roots),
    Change(DECAYING, "as in Table II"),
    Change(DECAYING, "C = 100", {"eta0": 100.0}),
    Change(DECAYING, "C = 50", {"eta0": 50.0}),
    Change(DECAYING, "twice the steps", steps=2),
    Change("Sparse-R", "as in Table II"),
    Change("Sparse-R", "C = 100", {"eta0": 100.0}),
    Change("Sparse-R", "twice the steps", steps=2),
)
CHANGES: dict[str, tuple[Change, ...]] = {
    "20newsgroups": (
        Change(FIXED, "as in Table II"),
        Change(FIXED, "33 stop words left out", features=without_stop_words),
        Change(FIXED, "tf instead of 1 + ln tf", features=plain_counts),
        Change(FIXED, "rate .05 instead of .01", {"eta0": 0.05}),
        Change(DECAYING, "as in Table II"),
        Change(DECAYING, "33 stop words left out", features=without_stop_words),
        Change(DECAYING, "twice the steps", steps=2),
    ),
    "mnist": _PIXELS,
    "digits": _PIXELS,
}


def ablate(dataset: str, *, steps: int, seed: int, tell: Tell = lambda message: None) -> list[dict[str, Any]]:
    """A row a change: the method, what was changed, MAP and error, and what the paper prints for the method.

    >>> [row["change"] for row in ablate("digits", steps=100, seed=0)][:2]
    ['as in Table II', 'square roots of the grey values']
    """
    given, rows = problem(dataset), []
    for change in CHANGES.get(dataset, ()):
        tell(f"{dataset}: {change.method}, {change.what}")
        here = given if change.features is None else change.features(given)
        wanted = {"density": given.density} if change.method == "Sparse-R" else {}
        ranker = BilinearRanker.named(
            change.method, random_state=seed, watch=0, **({"max_iter": round(steps * change.steps)} | wanted)
            | ({"max_iter": 0} if change.method == "Identity" else {}) | dict(change.settings),
        )  # fmt: skip
        ranker.fit(here.train, here.train, Preferences.from_labels(here.train_classes))
        found, printed = measured(here, ranker.W_), tables.TABLE_II.get(dataset, {}).get(change.method)
        rows.append(
            {
                "method": change.method,
                "change": change.what,
                "map": found.map.value,
                "error": found.error.value,
                "density": density(ranker.W_),
                "paper_map": printed and printed.map,
                "paper_error": printed and printed.error,
            }
        )
    return rows
