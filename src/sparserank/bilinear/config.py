"""The parameters of `BilinearRanker`, validated, as objects that the solver takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import validation
from ..errors import ConfigError
from ..optim.losses import Hinge
from ..optim.penalties import L1, GroupL1, NoPenalty, Penalty
from ..optim.pruning import PairBudget
from ..optim.scores import Bilinear, rows
from ..optim.sparse_sgd import AnyTraining, SparseSGD

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from .ranker import BilinearRanker

WORKING_DENSITY, MAX_SLACK = 0.2, 10.0
"""The density of W during training, and the largest multiple of its final number of entries.

A W of this density learns well, and a smaller one is better pruned from it than learned by itself: `python -m
benchmarks.tune_word_pairs` chose the density on held-out training items. The second number limits memory."""


PENALTIES = ("l1", "group-rows", "group-columns", "none")


def make_loss(loss: Any) -> Hinge:
    """The `Hinge` that a name or an object means."""
    if isinstance(loss, Hinge):
        return loss
    if loss in ("squared", "softmax"):
        raise ConfigError(f"The 'loss' parameter must be 'hinge'. Got {loss!r} instead, which LabelRanker uses.")
    validation.choice("loss", loss, ("hinge",))
    return Hinge()


def make_penalty(penalty: Any, alpha: Any) -> Penalty:
    """A penalty by its name, with alpha; an object has its own alpha."""
    if isinstance(penalty, NoPenalty | L1 | GroupL1):
        return penalty
    kind = penalty
    if kind not in PENALTIES:
        names = ", ".join(map(repr, PENALTIES))
        raise ConfigError(
            f"The 'penalty' parameter must be one of {names}, or an object L1, GroupL1 or NoPenalty of sr.penalties. "
            f"Got {penalty!r} instead."
        )
    validation.number("alpha", alpha, low=0)
    if kind == "none":
        return NoPenalty()
    return L1(alpha) if kind == "l1" else GroupL1(alpha, over=kind.removeprefix("group-"))


def n_pairs(density: Any, max_pairs: Any, shape: tuple[int, int], penalty: Penalty) -> int | None:
    """The number of entries of W to keep; None if alpha decides."""
    if density is None and max_pairs is None:
        return None
    budget = PairBudget(max_pairs=max_pairs, density=density)
    if isinstance(penalty, NoPenalty):
        raise ConfigError("'density' and 'max_pairs' need penalty='l1'; without a penalty W does not become sparse")
    return budget.for_shape(shape).pairs


def slack_factor(slack: Any, pairs: int, shape: tuple[int, int]) -> float:
    """How many times the kept entries W holds during training."""
    if slack is not None:
        return validation.number("slack", slack, low=1)
    return max(1.0, min(MAX_SLACK, WORKING_DENSITY * shape[0] * shape[1] / pairs))


def make_matrix(name: str, value: Any, shape: tuple[int, int]) -> csr_array:
    """'identity', 'zero' or a matrix of W's shape."""
    from scipy.sparse import csr_array, eye_array

    if isinstance(value, str):
        validation.choice(name, value, ("identity", "zero"))
        if value == "zero":
            return csr_array(shape, dtype=np.float32)
        if shape[0] != shape[1]:
            raise ConfigError(f"{name}='identity' needs as many query as document columns; W is {shape}: use 'zero'")
        return csr_array(eye_array(shape[0], dtype=np.float32, format="csr"))
    matrix = rows(name, value)
    if matrix.shape != shape:
        raise ConfigError(f"{name} must be a matrix of shape {shape}; got {matrix.shape}")
    return matrix


def make_solver(ranker: BilinearRanker) -> SparseSGD:
    """The solver with the parameters of a ranker."""
    return SparseSGD(ranker.eta0, ranker.schedule, ranker.shrink_every, ranker.n_jobs, ranker.max_iter or 1)


def new_training(ranker: BilinearRanker, score: Bilinear, W: csr_array | None = None) -> AnyTraining:
    """A training with the parameters of a ranker, from W, or from the ranker's `init`."""
    shape, penalty = score.shape, make_penalty(ranker.penalty, ranker.alpha)
    init = make_matrix("init", ranker.init, shape) if W is None else W
    prior = None if ranker.prior is None else make_matrix("prior", ranker.prior, shape)
    pairs = n_pairs(ranker.density, ranker.max_pairs, shape, penalty)
    slack = 1.0 if pairs is None else slack_factor(ranker.slack, pairs, shape)
    return make_solver(ranker).training(
        score, make_loss(ranker.loss), penalty, diagonal(init) if ranker.diagonal else init, prior,
        pattern=ranker.diagonal, max_pairs=pairs, slack=slack,
    )  # fmt: skip


def diagonal(matrix: csr_array) -> csr_array:
    """Every entry of the diagonal, zeros included."""
    from scipy.sparse import csr_array

    n, columns = matrix.shape
    if n != columns:
        raise ConfigError(f"a diagonal W must be square; Q and D have {n} and {columns} columns")
    return csr_array((matrix.diagonal().astype(np.float32), np.arange(n), np.arange(n + 1)), shape=(n, n))
