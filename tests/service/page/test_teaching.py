"""Thumbs and clicks teach: each arrives once, whatever the network does, and the order changes for it."""

from __future__ import annotations

import json

from sparserank.service.learning.grades import is_held_out

from .browsing import expect, picture, search
from .world import write_world

QUERIES = ("kept dry", "dry number", "its kind", "dry kind", "number of its kind")


def posted(page):
    """The bodies of all feedback sent from now on, repeated ones included."""
    sent = []
    page.on("request", lambda r: sent.append(json.loads(r.post_data)) if r.url.endswith("/feedback") else None)
    return sent


def test_thumbs_and_clicks_arrive_as_feedback_on_what_was_shown(run, visits):
    running = run()
    page = visits.open(running.url)
    search(page, "red car")
    shown = tuple(item.get_attribute("data-id") for item in page.locator("#results > li").all())
    page.click(".thumb.down >> nth=1")
    page.click(".title >> nth=2")
    page.click(".title >> nth=2")  # closed again: no second click
    expect(page.locator("#feedback-status")).to_have_text("Feedback sent: 2.")
    assert page.get_attribute(".thumb.down >> nth=1", "aria-pressed") == "true"
    first, second = running.store.since(0)
    assert (first.kind, first.document, first.grade, first.shown) == ("judgment", shown[1], -1.0, shown)
    assert (second.kind, second.document, second.shown, second.query) == ("click", shown[2], shown, "red car")
    assert first.id != second.id


def test_a_thumb_pressed_again_is_taken_back(run, visits):
    running = run()
    page = visits.open(running.url)
    search(page, "red car")
    page.click(".thumb.up >> nth=0")
    page.click(".thumb.up >> nth=0")
    expect(page.locator("#feedback-status")).to_have_text("Feedback sent: 2.")
    assert page.get_attribute(".thumb.up >> nth=0", "aria-pressed") == "false"
    assert [one.grade for one in running.store.since(0)] == [1.0, 0.0]


def test_feedback_that_the_network_lost_is_sent_again_under_the_same_id_and_stored_once(run, visits):
    visits.expected = "ERR_FAILED|ERR_CONNECTION"
    running = run()
    page = visits.open(running.url)
    search(page, "red car")
    sent = posted(page)
    answers = []

    def lose(route):
        answers.append(route.fetch())  # it arrives, but its acknowledgement does not
        route.abort()

    page.route("**/feedback", lose, times=1)
    page.click(".thumb.up >> nth=0")
    expect(page.locator("#feedback-status")).to_have_text("Feedback sent: 1.")
    assert len(sent) == 2
    assert sent[0] == sent[1]
    assert answers[0].status == 201
    (stored,) = running.store.since(0)
    assert stored.id == sent[0]["id"]
    assert page.evaluate("localStorage.length") == 0


def test_ids_are_made_where_the_browser_makes_no_uuids(run, visits):
    running = run()
    page = visits.open(running.url)
    page.evaluate("() => { delete Crypto.prototype.randomUUID; }")
    search(page, "red car")
    page.click(".thumb.up >> nth=0")
    page.click(".thumb.up >> nth=1")
    expect(page.locator("#feedback-status")).to_have_text("Feedback sent: 2.")
    assert len({one.id for one in running.store.since(0)}) == 2


def test_feedback_outlives_the_page_until_the_service_has_it(run, visits):
    visits.expected = "ERR_FAILED"
    running = run()
    page = visits.open(running.url)
    search(page, "red car")
    page.route("**/feedback", lambda route: route.abort())
    page.click(".thumb.up >> nth=0")
    expect(page.locator("#feedback-status")).to_have_text("Waiting to be sent: 1.")
    assert running.store.last() == 0
    page.unroute("**/feedback")
    page.reload()
    expect(page.locator("#feedback-status")).to_have_text("Feedback sent: 1.")
    assert running.store.last() == 1


def test_feedback_that_is_refused_for_good_is_said_and_not_sent_again(run, visits):
    visits.expected = "409"
    running = run()
    page = visits.open(running.url)
    search(page, "red car")
    page.route("**/feedback", lambda route: route.fulfill(status=409, json={"detail": "this id has other content"}))
    page.click(".thumb.up >> nth=0")
    expect(page.locator("[data-note=trouble] p")).to_have_text("this id has other content")
    assert page.evaluate("localStorage.length") == 0


def all_learned(page, running):
    """Wait until the learner has looked at all feedback, and the newest version is served."""
    while True:
        told = page.request.get(f"{running.url}model").json()
        seen = told["learner"]["last"]["looked_through"] == running.store.last() and not told["learner"]["working"]
        if seen and told["version"] == told["versions"][-1]["number"]:
            return
        page.wait_for_timeout(200)


def test_taught_by_thumbs_until_the_order_visibly_changes(run, visits, tmp_path):
    running = run(learn=True, learn_every=0.3, held_out=str(write_world(tmp_path / "world")))
    query = next(text for text in QUERIES if not is_held_out(text))
    page = visits.open(running.url)
    search(page, query)
    before = page.locator(".title").all_inner_texts()
    wanted = before[5]
    page.click(f"button[aria-label='Good result: {wanted}']")
    now, n_sent = before, 1
    for _ in range(5):
        expect(page.locator("#feedback-status")).to_contain_text(f"Feedback sent: {n_sent}.")
        all_learned(page, running)
        page.click("[data-note=version] >> text=Search again")
        expect(page.locator(".previous-rank").first).to_be_visible()
        now = page.locator(".title").all_inner_texts()
        if now[0] == wanted:
            break
        page.click(f"button[aria-label='Bad result: {now[0]}']")
        n_sent += 1
    assert now[0] == wanted
    page.wait_for_timeout(600)  # cards glide to their places
    picture(page, "taught")
    page.click("#open-changes")
    expect(page.locator("#changes tbody tr").first).to_be_visible()
    page.keyboard.press("Escape")
    page.click("#open-model")
    expect(page.locator("#model .learner")).to_contain_text("Last round: learned from 1 query")
    picture(page, "model")
