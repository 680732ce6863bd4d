"""Progress messages: the phase at once, then percent and time left."""

from sparserank.text_ranker.progress import Progress


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
