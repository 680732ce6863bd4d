"""Synonym files: spelled as documents spell, read back, and understood as Lucene does."""

from __future__ import annotations

import json
import math
import re
from unicodedata import category

import jsonschema_rs
import pytest
from benchmarks.engine_simulation import SynonymEngine, WordRulesEngine, by_stem
from hypothesis import given
from hypothesis import strategies as st

import sparserank as sr
from sparserank.data.records import Documents
from sparserank.errors import ConfigError, ModelError
from sparserank.export import export, query_body, synonyms, vectors_of
from sparserank.export.synonyms import Rule

from ..motors import learned_anyway
from . import schemas
from .readers import read_synonyms
from .worlds import world

DOCS = {"a": "Engines and cars", "b": "an engine of a boat", "c": "plum cakes", "d": "boats and cars"}
QUERIES = {str(i): text for i, text in enumerate(["motor", "motors", "motor power", "sweet", "sweet food", "vehicle"])}
QRELS = {"0": {"a": 1}, "1": {"a": 1, "b": 1}, "2": {"a": 1}, "3": {"c": 1}, "4": {"c": 1}, "5": {"d": 1}}


@pytest.fixture(scope="module")
def ranker():
    return learned_anyway(DOCS, QUERIES, QRELS)


def test_rules_write_words_as_documents_spell_them_and_keep_the_word_itself(ranker):
    made = synonyms.rules(vectors_of(ranker), min_weight=0.0)
    spelled = {word for text in DOCS.values() for word in text.lower().split()} | {
        "motor",
        "sweet",
        "vehicl",
        "power",
        "food",
    }
    assert made
    for rule in made:
        assert rule.replacements[0] in rule.words
        assert 1 < len(rule.replacements) <= 1 + synonyms.MAX_WORDS
        assert {*rule.words, *rule.replacements} <= spelled
    (motor,) = [rule for rule in made if "motor" in rule.words]
    assert "engine" in motor.replacements or "engines" in motor.replacements


def test_synonyms_of_the_user_come_first_and_need_no_pairs(ranker, tmp_path):
    own = sr.Synonyms("laptop, notebook, portable computer\ntv, telly => television")
    lines = ["laptop, notebook, portable computer", "tv => tv, television", "telly => telly, television"]
    plain = sr.TextRanker("bm25", synonyms=own).fit(DOCS)
    export(plain, "synonyms", tmp_path / "plain")
    assert (tmp_path / "plain/synonyms.txt").read_text().splitlines() == lines
    learned = learned_anyway(DOCS, QUERIES, QRELS, synonyms=own)
    made = synonyms.rules(vectors_of(learned))
    export(learned, "synonyms", tmp_path / "learned")
    assert (tmp_path / "learned/synonyms.txt").read_text().splitlines() == [*lines, *map(str, made)]


def test_synonyms_of_the_user_go_to_typesense_and_meilisearch_too(tmp_path):
    own = sr.Synonyms("laptop, notebook, portable computer\ntv, motor => television\n")
    expected = {
        "laptop": ["notebook", "portable computer"],
        "notebook": ["laptop", "portable computer"],
        "portable computer": ["laptop", "notebook"],
        "tv": ["television"],
        "motor": ["television"],
    }
    plain = sr.TextRanker("bm25", synonyms=own).fit(DOCS)
    lines = ["laptop, notebook, portable computer", "tv => tv, television"]
    assert query_body(plain, "synonyms", "a TV, a Portable computer")["rules"] == lines
    assert query_body(plain, "synonyms", "a portable TV computer")["rules"] == lines[1:]
    for ranker in (plain, learned_anyway(DOCS, QUERIES, QRELS, synonyms=own)):
        export(ranker, "synonyms", tmp_path / "made")
        by_word = json.loads((tmp_path / "made/meilisearch.json").read_text())["synonyms"]
        lines = [json.loads(line) for line in (tmp_path / "made/typesense.jsonl").read_text().splitlines()]
        assert {line["root"]: line["synonyms"] for line in lines} == by_word
        assert len({line["id"] for line in lines}) == len(lines)
        assert {word: by_word[word][: len(added)] for word, added in expected.items()} == expected
    assert len(by_word) > len(expected) and len(by_word["motor"]) > 1


