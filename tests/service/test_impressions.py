"""A click counts if the service showed what it names: forged, repeated and too many clicks move nothing."""

from __future__ import annotations

import time

import pytest

from sparserank.service import impressions
from sparserank.service.learning.grades import GradedQueries

QUERY = "red car"


class Visitor:
    """A visitor of a service who searches and clicks."""

    def __init__(self, running, name="v1", **headers) -> None:
        self._client, self._name, self._headers, self._ids = running.client, name, headers, 0

    def search(self, query=QUERY, **options):
        answer = self._client.post("/search", json={"query": query, **options}, headers=self._headers).json()
        return {"query": query, "shown": [hit["id"] for hit in answer["results"]], "impression": answer["impression"]}

    def click(self, seen, place=1, **other):
        self._ids += 1
        body = {"id": f"{self._name}-{self._ids}", "kind": "click", "document": seen["shown"][place], **seen}
        body |= {"visitor": self._name} | other
        return self._client.post("/feedback", json=body, headers=self._headers)


def counted(running) -> int:
    return sum(one.counted for one in running.app.state.service.store.since(0))


def test_a_click_with_its_impression_counts_and_teaches(serve):
    running = serve()
    visitor = Visitor(running)
    seen = visitor.search(k=5)
    answer = visitor.click(seen, place=2)
    assert answer.json() == {"id": "v1-1", "stored": True, "counted": True, "reason": ""}
    (stored,) = running.app.state.service.store.since(0)
    assert (stored.visitor, stored.impression, stored.shown) == ("v1", seen["impression"], tuple(seen["shown"]))
    assert "127.0.0.1" not in stored.address
    assert GradedQueries.from_feedback([stored]).grades[QUERY][seen["shown"][2]] > 0


def test_fifteen_forged_clicks_teach_nothing(serve):
    """Whoever has the token and makes up what was shown: nothing counts, and there is nothing to learn."""
    running = serve()
    shown = ["automobile-red", "bicycle-red", "boat-red"]
    for number in range(15):
        forged = {"id": f"f{number}", "kind": "click", "query": QUERY, "document": "boat-red", "shown": shown}
        answer = running.client.post("/feedback", json=forged | {"visitor": f"v{number}"})
        assert (answer.status_code, answer.json()["counted"]) == (201, False)
        assert "impression" in answer.json()["reason"]
    feedback = running.app.state.service.store.since(0)
    assert len(feedback) == 15
    assert GradedQueries.from_feedback(feedback).grades == {}


@pytest.mark.parametrize(
    "change",
    [
        lambda seen: {"query": "blue car"},
        lambda seen: {"shown": seen["shown"][::-1]},
        lambda seen: {"shown": seen["shown"][:3]},
        lambda seen: {"shown": [*seen["shown"][:-1], "boat-pink"]},
        lambda seen: {"impression": "A" * 48},
        lambda seen: {"impression": seen["impression"][:-4] + "AAAA"},
        lambda seen: {"impression": _with_other_version(seen["impression"])},
    ],
    ids=["query", "positions", "fewer", "document", "invented", "signature", "version"],
)
def test_a_click_that_differs_from_what_was_shown_is_422_and_not_stored(serve, change):
    running = serve()
    visitor = Visitor(running)
    seen = visitor.search(k=5)
    answer = visitor.click(seen | change(seen))
    assert answer.status_code == 422
    assert "impression" in answer.json()["detail"]
    assert running.app.state.service.store.last() == 0


def _with_other_version(impression: str) -> str:
    from base64 import urlsafe_b64decode, urlsafe_b64encode

    content = bytearray(urlsafe_b64decode(impression))
    content[3] += 1
    return urlsafe_b64encode(bytes(content)).decode()


def test_a_token_does_not_sign(serve):
    """The key of the signatures is another secret than any token."""
    running = serve()
    visitor = Visitor(running)
    seen = visitor.search()
    for key in (b"a-token-of-the-tests", b""):
        forged = impressions.sign(key, QUERY, seen["shown"], impressions.Impression(1, 0, int(time.time())))
        assert visitor.click(seen | {"impression": forged}).status_code == 422


