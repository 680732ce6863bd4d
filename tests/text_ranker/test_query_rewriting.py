"""Queries that forgive: corrections, unfinished words, exact matches first, and explanations that sum to the score."""

from __future__ import annotations

import numpy as np
import pytest

import sparserank as sr
from sparserank.data import load
from sparserank.search.results import Correction
from sparserank.text_ranker.query_rewriting import rewrite
from sparserank.text_ranker.searcher import TextSearcher

from .. import motors, oracles
from ..motors import learned_anyway

DOCS = {
    "washer": "a dishwasher washes dishes",
    "other": "the washing machine and its repair",
    "plate": "plates and dishes",
    "sort": "sort a list",
    "sorted": "sortable and unsorted lists of sortable things",
    "year": "the year 2018",
}


@pytest.fixture(scope="module", params=["bm25", "cosine"])
def ranker(request):
    return sr.TextRanker(request.param).fit(DOCS)


def ids(results):
    return [hit.id for hit in results]


def test_forgiving_is_off_by_default(ranker):
    assert ranker.search("dishwaser") == []
    assert ranker.search("dishwa") == []
    assert ranker.search("dishwaser").corrections == ()


def test_a_corrected_query_has_the_results_of_the_correct_one(ranker):
    found = ranker.search("repair of a dishwaser", typos=True)
    assert found == ranker.search("repair of a dishwasher")
    assert found.corrections == (Correction("dishwaser", "dishwasher"),)
    assert ranker.search_lexical("dishwaser", typos=True) == ranker.search_lexical("dishwasher")
    assert ids(ranker.search("dihswasher Macihne", typos=True)) == ids(ranker.search("dishwasher machine"))
    assert [one.word for one in ranker.search("dihswasher Macihne", typos=True).corrections] == [
        "dihswasher",
        "Macihne",
    ]


@pytest.mark.parametrize("text", ["2019", "lst", "xyz", "dishes", "the", "", "!"])
def test_numbers_short_words_known_words_and_stop_words_are_not_corrected(ranker, text):
    assert ranker.search(text, typos=True) == ranker.search(text)
    assert ranker.search(text, typos=True).corrections == ()


def test_a_word_that_documents_have_in_the_plural_only_is_found_by_its_stem():
    found = sr.TextRanker("bm25").fit({"d": "vehicles", "e": "plates"}).search("vehicel", typos=True)
    assert (ids(found), found.corrections) == (["d"], (Correction("vehicel", "vehicles"),))


def test_a_rare_word_keeps_its_documents_first_and_gains_a_frequent_neighbour():
    docs = {f"d{i}": f"serach number {i}" if i == 7 else f"search search search {i}" for i in range(60)}
    ranker = sr.TextRanker("bm25").fit(docs)
    found = ranker.search("serach", k=100, typos=True)
    assert found[0].id == "d7"
    assert len(found) == 60
    assert found.corrections == (Correction("serach", "search"),)


def test_the_last_word_finds_the_words_that_begin_with_it(ranker):
    assert ids(ranker.search("dishwa", prefix=True)) == ["washer"]
    assert ids(ranker.search("a list sor", prefix=True))[0] == "sort"
    assert ranker.search("dishwa ", prefix=True) == [], "a blank ends the word"
    assert ranker.search("dishwa plates", prefix=True) == ranker.search("plates", prefix=True), "not the last word"


def test_documents_with_the_exact_word_come_first(ranker):
    found = ranker.search("sort", k=10, prefix=True)
    assert ids(found) == ["sort", "sorted"]
    both = {
        doc: sum(pair.contribution for pair in ranker.explain("sort", doc, prefix=True).pairs) for doc in ids(found)
    }
    assert both["sort"] > both["sorted"]


def test_exact_matches_stay_first_in_random_collections():
    rng = np.random.default_rng(0)
    words = ["sor", "sort", "sorting", "sorted", "sorbet", "sorrel", "list", "tree"]
    for trial in range(20):
        docs = {f"d{i}": " ".join(rng.choice(words, rng.integers(1, 30))) for i in range(30)}
        docs["none"] = "nothing"
        ranker = sr.TextRanker(["bm25", "cosine"][trial % 2], analyzer=None).fit(docs)
        found = [hit.id for hit in ranker.search("sor", k=100, prefix=True)]
        has_word = ["sor" in docs[doc].split() for doc in found]
        assert has_word == sorted(has_word, reverse=True)
        assert set(found) == {doc for doc, text in docs.items() if any(w.startswith("sor") for w in text.split())}


