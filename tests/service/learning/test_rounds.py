"""One round of learning: what is learned, what is refused, and what is looked at once."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import sparserank as sr
from sparserank.data.formats.beir import write_beir
from sparserank.data.records import Collection, Documents
from sparserank.errors import DataError
from sparserank.evaluation import compare_runs
from sparserank.service.feedback import Feedback, normalize_query
from sparserank.service.learning import candidates, rounds
from sparserank.service.learning.gate import MIN_HELD_OUT_QUERIES, GateScores, HeldOutJudgments, buries_good
from sparserank.service.learning.grades import HELD_OUT_ONE_IN_ALONE, GradedQueries, is_held_out
from sparserank.service.learning.rounds import is_due, last_outcome, last_used_feedback, run_round
from sparserank.versions import VersionRegistry

from ...text_ranker.test_learning import COLOURS, world

QUERY = "red car of wood"


class Store:
    """Feedback in a list, numbered as it comes."""

    def __init__(self):
        self.all = []

    def say(self, query, document, grade=1.0, kind="judgment", shown=()):
        number = len(self.all) + 1
        self.all.append(Feedback(str(number), kind, query, document, tuple(shown), grade, number))

    def since(self, number, limit=10_000):
        return self.all[number:][:limit]

    def of_queries(self, queries):
        wanted = {normalize_query(query) for query in queries}
        return [one for one in self.all if normalize_query(one.query) in wanted]

    def last(self):
        return len(self.all)


@pytest.fixture(scope="module")
def trained():
    return sr.TextRanker(max_pairs=200).fit(*world())


@pytest.fixture
def versions(trained, tmp_path):
    trained.save(tmp_path / "model")
    return VersionRegistry.open(tmp_path / "model")


@pytest.fixture
def store():
    return Store()


@pytest.fixture
def judgments():
    """What cars are is held out; about wood nothing is known."""
    _, queries, qrels = world()
    return HeldOutJudgments("world", queries, qrels)


def rank(versions, document, query=QUERY):
    return [hit.id for hit in versions.load().search(query, 100)].index(document)


def third(versions):
    return versions.load().search(QUERY, 3)[2].id


def test_a_thumbs_up_lifts_a_document_in_one_round(versions, store, judgments):
    document = third(versions)
    before = judgments.ndcg(versions.load())[0]
    store.say(QUERY, document)
    done = run_round(versions, store, judgments=judgments)
    assert (done.outcome, done.version, done.looked_through, done.learned) == ("learned", 2, 1, 1)
    assert rank(versions, document) < 2
    assert judgments.ndcg(versions.load())[0] >= before
    assert done.after["lessons"] > done.before["lessons"]
    assert versions.current().learned_through == 1
    assert versions.current().check["checked_on"] == {
        "judgments": "world", "judged_queries": 24, "feedback_queries": 0
    }  # fmt: skip
    assert last_outcome(versions) == done


def test_the_gate_keeps_the_comparison_that_evaluate_against_prints(versions, store, judgments):
    old = versions.load()
    store.say(QUERY, third(versions))
    done = run_round(versions, store, judgments=judgments)
    again = compare_runs(
        *(one.run(judgments.queries, 10) for one in (old, versions.load())), judgments.qrels, "nDCG@10"
    )
    assert done.comparison == again.to_dict(most=10)
    assert done.comparison["not_worse"] is True
    assert versions.current().check["comparison"]["comparisons"] == done.comparison["comparisons"]
    assert "worse" not in versions.current().check["comparison"], "rankings are not kept for every version"


def test_of_a_model_that_is_rejected_the_comparison_has_the_queries_that_got_worse(versions, store, judgments):
    lies(store)
    refused = run_round(versions, store, judgments=judgments)
    assert refused.outcome == "refused"
    assert refused.comparison["not_worse"] is False
    found = refused.comparison["comparisons"]["nDCG@10"]
    assert found["value"] == pytest.approx(refused.after["judgments"])
    assert found["baseline"] == pytest.approx(refused.before["judgments"])
    assert 0 < len(refused.comparison["worse"]) == min(found["losses"], 10)


def test_without_held_out_judgments_there_is_no_comparison(versions, store):
    store.say(QUERY, third(versions))
    assert run_round(versions, store).comparison is None


def test_a_thumbs_down_lowers_it(versions, store, judgments):
    first = versions.load().search(QUERY, 1)[0].id
    store.say(QUERY, first, -1.0)
    assert run_round(versions, store, judgments=judgments).outcome == "learned"
    assert rank(versions, first) > 0


def test_pushing_down_what_is_bad_never_buries_what_is_good(versions, store):
    """The sixth of the list is called good, and the five above it bad: the mean would rise if all of them fell."""
    _, queries, qrels = world()
    few = HeldOutJudgments("few", *({q: some[q] for q in list(queries)[:6]} for some in (queries, qrels)))
    before = [hit.id for hit in versions.load().search("black", 100)]
    store.say("black", before[5])
    for document in before[:5]:
        store.say("black", document, -1.0)
    run_round(versions, store, judgments=few)
    after = [hit.id for hit in versions.load().search("black", 100)]
    assert after.index(before[5]) <= 5


def test_a_click_lifts_what_was_taken_above_what_was_skipped(versions, store, judgments):
    shown = [hit.id for hit in versions.load().search(QUERY, 3)]
    store.say(QUERY, shown[2], kind="click", shown=shown)
    assert run_round(versions, store, judgments=judgments).outcome == "learned"
    assert rank(versions, shown[2]) < 2


def test_a_second_look_at_the_same_feedback_learns_nothing(versions, store, judgments):
    store.say(QUERY, third(versions))
    run_round(versions, store, judgments=judgments)
    done = run_round(versions, store, judgments=judgments)
    assert (done.outcome, done.said, done.looked_through) == ("nothing", "no new feedback", 1)
    assert versions.current().number == 2


def test_the_same_feedback_again_and_again_comes_to_rest(versions, store, judgments):
    document, gain = third(versions), versions.load().model_.pair_weight
    outcomes = []
    for _ in range(6):
        store.say(QUERY, document)
        outcomes.append(run_round(versions, store, judgments=judgments).outcome)
    assert outcomes[0] == "learned"
    assert outcomes[-1] in ("nothing", "refused")
    assert abs(versions.load().model_.W).max() < 2 * abs(versions.load(1).model_.W).max() + 1
    assert versions.load().scores([QUERY], [document])[0, 0] < versions.load(1).scores([QUERY], [document])[0, 0] + gain


def lies(store):
    """Who asks for a car is told to want a boat, whatever the colour."""
    for colour in COLOURS:
        for document, grade in ((f"automobile-{colour}", -1.0), (f"boat-{colour}", 4.0)):
            store.say(f"{colour} car", document, grade)


def test_what_is_worse_on_held_out_judgments_is_never_served(versions, store, judgments):
    """Held-out judgments are of the very queries that are lied about: whatever is learned of it is worse."""
    lies(store)
    before = judgments.ndcg(versions.load())[0]
    done = run_round(versions, store, judgments=judgments)
    assert done.outcome == "refused"
    assert done.version is None
    assert done.after["judgments"] < done.before["judgments"] == pytest.approx(before)
    assert f"nDCG@10 of judgments {before:.5f} → " in done.said
    assert versions.current().number == 1
    assert last_used_feedback(versions) == store.last(), "it is not tried again until something new is said"
    assert not is_due(versions, store.last())


def test_one_bad_query_holds_up_no_other(versions, store, judgments):
    document = third(versions)
    store.say(QUERY, document)
    lies(store)
    done = run_round(versions, store, judgments=judgments)
    assert done.outcome == "learned"
    assert done.refused > 0
    assert rank(versions, document) < 2
    assert judgments.ndcg(versions.load())[0] >= judgments.ndcg(versions.load(1))[0]
    assert "could not be learned" in done.said


def test_however_much_is_said_no_version_is_worse_than_the_one_before(versions, store, judgments):
    """Lies, truths and noise, round after round."""
    ids = sorted(world()[0])
    figures = [judgments.ndcg(versions.load())[0]]
    for turn in range(6):
        for n, colour in enumerate(COLOURS):
            store.say(f"{colour} {('car', 'bike', 'ship')[turn % 3]}", ids[(7 * turn + 5 * n) % len(ids)], (-1.0) ** n)
        run_round(versions, store, judgments=judgments)
        figures.append(judgments.ndcg(versions.load())[0])
    assert figures == sorted(figures)


def held_out_queries(number):
    """Queries of users that are held out, about one document each."""
    found = (f"{colour} wood number{n}" for n in range(1000) for colour in COLOURS)
    return [query for query in found if is_held_out(query)][:number]


def test_held_out_feedback_is_never_learned_from(versions, store, judgments):
    for query in held_out_queries(3):
        store.say(query, "boat-red")
    done = run_round(versions, store, judgments=judgments)
    assert (done.outcome, done.held_out, done.looked_through) == ("nothing", 3, 3)
    assert versions.current().number == 1


def test_what_is_worse_on_held_out_feedback_is_never_served(versions, store):
    """The same words are held out with one opinion and taught with the other; there are no judgments."""
    documents = [hit.id for hit in versions.load().search("red wood", 3)]
    held = [q for q in (f"red wood {n}" for n in range(999)) if is_held_out(q, HELD_OUT_ONE_IN_ALONE)][
        :MIN_HELD_OUT_QUERIES
    ]
    taught = [q for q in (f"red wood {n}" for n in range(999)) if not is_held_out(q, HELD_OUT_ONE_IN_ALONE)][:1]
    for query in held:
        store.say(query, documents[0])
    store.say(taught[0], documents[0], -1.0)
    done = run_round(versions, store)
    assert (done.outcome, done.held_out, done.refused) == ("refused", MIN_HELD_OUT_QUERIES, 1)
    assert done.after["lessons"] > done.before["lessons"]
    assert done.after["feedback"] < done.before["feedback"] == 1.0
    assert "agreement with users 1.00000 → " in done.said
    assert versions.current().number == 1


def test_without_judgments_it_waits_for_ten_held_out_queries_and_says_so(versions, store):
    document = third(versions)
    store.say(QUERY, document)
    for query in held_out_queries(MIN_HELD_OUT_QUERIES - 1):
        store.say(query, versions.load().search(query, 1)[0].id)
    done = run_round(versions, store)
    assert (done.outcome, done.looked_through, done.seen) == ("waiting", 0, MIN_HELD_OUT_QUERIES)
    assert done.said.startswith("9 held-out queries have feedback, and the gate needs 10")
    assert not is_due(versions, store.last())
    query = held_out_queries(MIN_HELD_OUT_QUERIES)[-1]
    store.say(query, versions.load().search(query, 1)[0].id)
    assert is_due(versions, store.last())
    assert run_round(versions, store).outcome == "learned", "what was said while it waited is not forgotten"
    assert rank(versions, document) < 2


def test_a_round_takes_so_many_queries_and_the_next_goes_on(versions, store, judgments, monkeypatch):
    monkeypatch.setattr(rounds, "MAX_QUERIES_PER_ROUND", 2)
    for n in range(5):
        store.say(f"red car number{n}", "boat-red")
    through = []
    while is_due(versions, store.last()):
        run_round(versions, store, judgments=judgments)
        through.append(last_used_feedback(versions))
    assert through == [2, 4, 5]


def test_going_back_is_not_undone_by_what_was_learned_from_before(versions, store, judgments):
    store.say(QUERY, third(versions))
    run_round(versions, store, judgments=judgments)
    versions.rollback()
    assert not is_due(versions, store.last())
    assert run_round(versions, store, judgments=judgments).outcome == "nothing"
    assert versions.current().number == 1


def test_a_model_that_was_trained_anew_learns_all_feedback_again(versions, store, judgments):
    document = third(versions)
    store.say(QUERY, document)
    run_round(versions, store, judgments=judgments)
    sr.load(versions.model).set_pair("car", "sail", 0.01).save(versions.model)
    again = VersionRegistry.open(versions.model)
    assert last_used_feedback(again) == 0
    assert is_due(again, store.last())
    done = run_round(again, store, judgments=judgments)
    assert (done.outcome, done.version, done.root) == ("learned", 4, 3)


def test_going_back_while_a_round_is_under_way_wins(versions, store, judgments, monkeypatch):
    store.say(QUERY, third(versions))
    run_round(versions, store, judgments=judgments)
    store.say(QUERY, "boat-pink", 4.0)
    run = candidates.CandidateSearch.run

    def slow(search):
        run(search)
        versions.rollback()

    monkeypatch.setattr(candidates.CandidateSearch, "run", slow)
    done = run_round(versions, store, judgments=judgments)
    assert (done.outcome, done.looked_through) == ("failed", 1)
    assert "version 1 is served now, not version 2" in done.said
    assert versions.current().number == 1
    assert is_due(versions, store.last()), "it is tried again, from the version that is served"


def test_documents_that_are_gone_teach_nothing(versions, store, judgments):
    store.say(QUERY, "gone")
    assert run_round(versions, store, judgments=judgments).outcome == "nothing"


def test_judgments_about_other_documents_are_rejected(versions, store):
    store.say(QUERY, "boat-red")
    with pytest.raises(DataError, match="the served documents include no relevant document of elsewhere"):
        run_round(versions, store, judgments=HeldOutJudgments("elsewhere", {"q": "x"}, {"q": {"nowhere": 1}}))


def test_a_model_without_pairs_learns_its_first_from_many_queries(tmp_path, store, judgments):
    docs, queries, qrels = world()
    sr.TextRanker("bm25").fit(docs).save(tmp_path / "model")
    versions = VersionRegistry.open(tmp_path / "model")
    told = [(text, document) for q, text in queries.items() for document in qrels[q] if not is_held_out(text)]
    for text, document in told[:5]:
        store.say(text, document)
    done = run_round(versions, store, judgments=judgments)
    assert (done.outcome, done.said) == ("waiting", "5 queries with feedback; the first pairs need 20")
    for text, document in told[5:]:
        store.say(text, document)
    done = run_round(versions, store, judgments=judgments)
    assert (done.outcome, done.learned) == ("learned", len(told))
    assert versions.current().index == "000002.index"
    assert versions.load().search("purple car")[0].id.startswith("automobile-")


def test_a_model_has_room_for_what_is_learned_and_no_more(versions, store, judgments, monkeypatch):
    monkeypatch.setattr(rounds, "EXTRA_PAIRS", 50)
    for n in range(6):
        store.say(f"red wood number{n}", "boat-red")
        run_round(versions, store, judgments=judgments)
    assert versions.current().pairs <= 1.2 * versions.list()[0].pairs + 50


def test_a_state_that_cannot_be_read_is_as_if_there_were_none(versions):
    assert last_outcome(versions).said == "no learning round yet"
    for content in ("", "[]", "{}", '{"outcome": "learned", "what": 1}'):
        (versions.folder / rounds.OUTCOME_FILE).write_text(content)
        assert last_outcome(versions).said == "no learning round yet"


def test_the_outcome_is_plain_json(versions, store, judgments):
    store.say(QUERY, third(versions))
    done = run_round(versions, store, judgments=judgments)
    assert json.loads((versions.folder / rounds.OUTCOME_FILE).read_text()) == done.to_dict()
    assert done.seconds > 0


def test_figures_hold_where_nothing_that_is_held_out_is_worse():
    before = GateScores(0.5, 0.4, 0.7, 0.1)
    assert GateScores(0.5, 0.4, 0.7, 0.0).passes(before)
    assert GateScores(0.6, 0.5, 0.8, 0.0).passes(before)
    assert not GateScores(0.499, 0.9, 0.9, 1.0).passes(before)
    assert not GateScores(0.9, 0.399, 0.9, 1.0).passes(before)
    assert not GateScores(0.9, 0.9, 0.699, 1.0).passes(before)
    assert GateScores(None, None, 0.7, 1.0).passes(replace(before, judgments=None, others=None))


def test_a_good_document_sinks_where_more_of_the_others_stand_above_it():
    said = GradedQueries({"q": "q"}, {"q": {"a": 1.0, "b": 2.0, "x": -1.0}})
    before = {"q": ["x", "a", "b"]}
    assert not buries_good(said, before, {"q": ["x", "b", "a"]})  # another good one is no harm
    assert not buries_good(said, before, {"q": ["a", "b", "x"]})
    assert buries_good(said, before, {"q": ["y", "x", "a", "b"]})
    assert buries_good(said, before, {"q": ["x", "y", "b"]})  # gone from the list
    assert not buries_good(said, {"q": ["x", "y"]}, {"q": ["y", "z"]})


def test_answers_to_held_out_queries_do_not_pay_for_what_is_worse_elsewhere(versions, judgments):
    ranker = versions.load()
    whole, others = judgments.ndcg(ranker, {"red car"})
    alone = HeldOutJudgments("one", {"car-red": "red car"}, {"car-red": judgments.qrels["car-red"]}).ndcg(
        ranker, {"red car"}
    )
    assert alone[1] is None
    assert whole == pytest.approx((23 * others + alone[0]) / 24)


def test_judgments_come_from_a_folder_or_by_name(tmp_path):
    docs, queries, qrels = world()
    write_beir(tmp_path / "set", Collection("set", Documents.of(docs), queries, {"dev": qrels}))
    found = HeldOutJudgments.load(tmp_path / "set", "dev")
    assert (found.queries, found.qrels) == (queries, qrels)
    with pytest.raises(DataError, match="has no split 'test'"):
        HeldOutJudgments.load(tmp_path / "set", "test")
    with pytest.raises(DataError, match="is not a text collection"):
        HeldOutJudgments.load("digits")
    with pytest.raises(DataError, match="no such file or folder"):
        HeldOutJudgments.load(tmp_path / "absent")
