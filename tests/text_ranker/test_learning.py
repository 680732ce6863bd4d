"""TextRanker with learned word pairs: what it learns, keeps, refuses, and how it is edited."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sparserank as sr
from sparserank.data.records import Documents
from sparserank.errors import ConfigError, DataError, ModelError
from sparserank.text_ranker.training_data import TrainingData

COLOURS = ("red", "green", "blue", "white", "black", "brown", "grey", "pink")


def world():
    """Who asks for a car wants the automobile of that colour, which no document calls a car."""
    docs, queries, qrels = {}, {}, {}
    for number, colour in enumerate(COLOURS):
        for thing, other in (("automobile", "wheel"), ("bicycle", "chain"), ("boat", "sail")):
            docs[f"{thing}-{colour}"] = f"{colour} {thing} {other} number{number}"
        for asked, thing in (("car", "automobile"), ("bike", "bicycle"), ("ship", "boat")):
            queries[f"{asked}-{colour}"] = f"{colour} {asked}"
            qrels[f"{asked}-{colour}"] = {f"{thing}-{colour}": 1}
    return docs, queries, qrels


def related(ranker, word):
    """The two best words. Every automobile has a wheel, every boat a sail: their weights are equal but for rounding."""
    return {one for one, _ in ranker.related(word, 2)}


@pytest.fixture(scope="module")
def ranker():
    return sr.TextRanker(max_pairs=200).fit(*world())


def test_it_learns_that_who_asks_for_a_car_wants_an_automobile(ranker):
    assert related(ranker, "cars") == {"automobil", "wheel"}
    assert ranker.search("purple car")[0].id.startswith("automobile-")
    assert ranker.model_.info["held_out_learned"] > ranker.model_.info["held_out_lexical"]
    assert ranker.model_.n_pairs <= 200


def test_a_word_of_several_parts_is_related_to_the_sum_of_what_its_parts_are_related_to(ranker):
    parts = {name: dict(ranker.related(name, 1_000)) for name in ("car", "ship")}
    found = dict(ranker.related("car ship", 1_000))
    words = parts["car"].keys() | parts["ship"].keys()
    total = {word: parts["car"].get(word, 0.0) + parts["ship"].get(word, 0.0) for word in words}
    assert found == pytest.approx({word: weight for word, weight in total.items() if weight})
    assert related(ranker, "car zeppelin") == related(ranker, "car")
    with pytest.raises(DataError, match="'zeppelin bus' is not among the"):
        ranker.related("zeppelin bus")


def test_a_long_japanese_word_is_related_by_its_bigrams():
    docs, queries, qrels = world()
    names = {"car": "自動車保険", "bike": "自転車", "ship": "船"}
    queries = {name: " ".join(names.get(word, word) for word in text.split()) for name, text in queries.items()}
    japanese = sr.TextRanker(max_pairs=200, analyzer="japanese+english").fit(docs, queries, qrels)
    assert "automobil" in dict(japanese.related("自動車保険", 3))


def test_a_query_without_learned_words_scores_as_bm25_alone(ranker):
    docs, *_ = world()
    bm25 = sr.TextRanker("bm25").fit(docs)
    assert [h.score for h in ranker.search("number3")] == [h.score for h in bm25.search("number3")]
    assert ranker.search("xyzzy") == []


def test_contributions_sum_to_the_score_and_name_the_words(ranker):
    hit = ranker.search("red car")[0]
    explained = ranker.explain("red car", hit.id)
    assert explained.score == pytest.approx(hit.score, rel=1e-5)
    assert sum(pair.contribution for pair in explained.pairs) == pytest.approx(hit.score, rel=1e-5)
    assert ("car", "automobil") in {(pair.query, pair.document) for pair in explained.pairs}
    assert_allclose(ranker.scores(["red car"], [hit.id])[0, 0], hit.score, rtol=1e-5)


def test_the_same_seed_gives_the_same_bits_for_any_threads(ranker):
    for n_jobs in (1, 2):
        again = sr.TextRanker(max_pairs=200, n_jobs=n_jobs).fit(*world())
        assert_array_equal(again.model_.W.toarray(), ranker.model_.W.toarray())
        assert again.model_.pair_weight == ranker.model_.pair_weight


def test_a_saved_model_is_the_same_model(ranker, tmp_path):
    ranker.save(tmp_path / "m")
    loaded = sr.load(tmp_path / "m")
    assert loaded.search("blue car") == ranker.search("blue car")
    assert loaded.related("car") == ranker.related("car")
    assert loaded.model_.info == ranker.model_.info
    assert loaded.ranker == "text"


def test_a_damaged_model_is_rejected_by_name(ranker, tmp_path):
    from sparserank.data.formats.tensors import read_tensors, write_tensors

    ranker.save(tmp_path / "m")
    file = read_tensors(tmp_path / "m")
    worse = {
        "pair_weight": ({"pair_weight": -1.0}, {}, "pair_weight"),
        "constraints": ({"constraints": {"pinned": [["a", "b"]]}}, {}, "constraints"),
        "indices": ({}, {"W.indices": file.arrays["W.indices"] + np.int32(10_000)}, "W.indices"),
    }
    for name, (pairs, arrays, message) in worse.items():
        settings = dict(file.settings) | {"pairs": dict(file.settings["pairs"]) | pairs}
        write_tensors(tmp_path / name, "text", settings, dict(file.arrays) | arrays)
        with pytest.raises(ModelError, match=message):
            sr.load(tmp_path / name)


# ---- where pairs do not help


@pytest.mark.parametrize("seed", range(8))
def test_judgments_at_random_leave_the_lexical_model_and_it_is_said(caplog, seed):
    docs, queries, _ = world()
    random = np.random.default_rng(seed)
    qrels = {q: {list(docs)[random.integers(len(docs))]: 1} for q in queries}
    with caplog.at_level(logging.WARNING):
        ranker = sr.TextRanker().fit(docs, queries, qrels)
    assert ranker.model_.W is None
    assert "did not beat the lexical score on held-out queries" in caplog.text
    assert ranker.model_.info["held_out_learned"] == ranker.model_.info["held_out_lexical"]


def copied_queries(seed):
    """Pages of one source share their queries. Each copy is easy once another was seen; a new source is not."""
    rng = np.random.default_rng(seed)
    words = [f"word{i}" for i in range(200)]
    docs = {f"d{i}": " ".join(rng.choice(words, 8)) for i in range(150)}
    queries, qrels = {}, {}
    for source in range(30):
        text, relevant = " ".join(rng.choice(words, 4)), {f"d{d}": 1 for d in rng.choice(150, 3)}
        for copy in range(6):
            queries[f"{source}-{copy}"], qrels[f"{source}-{copy}"] = f"{text} {rng.choice(words)}", relevant
    return docs, queries, qrels


def test_pairs_that_help_only_copies_of_training_queries_are_seldom_kept():
    kept = [sr.TextRanker(loss="squared").fit(*copied_queries(seed)).model_.W is not None for seed in range(6)]
    assert sum(kept) <= 1, "each at the level of the test"


def test_one_query_is_too_few_and_the_lexical_model_stays(caplog):
    docs, queries, qrels = world()
    with caplog.at_level(logging.WARNING):
        ranker = sr.TextRanker().fit(docs, queries, {"car-red": qrels["car-red"], "car-blue": {"boat-red": 0}})
    assert "1 judged query: too few to learn pairs" in caplog.text
    assert ranker.model_.info["no_pairs"] == "1 judged query: too few to learn pairs"
    assert ranker.model_.W is None
    assert (ranker.related("red"), ranker.top_pairs(), ranker.pairs_.W_.nnz) == ([], [], 0)
    for edit in (ranker.pin, ranker.forbid, ranker.free):
        with pytest.raises(DataError, match="no word pairs to change: 1 judged query: too few to learn pairs"):
            edit("car", "boat")


def test_empty_queries_and_documents_change_nothing():
    docs, queries, qrels = world()
    ranker = sr.TextRanker(max_pairs=200).fit(docs | {"empty": ""}, queries | {"q": "!"}, qrels | {"q": {"empty": 1}})
    assert related(ranker, "car") == {"automobil", "wheel"}
    assert ranker.search("!") == []


def test_a_query_never_learns_from_its_own_document():
    docs, queries, qrels = world()
    own = {q: {**grades, q: 1} for q, grades in qrels.items()}
    ranker = sr.TextRanker(max_pairs=200).fit(docs | queries, queries, own, exclude_self=True)
    plain = sr.TextRanker(max_pairs=200).fit(docs | queries, queries, qrels, exclude_self=True)
    assert_array_equal(ranker.model_.W.toarray(), plain.model_.W.toarray())


# ---- losses, weights, clicks, labels


@pytest.mark.parametrize(
    "params", [{"loss": "squared"}, {"loss": "softmax"}, {"loss": "hinge"}, {"penalty": "l1", "loss": "squared"}]
)
def test_every_loss_learns_the_planted_words(params):
    assert related(sr.TextRanker(max_pairs=200, **params).fit(*world()), "car") == {"automobil", "wheel"}


def test_steps_on_triples_learn_the_planted_words_too(tmp_path):
    ranker = sr.TextRanker("bilinear", max_pairs=300).fit(*world())
    assert related(ranker, "car") == {"automobil", "wheel"}
    ranker.pin("car", "sail", 1.5).save(tmp_path / "m")
    assert sr.load(tmp_path / "m").search("red car") == ranker.search("red car")
    docs, queries, qrels = world()
    alone = sr.TextRanker("bilinear").fit(docs, queries, {"car-red": qrels["car-red"]})
    assert alone.model_.W is None


def test_a_query_that_counts_twice_is_a_query_asked_twice():
    docs, queries, qrels = world()
    twice = dict.fromkeys(queries, 2.0)
    ranker = sr.TextRanker(max_pairs=200, loss="squared").fit(docs, queries, qrels, query_weight=twice)
    assert related(ranker, "car") == {"automobil", "wheel"}
    assert not np.array_equal(ranker.model_.W.toarray(), sr.TextRanker(max_pairs=200).fit(*world()).model_.W.toarray())
    with pytest.raises(DataError, match="weight of query 'car-red' must be above 0"):
        sr.TextRanker().fit(docs, queries, qrels, query_weight={"car-red": 0})


def test_clicks_teach_like_judgments():
    docs, queries, qrels = world()
    shown = [(q, q, d, place, d in qrels[q]) for q in queries for place, d in enumerate(sorted(docs)[:24], start=1)]
    log = sr.preferences.ClickLog.of(*zip(*shown, strict=True))
    ranker = sr.TextRanker(max_pairs=200).fit(docs, queries, log.grades())
    assert related(ranker, "car") == {"automobil", "wheel"}


def test_class_labels_bring_documents_of_one_class_together(tmp_path):
    rng = np.random.default_rng(0)
    words = [[f"{kind}{i}" for i in range(12)] for kind in ("rock", "sea", "sky")]
    y = rng.integers(0, 3, 90)
    docs = {
        f"d{i:02d}": " ".join([*rng.choice(words[c], 3), *rng.choice(["the", "some", "any"], 2)])
        for i, c in enumerate(y)
    }
    ranker = sr.TextRanker(lexical="cosine", max_pairs=2000).fit(docs, qrels=sr.Preferences.from_labels(y))
    assert ranker.model_.info["held_out_learned"] > ranker.model_.info["held_out_lexical"]
    assert all(other.startswith("sea") for other, _ in ranker.related("sea3", 3))
    ranker.save(tmp_path / "m")
    assert sr.load(tmp_path / "m").search("sea1 sea2") == ranker.search("sea1 sea2")
    hit = ranker.search("sea1 sea2")[0]
    assert ranker.explain("sea1 sea2", hit.id).score == pytest.approx(hit.score, rel=1e-4)


def test_labels_that_do_not_fit_raise():
    docs, *_ = world()
    with pytest.raises(DataError, match="24 documents need as many labels; got 3"):
        sr.TextRanker().fit(docs, qrels=sr.Preferences.from_labels([0, 0, 1]))
    with pytest.raises(DataError, match=r"preferences of Preferences\.from_labels only"):
        sr.TextRanker().fit(docs, qrels=sr.Preferences.from_triples([0], [1], [2]))


# ---- sizes


@pytest.mark.parametrize(
    ("size", "most"),
    [({"max_pairs": 60}, 60), ({"density": 0.05}, None), ({"megabytes": 0.001}, None), ({"pairs_per_word": 1}, None)],
)
def test_a_size_is_kept(size, most):
    ranker = sr.TextRanker(**size).fit(*world())
    W = ranker.model_.W
    most = most or {"density": round(0.05 * W.shape[0] * W.shape[1])}.get(next(iter(size)), W.nnz)
    assert 0 < W.nnz <= most
    if "megabytes" in size:
        assert 8 * W.nnz + 4 * (W.shape[0] + 1) <= 1000
    if "pairs_per_word" in size:
        assert np.diff(W.indptr).max() == 1


def test_no_pair_is_negative_where_none_may_be():
    assert (sr.TextRanker(max_pairs=300).fit(*world()).model_.W.data < 0).any()
    nonnegative = sr.TextRanker(max_pairs=300, nonnegative=True).fit(*world())
    assert (nonnegative.model_.W.data > 0).all()
    assert related(nonnegative, "car") == {"automobil", "wheel"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_pairs": 5, "density": 0.1}, "'max_pairs' and 'density'"),
        ({"megabytes": 1e-9}, "must be at least"),
        ({"max_pairs": 0}, "'max_pairs'"),
        ({"density": 2.0}, "'density'"),
        ({"pairs_per_word": 0}, "'pairs_per_word'"),
        ({"lexical": "tf"}, "'lexical'"),
        ({"loss": "l2"}, "'loss'"),
        ({"penalty": "l1"}, "needs loss='squared'"),
        ({"random_state": -1}, "'random_state'"),
    ],
)
def test_sizes_that_cannot_be_raise(settings, message):
    with pytest.raises(ConfigError, match=message):
        sr.TextRanker(**settings).fit(*world())


def test_a_grade_that_is_no_number_raises():
    docs, queries, qrels = world()
    with pytest.raises(
        DataError, match="grade of document 'boat-red' for query 'car-red' must be a finite number; got nan"
    ):
        sr.TextRanker().fit(docs, queries, qrels | {"car-red": {"boat-red": np.nan}})


# ---- accuracy against size


def test_a_path_measures_every_size_on_queries_held_out(tmp_path):
    path = sr.TextRanker().path(*world(), sizes=(40, 200, 100))
    assert [point.pairs for point in path] == [40, 100, 200]
    assert path[2].ndcg > path.lexical
    assert path.best(within=1.0) == path[0]
    assert path.best() == path.best(within=0.005)
    assert path.best(within=0.0).ndcg == max(point.ndcg for point in path)
    stored = path.to_dict()
    assert stored["points"][0].keys() == {"pairs", "megabytes", "ndcg"}
    path.plot(tmp_path / "path.png")
    assert (tmp_path / "path.png").read_bytes().startswith(b"\x89PNG")


def test_the_largest_size_of_a_path_is_what_a_fit_would_hold_out():
    ranker = sr.TextRanker(max_pairs=200, loss="squared").fit(*world())
    assert sr.TextRanker(loss="squared").path(*world(), sizes=[200])[0].ndcg == pytest.approx(
        ranker.model_.info["held_out_learned"]
    )


def test_a_path_without_sizes_or_queries_raises():
    with pytest.raises(ConfigError, match="sizes"):
        sr.TextRanker().path(*world(), sizes=[])
    with pytest.raises(ConfigError, match="sizes"):
        sr.TextRanker().path(*world(), sizes=[0])
    with pytest.raises(DataError, match="at least two judged queries"):
        sr.TextRanker().path(world()[0], {}, {}, sizes=[5])


# ---- editing


def fitted():
    return sr.TextRanker(max_pairs=200).fit(*world())


def test_a_pinned_pair_keeps_its_weight_through_a_fit():
    ranker = fitted().pin("car", "wheels", 3.5)
    assert dict(ranker.related("car", 50))["wheel"] == pytest.approx(3.5)
    ranker.fit(*world())
    assert dict(ranker.related("car", 50))["wheel"] == pytest.approx(3.5, rel=1e-5)


def test_a_forbidden_pair_stays_away_until_it_is_freed():
    ranker = fitted().forbid("car", "automobile")
    assert "automobil" not in dict(ranker.related("car", 50))
    assert "automobil" not in dict(ranker.fit(*world()).related("car", 50))
    assert "automobil" in dict(ranker.free("car", "automobile").fit(*world()).related("car", 50))


def test_a_forbidden_word_is_in_no_pair():
    ranker = fitted().forbid_word("automobiles")
    for model in (ranker, ranker.fit(*world())):
        assert all("automobil" not in pair for pair in model.model_.named_pairs())


def test_a_set_pair_is_there_now_and_learned_anew_later():
    before = fitted()
    after = fitted().set_pair("car", "sail", 9.0)
    assert after.related("car", 1) == [("sail", pytest.approx(9.0))]
    assert sr.diff(before, after, 1)[0][:2] == ("car", "sail")
    assert_array_equal(after.fit(*world()).model_.W.toarray(), before.model_.W.toarray())


def test_edits_survive_the_model_file(tmp_path):
    fitted().forbid("car", "automobile").pin("car", "sail", 1.0).forbid_word("chain").save(tmp_path / "m")
    edits = sr.load(tmp_path / "m").model_.constraints
    assert edits.forbidden == {("car", "automobil")}
    assert edits.pinned == {("car", "sail"): 1.0}
    assert edits.words == {"chain"}


@pytest.mark.parametrize(
    ("edit", "error", "message"),
    [
        (lambda r: r.pin("xyzzy", "sail", 1.0), DataError, "'xyzzy' is not among"),
        (lambda r: r.forbid("car", "xyzzy"), DataError, "'xyzzy' is not among"),
        (lambda r: r.forbid_word("!"), DataError, "contains no tokens"),
        (lambda r: r.pin("car", "sail", float("nan")), ConfigError, "'weight'"),
    ],
)
def test_edits_of_words_that_are_not_there_raise(ranker, edit, error, message):
    before = ranker.model_
    with pytest.raises(error, match=message):
        edit(ranker)
    assert ranker.model_ is before


def test_a_model_does_not_differ_from_itself(ranker):
    assert sr.diff(ranker, ranker) == []


# ---- more judgments later


def test_more_judgments_teach_more_and_the_index_stays():
    docs, queries, qrels = world()
    ranker = sr.TextRanker(max_pairs=300).fit(docs, queries, qrels)
    index = ranker.index_
    more = {f"vessel-{colour}": f"{colour} vessel" for colour in COLOURS}
    ranker.partial_fit(None, more, {q: {q.replace("vessel", "boat"): 1} for q in more})
    assert ranker.index_ is index
    assert related(ranker, "vessel") == {"boat", "sail"}
    assert related(ranker, "car") == {"automobil", "wheel"}
    assert ranker.model_.info["queries"] == len(qrels) + len(more)
    assert ranker.model_.n_pairs <= 300


def test_no_more_judgments_change_nothing():
    ranker = fitted()
    before = ranker.model_
    assert ranker.partial_fit(None, {}, {}).model_ is before


def test_more_documents_are_found_after_more_judgments():
    docs, queries, qrels = world()
    ranker = sr.TextRanker(max_pairs=300).fit(docs, queries, qrels)
    ranker.partial_fit({"new": "golden automobile"}, {"g": "golden car"}, {"g": {"new": 1}})
    assert ranker.search("golden car")[0].id == "new"
    assert len(ranker.index_) == len(docs) + 1


def test_a_first_partial_fit_is_a_fit():
    assert_array_equal(
        sr.TextRanker(max_pairs=200).partial_fit(*world()).model_.W.toarray(), fitted().model_.W.toarray()
    )


def test_a_ranker_without_pairs_learns_its_first_ones():
    docs, queries, qrels = world()
    ranker = sr.TextRanker(max_pairs=200).fit(docs).partial_fit(None, queries, qrels)
    assert ranker.search("purple car")[0].id.startswith("automobile-")
    with pytest.raises(ConfigError, match="a bm25 ranker learns no pairs"):
        sr.TextRanker("bm25").fit(docs).partial_fit(None, queries, qrels)


def test_another_collection_is_searched_with_the_same_pairs(ranker):
    other = ranker.over(Documents.of({"x": "an automobile", "y": "a boat"}))
    assert [hit.id for hit in other.search("car", 1)] == ["x"]


@pytest.mark.data
def test_nfcorpus_dev_is_ranked_far_better_than_by_bm25(real):
    real("nfcorpus")
    collection = sr.data.load("nfcorpus")
    train, dev = collection.qrels["train"], collection.qrels["dev"]
    ranker = sr.TextRanker(max_pairs=100_000).fit(collection.documents, collection.queries, train)
    run = ranker.run({query: collection.queries[query] for query in dev}, 100)
    value = sr.evaluation.evaluate_run(run, dev, "nDCG@10").to_dict()["nDCG@10"]["value"]
    assert value > 0.36


def test_steps_never_take_a_query_s_own_document_where_it_is_excluded():
    documents = Documents.of({f"d{i}": "word" for i in range(4)})
    queries, qrels = {"d0": "word", "d1": "word"}, {"d0": {"d2": 1.0}, "d1": {"d3": 1.0}}
    data = TrainingData.validate(documents, queries, qrels, exclude_self=True)
    drawn = data.preferences(["d0", "d1"]).draw(200, random_state=0)
    assert set(zip(drawn.query.tolist(), drawn.worse.tolist(), strict=True)) == {(0, 1), (0, 3), (1, 0), (1, 2)}


# ---- queries of one source


def sources(n_sources=16, n_queries=12):
    """Every source has an answer word of its own for a topic word of its own: nothing carries over to a new source."""
    rng, docs, queries, qrels, group = np.random.default_rng(0), {}, {}, {}, {}
    for source in range(n_sources):
        docs |= {f"{source}-answer-{i}": f"reply{source} filler{source}x{i}" for i in range(6)}
        docs |= {f"{source}-mention-{i}": f"topic{source} mention{source}x{i}" for i in range(6)}
        for number in range(n_queries):
            query = f"{source}-{number}"
            first, second = rng.choice(200, 2, replace=False)
            queries[query] = f"topic{source} other{first} other{second}"
            qrels[query] = {f"{source}-answer-{i}": 1 for i in rng.choice(6, 3, replace=False)}
            group[query] = f"source {source}"
    return docs, queries, qrels, group


def test_pairs_that_help_within_a_source_alone_are_kept_unless_the_sources_are_given(caplog):
    docs, queries, qrels, group = sources()
    assert sr.TextRanker(max_pairs=500).fit(docs, queries, qrels).model_.n_pairs > 0
    with caplog.at_level(logging.WARNING):
        ranker = sr.TextRanker(max_pairs=500).fit(docs, queries, qrels, query_group=group)
    assert ranker.model_.n_pairs == 0
    assert "did not beat the lexical score on held-out queries" in caplog.text


def test_queries_without_a_group_stand_alone():
    docs, queries, qrels, group = sources()
    some = {query: name for query, name in group.items() if name == "source 0"}
    assert sr.TextRanker(max_pairs=500).fit(docs, queries, qrels, query_group=some).model_.n_pairs > 0


def test_one_group_of_all_queries_keeps_the_lexical_score(caplog):
    docs, queries, qrels, group = sources(4, 4)
    with caplog.at_level(logging.WARNING):
        ranker = sr.TextRanker().fit(docs, queries, qrels, query_group=dict.fromkeys(group, "all"))
    assert ranker.model_.n_pairs == 0
    assert "all judged queries are near-duplicates or of one group" in caplog.text
