"""What the page says where something is not as it should be: kindly, and it goes on by itself where it can."""

from __future__ import annotations

import pytest

from sparserank.service import cost
from sparserank.versions import VersionRegistry

from .browsing import expect, picture, search


def test_where_nothing_is_found_it_says_so_and_names_unknown_words(service, visits):
    page = visits.open(service.url)
    page.fill("#query", "zeppelin")
    text = "Nothing found for “zeppelin”: no document contains the word “zeppelin”. Try fewer or other words."
    expect(page.locator("#count")).to_have_text(text)
    assert page.is_hidden("#bm25")
    picture(page, "nothing-found")
    search(page, "red zeppelins and balloons")
    text = "no document contains the words “zeppelins”, “balloons”"
    expect(page.locator("#count")).to_contain_text(text)
    page.fill("#query", "")
    expect(page.locator("#welcome")).to_be_visible()
    expect(page.locator("#count")).to_be_empty()


def test_a_service_that_is_gone_leaves_no_old_results_and_the_page_goes_on_when_it_is_back(run, visits):
    visits.expected = "ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE"
    running = run()
    page = visits.open(running.url)
    search(page, "red car")
    running.stop()
    page.fill("#query", "blue car")
    expect(page.locator("#failure h2")).to_have_text("The search service does not answer")
    expect(page.locator("#failure")).to_contain_text("“blue car”")
    expect(page.locator(".card")).to_have_count(0)
    expect(page.locator("#count")).to_be_empty()
    for part in ("#pages", "#tools", "#filters", "#bm25"):
        expect(page.locator(part)).to_be_hidden()
    expect(page.locator("#query")).to_be_focused()
    picture(page, "service-gone")
    page.click("text=Try again")
    expect(page.locator("#failure")).to_be_visible()
    running.start()
    expect(page.locator("#results")).to_have_attribute("data-query", "blue car", timeout=20_000)
    expect(page.locator("#failure")).to_be_hidden()
    expect(page.locator("#version")).to_have_text("version 1")


def test_a_reader_without_a_token_is_never_asked_for_one(run, visits):
    visits.expected = "401"
    running = run()
    page = visits.open(f"{running.url}#")
    search(page, "red car")
    with page.expect_response("**/feedback") as answer:
        page.click(".title >> nth=0")
    assert answer.value.status == 401
    expect(page.locator(".full-text")).to_be_visible()
    page.go_back()
    page.click(".title >> nth=3")  # nothing is sent that the service would refuse again
    page.click("text=Back to the results")
    page.click(".why >> nth=0")
    page.click("nav >> text=Model")
    expect(page.locator(".versions")).to_be_visible()
    assert page.locator("dialog[open], .note").count() == 0
    assert page.evaluate("localStorage.getItem('sparserank.waiting')") is None
    assert running.store.last() == 0


def test_voting_without_a_token_asks_for_it_and_then_votes(run, visits):
    visits.expected = "401"
    running = run()
    page = visits.open(f"{running.url}#")
    search(page, "red car")
    page.click(".thumb.up >> nth=0")
    expect(page.locator("#token h2")).to_have_text("This needs a token")
    picture(page, "token")
    page.fill("#token-input", "wrong")
    page.click("text=Use token")
    expect(page.locator("#token h2")).to_be_visible()
    page.fill("#token-input", "secret")
    page.keyboard.press("Enter")
    expect(page.locator("#feedback-status")).to_have_text("Thank you: 1 sent.")
    expect(page.locator("#token")).to_be_hidden()
    (stored,) = running.store.since(0)
    assert (stored.query, stored.kind, stored.grade) == ("red car", "judgment", 1.0)