def test_all_searched_fields_are_searched_and_spell_the_rules(tmp_path):
    docs = {key: {"text": "words", "tags": text.split(), "kind": "a b", "year": 1999} for key, text in DOCS.items()}
    documents = Documents.of(docs, fields=["text", "tags"])
    ranker = learned_anyway(documents, QUERIES, QRELS)
    made = vectors_of(ranker)
    assert synonyms.spellings(made)["engin"] == ["engine", "engines"]
    (motor,) = [rule for rule in synonyms.rules(made, min_weight=0.0) if "motor" in rule.words]
    assert "engine" in motor.replacements
    properties = synonyms.index_body(made)["mappings"]["properties"]
    copied = {name: field.get("copy_to") for name, field in properties["metadata"]["properties"].items()}
    assert copied == {"tags": "content", "kind": None, "year": None}
    assert properties["title"]["copy_to"] == properties["text"]["copy_to"] == "content"


def test_heavy_pairs_alone_make_rules(ranker):
    vectors = vectors_of(ranker)
    few, many = (synonyms.rules(vectors, max_words=1, min_weight=share) for share in (1.0, 0.0))
    assert 0 < len(few) < len(many)
    pairs = {pair: weight for pair, weight in vectors.model.named_pairs().items() if pair[0] != pair[1]}
    assert len(few) == sum(weight == max(pairs.values()) for weight in pairs.values())


@given(
    st.lists(
        st.text(st.characters(categories=["L", "P", "S", "N"]), min_size=1).filter(lambda w: "\\" not in w[-1:]),
        min_size=1,
        max_size=4,
    )
)
def test_rules_come_back_whatever_their_words(tmp_path_factory, words):
    path = tmp_path_factory.mktemp("rules") / "synonyms.txt"
    rules = [Rule(tuple(words), (words[0], "other"))]
    path.write_text("# a comment\n" + "".join(f"{rule}\n" for rule in rules))
    assert read_synonyms(path) == rules


def test_what_is_written_fits_the_engines_format(ranker, tmp_path):
    export(ranker, "synonyms", tmp_path / "made")
    made = tmp_path / "made"
    assert read_synonyms(made / "synonyms.txt") == synonyms.rules(vectors_of(ranker))
    body = json.loads((made / "index.json").read_text())
    jsonschema_rs.validate(schemas.SYNONYM_INDEX, body)
    analysis = body["settings"]["analysis"]
    written, query_filters = (analysis["analyzer"][name]["filter"] for name in ("document", "query"))
    assert written == [name for name in query_filters if name != "pairs"]
    assert query_filters == ["lowercase", "long", "pairs", "stopped", "stems"], (
        "before the stemmer, so that words are as they are spelled"
    )
    assert analysis["filter"]["stems"]["language"] == "English"
    assert json.loads((made / "query.json").read_text())["query"]["match"]["content"]["query"]


def test_words_are_what_they_are_for_the_model_letters_beyond_ascii_and_all():
    plain = sr.TextRanker("bm25", analyzer=None).fit({"a": "Größe x"})
    analysis = synonyms.index_body(vectors_of(plain))["settings"]["analysis"]
    assert analysis["tokenizer"]["word"]["pattern"] == r"[^\p{L}\p{N}_]+"
    for code in range(0x110000):  # Python's word characters are Java's classes L and N, and the low line
        assert (re.match(r"\w", chr(code)) is not None) == (category(chr(code))[0] in "LN" or chr(code) == "_"), code
    shortest = plain.lexical_.analyzer.shortest
    assert analysis["filter"]["long"] == {"type": "length", "min": shortest}
    assert shortest == 2
    assert plain.lexical_.words == ("größe",)


def test_every_document_and_every_query_is_written(ranker, tmp_path):
    summary = export(ranker, "synonyms", tmp_path / "made", QUERIES)
    made = tmp_path / "made"
    lines = (made / "bulk-00000.ndjson").read_bytes().splitlines()
    for action, source in zip(lines[::2], lines[1::2], strict=True):
        jsonschema_rs.validate(schemas.BULK_ACTION, json.loads(action))
        jsonschema_rs.validate(schemas.SYNONYM_DOCUMENT, json.loads(source))
    sources = [json.loads(line) for line in lines[1::2]]
    assert {source["id"]: source["text"] for source in sources} == DOCS
    records = [json.loads(line) for line in (made / "queries.jsonl").read_text().splitlines()]
    for record in records:
        jsonschema_rs.validate(schemas.SYNONYM_SEARCH, record["body"])
    assert {record["id"]: record["body"]["query"]["match"]["content"]["query"] for record in records} == QUERIES
    assert summary["queries"] == len(records)
    readme = (made / "README.md").read_text()
    assert readme.index("_bulk") < readme.index("_search")


