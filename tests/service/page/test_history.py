"""The address is the state: Back, Forward, reload and links to queries, filters, pages and documents work."""

from __future__ import annotations

import re

from .browsing import expect, picture, search


def titles(page):
    return page.locator(".title").all_inner_texts()


def test_back_returns_through_document_page_filter_and_query_to_the_start(service, visits):
    page = visits.open(service.url)
    search(page, "kept dry")
    first = titles(page)
    page.click("#filters label:has-text('boat')")
    expect(page.locator("#chips")).to_contain_text("kind: boat")
    page.click("#chips button")
    expect(page.locator("#chips")).to_be_hidden()
    page.click("text=Next")
    expect(page.locator("#count")).to_contain_text("Results 11 to 20")
    second = titles(page)
    assert not set(first) & set(second)
    page.click(".title >> nth=3")
    expect(page.locator("#document-view")).to_be_visible()

    page.go_back()
    expect(page.locator(".title").first).to_be_visible()
    assert titles(page) == second
    expect(page.locator(".title").nth(3)).to_be_focused()
    page.go_back()
    expect(page.locator("#count")).to_contain_text("Results 1 to 10")
    assert titles(page) == first
    page.go_back()
    expect(page.locator("#chips")).to_contain_text("kind: boat")
    expect(page.locator("#filters input:checked")).to_have_count(1)
    assert all("boat" in title for title in titles(page))
    page.go_back()
    expect(page.locator("#chips")).to_be_hidden()
    assert page.input_value("#query") == "kept dry"
    page.go_back()
    expect(page.locator("#welcome")).to_be_visible()
    assert page.input_value("#query") == ""
    page.go_forward()
    expect(page.locator("#results")).to_have_attribute("data-query", "kept dry")


def test_what_is_typed_while_the_page_is_loading_is_searched_for(service, visits):
    page = visits.open(service.url)

    def type_first(route):
        page.evaluate("document.querySelector('#query').value = 'red car'")
        page.evaluate("document.querySelector('#query').dispatchEvent(new Event('input'))")
        route.continue_()

    page.route("**/model", type_first)
    page.goto(f"{service.url}#token=secret")
    page.reload()
    expect(page.locator("#results")).to_have_attribute("data-query", "red car")


def test_one_query_typed_without_a_pause_is_one_entry_and_enter_ends_it(service, visits):
    page = visits.open(service.url)
    start = page.evaluate("history.length")
    page.locator("#query").press_sequentially("red car", delay=120)
    expect(page.locator("#results")).to_have_attribute("data-query", "red car")
    assert page.evaluate("history.length") == start + 1
    page.keyboard.press("Enter")
    page.locator("#query").press_sequentially(" wheels", delay=20)
    expect(page.locator("#results")).to_have_attribute("data-query", "red car wheels")
    page.go_back()
    expect(page.locator("#results")).to_have_attribute("data-query", "red car")
    assert page.input_value("#query") == "red car"
    page.go_back()
    expect(page.locator("#welcome")).to_be_visible()


def test_an_address_shows_the_same_to_everybody(service, visits):
    page = visits.open(f"{service.url}?q=kept+dry&f.kind=boat&f.kind=bicycle&page=2#token=secret")
    expect(page.locator("#count")).to_contain_text("Results 11 to 20")
    expect(page.locator("#chips li")).to_have_count(3)
    assert all("automobile" not in title for title in titles(page))
    before = titles(page)
    page.reload()
    expect(page.locator("#count")).to_contain_text("Results 11 to 20")
    assert titles(page) == before
    page.click("text=Clear all filters")
    expect(page.locator("#count")).to_contain_text("Results 1 to 10")
    assert page.url == f"{service.url}?q=kept+dry"


def test_back_from_another_site_finds_the_results_where_they_were_left(service, visits):
    page = visits.open(service.url, height=500)
    page.route(
        "https://boats.example/**", lambda route: route.fulfill(content_type="text/html", body="<h1>A boat</h1>")
    )
    search(page, "gold ship")
    page.locator(".title[href^=https]").last.scroll_into_view_if_needed()
    left = page.evaluate("scrollY")
    assert left > 100
    page.locator(".title[href^=https]").last.click()
    expect(page.locator("h1")).to_have_text("A boat")
    page.go_back()
    expect(page.locator(".card").first).to_be_visible()
    page.wait_for_function("left => Math.abs(scrollY - left) < 120", arg=left)


def test_beyond_the_last_page_it_says_so(service, visits):
    page = visits.open(f"{service.url}?q=kept+dry&page=40#token=secret")
    expect(page.locator("#count")).to_have_text("There are no more results.")
    page.click("text=Previous")
    assert re.search("page=39", page.url)


def test_filters_are_counted_and_a_second_value_widens_them(service, visits):
    page = visits.open(service.url)
    search(page, "kept dry")
    kind = page.locator("#filters fieldset", has_text="kind")
    assert kind.locator("label").all_inner_texts() == ["automobile\n10", "bicycle\n10", "boat\n10"]
    picture(page, "filters")
    kind.locator("label", has_text="boat").click()
    expect(page.locator("#chips li")).to_have_count(1)
    assert {title.split()[-1] for title in titles(page)} == {"boat"}
    expect(kind.locator("label")).to_have_text(["boat10", "automobile10", "bicycle10"])  # others can be added
    kind.locator("label", has_text="bicycle").click()
    expect(page.locator("#chips li")).to_have_count(3)
    assert "year" in page.locator("#filters legend").all_inner_texts()
    year = page.locator("#filters fieldset", has_text="year")
    expect(year.locator("label").first).to_have_text(re.compile("2$"))  # counted among boats and bicycles
    year.get_by_text("4 more").click()
    expect(year.locator("label").nth(9)).to_be_visible()
    expect(year.locator("input").nth(6)).to_be_focused()


def test_where_filters_leave_nothing_the_search_goes_on_without_them(service, visits):
    page = visits.open(f"{service.url}?q=red&f.kind=boat&f.fast=false#token=secret")
    expect(page.locator("#count")).to_contain_text("Nothing found for “red”")
    page.click("text=Search without the filters")
    expect(page.locator(".card").first).to_be_visible()


def test_a_filter_that_the_service_does_not_know_can_be_removed(service, visits):
    visits.expected = "422"
    page = visits.open(f"{service.url}?q=red&f.colour=red#token=secret")
    expect(page.locator("#failure p")).to_contain_text("there is no field 'colour'")
    page.click("#chips button")
    expect(page.locator(".card").first).to_be_visible()


def test_the_empty_page_offers_queries_that_find_something(service, visits):
    page = visits.open(service.url)
    examples = page.locator(".examples button")
    expect(examples.first).to_be_visible()
    assert 1 <= examples.count() <= 6
    text = examples.first.inner_text()
    picture(page, "welcome")
    examples.first.click()
    expect(page.locator("#results")).to_have_attribute("data-query", text)
    expect(page.locator("#query")).to_be_focused()
    page.go_back()
    expect(page.locator("#welcome")).to_be_visible()
