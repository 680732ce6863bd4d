"""Accuracy against size: pairs pruned to several sizes, each refitted and measured on held-out training queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from .. import validation
from ..bilinear.size_path import ModelPath
from ..errors import ConfigError
from ..optim.closed_form import ClosedForm
from ..optim.penalties import Ridge
from .candidates import CandidateSearch
from .model_selection import make_folds, score_held_out, tune_pair_weight, tune_ridge
from .pair_learner import PairLearner
from .progress import Callback
from .training_data import TrainingMatrices


@dataclass(frozen=True)
class TextSize:
    """One size: the number of pairs, the megabytes of W, and nDCG@10 on held-out queries."""

    pairs: int
    megabytes: float
    ndcg: float


@dataclass(frozen=True)
class TextPath(ModelPath):
    """The sizes from smallest to largest, and nDCG@10 of the lexical score alone; `TextRanker.path` returns it."""

    points: tuple[TextSize, ...]
    lexical: float
    by = "nDCG@10 of held-out queries"
    tolerance: ClassVar[float] = 0.005

    def _values(self) -> list[float]:
        return [point.ndcg for point in self.points]

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers for JSON."""
        return {"by": self.by, "lexical": self.lexical, "points": [asdict(point) for point in self.points]}


def sorted_sizes(sizes: Sequence[int]) -> list[int]:
    """Return the distinct sizes in ascending order."""
    if len(sizes) == 0:
        raise ConfigError("The 'sizes' parameter must contain at least one size.")
    return sorted({validation.count("sizes", size, low=1) for size in sizes})


def text_path(learner: PairLearner, data: TrainingMatrices, sizes: Sequence[int], callback: Callback) -> TextPath:
    """Measure every size on held-out queries."""
    folds, search = make_folds(data, learner.random_state), CandidateSearch.of(data, learner.n_jobs)
    choice = tune_ridge(folds, search, callback, learner.max_size)
    settings = choice.query_normalization, Ridge(choice.ridge_query, choice.ridge_document)
    closed_form, points, lexical = ClosedForm(data.lists.D, learner.max_size), [], 0.0
    for size in sizes:
        callback(f"learning {size:,} pairs")
        one = replace(learner, loss="squared", budget=replace(learner.budget, max_pairs=size))
        parts = [one.fit(closed_form, train.lists, *settings) for train, _ in folds]
        scored = [score_held_out(fold.held_out, search, W) for fold, W in zip(folds, parts, strict=True)]
        result = tune_pair_weight(scored, *settings)
        pairs, lexical = max(int(W.nnz) for W in parts), result.lexical_ndcg
        points.append(TextSize(pairs, (8 * pairs + 4 * (parts[0].shape[0] + 1)) / 1e6, result.ndcg))
    return TextPath(tuple(points), lexical)
