"""Team-draft interleaving: the algorithm as published, its properties, the tally of clicks, and a trial over HTTP."""

from __future__ import annotations

import json
import math
import shutil
from datetime import UTC, datetime, timedelta
from functools import cache
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparserank as sr
from sparserank.errors import DataError
from sparserank.service import trial as trials
from sparserank.service.click_limits import ClickLimits
from sparserank.service.feedback import Feedback
from sparserank.service.impressions import Impression, sign
from sparserank.service.interleaving import CANDIDATE, SERVED, ClickCount, Tally, seed, takes_part, team_draft, teams
from sparserank.text_ranker import index_path
from sparserank.versions import VersionRegistry
from sparserank.versions.trials import current_trial, promote, start_trial, withdraw

from ..cli.calling import printed
from .conftest import COLOURS, wait_until
from .test_impressions import Visitor

RANKINGS = st.lists(st.integers(0, 12), unique=True, max_size=12)
SEEDS = st.binary(min_size=8, max_size=8)


def algorithm_2(A, B, rand_bit):
    """Radlinski, Kurup and Joachims, 2008, algorithm 2, line by line."""
    interleaved, team_a, team_b = [], set(), set()
    while any(a not in interleaved for a in A) and any(b not in interleaved for b in B):
        if len(team_a) < len(team_b) or (len(team_a) == len(team_b) and rand_bit() == 1):
            k = min(i for i, a in enumerate(A) if a not in interleaved)
            interleaved.append(A[k])
            team_a.add(A[k])
        else:
            k = min(i for i, b in enumerate(B) if b not in interleaved)
            interleaved.append(B[k])
            team_b.add(B[k])
    return [(one, SERVED if one in team_a else CANDIDATE) for one in interleaved]


@given(RANKINGS, RANKINGS, SEEDS)
def test_the_draft_is_that_of_the_published_algorithm(served, candidate, drawn):
    coins = Random(drawn)
    literal = algorithm_2(served, candidate, lambda: 1 - coins.getrandbits(1))
    assert team_draft(served, candidate, teams(drawn, 30)) == literal


@given(RANKINGS, RANKINGS, SEEDS, st.integers(0, 30))
def test_a_draft_is_fair_and_keeps_the_order_of_both(served, candidate, drawn, length):
    draft = team_draft(served, candidate, teams(drawn, length))
    ids = [one for one, _ in draft]
    assert len(set(ids)) == len(ids) <= length
    for at in range(len(draft) + 1):
        picked = [team for _, team in draft[:at]]
        assert abs(picked.count(SERVED) - picked.count(CANDIDATE)) <= 1
    for team, ranking in ((SERVED, served), (CANDIDATE, candidate)):
        own = [ranking.index(one) for one, picked in draft if picked == team]
        assert own == sorted(own)
        for at, (one, picked) in enumerate(draft):
            if picked == team:
                assert set(ranking[: ranking.index(one)]) <= set(ids[:at]), "the best one that was left"


@given(RANKINGS, RANKINGS, SEEDS, st.integers(0, 15))
def test_the_pages_of_a_list_belong_together(served, candidate, drawn, length):
    whole = team_draft(served, candidate, teams(drawn, 30))
    assert team_draft(served, candidate, teams(drawn, length)) == whole[:length]


def test_either_model_picks_first_in_half_of_the_impressions():
    first = [teams(seed(b"key", f"query {n}", None, "address", 0.0), 1)[0] for n in range(2000)]
    assert 900 < sum(first) < 1100


def test_a_share_of_the_impressions_takes_part():
    drawn = [seed(b"key", f"query {n}", None, "address", 0.0) for n in range(2000)]
    assert 340 < sum(takes_part(one, 0.2) for one in drawn) < 460
    assert all(takes_part(one, 1.0) for one in drawn)


def test_a_client_gets_the_same_list_for_an_hour_and_others_get_another():
    one = seed(b"key", "Red  car", "kind:x", "a", 7200.0)
    assert one == seed(b"key", "red car", "kind:x", "a", 10799.0)
    others = [("key", "red car", "kind:x", "b", 7200.0), ("key", "red cars", "kind:x", "a", 7200.0),
              ("key", "red car", None, "a", 7200.0), ("key", "red car", "kind:x", "a", 10800.0),
              ("other", "red car", "kind:x", "a", 7200.0)]  # fmt: skip
    assert one not in [seed(key.encode(), *rest) for key, *rest in others]


