"""A passage shows the part of a document that earned its score, and marks the words as the document spells them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparserank.search.snippets import MAX_CHARACTERS, Mark, WordCache, passage
from sparserank.text import Analyzer
from sparserank.text.compounds import Compounds

FILE_NAME = Compounds({"datei": 9, "name": 9})
ENGLISH = Analyzer(stem="english", stop_words="english")
WORDS = st.sampled_from(
    ["rank", "Ranking", "ranked", "the", "İstanbul", "ΟΔΟΣ", "a_b", "x", "sort.", "of", "naïve", "\n"]
)
TEXTS = st.lists(WORDS, max_size=60).map(" ".join)
ANALYZERS = st.sampled_from(
    [ENGLISH, Analyzer(), Analyzer(lowercase=False, shortest=1), Analyzer(ngrams=2, stem="english")]
)


def marked(found):
    return [(found.text[mark.start : mark.end], mark.pairs) for mark in found.marks]


def test_words_are_marked_as_the_document_spells_them_with_every_pair_that_met_them():
    found = passage(ENGLISH, "Ranked lists; RANKING, the rank.", [("rank", 1.0), ("list", 2.0), ("rank", -1.0)])
    assert found.text == "Ranked lists; RANKING, the rank."
    assert marked(found) == [("Ranked", (0, 2)), ("lists", (1,)), ("RANKING", (0, 2)), ("rank", (0, 2))]


def test_the_part_that_adds_most_is_shown_and_cuts_are_said():
    text = "rank " * 50 + "filler " * 50 + "Here we sort a list. " + "filler " * 50
    found = passage(ENGLISH, text, [("rank", 1.0), ("sort", 0.7), ("list", 0.6)], length=80)
    assert {word for word, _ in marked(found)} == {"sort", "list"}
    assert found.text.startswith("… ")
    assert found.text.endswith(" …")


def test_a_word_that_takes_away_is_marked_but_does_not_choose_the_part():
    text = "bad " + "filler " * 100 + "good bad"
    assert marked(passage(ENGLISH, text, [("bad", -5.0), ("good", 0.1)], length=40)) == [("good", (1,)), ("bad", (0,))]


def test_a_passage_starts_with_the_sentence_of_its_first_word_where_there_is_room():
    text = "Something else entirely. " * 10 + "Now the ranking begins. " + "And goes on. " * 20
    assert passage(ENGLISH, text, [("rank", 1.0)], length=60).text.startswith("… Now the ranking begins. ")


def test_a_passage_at_the_end_shows_what_stands_before():
    text = "First sentence here. " * 10 + "Last is ranking."
    found = passage(ENGLISH, text, [("rank", 1.0)], length=60)
    assert found.text == "… First sentence here. First sentence here. Last is ranking."


def test_neighbouring_words_are_marked_each_and_only_where_they_are_neighbours():
    analyzer = Analyzer(stem="english", stop_words="english", ngrams=2)
    found = passage(analyzer, "A list of files; files, a list.", [("list file", 1.0)])
    assert marked(found) == [("list", (0,)), ("files", (0,))]


def test_a_letter_that_becomes_two_in_lower_case_moves_no_mark():
    assert marked(passage(ENGLISH, "İİİ and İzmir ranks", [("rank", 1.0), ("zmir", 1.0)])) == [
        ("zmir", (1,)),
        ("ranks", (0,)),
    ]


def test_without_pairs_the_opening_is_shown():
    assert passage(ENGLISH, "word " * 100, [], length=12).text == "word word …"
    assert passage(ENGLISH, "", []).text == ""


def test_a_word_longer_than_the_passage_is_shown_whole():
    assert marked(passage(ENGLISH, "in front " + "x" * 50 + " behind", [("x" * 50, 1.0)], length=10)) == [
        ("x" * 50, (0,))
    ]


def test_a_very_long_document_is_read_only_so_far():
    found = passage(ENGLISH, "a" + " " * MAX_CHARACTERS + "rank", [("rank", 1.0)])
    assert (found.text, found.marks) == ("a …", ())


@given(TEXTS, ANALYZERS, st.integers(1, 200), st.lists(st.floats(-2, 2), max_size=6))
def test_marks_are_words_of_the_document_in_order_with_the_pairs_of_their_forms(text, analyzer, length, values):
    forms = list(dict.fromkeys(analyzer.tokens(text)))[: len(values)]
    found = passage(analyzer, text, list(zip(forms, values, strict=False)), length)
    bare = found.text.removeprefix("… ").removesuffix(" …")
    assert bare in " ".join(text.split())
    ends = [0, *(mark.end for mark in found.marks)]
    assert all(isinstance(mark, Mark) and before <= mark.start for before, mark in zip(ends, found.marks, strict=False))
    one_word = [number for number, form in enumerate(forms) if " " not in form]
    for word, numbers in marked(found):
        if "İ" not in word:
            own = {number for number in one_word if analyzer.tokens(word)[0] == forms[number]}
            assert own == {number for number in numbers if number in one_word}
    if len(" ".join(text.split())) <= length:
        assert {n for mark in found.marks for n in mark.pairs} == set(range(min(len(forms), len(values))))


@given(TEXTS, st.integers(1, 60))
def test_a_passage_is_no_longer_than_asked_save_for_one_long_word(text, length):
    found = passage(ENGLISH, text, [("rank", 1.0), ("sort", 0.5)], length)
    longest = max(map(len, text.split()), default=0)
    assert len(re.sub("^… | …$", "", found.text)) <= max(length, longest)


@pytest.mark.parametrize("analyzer", [ENGLISH, Analyzer(stop_words=("rank",))])
def test_stop_words_are_never_marked(analyzer):
    (stop,) = analyzer.stop_word_set & {"the", "rank"}
    assert passage(analyzer, f"{stop} end", [(stop, 1.0)]).marks == ()


def test_what_is_kept_of_documents_is_bounded_by_their_length_and_the_last_ones_stay():
    read, texts = WordCache(max_characters=1000), [f"word{number} " * 40 for number in range(20)]
    found = [read.words(ENGLISH, text) for text in texts]
    assert read.characters <= 1000 < sum(map(len, texts))
    assert read.words(ENGLISH, texts[-1]) is found[-1]
    assert read.words(ENGLISH, texts[0]) is not found[0]
    assert read.words(ENGLISH, texts[0]).starts.tolist() == found[0].starts.tolist()
    long = "longer " * 1000
    assert len(read.words(ENGLISH, long).forms) == 1000
    assert read.characters <= 1000


@pytest.mark.parametrize(
    ("analyzer", "text", "words", "marked"),
    [
        (Analyzer("japanese"), "ＣＳＳの値。日本語を学ぶ", ["日本", "本語", "css"], ["ＣＳＳ", "日本語"]),
        (Analyzer("chinese"), "层叠样式表属性", ["样式", "属性"], ["样式", "属性"]),
        (Analyzer("german"), "Die Straßen und Bäume", ["strass", "baum"], ["Straßen", "Bäume"]),
        (Analyzer("french"), "Les élèves", ["elev"], ["élèves"]),
        (Analyzer("german", compounds=FILE_NAME), "Dateiname", ["nam", "dateinam"], ["Dateiname"]),
        (Analyzer("russian+english"), "Программы running", ["программ", "run"], ["Программы", "running"]),
    ],
)  # fmt: skip
def test_marks_cover_words_of_every_language_and_do_not_overlap(analyzer, text, words, marked):
    snippet = passage(analyzer, text, [(word, 1.0) for word in words])
    assert [snippet.text[mark.start : mark.end] for mark in snippet.marks] == marked
    assert sorted(number for mark in snippet.marks for number in mark.pairs) == list(range(len(words)))


def test_a_passage_without_blanks_is_as_long_as_it_may_be():
    text = "日本語の文章" * 100 + "値" + "日本語の文章" * 100
    snippet = passage(Analyzer("japanese"), text, [("章値", 1.0)], length=100)
    assert 90 <= len(snippet.text.replace("…", "").strip()) <= 100
    assert [snippet.text[mark.start : mark.end] for mark in snippet.marks] == ["章値"]
