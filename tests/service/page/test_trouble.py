"""What the page says where something is not as it should be: kindly, and it goes on by itself where it can."""

from __future__ import annotations

from sparserank.versions import VersionRegistry

from .browsing import expect, picture, search


def test_where_nothing_is_found_it_says_so_and_names_unknown_words(service, visits):
    page = visits.open(service.url)
    page.fill("#query", "zeppelin")
    text = "No results for “zeppelin”: no document contains the word “zeppelin”. Try fewer or other words."
    expect(page.locator("#count")).to_have_text(text)
    assert page.is_hidden("#bm25")
    picture(page, "nothing-found")
    search(page, "red zeppelins and balloons")
    text = "no document contains the words “zeppelins”, “balloons”"
    expect(page.locator("#count")).to_contain_text(text)
    page.fill("#query", "")
    expect(page.locator("#welcome")).to_be_visible()
    expect(page.locator("#count")).to_be_empty()


def test_a_service_that_is_gone_is_said_and_the_page_goes_on_when_it_is_back(run, visits):
    visits.expected = "ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE"
    running = run()
    page = visits.open(running.url)
    search(page, "red car")
    running.stop()
    page.fill("#query", "blue car")
    expect(page.locator("[data-note=trouble] p")).to_contain_text("The service does not answer.")
    expect(page.locator(".card").first).to_be_visible()  # what was there stays to be read
    picture(page, "service-gone")
    running.start()
    expect(page.locator("#results")).to_have_attribute("data-query", "blue car", timeout=20_000)
    expect(page.locator("[data-note=trouble]")).to_have_count(0)
    expect(page.locator("#version")).to_have_text("version 1")


def test_teaching_without_a_token_asks_for_it_and_then_teaches(run, visits):
    visits.expected = "401"
    running = run()
    page = visits.open(f"{running.url}#")
    search(page, "red car")
    page.click(".thumb.up >> nth=0")
    expect(page.locator("#token h2")).to_have_text("Enter the token")
    picture(page, "token")
    page.fill("#token-input", "wrong")
    page.click("text=Use token")
    expect(page.locator("#token p").first).to_have_text("The service does not accept this token.")
    page.fill("#token-input", "secret")
    page.keyboard.press("Enter")
    expect(page.locator("#feedback-status")).to_have_text("Feedback sent: 1.")
    expect(page.locator("#token")).to_be_hidden()
    (stored,) = running.store.since(0)
    assert (stored.query, stored.kind, stored.grade) == ("red car", "judgment", 1.0)


def test_where_reads_need_the_token_it_is_asked_for_at_once(run, visits):
    visits.expected = "401"
    running = run(host="0.0.0.0")
    page = visits.open(f"{running.url}?q=red#")
    page.fill("#token-input", "secret")
    page.click("text=Use token")
    expect(page.locator(".card").first).to_be_visible()


def test_a_request_sent_before_the_token_is_sent_again_with_it(run, visits):
    visits.expected = "401"
    running = run(host="0.0.0.0")
    page = visits.open(f"{running.url}#")
    held = []
    page.route("**/search", lambda route: route.continue_() if held else held.append(route))
    page.goto(f"{running.url}?q=red")
    page.fill("#token-input", "secret")
    page.click("text=Use token")
    expect(page.locator("#token")).to_be_hidden()
    held[0].fulfill(status=401, json={"detail": "needs the token"})
    expect(page.locator(".card").first).to_be_visible()
    expect(page.locator("#token")).to_be_hidden()


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
    expect(page.locator("[data-note=trouble] p")).to_have_text("Too many requests. Trying again in a second.")
    expect(page.locator("#results")).to_have_attribute("data-query", "red car")
    expect(page.locator("[data-note=trouble]")).to_have_count(0)


def test_a_fault_of_the_service_is_shown_in_its_own_words_with_a_way_to_try_again(service, visits):
    visits.expected = "503"
    page = visits.open(service.url)
    page.route("**/search", lambda route: route.fulfill(status=503, json={"detail": "the disk is full; make room"}))
    page.fill("#query", "red car")
    expect(page.locator("[data-note=trouble] p")).to_have_text("the disk is full; make room")
    page.unroute("**/search")
    page.click("text=Try again")
    expect(page.locator("#results")).to_have_attribute("data-query", "red car")


def test_an_answer_that_cannot_be_read_is_said_kindly(service, visits):
    page = visits.open(service.url)
    page.route("**/search", lambda route: route.fulfill(status=200, body="<html>Sign in to the network</html>"))
    page.fill("#query", "red car")
    expect(page.locator("[data-note=trouble] p")).to_contain_text("The response is not JSON.")


def test_however_often_versions_are_changed_the_service_is_looked_at_every_four_seconds(run, visits):
    running = run()
    versions = VersionRegistry.open(running.settings.model)
    versions.add(versions.load().set_pair("car", "boat", 40.0), "taught by hand")
    page = visits.open(running.url)
    page.clock.install()
    page.reload()
    for number in (1, 2, 1, 2):
        page.click("#open-model")
        page.click("text=Restore")
        page.click(f"text=Serve version {number}")
        expect(page.locator("#version")).to_have_text(f"version {number}")
    looks: list[str] = []
    page.on("request", lambda request: looks.append(request.url) if request.url.endswith("/health") else None)
    for _ in range(3):  # the next timer starts when the service has answered
        page.clock.run_for(3_000)
        page.wait_for_timeout(300)
    assert 1 <= len(looks) <= 3