@given(st.integers(0, 60), st.integers(0, 60))
def test_the_interval_and_the_p_value_are_those_of_wilson_and_of_the_sign_test(wins, losses):
    tally, n = Tally(wins, losses, 5), wins + losses
    if not n:
        assert (tally.interval, tally.p_value) == ((0.0, 1.0), 1.0)
        return
    z, share = 1.959963984540054, wins / n
    middle, spread = share + z**2 / (2 * n), z * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    expected = [(middle + sign * spread) / (1 + z**2 / n) for sign in (-1, 1)]
    assert tally.interval == pytest.approx(expected, abs=1e-9)
    tail = sum(math.comb(n, i) for i in range(min(wins, losses) + 1)) / 2**n
    assert tally.p_value == pytest.approx(min(1.0, 2 * tail))


NOW = datetime(2026, 1, 2, tzinfo=UTC)
SEED = bytes(8)


@cache
def impression(shown, said):
    return sign(b"key", "q", shown, said)


def click(number, place, *, n=0, offset=0, version=1, candidate=2, drafted=4, **other):
    """A click on the document at a place of a list of four."""
    shown = ("a", "b", "c", "d")
    said = Impression(version, offset, 1000 + n, SEED, candidate, drafted)
    fields = {"impression": impression(shown, said), "received": NOW} | other
    return Feedback(str(number), "click", "q", shown[place], shown, number=number, **fields)


def test_the_team_with_more_clicks_wins_an_impression():
    ours = teams(SEED, 8).index(CANDIDATE)
    theirs = teams(SEED, 8).index(SERVED)
    count = ClickCount(1, 2, NOW.isoformat())
    count.add(click(1, ours))
    assert count.tally == Tally(1, 0, 0)
    count.add(click(2, theirs))
    assert count.tally == Tally(0, 0, 1), "one click each is a tie"
    count.add(click(3, theirs, n=1))
    count.add(click(4, teams(SEED, 8)[4:].index(CANDIDATE), n=2, offset=4, drafted=8))
    assert count.tally == Tally(1, 1, 1)
    assert count.last == 4


@pytest.mark.parametrize(
    "other",
    [
        {"counted": False}, {"version": 3}, {"candidate": 3}, {"drafted": 0}, {"impression": ""},
        {"received": NOW - timedelta(hours=1)}, {"offset": 4},
    ],
    ids=str,
)  # fmt: skip
def test_clicks_that_are_not_of_the_trial_do_not_count(other):
    count = ClickCount(1, 2, NOW.isoformat())
    count.add(click(1, 0, **other))
    assert count.tally == Tally()


def test_the_rule_looks_once_at_a_number_that_was_fixed_before():
    ours = teams(SEED, 8).index(CANDIDATE)
    theirs = teams(SEED, 8).index(SERVED)
    count = ClickCount(1, 2, NOW.isoformat(), look_after=3)
    for n, place in enumerate((ours, theirs, ours)):
        assert count.at_look is None
        count.add(click(n + 1, place, n=n))
    for n in range(3, 30):
        count.add(click(n + 1, ours, n=n))
    assert count.at_look == Tally(2, 1, 0)
    assert count.tally.wins == 29


@pytest.fixture
def candidate(model, tmp_path):
    """A model that finds boats for cars."""
    path = tmp_path / "candidate.safetensors"
    VersionRegistry.open(model).load().set_pair("car", "boat", 50.0).save(path)
    return path


def test_a_trial_is_kept_with_the_versions_and_ends_by_promotion_rollback_or_withdrawal(model, candidate):
    registry = VersionRegistry.open(model)
    assert start_trial(registry, candidate, 0.25).version == 2
    again = VersionRegistry.open(model)
    assert (current_trial(again).share, again.current().number) == (0.25, 1)
    with pytest.raises(DataError, match="version 2 is on trial, not version 7"):
        promote(registry, 7)
    assert withdraw(registry).number == 2
    with pytest.raises(DataError, match="no candidate is on trial"):
        promote(registry)
    start_trial(registry, 2)
    assert promote(registry, 2, {"wins": 3}).check == {"interleaving": {"wins": 3}}
    assert (registry.current().number, current_trial(registry)) == (2, None)
    with pytest.raises(DataError, match="served already"):
        start_trial(registry, 2)
    start_trial(registry, 1)
    registry.rollback(1)
    assert current_trial(registry) is None


def test_a_learning_round_that_ends_during_a_trial_adds_no_version(model, candidate):
    registry = VersionRegistry.open(model)
    learned = registry.load().set_pair("car", "sail", 2.0)
    start_trial(registry, candidate)
    with pytest.raises(DataError, match="version 2 is on trial; learning goes on when it has ended"):
        registry.add(learned, "learned", parent=1)
    assert [one.number for one in registry.list()] == [1, 2]
    withdraw(registry)
    assert registry.add(learned, "learned", parent=1).number == 3