def test_who_gives_no_token_goes_on_without_the_vote(run, visits):
    visits.expected = "401"
    page = visits.open(f"{run().url}#")
    search(page, "red car")
    page.click(".thumb.up >> nth=0")
    expect(page.locator("#token")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#token")).to_be_hidden()
    expect(page.locator(".thumb.up").first).to_have_attribute("aria-pressed", "false")
    assert page.evaluate("localStorage.getItem('sparserank.waiting')") is None
    page.reload()
    expect(page.locator(".card").first).to_be_visible()
    assert page.locator("dialog[open], .note").count() == 0


def test_a_late_answer_takes_no_focus_from_who_types(run, visits):
    visits.expected = "401"
    page = visits.open(f"{run().url}#")
    search(page, "red car")
    held = []
    page.route("**/feedback", lambda route: held.append(route))
    with page.expect_request("**/feedback"):
        page.click(".thumb.up >> nth=0")
    page.focus("#query")
    page.keyboard.type(" blue")
    held[0].fulfill(status=401, json={"detail": "needs the token"})
    expect(page.locator("[data-note=token]")).to_contain_text("Only people with a token can vote.")
    page.keyboard.type(" green")
    expect(page.locator("#query")).to_have_value("red car blue green")
    expect(page.locator("dialog[open]")).to_have_count(0)
    page.unroute("**/feedback")
    page.click("text=Enter the token")
    page.fill("#token-input", "secret")
    page.keyboard.press("Enter")
    expect(page.locator("#feedback-status")).to_have_text("Thank you: 1 sent.")


@pytest.mark.parametrize("path", ["**/compare", "**/explain", "**/related/**"])
def test_a_dialog_that_was_closed_does_not_come_back_when_its_answer_arrives(service, visits, path):
    page = visits.open(service.url)
    search(page, "red green car ship")
    page.click(".why >> nth=0")
    held = []
    page.route(path, lambda route: held.append(route))
    opener = {
        "**/compare": "text=Compare with another result",
        "**/explain": "text=All pairs",
        "**/related/**": ".pair-words >> nth=0",
    }
    with page.expect_request(path):
        page.click(opener[path])
    expect(page.locator("dialog[open]")).to_have_count(1)  # at once, before there is an answer
    page.keyboard.press("Escape")
    page.focus("#query")
    with page.expect_response(path):
        held[0].continue_()
    page.wait_for_timeout(200)
    expect(page.locator("dialog[open]")).to_have_count(0)
    expect(page.locator("#query")).to_be_focused()


def test_where_reads_need_a_token_the_page_asks_for_it_without_a_dialog(run, visits):
    visits.expected = "401"
    running = run(host="0.0.0.0", token="a-token-of-the-page-tests")
    page = visits.open(f"{running.url}?q=red#")
    expect(page.locator("#failure h2")).to_have_text("This search needs a token")
    expect(page.locator("#query")).to_be_focused()
    page.fill("#search-token", "a-token-of-the-page-tests")
    page.click("text=Use token")
    expect(page.locator(".card").first).to_be_visible()


def test_too_many_requests_are_said_and_asked_again(run, visits):
    visits.expected = "429"
    running = run()
    page = visits.open(running.url)
    refused = []

    def once(route):
        if refused:
            route.continue_()
            return
        refused.append(route)
        route.fulfill(status=429, headers={"Retry-After": "1"}, json={"detail": "too many requests"})

    page.route("**/search", once)
    page.fill("#query", "red car")
    expect(page.locator("#failure p")).to_have_text("Too many requests. Trying again in a second.")
    expect(page.locator("#results")).to_have_attribute("data-query", "red car")
    expect(page.locator("#failure")).to_be_hidden()


def test_a_fault_of_the_service_is_shown_in_its_own_words_with_a_way_to_try_again(service, visits):
    visits.expected = "503"
    page = visits.open(service.url)
    page.route("**/search", lambda route: route.fulfill(status=503, json={"detail": "the disk is full; make room"}))
    page.fill("#query", "red car")
    expect(page.locator("#failure p")).to_have_text("the disk is full; make room")
    page.unroute("**/search")
    page.click("text=Try again")
    expect(page.locator("#results")).to_have_attribute("data-query", "red car")


def test_an_answer_that_cannot_be_read_is_said_kindly(service, visits):
    page = visits.open(service.url)
    page.route("**/search", lambda route: route.fulfill(status=200, body="<html>Sign in to the network</html>"))
    page.fill("#query", "red car")
    expect(page.locator("#failure p")).to_contain_text("The response is not JSON.")


def test_however_often_versions_are_changed_the_service_is_looked_at_every_four_seconds(run, visits):
    running = run()
    versions = VersionRegistry.open(running.settings.model)
    versions.add(versions.load().set_pair("car", "boat", 40.0), "taught by hand")
    page = visits.open(running.url)
    page.clock.install()
    page.reload()
    page.click("nav >> text=Model")
    for number in (1, 2, 1, 2):
        page.click("text=Serve again")
        page.click(f"text=Yes, serve version {number}")
        expect(page.locator("#version")).to_have_text(f"version {number}")
    looks: list[str] = []
    page.on("request", lambda request: looks.append(request.url) if request.url.endswith("/health") else None)
    for _ in range(3):  # the next timer starts when the service has answered
        page.clock.run_for(3_000)
        page.wait_for_timeout(300)
    assert 1 <= len(looks) <= 3


def test_a_long_text_comes_in_parts_that_a_reader_asks_for(service, visits, monkeypatch):
    monkeypatch.setattr(cost, "MAX_TEXT_CHARACTERS", 40)
    page = visits.open(f"{service.url}?doc=automobile-red#token=secret")
    expect(page.locator(".full-text")).to_have_text("A red automobile with wheels. It is")
    page.click("text=Show more of the text")
    expect(page.locator(".full-text").last).to_have_text("number 0 of its kind, and the")
    page.click("text=Show more of the text")
    expect(page.locator(".full-text").last).to_have_text("automobile is kept dry.")
    expect(page.locator("text=Show more of the text")).to_have_count(0)
