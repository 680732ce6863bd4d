"""Search for a documentation site: its pages become a static bundle that searches in the browser.

Word pairs are learned from the site itself: from titles, headings and the links between pages (`learn_from`).
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from ..data.files import PathLike
from ..errors import DataError
from ..export import export
from ..text_ranker import TextRanker

__all__ = ["Page", "build_search"]
LEARN_FROM = ("titles", "openings", "headings", "links")
MAX_PAIRS = 30_000
SCRIPT, HOME = "site.mjs", "index.html"
_HIDDEN = {"script", "style", "nav", "template", "button"}
_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
_BLOCKS = {"p", "li", "pre", "table", "tr", "div", "section", "dt", "dd", "blockquote", "br", "td", "th"}


@dataclass
class Page:
    """A page of a site.

    Parameters
    ----------
    url : str
        Its address in the site.
    title : str
        Its title.
    html : str
        Its content.
    """

    url: str
    title: str
    html: str

    @property
    def id(self) -> str:
        """The address as a reader writes it, which is the id of the document."""
        return unquote(self.url) or HOME

    def record(self) -> dict[str, Any]:
        """Return the document of the page: title, text, headings, links to other pages, and url.

        Examples
        --------
        >>> page = Page("guide/a/", "A", '<h2>Sort <code>x</code></h2><p>See <a href="../b/#part">b</a>.</p>')
        >>> page.record()["text"], page.record()["headings"], page.record()["links"]
        ('Sort x\\nSee b.', ['Sort x'], ['guide/b/'])
        """
        parser = _Content()
        parser.feed(self.html)
        parser.close()
        lines = (" ".join(line.split()) for line in "".join(parser.text).split("\n"))
        record = {"title": self.title, "text": "\n".join(line for line in lines if line), "metadata": {"url": self.url}}
        headings = [" ".join(name.split()) for name in map("".join, parser.headings)]
        links = dict.fromkeys(target for href in parser.links if (target := self._resolve(href)) is not None)
        return record | {"headings": [name for name in headings if name]} | {"links": list(links)}

    def _resolve(self, href: str) -> str | None:
        """Return the id of the page that a link leads to; None for one to this page, to another site or to nowhere."""
        try:
            parts = urlsplit(href)
        except ValueError:  # such as "http://["
            return None
        if parts.scheme or parts.netloc or not parts.path or parts.path.startswith("/"):
            return None
        target = posixpath.normpath(posixpath.join(posixpath.dirname(unquote(self.url)), unquote(parts.path)))
        target = HOME if target == "." else target + "/" * parts.path.endswith("/")
        return None if target == self.id or target.startswith("../") else target


@dataclass
class _Content(HTMLParser):
    """The text, headings and links of a page."""

    text: list[str] = field(default_factory=list)
    headings: list[list[str]] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    hidden: int = 0
    in_heading: bool = False

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.hidden += tag in _HIDDEN
        if tag in _HEADINGS:
            self.in_heading = True
            self.headings.append([])
        if tag in _HEADINGS | _BLOCKS:
            self.text.append("\n")
        href = values.get("href")
        is_mark = "headerlink" in (values.get("class") or "")
        if tag == "a" and href and not self.hidden and not is_mark:
            self.links.append(href)

    def handle_endtag(self, tag: str) -> None:
        self.hidden -= tag in _HIDDEN and self.hidden > 0
        if tag in _HEADINGS:
            self.in_heading = False
        if tag in _HEADINGS | _BLOCKS:
            self.text.append("\n")

    def handle_data(self, data: str) -> None:
        if self.hidden or data == "¶":
            return
        self.text.append(data)
        if self.in_heading:
            self.headings[-1].append(data)


def train_search(
    pages: Sequence[Page],
    *,
    language: str = "english",
    learn_from: Sequence[str] = LEARN_FROM,
    max_pairs: int = MAX_PAIRS,
) -> TextRanker:
    """Train on the pages of a site.

    Parameters
    ----------
    pages : sequence of Page
        The pages.
    language : str, default="english"
        The language of the pages.
    learn_from : sequence of str, default=("titles", "openings", "headings", "links")
        What word pairs are learned from; empty for BM25 alone. Pairs are kept only if they help held-out pages.
    max_pairs : int, default=30_000
        The largest number of pairs.
    """
    documents = {page.id: page.record() for page in pages}
    if not any(one["text"] for one in documents.values()):
        raise DataError("the site has no page with text to search")
    ranker = TextRanker(analyzer=language, max_pairs=max_pairs)
    options: dict[str, Any] = {"learn_from": ",".join(learn_from)} if learn_from and len(documents) > 1 else {}
    return ranker.fit(documents, fields=("title", "text"), **options)


def build_search(pages: Sequence[Page], output: PathLike, **options: Any) -> Mapping[str, Any]:
    """Train on the pages of a site and write its search.

    Parameters
    ----------
    pages : sequence of Page
        The pages.
    output : path
        The folder of the search in the site. An earlier one is replaced.
    **options : object
        `language`, `learn_from` and `max_pairs`, as in `train_search`.

    Returns
    -------
    mapping
        The summary of the export.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> pages = [Page("a/", "Apples", "<p>Red and sweet.</p>"), Page("b/", "Pears", "<p>Green.</p>")]
    >>> with TemporaryDirectory() as folder:
    ...     build_search(pages, folder, learn_from=())["documents"]
    2
    """
    summary = export(train_search(pages, **options), "static", output)
    script = files("sparserank.export").joinpath("templates", "static", SCRIPT).read_text("utf-8")
    Path(output, SCRIPT).write_text(script, "utf-8")
    return summary
