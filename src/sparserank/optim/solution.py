"""What a solver found, and how it got there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class Point:
    """The learning curve at one moment.

    violations : share of the triples since the last point that were not beaten by the margin.
    loss : mean hinge loss of those triples, each before W learned from it.
    objective : mean hinge loss on held-out triples, or None where nothing was held out.
    change : length of the change of W since the last point, before shrinking.
    """

    steps: int
    violations: float
    loss: float
    objective: float | None
    change: float
    nonzeros: int
    megabytes: float
    alpha: float
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """As it is stored and printed."""
        return asdict(self)


class Curve:
    """Points of the learning curve, and what has been seen since the last of them."""

    def __init__(self) -> None:
        self.points: list[Point] = []
        self.steps_seen = self.violations_seen = 0
        self._forget()

    def _forget(self) -> None:
        self._steps, self._violations, self._loss, self._change = 0, 0, 0.0, 0.0

    def saw(self, steps: int, violations: int, loss: float, change: float = 0.0) -> None:
        """So many steps, with so many violations, summed loss and squared change of W."""
        self._steps += steps
        self._violations += violations
        self.steps_seen += steps
        self.violations_seen += violations
        self._loss += loss
        self._change += change

    def note(self, **now: Any) -> None:
        """Add a point: what was seen since the last one, and how things stand now."""
        n = max(self._steps, 1)
        seen = {"violations": self._violations / n, "loss": self._loss / n, "change": max(self._change, 0.0) ** 0.5}
        self.points.append(Point(**seen, **now))
        self._forget()


class Told:
    """How far a training is, as it can be written down and taken over again; trainings build on it."""

    steps: int
    alpha: float
    seconds: float
    peak_bytes: int
    peak_nonzeros: int
    curve: Curve

    def summary(self) -> dict[str, Any]:
        """What is told of the training so far."""
        return {
            "steps": self.steps,
            "alpha": self.alpha,
            "seconds": self.seconds,
            "peak": [self.peak_bytes, self.peak_nonzeros],
            "curve": [point.to_dict() for point in self.curve.points],
        }

    def recall(self, told: Mapping[str, Any]) -> None:
        """Take over what was told."""
        self.steps, self.alpha, self.seconds = told["steps"], told["alpha"], told["seconds"]
        self.peak_bytes, self.peak_nonzeros = told["peak"]
        self.curve.points = [Point(**point) for point in told["curve"]]


@dataclass(frozen=True)
class Solution:
    """The end of one run: W, whether the objective has come to rest, and the curve.

    empty_queries, empty_documents : rows of Q and D without an entry; they score 0 whatever W is.
    """

    W: csr_array
    steps: int
    converged: bool
    message: str
    alpha: float
    curve: tuple[Point, ...]
    peak_bytes: int
    peak_nonzeros: int
    empty_queries: int = 0
    empty_documents: int = 0
