"""The page by keyboard alone, on a narrow screen, in light and dark, and as a screen reader finds it."""

from __future__ import annotations

import pytest

from .browsing import expect, picture, search

VIEWS = (
    "welcome",
    "results",
    "why",
    "pairs",
    "compare",
    "words",
    "bm25",
    "document",
    "judge",
    "model",
    "figures",
    "trial",
    "collections",
    "did you mean",
    "nothing found",
    "token",
    "gone",
)

# every control that can be seen and has no name that a screen reader could say
UNNAMED = """() => [...document.querySelectorAll('button, input, select, a[href], summary, [role=button]')]
  .filter(one => one.checkVisibility())
  .filter(one => !(one.getAttribute('aria-label') ?? '').trim() && !one.textContent.trim()
    && ![...(one.labels ?? [])].some(label => label.textContent.trim()))
  .map(one => one.outerHTML)"""

# text whose contrast with what is painted behind it is below 4.5; colours are read back through a canvas
FAINT = """() => {
  const pixel = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const rgba = colour => {
    pixel.clearRect(0, 0, 1, 1); pixel.fillStyle = colour; pixel.fillRect(0, 0, 1, 1);
    return [...pixel.getImageData(0, 0, 1, 1).data];
  };
  const over = (top, below) => {
    const share = top[3] / 255;
    return [0, 1, 2].map(i => share * top[i] + (1 - share) * below[i]).concat(255);
  };
  const behind = element => {
    const layers = [];
    for (let one = element; one; one = one.parentElement) layers.push(rgba(getComputedStyle(one).backgroundColor));
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 255]);
  };
  const light = colour => {
    const linear = c => c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4;
    const [r, g, b] = colour.slice(0, 3).map(c => linear(c / 255));
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const root = document.querySelector('dialog[open]') ?? document.body;
  return [...root.querySelectorAll('*')]
    .filter(one => one.checkVisibility() && !one.closest('.hidden, svg, noscript, .skip') && !one.disabled)
    .filter(one => [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim()))
    .map(one => {
      const below = behind(one), ink = over(rgba(getComputedStyle(one).color), below);
      const [a, b] = [light(ink), light(below)].sort((x, y) => y - x);
      return [(a + .05) / (b + .05), one.className, one.textContent.slice(0, 30)];
    })
    .filter(([contrast]) => contrast < 4.5);
}"""


# what has the focus, and whether one sees that; the box around the search box shows it for it
FOCUSED = """() => {
  const one = document.activeElement, ring = one.id === 'query' ? one.parentElement : one;
  return [one.className || one.id, getComputedStyle(ring).outlineStyle !== 'none'];
}"""


def show(page, view):
    """Bring a view to the screen."""
    expect(page.locator(".examples")).to_be_visible()
    if view in ("results", "why", "pairs", "compare", "words", "bm25", "document", "token"):
        search(page, "red green car ship")
        expect(page.locator("#filters")).to_be_visible()
    if view in ("did you mean", "nothing found"):
        search(page, "Gren car" if view == "did you mean" else "qwxyz")
        expect(page.locator("#corrections, #results .empty, #count").first).to_be_attached()
    if view in ("why", "pairs", "compare", "words"):
        page.click(".why >> nth=0")
    if view == "pairs":
        page.click("text=All pairs")
        expect(page.locator("#pairs tbody")).to_be_visible()
    if view == "compare":
        page.click("text=Compare with another result")
        page.click("#compare summary")
        expect(page.locator("#compare .butterfly")).to_be_visible()
    if view == "words":
        page.click(".pair.learned .pair-words >> nth=-1")
        expect(page.locator("#words .picture svg")).to_be_visible()
        page.click("#words summary")
    if view == "bm25":
        page.click("#toggle-bm25")
        expect(page.locator("#bm25")).to_be_visible()
    if view == "document":
        page.click(".title:not([href^=http]) >> nth=0")
        expect(page.locator(".full-text")).to_be_visible()
    if view == "judge":
        page.click("nav >> text=Judge")
        page.fill("#new-queries", "red car\nblue ship")
        page.click(".add-queries button")
        expect(page.locator(".grades").first).to_be_visible()
        page.click(".export summary")
    if view == "model":
        page.click("nav >> text=Model")
        expect(page.locator(".versions")).to_be_visible()
    if view in ("figures", "trial", "collections"):
        model_with(page, view)
    if view == "token":
        page.evaluate("() => sessionStorage.clear()")
        page.click(".thumb.up >> nth=0")
        expect(page.locator("#token-input")).to_be_visible()
    if view == "gone":
        page.route("**/search", lambda route: route.abort())
        page.fill("#query", "red car")
        expect(page.locator("#failure")).to_be_visible()


