"""Word pairs without judgments: they are learned where pages teach something, and left out where they do not."""

from __future__ import annotations

import numpy as np
import pytest

import sparserank as sr
from sparserank.data.records import Documents
from sparserank.errors import ConfigError, DataError
from sparserank.text_ranker.query_log import log_queries
from sparserank.text_ranker.weak_tests import neighbors

from ..fruits import fruits
from ..topics import PAGES, TOPICS, topic_of, topics


@pytest.fixture(scope="module")
def docs():
    return topics()


@pytest.fixture(scope="module")
def ranker(docs):
    return sr.TextRanker().fit(docs, learn_from="titles")


def test_title_words_find_texts_without_judgments(ranker, docs):
    assert ranker.model_.n_pairs > 0
    found = ranker.search("name3x1", 20)
    assert np.mean([topic_of(hit.id) == 3 for hit in found]) == 1.0
    bm25 = sr.TextRanker("bm25").fit(docs)
    assert len(found) > len(bm25.search("name3x1", 20)), "pages of the topic without this title word are found too"


def test_the_model_says_what_it_learned_from(ranker):
    learned = ranker.model_.info["learned_from"]["titles"]
    assert learned["queries"] == PAGES
    assert learned["ndcg"] > learned["ndcg_before"]
    assert learned["p_value"] <= 0.01


def test_the_best_source_is_added_first(docs, ranker):
    learned = sr.TextRanker().fit(docs, learn_from="openings,titles").model_.info["learned_from"]
    assert list(learned) == ["openings", "titles"]
    assert learned["titles"]["weight"] > 0.0
    assert learned["openings"]["ndcg_before"] == learned["titles"]["ndcg"]


def test_titles_that_say_nothing_leave_bm25_alone(caplog):
    ranker = sr.TextRanker().fit(topics(random_titles=True), learn_from="titles")
    assert ranker.model_.W is None
    assert "did not beat the lexical score" in ranker.model_.info["no_pairs"]
    assert "titles" in caplog.text


def test_judgments_are_not_read_unless_they_are_named(docs):
    queries, qrels = {"q": "name0x1"}, {"q": {"p1": 1.0}}
    plain, given = (sr.TextRanker().fit(docs, *more, learn_from="titles") for more in ((), (queries, qrels)))
    assert given.model_.named_pairs() == plain.model_.named_pairs()


def test_with_judgments_a_source_is_kept_only_if_judged_queries_gain(docs):
    rng = np.random.default_rng(1)
    queries = {f"q{n}": f"name{n % TOPICS}x{n % 12} name{n % TOPICS}x{(n + 1) % 12}" for n in range(48)}
    right = {
        q: {f"p{rng.integers(PAGES // TOPICS) * TOPICS + int(q[1:]) % TOPICS}": 1.0 for _ in range(4)} for q in queries
    }
    wrong = {q: {f"p{rng.integers(PAGES)}": 1.0 for _ in range(4)} for q in queries}
    fitted = [
        sr.TextRanker(max_pairs=50).fit(docs, queries, qrels, learn_from="judgments,titles") for qrels in (right, wrong)
    ]
    weights = [one.model_.info["learned_from"]["titles"]["weight"] for one in fitted]
    assert weights[1] == 0.0
    assert fitted[1].model_.W is None


def test_pairs_of_a_source_are_added_to_those_of_judgments():
    world = fruits()
    judged = sr.TextRanker(loss="squared").fit(world.documents, world.queries, world.qrels["train"])
    both = sr.TextRanker(loss="squared").fit(
        world.documents, world.queries, world.qrels["train"], learn_from=["judgments", "titles"]
    )
    learned = both.model_.info["learned_from"]["titles"]
    if learned["weight"] == 0.0:
        assert both.model_.named_pairs() == judged.model_.named_pairs()
    else:
        assert set(both.model_.named_pairs()) >= set(judged.model_.named_pairs())
    names = [None if ranker.model_.names is None else ranker.model_.names.digests.tolist() for ranker in (judged, both)]
    assert names[0] == names[1]


def test_a_saved_model_scores_the_same(ranker, tmp_path):
    ranker.save(tmp_path / "m.safetensors")
    again = sr.load(tmp_path / "m.safetensors")
    assert [hit.id for hit in again.search("name3x1", 9)] == [hit.id for hit in ranker.search("name3x1", 9)]
    assert again.model_.info["learned_from"] == ranker.model_.info["learned_from"]


def test_documents_without_headings_are_told_so(docs):
    with pytest.raises(DataError, match="there are no headings to learn from"):
        sr.TextRanker().fit(docs, learn_from="headings")
    with pytest.raises(ConfigError, match="Got 'headlines' instead"):
        sr.TextRanker().fit(docs, learn_from="headlines")


def test_too_few_pages_keep_bm25():
    ranker = sr.TextRanker().fit(topics().take(range(24)), learn_from="titles")
    assert ranker.model_.info["no_pairs"] == "too few pages or queries to learn from"


def test_neighbors_are_the_pages_of_the_same_topic(docs):
    rows = sr.TextRanker("bm25").lexical_model().fit(docs)
    pages = np.array([0, 1, 2])
    found = neighbors(rows, pages)
    assert found.shape == (3, 10)
    assert all(page not in row for page, row in zip(pages, found.tolist(), strict=True))
    assert np.mean(found % TOPICS == pages[:, None]) == 1.0


def test_the_best_pages_of_a_typed_query_are_relevant_by_their_rank():
    texts = {"a": "red red apple", "b": "red pear", "c": "blue plum", "d": "a red apple pie for a big table"}
    ranker, pages = sr.TextRanker("bm25").fit(texts), Documents.of(texts)
    log = {"1": "red apple", "2": " red apple ", "3": "unheard", "4": "", "5": "plum"}
    made = log_queries(log, pages, ranker.lexical_, ranker.lexical_.documents(pages), depth=2)
    assert made.queries == {"log 0": "red apple", "log 2": "plum"}
    best = [hit.id for hit in ranker.search("red apple", 2)]
    assert made.qrels == {"log 0": {best[0]: 1.0, best[1]: 0.5}, "log 2": {"c": 1.0}}


def test_a_log_has_the_queries_without_judgments(docs):
    typed = {f"t{i}": f"name{i % TOPICS}x{i % 3}" for i in range(60)}
    learned = sr.TextRanker().fit(docs, typed, learn_from="log").model_.info["learned_from"]
    assert learned["log"]["queries"] == len(set(typed.values()))
    judged = {name: {docs.ids[0]: 1} for name in ("t0", "t1")}
    both = sr.TextRanker().fit(docs, typed, judged, learn_from="judgments,log").model_.info["learned_from"]
    assert both["log"]["queries"] == len({text for name, text in typed.items() if name not in judged})


def test_a_log_without_queries_is_an_error(docs):
    with pytest.raises(DataError, match="learn_from='log' needs queries without judgments; there are none"):
        sr.TextRanker().fit(docs, learn_from="log")
    phases: list[str] = []
    with pytest.raises(DataError, match="learn_from='log' needs queries without judgments; there are none"):
        queries, qrels = {"a": "name1"}, {"a": {docs.ids[0]: 1}}
        sr.TextRanker().fit(docs, queries, qrels, learn_from="judgments,log", callback=phases.append)
    assert phases == [], "the mistake is found before the training"
    with pytest.raises(DataError, match="there are no typed queries with results to learn from"):
        sr.TextRanker().fit(docs, {"a": "unheard"}, learn_from="log")
    with pytest.raises(DataError, match="query 'b' must be text; got None"):
        sr.TextRanker().fit(docs, {"a": "name1", "b": None}, learn_from="log")
