"""What more judged queries change: literally, by behaviour, and without end."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

import sparserank as sr
from sparserank.optim.penalties import Ridge
from sparserank.optim.pruning import PairBudget
from sparserank.text_ranker.incremental import PairChange
from sparserank.text_ranker.pair_learner import PairLearner
from sparserank.text_ranker.training_data import TrainingData

from ..optim.judged_world import dense, some_lists
from .test_learning import world

QUERY = "red car of wood"


@pytest.fixture(scope="module")
def ranker():
    return sr.TextRanker(max_pairs=200).fit(*world())


def rank(ranker, document, query=QUERY):
    return [hit.id for hit in ranker.search(query, 100)].index(document)


def taught(ranker, grades, times=1):
    new = copy(ranker)
    new.max_pairs = 2000
    for _ in range(times):
        new.partial_fit(None, {"q": QUERY}, {"q": grades})
    return new


def change(ranker, grades, **options):
    documents = ranker.index_.documents
    data = TrainingData.validate(documents, {"q": QUERY}, {"q": grades}, negative_grades=True)
    data = replace(data, lexical_rows=ranker.lexical_.documents(documents))
    return PairChange.learn(ranker.model_, data, PairLearner(PairBudget(max_pairs=2000)), **options)


@pytest.mark.parametrize("rows", [None, [True, False, False, True, False, True]])
def test_the_change_is_the_closed_form_of_what_is_missed_written_out(rows):
    """Qᵀ (Q Qᵀ + a)⁻¹ (Y - Q W Dᵀ) (D Dᵀ + b)⁻¹ D, where Q has 0 outside of the rows that may change."""
    lists, ridge = some_lists(below=True), Ridge(0.7, 1.3)
    before = csr_array(np.random.default_rng(2).normal(size=(6, 7)).astype(np.float32))
    Q, D, Y = dense(lists)
    missed, within = Y - Q @ before.toarray() @ D.T, Q if rows is None else Q * np.array(rows)
    left = np.linalg.solve(within @ within.T + 0.7 * np.eye(len(Q)), missed)
    literal = within.T @ left @ np.linalg.solve(D @ D.T + 1.3 * np.eye(len(D)), D)
    mask = None if rows is None else np.array(rows)
    found = PairLearner(PairBudget(1000)).fit_residual(lists, before, 0.5, ridge, mask)
    assert_allclose(found.toarray(), literal, atol=1e-5)


def test_a_document_of_a_grade_below_0_falls_and_one_above_0_rises(ranker):
    first, second = (hit.id for hit in ranker.search(QUERY, 2))
    assert rank(taught(ranker, {first: -1.0}), first) > 0
    assert rank(taught(ranker, {second: 1.0}), second) == 0


def test_a_grade_below_0_pushes_down_and_0_does_nothing(ranker):
    first = ranker.search(QUERY, 1)[0].id
    before, after, untouched = (
        float(one.scores([QUERY], [first])[0, 0])
        for one in (ranker, taught(ranker, {first: -1.0}), taught(ranker, {first: 0.0}))
    )
    assert after < before == untouched


def test_fit_leaves_grades_below_0_out():
    docs, queries, qrels = world()
    told = {q: {**judged, "boat-pink": -1.0} if "boat-pink" not in judged else judged for q, judged in qrels.items()}
    ours, theirs = (sr.TextRanker(max_pairs=200).fit(docs, queries, one) for one in (told, qrels))
    assert ours.model_.named_pairs() == theirs.model_.named_pairs()


def test_first_pairs_are_learned_from_grades_above_0_only():
    docs, queries, qrels = world()
    told = {q: {**judged, "boat-pink": -1.0} if "boat-pink" not in judged else judged for q, judged in qrels.items()}
    ours, theirs = (sr.TextRanker(max_pairs=200).fit(docs).partial_fit(None, queries, one) for one in (told, qrels))
    assert ours.model_.n_pairs
    assert ours.model_.named_pairs() == theirs.model_.named_pairs()


def test_the_same_lesson_again_and_again_changes_less_and_less(ranker):
    """Scores go towards their targets and no further: gain times the target is the most that can be learned."""
    second = ranker.search(QUERY, 2)[1].id
    learned = [
        float(taught(ranker, {second: 1.0}, times).scores([QUERY], [second])[0, 0]) for times in (0, 1, 2, 4, 8, 16)
    ]
    steps = [(b - a) / times for (a, b), times in zip(pairwise(learned), (1, 1, 2, 4, 8), strict=True)]
    assert all(later < earlier for earlier, later in pairwise(steps))
    assert max(learned) < learned[0] + ranker.model_.pair_weight


def test_a_part_of_a_change_is_that_part_of_every_weight(ranker):
    whole = change(ranker, {"boat-red": 1.0})
    before, half, all_of_it = (whole.apply(PairBudget(2000), strength).W.toarray() for strength in (0.0, 0.5, 1.0))
    assert_allclose(half - before, 0.5 * (all_of_it - before), atol=1e-6)
    assert np.abs(all_of_it - before).max() > 0


def test_a_change_of_few_pairs_keeps_the_largest(ranker):
    whole, few = change(ranker, {"boat-red": 1.0}), change(ranker, {"boat-red": 1.0}, max_changes=5)
    assert few.change.nnz == 5
    assert set(few.change.data.tolist()) <= set(whole.change.data.tolist())


def test_a_change_of_neighbouring_words_touches_no_other_row(ranker):
    found = change(ranker, {"boat-red": 1.0}, only_neighbors=True)
    changed = {found.vocabulary.words[row] for row in np.flatnonzero(np.diff(found.change.indptr))}
    assert changed == {"red car", "car wood"}
    new = copy(ranker)
    new.model_ = found.apply(PairBudget(2000))
    assert rank(new, "boat-red") < rank(ranker, "boat-red")
    assert new.search("car wheel") == ranker.search("car wheel")


def test_pinned_pairs_stay_whatever_is_learned(ranker):
    pinned = copy(ranker)
    pinned.pin("car", "boat", 0.25)
    after = taught(pinned, {"boat-red": 1.0}, times=3)
    assert after.model_.named_pairs()["car", "boat"] == pytest.approx(0.25)
