"""Dense scores beside words and pairs: tuning, search, explanations, files and errors."""

from __future__ import annotations

import numpy as np
import pytest

import sparserank as sr
from sparserank.errors import ConfigError, DataError, ModelError, NotFitted
from sparserank.text_ranker import load_text
from sparserank.text_ranker.dense_search import dense_path

from ..fruits import fruits

DIMENSIONS = 12


def world(seed=0, signal=1.0):
    """Texts that say little, and vectors that say which of 24 topics a text has."""
    rng = np.random.default_rng(seed)
    topics = rng.normal(size=(24, DIMENSIONS))
    docs = {f"d{i:02}": f"word{i % 4} thing{rng.integers(9)}" for i in range(96)}
    queries = {f"q{i:02}": f"word{i % 4}" + f" ask{i}" for i in range(48)}
    qrels = {f"q{i:02}": {f"d{d:02}": 1.0 for d in range(96) if d % 24 == i % 24} for i in range(48)}
    D = signal * topics[np.arange(96) % 24] + rng.normal(size=(96, DIMENSIONS)) / 2
    Q = signal * topics[np.arange(48) % 24] + rng.normal(size=(48, DIMENSIONS)) / 2
    return docs, queries, qrels, Q, D


@pytest.fixture(scope="module")
def fitted():
    docs, queries, qrels, Q, D = world()
    ranker = sr.TextRanker("bm25").fit(docs, queries, qrels, dense=sr.Dense(Q, D, name="topics", dtype="float32"))
    return ranker, docs, queries, qrels, Q, D


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def test_the_score_is_the_score_of_words_plus_weight_times_cosine(fitted):
    ranker, _, queries, _, Q, D = fitted
    weight, words = ranker.model_.dense.weight, ranker.words_only().scores(queries.values())
    assert weight > 0.0
    expected = words + weight * (unit(Q) @ unit(D).T)
    scores = ranker.scores(queries.values(), dense=Q)
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-6)
    for row, text in enumerate(queries.values()):
        hits = ranker.search(text, 10, dense=Q[row])
        best = sorted(zip(scores[row], ranker.index_.input_ids, strict=True), reverse=True)[:10]
        assert [hit.id for hit in hits] == [one for _, one in best]
        np.testing.assert_allclose([hit.score for hit in hits], [score for score, _ in best], rtol=1e-5)
        assert hits[3:7] == ranker.search(text, 4, offset=3, dense=Q[row])


def test_the_dense_score_is_kept_because_held_out_queries_gain(fitted):
    ranker, _, queries, qrels, Q, _ = fitted
    score = ranker.model_.dense
    assert score.held_out_dense > score.held_out + 0.2
    assert score.p_value <= 0.01
    words = sr.evaluation.evaluate_run(ranker.words_only().run(queries), qrels, "nDCG@10").mean()
    dense = sr.evaluation.evaluate_run(ranker.run(queries, dense=Q), qrels, "nDCG@10").mean()
    assert score.held_out == pytest.approx(words, abs=1e-6)
    assert score.held_out_dense == pytest.approx(dense, abs=1e-6)


def test_vectors_without_a_signal_get_the_weight_0_and_need_no_vector():
    docs, queries, qrels, Q, D = world(signal=0.0)
    ranker = sr.TextRanker("bm25").fit(docs, queries, qrels, dense=(Q, D))
    assert ranker.model_.dense.weight == 0.0
    assert ranker.search("word1") == ranker.search("word1", dense=Q[1]) == ranker.words_only().search("word1")
    assert ranker.over(docs).embed(D).search("word1") == ranker.search("word1")


def test_learned_pairs_and_vectors_add_up_and_are_explained():
    data = fruits()
    rng = np.random.default_rng(0)
    topic = rng.normal(size=(20, 8))
    Q, D = (topic[np.arange(n) % 20] + rng.normal(size=(n, 8)) / 3 for n in (40, 60))
    queries = {query: text.replace("red", "rot").replace("blue", "blau") for query, text in data.queries.items()}
    messages = []
    ranker = sr.TextRanker(loss="squared").fit(
        data.documents, queries, data.qrels["train"], dense=(Q, D), callback=messages.append
    )
    assert "tuning the weight of the dense score" in messages
    text, vector = queries["q3"], Q[3]
    assert ranker.model_.n_pairs > 0
    explanation = ranker.explain(text, "d3", dense=vector)
    assert explanation.score == pytest.approx(float(ranker.scores([text], ["d3"], dense=[vector])[0, 0]), rel=1e-5)
    assert sum(pair.contribution for pair in explanation.pairs) == pytest.approx(explanation.score, rel=1e-5)
    lines = [pair for pair in explanation.pairs if pair.query == "query vector"]
    assert len(lines) == (ranker.model_.dense.weight > 0.0)
    assert explanation.learned == ranker.words_only().explain(text, "d3").learned


