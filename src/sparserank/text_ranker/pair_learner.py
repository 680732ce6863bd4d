"""PairLearner: the weights W of word pairs for given hyperparameters.  score = lexical + pair_weight · qᵀ W d

The squared loss finds the pairs: its closed form is pruned to the budget and refitted. Another loss may then refit the
weights of these pairs. `model_selection` chooses the hyperparameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..errors import ConfigError
from ..optim.closed_form import LARGEST_GRAM, ClosedForm, iterate_first_step_rows, iterate_weight_rows
from ..optim.losses import Domination, Hinge, Softmax
from ..optim.pattern_hinge import PatternHinge
from ..optim.pattern_l1 import PatternL1
from ..optim.pattern_lbfgs import Negatives, PatternLBFGS
from ..optim.pattern_ridge import PatternRidge
from ..optim.penalties import L2, NoPenalty, Ridge
from ..optim.problems import ListProblem, RerankingProblem
from ..optim.pruning import Importance, PairBudget, prune, prune_rows
from . import training_data
from .constraints import PairConstraints
from .training_data import TrainingMatrices

if TYPE_CHECKING:
    from scipy.sparse import csr_array

PENALTIES = ("ridge", "l1")
LOSSES: dict[str, Domination | Softmax | Hinge] = {"softmax": Softmax(), "domination": Domination(), "hinge": Hinge()}
STRENGTHS: dict[str, tuple[float, ...]] = {
    "squared": (),
    "softmax": (0.1, 0.01),
    "domination": (0.1, 0.01, 0.001),
    "hinge": (1.0, 3.0, 10.0),
}
"""The losses, and the strengths to try for each: the pull towards the squared loss's weights (softmax, domination), or
the step size of a triple (hinge)."""
FIRST_FACTOR, FIRST_STEPS, STEPS = 3, 6, 10
"""The first pruning keeps this many times the budget and refits in this many steps; the second one keeps the budget."""
PATTERN_RIDGE_FACTOR = 3.0
"""A sparse pattern regularizes W by itself, so a refit divides the ridge of documents by this number."""
LBFGS_STEPS, TRIPLES_PER_QUERY, QUERIES_PER_BATCH = 10, 200, 256


@dataclass(frozen=True)
class PairLearner:
    """Learn word pairs within a budget.

    loss : 'squared', or 'softmax', 'domination' or 'hinge', which continue from the squared loss.
    penalty : 'ridge' with pruning, or 'l1', which is made strong enough for the budget.
    solver : refits W by the squared loss; its operator may compute on a cluster.
    """

    budget: PairBudget = field(default_factory=PairBudget)
    loss: str = "squared"
    penalty: str = "ridge"
    constraints: PairConstraints = field(default_factory=PairConstraints)
    random_state: int = 0
    n_jobs: int | None = None
    solver: PatternRidge = field(default_factory=PatternRidge)

    def __post_init__(self) -> None:
        validation.choice("loss", self.loss, tuple(STRENGTHS))
        validation.choice("penalty", self.penalty, PENALTIES)
        if self.penalty == "l1" and self.loss != "squared":
            raise ConfigError(
                f"penalty='l1' needs loss='squared'. Got loss={self.loss!r}. Use loss='squared' or penalty='ridge', "
                "which prunes W to the budget."
            )

    def fit(self, closed_form: ClosedForm, lists: ListProblem, query_normalization: float, ridge: Ridge) -> csr_array:
        """Return W for the squared loss, pruned to the budget and refitted."""
        problem, limits = replace(lists, query_normalization=query_normalization), self.constraints
        importance, budget = Importance.of(problem, ridge), self.budget
        loose = replace(ridge, document=ridge.document / PATTERN_RIDGE_FACTOR)

        def refit(W: csr_array, steps: int) -> csr_array:
            solver = replace(self.solver, max_iter=steps, n_jobs=self.n_jobs)
            W, fixed = limits.with_pinned(W)
            return solver.solve(problem, loose, W, fixed).weights

        if self.penalty == "l1":
            W = PatternL1(loose, budget, limits.forbidden, n_jobs=self.n_jobs).solve_path(problem).weights
            return refit(prune(limits.without_barred(W), importance, budget), STEPS)
        if has_closed_form(problem):
            rows = iterate_weight_rows(problem, closed_form.solve_duals(problem, ridge))
        else:
            rows = iterate_first_step_rows(problem, ridge)
        first = budget if budget.nonnegative else budget.times(FIRST_FACTOR)
        W = prune_rows(rows, problem.shape, importance, first, limits.forbidden, limits.barred)
        if budget.nonnegative:  # a refit makes some weights negative, and dropping those costs more than it gains
            return limits.with_pinned(W)[0]
        return refit(prune(refit(W, FIRST_STEPS), importance, budget), STEPS)

    def fit_residual(
        self,
        lists: ListProblem,
        before: csr_array,
        query_normalization: float,
        ridge: Ridge,
        rows: NDArray[np.bool_] | None = None,
    ) -> csr_array:
        """Return what to add to `before` so that it fits these lists better, within the budget; only in these rows.

        Lists that are too large for dense matrices are divided by queries. Each part starts from what the parts before
        it learned, and uses the judged documents and an even sample of the others.
        """
        importance, limits, learned = Importance.of(lists, ridge), self.constraints, empty_weights(lists.shape)
        for part in _dense_parts(replace(lists, query_normalization=query_normalization)):
            W = (before + learned).tocsr()
            residual = part.dense_targets() - (part.D @ (part.Q @ W).T).toarray().T
            if rows is not None:
                part = replace(part, Q=_only_columns(part.Q, rows))
            duals = ClosedForm(part.D).solve_duals(part, ridge, np.asarray(residual, dtype=np.float32))
            blocks = iterate_weight_rows(part, duals)
            added = prune_rows(blocks, part.shape, importance, self.budget, limits.forbidden, limits.barred)
            learned = added if not learned.nnz else prune((learned + added).tocsr(), importance, self.budget)
        return learned

    def refit_by_loss(
        self, W: csr_array, data: TrainingMatrices, pair_weight: float, strength: float | None
    ) -> csr_array:
        """Return W with its weights refitted by `loss`, starting from those of the squared loss; None: W as it is.

        The loss sees scores in units of the standard deviation of the lexical scores.
        """
        if strength is None:
            return W
        W, fixed = self.constraints.with_pinned(W)
        data = data.dense()
        unit = float(np.std(data.lexical_scores, dtype=np.float64)) or 1.0
        scaled, scale = W.copy(), np.float32(pair_weight / unit)
        scaled.data = scaled.data * scale
        problem = RerankingProblem(data.lists, data.lexical_scores / np.float32(unit), data.excluded, LOSSES[self.loss])
        if self.loss == "hinge":
            hinge = PatternHinge(TRIPLES_PER_QUERY * max(1, len(data)), strength, seed=self.random_state)
            out = hinge.solve(problem, NoPenalty(), scaled, fixed, self.budget.nonnegative).weights
        else:
            batch = QUERIES_PER_BATCH if data.lists.D.shape[0] > LARGEST_GRAM else 0
            lbfgs = PatternLBFGS(LBFGS_STEPS, Negatives(batch, seed=self.random_state), self.n_jobs)
            out = lbfgs.solve(problem, L2(0.5 * strength), scaled, fixed, self.budget.nonnegative).weights
        out.data = np.where(np.zeros(out.nnz, np.bool_) if fixed is None else fixed, W.data, out.data / scale)
        out.eliminate_zeros()
        return out


def has_closed_form(lists: ListProblem) -> bool:
    """Whether the Gram matrices of queries and documents fit in memory."""
    return bool(max(lists.grades.shape) <= LARGEST_GRAM)


def _dense_parts(lists: ListProblem) -> Iterator[ListProblem]:
    """The lists in parts of at most LARGEST_GRAM documents and MAX_DENSE_SCORES scores; usually one part.

    If not all documents fit, a part has the relevant documents of its queries, up to half of what fits, and an even
    sample of the others.
    """
    n, m = lists.grades.shape
    most = min(m, LARGEST_GRAM)
    queries = max(1, min(LARGEST_GRAM, training_data.MAX_DENSE_SCORES // max(most, 1)))
    start = 0
    while start < n:
        end = min(start + queries, n)
        if m > most:
            fitting = int(np.searchsorted(lists.grades.indptr, lists.grades.indptr[start] + most // 2, "right")) - 1
            end = max(start + 1, min(end, fitting))
        part = lists.select_queries(np.arange(start, end))
        if m > most:
            relevant = _even_sample(np.unique(part.grades.indices), most // 2)
            others = _even_sample(np.setdiff1d(np.arange(m), relevant, assume_unique=True), most - len(relevant))
            some = np.union1d(relevant, others)
            part = replace(part, D=part.D[some], grades=part.grades[:, some])
        yield part
        start = end


def _even_sample(numbers: NDArray[Any], most: int) -> NDArray[Any]:
    """At most this many of the numbers, evenly spaced."""
    return numbers if len(numbers) <= most else numbers[np.linspace(0, len(numbers) - 1, most).astype(np.intp)]


def _only_columns(Q: csr_array, columns: NDArray[np.bool_]) -> csr_array:
    Q = Q.copy()
    Q.data[~columns[Q.indices]] = 0.0
    Q.eliminate_zeros()
    return Q


def empty_weights(shape: tuple[int, int]) -> csr_array:
    """Return a W without pairs."""
    from scipy.sparse import csr_array

    return csr_array(shape, dtype=np.float32)
