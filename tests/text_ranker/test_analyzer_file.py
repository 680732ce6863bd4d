"""A model gives the same words wherever it is loaded, and files of English models stay as they were."""

from __future__ import annotations

import pytest

import sparserank as sr
from sparserank.errors import NotInstalled
from sparserank.text.segmentation import PACKAGES
from sparserank.text_ranker import analyzer_file, lexical

DOCS = {"d1": "red apples ﬁre 日本語", "d2": "der Baum"}
QUERY = "ＲＥＤ fire 日本語 Bäume Dateiname créé"


@pytest.mark.parametrize(
    ("analyzer", "digest"),
    [
        ("english", "3edfcc2735b915daab93127702f2b83b4299f5db74f0f6909dc2fb6af4716f76"),
        (None, "2ee35b4291e25e520a1830b6e288b876db4b9a4ec9788765595c2a5df0f9be02"),
        (
            sr.Analyzer(stem="german", stop_words=("der",), ngrams=2),
            "a1d7e981fc98bb830db74e7448c0d9c637c44e95b73cb7b5487a25baaa406bf0",
        ),
    ],
)
def test_the_index_of_a_plain_model_of_release_0_1_still_fits(analyzer, digest):
    assert sr.TextRanker("bm25", analyzer=analyzer).fit(DOCS).fingerprint() == digest


@pytest.mark.parametrize(
    "analyzer",
    [
        "auto", "german", "japanese", "french", sr.Analyzer("english", normalize=True), sr.Analyzer("korean+english"),
        sr.Analyzer("german", compounds=True), sr.Analyzer("german", stop_words=None, accents="fold", ngrams=2),
    ],
    ids=str,
)  # fmt: skip
def test_a_loaded_model_gives_the_same_words(analyzer, tmp_path):
    docs = DOCS | {f"n{i}": "Datei Name" for i in range(9)}
    ranker = sr.TextRanker("bm25", analyzer=analyzer).fit(docs)
    ranker.save(tmp_path / "model.safetensors")
    loaded = sr.load(tmp_path / "model.safetensors")
    assert loaded.lexical_.analyzer.tokens(QUERY) == ranker.lexical_.analyzer.tokens(QUERY)
    assert loaded.fingerprint() == ranker.fingerprint()
    assert loaded.get_params() == ranker.get_params()
    assert loaded.search(QUERY) == ranker.search(QUERY)
    assert loaded.unknown("日本語 Pflaume") == ranker.unknown("日本語 Pflaume")


def test_stop_words_of_a_package_are_stored_as_words():
    ranker = sr.TextRanker("bm25", analyzer="german").fit(DOCS)
    stored = ranker.lexical_.state()[0]["analyzer"]
    assert "der" in stored["stop_words"]
    assert analyzer_file.analyzer_settings(sr.Analyzer("english"), None)["stop_words"] == "english"


def test_unknown_parts_are_as_the_query_spells_them():
    ranker = sr.TextRanker("bm25", analyzer="japanese").fit({"d1": "日本語の値 red"})
    assert ranker.unknown("日本語とＣＳＳ red プロパティ") == ["語とＣＳＳ"[:2], "ＣＳＳ", "プロパティ"]


@pytest.fixture
def jieba_model(tmp_path):
    pytest.importorskip("jieba", reason="the extra 'segmenters' is missing: no jieba")
    path = tmp_path / "model.safetensors"
    sr.TextRanker("bm25", analyzer=sr.Analyzer("chinese", segmenter="jieba")).fit({"d": "层叠样式表"}).save(path)
    return path


def test_a_segmenter_is_stored_with_its_version(jieba_model):
    loaded = sr.load(jieba_model)
    stored = loaded.lexical_.state()[0]["analyzer"]
    assert stored["segmenter"] == "jieba"
    assert stored["segmenter_version"]
    assert [hit.id for hit in loaded.search("样式表")] == ["d"]


def test_another_version_of_a_segmenter_warns_and_keeps_the_index(jieba_model, monkeypatch):
    monkeypatch.setattr(lexical, "segmenter_version", lambda name: None if name is None else "9.9")
    with pytest.warns(UserWarning, match=r"fitted with jieba .*, and 9\.9 is installed"):
        loaded = sr.load(jieba_model)
    assert [hit.id for hit in loaded.search("样式表")] == ["d"]


def test_a_missing_segmenter_is_rejected_with_the_name_of_the_file(jieba_model, monkeypatch):
    monkeypatch.setitem(PACKAGES, "jieba", ("no-such-package",))
    with pytest.raises(
        NotInstalled, match=r"needs the package no-such-package: pip install 'sparserank\[segmenters\]'"
    ):
        sr.load(jieba_model)


def test_spellings_of_documents_and_queries_are_stored(tmp_path):
    docs = {f"d{i}": f"apples {word}" for i, word in enumerate(["red", "green", "blue"])}
    queries = {f"q{i}": "surnames of apples" for i in range(9)}
    ranker = sr.TextRanker(loss="squared").fit(docs, queries, {query: {"d1": 1} for query in queries})
    ranker.save(tmp_path / "model.safetensors")
    loaded = sr.load(tmp_path / "model.safetensors")
    assert loaded.lexical_.surface_forms(["appl", "red"]) == {"appl": "apples"}
    for one in (ranker, loaded):
        if one.model_.vocabulary is not None:
            assert one.lexical_.surface_forms(["surnam appl"]) == {"surnam appl": "surnames apples"}
    explanation = loaded.explain("apple", "d1")
    assert explanation.pairs[0].query == "appl"
    assert sum(pair.contribution for pair in explanation.pairs) == pytest.approx(explanation.score)
