"""PairLearner: the weights W of word pairs for given hyperparameters.  score = lexical + pair_weight · qᵀ W d

The squared loss finds the pairs: its closed form is pruned to the budget. Then the weights of these pairs are refitted,
by the squared loss or by another one on candidate lists. `model_selection` chooses the hyperparameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..errors import ConfigError
from ..optim.candidate_lists import CandidateLists, RerankingProblem
from ..optim.closed_form import MAX_SIZE, ClosedForm
from ..optim.losses import Domination, Hinge, Softmax
from ..optim.pattern_adagrad import PatternAdagrad
from ..optim.pattern_l1 import PatternL1
from ..optim.pattern_ridge import PatternRidge, product_costs
from ..optim.penalties import NoPenalty, Ridge
from ..optim.problems import ListProblem
from ..optim.pruning import Importance, PairBudget, RowPruning, empty_pattern, prune, prune_rows
from .candidates import CandidateSearch
from .constraints import PairConstraints
from .progress import Report, part_of, silent
from .training_data import TrainingMatrices

if TYPE_CHECKING:
    from scipy.sparse import csr_array

PENALTIES = ("ridge", "l1")
LOSSES: dict[str, Domination | Softmax | Hinge] = {"softmax": Softmax(), "domination": Domination(), "hinge": Hinge()}
RATES = (0.1, 0.3, 1.0)
"""Learning rates of the losses to try."""
HARD_NEGATIVES, RANDOM_NEGATIVES = 100, 30
"""Documents of a candidate list in addition to the relevant ones: the best by the lexical score, and random ones."""
TEMPERATURE = 2.0
"""The losses see scores in units of the standard deviation of the lexical scores in the lists, divided by this."""
FIRST_FACTOR, FIRST_STEPS, STEPS = 3, 6, 10
"""The first pruning keeps this many times the budget and refits in this many steps; the second one keeps the budget."""
PATTERN_RIDGE_FACTOR = 3.0
"""A sparse pattern regularizes W by itself, so a refit divides the ridge of documents by this number."""
MAX_REFIT_COST = 2e10
"""Multiplications in one product of a refit, up to which a refit is tried before another loss."""
MAX_REFIT_PAIRS = 500_000
"""Pairs up to which a refit is tried before another loss: on held-out training queries of NFCorpus, nDCG@10 rises from
.3637 to .3677 with 300,000 pairs and falls from .3755 to .3712 with 1,000,000."""
FOUND = 0.4
"""The part of the progress that finds the pairs of a refit."""
MAX_PART, MAX_PART_SCORES = 20_000, 1 << 28
"""Documents and scores of a part of the lists from which incremental training learns."""


@dataclass(frozen=True)
class PairLearner:
    """Learn word pairs within a budget.

    loss : 'squared', or 'softmax', 'domination' or 'hinge', which continue from the squared loss.
    penalty : 'ridge' with pruning, or 'l1', which is made strong enough for the budget.
    max_size : the largest Gram matrix of the closed form.
    solver : refits W by the squared loss.
    """

    budget: PairBudget = field(default_factory=PairBudget)
    loss: str = "squared"
    penalty: str = "ridge"
    constraints: PairConstraints = field(default_factory=PairConstraints)
    random_state: int = 0
    n_jobs: int | None = None
    max_size: int = MAX_SIZE
    solver: PatternRidge = field(default_factory=PatternRidge)

    def __post_init__(self) -> None:
        validation.choice("loss", self.loss, ("squared", *LOSSES))
        validation.choice("penalty", self.penalty, PENALTIES)
        if self.penalty == "l1" and self.loss != "squared":
            raise ConfigError(
                f"penalty='l1' needs loss='squared'. Got loss={self.loss!r}. Use loss='squared' or penalty='ridge', "
                "which prunes W to the budget."
            )

    def refits(self) -> tuple[bool, ...]:
        """Return which variants to try: W pruned to the budget (False), W refitted by the squared loss (True), or both.

        A refit makes some weights negative, and dropping those costs more than the refit gains.
        """
        if self.budget.nonnegative:
            return (False,)
        if self.loss == "squared":
            return (True,)
        return (False, True) if self.budget.pairs <= MAX_REFIT_PAIRS else (False,)

    def can_refit(self, lists: ListProblem, found: csr_array | None) -> bool:
        """Return whether a refit of what `find_pairs` returned takes a small part of the training time.

        A refit of long queries, whose products read documents, would dominate it.
        """
        return (
            self.loss == "squared"
            or found is None
            or min(product_costs(lists, found, self.solver.max_words)) <= MAX_REFIT_COST
        )

    def fit(
        self,
        closed_form: ClosedForm,
        lists: ListProblem,
        query_normalization: float,
        ridge: Ridge,
        refit: bool = True,
        found: csr_array | None = None,
        report: Report = silent,
    ) -> csr_array:
        """Return W for the squared loss, pruned to the budget.

        refit : prune to a multiple of the budget first, refit by the squared loss, prune to the budget, refit again.
        found : what `find_pairs` returned, if it was called already.
        report : called with the fraction that is done.
        """
        problem, limits = replace(lists, query_normalization=query_normalization), self.constraints
        importance, budget = Importance.of(problem, ridge), self.budget
        loose = replace(ridge, document=ridge.document / PATTERN_RIDGE_FACTOR)

        def solve(W: csr_array, steps: int, begin: float, end: float) -> csr_array:
            solver = replace(self.solver, max_iter=steps, n_jobs=self.n_jobs)
            W, fixed = limits.with_pinned(W)
            return solver.solve(problem, loose, W, fixed, part_of(report, begin, end)).weights

        if self.penalty == "l1":
            W = PatternL1(loose, budget, limits.forbidden, n_jobs=self.n_jobs).solve_path(problem).weights
            return solve(prune(limits.without_forbidden_words(W), importance, budget), STEPS, 0.5, 1.0)
        if found is None:
            found = self.find_pairs(closed_form, lists, query_normalization, ridge, refit, report)
        if not refit:
            return limits.with_pinned(prune(found, importance, budget))[0]
        W = solve(found, FIRST_STEPS, FOUND, FOUND + (1.0 - FOUND) / 2)
        return solve(prune(W, importance, budget), STEPS, FOUND + (1.0 - FOUND) / 2, 1.0)

    def find_pairs(
        self,
        closed_form: ClosedForm,
        lists: ListProblem,
        query_normalization: float,
        ridge: Ridge,
        refit: bool = True,
        report: Report = silent,
    ) -> csr_array:
        """Return the closed form pruned to the budget, or to the multiple of it from which a refit starts.

        The pairs of the budget are among those of the multiple, so `fit` without a refit may start from it as well.
        """
        problem, limits = replace(lists, query_normalization=query_normalization), self.constraints
        importance, budget = Importance.of(problem, ridge), self.budget.times(FIRST_FACTOR if refit else 1)
        step, words = part_of(report, 0.0, FOUND if refit else 1.0), limits.forbidden_words
        pruning = RowPruning(problem.shape, importance, budget, limits.forbidden, words, self.n_jobs, step)
        return closed_form.compute_weights(problem, ridge, pruning)

    def fit_residual(
        self,
        lists: ListProblem,
        before: csr_array,
        query_normalization: float,
        ridge: Ridge,
        rows: NDArray[np.bool_] | None = None,
    ) -> csr_array:
        """Return the change of `before` that fits the residual of these lists, within the budget; only in these rows.

        Lists that are too large for dense matrices are divided by queries. Each part starts from the result
        of the parts before it, and uses the judged documents and an even sample of the others.
        """
        importance, limits, change = Importance.of(lists, ridge), self.constraints, empty_pattern(lists.shape)
        for part in _dense_parts(replace(lists, query_normalization=query_normalization)):
            W = (before + change).tocsr()
            residual = part.dense_targets() - (part.D @ (part.Q @ W).T).toarray().T
            if rows is not None:
                part = replace(part, Q=_only_columns(part.Q, rows))
            form = ClosedForm(part.D, max(MAX_PART, *part.grades.shape))
            blocks = form.iterate_rows(part, ridge, np.asarray(residual, dtype=np.float32))
            added = prune_rows(blocks, part.shape, importance, self.budget, limits.forbidden, limits.forbidden_words)
            change = added if not change.nnz else prune((change + added).tocsr(), importance, self.budget)
        return change

    def candidate_lists(self, data: TrainingMatrices, search: CandidateSearch) -> CandidateLists:
        """Return the lists that `loss` compares, with their lexical scores."""
        negatives = search.top(data, HARD_NEGATIVES)
        lists = CandidateLists.build(data.lists, data.excluded, negatives, RANDOM_NEGATIVES, self.random_state)
        return data.with_lexical_scores(lists, self.n_jobs)

    def refit_by_loss(
        self,
        W: csr_array,
        data: TrainingMatrices,
        lists: CandidateLists,
        pair_weight: float,
        rate: float,
        epochs: int,
        report: Callable[[float], None] | None = None,
    ) -> Iterator[csr_array]:
        """Return W after each epoch of `loss` on candidate lists, starting from the weights of the squared loss."""
        W, fixed = self.constraints.with_pinned(W)
        W.sort_indices()
        unit = float(np.std(lists.base, dtype=np.float64)) / TEMPERATURE or 1.0
        scaled, scale = W.copy(), np.float32(pair_weight / unit)
        scaled.data = scaled.data * scale
        lists = replace(lists, base=lists.base / np.float32(unit))
        problem = RerankingProblem(data.lists.Q, data.lists.D, lists, LOSSES[self.loss])
        solver = PatternAdagrad(epochs, rate, seed=self.random_state, n_jobs=self.n_jobs)
        is_fixed = np.zeros(W.nnz, np.bool_) if fixed is None else fixed
        for _, out in solver.iterate(problem, NoPenalty(), scaled, fixed, self.budget.nonnegative, report):
            out.data = np.where(is_fixed, W.data, out.data / scale)
            out.eliminate_zeros()
            yield out


def _dense_parts(lists: ListProblem) -> Iterator[ListProblem]:
    """The lists in parts of at most MAX_PART documents and MAX_PART_SCORES scores; usually one part.

    If not all documents fit, a part has the relevant documents of its queries, up to half of what fits, and an even
    sample of the others.
    """
    n, m = lists.grades.shape
    most = min(m, MAX_PART)
    queries = max(1, min(MAX_PART, MAX_PART_SCORES // max(most, 1)))
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