def test_explanations_say_why_and_sum_to_the_score(ranker):
    text = "plates dishwaser sor"
    for hit in ranker.search(text, typos=True, prefix=True):
        explanation = ranker.explain(text, hit.id, typos=True, prefix=True)
        assert explanation.score == hit.score
        assert sum(pair.contribution for pair in explanation.pairs) == pytest.approx(hit.score, rel=1e-6)
        assert explanation.to_dict()["pairs"][0]["contribution"] == explanation.pairs[0].contribution
        top = ranker.explainer(text, typos=True, prefix=True).top(hit.id)
        assert list(zip([pair[:3] for pair in top.pairs], top.notes, strict=True)) == [
            (tuple(pair), pair.note) for pair in explanation.pairs
        ]
    notes = {(pair.query, pair.document): pair.note for pair in ranker.explain(text, "washer", typos=True).pairs}
    assert notes == {("dishwaser", "dishwash"): "typo of dishwasher"}
    pairs = ranker.explain(text, "sorted", prefix=True).pairs
    assert {(pair.query, pair.note) for pair in pairs} == {("sor", "begins with sor")}
    assert "(begins with sor)" in repr(ranker.explain(text, "sorted", prefix=True))
    assert "typo of dishwasher" in ranker.explain(text, "washer", typos=True)._repr_html_()
    assert ranker.compare(text, "washer", "sorted", typos=True, prefix=True).first_score > 0


def test_a_corrected_word_uses_its_learned_pairs_and_a_word_with_pairs_is_known():
    docs = motors.DOCS | {"e": "motors and engines"}
    ranker = learned_anyway(docs, motors.QUERIES, motors.QRELS, max_pairs=200)
    assert ranker.search("engnie", typos=True) == ranker.search("engine")
    for document in docs:
        explanation = ranker.explain("engnie", document, typos=True)
        assert explanation.score == ranker.explain("engine", document).score
        assert {pair.note for pair in explanation.pairs} <= {"typo of engine"}
    assert ranker.unknown("vehicle") == ["vehicle"]
    assert ranker.search("vehicle", typos=True) == ranker.search("vehicle") != []


def test_a_filtered_search_forgives_too():
    docs = {f"d{i}": {"text": "dishwasher", "metadata": {"n": i}} for i in range(4)}
    found = sr.TextRanker("bm25").fit(docs).search("dishwaser", filter="n>=2", facets=["n"], typos=True)
    assert sorted(ids(found)) == ["d2", "d3"]
    assert found.facets == {"n": {"2": 1, "3": 1}}


def test_scripts_without_blanks_are_not_corrected_and_their_last_character_is_a_prefix():
    ranker = sr.TextRanker("bm25", analyzer="japanese").fit({"a": "属性の値", "b": "日本語 dishwasher"})
    assert ranker.search("属値", typos=True).corrections == ()
    assert ids(ranker.search("日", prefix=True)) == ["b"]
    assert ids(ranker.search("日本", prefix=True)) == ["b"]
    assert ids(ranker.search("dishwa", prefix=True)) == ["b"]
    assert ranker.search("dishwasr", typos=True).corrections == (Correction("dishwasr", "dishwasher"),)


def test_parts_of_compounds_are_known_words():
    analyzer = sr.Analyzer("german", compounds=True)
    docs = {"a": "Bundes Kanzler", "b": "Kanzler Amt", "c": "Bundes Amt", "d": "der Bundeskanzler"}
    ranker = sr.TextRanker("bm25", analyzer=analyzer).fit(docs)
    assert ranker.search("Bundesamt", typos=True).corrections == ()
    assert ranker.search("Bundeskanzlr", typos=True).corrections == (Correction("Bundeskanzlr", "bundeskanzler"),)


def test_a_stored_model_forgives_as_before(ranker, tmp_path):
    ranker.save(tmp_path / "m.safetensors")
    loaded = sr.load(tmp_path / "m.safetensors")
    for text in ("repair of a dishwaser", "washin", "unsorte", "plats"):
        assert loaded.search(text, typos=True, prefix=True) == ranker.search(text, typos=True, prefix=True)


