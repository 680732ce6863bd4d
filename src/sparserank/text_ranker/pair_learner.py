"""Word pairs learned from judged queries, to be added to a lexical score:  score = lexical + gain · qᵀ W d.

What a user would have to choose – how far W is held back, how much it counts – is chosen on training queries that are
held out; where nothing beats the lexical score on them, the gain is 0 and W stays empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..optim.closed_form import (
    LARGEST_GRAM,
    ClosedForm,
    compute_gram,
    factorize,
    iterate_first_step_rows,
    iterate_weight_rows,
    solve_factorized,
)
from ..optim.pattern_l1 import PatternL1
from ..optim.pattern_ridge import PatternRidge
from ..optim.penalties import Ridge
from ..optim.problems import ListProblem, Matrix
from ..optim.pruning import Importance, PairBudget, prune, prune_rows
from . import training_data as judging
from .fixed_pairs import Edits, refit, told
from .pair_losses import STRENGTHS, Relearning, checked
from .training_data import Folds, Judged, held_out, held_out_scores

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Tell = Callable[[str], None]

HELD_BACK = (0.3, 1.0, 3.0)
EVENNESS = (0.25, 0.5)
GAINS = (0.1, 0.14, 0.2, 0.28, 0.4, 0.56, 0.8, 1.1, 1.6, 2.2, 3.1)
"""What is tried: a and b of the penalty, how even queries count, and how far pairs spread beside the lexical scores."""
FIRST, FIRST_STEPS, STEPS = 3, 6, 10
"""So many times the pairs wanted are refitted first, for so many steps; then the best of them, once more."""
LOOSER = 3.0
"""A pattern holds W back by itself: on it, b is so many times smaller."""


@dataclass(frozen=True)
class Choice:
    """What was chosen, and nDCG@10 of the lexical score and of the learned one on the queries held out.

    strength : of a loss other than the squared one; None where the squared one is used, or is better.
    p_value : of the gain on held-out queries, on which the decision to keep pairs is made.
    """

    evenness: float
    ridge: Ridge
    gain: float
    lexical: float
    learned: float
    strength: float | None = None
    tried: tuple[tuple[str, float], ...] = ()
    p_value: float = 1.0


@dataclass(frozen=True)
class Chosen:
    """Documents ready to be solved on, how far W is held back, and the p-value of the gain of W before it is pruned.

    p_value : None where nothing was tuned and so nothing can be said yet.
    """

    form: ClosedForm
    evenness: float
    ridge: Ridge
    p_value: float | None = None


@dataclass(frozen=True)
class PairLearner:
    """How pairs are learned; `learn` chooses, fits and cuts.

    loss : 'squared', or one that goes on from there: 'softmax', 'domination', 'hinge'.
    penalty : 'ridge', and W is cut to the pairs that are wanted; or 'l1', and so much of it that no more are left.
    solver : refits W by the squared loss; its operator may compute on a cluster.
    """

    budget: PairBudget
    seed: int = 0
    n_jobs: int | None = None
    edits: Edits = field(default_factory=Edits)
    loss: str = "squared"
    penalty: str = "ridge"
    solver: PatternRidge = field(default_factory=PatternRidge)

    def __post_init__(self) -> None:
        checked(self.loss, self.penalty)

    def learn(self, judged: Judged, tell: Tell = lambda message: None) -> tuple[csr_array, Choice]:
        """W and what was chosen; the gain is that of a W learned from the queries that were not held out."""
        folds = self.folds(judged)
        chosen = self.chosen(folds, tell)
        form, evenness, ridge = chosen.form, chosen.evenness, chosen.ridge
        asked = Judged.joined([held for _, held in folds])
        p_value = chosen.p_value
        if p_value is not None and p_value > judging.SIGNIFICANCE_LEVEL:
            lexical = asked.worth(asked.lexical)
            return _empty(judged.lists.shape), Choice(evenness, ridge, 0.0, lexical, lexical, p_value=p_value)
        tell("learning pairs without the held-out queries")
        parts = [self.fit(form, part.lists, evenness, ridge) for part, _ in folds]
        level = judging.SIGNIFICANCE_LEVEL if p_value is None else judging.PRUNED_LEVEL
        choice = self.gain(held_out_scores(parts, folds), asked, evenness, ridge, level)
        if p_value is not None and choice.gain > 0.0:
            choice = replace(choice, p_value=p_value)
        choice = self._strength(parts, folds, asked, choice, tell)
        if choice.gain == 0.0:
            return _empty(judged.lists.shape), choice
        tell("learning pairs from all queries")
        return self._relearned(self.fit(form, judged.lists, evenness, ridge), judged, choice), choice

    def folds(self, judged: Judged) -> Folds:
        """Queries to learn from and queries to choose on; of very many documents, fewer of the latter."""
        most = max(1, judging.MOST_SCORES // max(int(judged.lists.D.shape[0]), 1))
        groups = np.arange(len(judged)) if judged.groups is None else judged.groups
        return [(judged.of(rest), judged.of(held[:most]).made()) for held, rest in held_out(groups, self.seed)]

    def chosen(self, folds: Folds, tell: Tell) -> Chosen:
        """Evenness, a and b that are best on the held-out queries, by the scores of W as it is before it is cut."""
        form, asked = ClosedForm(folds[0][0].lists.D), Judged.joined([held for _, held in folds])
        if max(folds[0][0].lists.grades.shape) > LARGEST_GRAM:
            return Chosen(form, EVENNESS[0], Ridge())
        tell("choosing how far pairs are held back")
        factors = {b: form.factorize(b) for b in HELD_BACK}
        best, chosen, all_tried = -1.0, (EVENNESS[0], Ridge()), []
        for tried in zip(*(_dense_scores(factors, part, held) for part, held in folds), strict=True):
            learned = np.concatenate([scores for _, _, scores in tried])
            all_tried.append([asked.ndcg(scores, judging.TEST_DEPTH) for _, scores in _weighted(asked, learned)])
            worth = max(_mean(asked.ndcg(scores)) for _, scores in _weighted(asked, learned))
            if worth > best:
                best, chosen = worth, tried[0][:2]
        return Chosen(form, *chosen, asked.p_value(np.array(all_tried), judging.TEST_DEPTH))

    def fit(self, form: ClosedForm, lists: ListProblem, evenness: float, ridge: Ridge) -> csr_array:
        """W of these lists by the squared loss: the closed form, cut, refitted and cut, or what L1 leaves; refitted."""
        problem, edits = replace(lists, query_normalization=evenness), self.edits
        importance, loose = Importance.of(problem, ridge), replace(ridge, document=ridge.document / LOOSER)
        solver = replace(self.solver, max_iter=STEPS, n_jobs=self.n_jobs)
        if self.penalty == "l1":
            W = PatternL1(problem, loose, edits.forbidden, n_jobs=self.n_jobs).solve_path(self.budget).weights
            return refit(solver, problem, loose, prune(edits.without_barred(W), importance, self.budget), edits)
        rows = self._rows(form, problem, ridge)
        if self.budget.nonnegative:  # a refit would turn some below 0 again, and leaving those out costs more than it
            W = prune_rows(rows, problem.shape, importance, self.budget, edits.forbidden, edits.barred)
            return told(W, edits)[0]
        W = prune_rows(rows, problem.shape, importance, self.budget.times(FIRST), edits.forbidden, edits.barred)
        W = refit(replace(solver, max_iter=FIRST_STEPS), problem, loose, W, edits)
        return refit(solver, problem, loose, prune(W, importance, self.budget), edits)

    def residual(
        self,
        lists: ListProblem,
        before: csr_array,
        evenness: float,
        ridge: Ridge,
        rows: NDArray[np.bool_] | None = None,
    ) -> csr_array:
        """What is to be added to `before` so that these lists are met better, within the budget; to these rows only.

        Lists that are too large for dense matrices are taken some queries at a time, each part after what was learned
        from those before it; of its documents, those that are judged and an even choice of the others count.
        """
        importance, edits, learned = Importance.of(lists, ridge), self.edits, None
        for part in _manageable(replace(lists, query_normalization=evenness)):
            W = before if learned is None else (before + learned).tocsr()
            missed = part.dense_targets() - (part.D @ (part.Q @ W).T).toarray().T
            if rows is not None:
                part = replace(part, Q=_only(part.Q, rows))
            duals = ClosedForm(part.D).solve_duals(part, ridge, np.asarray(missed, dtype=np.float32))
            blocks = iterate_weight_rows(part, duals)
            found = prune_rows(blocks, part.shape, importance, self.budget, edits.forbidden, edits.barred)
            learned = found if learned is None else prune((learned + found).tocsr(), importance, self.budget)
        return _empty(lists.shape) if learned is None else learned

    def _relearned(self, W: csr_array, judged: Judged, choice: Choice) -> csr_array:
        """W by the loss that is wanted, from W by the squared one."""
        if choice.strength is None:
            return W
        W, fixed = told(W, self.edits)
        judged = judged.made()
        relearning = Relearning(self.loss, self.budget.nonnegative, self.seed, self.n_jobs)
        return relearning(W, judged.lists, judged.lexical, judged.own, choice.gain, choice.strength, fixed)

    def _strength(self, parts: list[csr_array], folds: Folds, asked: Judged, choice: Choice, tell: Tell) -> Choice:
        """The strength of the loss that is best on the held-out queries, at the gain of the squared one."""
        best, tried = choice, []
        fits = choice.gain > 0.0 and all(part.fits for part, _ in folds)
        for strength in STRENGTHS[self.loss] if fits else ():
            tell(f"choosing how far the {self.loss} loss goes: {strength:g}")
            one = replace(choice, strength=strength)
            again = [self._relearned(W, part, one) for W, (part, _) in zip(parts, folds, strict=True)]
            worth = asked.worth(asked.lexical + np.float32(choice.gain) * held_out_scores(again, folds))
            tried.append((f"{self.loss} {strength:g}", worth))
            if worth > best.learned:
                best = replace(choice, learned=worth, strength=strength)
        return replace(best, tried=tuple(tried))

    def _rows(self, form: ClosedForm, problem: ListProblem, ridge: Ridge) -> Iterator[tuple[NDArray[np.intp], Matrix]]:
        if max(problem.grades.shape) > LARGEST_GRAM:
            return iterate_first_step_rows(problem, ridge)
        return iterate_weight_rows(problem, form.solve_duals(problem, ridge))

    def gain(
        self,
        learned: Matrix,
        held: Judged,
        evenness: float,
        ridge: Ridge,
        level: float | None = None,
    ) -> Choice:
        """How much learned scores should count beside the lexical ones, by held-out queries; 0 if p > level."""
        lexical, spread, tried = (
            held.worth(held.lexical),
            _spread(learned),
            [(g, held.ndcg(s)) for g, s in _weighted(held, learned)],
        )
        gain, worth = max(((gain, _mean(ndcg)) for gain, ndcg in tried), key=lambda one: one[1])
        if spread > 0.0:
            gain *= (_spread(held.lexical) or 1.0) / spread
        p_value = held.p_value(np.array([[ndcg for _, ndcg in tried]]))
        if p_value > (judging.SIGNIFICANCE_LEVEL if level is None else level):
            return Choice(evenness, ridge, 0.0, lexical, lexical, p_value=p_value)
        return Choice(evenness, ridge, gain, lexical, worth, p_value=p_value)


def _dense_scores(factors: dict[float, Any], part: Judged, held: Judged) -> Iterator[tuple[float, Ridge, Matrix]]:
    """Every evenness, a and b that is tried, and what W would score the held-out queries, uncut."""
    K, across = compute_gram(part.lists.Q), compute_gram(held.lists.Q, part.lists.Q)
    targets = {one: replace(part.lists, query_normalization=one).dense_targets() for one in EVENNESS}
    for a in HELD_BACK:
        left = solve_factorized(factorize(K, a / part.lists.query_weights), np.ascontiguousarray(across.T)).T
        for evenness in EVENNESS:
            smooth = np.ascontiguousarray((left @ targets[evenness]).T)
            for b, factor in factors.items():
                scores = (smooth - np.float32(b) * solve_factorized(factor, smooth)).T
                yield evenness, Ridge(a, b), np.ascontiguousarray(scores)


def _manageable(lists: ListProblem) -> Iterator[ListProblem]:
    """The lists in parts, each with at most `LARGEST_GRAM` documents and `judging.MOST_SCORES` scores; usually one.

    If the documents do not all fit, a part has the relevant documents of its queries – at most half of what fits – and
    an even choice of the others.
    """
    n, m = lists.grades.shape
    most = min(m, LARGEST_GRAM)
    queries = max(1, min(LARGEST_GRAM, judging.MOST_SCORES // max(most, 1)))
    at = 0
    while at < n:
        end = min(at + queries, n)
        if m > most:
            fitting = int(np.searchsorted(lists.grades.indptr, lists.grades.indptr[at] + most // 2, "right")) - 1
            end = max(at + 1, min(end, fitting))
        part = lists.select_queries(np.arange(at, end))
        if m > most:
            judged = _evenly(np.unique(part.grades.indices), most // 2)
            others = _evenly(np.setdiff1d(np.arange(m), judged, assume_unique=True), most - len(judged))
            some = np.union1d(judged, others)
            part = replace(part, D=part.D[some], grades=part.grades[:, some])
        yield part
        at = end


def _evenly(numbers: NDArray[Any], most: int) -> NDArray[Any]:
    """At most so many of the numbers, evenly spaced."""
    return numbers if len(numbers) <= most else numbers[np.linspace(0, len(numbers) - 1, most).astype(np.intp)]


def _only(Q: csr_array, columns: NDArray[np.bool_]) -> csr_array:
    Q = Q.copy()
    Q.data[~columns[Q.indices]] = 0.0
    Q.eliminate_zeros()
    return Q


def _weighted(held: Judged, learned: Matrix) -> Iterator[tuple[float, Matrix]]:
    """The scores of the lexical and the learned part together, for each gain that is tried."""
    spread = _spread(learned)
    unit, base = learned / np.float32(spread or 1.0), held.lexical / np.float32(_spread(held.lexical) or 1.0)
    for gain in GAINS:
        yield (gain, base + np.float32(gain) * unit) if spread else (0.0, base)


def _mean(values: NDArray[np.float64]) -> float:
    return float(np.mean(values)) if len(values) else 0.0


def _spread(scores: Matrix) -> float:
    return float(np.std(scores, dtype=np.float64))


def _empty(shape: tuple[int, int]) -> csr_array:
    from scipy.sparse import csr_array

    return csr_array(shape, dtype=np.float32)
