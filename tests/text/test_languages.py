"""Languages: one text gives the same words as many, spans lie in the text as it is, and words tell the language."""

from __future__ import annotations

import re
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparserank.errors import ConfigError, NotInstalled
from sparserank.text import Analyzer, TextFeatures
from sparserank.text.compounds import Compounds
from sparserank.text.normalization import fold, fold_with_positions, word_characters, word_pattern
from sparserank.text.segmentation import PACKAGES, SEGMENTED, segment, segmenter_version
from sparserank.text.spellings import Spellings
from sparserank.text.tokens import short_text_tokens, tokenize

SENTENCES = {
    "arabic": "ترجع هذه الطريقة كائنًا جديدًا من",
    "chinese": "该方法返回一个新的对象。",
    "czech": "Metoda vrací nový objekt a je podporována ve všech prohlížečích, které",
    "danish": "Metoden returnerer et nyt objekt, og den er understøttet af alle browsere, som ikke",
    "dutch": "De methode geeft een nieuw object terug en wordt door alle browsers ondersteund",
    "english": "The method returns a new object and is supported by all of the browsers",
    "finnish": "Menetelmä palauttaa uuden olion ja se on tuettu kaikissa selaimissa, mutta ei",
    "french": "La méthode renvoie un nouvel objet et elle est prise en charge par tous les navigateurs",
    "german": "Die Methode gibt ein neues Objekt zurück und wird von allen Browsern unterstützt",
    "greek": "Η μέθοδος επιστρέφει ένα νέο αντικείμενο και",
    "hindi": "यह विधि एक नई वस्तु लौटाती है",
    "hungarian": "A metódus egy új objektumot ad vissza, és ez az összes böngészőben",
    "italian": "Il metodo restituisce un nuovo oggetto ed è supportato da tutti i browser che sono",
    "japanese": "このメソッドは新しいオブジェクトを返します。",
    "korean": "이 메서드는 새로운 객체를 반환합니다",
    "norwegian": "Metoden returnerer et nytt objekt, og den støttes av alle nettlesere som ikke",
    "polish": "Metoda zwraca nowy obiekt i jest obsługiwana przez wszystkie przeglądarki, które",
    "portuguese": "O método retorna um novo objeto e não é suportado por todos os navegadores",
    "romanian": "Metoda returnează un obiect nou și este suportată de toate browserele care",
    "russian": "Метод возвращает новый объект и поддерживается всеми браузерами, но не",
    "spanish": "El método devuelve un nuevo objeto y es compatible con todos los navegadores",
    "swedish": "Metoden returnerar ett nytt objekt och den stöds av alla webbläsare som är",
    "thai": "วิธีนี้คืนค่าวัตถุใหม่",
    "turkish": "Bu yöntem yeni bir nesne döndürür ve tüm tarayıcılar için",
    "ukrainian": "Метод повертає новий обʼєкт і він підтримується всіма браузерами, але не",
}
letters = st.one_of(
    st.characters(),
    st.sampled_from("aZéß ıİΣςﬁ日本語のプロパティｶﾞ한국어ภาษาไทยहिन्दी１２_ \u0301\u3099\u1161\u11a8"),
)
world = st.lists(st.text(letters, max_size=30), min_size=1, max_size=4)
ANALYZERS = [
    Analyzer("english", normalize=True), Analyzer("german", ngrams=2), Analyzer("french"), Analyzer("auto"),
    Analyzer("japanese", shortest=3), Analyzer("chinese", lowercase=False), Analyzer("russian+english+thai"),
    Analyzer(segmenter="bigrams"), Analyzer("english", accents="fold"),
    Analyzer("german", compounds=Compounds({"datei": 9, "name": 20, "aaa": 5})),
]  # fmt: skip


@pytest.mark.parametrize("analyzer", ANALYZERS, ids=repr)
@given(world)
@settings(max_examples=25)
def test_one_text_gives_the_same_tokens_as_many(analyzer, texts):
    texts = [*texts, *SENTENCES.values(), "Dateiname aaadatei"]
    rows = []
    for names, tokens, stops in tokenize(analyzer, texts):
        rows += [[names[t] for t in row] for row in np.split(tokens, stops[:-1])]
    assert rows == [short_text_tokens(analyzer, text) for text in texts]


@given(st.text(letters, max_size=40), st.booleans())
def test_parts_of_a_text_are_folded_as_the_whole(text, lowercase):
    folded, positions = fold_with_positions(text, lowercase)
    assert folded == fold(text, lowercase)
    assert len(positions) == len(folded) + 1
    assert positions == sorted(positions)
    assert positions[-1] == len(text)


