"""What is shown while W is learned: on a terminal, in a pipe, and that it changes nothing."""

from __future__ import annotations

import re
import sys
from io import StringIO
from itertools import pairwise

import numpy as np
import pytest

from sparserank.bilinear import progress
from sparserank.bilinear.progress import TrainingBar, combine, training_bar
from sparserank.bilinear.ranker import BilinearRanker
from sparserank.errors import ConfigError

from .test_ranker import PREFS, SETTINGS, X

PLAIN = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class Screen(StringIO):
    """A terminal that remembers what it was sent."""

    def isatty(self):
        return True

    def shown(self):
        return PLAIN.sub("", self.getvalue())


@pytest.fixture
def terminal(monkeypatch):
    """Makes stderr a terminal of 100 columns, from the moment it is called."""

    def begin():
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "100")
        screen = Screen()
        monkeypatch.setattr(sys, "stderr", screen)
        return screen

    return begin


@pytest.mark.parametrize("wanted", [{}, {"density": 0.2}])
def test_a_terminal_shows_steps_density_violations_and_memory_of_both_phases(terminal, wanted):
    screen = terminal()
    BilinearRanker(**SETTINGS, refit=True, verbose=True, **wanted).fit(X, X, PREFS)
    shown = screen.shown()
    for phase in ("learning", "refitting"):
        line = re.compile(rf"{phase} .*1,000/1,000 steps  [\d.]+% dense  \d+% violated  [\d.]+ MB 0:00:0\d")
        assert line.search(shown), shown


def test_a_pipe_shows_nothing(capsys):
    BilinearRanker(**SETTINGS, refit=True, verbose=True).fit(X, X, PREFS)
    assert capsys.readouterr() == ("", "")


def test_without_verbose_a_terminal_shows_nothing(terminal):
    screen = terminal()
    BilinearRanker(**SETTINGS).fit(X, X, PREFS)
    assert screen.getvalue() == ""


def test_nothing_to_learn_has_no_bar(terminal):
    screen = terminal()
    BilinearRanker(**SETTINGS | {"max_iter": 0}, verbose=True).fit(X, X, PREFS)
    assert screen.getvalue() == ""


@pytest.mark.parametrize(
    "settings", [{}, {"refit": True}, {"density": 0.2, "refit": True}, {"diagonal": True}, {"prior": "identity"}]
)
def test_looking_changes_no_bit(terminal, monkeypatch, tmp_path, settings):
    monkeypatch.setattr(progress, "UPDATE_INTERVAL_S", 0.0)
    terminal()
    plain = BilinearRanker(**SETTINGS, **settings).fit(X, X, PREFS)
    shown = BilinearRanker(**SETTINGS, **settings, verbose=True).fit(X, X, PREFS, callback=lambda training: None)
    assert np.array_equal(plain.W_.toarray(), shown.W_.toarray())
    assert [p.objective for p in plain.solution_.history] == [p.objective for p in shown.solution_.history]
    plain.fit(X, X, PREFS, checkpoint=tmp_path / "a", checkpoint_every=200)
    shown.fit(X, X, PREFS, checkpoint=tmp_path / "b", checkpoint_every=200)
    assert np.array_equal(plain.W_.toarray(), shown.W_.toarray())


def test_one_may_follow_a_training_and_see_how_far_it_is():
    seen = []
    ranker = BilinearRanker(**SETTINGS | {"refit": True})
    ranker.fit(X, X, PREFS, callback=lambda training: seen.append((training.steps, training.curve.total_steps)))
    steps = [step for step, _ in seen]
    assert all(step == counted for step, counted in seen)
    assert steps[-1] == 1_000
    assert sum(after < before for before, after in pairwise(steps)) == 1, "the refit starts over, and nothing else does"
    pieces = BilinearRanker(**SETTINGS | {"max_iter": 100})
    for end in (100, 200):
        seen.clear()
        pieces.partial_fit(X, X, PREFS, callback=lambda training: seen.append(training.steps))
        assert seen[-1] == end
        assert all(end - 100 < step <= end for step in seen)


def test_pieces_have_bars_of_their_own_length(terminal):
    screen = terminal()
    ranker = BilinearRanker(**SETTINGS | {"max_iter": 100}, verbose=True)
    ranker.partial_fit(X, X, PREFS).partial_fit(X, X, PREFS)
    assert screen.shown().count("100/100 steps") >= 2


def test_a_training_that_is_gone_on_with_shows_how_far_it_was(terminal, monkeypatch, tmp_path):
    from sparserank.bilinear.checkpoint import Checkpoint

    kept = []
    write = Checkpoint.write
    monkeypatch.setattr(Checkpoint, "write", lambda self, *a: (write(self, *a), kept.append(self.path.read_bytes())))
    whole = BilinearRanker(**SETTINGS).fit(X, X, PREFS, checkpoint=tmp_path / "c", checkpoint_every=400)
    (tmp_path / "c").write_bytes(kept[0])
    screen = terminal()
    # threads and bars are no part of what a checkpoint belongs to
    again = BilinearRanker(**SETTINGS, verbose=True, n_jobs=1)
    again.fit(X, X, PREFS, checkpoint=tmp_path / "c", checkpoint_every=400)
    assert "1,000/1,000 steps" in screen.shown()
    assert np.array_equal(again.W_.toarray(), whole.W_.toarray())


def test_one_bar_serves_one_training_after_another(terminal, monkeypatch):
    monkeypatch.setattr(progress, "UPDATE_INTERVAL_S", 0.0)
    screen = terminal()
    with TrainingBar("training", 1_000, leave=False) as bar:
        for method in ("first", "second"):
            bar.set_heading(f"the {method} method")
            BilinearRanker(**SETTINGS).fit(X, X, PREFS, callback=bar)
            bar._live.refresh()
    shown = screen.shown()
    assert "the first method" in shown
    assert "the second method" in shown
    assert not re.search(r"-\d", shown), "no number is negative"


def test_verbose_is_a_flag_and_is_kept_in_the_model_file_like_every_parameter(tmp_path):
    import sparserank as sr

    with pytest.raises(ConfigError, match="'verbose' parameter must be True or False"):
        BilinearRanker(**SETTINGS, verbose=2).fit(X, X, PREFS)
    BilinearRanker(**SETTINGS, verbose=True).fit(X, X, PREFS).save(tmp_path / "w")
    assert sr.load(tmp_path / "w").verbose is True


def test_followers_are_joined():
    heard = []
    assert combine(None, None) is None
    assert combine(None, heard.append) == heard.append
    combine(heard.append, heard.append)("training")
    assert heard == ["training", "training"]
    with training_bar(False, "learning", 10) as bar:
        assert bar is None
