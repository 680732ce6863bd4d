"""The settings of `BilinearRanker`, judged and turned into what the solver takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import validation
from ..errors import ConfigError
from ..optim.losses import Hinge
from ..optim.pattern_sgd import PatternTraining
from ..optim.penalties import L1, GroupL1, NoPenalty, Penalty
from ..optim.scores import Bilinear, rows
from ..optim.sparse_sgd import SparseSGD, Training

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from .ranker import BilinearRanker

FULL_ENOUGH, MOST_SLACK = 0.2, 10.0
"""While it is learned, W holds this density, and at most so many times the entries that it keeps.

A W of this density learns well, and a smaller one is better cut from it than learned by itself: `python -m
benchmarks.tune_word_pairs` chose the density on held-out training items. The second number limits memory."""

OTHER_LOSSES = {"squared": "closed-form", "softmax": "low-rank"}
"""Losses that are not on triples, and the solver that takes each."""


def hinge(loss: Any) -> Hinge:
    """A `Hinge`, by its name or as it is."""
    if isinstance(loss, Hinge):
        return loss
    for other, solver in OTHER_LOSSES.items():
        if loss == other:
            raise ConfigError(f"The 'loss' parameter {loss!r} needs solver={solver!r}; 'sparse-sgd' takes 'hinge'.")
    validation.choice("loss", loss, ("hinge", *OTHER_LOSSES))
    return Hinge()


def penalty(given: Any, alpha: Any) -> Penalty:
    """A penalty by its name, with alpha; or one as it is, with its own alpha."""
    if isinstance(given, NoPenalty | L1 | GroupL1):
        return given
    kind = validation.choice("penalty", given, ("l1", "group-rows", "group-columns", "none"))
    validation.number("alpha", alpha, low=0)
    if kind == "none":
        return NoPenalty()
    return L1(alpha) if kind == "l1" else GroupL1(alpha, over=kind.removeprefix("group-"))


def wanted_pairs(density: Any, max_pairs: Any, shape: tuple[int, int], penalty: Penalty) -> int | None:
    """How many entries of W are wanted; None where alpha decides."""
    if density is None and max_pairs is None:
        return None
    if density is not None and max_pairs is not None:
        raise ConfigError("'density' and 'max_pairs' both say how large W should be; give one of them")
    if isinstance(penalty, NoPenalty):
        raise ConfigError("a wanted density needs penalty='l1'; without a penalty W does not become sparse")
    if max_pairs is not None:
        return validation.count("max_pairs", max_pairs, low=1)
    return max(1, round(validation.number("density", density, low=0, high=1, open_low=True) * shape[0] * shape[1]))


def held_pairs(slack: Any, wanted: int, shape: tuple[int, int]) -> float:
    """How many times the wanted entries W holds while it is learned."""
    if slack is not None:
        return validation.number("slack", slack, low=1)
    return max(1.0, min(MOST_SLACK, FULL_ENOUGH * shape[0] * shape[1] / wanted))


def matrix(name: str, given: Any, shape: tuple[int, int]) -> csr_array:
    """'identity', 'zero' or a matrix of W's shape."""
    from scipy.sparse import csr_array, eye_array

    if isinstance(given, str):
        validation.choice(name, given, ("identity", "zero"))
        if given == "zero":
            return csr_array(shape, dtype=np.float32)
        if shape[0] != shape[1]:
            raise ConfigError(f"{name}='identity' needs as many query as document columns; W is {shape}: use 'zero'")
        return csr_array(eye_array(shape[0], dtype=np.float32, format="csr"))
    found = rows(name, given)
    if found.shape != shape:
        raise ConfigError(f"{name} must be a matrix of shape {shape}; got {found.shape}")
    return found


def make_solver(ranker: BilinearRanker) -> SparseSGD:
    """The solver with the settings of a ranker."""
    return SparseSGD(ranker.eta0, ranker.rate, ranker.shrink_every, ranker.n_jobs, ranker.max_iter or 1)


def new_training(ranker: BilinearRanker, score: Bilinear, W: csr_array | None = None) -> Training | PatternTraining:
    """A training with the settings of a ranker, from W, or from the ranker's `start`."""
    shape, kind = score.shape, penalty(ranker.penalty, ranker.alpha)
    begin = matrix("start", ranker.start, shape) if W is None else W
    centre = None if ranker.centre is None else matrix("centre", ranker.centre, shape)
    n_pairs = wanted_pairs(ranker.density, ranker.max_pairs, shape, kind)
    slack = 1.0 if n_pairs is None else held_pairs(ranker.slack, n_pairs, shape)
    return make_solver(ranker).training(
        score, hinge(ranker.loss), kind, diagonal(begin) if ranker.diagonal else begin, centre,
        pattern=ranker.diagonal, wanted=n_pairs, slack=slack,
    )  # fmt: skip


def diagonal(start: csr_array) -> csr_array:
    """Every place of the diagonal, with the start's values there."""
    from scipy.sparse import csr_array

    n, columns = start.shape
    if n != columns:
        raise ConfigError(f"a diagonal W must be square; Q and D have {n} and {columns} columns")
    return csr_array((start.diagonal().astype(np.float32), np.arange(n), np.arange(n + 1)), shape=(n, n))
