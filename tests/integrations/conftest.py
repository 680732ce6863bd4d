"""A saved model with learned pairs and metadata, for every integration."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparserank import TextRanker
from tests.motors import DOCS, QRELS, QUERIES, learned_anyway

YEARS = {"a": 1990, "b": 2000, "c": 2010, "d": 2020}
TEXTS = ("motor power", "sweet food", "vehicle", "ship and car", "engine", "nothing of this")
"""Queries that find documents by words, by pairs, by both and not at all."""


@pytest.fixture(scope="session")
def ranker() -> TextRanker:
    docs = {
        doc_id: {"title": doc_id.upper(), "text": text, "metadata": {"year": YEARS[doc_id], "kind": ["x", text[:4]]}}
        for doc_id, text in DOCS.items()
    }
    ranker = learned_anyway(docs, QUERIES, QRELS, random_state=0)
    assert ranker.model_.n_pairs
    return ranker


@pytest.fixture(scope="session")
def model(ranker: TextRanker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("integrations") / "model.safetensors"
    ranker.save(path)
    return path
