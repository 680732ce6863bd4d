"""What the tests of the page do again and again."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Page, expect

SCREENSHOTS = Path(__file__).parent.parent.parent.parent / "reports" / "screenshots"


def picture(page: Page, name: str, full: bool = False) -> None:
    """Kept as an artefact."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=full)


def search(page: Page, query: str) -> None:
    """Type, and wait for the results of this query."""
    page.fill("#query", query)
    expect(page.locator("#results")).to_have_attribute("data-query", query)


def number(text: str) -> float:
    """A number as the page writes it."""
    return float(re.sub("[<+]", "", text).replace("−", "-"))
