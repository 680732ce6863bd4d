"""Accuracy against size: pairs learned once, cut to smaller and smaller sizes, each refitted and measured.

Every size is measured on the same held-out training queries; no other split is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from .. import validation
from ..data.files import PathLike, write_bytes
from ..errors import ConfigError
from .pair_learner import PairLearner, Tell
from .training_data import Judged, held_out_scores

BY = "nDCG@10 of held-out queries"


@dataclass(frozen=True)
class TextSize:
    """One size: its pairs, what W takes, and what it is worth beside the lexical score."""

    pairs: int
    megabytes: float
    ndcg: float


@dataclass(frozen=True)
class TextPath:
    """Sizes from the smallest to the largest, and what the lexical score alone is worth."""

    points: tuple[TextSize, ...]
    lexical: float

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[TextSize]:
        return iter(self.points)

    def __getitem__(self, place: int) -> TextSize:
        return self.points[place]

    def best(self, within: float = 0.005) -> TextSize:
        """The smallest that comes within a tolerance of the best."""
        validation.number("within", within, low=0)
        most = max(point.ndcg for point in self.points)
        return next(point for point in self.points if point.ndcg >= most - within)

    def plot(self, path: PathLike, within: float = 0.005) -> None:
        """Write it as a PNG, with the size that `best(within)` takes. Needs the extra `plot`."""
        from ..base.plots import against_size

        values = [(point.pairs, point.ndcg) for point in self.points]
        write_bytes(path, against_size(values, BY, self.points.index(self.best(within)), within), pack=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return {"by": BY, "lexical": self.lexical, "points": [asdict(point) for point in self.points]}


def sizes_in_order(sizes: Sequence[int]) -> list[int]:
    """From the smallest, each once."""
    if len(sizes) == 0:
        raise ConfigError("sizes must name at least one size")
    return sorted({validation.count("sizes", size, low=1) for size in sizes})


def text_path(learner: PairLearner, judged: Judged, sizes: Sequence[int], tell: Tell) -> TextPath:
    """Learn without the queries that are held out, and measure on those."""
    folds = learner.folds(judged)
    asked, chosen = Judged.joined([held for _, held in folds]), learner.chosen(folds, tell)
    points = []
    for size in sizes_in_order(sizes):
        tell(f"learning {size:,} pairs")
        one = replace(learner, budget=replace(learner.budget, max_pairs=size))
        parts = [one.fit(chosen.form, part.lists, chosen.evenness, chosen.ridge) for part, _ in folds]
        choice = one.gain(held_out_scores(parts, folds), asked, chosen.evenness, chosen.ridge)
        most = max(int(W.nnz) for W in parts)
        points.append(TextSize(most, (8 * most + 4 * (parts[0].shape[0] + 1)) / 1e6, choice.learned))
    lexical = asked.worth(asked.lexical)
    return TextPath(tuple(points), lexical)