def test_an_unfinished_word_with_a_typing_error_is_completed_if_nothing_begins_with_it():
    ranker = sr.TextRanker("bm25").fit({"a": "strawberry cake", "b": "strap", "c": "a long road", "d": "Zürich"})
    texts = ["strw", "stt", "roaf", "starwbe", "strswbxr", "lonk", "xong", "z\u00fcrj"]
    found = [ids(ranker.search(text, typos=True, prefix=True)) for text in texts]
    assert found == [["b", "a"], ["b", "a"], ["c"], ["a"], ["a"], ["c"], ["c"], ["d"]]
    assert ranker.search("starwbe", prefix=True) == ranker.search("starwbe", typos=True) == []
    pair = ranker.explain("starwbe", "a", typos=True, prefix=True).pairs[0]
    assert (pair.query, pair.document, pair.note) == ("starwbe", "strawberri", "begins with starwbe, 1 typo")
    assert ranker.explain("strswbxr", "a", typos=True, prefix=True).pairs[0].note == "begins with strswbxr, 2 typos"
    assert ranker.search("starwbe", typos=True, prefix=True).corrections == ()


@pytest.mark.parametrize("text", ["starwbe ", "starwbe the", "q", "201", "strxxx"])
def test_finished_words_numbers_single_letters_and_more_errors_are_not_completed(text):
    assert sr.TextRanker("bm25").fit({"a": "strawberry", "b": "210"}).search(text, typos=True, prefix=True) == []


def test_words_that_are_known_or_corrected_are_not_completed_with_errors():
    docs = {"a": "strawberry", "b": "straw", "c": "the strand"}
    ranker = sr.TextRanker("bm25").fit(docs)
    assert ids(ranker.search("strnad", typos=True, prefix=True)) == ["c"], "corrected"
    assert ids(ranker.search("strawberry", typos=True, prefix=True)) == ["a"]
    assert ids(ranker.search("strand the", typos=True, prefix=True)) == ["c"], "a stop word adds nothing"
    assert set(ids(ranker.search("stw", typos=True, prefix=True))) == {"a", "b", "c"}


def test_completions_with_errors_are_those_of_the_definition():
    """The fewest errors; the same first letter if it is possible; all words that documents have."""
    rng, letters = np.random.default_rng(0), list("abc")
    for _ in range(15):
        words = sorted({"".join(rng.choice(letters, rng.integers(2, 11))) for _ in range(12)})
        ranker = sr.TextRanker("bm25", analyzer=None).fit({f"{word}-d": word for word in words})
        for _ in range(30):
            typed = "".join(rng.choice([*letters, "d"], rng.integers(1, 11)))
            found = {hit.id[:-2] for hit in ranker.search(typed, 20, typos=True, prefix=True)}
            if ranker.search(typed, 20, prefix=True) or ranker.search(typed, 20, typos=True):
                continue
            beginnings = [(word, word[:n]) for word in words for n in range(1, len(word) + 1)]
            wanted = set()
            for errors in range(1, (len(typed) >= 2) + (len(typed) >= 8) + 1):
                near = [one for one in beginnings if oracles.edit_distance(typed, one[1]) == errors]
                near = [one for one in near if one[1][0] == typed[0]] or near
                if near:
                    wanted = {word for word, _ in near}
                    break
            assert found == wanted, typed


def mistyped(word, rng):
    """A letter is left out, doubled, replaced, or swapped with the next."""
    at = int(rng.integers(len(word) - 1))
    changed = (word[at + 1 :], word[at] + word[at:], chr(97 + rng.integers(26)) + word[at + 1 :])
    swapped = word[at + 1] + word[at] + word[at + 2 :]
    return word[:at] + (*changed, swapped)[rng.integers(4)]


def test_results_never_disappear_while_a_query_is_typed_even_with_an_error(real):
    real("nfcorpus")
    collection = load("nfcorpus")
    ranker = sr.TextRanker("bm25").fit(collection.documents)
    rng, without_exact = np.random.default_rng(0), 0
    words = [word for word in ranker.lexical_.spelling_index.words if word.isalpha() and len(word) > 3]
    texts = [mistyped(str(word), rng) for word in rng.choice(words, 200, replace=False)]
    for text in [*texts, *list(collection.queries.values())[::400]]:
        existed = False
        for end in range(1, len(text) + 1):
            typed = text[:end]
            found = ranker.search(typed, 1, typos=True, prefix=True)
            assert found or not existed or typed.endswith(" "), typed  # a blank ends a stop word
            existed |= bool(found)
            without_exact += bool(found) and not ranker.search(typed, 1, prefix=True)
    assert without_exact > 200


def test_rewriting_needs_no_words():
    ranker = sr.TextRanker("bm25").fit({"a": "apple"})
    assert isinstance(ranker, TextSearcher)
    rewritten = rewrite(ranker.model_, ranker.index_, "", typos=True, prefix=True)
    assert len(rewritten.terms.indices) == 0