def model_with(page, view):
    """Show a model that has held-out figures and a way back, a candidate on trial, or a collection beside others."""
    found = page.request.get(f"{page.url.partition('?')[0].partition('#')[0]}model").json()
    measures = {"judgments": 0.512, "feedback": 0.61, "lessons": 0.7}
    check = {"before": measures, "after": {name: value + 0.1 for name, value in measures.items()}}
    first = found["versions"][0]
    second = first | {"number": 2, "parent": 1, "why": "learned from 12 votes", "check": check}
    third = first | {"number": 3, "why": "candidate"}
    trial = {"candidate": 3, "share": 0.2, "since": first["made"], "rule": {"after": 200, "level": 0.05}, "wins": 30,
             "losses": 10, "ties": 2, "won": 0.75, "low": 0.6, "high": 0.86, "p_value": 0.0022}  # fmt: skip
    changed = {
        "figures": {"version": 1, "versions": [first, second]},
        "trial": {"versions": [first, third], "trial": trial},
        "collections": {"collection": "docs", "collections": ["docs", "api"]},
    }
    page.route("**/model", lambda route: route.fulfill(json=found | changed[view]))
    if view == "collections":
        page.reload()
        expect(page.locator("#collections a")).to_have_count(2)
        return
    page.click("nav >> text=Model")
    expect(page.locator(".versions > li")).to_have_count(2)
    if view == "figures":
        expect(page.locator(".figures")).to_contain_text("0.512 → 0.612")
        page.click("text=Serve again")
        expect(page.locator(".sure")).to_be_focused()
    else:
        expect(page.locator(".trial")).to_contain_text("Users preferred it in 30 of 40 searches")


