"""Thumbs and clicks teach: each arrives once, whatever the network does, and the order changes for it."""

from __future__ import annotations

import json

import pytest

from sparserank.service.learning.grades import is_held_out

from ..conftest import wait_until
from .browsing import expect, picture, search
from .world import write_world

QUERIES = ("kept dry", "dry number", "its kind", "dry kind", "number of its kind")


def posted(page):
    """The bodies of all feedback sent from now on, repeated ones included."""
    sent = []
    page.on("request", lambda r: sent.append(json.loads(r.post_data)) if r.url.endswith("/feedback") else None)
    return sent


def test_thumbs_and_visits_arrive_as_feedback_on_what_was_shown(run, visits):
    running = run()
    page = visits.open(running.url)
    search(page, "red car")
    shown = tuple(item.get_attribute("data-id") for item in page.locator("#results > li").all())
    voted, opened = [document for document in shown if not document.startswith("boat")][:2]  # boats open another site
    thumb, title = f"li[data-id={voted}] .thumb.down", f"li[data-id={opened}] .title"
    page.click(thumb)
    page.click(title)
    expect(page.locator("#document-title")).to_be_visible()
    page.go_back()
    page.click(title)  # no second click
    page.go_back()
    expect(page.locator("#feedback-status")).to_have_text("Thank you: 2 sent.")
    assert page.get_attribute(thumb, "aria-pressed") == "true"
    first, second = running.store.since(0)
    assert (first.kind, first.document, first.grade, first.shown) == ("judgment", voted, -1.0, shown)
    assert (second.kind, second.document, second.shown, second.query) == ("click", opened, shown, "red car")
    assert first.id != second.id


def test_only_following_a_result_is_a_click_and_opening_why_teaches_nothing(run, visits):
    running = run()
    page = visits.open(running.url)
    search(page, "red car")
    sent = posted(page)
    for place in range(3):
        page.click(f".why >> nth={place}")
    page.locator(".why-panel").first.get_by_text("Compare with another result").click()
    page.keyboard.press("Escape")
    page.locator(".pair-words").first.click()
    page.keyboard.press("Escape")
    page.goto(f"{running.url}?q=red+car&doc=boat-red")  # an address that somebody sent
    expect(page.locator(".full-text")).to_contain_text("A red boat with sails.")
    assert sent == []
    assert running.store.last() == 0


def test_a_result_with_an_address_leads_there_and_that_is_a_click(run, visits):
    running = run()
    page = visits.open(running.url)
    page.route(
        "https://boats.example/**", lambda route: route.fulfill(content_type="text/html", body="<h1>A boat</h1>")
    )
    search(page, "red ship")
    link = page.locator(".title[data-document=boat-red]")
    assert link.get_attribute("href") == "https://boats.example/red/boat"
    assert link.get_attribute("rel") == "noreferrer"
    expect(page.locator(".where .id").first).to_have_text("boats.example › red › boat")
    link.click()
    expect(page.locator("h1")).to_have_text("A boat")
    page.go_back()
    expect(page.locator("#results")).to_have_attribute("data-query", "red ship")
    expect(page.locator("#feedback-status")).to_be_visible()
    wait_until(lambda: running.store.since(0) != [])
    (click,) = running.store.since(0)
    assert (click.kind, click.query, click.document) == ("click", "red ship", "boat-red")


@pytest.mark.parametrize("address", ["javascript:alert(1)", "data:text/html,x", "not an address", 7, None])
def test_an_address_that_a_browser_should_not_follow_is_no_link(service, visits, address):
    page = visits.open(service.url)

    def other(route):
        answer = route.fetch()
        found = answer.json()
        for one in found["results"]:
            one["metadata"]["url"] = address
        route.fulfill(response=answer, json=found)

    page.route("**/search", other)
    search(page, "red ship")
    assert page.locator(".title").first.get_attribute("href").startswith("/?")


