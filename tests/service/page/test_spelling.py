"""Typing errors and unfinished words: results appear anyway, and the page says what it searched for."""

from __future__ import annotations

from .browsing import expect, picture, search


def test_an_unfinished_word_finds_what_begins_with_it(service, visits):
    page = visits.open(service.url)
    search(page, "red autom")
    expect(page.locator(".title").first).to_have_text("The red automobile")
    assert "contains" not in page.inner_text("#count")
    page.click(".why >> nth=0")
    expect(page.locator(".pair.lexical .words", has_text="autom…")).to_have_text("autom…→ stands for automobile")


def test_a_word_that_no_document_has_is_corrected_and_the_page_asks_did_you_mean(service, visits):
    page = visits.open(service.url)
    search(page, "Gren car")
    expect(page.locator(".title").first).to_have_text("The green automobile")
    text = "Did you mean green car? No document contains “gren”, so these are the results for it."
    expect(page.locator("#corrections")).to_have_text(text, ignore_case=True)
    expect(page.locator("#count")).not_to_contain_text("gren")
    picture(page, "did-you-mean")
    page.click(".why >> nth=0")
    page.click("text=Compare with another result")  # it explains the corrected query
    expect(page.locator("#compare .verdict")).to_contain_text("because of")
    page.keyboard.press("Escape")
    page.click("#corrections button")
    expect(page.locator("#results")).to_have_attribute("data-query", "green car")
    expect(page.locator("#corrections")).to_be_hidden()
    assert page.input_value("#query") == "green car"


def test_a_word_that_was_added_to_a_rare_one_is_told_apart(service, visits):
    page = visits.open(service.url)

    def add(route):
        answer = route.fetch()
        route.fulfill(
            response=answer, json=answer.json() | {"corrections": [{"word": "sales", "replacement": "sails"}]}
        )

    page.route("**/search", add)
    search(page, "red sails")
    text = "Also searched for sails, because few documents contain “sales”."
    expect(page.locator("#corrections")).to_have_text(text)


def test_judging_takes_queries_as_they_are(run, visits):
    page = visits.open(run().url)
    page.click("nav >> text=Judge")
    page.fill("#new-queries", "autom")
    page.click(".add-queries button")
    expect(page.locator(".to-judge")).to_contain_text("Nothing found for this query.")
