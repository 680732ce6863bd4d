"""Fields of documents: detected, declared, searched by BM25F, tuned, stored and listed; none is dropped."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import sparserank as sr
from sparserank.data import read_documents
from sparserank.data.formats.beir import read_beir, write_beir
from sparserank.data.records import Collection, Documents
from sparserank.errors import ConfigError, DataError
from sparserank.text_ranker.bm25f import coordinate_search
from sparserank.text_ranker.persistence import write_index

from .. import oracles
from ..cli.calling import call, printed
from ..motors import DOCS as MOTORS
from ..motors import QRELS as MOTOR_QRELS
from ..motors import QUERIES as MOTOR_QUERIES
from ..motors import learned_anyway

WORDS = ["apple", "pear", "plum", "fig"]
DOCS = {
    "d1": {"title": "Apples", "body": "red apples are sweet", "tags": ["fruit", "red"], "year": 1999, "kind": "a"},
    "d2": {"title": "Pears", "body": "green pears are sour", "tags": ["fruit"], "year": 2001, "kind": "b"},
    "d3": {"title": "Plum", "body": "blue", "tags": ["stone fruit"]},
}
PLAIN = sr.Analyzer(stem=None, stop_words=None)


def test_fields_of_text_are_found_and_everything_else_is_metadata():
    documents = Documents.of(DOCS)
    assert documents.texts == ("red apples are sweet", "green pears are sour", "blue")
    assert (documents.text_field, documents.fields) == ("body", ("tags",))
    assert documents.metadata[0] == {"tags": ["fruit", "red"], "year": 1999, "kind": "a"}
    assert documents.column("tags") == ("fruit red", "fruit", "stone fruit")
    assert Documents.of({"a": {"title": "only a title"}}).texts == ("",)
    longest = Documents.of({"a": {"note": "two words", "story": "many more words here"}})
    assert (longest.text_field, longest.texts, longest.fields) == ("story", ("many more words here",), ("note",))


def test_declared_fields_are_searched_and_the_others_stay_metadata():
    documents = Documents.of(DOCS, fields=["title", "body", "kind"])
    assert (documents.text_field, documents.fields) == ("body", ("kind",))
    assert documents.metadata[0]["tags"] == ["fruit", "red"]
    with pytest.raises(DataError, match="no document has a text field 'boody'; the other fields with text are: body"):
        Documents.of(DOCS, fields=["boody"])


def test_a_field_that_is_neither_text_nor_metadata_is_named(caplog):
    documents = Documents.of({"a": {"text": "x", "vector": [0.5] * 17, "parts": [[1.0], [2.0]]}})
    assert documents.metadata == ()
    assert caplog.messages == [
        f"the field {name!r} holds neither text nor metadata and is left out" for name in ("vector", "parts")
    ]


def test_a_short_list_of_numbers_is_metadata(caplog):
    docs = {"a": {"text": "red", "prices": [1.5, 2.5], "sizes": [1] * 20}, "b": {"text": "red", "prices": [3]}}
    ranker = sr.TextRanker("bm25").fit(docs)
    assert [hit.id for hit in ranker.search("red", filter="prices>2 AND prices<3")] == ["a"]
    assert ranker.search("red", facets=["prices"]).facets == {"prices": {"1.5": 1, "2.5": 1, "3": 1}}
    assert ranker.index_.metadata_of("a") == {"prices": [1.5, 2.5], "sizes": [1] * 20}
    frame = pl.DataFrame({"id": ["a"], "text": ["red"], "prices": [[1.5, 2.5]]})
    assert Documents.of(frame).metadata == ({"prices": [1.5, 2.5]},)
    assert caplog.messages == []


def test_every_field_of_a_document_is_found_again_from_a_file(tmp_path):
    ranker = sr.TextRanker("bm25").fit(DOCS)
    assert ranker.lexical_.weight_of_field == {"title": 1.0, "body": 1.0, "tags": 1.0}
    ranker.save(tmp_path / "m.safetensors")
    again = sr.load(tmp_path / "m.safetensors")
    assert again.lexical_.weight_of_field == ranker.lexical_.weight_of_field
    for text, found in (("sour", "d2"), ("stone", "d3"), ("plum", "d3")):
        assert [hit.id for hit in ranker.search(text)] == [hit.id for hit in again.search(text)] == [found]
    assert_array_equal(again.over(DOCS).scores(["fruit sweet"]), ranker.scores(["fruit sweet"]))
    assert again.fingerprint() == ranker.fingerprint()
    assert again.add({"d4": {"title": "", "body": "x", "tags": ["stone"]}}).search("stone")[0].id == "d4"


NOT_SEARCHED = "not searched: notes in 2 documents, story in 1 document (the model searches title, text)"


def test_fields_that_the_model_does_not_search_are_named(caplog, tmp_path):
    more = {
        "d3": {"title": "Figs", "text": "a fig", "notes": "ripe in autumn", "year": 1999},
        "d4": {"text": "a pear", "notes": "green and sour", "story": "it was a pear"},
    }
    ranker = sr.TextRanker("bm25").fit({"d1": "red apples", "d2": "a pear and a fig"})
    said = []
    for change in (ranker.over, ranker.index, ranker.add):
        change(more)
        said += [caplog.messages[:]]
        caplog.clear()
    assert said == [[NOT_SEARCHED]] * 3
    assert [hit.metadata["notes"] for hit in ranker.search("figs", filter="notes:*")] == ["ripe in autumn"]
    parts = [{name: document} for name, document in more.items()]
    write_index(ranker, tmp_path / "other.index", parts)
    assert caplog.messages == [NOT_SEARCHED]
    caplog.clear()
    sr.TextRanker("bm25").fit(more).add(more)
    sr.TextRanker("bm25").fit(DOCS).add({"d9": {"text": "red pears", "tags": ["fruit"], "kind": "c"}}).add(DOCS)
    assert caplog.messages == []
    sr.TextRanker("bm25").fit(DOCS).add({"d9": {"text": "red pears", "body": "more text"}})
    assert caplog.messages == ["not searched: text in 1 document (the model searches title, body, tags)"]


def test_more_judged_queries_with_fields_that_the_model_does_not_search(caplog):
    ranker = learned_anyway(MOTORS, MOTOR_QUERIES, MOTOR_QRELS)
    caplog.clear()
    ranker.partial_fit({"z": {"text": "an old motor", "notes": "found in a boat"}}, {"9": "motor"}, {"9": {"z": 1}})
    assert "not searched: notes in 1 document (the model searches title, text)" in caplog.messages


def test_documents_with_title_and_text_have_the_bits_of_bm25():
    docs = {"a": {"title": "red apple", "text": "sweet"}, "b": {"title": "", "text": "green red pear"}}
    ranker = sr.TextRanker("bm25").fit(docs)
    assert ranker.lexical_.bm25f is None
    assert "fields" not in ranker.lexical_.state()[0]
    same_name = {key: {"title": one["title"], "body": one["text"]} for key, one in docs.items()}
    assert_array_equal(sr.TextRanker("bm25").fit(same_name).scores(["red pear"]), ranker.scores(["red pear"]))


texts = st.lists(st.sampled_from(WORDS), max_size=6)


@given(
    st.lists(st.fixed_dictionaries({"title": texts, "text": texts, "notes": texts}), min_size=2, max_size=6),
    st.sampled_from([0.0, 0.4, 1.0]),
    st.tuples(*[st.sampled_from([0.0, 0.5, 1.0, 4.0])] * 3).filter(any),
)
def test_bm25f_scores_by_the_formula(documents, b, weights):
    if not any(words for one in documents for words in one.values()):
        return
    docs = {f"d{i}": {name: " ".join(words) for name, words in one.items()} for i, one in enumerate(documents)}
    weights = dict(zip(("title", "text", "notes"), weights, strict=True))
    scoring = sr.BM25(k1=0.9, b=b, field_weights=weights)
    ranker = sr.TextRanker("bm25", lexical=scoring, analyzer=PLAIN).fit(docs, fields=["notes"])
    scores = ranker.scores(["apple pear", "plum"])
    expected = [
        [oracles.bm25f(q, one, documents, weights, 0.9, b) for one in documents] for q in (["apple", "pear"], ["plum"])
    ]
    assert_allclose(scores, expected, rtol=1e-5, atol=1e-6)


def test_weights_are_tuned_on_judged_queries():
    """Queries repeat the tags of their document; title and body are noise."""
    rng = np.random.default_rng(0)
    vocabulary = [f"word{chr(97 + i)}{chr(97 + j)}" for i in range(6) for j in range(6)]
    docs = {
        f"d{i}": {
            "title": " ".join(rng.choice(vocabulary, 3)),
            "body": " ".join(rng.choice(vocabulary, 12)),
            "tags": rng.choice(vocabulary, 3).tolist(),
        }
        for i in range(60)
    }
    queries = {f"q{i}": " ".join(docs[f"d{i}"]["tags"][:2]) for i in range(50)}
    qrels = {f"q{i}": {f"d{i}": 1} for i in range(50)}
    messages = []
    tuned = sr.TextRanker("bm25").fit(docs, queries, qrels, callback=messages.append)
    weights = tuned.lexical_.weight_of_field
    assert weights["tags"] > max(weights["title"], weights["body"])
    assert "tuning the weights of 3 fields" in messages
    fixed = sr.TextRanker("bm25", lexical=sr.BM25(field_weights={"tags": 1.0})).fit(docs, queries, qrels)
    assert set(fixed.lexical_.weight_of_field.values()) == {1.0}

    def hits(ranker):
        return sum(found[0].id == f"d{i}" for i, found in enumerate(ranker.search_many(queries.values(), 1)))

    assert hits(tuned) > hits(fixed)


def test_a_weight_changes_only_for_more_than_two_standard_errors():
    noise = np.tile([0.4, 0.6], 20)
    assert coordinate_search((1.0, 1.0), lambda w: noise)[0] == (1.0, 1.0)
    flat = np.full(40, 0.5)
    best, found = coordinate_search((1.0, 1.0), lambda w: flat + 0.1 * (w[1] == 4.0))
    assert best == (1.0, 4.0)
    assert_allclose(found, flat + 0.1)


def test_bm25_of_title_and_text_stays_unless_weights_help():
    """Queries are words of the title, and the text is noise; then no query finds its document."""
    rng = np.random.default_rng(0)
    vocabulary = [f"word{chr(97 + i)}{chr(97 + j)}" for i in range(6) for j in range(6)]
    docs = {
        f"d{i}": {"title": " ".join(rng.choice(vocabulary, 3)), "text": " ".join(rng.choice(vocabulary, 12))}
        for i in range(60)
    }
    auto, plain = sr.TextRanker("bm25", lexical=sr.BM25(field_weights="auto")), sr.TextRanker("bm25").fit(docs)
    queries = {key: " ".join(docs[key]["title"].split()[:2]) for key in list(docs)[:50]}
    weights = auto.fit(docs, queries, {key: {key: 1} for key in queries}).lexical_.weight_of_field
    assert weights["title"] > weights["text"]
    unmatched = {key: f"unknown{chr(97 + i % 26)}{chr(97 + i // 26)}" for i, key in enumerate(queries)}
    auto.fit(docs, unmatched, {key: {key: 1} for key in unmatched})
    assert auto.lexical_.bm25f is None
    assert_array_equal(auto.scores(["wordaa wordbb"]), plain.scores(["wordaa wordbb"]))
    assert auto.fingerprint() == plain.fingerprint()


def test_field_weights_are_checked():
    with pytest.raises(ConfigError, match=r"field_weights\['title'\]"):
        sr.BM25(field_weights={"title": -1})
    with pytest.raises(ConfigError, match="'field_weights'"):
        sr.BM25(field_weights="best")
    with pytest.raises(DataError, match="no document has the field 'tag'"):
        sr.TextRanker("bm25", lexical=sr.BM25(field_weights={"tag": 2.0})).fit(DOCS)


def test_tables_of_pandas_polars_and_arrow_are_documents_queries_and_judgments():
    pytest.importorskip("pandas")
    frame = pl.DataFrame(
        {
            "id": [1, 2],
            "title": ["red apple", "green pear"],
            "abstract": ["sweet and round", None],
            "year": [1999, None],
        }
    )
    queries = pl.DataFrame({"id": ["q1", "q2"], "text": ["sweet", "pear"]})
    qrels = pl.DataFrame({"query": ["q1", "q2"], "document": [1, 2], "grade": [1, 1]})
    for convert in (lambda t: t, lambda t: t.to_pandas(), lambda t: t.to_arrow(), lambda t: t.lazy()):
        ranker = sr.TextRanker("bm25").fit(*map(convert, (frame, queries, qrels)))
        assert ranker.lexical_.weight_of_field == {"title": 1.0, "abstract": 1.0}
        assert [ranker.search(text)[0].id for text in ("round", "pear")] == ["1", "2"]
        assert ranker.index_.input_ids == ["1", "2"]
    with pytest.raises(DataError, match="has no column 'id'; its columns are text"):
        sr.TextRanker().fit(pl.DataFrame({"text": ["x"]}))


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
def test_tables_may_have_a_title_only_or_any_fields(tmp_path, suffix):
    def write(**columns):
        frame, path = pl.DataFrame(columns), tmp_path / f"docs.{suffix}"
        frame.write_parquet(path) if suffix == "parquet" else frame.write_csv(
            path, separator="," if suffix == "csv" else "\t"
        )
        return path

    only = read_documents(write(id=["a", "b"], title=["red apple", "pear"]))
    assert (only.titles, only.texts, only.fields) == (("red apple", "pear"), ("", ""), ())
    more = read_documents(write(id=["a"], title=["x"], body=["some words"], note=["two words"], kind=["c"]))
    assert (more.texts, more.fields, more.metadata) == (
        ("some words",),
        ("note",),
        ({"note": "two words", "kind": "c"},),
    )
    with pytest.raises(DataError, match="no column 'text' or 'title', and no other column with texts; got id, year"):
        read_documents(write(id=["a"], year=["1999"]))


def test_a_folder_is_written_with_the_fields_that_it_was_read_with(tmp_path):
    (tmp_path / "one" / "qrels").mkdir(parents=True)
    lines = [json.dumps({"_id": key} | record) for key, record in DOCS.items()]
    (tmp_path / "one" / "corpus.jsonl").write_text("\n".join(lines))
    (tmp_path / "one" / "queries.jsonl").write_text('{"_id": "q", "text": "sour"}')
    documents = read_beir(tmp_path / "one").documents
    assert documents == Documents.of(DOCS)
    write_beir(tmp_path / "two", Collection("two", documents, {"q": "sour"}, {}))
    assert read_beir(tmp_path / "two").documents == documents
    assert read_beir(tmp_path / "one", fields=["body"]).documents.fields == ()


def test_train_lists_the_fields_and_takes_them(capsys, tmp_path):
    (tmp_path / "d").mkdir()
    lines = [json.dumps({"_id": key} | record) for key, record in DOCS.items()]
    (tmp_path / "d" / "corpus.jsonl").write_text("\n".join(lines))
    (tmp_path / "d" / "queries.jsonl").write_text('{"_id": "q", "text": "sour"}')
    command = ("train", tmp_path / "d", "--ranker", "bm25", "--output", tmp_path / "m")
    said = printed(capsys, *command)
    assert said["fields"] == {"title": 1.0, "body": 1.0, "tags": 1.0}
    assert said["metadata"] == ["year", "kind"]
    assert call(*command, "--fields", "title,body", "--field-weights", "title=2") == 0
    assert "\nfields: title (weight 2), body (weight 1); metadata: tags, year, kind\n" in capsys.readouterr().out
    (tmp_path / "titles.csv").write_text("id,title\n1,red apple\n")
    said = printed(capsys, "train", tmp_path / "titles.csv", "--ranker", "bm25", "--output", tmp_path / "t")
    assert said["fields"] == {"title": 1.0}
    assert call(*command, "--field-weights", "title:2") == 2
    assert "--field-weights must be auto or weights such as title=2,text=1; got 'title:2'" in capsys.readouterr().err
    assert call(*command, "--fields", "title", "--engine", "spark") == 2
    assert "--engine spark searches title and text" in capsys.readouterr().err
    assert call(*command, "--fields", "nothing") == 2
    assert "no document has a text field 'nothing'" in capsys.readouterr().err
