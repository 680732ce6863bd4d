"""A training that is killed, for real, and goes on: the same bits as if nothing had happened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from sparserank.bilinear.ranker import BilinearRanker
from sparserank.errors import ConfigError, ModelError

from .test_ranker import PREFS, SETTINGS, X

LONG = SETTINGS | {"max_iter": 40_000, "curve_points": 4}
SCRIPT = """
import sys
from tests.bilinear.test_checkpoint import LONG, PREFS, X, BilinearRanker
BilinearRanker(**LONG, refit=True).fit(X, X, PREFS, checkpoint=sys.argv[1], checkpoint_every=500)
"""


@pytest.mark.slow
def test_kill_9_and_going_on_gives_the_same_bits(tmp_path):
    path, root = tmp_path / "c", Path(__file__).parents[2]
    never_killed = BilinearRanker(**LONG, refit=True).fit(
        X, X, PREFS, checkpoint=tmp_path / "other", checkpoint_every=500
    )
    kills = 0
    for patience in (0.0, 0.3, 0.9):
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(path)], cwd=root, env=os.environ | {"PYTHONPATH": str(root)}
        )
        before = path.read_bytes() if path.exists() else b""
        while process.poll() is None and (not path.exists() or path.read_bytes() == before):
            time.sleep(0.01)
        time.sleep(patience)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.wait()
    assert kills
    resumed = BilinearRanker(**LONG, refit=True).fit(X, X, PREFS, checkpoint=path, checkpoint_every=500)
    assert np.array_equal(resumed.W_.toarray(), never_killed.W_.toarray())
    assert resumed.n_iter_ == 40_000
    assert not path.exists()


@pytest.mark.parametrize("refit", [False, True])
@pytest.mark.parametrize("wanted", [{}, {"density": 0.2}])
def test_every_checkpoint_leads_to_the_same_bits(tmp_path, monkeypatch, refit, wanted):
    from sparserank.bilinear.checkpoint import Checkpoint

    kept = []
    write = Checkpoint.write

    def spy(self, *about):
        write(self, *about)
        kept.append(self.path.read_bytes())

    monkeypatch.setattr(Checkpoint, "write", spy)
    whole = BilinearRanker(**SETTINGS, refit=refit, **wanted)
    whole.fit(X, X, PREFS, checkpoint=tmp_path / "c", checkpoint_every=250)
    assert len(kept) == (6 if refit else 3)
    monkeypatch.setattr(Checkpoint, "write", write)
    for content in kept:
        (tmp_path / "c").write_bytes(content)
        again = BilinearRanker(**SETTINGS, refit=refit, **wanted)
        again.fit(X, X, PREFS, checkpoint=tmp_path / "c", checkpoint_every=250)
        assert np.array_equal(again.W_.toarray(), whole.W_.toarray())
        assert again.solution_.info["alpha"] == whole.solution_.info["alpha"]


def test_a_checkpoint_of_another_training_raises(tmp_path, monkeypatch):
    from sparserank.bilinear.checkpoint import Checkpoint

    monkeypatch.setattr(Checkpoint, "remove", lambda self: None)
    BilinearRanker(**SETTINGS).fit(X, X, PREFS, checkpoint=tmp_path / "c", checkpoint_every=100)
    with pytest.raises(ModelError, match="other parameters or data"):
        BilinearRanker(**SETTINGS | {"alpha": 1e-3}).fit(X, X, PREFS, checkpoint=tmp_path / "c", checkpoint_every=100)
    with pytest.raises(ConfigError, match="random_state"):
        BilinearRanker(**SETTINGS | {"random_state": None}).fit(X, X, PREFS, checkpoint=tmp_path / "d")
