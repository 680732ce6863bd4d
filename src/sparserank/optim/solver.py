"""The contract of the solvers: solve(problem, penalty, init) -> Solution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from ..deprecated import warn
from ..errors import ConfigError
from .penalties import NoPenalty

_OLD_NAMES = {"W": "weights", "w": "weights", "coef": "weights", "curve": "history", "rounds": "history"}


@dataclass(frozen=True)
class Solution:
    """The result of a solver.

    Parameters
    ----------
    weights : csr_array, ndarray or object
        The parameters that were found; boosting finds a sum of weak rankers.
    history : tuple, default=()
        The course of the solver, such as the points of a learning curve.
    info : mapping of str to object, default={}
        More about the result. `converged` and `message` are there for every solver that iterates.

    Examples
    --------
    >>> solution = Solution([0.5], info={"converged": True, "message": "the gradient is 0"})
    >>> solution.weights, solution.info["converged"]
    ([0.5], True)
    """

    weights: Any
    history: tuple[Any, ...] = ()
    info: Mapping[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        """Names of version 0.1, for one release."""
        old = name in _OLD_NAMES or (name != "info" and not name.startswith("_") and name in self.info)
        if not old:
            raise AttributeError(f"'Solution' object has no attribute {name!r}")
        new = _OLD_NAMES.get(name, f"info[{name!r}]")
        warn(f"Solution.{name}", f"Solution.{new}")
        return getattr(self, new) if name in _OLD_NAMES else self.info[name]


class Solver:
    """A solver has `solve(problem, penalty, init) -> Solution` and declares what it accepts."""

    losses: ClassVar[tuple[type, ...]]
    """Losses of a problem that it accepts; `object` where the solver has a loss of its own."""
    penalties: ClassVar[tuple[type, ...]] = (NoPenalty,)
    takes_init: ClassVar[bool] = True
    """Whether it starts from given weights."""

    def check(self, loss: object, penalty: object, init: object = None) -> None:
        """Raise ConfigError for a loss, a penalty or a start that this solver does not accept.

        Parameters
        ----------
        loss : object
            The loss of the problem.
        penalty : object
            The penalty.
        init : object, default=None
            The weights to start from.
        """
        name = type(self).__name__
        for kind, value, accepted in (("loss", loss, self.losses), ("penalty", penalty, self.penalties)):
            if not isinstance(value, accepted):
                names = " or ".join(one.__name__ for one in accepted)
                raise ConfigError(f"{name} needs the {kind} {names}; got {type(value).__name__}")
        if init is not None and not self.takes_init:
            raise ConfigError(f"{name} does not start from given weights; leave 'init' out")


@dataclass(frozen=True)
class CurvePoint:
    """One point of a learning curve.

    Attributes
    ----------
    steps, seconds : int, float
        Steps and seconds so far.
    violations, loss : float
        Share of the triples since the last point whose margin was too small, and their mean hinge loss; each triple
        counts as it was before W was updated with it.
    objective : float or None
        Mean hinge loss of held-out triples; None if there are none.
    change : float
        Frobenius norm of the change of W since the last point, before shrinking.
    nonzeros, megabytes, alpha : int, float, float
        Nonzero entries of W, its size in memory, and the strength of the penalty.
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
        """The fields as a dictionary."""
        return asdict(self)


class LearningCurve:
    """The points of a learning curve, and sums over the steps since the last of them."""

    def __init__(self) -> None:
        self.points: list[CurvePoint] = []
        self.total_steps = self.total_violations = 0
        self._reset()

    def _reset(self) -> None:
        self._steps, self._violations, self._loss, self._change = 0, 0, 0.0, 0.0

    def record(self, steps: int, violations: int, loss: float, change: float = 0.0) -> None:
        """Add steps with their violations, summed loss and squared change of W."""
        self._steps += steps
        self._violations += violations
        self.total_steps += steps
        self.total_violations += violations
        self._loss += loss
        self._change += change

    def add_point(self, **now: Any) -> None:
        """Add a point: means since the last one, and the state `now`."""
        n = max(self._steps, 1)
        means = {"violations": self._violations / n, "loss": self._loss / n, "change": max(self._change, 0.0) ** 0.5}
        self.points.append(CurvePoint(**means, **now))
        self._reset()


class TrainingState:
    """The base of trainings: settings, and the progress in a form that a checkpoint can store."""

    def __init__(self, solver: Any, loss: Any, penalty: Any, centre: Any) -> None:
        self.solver, self.loss, self.penalty, self.centre = solver, loss, penalty, centre
        self.steps, self.alpha, self.seconds = 0, float(penalty.alpha), 0.0
        self.peak_bytes = self.peak_nonzeros = 0
        self.curve = LearningCurve()

    @property
    def nonzeros(self) -> int:
        """The number of nonzero entries of W."""
        raise NotImplementedError

    @property
    def nbytes(self) -> int:
        """The bytes of W."""
        raise NotImplementedError

    def add_point(self, objective: float | None) -> None:
        """Add a point to the learning curve."""
        now = {"steps": self.steps, "nonzeros": self.nonzeros, "megabytes": self.nbytes / 1e6}
        self.curve.add_point(objective=objective, alpha=self.alpha, seconds=self.seconds, **now)

    def summary(self) -> dict[str, Any]:
        """The state as JSON values."""
        return {
            "steps": self.steps,
            "alpha": self.alpha,
            "seconds": self.seconds,
            "peak": [self.peak_bytes, self.peak_nonzeros],
            "curve": [point.to_dict() for point in self.curve.points],
        }

    def restore(self, summary: Mapping[str, Any]) -> None:
        """Take over a stored state."""
        self.steps, self.alpha, self.seconds = summary["steps"], summary["alpha"], summary["seconds"]
        self.peak_bytes, self.peak_nonzeros = summary["peak"]
        self.curve.points = [CurvePoint(**point) for point in summary["curve"]]
