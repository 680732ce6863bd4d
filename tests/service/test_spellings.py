"""A round of learning sees all that was said about a query, in whatever spelling, from the databases that there are."""

from __future__ import annotations

import pytest

from sparserank.service.feedback import Feedback
from sparserank.service.learning import candidates, rounds
from sparserank.service.learning.gate import HeldOutJudgments
from sparserank.service.learning.grades import GradedQueries, is_held_out
from sparserank.service.store import FeedbackStore
from sparserank.versions import VersionRegistry

from .conftest import world

QUERY = "black number4"


@pytest.fixture
def store(database):
    opened = FeedbackStore(database)
    yield opened
    opened.close()


@pytest.fixture
def few():
    _, queries, qrels = world()
    return HeldOutJudgments("few", *({name: some[name] for name in list(queries)[:6]} for some in (queries, qrels)))


def test_what_was_said_in_one_spelling_is_not_unlearned_by_another(model, store, few, monkeypatch):
    seen = []

    class Watched(candidates.CandidateSearch):
        def run(self):
            seen.append(self.training.grades)
            super().run()

    monkeypatch.setattr(rounds, "CandidateSearch", Watched)
    assert not is_held_out(QUERY)
    versions = VersionRegistry.open(model)
    shown = tuple(hit.id for hit in versions.load().search(QUERY, 3))
    for number in range(5):
        store.add(Feedback(f"a{number}", "judgment", QUERY, shown[0], grade=4.0))
    rounds.run_round(versions, store, judgments=few)
    store.add(Feedback("b1", "judgment", "Black  number4", shown[2]))
    store.add(Feedback("b2", "click", "Black  number4", shown[2], shown=shown))
    rounds.run_round(versions, store, judgments=few)
    assert seen[-1] == GradedQueries.from_feedback(store.since(0)).grades
    assert seen[-1][QUERY][shown[0]] == 4.0
    ranked = [hit.id for hit in versions.load().search(QUERY, 4)]
    assert ranked.index(shown[0]) <= ranked.index(shown[2]), "the one that five called best"
