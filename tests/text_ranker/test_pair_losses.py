"""Word pairs by each loss and penalty: chosen on held-out queries, within the budget, edits kept."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

from sparserank.errors import ConfigError
from sparserank.optim.closed_form import ClosedForm
from sparserank.optim.penalties import Ridge
from sparserank.optim.problems import ListProblem
from sparserank.optim.pruning import PairBudget
from sparserank.text_ranker.candidates import CandidateSearch
from sparserank.text_ranker.constraints import PairConstraints
from sparserank.text_ranker.model_selection import learn_pairs
from sparserank.text_ranker.pair_learner import PairLearner
from sparserank.text_ranker.training_data import TrainingMatrices

from .planted_synonyms import as_rows, learned_scores, lexical_scores, mean_ndcg

WORDS = 12


@pytest.fixture(scope="module")
def judged():
    """A query word i asks for documents that have the word i + 1; the lexical score only knows noise."""
    rng = np.random.default_rng(0)
    Q, D = np.zeros((80, WORDS), np.float32), np.zeros((60, WORDS), np.float32)
    for X in (Q, D):
        for row in X:
            row[rng.choice(WORDS, 3, replace=False)] = 0.577
    wanted = Q @ np.roll(np.eye(WORDS), 1, axis=1) @ D.T
    grades = csr_array(np.where(wanted > 0.6, 2.0, np.where(wanted > 0.5, 1.0, 0.0)).astype(np.float32))
    lists = ListProblem(csr_array(Q), csr_array(D), grades)
    return TrainingMatrices(lists, as_rows(rng.normal(size=wanted.shape)), np.full(80, -1, np.int64))


@pytest.mark.parametrize(
    ("loss", "penalty"),
    [("squared", "ridge"), ("squared", "l1"), ("softmax", "ridge"), ("domination", "ridge"), ("hinge", "ridge")],
)
def test_every_loss_and_penalty_learns_what_is_asked_for_within_the_budget(judged, loss, penalty):
    W, choice = learn_pairs(PairLearner(PairBudget(40), n_jobs=1, loss=loss, penalty=penalty), judged)
    assert 0 < W.nnz <= 40
    learned = mean_ndcg(judged, learned_scores(judged, W, choice.pair_weight))
    assert learned > mean_ndcg(judged, lexical_scores(judged)) + 0.3


@pytest.mark.parametrize("loss", ["softmax", "domination", "hinge"])
def test_a_loss_is_used_where_it_beats_the_squared_one_on_held_out_queries_and_only_there(judged, loss):
    learner = PairLearner(PairBudget(15), n_jobs=1, loss=loss)
    W, choice = learn_pairs(learner, judged)
    (_, squared), *others = choice.tried
    best = max(ndcg for _, ndcg in others)
    assert choice.ndcg == max(best, squared)
    assert (choice.epochs > 0) == (best > squared)
    start = learner.fit(ClosedForm(judged.lists.D), judged.lists, choice.query_normalization, choice.ridge)
    assert (W.toarray() != start.toarray()).any() == (best > squared)


@pytest.mark.parametrize("loss", ["softmax", "domination", "hinge"])
def test_a_loss_starts_from_the_weights_of_the_squared_one_and_a_small_rate_changes_little(judged, loss):
    learner = PairLearner(PairBudget(40), n_jobs=1, loss=loss)
    lists = learner.candidate_lists(judged, CandidateSearch.of(judged, 1))
    W = learner.fit(ClosedForm(judged.lists.D), judged.lists, 0.5, Ridge())
    (little,) = learner.refit_by_loss(W, judged, lists, 20.0, 1e-6, 1)
    assert_allclose(little.toarray(), W.toarray(), atol=1e-5)
    epochs = list(learner.refit_by_loss(W, judged, lists, 20.0, 0.1, 3))
    assert len(epochs) == 3
    assert all(one.nnz <= 40 for one in epochs)


@pytest.mark.parametrize("loss", ["softmax", "domination", "hinge"])
def test_pinned_and_forbidden_pairs_are_kept_and_no_weight_is_below_zero_where_none_may_be(judged, loss):
    pinned = csr_array(([0.25], ([0], [7])), shape=(WORDS, WORDS), dtype=np.float32)
    forbidden = csr_array(([1.0], ([3], [4])), shape=(WORDS, WORDS), dtype=np.float32)
    learner = PairLearner(
        PairBudget(30, nonnegative=True), n_jobs=1, loss=loss, constraints=PairConstraints(pinned, forbidden)
    )
    W = learner.fit(ClosedForm(judged.lists.D), judged.lists, 0.5, Ridge())
    lists = learner.candidate_lists(judged, CandidateSearch.of(judged, 1))
    *_, again = learner.refit_by_loss(W, judged, lists, 20.0, 0.3, 2)
    assert not np.array_equal(again.toarray(), W.toarray())
    assert again[0, 7] == np.float32(0.25)
    assert again[3, 4] == 0.0
    assert (again.data >= 0.0).all()


def test_what_cannot_be_solved_is_rejected_with_what_would_work():
    with pytest.raises(ConfigError, match=r"penalty='l1' needs loss='squared'.*penalty='ridge'"):
        PairLearner(PairBudget(5), loss="softmax", penalty="l1")
    with pytest.raises(ConfigError, match="'squared', 'softmax', 'domination', 'hinge'"):
        PairLearner(PairBudget(5), loss="cubic")
    with pytest.raises(ConfigError, match="'ridge', 'l1'"):
        PairLearner(PairBudget(5), penalty="l0")
