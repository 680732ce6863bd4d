"""Ablation of Chen et al. (2010): each method with one setting changed, trained and measured as in Table II.

`sweep_rates` chooses C as the paper does, by the objective on training data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..bilinear.config import make_matrix
from ..bilinear.ranker import BilinearRanker
from ..data import load
from ..optim.losses import Hinge
from ..optim.penalties import L1
from ..optim.scores import Bilinear
from ..optim.sparse_sgd import SparseSGD
from ..preferences import Preferences
from . import published
from .chen2010 import density, measure
from .chen_methods import PLUS, PLUS_SETTINGS, SHRINK_EVERY, MethodTrainer
from .datasets import VOCABULARY_SIZE, LabeledDataset, load_labeled, unit_rows
from .runner import Progress, note

if TYPE_CHECKING:
    from scipy.sparse import csr_array

RATES = (2.0, 10.0, 50.0, 100.0, 200.0, 400.0, 800.0)
PAPER_RATE = 200.0
OBJECTIVE_TRIPLES = 5_000

Transform = Callable[[LabeledDataset], LabeledDataset]


@dataclass(frozen=True)
class Change:
    """A method and the one thing that changes: its settings, its features, or its number of steps (a factor)."""

    method: str
    description: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    steps: float = 1.0
    transform: Transform | None = None


def without_stop_words(data: LabeledDataset) -> LabeledDataset:
    """The same texts without 33 English stop words."""
    from ..text import Analyzer

    return _with_text_features(data, "sublinear", analyzer=Analyzer(stop_words="english"))


def raw_term_frequency(data: LabeledDataset) -> LabeledDataset:
    """tf · idf instead of (1 + ln tf) · idf."""
    return _with_text_features(data, "tfidf")


def _with_text_features(data: LabeledDataset, weighting: str, **settings: Any) -> LabeledDataset:
    from ..text import TextFeatures

    texts, features = load(data.name), TextFeatures(weighting, columns=VOCABULARY_SIZE, **settings)
    train, test = features.fit_transform(texts.train.items), features.transform(texts.test.items)
    return replace(data, train=train, test=test, words=tuple(features.words_))


def square_roots(data: LabeledDataset) -> LabeledDataset:
    """Square roots of the features, scaled to unit length again."""
    return replace(data, train=unit_rows(data.train.sqrt()), test=unit_rows(data.test.sqrt()))


FIXED, DECAYING = "SGD (fixed rate)", "SGD (decaying rate)"
_EQUAL_STEPS = (
    Change("Sparse-R", "as many steps as Sparse-R+", steps=(PLUS_SETTINGS.passes + 1) / 2),
    Change(PLUS, "one pass: as many steps as Sparse-R"),
)
_PIXELS = (
    Change("Identity", "as in Table II"),
    Change("Identity", "square roots of the grey values", transform=square_roots),
    Change(DECAYING, "as in Table II"),
    Change(DECAYING, "C = 100", {"eta0": 100.0}),
    Change(DECAYING, "C = 50", {"eta0": 50.0}),
    Change(DECAYING, "twice the steps", steps=2),
    Change("Sparse-R", "as in Table II"),
    Change("Sparse-R", "C = 100", {"eta0": 100.0}),
    *_EQUAL_STEPS,
)
CHANGES: dict[str, tuple[Change, ...]] = {
    "20newsgroups": (
        Change(FIXED, "as in Table II"),
        Change(FIXED, "33 stop words left out", transform=without_stop_words),
        Change(FIXED, "tf instead of 1 + ln tf", transform=raw_term_frequency),
        Change(FIXED, "rate .05 instead of .01", {"eta0": 0.05}),
        Change(DECAYING, "as in Table II"),
        Change(DECAYING, "33 stop words left out", transform=without_stop_words),
        Change(DECAYING, "twice the steps", steps=2),
        *_EQUAL_STEPS,
    ),
    "rcv1": _EQUAL_STEPS,
    "mnist": _PIXELS,
    "digits": _PIXELS,
}


def ablate(dataset: str, *, steps: int, seed: int, progress: Progress = lambda message: None) -> list[dict[str, Any]]:
    """One row for each change: MAP and error, and what the paper prints for the method.

    >>> [row["change"] for row in ablate("digits", steps=100, seed=0)][:2]
    ['as in Table II', 'square roots of the grey values']
    """
    data, rows = load_labeled(dataset), []
    for change in CHANGES.get(dataset, ()):
        progress(f"{dataset}: {change.method}, {change.description}")
        changed = data if change.transform is None else change.transform(data)
        W = _train_changed(changed, change, steps, seed)
        evaluation, printed = measure(changed, W), published.TABLE_II.get(dataset, {}).get(change.method)
        rows.append({
            "method": change.method,
            "change": change.description,
            "map": evaluation.map.value,
            "error": evaluation.error.value,
            "error_of_triples": evaluation.error_of_triples.value,
            "density": density(W),
            "paper_map": printed and printed.map,
            "paper_error": printed and printed.error,
        })  # fmt: skip
    return rows


def _train_changed(data: LabeledDataset, change: Change, steps: int, seed: int) -> csr_array:
    if change.method == PLUS:
        return MethodTrainer(data, steps, seed).train_plus(PLUS_SETTINGS._replace(passes=1)).W
    n = 0 if change.method == "Identity" else round(steps * change.steps)
    settings = {"random_state": seed, "curve_points": 0, "max_iter": n} | dict(change.settings)
    if change.method == "Sparse-R":
        settings["density"] = data.density
    ranker = BilinearRanker.from_paper(change.method, **settings)
    return ranker.fit(data.train, data.train, Preferences.from_labels(data.train_classes)).W_


def sweep_rates(
    dataset: str, *, steps: int, seed: int, rates: Sequence[float] = RATES, progress: Progress = lambda message: None
) -> dict[str, Any]:
    """Choose C of the rate C/√t by the objective of eq. 5 on training data, and measure the chosen C on test data.

    λ is the one at which Sparse with the paper's C has the density of Table II, and is the same for every C. The
    objective is the mean hinge loss of 5,000 training triples, drawn with another seed than those of the training, plus
    λ·|W|₁. Only the C of the lowest objective and the paper's C are measured on the test part.
    """
    data = load_labeled(dataset)
    progress(f"{dataset}: Sparse, for λ")
    settings: dict[str, Any] = {"max_iter": steps, "random_state": seed, "curve_points": 0}
    ranker = BilinearRanker.from_paper("Sparse", density=data.density, **settings)
    alpha = float(ranker.fit(data.train, data.train, Preferences.from_labels(data.train_classes)).alpha_)
    rows: list[dict[str, Any]] = []
    matrices: dict[float, csr_array] = {}
    for rate in rates:
        progress(f"{dataset}: the objective with C = {rate:g}")
        W, hinge = _train_at_rate(data, rate, alpha, steps, seed)
        penalty = alpha * float(np.abs(W.data).sum(dtype=np.float64))
        rows.append({"c": rate, "hinge": hinge, "objective": hinge + penalty, "density": density(W)})
        best = min(rows, key=lambda row: row["objective"])["c"]
        matrices = {c: matrix for c, matrix in {**matrices, rate: W}.items() if c in (best, PAPER_RATE)}
    for row in rows:
        evaluation = measure(data, matrices[row["c"]]) if row["c"] in matrices else None
        row["map"] = evaluation and evaluation.map.value
        row["error"] = evaluation and evaluation.error.value
    remark = note("chen", "rate_sweep", alpha=alpha, steps=steps, best=best, paper=PAPER_RATE)
    return {"lambda": alpha, "best_c": best, "paper_c": PAPER_RATE, "rows": rows, "note": remark}


def _train_at_rate(data: LabeledDataset, rate: float, alpha: float, steps: int, seed: int) -> tuple[csr_array, float]:
    """W after Algorithm 1 with C = rate, and its mean hinge loss on training triples."""
    score, preferences = Bilinear.of(data.train, data.train), Preferences.from_labels(data.train_classes)
    identity = make_matrix("init", "identity", score.shape)
    training = SparseSGD(rate, "decay", SHRINK_EVERY).training(score, Hinge(), L1(alpha), identity)
    held_out = preferences.draw(OBJECTIVE_TRIPLES, seed + 1)
    training.advance(preferences.draw(steps, seed), held_out=held_out, every=steps)
    return training.weights(), float(training.curve.points[-1].objective or 0.0)
