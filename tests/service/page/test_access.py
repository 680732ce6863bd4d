"""The page by keyboard alone, on a narrow screen, in light and dark, and as a screen reader finds it."""

from __future__ import annotations

import pytest

from .browsing import expect, picture, search

VIEWS = ("welcome", "results", "opened", "compare", "words", "changes", "model", "token")

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
    .filter(one => one.checkVisibility() && !one.closest('.hidden, svg, noscript, .skip'))
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
    if view == "welcome":
        expect(page.locator("#welcome .facts")).to_be_visible()
    if view in ("results", "opened", "compare", "words", "token"):
        search(page, "red car")
    if view == "opened":
        page.click(".title >> nth=0")
    if view == "compare":
        page.click(".why >> nth=0")
        expect(page.locator("#compare .butterfly")).to_be_visible()
    if view == "words":
        page.click(".pair.learned .word >> nth=0")
        expect(page.locator("#words .picture svg")).to_be_visible()
        page.click("#words summary")
    if view in ("changes", "model"):
        page.click(f"#open-{view}")
        expect(page.locator(f"#{view} .sheet-body")).to_be_visible()
    if view == "token":
        page.evaluate("() => sessionStorage.clear()")
        page.click(".thumb.up >> nth=0")
        expect(page.locator("#token-input")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_fits_360_pixels_with_named_controls_and_enough_contrast(service, visits, view, scheme):
    visits.expected = "401" if view == "token" else "^$"
    page = visits.open(service.url, width=360, height=740, scheme=scheme)
    show(page, view)
    picture(page, f"narrow-{view}-{scheme}")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
    assert page.evaluate("() => document.querySelector('dialog[open] .sheet-body')?.scrollWidth ?? 0") <= 360
    assert page.evaluate(UNNAMED) == []
    assert page.evaluate(FAINT) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_wide_pages_are_kept_as_pictures_and_have_enough_contrast(service, visits, scheme):
    page = visits.open(service.url, scheme=scheme)
    show(page, "results")
    picture(page, f"wide-{scheme}")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 1280
    assert page.evaluate(FAINT) == []


def test_one_heading_landmarks_and_a_spoken_count(service, visits):
    page = visits.open(service.url)
    search(page, "red car")
    for landmark in ("banner", "main", "search", "navigation", "contentinfo", "complementary"):
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
    closed = {f"{view}-title" for view in ("words", "compare", "changes", "model", "token")}
    assert set(named) - closed <= set(ids)


def test_tab_goes_through_the_page_in_the_order_it_is_read_and_focus_is_seen(service, visits):
    page = visits.open(service.url)
    search(page, "red car")
    page.focus(".skip")
    places = []
    for _ in range(14):
        places.append(page.evaluate(FOCUSED))
        page.keyboard.press("Tab")
    names = [name for name, _ in places]
    assert names[:5] == ["skip", "open-words", "open-changes", "version", "query"]
    assert names[5:7] == ["title", "word"]
    assert all(seen for _, seen in places)
    assert page.evaluate("() => [...document.querySelectorAll('[tabindex]')].every(one => one.tabIndex <= 0)")


def test_the_whole_job_can_be_done_without_a_mouse(run, visits):
    running = run()
    page = visits.open(running.url)
    page.evaluate("() => document.activeElement.blur()")
    page.keyboard.press("/")
    page.keyboard.type("red car")
    expect(page.locator("#results")).to_have_attribute("data-query", "red car")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("() => document.activeElement.id") == "result-1"
    page.keyboard.press("Enter")
    expect(page.locator("#result-1")).to_have_attribute("aria-expanded", "true")
    for _ in range(200):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement.matches('.thumb.up')"):
            break
    page.keyboard.press("Space")
    expect(page.locator("#feedback-status")).to_have_text("Feedback sent: 2.")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#compare .verdict")).to_be_visible()
    page.keyboard.press("Escape")
    assert page.evaluate("() => document.activeElement.className") == "why"
    page.keyboard.press("End")
    last = page.locator(".title").count() - 1
    assert page.evaluate("() => document.activeElement.id") == f"result-{last}"
    page.keyboard.press("Escape")
    assert page.evaluate("() => document.activeElement.id") == "query"
    page.keyboard.press("Escape")
    expect(page.locator("#welcome")).to_be_visible()


def test_who_wants_no_motion_gets_none(service, browser, visits):
    page = visits.open(service.url)
    page.emulate_media(reduced_motion="reduce")
    search(page, "red car")
    assert page.evaluate("() => document.getAnimations().length") == 0
