"""Progress messages: the phase at once, then percent and time left."""

import sparserank as sr
from sparserank.text_ranker.progress import Note, Progress

from .test_learning import world


def test_a_phase_tells_percent_and_time_left():
    messages = []
    report = Progress(messages.append, "learning", interval_s=0.0)
    report(0.25)
    report(0.5, "epoch 2")
    assert messages[0] == "learning"
    assert messages[1] == "learning: 25 %, 0 s left"
    assert messages[2] == "learning: epoch 2, 50 %, 0 s left"


def test_messages_are_not_more_frequent_than_the_interval():
    messages = []
    report = Progress(messages.append, "learning", interval_s=100.0)
    for step in range(1, 100):
        report(step / 100)
    assert messages == ["learning"]


def test_two_tries_of_a_phase_have_different_names():
    messages = []
    sr.TextRanker(max_pairs=60).fit(*world(), callback=messages.append)
    phases = [one.partition(": ")[0] for one in messages if not isinstance(one, Note)]
    starts = [name for before, name in zip(["", *phases], phases, strict=False) if name != before]
    assert {"tuning the domination loss", "tuning the domination loss of refitted pairs"} <= set(starts)
    assert len(starts) == len(set(starts))
