"""Model files that version 0.1.0 wrote still load, and give the scores that it gave."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import sparserank as sr

FILES = Path(__file__).parent / "files_of_0_1"
EXPECTED = json.loads((FILES / "expected.json").read_text())
ROWS = np.load(FILES / "rows.npz")


@pytest.mark.parametrize("name", ["adarank", "domination", "pamir", "rankboost", "ranksvm", "rbf"])
def test_a_letor_ranker_predicts_the_same_scores(name):
    np.testing.assert_allclose(sr.load(FILES / f"{name}.safetensors").predict(ROWS["X"])[:8], EXPECTED[name], rtol=1e-6)


@pytest.mark.parametrize("name", ["bilinear", "closed-form", "low-rank"])
def test_a_bilinear_ranker_gives_the_same_scores(name):
    scores = sr.load(FILES / f"{name}.safetensors").scores(ROWS["L"], ROWS["L"])
    np.testing.assert_allclose(np.asarray(scores)[0][:8], EXPECTED[name], rtol=1e-6)


@pytest.mark.parametrize("name", ["text", "bm25"])
def test_a_text_ranker_finds_the_same_documents(name):
    hits = sr.load(FILES / f"{name}.safetensors").search(EXPECTED["text_query"], 5)
    assert [hit.id for hit in hits] == [document for document, _ in EXPECTED[name]]
    np.testing.assert_allclose([hit.score for hit in hits], [score for _, score in EXPECTED[name]], rtol=1e-6)
