"""SparkDominationRanker: the domination loss on a cluster, one w a topic or one w over many queries.

Topics are independent, so each is solved by the coordinate descent of one machine, to the same bits. One w over all
queries is found by L-BFGS: its loss and gradient are sums over queries, made by partitions of whole queries and added
in the order of the partitions. An L1 penalty is smooth in the positive and the negative part of w, both bounded by 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..errors import ConfigError, DataError
from ..letor.base import by_topic
from ..letor.domination import DominationRanker, Rows
from ..optim.coordinate_descent import CoordinateDescent, Descent, LinearSolution, Round
from ..optim.losses import Domination
from ..optim.penalties import Separable
from ..optim.scores import Linear
from ..preferences.queries import Queries
from .blocks import ordered_sum
from .broadcast import BroadcastParts
from .errors import executor_errors

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import SparkSession

Floats = NDArray[np.float64]
MEMORY = 20
"""Steps that L-BFGS remembers."""


class SparkDominationRanker:
    """Learns a `DominationRanker` on a cluster.

    ranker : its settings. For one w, max_iter bounds the steps of L-BFGS, tol means what it does on one machine, and
        max_features is not supported; topics take all settings.
    partitions : of whole queries; by itself, the cluster's default parallelism.
    """

    def __init__(self, ranker: DominationRanker | None = None, *, partitions: int | None = None) -> None:
        self.ranker = DominationRanker() if ranker is None else ranker
        self.partitions = partitions

    def fit(
        self, spark: SparkSession, X: Any, y: Any, qid: Any = None, *, sample_weight: Any = None, margins: Any = None
    ) -> DominationRanker:
        """Learn one w from grades by query, or one w a topic from a matrix of items × topics."""
        if self.partitions is not None:
            validation.count("partitions", self.partitions, low=1)
        if not isinstance(self.ranker, DominationRanker):
            raise ConfigError(f"a DominationRanker's settings are wanted; got {type(self.ranker).__name__}")
        topics = by_topic(y)
        if self.ranker.max_features is not None and not topics:
            raise ConfigError("max_features needs coordinate descent over all rows; on Spark set alpha instead")
        kind = _Topics if topics else _Queries
        fitting = kind(**self.ranker.get_params())
        fitting.spark, fitting.partitions = spark, self.partitions or spark.sparkContext.defaultParallelism
        with executor_errors():
            fitting.fit(X, y, qid, sample_weight=sample_weight, margins=margins)
        out = DominationRanker(**self.ranker.get_params())
        for name, value in vars(fitting).items():
            if name.endswith("_"):
                setattr(out, name, value)
        return out


class _OnSpark(DominationRanker):
    """A DominationRanker that solves on a cluster."""

    spark: Any
    partitions: int

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {name: getattr(self, name) for name in DominationRanker._get_param_names()}


class _Topics(_OnSpark):
    """A topic at a time, wherever there is room."""

    def _each_topic(self, score: Linear, grades: Any, rows: Rows, most: int | None) -> list[LinearSolution | None]:
        settings = DominationRanker(**self.get_params())
        settings._judge()
        context = self.spark.sparkContext
        sent = context.broadcast((settings, score, rows, grades))

        def solve(topic: int) -> LinearSolution | None:
            ranker: DominationRanker
            ranker, columns, by_row, graded = sent.value
            return ranker._topic(columns, by_row.by_query(graded, topic), most)

        try:
            found: list[LinearSolution | None]
            found = context.parallelize(range(grades.shape[1]), self.partitions).map(solve).collect()
            return found
        finally:
            sent.destroy()


class _Queries(_OnSpark):
    """One w: partitions of whole queries give the loss and its gradient."""

    def _solved(self, score: Linear, queries: Queries, most: int | None) -> LinearSolution:
        from scipy.sparse import csc_array

        rows = csc_array((score.values, score.rows.view(score.pointer.dtype), score.pointer), shape=score.shape).tocsr()
        parts = BroadcastParts(self.spark, list(_parts(rows, queries, self.partitions)))
        try:
            return solve(self.spark, parts, score.shape[1], self._loss, self._penalty, self._settings)
        finally:
            parts.destroy()


@dataclass(frozen=True)
class Part:
    """The rows of some queries, with their grades, the numbers of their queries, their weights and their margins."""

    X: Any
    grade: Floats
    query: NDArray[np.int64]
    weight: Floats
    margin: Floats

    def descent(self, loss: Domination) -> Descent | None:
        """What gives the loss and its gradient; None where no row has another one to beat."""
        queries = Queries.of(self.grade, self.query, self.weight, self.margin) if len(self.grade) else None
        if queries is None or loss.select_windows(queries).skipped == len(queries):
            return None
        wins = queries.first_loser < queries.query_end
        return CoordinateDescent().descent(Linear.of(self.X), queries, loss) if queries.weight[wins].any() else None


def _parts(X: Any, queries: Queries, partitions: int) -> Iterator[Part]:
    """Whole queries, in their order, about as many rows in each part; a part may be empty."""
    bounds = np.searchsorted(queries.start, np.linspace(0, queries.start[-1], partitions + 1)[1:-1])
    edges = queries.start[[0, *bounds.tolist(), len(queries)]]
    for first, last in pairwise(edges.tolist()):
        here = slice(first, last)
        grade, query, weight, margin = queries.grade, queries.query, queries.weight, queries.margin
        yield Part(X[queries.order[here]], grade[here], query[here], weight[here], margin[here])


def solve(
    spark: Any, parts: BroadcastParts, width: int, loss: Domination, penalty: Separable, settings: CoordinateDescent
) -> LinearSolution:  # fmt: skip
    """The minimum over one w of the parts' losses and the penalty."""
    from pyspark import StorageLevel
    from scipy.optimize import minimize

    sent = spark.sparkContext.broadcast(loss)
    held = parts.flat_map(lambda number, part: _descents(number, part, sent.value))
    held.persist(StorageLevel.MEMORY_AND_DISK)
    search = Search(lambda w: _summed(spark, held, w), width, penalty, settings)
    try:
        bounds = [(0.0, None)] * (2 * width) if penalty.l1 > 0.0 else None
        most = {"maxiter": settings.max_iter, "maxfun": 3 * settings.max_iter + 100, "maxcor": MEMORY}
        if not search.done():
            minimize(
                search, np.zeros(2 * width if penalty.l1 > 0.0 else width), jac=True, method="L-BFGS-B", bounds=bounds,
                callback=search.step, options=most | {"ftol": 0.0, "gtol": 0.0},
            )  # fmt: skip
        return search.solution()
    finally:
        held.unpersist()
        sent.destroy()