def test_an_index_without_stems_and_stop_words_has_no_filters_for_them():
    plain, _ = world(0)
    plain = sr.TextRanker("bm25", analyzer=None).fit({"a": "word"})
    assert list(synonyms.index_body(vectors_of(plain))["settings"]["analysis"]["filter"]) == ["pairs", "long"]


def test_the_rules_that_match_a_query_are_printed(ranker):
    request = query_body(ranker, "synonyms", "Motors!")
    assert request["body"]["query"] == {"match": {"content": {"query": "Motors!"}}}
    assert query_body(ranker, "synonyms", "nothing known")["rules"] == []


def test_a_model_without_pairs_has_no_synonyms():
    with pytest.raises(ModelError, match="no word pairs"):
        synonyms.rules(vectors_of(sr.TextRanker("bm25").fit({"a": "word"})))
    with pytest.raises(ConfigError, match="'max_words'"):
        synonyms.rules(vectors_of(world(0)[0]), max_words=0)


def test_synonyms_count_as_one_word_as_common_as_the_commonest():
    documents = [{"a": 1.0}, {"b": 2.0}, {"b": 1.0, "c": 1.0}]
    engine = SynonymEngine(["x", "y", "z"], documents, k1=1.2, b=0.0)
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    expected = {"x": idf * 1 / 2.2, "y": idf * 2 / 3.2, "z": idf * 1 / 2.2}
    assert dict(engine.search(["a"], {"a": ["a", "b"]})) == pytest.approx(expected)
    assert [doc for doc, _ in engine.search(["a", "none"], {})] == ["x"]


def test_typesense_and_meilisearch_rank_by_matched_words_then_by_nearness_field_and_spelling():
    documents = [
        [["red"], ["a", "motor", "of", "a", "car"]],  # both words, in different fields
        [["red", "motor"], ["other"]],  # side by side
        [["engine"], ["red"]],  # a synonym
        [["car"], ["red"]],  # the first word alone
        [["motor"], ["other"]],  # the last word alone is never enough
    ]
    engine = WordRulesEngine("abcde", documents)
    engines = {"motor": ["engine"]}
    assert engine.search(["red", "motor"], {}, 10, 1) == [("b", 2.0), ("a", 2.0)]
    assert engine.search(["red", "motor"], engines, 10, 1) == [("b", 2.0), ("a", 2.0), ("c", 2.0)]
    assert [doc for doc, _ in engine.search(["red", "motor"], {}, 10, 10)] == ["b", "a", "c", "d"]
    assert engine.search(["red", "motor"], {}, 1, 10) == [("b", 2.0)]
    assert [doc for doc, _ in engine.search(["red", "none"], {}, 10, 1)] == ["a", "b", "c", "d"]
    assert engine.search(["none", "red"], {}, 10, 1) == []


def test_rules_are_looked_up_by_stem():
    stems = lambda words: [word.rstrip("s") if word != "the" else None for word in words]  # noqa: E731
    assert by_stem([Rule(("cars", "car"), ("cars", "autos", "the"))], stems) == {"car": ["car", "auto"]}


def test_typesense_and_meilisearch_get_the_rules_of_the_synonym_file(ranker, tmp_path):
    made = synonyms.rules(vectors_of(ranker))
    export(ranker, "synonyms", tmp_path / "made")
    by_word = json.loads((tmp_path / "made/meilisearch.json").read_text())["synonyms"]
    lines = map(json.loads, (tmp_path / "made/typesense.jsonl").read_text().splitlines())
    assert {line["root"]: line["synonyms"] for line in lines} == by_word
    assert by_word == {word: [one for one in rule.replacements if one != word] for rule in made for word in rule.words}
    assert by_word
