"""`BilinearRanker` on class labels: the solvers that take all pairs of items at once, and what they cannot take.

Both learn one W for items that are searched among themselves, so Q and D are the same rows, and the preferences must
be those of `Preferences.from_labels`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from inspect import signature
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from .. import validation
from ..errors import ConfigError, DataError
from ..optim.scores import Bilinear
from ..preferences import Preferences, classes_of
from .config import OTHER_LOSSES
from .empty_rows import EmptyRows
from .word_pairs import named

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from ..optim.label_contrast import LabelContrast
    from ..optim.label_ridge import LabelRidge
    from .ranker import BilinearRanker

LOSSES = {solver: loss for loss, solver in OTHER_LOSSES.items()}
"""The loss that each of these solvers takes."""
RANK = 40
Words: TypeAlias = Sequence[str] | None
TRIPLES = "these preferences are not from class labels: solver='sparse-sgd' with loss='hinge' learns from any, and "
UNUSED = (
    "penalty", "alpha", "refit", "shrink_every", "eta0", "max_iter", "shuffle",
    "start", "rate", "diagonal", "centre", "slack",
)  # fmt: skip
"""Settings of Algorithm 1 that have no meaning here: changed ones are refused."""


def fit(
    ranker: BilinearRanker, Q: Any, D: Any, prefs: Preferences, words: tuple[Words, Words], checkpoint: Any
) -> None:
    """Learn W, and set what `BilinearRanker.fit` sets."""
    if checkpoint is not None:
        refuse(ranker, "checkpoint")
    solver = judged(ranker)
    score, code = _items(Q, D, prefs)
    wanted, both = _wanted(ranker, score.shape), named(*words, score.shape)
    X = score.items[: len(code)]
    if X.nnz == 0:
        raise DataError("no item has an entry: there is nothing to learn from")
    seed = ranker._seed()
    solution = solver.solve(X, code, wanted, seed)
    if not np.isfinite(solution.weights.data).all():
        raise DataError("W has grown beyond what float32 holds: bring the rows to unit length first")
    empty = EmptyRows.of(score)
    empty.report(logging.INFO, score)
    ranker.n_empty_queries_, ranker.n_empty_documents_ = map(len, empty)
    for earlier in ("_training", "_began", "refit_curve_"):  # of another solver, before this one
        vars(ranker).pop(earlier, None)
    ranker.query_words_, ranker.document_words_ = both
    ranker.W_, ranker.n_iter_, ranker.seed_ = solution.weights, solution.info["steps"], seed
    ranker.alpha_, ranker.converged_ = solution.info["alpha"], solution.info["converged"]
    empty_rows = {"empty_queries": ranker.n_empty_queries_, "empty_documents": ranker.n_empty_documents_}
    ranker.solution_ = replace(solution, info={**solution.info, **empty_rows})


def judged(ranker: BilinearRanker) -> LabelRidge | LabelContrast:
    """The solver that the settings name; settings that it has no use for are refused."""
    name, loss = ranker.solver, LOSSES[ranker.solver]
    if ranker.loss != loss:
        raise ConfigError(f"solver={name!r} needs loss={loss!r}; got {ranker.loss!r}: 'hinge' needs 'sparse-sgd'")
    usual = signature(type(ranker)).parameters
    for setting in UNUSED:
        given, default = getattr(ranker, setting), usual[setting].default
        if given is not default and not (isinstance(given, str | int | float) and given == default):
            raise ConfigError(
                f"{setting} is a setting of solver='sparse-sgd' and means nothing to {name!r}; leave it at {default!r}"
            )
    if ranker.random_state is not None:
        validation.count("random_state", ranker.random_state)
    validation.threads(ranker.n_jobs)
    if name == "closed-form":
        from ..optim.label_ridge import LabelRidge

        if ranker.rank is not None:
            raise ConfigError("rank is a setting of solver='low-rank'; 'closed-form' has the rank of the classes")
        return LabelRidge(n_jobs=ranker.n_jobs)
    from ..optim.label_contrast import LabelContrast

    return LabelContrast(rank=RANK if ranker.rank is None else ranker.rank, n_jobs=ranker.n_jobs)


def refuse(ranker: BilinearRanker, what: str) -> NoReturn:
    """`partial_fit` and checkpoints are of triples."""
    raise ConfigError(
        f"solver={ranker.solver!r} learns from all pairs at once and has no {what}; use fit, or solver='sparse-sgd'"
    )


def _items(Q: Any, D: Any, prefs: Preferences) -> tuple[Bilinear, Any]:
    """The rows, and the class of each."""
    if not isinstance(prefs, Preferences):
        raise DataError(f"preferences are wanted (Preferences.from_labels); got {type(prefs).__name__}")
    code = classes_of(prefs)
    if code is None:
        raise DataError(TRIPLES + "TextRanker from judged queries")
    score = Bilinear.of(Q, D)
    if score.shape[0] != score.shape[1]:
        raise DataError(
            f"items of classes are searched among themselves: Q and D must be the same rows; they have "
            f"{score.shape[0]} and {score.shape[1]} columns; solver='sparse-sgd' learns a W that is not square"
        )
    if score.queries is not score.items and not _same(score.queries, score.items):
        raise DataError(
            "items of classes are searched among themselves: Q and D must be the same rows; solver='sparse-sgd' learns "
            "from two sides that differ"
        )
    if score.items.shape[0] < len(code):
        raise DataError(f"the preferences speak of {len(code)} rows of D; it has {score.items.shape[0]}")
    return score, code


def _same(one: csr_array, other: csr_array) -> bool:
    return one.shape == other.shape and all(
        np.array_equal(getattr(one, part), getattr(other, part)) for part in ("indptr", "indices", "data")
    )


def _wanted(ranker: BilinearRanker, shape: tuple[int, int]) -> int:
    """How many entries W may have; without a limit the whole of W would be D² of them."""
    if (ranker.density is None) == (ranker.max_pairs is None):
        raise ConfigError(
            f"solver={ranker.solver!r} needs to know how large W may be: give density or max_pairs, one of them"
        )
    if ranker.max_pairs is not None:
        return validation.count("max_pairs", ranker.max_pairs, low=1)
    return max(
        1, round(validation.number("density", ranker.density, low=0, high=1, open_low=True) * shape[0] * shape[1])
    )