def _descents(number: int, part: Part, loss: Domination) -> list[tuple[int, Descent]]:
    found = part.descent(loss)
    return [] if found is None else [(number, found)]


def _summed(spark: Any, held: RDD[tuple[int, Descent]], w: Floats) -> tuple[float, Floats]:
    sent = spark.sparkContext.broadcast(w)

    def at(one: tuple[int, Descent]) -> tuple[int, Floats]:
        loss, gradient = one[1].at(sent.value)
        return one[0], np.append(gradient, loss)

    try:
        total = ordered_sum(held.map(at))
    finally:
        sent.destroy()
    if total is None:
        raise DataError("nothing to learn: no query has rows of two different grades")
    return float(total[-1]), total[:-1]


class Search:
    """The objective as L-BFGS asks for it, and the best point there was.

    At w = 0 the gradient's largest entry sets the scale; L-BFGS is stopped where nothing violates optimality by more
    than tol times that, as coordinate descent is.
    """

    def __init__(
        self, at: Callable[[Floats], tuple[float, Floats]], width: int, penalty: Separable, settings: CoordinateDescent
    ) -> None:
        self._at, self._penalty, self._settings, self._steps = at, penalty, settings, 0
        self._seen: dict[bytes, LinearSolution] = {}
        self._rounds: list[Round] = []
        loss, gradient = at(np.zeros(width))
        self._scale = float(np.abs(gradient).max(initial=0.0))
        self._first = (loss, gradient)
        self._last = self._noted(np.zeros(width), loss, gradient)

    def __call__(self, point: Floats) -> tuple[float, Floats]:
        """Objective and gradient; of a point in two parts where there is an L1 penalty."""
        l1, l2 = self._penalty.l1, self._penalty.l2
        w = self._joined(point)
        loss, gradient = self._first if not w.any() else self._at(w)
        found = self._noted(w, loss, gradient)
        smooth = gradient + 2.0 * l2 * w
        if l1 == 0.0:
            return found.objective, smooth
        value = loss + l2 * float(np.square(w).sum()) + l1 * float(point.sum())
        return value, np.concatenate([smooth + l1, l1 - smooth])

    def _joined(self, point: Floats) -> Floats:
        if self._penalty.l1 == 0.0:
            return np.array(point, dtype=np.float64)
        half = len(point) // 2
        return np.asarray(point[:half] - point[half:], dtype=np.float64)

    def _noted(self, w: Floats, loss: float, gradient: Floats) -> LinearSolution:
        l1, l2 = self._penalty.l1, self._penalty.l2
        g = gradient + 2.0 * l2 * w
        missed = np.where(w == 0.0, np.maximum(np.abs(g) - l1, 0.0), np.abs(g + np.copysign(l1, w)))
        worst, objective = float(missed.max(initial=0.0)), loss + self._penalty.value(w)
        found = LinearSolution(
            w.copy(), self._penalty, loss, objective, worst, self._scale, self._steps,
            worst <= self._settings.tol * self._scale, (),
        )  # fmt: skip
        self._seen[w.tobytes()] = found
        return found

    def step(self, point: Floats) -> None:
        """After each step of L-BFGS, from the point it has taken."""
        self._steps += 1
        self._last = replace(self._seen[self._joined(point).tobytes()], epochs=self._steps)
        self._seen.clear()
        last = self._last
        self._rounds.append(Round(last.epochs, last.objective, last.violation, last.nonzeros, len(last.w)))
        if self.done():
            raise StopIteration

    def done(self) -> bool:
        """Whether the last point is good enough."""
        return self._last.converged

    def solution(self) -> LinearSolution:
        """The last point."""
        return replace(self._last, rounds=tuple(self._rounds))