def test_the_explanation_has_one_line_for_the_vectors(fitted):
    ranker, _, queries, _, Q, D = fitted
    (line,) = [pair for pair in ranker.explain(queries["q05"], "d05", dense=Q[5]).pairs if pair.document == "topics"]
    cosine = float(unit(Q[5]) @ unit(D[5]))
    assert line.contribution == pytest.approx(ranker.model_.dense.weight * cosine, rel=1e-5)
    assert line.note == f"cosine {cosine:.3f}"
    difference = ranker.compare(queries["q05"], "d05", "d06", dense=Q[5])
    assert any(pair.document == "topics" for pair in difference.pairs)


def test_a_missing_vector_is_a_clear_error(fitted):
    ranker, _, _, _, Q, _ = fitted
    with pytest.raises(DataError, match=r"vectors of topics \(12 dimensions\): give the vector of the query as dense"):
        ranker.search("word1")
    for call in (ranker.scores, ranker.search_many):
        with pytest.raises(DataError, match="words_only"):
            call(["word1"])
    with pytest.raises(DataError, match="must have 12 dimensions; got 5"):
        ranker.search("word1", dense=np.ones(5))
    with pytest.raises(DataError, match="not finite"):
        ranker.search("word1", dense=np.full(DIMENSIONS, np.nan))
    with pytest.raises(DataError, match="this model has no dense score"):
        sr.TextRanker("bm25").fit({"d": "word"}).search("word", dense=Q[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda Q, D: (Q[:-1], D), "queries must have 48 rows; got 47"),
        (lambda Q, D: (Q, D[:, :3]), "queries must have 3 dimensions; got 12"),
        (lambda Q, D: (Q, {"d00": D[0]}), "the vectors of documents are missing for 95 of 96; the first is 'd01'"),
        (lambda Q, D: Q, r"dense must be \(Q, D\)"),
        (lambda Q, D: (["a"], D), "must be numbers"),
    ],
)
def test_vectors_that_do_not_fit_the_texts_are_errors(change, message):
    docs, queries, qrels, Q, D = world()
    with pytest.raises(DataError, match=message):
        sr.TextRanker("bm25").fit(docs, queries, qrels, dense=change(Q, D))


def test_the_weight_needs_judged_queries():
    docs, queries, _, Q, D = world()
    with pytest.raises(DataError, match="needs at least two judged queries; got 0"):
        sr.TextRanker("bm25").fit(docs, queries, dense=(Q, D))
    with pytest.raises(ConfigError, match="class labels have none"):
        sr.TextRanker().fit(docs, qrels=sr.Preferences.from_labels(np.arange(96) % 2), dense=(Q, D))
    with pytest.raises(ConfigError, match="dtype"):
        sr.Dense(Q, D, dtype="int8")


def test_vectors_by_id_are_vectors_by_row(fitted):
    ranker, docs, queries, qrels, Q, D = fitted
    by_id = sr.Dense(dict(zip(queries, Q, strict=True)), dict(zip(docs, D, strict=True)), "topics", "float32")
    again = sr.TextRanker("bm25").fit(docs, queries, qrels, dense=by_id)
    assert again.model_.dense == ranker.model_.dense
    assert again.run(queries, dense=dict(zip(queries, Q, strict=True))) == ranker.run(queries, dense=Q)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_file_holds_the_requirement_and_a_mapped_file_the_vectors(dtype, tmp_path):
    docs, queries, qrels, Q, D = world()
    ranker = sr.TextRanker("bm25").fit(docs, queries, qrels, dense=sr.Dense(Q, D, "topics", dtype))
    path = tmp_path / "model.safetensors"
    ranker.save(path)
    loaded = sr.load(path)
    assert loaded.model_.dense == ranker.model_.dense
    assert loaded.run(queries, dense=Q) == ranker.run(queries, dense=Q)
    assert str(loaded.dense_.vectors.dtype) == dtype
    assert not loaded.dense_.vectors.flags.writeable
    assert load_text(path).search("word1") == ranker.words_only().search("word1")
    dense_path(path).unlink()
    with pytest.raises(NotFitted, match="no vectors of documents"):
        sr.load(path).search("word1", dense=Q[0])
    assert sr.load(path).embed(D).search("word1", dense=Q[0])


