"""After a rollback all feedback can be learned again, on top of the version that is served."""

from __future__ import annotations

import json

import pytest

import sparserank as sr
from sparserank.service.learning import rounds
from sparserank.service.learning.gate import HeldOutJudgments
from sparserank.service.learning.rounds import is_due, run_round
from sparserank.versions import VersionRegistry

from ...cli.calling import call
from ...text_ranker.test_learning import world
from .test_rounds import QUERY, Store, rank, third


@pytest.fixture
def versions(tmp_path):
    sr.TextRanker(max_pairs=200).fit(*world()).save(tmp_path / "model")
    return VersionRegistry.open(tmp_path / "model")


def test_all_feedback_is_learned_again_in_as_many_rounds_as_it_takes(versions, monkeypatch, capsys):
    _, queries, qrels = world()
    judgments, store = HeldOutJudgments("world", queries, qrels), Store()
    document = third(versions)
    store.say(QUERY, document)
    run_round(versions, store, judgments=judgments)
    store.say("blue ship of wood", "bicycle-blue")
    run_round(versions, store, judgments=judgments)
    versions.rollback(1)
    assert not is_due(versions, store.last()), "going back is not undone by itself"
    assert call("model", "relearn", versions.model, "--json") == 0
    told = json.loads(capsys.readouterr().out)["said"]
    assert told == "all feedback will be learned again, on top of version 1"
    monkeypatch.setattr(rounds, "MAX_QUERIES_PER_ROUND", 1)
    taken = []
    while is_due(versions, store.last()) and len(taken) < 5:
        outcome = run_round(versions, store, judgments=judgments)
        taken.append((outcome.outcome, outcome.looked_through))
    assert [through for _, through in taken] == [1, 2]
    assert taken[0][0] == "learned"
    assert versions.current().parent in (1, versions.current().number - 1)
    assert rank(versions, document) < 2
    assert not is_due(versions, store.last()), "once"
