"""How the constants of the class-label solvers were chosen: each varies alone, on held-out training items.

    python -m benchmarks.class_defaults words
    python -m benchmarks.class_defaults pixels

print Markdown tables of MAP and error. Words: 20 Newsgroups at 0.1 % of all pairs, trained on the first two thirds of
each class's training posts and measured on the last third (by number, which follows the date; a random third would
share threads with the others). Pixels: MNIST at half of all pairs, trained on all training images but 5,000 random
ones, and measured on those. No test item is read.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from sparserank import data
from sparserank.evaluation.labels import bilinear_blocks, evaluate_classes
from sparserank.experiments.datasets import load_labeled
from sparserank.optim import label_ridge as class_ridge
from sparserank.optim.label_contrast import LabelContrast
from sparserank.optim.label_ridge import LabelRefit, LabelRidge
from sparserank.optim.penalties import NoPenalty, Ridge
from sparserank.optim.problems import LabelProblem
from sparserank.text import TextFeatures

from .markdown import table

WORD_PAIRS, PIXEL_DENSITY, IMAGES = 100_000, 0.5, 5_000
WORDS: dict[str, tuple[float, ...]] = {
    "ridge": (0.5, 1.0, 2.0, 3.0),
    "kl_power": (0.0, 0.125, 0.5, 1.0),
    "wider": (1.0, 10.0, 40.0, 1e6),
    "first_pattern": (1.0, 2.0, 5.0),
    "exact_steps": (0, 2, 10),
    "LEAST_DIVERGENCE": (0.01, 0.2),
}
PIXELS: dict[str, tuple[float, ...]] = {
    "mix": (0.0, 0.1, 0.5),
    "steps": (0, 450),
    "rank": (20, 80),
    "rate": (0.05, 0.2),
    "sharpness": (2.0, 8.0),
    "ridge": (1.0, 100.0),
    "batch": (500,),
}


@dataclass(frozen=True)
class Items:
    """Training items to learn from, and training items that were set aside."""

    X: Any
    code: NDArray[np.int64]
    measured: Any
    classes: NDArray[np.int64]

    def quality(self, W: Any) -> tuple[float, float]:
        """MAP and error of W."""
        full = W.nnz > 0.2 * W.shape[0] * W.shape[1]
        X, W = (self.measured.toarray(), W.toarray()) if full else (self.measured, W)
        found = evaluate_classes(bilinear_blocks(X, W, X), self.classes)
        return found.map.value, found.error.value


def newsgroups() -> Items:
    """Words and their weights come from the posts that are learned from."""
    train = data.load("20newsgroups").train
    number = np.array([int(name.rsplit("/", 1)[-1]) for name in train.ids])
    order = np.lexsort((number, train.y))
    place = np.concatenate([np.arange(n) / n for n in np.bincount(train.y)])
    early, late = order[place < 2 / 3], order[place >= 2 / 3]
    features = TextFeatures("sublinear", columns=10_000)
    X = features.fit_transform([train.items[i] for i in early])
    return Items(X, train.y[early], features.transform([train.items[i] for i in late]), train.y[late])


def images() -> Items:
    given = load_labeled("mnist")
    aside = np.zeros(len(given.train_classes), np.bool_)
    aside[np.random.default_rng(0).permutation(len(aside))[:IMAGES]] = True
    y = given.train_classes
    return Items(given.train[~aside], y[~aside], given.train[aside], y[aside])


def word_pairs(items: Items, **changed: float) -> Any:
    """W by the closed form, cut and refitted; LEAST_DIVERGENCE and exact_steps are no settings of the solver."""
    settings = dict(changed)
    least = settings.pop("LEAST_DIVERGENCE", class_ridge.LEAST_DIVERGENCE)
    refit = partial(LabelRefit, exact_steps=int(settings.pop("exact_steps", LabelRefit.exact_steps)))
    with patch.dict(vars(class_ridge), LEAST_DIVERGENCE=least, LabelRefit=_with_steps(refit)):
        ridge = settings.pop("ridge", class_ridge.RIDGE.query)
        problem = LabelProblem(items.X, items.code)
        return LabelRidge(WORD_PAIRS, **settings).solve(problem, Ridge(ridge, ridge)).weights


def _with_steps(refit: Any) -> Any:
    return lambda ridge, n_jobs=None: refit(ridge, n_jobs=n_jobs)


def pixel_pairs(items: Items, **changed: float) -> Any:
    """W of low rank, cut."""
    entries = round(PIXEL_DENSITY * items.X.shape[1] ** 2)
    return LabelContrast(entries, **changed).solve(LabelProblem(items.X, items.code), NoPenalty()).weights


def rows(kind: str, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The defaults, then every value of the constants that are named, or of all."""
    learn, choices, items = (word_pairs, WORDS, newsgroups()) if kind == "words" else (pixel_pairs, PIXELS, images())
    usual = items.quality(learn(items))
    yield {"name": "defaults", "MAP": f"{usual[0]:.4f}", "error": f"{usual[1]:.4f}", "MAP difference": ""}
    for name in names or choices:
        for value in choices[name]:
            found = items.quality(learn(items, **{name: value}))
            row = {"name": f"{name} {value:g}", "MAP": f"{found[0]:.4f}", "error": f"{found[1]:.4f}"}
            yield row | {"MAP difference": f"{found[0] - usual[0]:+.4f}"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=("words", "pixels"))
    parser.add_argument("constants", nargs="*", help="which ones; all by default")
    given = parser.parse_args()
    for number, row in enumerate(rows(given.kind, given.constants)):
        lines = table([row]).splitlines()
        print(*lines[2 if number else 0 :], sep="\n", flush=True)


if __name__ == "__main__":
    main()
