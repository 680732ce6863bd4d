"""Checkpoints of a training: killed at any moment, it continues to the same bits."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

import sparserank as sr
from sparserank.errors import ConfigError, ModelError
from sparserank.text_ranker import model_selection, training
from sparserank.text_ranker.checkpoint import Checkpoint

SCRIPT = """
import sys
from tests.text_ranker.test_checkpoint import fit
fit(sys.argv[1]).save(sys.argv[2])
"""


def synonyms(n_documents=300, n_queries=240, seed=0):
    """Documents of words w…, queries of synonyms s… of the words of one document."""
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 80, (n_documents, 12))
    docs = {f"d{i}": " ".join(f"w{w}" for w in row) for i, row in enumerate(words.tolist())}
    source = rng.integers(0, n_documents, n_queries)
    chosen = [rng.permutation(words[d])[:4].tolist() for d in source]
    queries = {f"q{i}": " ".join(f"s{w}" for w in row) for i, row in enumerate(chosen)}
    return docs, queries, {f"q{i}": {f"d{d}": 1} for i, d in enumerate(source.tolist())}


def fit(checkpoint=None, **parameters):
    docs, queries, qrels = synonyms()
    analyzer = sr.Analyzer(stem=None, stop_words=None)
    return sr.TextRanker(max_pairs=2_000, analyzer=analyzer, **parameters).fit(
        docs, queries, qrels, checkpoint=checkpoint
    )


@pytest.fixture(scope="module")
def whole():
    ranker = fit()
    assert ranker.model_.n_pairs > 0
    return ranker


def interrupt_at(monkeypatch, stage):
    """Ctrl-C at the start of a stage."""

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(model_selection, stage, interrupt)


def equal(one, other):
    return one.fingerprint() == other.fingerprint() and (one.model_.W != other.model_.W).nnz == 0


def test_a_checkpoint_changes_nothing_and_is_removed(whole, tmp_path):
    assert equal(fit(tmp_path / "checkpoint"), whole)
    assert not (tmp_path / "checkpoint").exists()


@pytest.mark.parametrize("stage", ["tune_pair_weight", "tune_loss"])
def test_a_stage_that_was_completed_is_not_computed_again(whole, tmp_path, monkeypatch, stage):
    with monkeypatch.context() as patch:
        interrupt_at(patch, stage)
        with pytest.raises(KeyboardInterrupt):
            fit(tmp_path / "checkpoint")
    assert (tmp_path / "checkpoint").exists()
    interrupt_at(monkeypatch, "tune_ridge")  # completed before
    assert equal(fit(tmp_path / "checkpoint"), whole)


def test_kill_9_and_the_same_command_again_give_the_same_bits(whole, tmp_path):
    checkpoint, model = tmp_path / "checkpoint", tmp_path / "model"
    command = [sys.executable, "-c", SCRIPT, str(checkpoint), str(model)]
    process = subprocess.Popen(command)
    deadline = time.monotonic() + 120
    while not checkpoint.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert checkpoint.exists()
    assert not model.exists()
    subprocess.run(command, check=True)
    assert equal(sr.load(model), whole)
    assert not checkpoint.exists()


def test_a_checkpoint_of_other_data_or_parameters_raises(tmp_path, monkeypatch):
    interrupt_at(monkeypatch, "tune_pair_weight")
    with pytest.raises(KeyboardInterrupt):
        fit(tmp_path / "checkpoint")
    with pytest.raises(ModelError, match="other parameters or data"):
        fit(tmp_path / "checkpoint", random_state=1)


def limit_memory(monkeypatch, max_size):
    """Let Gram matrices of this size fit, whatever the machine has free."""
    plan = training.MemoryPlan.of
    monkeypatch.setattr(
        training.MemoryPlan, "of", lambda *given, **more: replace(plan(*given, **more), max_size=max_size)
    )


def test_a_checkpoint_continues_when_there_is_more_memory_than_before(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        limit_memory(patch, 60)
        whole = fit()
        interrupt_at(patch, "tune_loss")
        with pytest.raises(KeyboardInterrupt):
            fit(tmp_path / "checkpoint")
    limit_memory(monkeypatch, 100)
    assert equal(fit(tmp_path / "checkpoint"), whole)
    assert not equal(fit(), whole)


def test_a_checkpoint_that_needs_more_memory_than_there_is_says_so(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        interrupt_at(patch, "tune_loss")
        with pytest.raises(KeyboardInterrupt):
            fit(tmp_path / "checkpoint")
    limit_memory(monkeypatch, 60)
    with pytest.raises(
        ConfigError, match=r"checkpoint: its stages .* 60 fit; raise memory_limit \(--memory\), or remove"
    ):
        fit(tmp_path / "checkpoint")


def test_without_a_path_nothing_is_stored():
    stages = Checkpoint()
    assert stages.fact("one", lambda: 1) == 1
    stages.remove()