def test_a_document_shows_its_text_and_metadata_with_the_words_that_were_found(service, visits):
    page = visits.open(service.url)
    search(page, "red car")
    page.click(".title >> nth=0")
    expect(page.locator("#document-title")).to_have_text("The red automobile")
    assert page.evaluate("document.activeElement.id") == "document-title"
    assert page.locator(".metadata dt").all_inner_texts() == ["kind", "year", "fast"]
    assert {"red", "automobile"} <= set(page.locator(".full-text mark").all_inner_texts())
    picture(page, "document")
    page.click("text=Back to the results")
    expect(page.locator(".title").first).to_be_focused()
    assert page.url == f"{service.url}?q=red+car"


def test_a_click_carries_the_impression_of_its_search_and_an_opaque_visitor_and_counts(run, visits):
    running = run()
    page = visits.open(running.url)
    for query in ("red car", "blue car"):
        search(page, query)
        page.click(".title:not([href^=http]) >> nth=0")
        expect(page.locator(".full-text")).to_be_visible()
        page.go_back()
    expect(page.locator("#feedback-status")).to_have_text("Thank you: 2 sent.")
    first, second = running.store.since(0)
    assert (first.kind, first.counted, second.counted) == ("click", True, True)
    assert first.impression and first.impression != second.impression
    assert first.visitor == second.visitor
    assert len(first.visitor) >= 32


def test_a_thumb_pressed_again_is_taken_back(run, visits):
    running = run()
    page = visits.open(running.url)
    search(page, "red car")
    page.click(".thumb.up >> nth=0")
    page.click(".thumb.up >> nth=0")
    expect(page.locator("#feedback-status")).to_have_text("Thank you: 2 sent.")
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
    expect(page.locator("#feedback-status")).to_have_text("Thank you: 1 sent.")
    assert len(sent) == 2
    assert sent[0] == sent[1]
    assert answers[0].status == 201
    (stored,) = running.store.since(0)
    assert stored.id == sent[0]["id"]
    assert page.evaluate("localStorage.getItem('sparserank.waiting')") is None


def test_ids_are_made_where_the_browser_makes_no_uuids(run, visits):
    running = run()
    page = visits.open(running.url)
    page.evaluate("() => { delete Crypto.prototype.randomUUID; }")
    search(page, "red car")
    page.click(".thumb.up >> nth=0")
    page.click(".thumb.up >> nth=1")
    expect(page.locator("#feedback-status")).to_have_text("Thank you: 2 sent.")
    assert len({one.id for one in running.store.since(0)}) == 2


def test_feedback_outlives_the_page_until_the_service_has_it(run, visits):
    visits.expected = "ERR_FAILED"
    running = run()
    page = visits.open(running.url)
    search(page, "red car")
    page.route("**/feedback", lambda route: route.abort())
    page.click(".thumb.up >> nth=0")
    expect(page.locator("#feedback-status")).to_have_text("1 waiting to be sent.")
    assert running.store.last() == 0
    page.unroute("**/feedback")
    page.reload()
    expect(page.locator("#feedback-status")).to_have_text("Thank you: 1 sent.")
    assert running.store.last() == 1


def test_feedback_that_is_rejected_for_good_is_said_and_not_sent_again(run, visits):
    visits.expected = "409"
    running = run()
    page = visits.open(running.url)
    search(page, "red car")
    page.route("**/feedback", lambda route: route.fulfill(status=409, json={"detail": "this id has other content"}))
    page.click(".thumb.up >> nth=0")
    expect(page.locator("[data-note=trouble] p")).to_have_text("this id has other content")
    assert page.evaluate("localStorage.getItem('sparserank.waiting')") is None


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
        expect(page.locator("#feedback-status")).to_contain_text(f"Thank you: {n_sent} sent.")
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
    page.click("nav >> text=Model")
    expect(page.locator("#model-view .learner")).to_contain_text("Last round: learned from 1 query")
    expect(page.locator(".figures dt").first).to_have_text("held-out judgments, nDCG@10")
    page.click("text=What it changed >> nth=0")
    expect(page.locator(".changes li").first).to_be_visible()
    picture(page, "learned")
