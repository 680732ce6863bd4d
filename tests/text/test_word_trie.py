"""Words with errors, against the definition of the edit distance."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sparserank.text import Analyzer, TextFeatures
from sparserank.text.surface_forms import Candidate, SurfaceForms
from sparserank.text.word_trie import MAX_LETTERS, WordTrie

from .. import oracles

LETTERS = st.text(alphabet="abcé𝒶", min_size=0, max_size=9)


@given(words=st.sets(LETTERS, max_size=40), query=LETTERS, errors=st.integers(0, 2))
@example(words={"ca", "abc"}, query="ca", errors=2)
@example(words={"abcdefgh"}, query="badcefgh", errors=2)
@example(words={"abcdefgh"}, query="abcedfgh", errors=1)
@example(words={"abcdefgh"}, query="abcdefghxy", errors=2)
@example(words=set(), query="abc", errors=2)
def test_the_words_within_a_distance_are_those_of_the_definition(words, query, errors):
    ordered = sorted(words)
    wanted = {i: d for i, word in enumerate(ordered) if word and (d := oracles.edit_distance(query, word)) <= errors}
    assert WordTrie(ordered).within(query, errors) == (wanted if query else {})


@given(words=st.sets(LETTERS, max_size=40), data=st.data())
def test_words_near_a_word_of_the_list_are_found(words, data):
    ordered = sorted(words | {"abcabcab"})
    word = data.draw(st.sampled_from([word for word in ordered if len(word) > 2]))
    at = data.draw(st.integers(0, len(word) - 2))
    changes = (
        word[:at] + word[at + 1] + word[at] + word[at + 2 :],
        word[:at] + word[at + 1 :],
        word[:at] + "x" + word[at:],
    )
    for changed in changes:
        assert WordTrie(ordered).within(changed, 1)[ordered.index(word)] <= 1


@given(words=st.sets(LETTERS, max_size=40), prefix=LETTERS)
def test_a_prefix_finds_the_words_that_start_with_it(words, prefix):
    ordered = sorted(words)
    assert [ordered[i] for i in WordTrie(ordered).with_prefix(prefix)] == [w for w in ordered if w.startswith(prefix)]


@given(words=st.sets(LETTERS, max_size=40), prefix=LETTERS, errors=st.integers(0, 2))
@example(words={"strawberry"}, prefix="starwb", errors=1)
@example(words={"abc", "bca"}, prefix="a", errors=1)
@example(words={"b" * (MAX_LETTERS + 1), "b" * MAX_LETTERS}, prefix="cb", errors=1)
def test_beginnings_within_a_distance_have_the_words_of_the_definition(words, prefix, errors):
    ordered = sorted(words)
    trie = WordTrie(ordered)
    found = trie.beginnings(prefix, errors)
    wanted = {
        word
        for word in words
        if any(oracles.edit_distance(prefix, word[:n]) <= errors for n in range(1, len(word) + 1))
    }
    covered = [ordered[i] for one in found for i in trie.with_prefix(one)]
    assert sorted(covered) == (sorted(wanted) if prefix else []), "each word once"
    assert all(oracles.edit_distance(prefix, one) <= errors for one in found)
    assert sorted(trie.beginnings(prefix, errors, same_first=True)) == sorted(
        one for one in found if one[0] == prefix[0]
    )


def test_more_words_than_there_is_room_for_are_all_found():
    words = sorted(a + b + c for a in "abcdefgh" for b in "abcdefgh" for c in "abcdefgh")
    assert len(WordTrie(words).within("xyz", 2)) == 0
    assert (
        len(WordTrie(words).within("abc", 2))
        == sum(oracles.edit_distance("abc", word) <= 2 for word in words)
        > 256 // 4
    )
    assert len(WordTrie([chr(0x100 + i) + "abc" for i in range(400)]).within("zabc", 1)) == 400


def test_a_very_long_word_is_found_by_its_first_letters_only():
    words = ["b" * MAX_LETTERS, "b" * (MAX_LETTERS + 1)]
    trie = WordTrie(words)
    assert list(trie.with_prefix("bbb")) == [0, 1]
    assert trie.within("b" * (MAX_LETTERS + 1), 1) == {}
    assert trie.within("b" * (MAX_LETTERS - 2) + "c", 2) == {0: 2}


def test_spellings_are_searched_and_stems_only_for_a_stem():
    texts = ["studies of studies", "studied once", "studying", "the horses"]
    forms = SurfaceForms(TextFeatures(analyzer="english").fit(texts))
    assert forms.within("studyng", 1)[0].spelling == "studying"
    (columns, share) = forms.with_prefix("study")
    assert (len(columns), share.tolist()) == (1, [5 / 8])
    assert forms.within("studi", 1) == []
    assert [one.spelling for one in forms.within("studj", 1, stems=True)] == ["studies"]
    assert forms.within("hors", 0) == []
    assert len(forms.with_prefix("hors")[0]) == 1
    for typed, column, letters in (("hsors", 0, 4 / 6), ("sthdyi", columns[0], 6 / 8)):
        near, share = forms.with_prefix(*forms.beginnings(typed, errors=1))
        assert (near.tolist(), share.tolist()) == ([column], [letters]), "of horses, of studying"


@pytest.mark.parametrize("typed", ["élephnt", "elephnt"])
def test_accents_count_only_where_stems_have_them(typed):
    french = SurfaceForms(TextFeatures(analyzer=Analyzer("french")).fit(["un éléphant"]))
    assert french.within(typed, 1) == [Candidate(0, "elephant", 1)]
    plain = SurfaceForms(TextFeatures(analyzer=Analyzer()).fit(["un éléphant"]))
    assert plain.within(typed, 1) == []