def test_a_candidate_is_not_pruned(model, candidate):
    registry = VersionRegistry.open(model)
    start_trial(registry, candidate)
    for _ in range(2):
        registry.add_file(candidate, "added")
    registry.prune(1)
    assert [one.number for one in registry.list()] == [2, 4], "neither the newest nor served"
    assert registry.load(2).search("red car")


def test_a_candidate_without_an_index_is_not_on_trial_and_the_service_goes_on(serve, model, candidate, caplog):
    index_path(model).unlink()
    shutil.rmtree(f"{model}.versions")  # with its copy of the index
    registry = VersionRegistry.open(model)
    registry.add_file(candidate, "added")
    running = serve()
    start_trial(registry, 1, share=1.0)
    wait_until(lambda: "version 1 is not on trial" in caplog.text, 10)
    found = running.client.post("/search", json={"query": "red car"}).json()
    assert (found["version"], len(found["impression"])) == (2, 48)
    withdraw(registry)
    registry.add_file(candidate, "added")
    wait_until(lambda: running.client.get("/health").json()["version"] == 3, 10)


def test_a_filter_by_a_field_that_the_candidate_lacks_is_answered_by_the_served_version(serve, model, tmp_path):
    other = tmp_path / "other.safetensors"
    sr.TextRanker("bm25").fit({"boat-red": "red boat"}).save(other)
    start_trial(VersionRegistry.open(model), other, share=1.0)
    running = serve()
    answer = running.client.post("/search", json={"query": "red boat", "filter": "thing:boat"})
    assert (answer.status_code, len(answer.json()["impression"])) == (200, 48)
    assert answer.json()["results"][0]["id"] == "boat-red"
    assert running.client.post("/search", json={"query": "red boat", "filter": "thnig:boat"}).status_code == 422
    assert len(running.client.post("/search", json={"query": "red boat"}).json()["impression"]) == 60


def visit(running, number, wanted):
    """A visitor who searches for a car of some colour and clicks on what they want."""
    visitor = Visitor(running, f"visitor-{number}")
    seen = visitor.search(f"{COLOURS[number % 8]} car", k=5)
    place = next(at for at, id in enumerate(seen["shown"]) if id.startswith(wanted))
    answer = visitor.click(seen, place)
    assert (answer.status_code, answer.json()["counted"]) == (201, True), answer.text


def test_people_behind_one_address_have_impressions_of_their_own(serve, model, candidate):
    start_trial(VersionRegistry.open(model), candidate, share=1.0)
    running = serve()
    seen = [Visitor(running, f"v{number}").search() for number in range(5)]
    assert len({tuple(one["shown"]) for one in seen}) == 1
    assert len({one["impression"] for one in seen}) == 5


@pytest.mark.parametrize(("wanted", "served"), [("boat", 2), ("automobile", 1)])
def test_clicks_over_http_decide_which_version_is_served(serve, model, candidate, monkeypatch, wanted, served):
    monkeypatch.setattr(trials, "CHECK_INTERVAL_S", 0.05)
    running = serve(promote_after=12, promote_level=0.05, clicks_per_address=100)
    start_trial(VersionRegistry.open(model), candidate, share=1.0)

    def trial():
        return running.client.get("/model").json()["trial"]

    wait_until(lambda: trial() is not None)
    for number in range(11):
        visit(running, number, wanted)
    found = trial()
    wins = 11 if wanted == "boat" else 0
    assert (found["wins"], found["losses"], found["ties"]) == (wins, 11 - wins, 0)
    assert found["low"] <= found["won"] <= found["high"]
    assert found["rule"] == {"after": 12, "level": 0.05}
    visit(running, 11, wanted)
    wait_until(lambda: trial() is None)
    wait_until(lambda: running.client.get("/model").json()["version"] == served)  # it is loaded before it is served
    answer = running.client.get("/model").json()
    recorded = [one["check"].get("interleaving") for one in answer["versions"]]
    assert (recorded[1] or {}).get("wins") == (12 if served == 2 else None)


def test_a_few_impressions_of_a_visitor_and_of_an_address_count_a_day():
    ours = teams(SEED, 8).index(CANDIDATE)
    count, limits = 0, ClickLimits(per_visitor=2, per_address=3)
    votes = ClickCount(1, 2, NOW.isoformat(), limits=limits)

    def wins_after(visitor: str, address: str, received: datetime = NOW) -> int:
        nonlocal count
        count += 1
        votes.add(click(count, ours, n=count, visitor=visitor, address=address, received=received))
        return votes.tally.wins

    assert [wins_after("a", "x") for _ in range(4)] == [1, 2, 2, 2]
    assert [wins_after("b", "x") for _ in range(2)] == [3, 3], "the address has three"
    assert [wins_after("", "y") for _ in range(3)] == [4, 5, 5], "an address without visitors is one"
    assert wins_after("a", "x", NOW + timedelta(days=1)) == 6
    again = click(99, teams(SEED, 8).index(SERVED), n=1, visitor="a", address="x")
    votes.add(again)
    assert votes.tally == Tally(5, 0, 1), "another click on an impression that counts"


