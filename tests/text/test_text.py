"""Texts to rows: the same tokens and the same matrix as scikit-learn, and our own additions by their definitions."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from sparserank.errors import ConfigError, DataError, NotFitted
from sparserank.text import Analyzer, TextFeatures, tokens

WORLD = [
    "The quick brown fox jumps over the lazy dog",
    "a Fox, a fox! the DOG barks at the fox_hole",
    "",
    "naïve café ÉCOLE straße Σίσυφος Σ İstanbul 漢字 かな x1 1x _a_",
    "dog dog dog dog",
]
anything = st.lists(st.text(st.characters(), max_size=40), min_size=1, max_size=6)


def literal_hash(word):
    """FNV-1a over the code points, then the finaliser of splitmix64, in whole numbers."""
    h = 0xCBF29CE484222325
    for c in word:
        h = (h ^ ord(c)) * 0x100000001B3 % 2**64
    h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    h = (h ^ h >> 27) * 0x94D049BB133111EB % 2**64
    return h ^ h >> 31


@given(anything)
def test_tokens_are_those_of_the_regular_expression(texts):
    for one in texts:
        assert Analyzer().tokens(one) == re.findall(r"(?u)\b\w\w+\b", one.lower())


@given(anything, st.integers(2, 4))
def test_ngrams_are_those_of_scikit_learn(texts, longest):
    build = CountVectorizer(ngram_range=(1, longest), stop_words=["the", "of"]).build_analyzer()
    ours = Analyzer(ngrams=longest, stop_words=("the", "of"))
    for one in [*texts, *WORLD, "the art of the deal of the day"]:
        assert ours.tokens(one) == build(one)


@pytest.mark.parametrize("ngrams", [1, 2, 3])
@pytest.mark.parametrize("weight", ["raw", "binary", "tfidf", "sublinear"])
@pytest.mark.parametrize("unit", [True, False])
def test_matrix_equals_scikit_learn(weight, unit, ngrams):
    theirs = TfidfVectorizer(
        ngram_range=(1, ngrams),
        use_idf=weight in ("tfidf", "sublinear"),
        sublinear_tf=weight == "sublinear",
        binary=weight == "binary",
        norm="l2" if unit else None,
    )
    ours = TextFeatures(weight, unit=unit, analyzer=Analyzer(ngrams=ngrams))
    expected = theirs.fit_transform(WORLD)
    found = ours.fit_transform(WORLD)
    assert ours.words_ == tuple(theirs.get_feature_names_out())
    assert found.dtype == np.float32
    assert_allclose(found.toarray(), expected.toarray(), atol=1e-6)
    unseen = ["a zebra and a fox", "", "dog"]
    assert_allclose(ours.transform(unseen).toarray(), theirs.transform(unseen).toarray(), atol=1e-6)


def test_bm25_weights_by_the_formula():
    docs = ["red red apple", "green apple", "pear"]
    ours = TextFeatures("bm25", unit=False, k1=1.2, b=0.5)
    found = ours.fit_transform(docs).toarray()
    idf = np.log(1 + (3 - 1 + 0.5) / (1 + 0.5))
    assert_allclose(found[0, ours.vocabulary_["red"]], idf * 2 / (2 + 1.2 * (0.5 + 0.5 * 3 / 2)), rtol=1e-6)
    idf = np.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    assert_allclose(found[1, ours.vocabulary_["apple"]], idf * 1 / (1 + 1.2 * (0.5 + 0.5 * 2 / 2)), rtol=1e-6)


def test_most_frequent_words_are_kept_and_ties_go_to_the_earlier_word():
    ours = TextFeatures("raw", unit=False, columns=2).fit(["bb bb cc aa dd"])
    assert ours.words_ == ("aa", "bb")
    assert ours.counts(["aa bb cc zz"]).unseen.tolist() == [2]


def test_unseen_words_are_counted_text_by_text_and_are_no_error():
    ours = TextFeatures().fit(WORLD)
    counts = ours.counts(["zebra zebra fox", "", "fox dog"])
    assert counts.unseen.tolist() == [2, 0, 0]
    assert ours.transform(["zebra"]).nnz == 0


def test_chunks_do_not_change_the_matrix(monkeypatch):
    whole = TextFeatures(analyzer=Analyzer(ngrams=2)).fit_transform(WORLD * 5)
    monkeypatch.setattr(tokens, "CHUNK_CHARACTERS", 30)
    ours = TextFeatures(analyzer=Analyzer(ngrams=2))
    pieces = ours.fit_transform(WORLD * 5)
    assert (whole != pieces).nnz == 0
    assert (ours.transform(WORLD * 5) != pieces).nnz == 0


def test_a_table_that_overflows_grows():
    words = [f"w{i}" for i in range(100_000)]
    ours = TextFeatures("raw", unit=False)
    assert ours.fit_transform([" ".join(words), " ".join(reversed(words))]).sum() == 200_000
    assert ours.words_ == tuple(sorted(words))


def test_stems_and_stop_words_meet_their_column():
    ours = TextFeatures("raw", unit=False, analyzer=Analyzer(stem="english", stop_words="english"))
    ours.fit(["the runner was running", "runs"])
    assert ours.words_ == ("run", "runner")
    assert ours.counts(["running the"]).matrix.toarray().tolist() == [[1.0, 0.0]]
    assert ours.counts(["running the"]).unseen.tolist() == [0]


@given(anything)
def test_hashed_columns_hold_the_same_counts_as_a_vocabulary(texts):
    named = TextFeatures("raw", unit=False).fit(texts)
    hashed = TextFeatures("raw", unit=False, hashing=24).fit(texts)
    a, b = named.transform(texts), hashed.transform(texts)
    assert b.shape == (len(texts), 1 << 24)
    assert a.sum() == b.sum()
    assert hashed.counts(["word of no text"]).unseen.tolist() == [0]


def test_hashed_columns_are_the_same_on_every_machine_and_collisions_add_up():
    hashed = TextFeatures("raw", unit=False, hashing=10).fit(["apple pear"])
    expected = sorted(literal_hash(word) % 1024 for word in ("apple", "pear"))
    assert hashed.transform(["apple pear apple"]).indices.tolist() == expected
    one = TextFeatures("raw", unit=False, hashing=1).fit_transform([" ".join(f"w{i}" for i in range(50))])
    assert one.has_canonical_format
    assert one.sum() == 50


def test_fields_are_summed_by_their_weights():
    ours = TextFeatures("raw", unit=False)
    total = ours.fit_counts(["apple", ""], ["pear apple", "pear"], field_weights=[2, 1])
    assert ours.words_ == ("apple", "pear")
    assert total.toarray().tolist() == [[3, 1], [0, 1]]
    assert ours.field_counts(["pear"], ["pear"], field_weights=[0, 1]).toarray().tolist() == [[0, 1]]


def test_a_word_that_only_a_field_of_no_weight_has_gets_no_column():
    ours = TextFeatures("raw", unit=False)
    total = ours.fit_counts(["apple", ""], ["pear apple", "pear"], field_weights=[1, 0])
    assert ours.words_ == ("apple",)
    assert total.toarray().tolist() == [[1], [0]]
    assert ours.df_.tolist() == [1]
    assert TextFeatures(columns=2).fit_counts(["bb bb aa"], ["cc cc cc"], field_weights=[1, 0]).shape == (1, 2)
    assert TextFeatures(hashing=4).fit_counts(["aa"], ["bb"], field_weights=[0, 0]).shape == (1, 16)


def test_sublinear_weights_are_linear_below_one_and_never_negative():
    ours = TextFeatures("sublinear", unit=False)
    counts = ours.fit_counts(["aa", "bb"], ["cc", "cc cc"], field_weights=[0.1, 2.0])
    found = ours.apply_weights(counts).toarray() / ours.idf_
    assert_allclose(found, [[0.1, 0.0, 1 + np.log(2)], [0.0, 0.1, 1 + np.log(4)]], rtol=1e-6)


def test_restored_features_give_the_same_rows():
    ours = TextFeatures("bm25").fit(WORLD)
    again = TextFeatures("bm25").restore(ours.words_, ours.df_, ours.documents_, ours.mean_length_)
    assert (again.transform(WORLD) != ours.transform(WORLD)).nnz == 0


def test_no_text_at_all_is_an_empty_matrix():
    ours = TextFeatures()
    assert ours.fit_transform([]).shape == (0, 0)
    assert ours.transform([]).shape == (0, 0)
    assert ours.transform(["word"]).shape == (1, 0)


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: TextFeatures().fit("one text"), DataError, "Put it in a list"),
        (lambda: TextFeatures().fit(["a", None]), DataError, "text 1 is not a text but NoneType"),
        (lambda: TextFeatures().transform(["a"]), NotFitted, "call fit first"),
        (lambda: TextFeatures("idf").fit([]), ConfigError, "'weight'"),
        (lambda: TextFeatures(columns=0).fit([]), ConfigError, "'columns'"),
        (lambda: TextFeatures(hashing=25).fit([]), ConfigError, "'hashing'"),
        (lambda: TextFeatures(hashing=8, columns=8).fit([]), ConfigError, "give one of them"),
        (lambda: TextFeatures(b=1.5).fit([]), ConfigError, "'b'"),
        (lambda: Analyzer(stem="klingon"), ConfigError, "'stem'"),
        (lambda: Analyzer(stop_words="klingon"), ConfigError, "'stop_words'"),
        (lambda: Analyzer(ngrams=0), ConfigError, "'ngrams'"),
        (lambda: Analyzer(shortest=10**30), ConfigError, "'shortest'"),
        (lambda: Analyzer(lowercase=1), ConfigError, "'lowercase' parameter must be True or False. Got 1"),
        (lambda: Analyzer(stop_words=(["a"],)), ConfigError, "'stop_words' parameter must hold words"),
        (lambda: TextFeatures(k1=10**400).fit([]), ConfigError, "'k1'"),
        (lambda: TextFeatures().fit_counts(["a"], ["b", "c"]), DataError, "unequal length"),
        (lambda: TextFeatures().fit_counts(["a"], field_weights=[1, 2]), ConfigError, "need 1 weights"),
        (lambda: TextFeatures().restore(("a",), np.zeros(2, np.int64), 1, 1.0), DataError, "2 document frequencies"),
    ],
)
def test_bad_input_is_rejected_by_name(make, error, says):
    with pytest.raises(error, match=re.escape(says)):
        make()


# ---- the scikit-learn API


def test_a_language_selects_the_stemmer_and_the_stop_words():
    assert Analyzer("english") != Analyzer(stem="english", stop_words="english")
    assert Analyzer("english").tokens("the running dogs") == ["run", "dog"]
    assert Analyzer("english", stem=None).tokens("the running dogs") == ["running", "dogs"]
    assert Analyzer("english", stop_words=None).tokens("the dogs") == ["the", "dog"]
    assert Analyzer("german").tokens("die Bäume") == ["baum"]
    assert Analyzer("german", stop_words=None).tokens("die Bäume") == ["die", "baum"]
    with pytest.raises(ConfigError, match="'language'"):
        Analyzer("klingon")


def test_an_analyzer_is_a_transformer():
    ours = Analyzer("english", ngrams=2)
    assert clone(ours) == ours
    assert repr(ours) == "Analyzer(language='english', ngrams=2)"
    assert ours.set_params(ngrams=1).fit_transform(["red apples", ""]) == [["red", "appl"], []]
    with pytest.raises(ConfigError, match="'ngrams'"):
        ours.set_params(ngrams=0)
    with pytest.raises(ConfigError, match="no parameter 'colour'"):
        ours.set_params(colour=1)
    assert ours.ngrams == 1
    with pytest.raises(DataError, match="Put it in a list"):
        ours.transform("red")


def test_features_are_a_transformer_in_a_pipeline():
    ours = TextFeatures("raw", analyzer=Analyzer("english"), columns=50)
    assert clone(ours).get_params() == ours.get_params()
    assert repr(ours) == "TextFeatures(weight='raw', columns=50, analyzer=Analyzer(language='english'))"
    made = make_pipeline(clone(ours), Normalizer())
    made.set_params(textfeatures__analyzer__ngrams=2)
    assert made[0].analyzer.ngrams == 2
    assert ours.analyzer.ngrams == 1
    assert made.fit_transform(["red apples", "green apple"]).shape == (2, 5)
    assert made[0].get_feature_names_out().tolist() == ["appl", "green", "green appl", "red", "red appl"]
    assert "<td>columns</td><td>50</td>" in ours._repr_html_()


def test_names_of_0_1_work_and_warn():
    ours = TextFeatures().fit(WORLD)
    with pytest.warns(DeprecationWarning, match="apply_weights"):
        assert ours.weighted(ours.counts(WORLD).matrix).shape == (5, len(ours.words_))
    with pytest.warns(DeprecationWarning, match="stop_word_set"):
        assert Analyzer(stop_words=("the",)).stopped == {"the"}


@given(
    st.text() | st.text("abc _ßÅ\u0130é9", max_size=40),
    st.sampled_from([Analyzer(), Analyzer("english", ngrams=2), Analyzer("german", shortest=1, ngrams=3)]),
)
def test_a_single_short_text_is_counted_like_many_texts(text, analyzer):
    features = TextFeatures("raw", unit=False, analyzer=analyzer).fit([text, "ab b c ab the running", "A b"])
    for query in (text, f"{text} ab unknown"):
        one, many = features.counts([query]), features.counts((query,))
        assert one.matrix.shape == many.matrix.shape
        assert one.unseen.tolist() == many.unseen.tolist()
        for name in ("indptr", "indices", "data"):
            got, wanted = getattr(one.matrix, name), getattr(many.matrix, name)
            assert got.dtype == wanted.dtype
            assert got.tolist() == wanted.tolist()
        longer = TextFeatures("raw", analyzer=replace(analyzer, ngrams=3)).fit([text])
        for words in (None, features.short_words(query), longer.short_words(query)):
            columns, counts = features.count_words(query, words)
            assert (columns.tolist(), counts.tolist()) == (many.matrix.indices.tolist(), many.matrix.data.tolist())
