"""TextRanker: text in, search out, and the same again from a file."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

import sparserank as sr
from sparserank.data.formats.tensors import read_tensors, write_tensors
from sparserank.errors import ConfigError, DataError, ModelError, NotFitted
from sparserank.text_ranker import load_model

DOCS = {
    "d1": {"title": "Apples", "text": "red apples are sweet and red"},
    "d2": {"title": "", "text": "a green pear"},
    "d3": {"title": "Pears and apples", "text": "fruit"},
    "d4": {"title": "", "text": ""},
}


@pytest.fixture
def ranker():
    return sr.TextRanker().fit(DOCS)


def test_bm25_scores_by_the_formula():
    ranker = sr.TextRanker(lexical=sr.BM25(k1=1.2, b=0.75), analyzer=None).fit(
        {"a": "red red apple", "b": "apple", "c": "pear"}
    )
    idf = np.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    length = {"a": 3, "b": 1}
    for doc in "ab":
        expected = idf / (1 + 1.2 * (0.25 + 0.75 * length[doc] / (5 / 3)))
        assert ranker.explain("apple", doc).score == pytest.approx(expected, rel=1e-6)
    assert [hit.id for hit in ranker.search("apple")] == ["b", "a"]


def test_cosine_of_a_document_with_itself_is_one():
    ranker = sr.TextRanker("cosine").fit({"a": "red apple sweet", "b": "green pear"})
    assert ranker.search("red apple sweet")[0].score == pytest.approx(1.0)


def test_fields_with_weights_joined_by_default(ranker):
    assert {h.id for h in ranker.search("apple")} == {"d1", "d3"}
    assert sr.TextRanker(lexical=sr.BM25(text_weight=0)).fit(DOCS).search("apple")[0].id == "d1"
    assert {h.id for h in sr.TextRanker(lexical=sr.BM25(title_weight=0)).fit(DOCS).search("apple")} == {"d1"}
    joined = {k: f"{v['title']} {v['text']}" for k, v in DOCS.items()}
    assert [h[:2] for h in sr.TextRanker().fit(joined).search("apple")] == [h[:2] for h in ranker.search("apple")]


def test_unknown_words_and_empty_queries_find_nothing(ranker):
    assert ranker.search("zebra") == ranker.search("") == ranker.search("the of") == []
    assert ranker.unknown("zebra apples zebra") == ["zebra"]
    assert ranker.unknown("The Zebras of zebra and Apples") == ["Zebras"], "as written, once, no stop words"
    assert sr.TextRanker(analyzer=sr.Analyzer("english", ngrams=2)).fit(DOCS).unknown("sweet apples") == [], (
        "words, not pairs of them"
    )
    assert ranker.explain("zebra", "d1").to_dict() == {"score": 0.0, "pairs": []}


def test_unknown_words_go_by_the_documents_that_are_searched(ranker):
    other = ranker.over({"x": "a sour apple"})
    assert other.unknown("apples pears sour") == ["pears", "sour"], "sour has no column, pears no document"
    del other.index_
    assert other.unknown("apples pears sour") == ["sour"]


def test_words_of_a_field_without_weight_are_no_words(tmp_path):
    sr.TextRanker(lexical=sr.BM25(text_weight=0)).fit(DOCS).save(tmp_path / "m")
    assert [h.id for h in sr.load(tmp_path / "m").search("apple pears")] == ["d3", "d1"]
    with pytest.raises(DataError, match="none of the 4 documents has a word"):
        sr.TextRanker(lexical=sr.BM25(title_weight=0, text_weight=0)).fit(DOCS)


def test_a_light_field_adds_to_a_cosine_and_never_takes_away():
    ranker = sr.TextRanker("cosine", lexical=sr.Cosine(text_weight=0.2)).fit(DOCS)
    assert all(score >= 0 for row in ranker.scores(["sweet", "green pear"]) for score in row)
    assert {h.id for h in ranker.search("sweet")} == {"d1"}


def test_scores_are_those_of_the_search(ranker):
    scores = ranker.scores(["apple pear", "zebra"], ["d1", "d2", "d3", "d4"])
    found = {h.id: h.score for h in ranker.search("apple pear")}
    assert scores[0].tolist() == [found.get(d, 0.0) for d in ("d1", "d2", "d3", "d4")]
    assert not scores[1].any()
    assert ranker.scores(["apple"]).shape == (1, 4)


def test_scores_of_all_documents_are_in_the_order_of_fit_add_and_remove(tmp_path):
    docs = {"m": "apple", "z": "pear", "a": "apple pear", "k": "plum"}
    ranker = sr.TextRanker("bm25").fit(docs)
    assert ranker.index_.input_ids == ["m", "z", "a", "k"]
    assert_array_equal(ranker.scores(["apple", "plum"]), ranker.scores(["apple", "plum"], list(docs)))
    ranker.add({"b": "apple", "y": "plum"}).remove(["z"])
    ranker.save(tmp_path / "m.safetensors")
    again = sr.load(tmp_path / "m.safetensors")
    assert again.index_.input_ids == ranker.index_.input_ids == ["m", "a", "k", "b", "y"]
    assert_array_equal(again.scores(["plum"]), ranker.scores(["plum"], ["m", "a", "k", "b", "y"]))


def test_a_run_has_every_query(ranker):
    run = ranker.run({"d1": "apple", "q2": "zebra"}, exclude_self=True)
    assert list(run["d1"]) == ["d3"]
    assert run["q2"] == {}


def test_a_saved_ranker_gives_the_same_results(ranker, tmp_path):
    ranker.save(tmp_path / "m.safetensors")
    again = sr.load(tmp_path / "m.safetensors")
    assert again.search("red pears") == ranker.search("red pears")
    assert again.explain("red pears", "d1") == ranker.explain("red pears", "d1")
    assert vars(again).keys() == vars(ranker).keys()
    assert again.analyzer == "english"


def test_a_model_without_its_index_says_how_to_make_one(ranker, tmp_path):
    ranker.save(tmp_path / "m")
    (tmp_path / "m.index").unlink()
    alone = sr.load(tmp_path / "m")
    with pytest.raises(NotFitted, match="sparserank index"):
        alone.search("apple")
    alone.index({"new": "an apple"}).save(tmp_path / "other")
    assert [h.id for h in sr.load(tmp_path / "m", tmp_path / "other").search("apples")] == ["new"]


def test_an_index_of_another_model_raises(ranker, tmp_path):
    ranker.save(tmp_path / "m")
    sr.TextRanker(lexical=sr.BM25(b=0.1)).fit(DOCS).index_.save(tmp_path / "m.index")
    with pytest.raises(ModelError, match="built for another model"):
        sr.load(tmp_path / "m")
    assert not hasattr(load_model(tmp_path / "m"), "index_")


def test_an_index_with_another_number_of_words_raises(ranker, tmp_path):
    ranker.save(tmp_path / "m")
    (segment,) = ranker.index_.segments
    wider = replace(segment, starts=np.append(segment.starts, segment.starts[-1]))
    replace(ranker.index_, segments=(wider,)).save(tmp_path / "m.index")
    with pytest.raises(ModelError, match="built for another model"):
        sr.load(tmp_path / "m")


@pytest.mark.parametrize("name", ["m.gz", "m.xz", "m.zst"])
def test_model_files_are_never_packed(ranker, tmp_path, name):
    ranker.save(tmp_path / name)
    assert sr.load(tmp_path / name).search("red pears") == ranker.search("red pears")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"kind": "magic"}, "invalid settings"),
        ({"analyzer": {"colour": 1}}, "invalid settings"),
        ({"analyzer": "x"}, "'analyzer' is missing or of the wrong type"),
        ({"documents": 1}, "outside [1, 1]"),
        ({"mean_length": "x"}, "'mean_length'"),
        ({"mean_length": float("nan")}, "'mean_length'"),
        ({"mean_length": 0}, "'mean_length'"),
        ({"mean_length": True}, "'mean_length'"),
        ({"mean_length": 10**400}, "'mean_length'"),
        ({"documents": 10**30}, "'documents'"),
        ({"documents": True}, "'documents'"),
        ({"k1": 10**400}, "'k1'"),
        ({"analyzer": {"shortest": 10**30}}, "'shortest'"),
        ({"analyzer": {"lowercase": "no"}}, "'lowercase'"),
        ({"analyzer": {"stop_words": [["a"]]}}, "'stop_words'"),
    ],
)
def test_a_hostile_model_is_rejected_by_name(ranker, tmp_path, settings, says):
    ranker.save(tmp_path / "m")
    file = read_tensors(tmp_path / "m")
    write_tensors(tmp_path / "bad", "text", dict(file.settings) | settings, file.arrays)
    with pytest.raises(ModelError, match=re.escape(says)):
        sr.load(tmp_path / "bad")


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: sr.TextRanker().search("x"), NotFitted, "call fit first"),
        (lambda: sr.TextRanker("bm26").fit(DOCS), ConfigError, "'ranker'"),
        (lambda: sr.BM25(k1=-1), ConfigError, "'k1'"),
        (lambda: sr.TextRanker().fit({}), DataError, "no documents"),
        (lambda: sr.TextRanker().fit({"a": ""}), DataError, "none of the 1 documents has a word"),
        (lambda: sr.TextRanker().fit(["a"]), DataError, "mapping"),
        (lambda: sr.TextRanker().fit({1: "a"}), DataError, "document ids must be text"),
        (lambda: sr.TextRanker().fit({"a": 5}), DataError, "document 'a' must be a text"),
        (
            lambda: sr.TextRanker().fit(DOCS, {}, {"q": {"d1": 1}}),
            DataError,
            "no text for 1 judged query, the first is 'q'",
        ),
        (
            lambda: sr.TextRanker().fit(DOCS, {"q": "x"}, {"q": {"d1": 1, "d8": 1, "d9": 0}}),
            DataError,
            "2 judged documents not among the documents, the first is 'd8'",
        ),
        (
            lambda: sr.TextRanker().fit(DOCS, {"q": "x"}, {"q": {"d1": "2"}}),
            DataError,
            "the grade of document 'd1' for query 'q' must be a finite number; got '2'",
        ),
        (
            lambda: sr.TextRanker().fit(DOCS, {"q": "x"}, [("q", "d1", 1)]),
            DataError,
            "qrels must be {query id: {document id: grade}}; got list",
        ),
        (
            lambda: sr.TextRanker().fit(DOCS, {"q": "x"}, {"q": ["d1"]}),
            DataError,
            "qrels['q'] must be {document id: grade}; got list",
        ),
        (lambda: sr.TextRanker().fit(DOCS, ["x"], {}), DataError, "queries must be {id: text}; got list"),
        (
            lambda: sr.TextRanker().fit(DOCS, {"q": "x"}, {"q": {"d1": 0, "d2": 0}}),
            DataError,
            "none of the 2 judgments has a grade above 0; give at least one relevant document",
        ),
        (lambda: sr.TextRanker().fit(DOCS, {"q": "x"}, {}), DataError, "qrels has no judgments; give"),
        (lambda: sr.TextRanker().fit(DOCS).explain("x", "zz"), DataError, "no document 'zz'"),
        (lambda: sr.TextRanker().fit(DOCS).scores(["x"], ["zz"]), DataError, "no document 'zz'"),
        (lambda: sr.TextRanker().fit(DOCS).search("x", k=0), ConfigError, "'k'"),
    ],
)
def test_bad_input_is_rejected_by_name(make, error, says):
    with pytest.raises(error, match=re.escape(says)):
        make()


def test_importing_the_package_and_its_help_brings_in_nothing_heavy():
    code = (
        "import sys, json, sparserank, sparserank.cli as c\n"
        "try: c.main(['--help'])\nexcept SystemExit: pass\n"
        "print('\\n' + json.dumps(sorted({m.split('.')[0] for m in sys.modules})))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    loaded = set(json.loads(out.splitlines()[-1]))
    assert not loaded & {"numba", "scipy", "sklearn", "polars", "pyarrow", "matplotlib", "numpy"}


def test_unknown_public_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        sr.nothing  # noqa: B018
    assert {"TextRanker", "Preferences", "load"} <= set(dir(sr))


@pytest.mark.parametrize("wrong", [5, None, ["red", "apple"], b"red"])
def test_what_is_no_text_is_rejected_by_every_question(wrong):
    ranker = sr.TextRanker().fit({"d1": "red apple"})
    for ask in (ranker.search, ranker.search_lexical, lambda text: ranker.explain(text, "d1")):
        with pytest.raises(DataError, match="text 0 is not a text"):
            ask(wrong)


# ---- names of 0.1


def test_flat_parameters_of_0_1_work_and_warn():
    with pytest.warns(DeprecationWarning, match=r"Passing k1, title_weight, stem to TextRanker .* lexical=sr\.BM25"):
        ranker = sr.TextRanker(k1=1.2, title_weight=2.0, stem=None)
    assert ranker.lexical == sr.BM25(k1=1.2, title_weight=2.0)
    assert ranker.analyzer == sr.Analyzer("english", stem=None)
    with pytest.warns(DeprecationWarning, match="text_weight"):
        assert sr.TextRanker("cosine", k1=3.0, text_weight=0.5).lexical == sr.Cosine(text_weight=0.5)
    with pytest.raises(ConfigError, match="give lexical only"):
        sr.TextRanker(lexical=sr.BM25(), k1=1.0)


def test_methods_and_attributes_of_0_1_work_and_warn(ranker):
    with pytest.warns(DeprecationWarning, match="normalize"):
        assert ranker.counted("Apples") == "appl"
    with pytest.warns(DeprecationWarning, match="explainer"):
        assert ranker.explaining("apple").explain("d1").score > 0
    with pytest.warns(DeprecationWarning, match="pair_weight"):
        assert ranker.model_.gain == 0.0
    with pytest.warns(DeprecationWarning, match="exclude_self"):
        assert list(ranker.run({"d1": "apple"}, drop_self=True)["d1"]) == ["d3"]
    with pytest.warns(DeprecationWarning, match="callback"):
        sr.TextRanker("bm25").fit(DOCS, tell=print)


# ---- the scikit-learn API and notebooks


def test_scikit_learn_clones_it_and_sets_nested_parameters():
    ranker = sr.TextRanker(lexical=sr.BM25(k1=1.2), analyzer=sr.Analyzer("english"), max_pairs=10)
    assert clone(ranker).get_params() == ranker.get_params()
    assert clone(ranker).set_params(lexical__b=0.1, analyzer__ngrams=2).lexical == sr.BM25(k1=1.2, b=0.1)
    assert repr(sr.TextRanker(lexical=sr.Cosine())) == "TextRanker(lexical=Cosine(title_weight=1.0, text_weight=1.0))"


def test_notebooks_show_tables(ranker):
    results, explanation = ranker.search("apple"), ranker.explain("apple", "d1")
    assert repr(results).startswith("[1. ")
    assert "<td>Apples</td>" in results._repr_html_()
    assert repr(explanation).startswith("Explanation(")
    assert "<td>appl</td>" in explanation._repr_html_()
    assert "<td>lexical</td>" in ranker._repr_html_()


def test_korean_words_stay_whole_and_are_found() -> None:
    docs = {"a": "이 메서드는 새로운 객체를 반환합니다", "b": "배열을 정렬합니다", "c": "객체 목록"}
    ranker = sr.TextRanker("bm25", analyzer="korean").fit(docs)
    assert "객체를" in ranker.lexical_.words
    assert not {"객체", "체를"} <= set(ranker.lexical_.words)  # no bigrams of Hangul
    assert [hit.id for hit in ranker.search("새로운 객체를")] == ["a"]