def test_one_address_cannot_decide_a_trial_with_forged_clicks(serve, model, candidate, monkeypatch):
    """The real fault: the limits of clicks are per query, so many queries of one visitor decided alone."""
    monkeypatch.setattr(trials, "CHECK_INTERVAL_S", 0.05)
    running = serve(promote_after=12)
    start_trial(VersionRegistry.open(model), candidate, share=1.0)
    wait_until(lambda: running.client.get("/model").json()["trial"] is not None)
    one = Visitor(running, "one-visitor")
    for colour in COLOURS:
        seen = one.search(f"{colour} car", k=5)
        place = next(at for at, id in enumerate(seen["shown"]) if id.startswith("boat"))
        assert one.click(seen, place).json()["counted"], "it counts for learning"
    assert running.client.get("/model").json()["trial"]["wins"] == 3
    for number in range(24):
        visit(running, number, "boat")
    found = running.client.get("/model").json()
    assert (found["version"], found["trial"]["wins"], found["trial"]["losses"]) == (1, 10, 0)


def test_an_interleaved_answer_names_who_picked_each_result_and_explains_it_so(serve, model, candidate):
    start_trial(VersionRegistry.open(model), candidate, share=1.0)
    running = serve()
    body = {"query": "red car", "k": 4, "explain": True}
    pages = [running.client.post("/search", json=body | {"offset": at}).json() for at in (0, 4)]
    results = [one for page in pages for one in page["results"]]
    assert len({one["id"] for one in results}) == 8, "pages do not overlap"
    assert sorted(one["version"] for one in results) == [1] * 4 + [2] * 4
    for one in results:
        found = running.client.post(
            "/explain", json={"query": "red car", "document": one["id"], "version": one["version"]}
        ).json()
        assert (found["version"], found["score"]) == (one["version"], pytest.approx(one["score"]))
        assert sum(pair["contribution"] for pair in one["pairs"]) == pytest.approx(one["score"], rel=1e-5)


def test_an_administrator_promotes_or_ends_a_trial(serve, model, candidate):
    start_trial(VersionRegistry.open(model), candidate)
    running = serve(tokens={"judge": "the-token-of-a-judge"})
    judge = {"Authorization": "Bearer the-token-of-a-judge"}
    for action in ("promote", "withdraw"):
        path = f"/model/{action}"
        assert running.client.post(path, json={"candidate": 2}, headers=judge).status_code == 403
        assert running.client.post(path, json={"candidate": 1}).status_code == 409
    assert running.client.post("/model/withdraw", json={"candidate": 2}).json()["number"] == 2
    assert running.client.get("/model").json()["trial"] is None
    start_trial(VersionRegistry.open(model), 2)
    wait_until(lambda: running.client.get("/model").json()["trial"] is not None)
    assert running.client.post("/model/promote", json={"candidate": 2}).status_code == 200
    assert running.client.get("/health").json()["version"] == 2


def test_the_commands_start_end_and_promote(model, candidate, capsys):
    assert printed(capsys, "model", "candidate", model, candidate, "--share", "0.2") == {
        "candidate": 2, "share": 0.2, "current": 1,
    }  # fmt: skip
    assert printed(capsys, "model", "candidate", model, "--stop") == {"withdrawn": 2}
    assert printed(capsys, "model", "candidate", model, "--version", "2")["candidate"] == 2
    assert printed(capsys, "model", "promote", model)["current"] == 2
    assert json.loads((model.parent / f"{model.name}.versions/versions.json").read_text()).get("trial") is None


def test_a_share_of_the_searches_stays_with_the_served_version(serve, model, candidate):
    start_trial(VersionRegistry.open(model), candidate, share=0.5)
    running = serve()
    found = [running.client.post("/search", json={"query": f"{one} car"}).json() for one in COLOURS * 3]
    interleaved = [len(one["impression"]) == 60 for one in found]
    versions = [any("version" in result for result in one["results"]) for one in found]
    assert versions == interleaved
    drawn = [running.client.post("/search", json={"query": f"car number{n}"}).json() for n in range(40)]
    assert 5 < sum(len(one["impression"]) == 60 for one in drawn) < 35