def test_only_marks_and_hangul_join_the_character_before_them():
    seconds = {
        unicodedata.normalize("NFD", chr(c))[1]
        for c in range(0x110000)
        if len(unicodedata.normalize("NFD", chr(c))) > 1
    }
    others = {c for c in seconds if unicodedata.category(c)[0] != "M"}
    assert all("\u1161" <= c <= "\u11ff" for c in others)


@pytest.mark.parametrize("analyzer", ANALYZERS, ids=repr)
@given(st.text(letters, max_size=40))
@settings(max_examples=25)
def test_spans_are_the_words_in_the_text_as_it_is(analyzer, text):
    spans = analyzer.spans(text)
    words = short_text_tokens(analyzer, text)
    assert [form for _, _, form in spans] == (words if analyzer.ngrams == 1 else words[: len(spans)])
    assert all(0 <= start < end <= len(text) for start, end, _ in spans)


def test_spans_cover_what_a_reader_sees():
    text = "ＨＴＭＬ: die Bäume, Straßen und ｶﾞの日本語"
    found = [(text[start:end], form) for start, end, form in Analyzer("german").spans(text)]
    assert found == [
        ("ＨＴＭＬ", "html"), ("Bäume", "baum"), ("Straßen", "strass"),
        ("ｶﾞの", "ガの"), ("の日", "の日"), ("日本", "日本"), ("本語", "本語"),
    ]  # fmt: skip


def test_marks_are_part_of_words_only_where_texts_are_normalized():
    assert Analyzer("hindi", stem=None).tokens("हिन्दी") == ["हिन्दी"]
    assert Analyzer().tokens("हिन्दी") == re.findall(r"\w\w+", "हिन्दी")
    assert word_pattern(True).fullmatch("".join(chr(c) for c in np.flatnonzero(word_characters(True))))


def test_english_and_no_language_are_plain_and_every_other_language_is_not():
    assert Analyzer().is_plain
    assert Analyzer("english").is_plain
    assert Analyzer(stem="german").is_plain
    assert Analyzer("english").tokens("ﬁre 日本語") == ["ﬁre", "日本語"]
    assert Analyzer("english", normalize=True).tokens("ﬁre 日本語") == ["fire", "日本", "本語"]
    assert not Analyzer("german").is_plain


def test_bigrams_are_overlapping_pairs_and_a_single_character_is_a_word():
    assert Analyzer("japanese").tokens("css値と") == ["css", "値と"]
    assert Analyzer("chinese").tokens("值 属性值 a") == ["值", "属性", "性值"]
    assert Analyzer("japanese").tokens("から") == ["から"]
    assert Analyzer("korean").tokens("새로운 객체를") == ["새로운", "객체를"]
    assert Analyzer("thai").tokens("ภาษา") == ["ภา", "าษ", "ษา"]


@pytest.mark.parametrize(
    ("segmenter", "text", "words"),
    [
        ("jieba", "使用层叠样式表", ["使用", "层叠", "样式表"]),
        ("fugashi", "日本語を使用する", ["日本", "語", "を", "使用", "する"]),
        ("icu", "日本語を使用する", ["日本語", "を", "使用", "する"]),
        ("icu", "ภาษาไทย", ["ภาษา", "ไทย"]),
        ("jieba", "ภาษา", ["ภา", "าษ", "ษา"]),
    ],
)
def test_segmenters_split_their_scripts_and_bigrams_the_others(segmenter, text, words):
    for package in PACKAGES[segmenter]:
        pytest.importorskip(package.replace("-", "_"), reason=f"the extra 'segmenters' is missing: no {package}")
    found = Analyzer("japanese", segmenter=segmenter, stop_words=None).tokens(text)
    assert found == words
    assert segmenter_version(segmenter)


@pytest.mark.parametrize("segmenter", ["bigrams", *PACKAGES])
@given(st.text(st.sampled_from("a1é日本語のプロパティ漢字ภาษาไทยลา한국"), min_size=1, max_size=20))
@settings(max_examples=25)
def test_pieces_cover_a_run(segmenter, run):
    if segmenter != "bigrams":
        try:
            segmenter_version(segmenter)
        except NotInstalled as error:
            pytest.skip(str(error))
    pieces = list(segment(segmenter, run))
    assert {i for start, end, _ in pieces for i in range(start, end)} == set(range(len(run)))
    assert all(bool(SEGMENTED.search(run[start:end])) == (kind != "run") for start, end, kind in pieces)


def test_a_missing_segmenter_names_the_extra(monkeypatch):
    monkeypatch.setitem(PACKAGES, "icu", ("no-such-package",))
    with pytest.raises(
        NotInstalled, match=r"needs the package no-such-package: pip install 'sparserank\[segmenters\]'"
    ):
        Analyzer(segmenter="icu")


@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_tells_its_language(language):
    assert Analyzer("auto").detect([SENTENCES[language]]).language == language


