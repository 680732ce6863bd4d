"""SparkDominationRanker: the domination loss on a cluster, one w per topic or one w over many queries.

Topics are independent: executors solve them by coordinate descent, to the bits of one machine. L-BFGS finds one w over
all queries: its loss and gradient are sums over queries, computed by partitions of whole queries and added in the order
of the partitions. With an L1 penalty, the positive and the negative part of w are two nonnegative variables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigError, DataError
from ..letor.domination import DominationRanker, DominationSolver, TopicRows
from ..letor.topics import is_topic_matrix
from ..optim.coordinate_descent import CoordinateDescent, Descent, Round, compute_violations, make_solution
from ..optim.losses import Domination
from ..optim.penalties import Separable
from ..optim.problems import LinearProblem, select_windows
from ..optim.scores import Linear
from ..optim.solver import Solution
from ..parameters import Parameters
from ..preferences.queries import Queries
from .blocks import ordered_sum
from .broadcast import BroadcastParts
from .errors import check_settings, executor_errors

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import SparkSession

Floats = NDArray[np.float64]
LBFGS_MEMORY = 20
"""Steps that L-BFGS remembers."""


class SparkDominationRanker(Parameters):
    """Learns a `DominationRanker` on a cluster.

    Parameters
    ----------
    ranker : DominationRanker, optional
        The settings. For one w, max_iter limits the steps of L-BFGS, and max_features raises ConfigError; topics take
        all settings.
    partitions : int, optional
        Partitions of whole queries; by default the cluster's default parallelism.

    Examples
    --------
    >>> X, grades, qid = [[1.0], [0.0], [3.0], [2.0]], [1, 0, 1, 0], [1, 1, 2, 2]
    >>> ranker = SparkDominationRanker(partitions=2).fit(spark, X, grades, qid)
    >>> int(ranker.predict([[5.0], [4.0]]).argmax())
    0
    """

    def __init__(self, ranker: DominationRanker | None = None, *, partitions: int | None = None) -> None:
        self.ranker = DominationRanker() if ranker is None else ranker
        self.partitions = partitions

    def fit(
        self, spark: SparkSession, X: Any, y: Any, qid: Any = None, *, sample_weight: Any = None, margins: Any = None
    ) -> DominationRanker:
        """Learn one w from grades by query, or one w per topic from a matrix of items × topics.

        Parameters
        ----------
        spark : SparkSession
            The cluster.
        X, y, qid, sample_weight, margins
            As in `DominationRanker.fit`.

        Returns
        -------
        DominationRanker
            A fitted ranker.
        """
        check_settings(self.ranker, DominationRanker, self.partitions)
        if self.ranker.max_features is not None and not is_topic_matrix(y):
            raise ConfigError("max_features needs coordinate descent over all rows; on Spark set alpha instead")
        ranker = DominationRanker(**self.ranker.get_params(deep=False))
        partitions = self.partitions or spark.sparkContext.defaultParallelism
        solver = partial(SparkDominationSolver, spark=spark, partitions=partitions)
        with executor_errors():
            return ranker.fit(X, y, qid, sample_weight=sample_weight, margins=margins, solver=solver)


@dataclass(frozen=True)
class SparkDominationSolver(DominationSolver):
    """Solves on a cluster: executors take topics, or partitions of whole queries give the loss and its gradient."""

    spark: Any = None
    partitions: int = 1

    def fit_topics(
        self, score: Linear, grades: Any, rows: TopicRows, max_features: int | None
    ) -> list[Solution | None]:
        """The w of every column of grades, each on one executor."""
        context = self.spark.sparkContext
        local = DominationSolver(self.loss, self.penalty, self.descent)
        broadcast = context.broadcast((local, score, rows, grades))

        def fit(topic: int) -> Solution | None:
            solver: DominationSolver
            solver, columns, by_row, graded = broadcast.value
            return solver.fit_topic(columns, by_row.by_query(graded, topic), max_features)

        try:
            solutions: list[Solution | None]
            solutions = context.parallelize(range(grades.shape[1]), self.partitions).map(fit).collect()
            return solutions
        finally:
            broadcast.destroy()

    def fit_one(self, score: Linear, queries: Queries, max_features: int | None) -> Solution:
        """One w over all queries."""
        from scipy.sparse import csc_array

        rows = csc_array((score.values, score.rows.view(score.pointer.dtype), score.pointer), shape=score.shape).tocsr()
        parts = BroadcastParts(self.spark, list(_divide_queries(rows, queries, self.partitions)))
        try:
            return minimize_lbfgs(self.spark, parts, score.shape[1], self.loss, self.penalty, self.descent)
        finally:
            parts.destroy()


QueryPart = tuple[Any, Floats, NDArray[np.int64], Floats, Floats]
"""The rows of some queries with their grades, query numbers, weights and margins."""


def _divide_queries(X: Any, queries: Queries, partitions: int) -> Iterator[QueryPart]:
    """Whole queries in their order, about equally many rows in each part; a part may be empty."""
    bounds = np.searchsorted(queries.start, np.linspace(0, queries.start[-1], partitions + 1)[1:-1])
    edges = queries.start[[0, *bounds.tolist(), len(queries)]]
    for first, last in pairwise(edges.tolist()):
        rows = slice(first, last)
        grade, query, weight, margin = queries.grade, queries.query, queries.weight, queries.margin
        yield X[queries.order[rows]], grade[rows], query[rows], weight[rows], margin[rows]


def _descents(number: int, part: QueryPart, loss: Domination) -> list[tuple[int, Descent]]:
    """The descent that gives the part's loss and gradient, numbered; none if no row has another one to beat."""
    X, *columns = part
    if not X.shape[0]:
        return []
    queries = Queries.of(*columns)
    wins = queries.first_loser < queries.query_end
    if select_windows(loss, queries).skipped == len(queries) or not queries.weight[wins].any():
        return []
    return [(number, Descent(LinearProblem(Linear.of(X), queries, loss), CoordinateDescent()))]


