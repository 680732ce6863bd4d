"""Features counted over partitions are those of the local fit, to the bit, however the texts are spread."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparserank.errors import ConfigError, DataError
from sparserank.spark import SparkTextFeatures, fit_features
from sparserank.spark.features import _batch_counter, _blocks
from sparserank.text import Analyzer, TextFeatures

TEXTS = [
    "Red apples are sweet, and red pears are not",
    "",
    "Ärger, ärger; ǆ 漢字 漢字 😀 zebra_1",
    "the the the",
    "apples apples apples pears",
    "plums\nand\tapples 1999 1999",
]
SETTINGS = [
    {},
    {"weight": "bm25", "unit": False, "analyzer": Analyzer(stem="english", stop_words="english", ngrams=2)},
    {"weight": "tfidf", "columns": 4},
    {"weight": "raw", "hashing": 5, "unit": False},
]


def frame_of(spark, partitions, fields=1):
    """Texts in these partitions, none of them moved; ids count on."""
    number, parts = 0, []
    for part in partitions:
        rows = []
        for text in part:
            rows.append((f"d{number:04d}", *([text] * fields)))
            number += 1
        parts.append(rows)
    rdd = spark.sparkContext.parallelize(range(len(parts)), len(parts)).flatMap(lambda p: parts[p])
    names = ["text", "title"][:fields]
    return spark.createDataFrame(rdd, ", ".join(["id string", *(f"{name} string" for name in names)]))


def assert_same(ours, local):
    assert ours.words_ == local.words_
    assert ours.vocabulary_ == local.vocabulary_
    for name in ("df_", "idf_"):
        mine, theirs = getattr(ours, name), getattr(local, name)
        assert mine.dtype == theirs.dtype
        assert mine.tobytes() == theirs.tobytes()
    assert (ours.documents_, ours.mean_length_) == (local.documents_, local.mean_length_)


def assert_same_rows(blocks, matrix):
    from scipy.sparse import vstack

    assert [i for ids, _ in blocks for i in ids] == [f"d{i:04d}" for i in range(matrix.shape[0])]
    ours = vstack([rows for _, rows in blocks], format="csr")
    assert ours.shape == matrix.shape
    for name in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(ours, name), getattr(matrix, name))
    assert ours.dtype == matrix.dtype


@pytest.mark.parametrize("given", SETTINGS, ids=["sublinear", "bm25 of stems and pairs", "four columns", "hashed"])
def test_words_and_rows_are_the_local_ones_over_skewed_and_empty_partitions(spark, given):
    frame = frame_of(spark, [TEXTS[:1], [], TEXTS[1:], []])
    local = TextFeatures(**given)
    matrix = local.fit_transform(TEXTS)
    ours = SparkTextFeatures(TextFeatures(**given))
    assert_same(ours.fit(frame, "text"), local)
    assert_same_rows(ours.rows(frame, "text", block=2).collect(), matrix)


def test_auto_detects_japanese_over_partitions_as_on_one_machine(spark):
    """The first partition alone is English, and the second has nothing."""
    japanese = ["メソッドは配列の要素を返します。", "ＣＳＳの値を設定する", "オブジェクトの値と配列の長さ"]
    texts = ["This is the name of the object", *japanese]
    local = TextFeatures(analyzer="auto")
    matrix = local.fit_transform(texts)
    assert local.analyzer_.language == "japanese+english"
    assert local.analyzer_.tokens("配列の値") == ["配列", "列の", "の値"]
    ours = SparkTextFeatures(TextFeatures(analyzer="auto"))
    frame = frame_of(spark, [texts[:1], [], texts[1:]])
    fitted = ours.fit(frame, "text")
    assert fitted.analyzer_ == local.analyzer_
    assert_same(fitted, local)
    assert fitted.spellings_.most_frequent() == local.spellings_.most_frequent()
    assert_same_rows(ours.rows(frame, "text").collect(), matrix)


@settings(max_examples=4)
@given(st.lists(st.lists(st.text("ab c\nü漢😀", max_size=12), max_size=5), min_size=1, max_size=4), st.data())
def test_any_texts_in_any_partitions_give_the_local_columns(spark, partitions, data):
    weights = data.draw(st.lists(st.sampled_from([0.0, 1.0, 2.0, 0.3]), min_size=2, max_size=2))
    columns = data.draw(st.sampled_from([None, 2]))
    texts = [text for part in partitions for text in part]
    frame = frame_of(spark, partitions, fields=2)
    how = {"weight": "bm25", "columns": columns, "analyzer": Analyzer(shortest=1)}
    local = TextFeatures(**how)
    counts = local.fit_counts(texts, texts, field_weights=weights)
    ours = fit_features(frame, ["text", "title"], TextFeatures(**how), field_weights=weights)
    assert_same(ours, local)
    blocks = SparkTextFeatures(ours).rows(frame, ["text", "title"], field_weights=weights).collect()
    if texts:
        assert_same_rows(blocks, local.apply_weights(counts))


def test_a_fit_forgets_the_one_before(spark):
    features = TextFeatures().fit(["other words"])
    assert_same(fit_features(frame_of(spark, [TEXTS]), "text", features), TextFeatures().fit(TEXTS))


def test_a_frame_without_texts_raises_an_error_before_any_work(spark):
    frame = spark.createDataFrame([("d1", 3, None)], "id string, number int, text string")
    with pytest.raises(DataError, match=r"texts: no column 'body' \(text\); the columns are id, number, text"):
        fit_features(frame, "body")
    with pytest.raises(DataError, match="texts: column 'number' must be text; its type is integer"):
        fit_features(frame, "number")
    with pytest.raises(DataError, match="texts: column 'text' is empty in 1 rows; fill them in or leave them out"):
        fit_features(frame, "text")
    with pytest.raises(ConfigError, match="one of 'raw'"):
        fit_features(frame, "id", TextFeatures("heavy"))
    with pytest.raises(ConfigError, match="2 fields need 2 weights"):
        fit_features(frame, ["id", "text"], field_weights=[1.0])


@pytest.mark.parametrize("hashing", [None, 4])
def test_a_batch_is_counted_word_by_word_and_the_row_without_a_word_counts_its_texts(hashing):
    import pyarrow as pa

    features = TextFeatures(hashing=hashing, columns=None).fit(["learned before"])
    texts = ["red apple", "red red", ""]
    (found,) = _batch_counter(features, [2.0])([pa.RecordBatch.from_pydict({"text": texts})])
    *words, whole = found.to_pylist()
    assert whole == {"word": None, "spelling": None, "df": 3, "frequency": 0.0}
    local = TextFeatures(hashing=hashing).fit(texts)
    places = [row["word"] if hashing else local.vocabulary_[row["word"]] for row in words]
    assert [row["df"] for row in words] == local.df_[places].tolist()
    assert sum(row["frequency"] for row in words) == 2.0 * 4


def test_blocks_have_the_given_size_and_the_last_has_the_rest():
    features = TextFeatures().fit(TEXTS)
    blocks = list(_blocks(features, [(f"d{i:04d}", text) for i, text in enumerate(TEXTS)], [1.0], 4))
    assert [len(ids) for ids, _ in blocks] == [4, 2]
    assert_same_rows(blocks, features.transform(TEXTS))


def test_spellings_are_counted_beside_the_words():
    import pyarrow as pa

    batch = pa.RecordBatch.from_pydict({"text": ["red apples", "apples and an apple"]})
    (found,) = _batch_counter(TextFeatures(analyzer="english"), [1.0])([batch])
    spelled = {(row["word"], row["spelling"]): row["df"] for row in found.to_pylist() if row["spelling"]}
    assert spelled == {("appl", "apples"): 2, ("appl", "apple"): 1, ("red", "red"): 1}
