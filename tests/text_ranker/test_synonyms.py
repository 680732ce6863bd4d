"""Synonyms of the user's own: the file, the search, the model file and explanations."""

from __future__ import annotations

from copy import copy

import pytest

import sparserank as sr
from sparserank.errors import ConfigError, DataError, ModelError
from sparserank.text_ranker.synonyms import SYNONYM_WEIGHT, Rule, Synonyms, stored_synonyms

from .. import motors
from ..motors import learned_anyway

FILE = """\
# devices
laptop, notebook, portable computer

tv => television, TV set
comma\\, inside, plain
"""
DOCS = {
    "n": "a notebook with paper",
    "p": "portable and strong computer",
    "c": "computer",
    "l": "laptops",
    "t": "the television",
    "v": "tv",
}


@pytest.fixture(scope="module", params=["bm25", "cosine"])
def ranker(request):
    return sr.TextRanker(request.param, synonyms=Synonyms(FILE)).fit(DOCS)


def ids(results):
    return [hit.id for hit in results]


def test_lines_are_groups_or_one_way_and_comments_are_skipped():
    assert Synonyms(FILE).rules == (
        Rule(2, ("laptop", "notebook", "portable computer"), ("laptop", "notebook", "portable computer")),
        Rule(4, ("tv",), ("television", "TV set")),
        Rule(5, ("comma, inside", "plain"), ("comma, inside", "plain")),
    )
    assert not Synonyms("# nothing\n\n")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("laptop", "expected words separated by commas"),
        ("a, , b", "a word is missing"),
        ("tv =>", "a word is missing"),
        ("a => b => c", "expected one '=>' at most, found 2"),
    ],
)
def test_a_bad_line_is_one_error_with_file_and_line(tmp_path, line, message):
    path = tmp_path / "synonyms.txt"
    path.write_text(f"# first\ncar, auto\n{line}\n")
    with pytest.raises(DataError, match=message) as error:
        sr.TextRanker("bm25", synonyms=Synonyms.read(path)).fit(DOCS)
    assert str(error.value).startswith(f"{path}:3: ")
    assert "\n" not in str(error.value)


def test_a_word_that_the_analyzer_removes_is_named(tmp_path):
    path = tmp_path / "synonyms.txt"
    path.write_text("laptop, the\n")
    with pytest.raises(DataError, match=r"synonyms.txt:1: 'the' contains no words"):
        sr.TextRanker("bm25", synonyms=Synonyms.read(path)).fit(DOCS)


def test_other_values_raise():
    with pytest.raises(ConfigError, match="'synonyms' parameter"):
        sr.TextRanker(synonyms=3).validate()


def test_words_of_a_group_find_each_other(ranker):
    assert ids(ranker.search("laptop"))[0] == "l"
    assert set(ids(ranker.search("laptop"))) == {"l", "n", "p", "c"}
    assert set(ids(ranker.search("strong portable computers"))) == {"l", "n", "p", "c"}
    assert "l" not in ids(ranker.search("computer")), "a part of a synonym is not the synonym"


def test_one_way_is_one_way(ranker):
    assert set(ids(ranker.search("tv"))) == {"v", "t"}
    assert ids(ranker.search("television")) == ["t"]


def test_one_query_and_many_have_the_same_scores(ranker):
    texts = ["laptop", "a tv", "pear", "strong portable computer tv"]
    many = ranker.search_many(texts)
    assert [ids(hits) for hits in many] == [ids(ranker.search(text)) for text in texts]
    for hits, text in zip(many, texts, strict=True):
        assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in ranker.search(text)])


def test_words_of_the_query_are_not_added_again(ranker):
    columns, counts = ranker.lexical_.query_counts("laptop notebook")
    found = {ranker.lexical_.words[column]: count for column, count in zip(columns, counts, strict=True)}
    half = pytest.approx(SYNONYM_WEIGHT / 2)
    assert found == {"laptop": 1.0, "notebook": 1.0, "portabl": half, "comput": half}


def test_explanations_name_synonyms_and_sum_to_the_score(ranker):
    for hit in ranker.search("laptop tv"):
        explanation = ranker.explain("laptop tv", hit.id)
        assert explanation.score == hit.score
        assert sum(pair.contribution for pair in explanation.pairs) == pytest.approx(hit.score, rel=1e-6)
    (pair,) = ranker.explain("laptop", "n").pairs
    assert (pair.query, pair.document, pair.note) == ("laptop", "notebook", "synonym of laptops")
    assert ranker.explainer("laptop").top("n").notes == ["synonym of laptops"]


def test_synonyms_and_typos_work_together(ranker):
    found = ranker.search("lpatop", typos=True)
    assert found == ranker.search("laptop")
    assert {pair.note for pair in ranker.explain("lpatop", "n", typos=True).pairs} == {"synonym of laptops"}


def test_the_model_file_has_the_synonyms_and_the_index_stays_valid(ranker, tmp_path):
    ranker.save(tmp_path / "m.safetensors")
    loaded = sr.load(tmp_path / "m.safetensors")
    assert loaded.search("laptop") == ranker.search("laptop")
    assert loaded.get_params()["synonyms"] == Synonyms(FILE)
    plain = sr.TextRanker(ranker.ranker).fit(DOCS)
    assert plain.fingerprint() == ranker.fingerprint(), "synonyms belong to the query side"


def test_synonyms_can_be_replaced_without_training(ranker):
    other = copy(ranker).use_synonyms(Synonyms("radio => television"))
    assert ids(other.search("radio")) == ["t"]
    assert ids(other.search("laptop")) == ["l"]
    assert set(ids(ranker.search("laptop"))) == {"l", "n", "p", "c"}, "the other ranker keeps its own"
    assert ids(other.use_synonyms(None).search("radio")) == []


def test_pairs_are_learned_beside_synonyms_and_more_judgments_keep_them():
    synonyms = Synonyms("lorry => car")
    ranker = learned_anyway(motors.DOCS, motors.QUERIES, motors.QRELS, max_pairs=50, synonyms=synonyms)
    assert set(ids(ranker.search("lorry"))) == {"a", "d"}
    ranker.partial_fit(None, {"n": "motor lorry"}, {"n": {"d": 1}})
    assert ("lorri", "car") in {pair[:2] for pair in ranker.explain("lorry", "a").pairs}


@pytest.mark.parametrize("stored", ["x", {"text": "a"}, {"text": "a,,b", "source": "s"}, {"text": 3, "source": "s"}])
def test_invalid_synonyms_of_a_model_file_raise(stored):
    with pytest.raises(ModelError, match="m: invalid synonyms"):
        stored_synonyms(stored, "m")