def minimize_lbfgs(
    spark: Any, parts: BroadcastParts, width: int, loss: Domination, penalty: Separable, settings: CoordinateDescent
) -> Solution:  # fmt: skip
    """The minimum over one w of the parts' losses and the penalty."""
    from pyspark import StorageLevel
    from scipy.optimize import minimize

    broadcast = spark.sparkContext.broadcast(loss)
    descents = parts.flat_map(lambda number, part: _descents(number, part, broadcast.value))
    descents.persist(StorageLevel.MEMORY_AND_DISK)
    objective = Objective(lambda w: _sum_gradients(spark, descents, w), width, penalty, settings)
    try:
        split = penalty.l1 > 0.0
        limits = {"maxiter": settings.max_iter, "maxfun": 3 * settings.max_iter + 100, "maxcor": LBFGS_MEMORY}
        if not objective.last.info["converged"]:
            minimize(
                objective, np.zeros(2 * width if split else width), jac=True, method="L-BFGS-B",
                bounds=[(0.0, None)] * (2 * width) if split else None, callback=objective.step,
                options=limits | {"ftol": 0.0, "gtol": 0.0},
            )  # fmt: skip
        return replace(objective.last, history=tuple(objective.rounds))
    finally:
        descents.unpersist()
        broadcast.destroy()


def _sum_gradients(spark: Any, descents: RDD[tuple[int, Descent]], w: Floats) -> tuple[float, Floats]:
    broadcast = spark.sparkContext.broadcast(w)

    def evaluate(numbered: tuple[int, Descent]) -> tuple[int, Floats]:
        loss, gradient = numbered[1].evaluate(broadcast.value)
        return numbered[0], np.append(gradient, loss)

    try:
        total = ordered_sum(descents.map(evaluate))
    finally:
        broadcast.destroy()
    if total is None:
        raise DataError("nothing to learn: no query has rows of two different grades")
    return float(total[-1]), total[:-1]


class Objective:
    """The objective for L-BFGS, and the last point that it accepted.

    The largest entry of the gradient at w = 0 sets the scale; as in coordinate descent, L-BFGS stops when no optimality
    condition is violated by more than tol times that.
    """

    def __init__(
        self,
        evaluate: Callable[[Floats], tuple[float, Floats]],
        width: int,
        penalty: Separable,
        settings: CoordinateDescent,
    ) -> None:
        self._evaluate, self._penalty, self._settings = evaluate, penalty, settings
        self._evaluated: dict[bytes, Solution] = {}
        self.rounds: list[Round] = []
        loss, gradient = evaluate(np.zeros(width))
        self._scale = float(np.abs(gradient).max(initial=0.0))
        self._at_zero = loss, gradient
        self.last = self._record(np.zeros(width), loss, gradient)

    def __call__(self, point: Floats) -> tuple[float, Floats]:
        """Objective and gradient; with an L1 penalty, of a point in two parts."""
        l1, l2 = self._penalty.l1, self._penalty.l2
        w = self._weights(point)
        loss, gradient = self._at_zero if not w.any() else self._evaluate(w)
        solution = self._record(w, loss, gradient)
        smooth = gradient + 2.0 * l2 * w
        if l1 == 0.0:
            return float(solution.info["objective"]), smooth
        value = loss + l2 * float(np.square(w).sum()) + l1 * float(point.sum())
        return value, np.concatenate([smooth + l1, l1 - smooth])

    def _weights(self, point: Floats) -> Floats:
        if self._penalty.l1 == 0.0:
            return np.array(point, dtype=np.float64)
        half = len(point) // 2
        return np.asarray(point[:half] - point[half:], dtype=np.float64)

    def _record(self, w: Floats, loss: float, gradient: Floats) -> Solution:
        worst = float(compute_violations(w, gradient, self._penalty).max(initial=0.0))
        converged = worst <= self._settings.tol * self._scale
        solution = make_solution(w.copy(), self._penalty, loss, worst, self._scale, len(self.rounds), converged)
        self._evaluated[w.tobytes()] = solution
        return solution

    def step(self, point: Floats) -> None:
        """Record the point of a step of L-BFGS; raise StopIteration at the optimum."""
        epochs = len(self.rounds) + 1
        solution = self._evaluated[self._weights(point).tobytes()]
        self.last = replace(solution, info={**solution.info, "epochs": epochs})
        self._evaluated.clear()
        info, width = solution.info, len(solution.weights)
        self.rounds.append(Round(epochs, info["objective"], info["violation"], info["nonzeros"], width))
        if info["converged"]:
            raise StopIteration