EXPECTED = {"token": "401", "gone": "ERR_FAILED"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_fits_320_and_390_pixels_with_named_controls_and_enough_contrast(service, visits, view, scheme):
    visits.expected = EXPECTED.get(view, "^$")
    page = visits.open(service.url, width=320, height=740, scheme=scheme)
    show(page, view)
    for width in (320, 390):
        page.set_viewport_size({"width": width, "height": 740})
        page.wait_for_timeout(50)  # the picture of a word is drawn again
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width
        assert page.evaluate("() => document.querySelector('dialog[open] .sheet-body')?.scrollWidth ?? 0") <= width
    picture(page, f"narrow-{view}-{scheme}")
    assert page.evaluate(UNNAMED) == []
    assert page.evaluate(FAINT) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing_serious_in_any_view_at_any_width(service, visits, view, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install 'sparserank[dev]'").Axe()
    visits.expected = EXPECTED.get(view, "^$")
    page = visits.open(service.url, width=1440, height=900, scheme=scheme)
    show(page, view)
    for width in (1440, 390, 320):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(50)  # the picture of a word is drawn again
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width
        assert page.evaluate(FAINT) == []
        if width == 1440:
            picture(page, f"wide-{view}-{scheme}")
        found = axe.run(page).response["violations"]
        assert [
            (width, one["id"], one["nodes"][0]["html"], one["nodes"][0]["failureSummary"])
            for one in found
            if one["impact"] in ("serious", "critical")
        ] == []


def test_one_heading_landmarks_and_a_spoken_count(service, visits):
    page = visits.open(service.url)
    search(page, "red car")
    page.click("#toggle-bm25")
    expect(page.locator("#bm25")).to_be_visible()
    for landmark in ("banner", "main", "search", "contentinfo", "complementary"):
        assert page.get_by_role(landmark).count() == 1, landmark
    assert page.get_by_role("heading", level=1).count() == 1
    assert page.get_by_role("article").count() == page.locator("#results > li").count() > 0
    assert page.get_attribute("#count", "role") == "status"
    assert page.get_by_role("searchbox", name="Search").count() == 1
    assert page.get_by_role("button", name="Good result: The red automobile").count() == 1
    assert page.get_attribute("html", "lang") == "en"
    ids = page.evaluate("() => [...document.querySelectorAll('[id]')].map(one => one.id)")
    assert len(ids) == len(set(ids))
    named = page.evaluate(
        "() => [...document.querySelectorAll('[aria-labelledby], [aria-describedby], label[for]')].flatMap(one =>"
        " ['aria-labelledby', 'aria-describedby', 'for'].map(name => one.getAttribute(name)).filter(Boolean))"
    )
    closed = {f"{view}-title" for view in ("words", "compare", "pairs", "token", "document")}
    assert set(named) - closed <= set(ids)


def walk(page, until, limit=60):
    """Press Tab until something has the focus; return what had it on the way, and whether one saw that."""
    places = []
    for _ in range(limit):
        page.keyboard.press("Tab")
        places.append(page.evaluate(FOCUSED))
        if page.evaluate(f"() => document.activeElement.matches({until!r})"):
            return places
    raise AssertionError(f"Tab did not reach {until}: {places}")


def test_tab_goes_through_the_page_in_the_order_it_is_read_and_focus_is_seen(service, visits):
    page = visits.open(service.url)
    search(page, "red car")
    expect(page.locator("#filters")).to_be_visible()
    page.focus(".skip")
    places = [["skip", True], *walk(page, ".why")]
    names = [name for name, _ in places]
    assert names[:7] == ["skip", "", "", "", "open-words", "query", "toggle-bm25"]
    assert names[-4:] == ["title", "thumb up", "thumb down", "why"]
    assert len(names) <= 16, "one stop for the values of each field"
    assert all(seen for _, seen in places)
    assert page.evaluate("() => [...document.querySelectorAll('[tabindex]')].every(one => one.tabIndex <= 0)")


def test_an_opened_result_has_few_tab_stops_and_arrows_reach_its_pairs(service, visits):
    page = visits.open(service.url)
    search(page, "red green car ship")
    page.focus("#result-0")
    walk(page, ".why")
    page.keyboard.press("Enter")
    expect(page.locator(".pair-words").first).to_be_visible()
    places = walk(page, "#result-1")
    assert [name for name, _ in places] == ["pair-words", "", "", "title"]
    page.locator(".pair-words").first.focus()
    for _ in range(page.locator(".pair-words").count() - 1):
        page.keyboard.press("ArrowDown")
    expect(page.locator(".pair-words").last).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".pair-words").first).to_be_focused()


def test_the_whole_job_can_be_done_without_a_mouse(run, visits):
    running = run()
    page = visits.open(running.url)
    page.evaluate("() => document.activeElement.blur()")
    page.keyboard.press("/")
    page.keyboard.type("red car")
    expect(page.locator("#results")).to_have_attribute("data-query", "red car")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#result-1")).to_be_focused()
    walk(page, ".thumb.up")
    page.keyboard.press("Space")
    expect(page.locator("#feedback-status")).to_have_text("Thank you: 1 sent.")
    walk(page, ".why")
    page.keyboard.press("Enter")
    walk(page, ".why-more button")
    page.keyboard.press("Enter")
    expect(page.locator("#compare .verdict")).to_be_visible()
    page.keyboard.press("Escape")
    assert page.evaluate("() => document.activeElement.textContent") == "Compare with another result"
    page.keyboard.press("End")
    last = page.locator(".title").count() - 1
    expect(page.locator(f"#result-{last}")).to_be_focused()
    walk(page, ".pages [aria-label='Next page']")
    page.keyboard.press("Enter")
    expect(page.locator("#count")).to_contain_text("Results 11 to")
    expect(page.locator("#result-0")).to_be_focused()
    page.go_back()  # the key for it belongs to the browser
    expect(page.locator("#count")).to_contain_text("Results 1 to")
    page.focus("#query")
    walk(page, "#filters input")
    page.keyboard.press("Space")
    expect(page.locator("#chips li")).to_have_count(1)
    expect(page.locator("#filters input:checked")).to_be_focused()
    page.keyboard.press("/")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("#document-title")).to_be_focused()
    page.go_back()
    expect(page.locator("#result-0")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#query")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#welcome")).to_be_visible()


def test_who_wants_no_motion_gets_none(service, browser, visits):
    page = visits.open(service.url)
    page.emulate_media(reduced_motion="reduce")
    search(page, "red car")
    assert page.evaluate("() => document.getAnimations().length") == 0