def test_languages_of_several_scripts_are_detected_and_quoted_ones_are_not():
    texts = [SENTENCES["russian"], SENTENCES["english"], SENTENCES["russian"]]
    assert Analyzer("auto").detect(texts).language == "russian+english"
    assert Analyzer("auto").detect(texts * 10, ["ψ"]).language == "russian+english"
    assert Analyzer("auto").detect(["x = f(y, z)", "foo bar"]).language is None
    assert Analyzer("german").detect(texts).language == "german"
    found = TextFeatures(analyzer="auto").fit([SENTENCES["german"]])
    assert found.analyzer_.language == "german"
    assert found.analyzer_.normalizes
    assert found.analyzer == "auto"
    assert "objekt" in found.words_


def test_every_stemmer_stems_its_script():
    found = Analyzer("russian+english").tokens("Программы running быстро the и")
    assert found == ["программ", "run", "быстр"]


def test_accents_are_folded_after_the_stem():
    assert Analyzer("french").tokens("élève créé") == Analyzer("french").tokens("eleve cree") == ["elev", "cre"]
    assert Analyzer("french", accents="keep").tokens("élève") == ["élev"]
    assert Analyzer("swedish").tokens("år") == ["år"]
    assert Analyzer("russian", accents="fold").tokens("йод") == ["йод"]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Analyzer("german+english"), "german and english share theirs"),
        (lambda: Analyzer("klingon+english"), "'language'"),
        (lambda: Analyzer(segmenter="mecab"), "'segmenter'"),
        (lambda: Analyzer(normalize="yes"), "'normalize'"),
        (lambda: Analyzer(accents="none"), "'accents'"),
        (lambda: Analyzer(compounds="yes"), "'compounds'"),
    ],
)
def test_a_bad_setting_is_rejected_by_name(make, says):
    with pytest.raises(ConfigError, match=re.escape(says)):
        make()


def literal_splits(word, known):
    """Every split of a word into two to four known words, each but the last with a linking element."""
    links = ("", "s", "es", "n", "en", "er", "e")
    if not word:
        return [()]
    out = [(word,)] if word in known else []
    for part in known:
        for link in links:
            if word.startswith(part + link) and len(word) > len(part + link):
                out += [(part, *rest) for rest in literal_splits(word[len(part + link) :], known)]
    return out


@given(st.dictionaries(st.text("aens", min_size=3, max_size=5), st.integers(5, 50), max_size=8), st.data())
def test_a_compound_is_split_into_the_fewest_then_the_most_frequent_parts(known, data):
    word = data.draw(st.text("aens", min_size=8, max_size=14))
    found = [word[a:b] for a, b in Compounds(known).split(word)]
    splits = [one for one in literal_splits(word, known) if 2 <= len(one) <= 4]
    if not splits:
        assert found == []
        return
    best = min(splits, key=lambda one: (len(one), -np.sum(np.log([known[part] for part in one]))))
    assert len(found) == len(best)
    assert np.isclose(np.sum(np.log([known[part] for part in found])), np.sum(np.log([known[part] for part in best])))


def test_parts_of_compounds_are_learned_from_the_collection():
    texts = ["die Datei"] * 9 + ["der Name"] * 20 + ["ein Dateiname"] * 2
    found = TextFeatures("raw", unit=False, analyzer=Analyzer("german", compounds=True)).fit(texts)
    assert found.analyzer_.tokens("Dateiname") == ["dateinam", "datei", "nam"]
    assert found.transform(["Dateiname"]).sum() == 3
    frequent = TextFeatures(analyzer=Analyzer("german", compounds=True)).fit([*texts, *["Dateiname"] * 50])
    assert frequent.analyzer_.tokens("Dateiname") == ["dateinam"]


def test_a_stem_is_spelled_as_most_texts_spell_it():
    ours = TextFeatures(analyzer="english").fit(["Apples and an apple", "apples, pear", "running runs"])
    assert ours.spellings_.most_frequent() == {"appl": "apples", "run": "running"}
    assert TextFeatures().fit(["apples"]).spellings_.most_frequent() == {}
    german = TextFeatures(analyzer="german").fit(["Die Bäume", "Bäume und Baum"])
    assert german.spellings_.most_frequent() == {"baum": "bäume"}


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz")), max_size=20))
def test_spellings_of_parts_add_up(pairs):
    whole = Spellings()
    for form, word in pairs:
        whole.add([word], [form], np.zeros(1, np.int32))
    expected = {
        form: min({w for f, w in pairs if f == form}, key=lambda w, form=form: (-pairs.count((form, w)), w))
        for form in {f for f, _ in pairs}
    }
    assert whole.most_frequent() == expected
    assert Spellings(expected).most_frequent() == expected