def test_an_impression_lasts_a_day(serve):
    running = serve()
    visitor, key = Visitor(running), running.app.state.service.store.key
    seen, now = visitor.search(), time.time()
    for age, status in ((23 * 3600, 201), (25 * 3600, 422), (-3600, 422)):
        old = impressions.sign(key, QUERY, seen["shown"], impressions.Impression(1, 0, int(now - age)))
        assert visitor.click(seen | {"impression": old}).status_code == status


def test_impressions_survive_a_restart_and_hold_for_every_worker(serve):
    first, second = serve(), serve()
    assert Visitor(second).click(Visitor(first).search()).json()["counted"]


def test_a_click_counts_once_however_often_it_is_sent(serve):
    running = serve()
    visitor = Visitor(running)
    seen = visitor.search()
    answers = [visitor.click(seen).json() for _ in range(5)]
    assert [answer["counted"] for answer in answers] == [True] + [False] * 4
    assert answers[1]["reason"] == "this click was counted before"
    again = visitor.click(seen, id="v1-2")
    assert (again.status_code, again.json()["counted"]) == (200, False)
    assert visitor.click(seen, place=2).json()["counted"], "another document of the same list"
    assert counted(running) == 2


def test_a_visitor_counts_three_times_a_day_for_a_query_in_any_spelling(serve):
    running = serve()
    visitor = Visitor(running)
    spelled = ("red car", "RED car", " red  car", "Red Car", "red car")
    answers = [visitor.click(visitor.search(query)).json() for query in spelled]
    assert [answer["counted"] for answer in answers] == [True] * 3 + [False] * 2
    assert "this visitor" in answers[-1]["reason"]
    assert visitor.click(visitor.search("blue car")).json()["counted"]
    assert Visitor(running, "v2").click(visitor.search()).json()["counted"]


def test_an_address_that_invents_visitors_is_limited_too(serve):
    running = serve(clicks_per_address=4)
    visitors = [Visitor(running, f"v{number}") for number in range(8)]
    answers = [visitor.click(visitor.search()).json() for visitor in visitors]
    assert [answer["counted"] for answer in answers] == [True] * 4 + [False] * 4
    assert "this address" in answers[-1]["reason"]


def test_without_a_visitor_the_address_stands_for_it(serve):
    running = serve()
    visitor = Visitor(running)
    answers = [visitor.click(visitor.search(), visitor=None).json() for _ in range(5)]
    assert [answer["counted"] for answer in answers] == [True] * 3 + [False] * 2


def test_a_service_behind_a_trusted_proxy_counts_the_addresses_that_it_names(serve):
    running = serve(clicks_per_address=1, trusted_proxies=("127.0.0.0/8",))
    for number in range(3):
        visitor = Visitor(running, f"v{number}", **{"X-Forwarded-For": f"6.6.6.6, 9.9.9.{number}"})
        assert visitor.click(visitor.search()).json()["counted"]
    visitor = Visitor(running, "v9", **{"X-Forwarded-For": "5.5.5.5, 9.9.9.1"})
    assert not visitor.click(visitor.search()).json()["counted"]


def test_a_back_end_that_logs_clicks_itself_may_send_them_unsigned(serve):
    running = serve(unsigned_clicks=True)
    click = {"id": "c", "kind": "click", "query": QUERY, "document": "boat-red", "shown": ["boat-red"]}
    assert running.client.post("/feedback", json=click).json()["counted"]


def test_judgments_are_not_limited_whatever_impression_they_carry(serve):
    running = serve()
    visitor = Visitor(running)
    seen = visitor.search()
    for number in range(6):
        answer = visitor.click(seen | {"impression": "A" * 48}, id=f"j{number}", kind="judgment")
        assert (answer.status_code, answer.json()["counted"]) == (201, True)
