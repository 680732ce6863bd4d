"""The page in a real browser: search, explanations, BM25 beside, comparison, words drawn, versions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import sparserank as sr
from sparserank.versions import VersionRegistry

from .browsing import expect, number, picture, search

PAGE = Path(sr.__file__).parent / "service" / "page"


def open_why(page, place=0):
    page.click(f".why >> nth={place}")
    return page.locator(".card").nth(place).locator(".why-panel")


def test_results_appear_while_typing_with_same_and_learned_words_marked(service, visits):
    page = visits.open(service.url)
    page.locator("#query").press_sequentially("red car")
    page.wait_for_selector(".card")
    expect(page.locator(".title").first).to_have_text("The red automobile")
    card = page.locator(".card").first
    assert card.locator(".passage mark.lexical").first.inner_text() == "red"
    assert "automobile" in card.locator(".passage mark.learned").all_inner_texts()
    assert card.locator(".title mark").all_inner_texts() == ["red", "automobile"]
    assert card.locator(".split .piece.lexical").bounding_box()["width"] > 0
    colours = [
        card.locator(f".passage mark.{kind}").first.evaluate("e => getComputedStyle(e).backgroundColor")
        for kind in ("lexical", "learned")
    ]
    assert colours[0] != colours[1]
    text = r"Results 1 to 10 of 30 in \d+ ms – no document contains the word “car”$"
    expect(page.locator("#count")).to_have_text(re.compile(text))
    picture(page, "search")


def test_why_is_a_bar_the_same_words_and_five_groups_of_learned_pairs_with_their_share(service, visits):
    page = visits.open(service.url)
    search(page, "red green car ship")
    panel = open_why(page)
    place = page.locator(".title").first.get_attribute("data-document")
    asked = {"query": "red green car ship", "document": place, "typos": True, "prefix": True}
    found = page.request.post(f"{service.url}explain", data=asked).json()
    lexical = [pair["contribution"] for pair in found["pairs"] if not pair["learned"]][:5]
    groups = found["groups"][:5]
    expect(panel.locator(".pair.lexical")).to_have_count(len(lexical))
    expect(panel.locator(".pair.learned")).to_have_count(len(groups))
    values = [number(text) for text in panel.locator(".pair .value").all_inner_texts()]
    assert values == pytest.approx([*lexical, *(group["contribution"] for group in groups)], abs=0.006)
    for text, (query, documents, _) in zip(
        panel.locator(".pair.learned .words").all_inner_texts(), map(dict.values, groups), strict=True
    ):
        words = ", ".join(found["display"].get(word, word) for word in documents)
        assert re.split(r"→\s*looks for\s*", text) == ([f"{query} learned"] if documents == [query] else [query, words])
    assert any(len(group["documents"]) > 1 for group in groups)
    share = int(re.search(r"(?:These \d groups are|This group is) (\d+) % of the learned part", panel.inner_text())[1])
    assert share == pytest.approx(100 * found["explained_share"], abs=0.5)
    rest = panel.locator(".rest")
    others = [number(text) for text in re.findall(r"[+−]\d+\.\d+", rest.inner_text() if rest.count() else "")]
    assert sum(values) + sum(others) == pytest.approx(found["score"], abs=0.05)
    parts = re.search(r"(\d+) % same words, (\d+) % learned pairs", panel.inner_text())
    assert int(parts[1]) + int(parts[2]) in (99, 100, 101)
    picture(page, "why")
    page.click(".why >> nth=0")
    expect(panel).to_have_count(0)


def test_all_pairs_of_a_result_sum_to_its_score(service, visits):
    page = visits.open(service.url)
    search(page, "red green car ship")
    panel = open_why(page)
    score = number(re.search(r"Score ([\d.]+)", panel.inner_text())[1])
    panel.get_by_text("All pairs").click()
    rows = page.locator("#pairs tbody tr")
    expect(rows.first).to_be_visible()
    values = page.locator("#pairs .value").all_inner_texts()
    assert sum(map(number, values)) == pytest.approx(score, abs=0.01 * len(values))
    page.keyboard.press("Escape")
    visits.expected = "500"
    page.route("**/explain", lambda route: route.fulfill(status=500, body="{}"))
    panel.get_by_text("All pairs").click()
    expect(page.locator("#pairs .empty")).to_contain_text("could not answer")


def test_words_are_shown_as_the_user_spelled_them(service, visits):
    page = visits.open(service.url)
    search(page, "REDDER cars")
    assert "cars" in " ".join(open_why(page).locator(".words").all_inner_texts())
    assert "car " not in " ".join(page.locator(".words").all_inner_texts())


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
    assert page.is_hidden("#bm25")
    with page.expect_response("**/search"):
        page.click("#toggle-bm25")
    expect(page.locator("#bm25")).to_be_visible()
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


def test_two_results_are_compared_in_one_sentence_with_the_fewest_pairs(service, visits):
    page = visits.open(service.url)
    search(page, "red car")
    names = page.locator(".title").all_inner_texts()
    open_why(page).get_by_text("Compare with another result").click()
    expect(page.locator("#compare .verdict")).to_contain_text(f"{names[0]} is above {names[1]} because of ")
    said = page.inner_text("#compare .verdict")
    assert re.search(r": without (it|them), it would be below\.$", said)
    asked = {"query": "red car", "first": "automobile-red", "second": "boat-red"}
    swap = page.request.post(f"{service.url}compare", data=asked).json()["swap"]
    assert page.locator("#compare .chip").count() == min(len(swap), 4)
    picture(page, "compare")
    page.click("#compare summary")
    assert page.locator("#compare .butterfly tbody tr").count() >= 2
    page.select_option("#second", label=names[2])
    expect(page.locator("#compare .verdict")).to_contain_text(names[2])
    page.keyboard.press("Escape")
    assert not page.is_visible("#compare")


def test_what_a_word_looks_for_is_drawn_and_a_press_goes_to_a_neighbour(service, visits):
    page = visits.open(service.url)
    search(page, "red car")
    open_why(page).locator(".pair.learned .pair-words").last.click()
    page.wait_for_selector("#words .picture svg")
    word = page.locator("#words .centre text").text_content()
    assert page.locator("#words .link").count() == page.locator("#words .node").count() > 0
    picture(page, "words")
    other = page.locator("#words .node").first
    name = other.get_attribute("data-word")
    other.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#words h2")).to_have_text(f"What “{name}” looks for")
    page.click("#words summary")
    rows = page.locator("#words tbody tr")
    assert any({word, name} <= set(row.locator("td").all_inner_texts()) for row in rows.all()) or word == name


def test_a_word_without_pairs_is_said_kindly(service, visits):
    page = visits.open(service.url)
    page.click("#open-words")
    page.fill("#word", "xyzzy")
    page.keyboard.press("Enter")
    expect(page.locator("#words .empty")).to_contain_text("Nothing was learned about “xyzzy”")


@pytest.mark.parametrize("word", ["tcp/ip", "/", "a?b#c", "%2e", ".", ".."])
def test_a_word_may_hold_what_means_something_in_an_address(service, visits, word):
    page = visits.open(service.url)
    page.click("#open-words")
    page.fill("#word", word)
    page.keyboard.press("Enter")
    kind = f"“{word}” is not a word." if word in (".", "..") else f"Nothing was learned about “{word}”"
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
    assert page.inner_text("[data-note=version] p") == "The results have learned: version 2 is now served."
    assert page.inner_text("#version") == "version 2"
    page.click("[data-note=version] >> text=Search again")
    page.wait_for_selector(".previous-rank")
    assert "boat" in page.locator(".title").first.inner_text()
    picture(page, "new-version")
    page.click("nav >> text=Model")
    expect(page.locator(".versions > li")).to_have_count(2)
    page.click("text=What it changed")
    expect(page.locator(".changes li").first).to_have_text("car now looks for boat −0.04 → +40.00")
    picture(page, "model")
    page.click("text=Serve again")
    page.click("text=Yes, serve version 1")
    expect(page.locator("#version")).to_have_text("version 1")
    expect(page.locator(".versions .current h3")).to_have_text("Version 1")


def test_the_model_view_shows_held_out_figures_before_and_after(service, visits):
    page = visits.open(service.url)
    found = page.request.get(f"{service.url}model").json()
    check = {"before": {"judgments": 0.5, "feedback": None}, "after": {"judgments": 0.625, "feedback": None}}
    page.route(
        "**/model", lambda route: route.fulfill(json=found | {"versions": [found["versions"][0] | {"check": check}]})
    )
    page.click("nav >> text=Model")
    expect(page.locator(".figures dd")).to_have_text(["0.500 → 0.625"])
    expect(page.locator(".figures dt")).to_have_text(["held-out judgments, nDCG@10"])


def test_a_query_in_the_address_is_searched_for_and_a_token_in_it_is_taken_out(service, visits):
    page = visits.open(f"{service.url}?q=blue+bike#token=secret")
    page.wait_for_selector(".card")
    assert page.input_value("#query") == "blue bike"
    assert page.url == f"{service.url}?q=blue+bike"
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


def test_words_typed_before_the_script_runs_are_searched_for(service, visits):
    page = visits.open(service.url)
    held_back = []
    page.route("**/main.js*", lambda route: held_back.append(route))
    page.goto(service.url, wait_until="commit")
    page.fill("#query", "kept dry")
    page.wait_for_timeout(200)
    assert page.get_attribute("#results", "data-query") is None
    held_back.pop().continue_()
    expect(page.locator("#results")).to_have_attribute("data-query", "kept dry")
    assert page.input_value("#query") == "kept dry"
    assert "q=kept+dry" in page.url
