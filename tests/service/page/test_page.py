"""The page in a real browser: search, explanations, BM25 beside, comparison, words drawn, versions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import sparserank as sr
from sparserank.versions import VersionRegistry

from .browsing import expect, number, picture, search

PAGE = Path(sr.__file__).parent / "service" / "page"


def test_results_appear_while_typing_with_learned_words_marked_and_a_bar_a_pair(service, visits):
    page = visits.open(service.url)
    page.locator("#query").press_sequentially("red car")
    page.wait_for_selector(".card")
    expect(page.locator(".title").first).to_have_text("The red automobile")
    card = page.locator(".card").first
    assert card.locator("mark.lexical").first.inner_text() == "red"
    assert "automobile" in card.locator("mark.learned").all_inner_texts()
    for bar in card.locator(".pair .bar").all():
        assert bar.bounding_box()["width"] > 0
    learned = card.locator(".pair.learned", has_text="automobil").first
    colours = [one.locator(".bar").evaluate("e => getComputedStyle(e).backgroundColor")
               for one in (learned, card.locator(".pair.lexical").first)]  # fmt: skip
    assert colours[0] != colours[1]
    assert re.match(r"10 results in \d+ ms – no document contains the word “car”$", page.inner_text("#count"))
    picture(page, "search")


def test_the_bars_of_an_opened_result_sum_to_its_score(service, visits):
    page = visits.open(service.url)
    search(page, "green ship")
    card = page.locator(".card").first
    card.locator(".title").click()
    values = [number(text) for text in card.locator(".pair .value").all_inner_texts()]
    score = number(card.locator(".score").inner_text().split()[-1])
    assert sum(values) == pytest.approx(score, abs=0.01 * len(values))
    assert card.locator(".title").get_attribute("aria-expanded") == "true"


def test_pairs_that_the_search_did_not_tell_come_when_a_result_is_opened(service, visits):
    """The page asks for twenty a result; here for two, so that this small world has more."""

    def for_two(route):
        route.continue_(post_data=route.request.post_data.replace('"pairs":20', '"pairs":2'))

    page = visits.open(service.url)
    page.route("**/search", for_two)
    search(page, "red green car ship")
    card = page.locator(".card").first
    expect(card.locator(".pair")).to_have_count(2)
    score = number(card.locator(".score").inner_text().split()[-1])
    shown = card.locator(".pair .value, .rest .value")
    assert sum(map(number, shown.all_inner_texts())) == pytest.approx(score, abs=0.02)
    left = int(card.locator(".rest button").inner_text().split()[0])
    with page.expect_response("**/explain"):
        card.locator(".title").click()
    expect(card.locator(".pair")).to_have_count(2 + left)
    values = card.locator(".pair .value").all_inner_texts()
    assert sum(map(number, values)) == pytest.approx(score, abs=0.01 * len(values))
    card.locator(".title").click()
    expect(card.locator(".pair")).to_have_count(min(5, 2 + left))
    visits.expected = "500"
    page.route("**/explain", lambda route: route.fulfill(status=500, body="{}"))
    other = page.locator(".card").nth(1)
    other.locator(".title").click()
    expect(page.locator("#notes")).to_contain_text("could not answer")
    assert "smaller" in other.locator(".rest").first.inner_text()


def test_a_search_waits_for_a_pause_in_typing(service, visits):
    page = visits.open(service.url)
    asked = []
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/search") else None)
    page.clock.install(time=0)
    page.clock.pause_at(1)  # or typing slowly, on a busy machine, would be pause enough
    page.locator("#query").press_sequentially("green")
    assert asked == []
    with page.expect_response("**/search"):
        page.clock.run_for(100)
    assert len(asked) == 1


def test_a_late_answer_to_an_earlier_query_is_dropped(service, visits):
    visits.expected = "ERR_FAILED|ERR_ABORTED"
    page = visits.open(service.url)
    held = []
    page.route("**/search", lambda route: held.append(route) if "red" in route.request.post_data else route.continue_())
    with page.expect_request("**/search"):
        page.fill("#query", "red car")
    with page.expect_event("requestfailed", lambda request: "red" in request.post_data):
        page.fill("#query", "blue car")
    page.wait_for_selector(".card")
    assert page.locator(".title").first.inner_text() == "The blue automobile"


def test_bm25_stands_beside_with_a_line_for_every_document_of_both(service, visits):
    page = visits.open(service.url)
    search(page, "red car")
    learned = [item.get_attribute("data-id") for item in page.locator("#results > li").all()]
    lexical = [item.get_attribute("data-row") for item in page.locator(".rank-list li").all()]
    both = set(learned) & set(lexical)
    assert both and set(learned) - both, "learned pairs find automobiles that are not red"
    lines = page.locator(".rank-line:not(.new):not(.gone)")
    assert {line.get_attribute("data-line") for line in lines.all()} == both
    assert page.locator(".moved.new").count() == len(set(learned) - both)
    page.hover(".rank-list li >> nth=0")
    assert page.locator(".rank-line.lit").count() == 1
    page.click(".rank-list button >> nth=0")
    assert page.evaluate("document.activeElement.dataset.document") == lexical[0]


def test_why_is_this_above_that_names_the_fewest_pairs_that_would_swap_them(service, visits):
    page = visits.open(service.url)
    search(page, "red car")
    names = page.locator(".title").all_inner_texts()
    page.click(".why >> nth=0")
    said = page.inner_text("#compare .verdict")
    assert said.startswith(f"{names[0]} is above {names[1]} by ")
    assert "for “red car”" in said
    assert page.locator("#compare .swap li").count() >= 1
    assert page.locator("#compare .butterfly tbody tr").count() >= 2
    picture(page, "compare")
    page.select_option("#second", label=names[2])
    expect(page.locator("#compare .verdict")).to_contain_text(names[2])
    page.keyboard.press("Escape")
    assert not page.is_visible("#compare")


def test_w_around_a_word_is_drawn_and_a_press_goes_to_a_neighbour(service, visits):
    page = visits.open(service.url)
    search(page, "red car")
    page.click(".pair.learned .word >> nth=0")
    page.wait_for_selector("#words .picture svg")
    word = page.locator("#words .centre text").text_content()
    assert page.locator("#words .link").count() == page.locator("#words .node").count() > 0
    picture(page, "words")
    other = page.locator("#words .node").first
    name = other.get_attribute("data-word")
    other.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#words h2")).to_have_text(f"Pairs of “{name}”")
    page.click("#words summary")
    rows = page.locator("#words tbody tr")
    assert any({word, name} <= set(row.locator("td").all_inner_texts()) for row in rows.all()) or word == name


def test_a_word_without_pairs_is_said_kindly(service, visits):
    page = visits.open(service.url)
    page.click("#open-words")
    page.fill("#word", "xyzzy")
    page.keyboard.press("Enter")
    expect(page.locator("#words .empty")).to_contain_text("No pairs were learned for “xyzzy”")


@pytest.mark.parametrize("word", ["tcp/ip", "/", "a?b#c", "%2e", ".", ".."])
def test_a_word_may_hold_what_means_something_in_an_address(service, visits, word):
    page = visits.open(service.url)
    page.click("#open-words")
    page.fill("#word", word)
    page.keyboard.press("Enter")
    kind = f"“{word}” is not a word." if word in (".", "..") else f"No pairs were learned for “{word}”"
    expect(page.locator("#words .empty")).to_contain_text(kind)


def test_a_new_version_is_noted_quietly_with_what_changed_and_a_way_back(run, visits):
    running = run()
    page = visits.open(running.url)
    search(page, "red car")
    versions = VersionRegistry.open(running.settings.model)
    ranker = versions.load()
    ranker.pin("car", "boat", 40.0)
    versions.add(ranker, "a person pinned a pair", {}, 0)
    page.wait_for_selector("[data-note=version]")
    assert page.inner_text("[data-note=version] p") == "Version 2 is now served."
    assert page.inner_text("#version") == "version 2"
    page.click("[data-note=version] >> text=Search again")
    page.wait_for_selector(".previous-rank")
    assert "boat" in page.locator(".title").first.inner_text()
    picture(page, "new-version")
    page.click("#open-changes")
    row = page.locator("#changes tbody tr").first
    expect(row.locator(".word")).to_have_text(["car", "boat"])
    expect(row).to_contain_text("+40.00")
    page.keyboard.press("Escape")
    page.click("#open-model")
    page.click("text=Restore")
    page.click("text=Serve version 1")
    expect(page.locator("#version")).to_have_text("version 1")


def test_a_query_in_the_address_is_searched_for_and_a_token_in_it_is_taken_out(service, visits):
    page = visits.open(f"{service.url}?q=blue+bike#token=secret")
    page.wait_for_selector(".card")
    assert page.input_value("#query") == "blue bike"
    assert page.url == f"{service.url}?q=blue%20bike"
    assert page.evaluate("Object.values(sessionStorage)") == ["secret"]
    assert page.evaluate("history.length") <= 2


def test_documents_and_queries_are_shown_as_text_never_as_markup(service, visits):
    page = visits.open(service.url)
    page.fill("#query", "<img src=x onerror=alert(1)>")
    page.wait_for_selector("#count.nothing")
    assert "<img src=x" in page.inner_text("#count")
    assert page.locator("main img").count() == 0


def test_the_page_has_no_inline_script_or_style_and_reads_no_markup():
    html = (PAGE / "index.html").read_text()
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", html)
    assert re.findall(r"<script(.*?)>(.*?)</script>", html) == [(' type="module" src="/page/main.js"', "")]
    for script in PAGE.glob("*.js"):
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", script.read_text()
        )
    named = re.findall(r'(?:href|src)="/page/([^"]+)"', html)
    named += [name for script in PAGE.glob("*.js") for name in re.findall(r'from "\./([^"]+)"', script.read_text())]
    assert {file.name for file in PAGE.iterdir()} == {*named, "index.html"}