def test_a_model_saved_without_vectors_does_not_get_those_of_the_model_it_replaces(fitted, tmp_path):
    ranker, docs, _, _, Q, _ = fitted
    path = tmp_path / "model.safetensors"
    ranker.save(path)
    ranker.over(dict.fromkeys(docs, "other text")).save(path)
    assert not dense_path(path).exists()
    with pytest.raises(NotFitted, match="no vectors of documents"):
        sr.load(path).search("text", dense=Q[0])


def test_vectors_of_another_model_are_an_error(fitted, tmp_path):
    ranker = fitted[0]
    path = tmp_path / "model.safetensors"
    ranker.save(path)
    ranker.dense_.save(dense_path(path), "other")
    with pytest.raises(ModelError, match="has vectors of 'other' with 12 dimensions; the model needs those"):
        sr.load(path)


def test_added_documents_rank_by_words_until_they_are_embedded(fitted):
    ranker, docs, _, _, Q, D = fitted
    ranker = ranker.over(docs).embed(D)
    ranker.add({"new": "other text", "d00": "changed"})
    assert np.isclose(ranker.scores(["word0"], ["new", "d00"], dense=[Q[0]]), 0.0).all()
    ranker.embed({"new": Q[0], "d00": D[0]})
    assert ranker.search("other", 1, dense=Q[0])[0].id == "new"
    assert "new" not in [hit.id for hit in ranker.remove(["new"]).search("word0", 100, dense=Q[0])]
    with pytest.raises(DataError, match="there is no document 'unknown'"):
        ranker.embed({"unknown": Q[0]})


def test_filters_and_own_documents_are_left_out_of_dense_results():
    docs, queries, qrels, Q, D = world()
    docs = {one: {"text": text, "metadata": {"even": int(one[1:]) % 2}} for one, text in docs.items()}
    ranker = sr.TextRanker("bm25").fit(docs, queries, qrels, dense=(Q, D))
    assert {hit.metadata["even"] for hit in ranker.search("word0", 40, {"even": 1}, dense=Q[1])} == {1}
    assert "d05" not in ranker.run({"d05": "word1"}, 200, exclude_self=True, dense=[Q[5]])["d05"]
    assert "d05" in ranker.run({"d05": "word1"}, 200, dense=[Q[5]])["d05"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dense": (np.ones((3, 2)), np.ones((96, 2)))}, "must have 48 rows"),
        ({"learn_from": "judgments,log"}, "there are none"),
    ],
)  # fmt: skip
def test_a_fit_that_fails_leaves_the_ranker_as_it_was(options, message):
    docs, queries, qrels, Q, D = world()
    ranker = sr.TextRanker("bm25").fit(docs, queries, qrels, dense=(Q, D))
    before = ranker.model_, ranker.run(queries, dense=Q)
    with pytest.raises(DataError, match=message):
        ranker.fit({one: f"{text} other" for one, text in docs.items()}, queries, qrels, **options)
    assert ranker.model_ is before[0]
    assert ranker.run(queries, dense=Q) == before[1]


def test_vectors_are_checked_before_the_training():
    docs, queries, qrels, Q, D = world()
    said = []
    with pytest.raises(DataError, match="must have 48 rows"):
        sr.TextRanker().fit(docs, queries, qrels, dense=(Q[:-1], D), callback=said.append)
    assert not said


def test_refitting_forgets_the_vectors(fitted):
    _, docs, queries, qrels, Q, D = fitted
    again = sr.TextRanker("bm25").fit(docs, queries, qrels, dense=(Q, D)).fit(docs)
    assert not hasattr(again, "dense_")
    assert again.search("word1")
