"""Which setting makes the difference: methods of Chen et al. (2010) with one thing changed at a time.

Where a row of Table II stays behind the paper's with the settings of the paper, this shows what would bring it there.
Every row is trained and measured as Table II is. `sweep_rates` chooses C as the paper does: by the objective on
training data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..bilinear.ranker import BilinearRanker
from ..data import load
from ..optim.losses import Hinge
from ..optim.penalties import L1
from ..optim.scores import Bilinear
from ..optim.sparse_sgd import SparseSGD
from ..preferences import Preferences
from . import tables
from .chen2010 import Tell, density, measured
from .methods import PLUS, PLUS_SETTINGS, SHRINK_EVERY, learn_plus
from .problems import WORDS, Problem, problem

if TYPE_CHECKING:
    from scipy.sparse import csr_array

RATES = (2.0, 10.0, 50.0, 100.0, 200.0, 400.0, 800.0)
"""The values of C that are compared; the paper's is 200."""
PAPER_C = 200.0
OBJECTIVE_TRIPLES = 5_000

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
_AS_MANY_STEPS = (
    Change("Sparse-R", "as many steps as Sparse-R+", steps=(PLUS_SETTINGS.passes + 1) / 2),
    Change(PLUS, "one pass: as many steps as Sparse-R"),
)
_PIXELS = (
    Change("Identity", "as in Table II"),
    Change("Identity", "square roots of the grey values", features=square_roots),
    Change(DECAYING, "as in Table II"),
    Change(DECAYING, "C = 100", {"eta0": 100.0}),
    Change(DECAYING, "C = 50", {"eta0": 50.0}),
    Change(DECAYING, "twice the steps", steps=2),
    Change("Sparse-R", "as in Table II"),
    Change("Sparse-R", "C = 100", {"eta0": 100.0}),
    *_AS_MANY_STEPS,
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
        *_AS_MANY_STEPS,
    ),
    "rcv1": _AS_MANY_STEPS,
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
        W = _changed(here, change, steps, seed)
        found, printed = measured(here, W), tables.TABLE_II.get(dataset, {}).get(change.method)
        rows.append(
            {
                "method": change.method,
                "change": change.what,
                "map": found.map.value,
                "error": found.error.value,
                "error_of_triples": found.error_of_triples.value,
                "density": density(W),
                "paper_map": printed and printed.map,
                "paper_error": printed and printed.error,
            }
        )
    return rows


def _changed(given: Problem, change: Change, steps: int, seed: int) -> Any:
    """W of a method with its change."""
    if change.method == PLUS:
        return learn_plus(given, steps, seed, settings=PLUS_SETTINGS._replace(passes=1)).W
    wanted = {"density": given.density} if change.method == "Sparse-R" else {}
    n = 0 if change.method == "Identity" else round(steps * change.steps)
    settings = {"random_state": seed, "watch": 0, "max_iter": n} | wanted | dict(change.settings)
    ranker = BilinearRanker.named(change.method, **settings)
    return ranker.fit(given.train, given.train, Preferences.from_labels(given.train_classes)).W_


def sweep_rates(
    dataset: str, *, steps: int, seed: int, rates: Sequence[float] = RATES, tell: Tell = lambda message: None
) -> dict[str, Any]:
    """Choose C of the rate C/√t by the objective of eq. 5 on training data, and measure the chosen one on test.

    λ is the one at which Sparse with the paper's C has the density of Table II, and is the same for every C. The
    objective is the mean hinge loss of 5,000 training triples, drawn with another seed than those learned from, plus
    λ·|W|₁. Only the C of the lowest objective and the paper's C are measured on the test part.
    """
    given = problem(dataset)
    tell(f"{dataset}: Sparse, for λ")
    ranker = BilinearRanker.named("Sparse", density=given.density, max_iter=steps, random_state=seed, watch=0)
    alpha = float(ranker.fit(given.train, given.train, Preferences.from_labels(given.train_classes)).alpha_)
    rows: list[dict[str, Any]] = []
    kept: dict[float, csr_array] = {}
    for rate in rates:
        tell(f"{dataset}: the objective with C = {rate:g}")
        W, hinge = _trained(given, rate, alpha, steps, seed)
        penalty = alpha * float(np.abs(W.data).sum(dtype=np.float64))
        rows.append({"c": rate, "hinge": hinge, "objective": hinge + penalty, "density": density(W)})
        best = min(rows, key=lambda row: row["objective"])["c"]
        kept = {c: matrix for c, matrix in {**kept, rate: W}.items() if c in (best, PAPER_C)}
    for row in rows:
        found = measured(given, kept[row["c"]]) if row["c"] in kept else None
        row["map"], row["error"] = (None, None) if found is None else (found.map.value, found.error.value)
    note = (
        f"Sparse with λ = {alpha:.3g} and without a cut, {steps:,} steps. C = {best:g} has the lowest objective on "
        f"training triples, of these; the paper's choice is C = {PAPER_C:g}. Only these are measured on the test items."
    )
    return {"lambda": alpha, "best_c": best, "paper_c": PAPER_C, "rows": rows, "note": note}


def _trained(given: Problem, rate: float, alpha: float, steps: int, seed: int) -> tuple[csr_array, float]:
    """W after Algorithm 1 with C = rate, and its mean hinge loss on training triples."""
    from scipy.sparse import csr_array, eye_array

    start = csr_array(eye_array(given.columns, dtype=np.float32, format="csr"))
    score, preferences = Bilinear.of(given.train, given.train), Preferences.from_labels(given.train_classes)
    training = SparseSGD(rate, "decay", SHRINK_EVERY).training(score, Hinge(), L1(alpha), start)
    held_out = preferences.draw(OBJECTIVE_TRIPLES, seed + 1)
    training.advance(preferences.draw(steps, seed), held_out=held_out, every=steps)
    return training.weights(), float(training.curve.points[-1].objective or 0.0)
