"""Accuracy against size: pairs pruned to several sizes, each refitted and measured on held-out training queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from .. import validation
from ..data.files import PathLike, write_bytes
from ..errors import ConfigError
from .model_selection import Callback, held_out_scores, make_folds, tune_pair_weight, tune_ridge
from .pair_learner import PairLearner
from .training_data import TrainingMatrices

MEASURE = "nDCG@10 of held-out queries"


@dataclass(frozen=True)
class TextSize:
    """One size: the number of pairs, the megabytes of W, and nDCG@10 on held-out queries."""

    pairs: int
    megabytes: float
    ndcg: float


@dataclass(frozen=True)
class TextPath:
    """The sizes from smallest to largest, and nDCG@10 of the lexical score alone; `TextRanker.path` returns it.

    Parameters
    ----------
    points : tuple of TextSize
        One entry for each size.
    lexical : float
        nDCG@10 of the lexical score on the same queries.
    """

    points: tuple[TextSize, ...]
    lexical: float

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[TextSize]:
        return iter(self.points)

    def __getitem__(self, position: int) -> TextSize:
        return self.points[position]

    def best(self, within: float = 0.005) -> TextSize:
        """Return the smallest size whose nDCG@10 is close to the best.

        Parameters
        ----------
        within : float, default=0.005
            The largest loss of nDCG@10.
        """
        validation.number("within", within, low=0)
        most = max(point.ndcg for point in self.points)
        return next(point for point in self.points if point.ndcg >= most - within)

    def plot(self, path: PathLike, within: float = 0.005) -> None:
        """Write a plot as a PNG file and mark `best(within)`; needs the extra `plot`.

        Parameters
        ----------
        path : str or path
            The file.
        within : float, default=0.005
            The largest loss of nDCG@10 of the marked size.
        """
        from ..base.plots import size_curve

        values = [(point.pairs, point.ndcg) for point in self.points]
        write_bytes(path, size_curve(values, MEASURE, self.points.index(self.best(within)), within), compress=False)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers for JSON."""
        return {"by": MEASURE, "lexical": self.lexical, "points": [asdict(point) for point in self.points]}


def sorted_sizes(sizes: Sequence[int]) -> list[int]:
    """Return the distinct sizes in ascending order."""
    if len(sizes) == 0:
        raise ConfigError("The 'sizes' parameter must contain at least one size.")
    return sorted({validation.count("sizes", size, low=1) for size in sizes})


def text_path(learner: PairLearner, data: TrainingMatrices, sizes: Sequence[int], callback: Callback) -> TextPath:
    """Measure every size on held-out queries."""
    folds = make_folds(data, learner.random_state)
    held, choice = TrainingMatrices.concatenate([part for _, part in folds]), tune_ridge(folds, callback)
    points = []
    for size in sizes:
        callback(f"learning {size:,} pairs")
        one = replace(learner, budget=replace(learner.budget, max_pairs=size))
        parts = [
            one.fit(choice.closed_form, train.lists, choice.query_normalization, choice.ridge) for train, _ in folds
        ]
        result = tune_pair_weight(held_out_scores(parts, folds), held, choice.query_normalization, choice.ridge)
        pairs = max(int(W.nnz) for W in parts)
        points.append(TextSize(pairs, (8 * pairs + 4 * (parts[0].shape[0] + 1)) / 1e6, result.ndcg))
    return TextPath(tuple(points), held.mean_ndcg(held.lexical_scores))
