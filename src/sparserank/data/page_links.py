"""Headings, links and mentions in the texts of documents, for training queries that need no judgments.

Markup is Markdown, reStructuredText or HTML. A link counts if its target is another document: its id, its title, its
`url`, or the end of one of these after the last slash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from .records import Documents
from .text_fields import field_text

HEADING_FIELDS = ("headings", "heading", "sections")
"""Fields of documents that have headings."""
LINK_FIELDS = ("links", "see_also", "seealso", "related")
"""Fields of documents that have the ids, titles or addresses of other documents."""
_ATX = re.compile(r"^ {0,3}#{1,6}[ \t]+(.+?)[ \t#]*$", re.M)
_UNDERLINED = re.compile(r"^(?P<name>\S[^\n]*)\n[ \t]*(?:={3,}|-{3,}|~{3,})[ \t]*$", re.M)
_HTML_HEADING = re.compile(r"<h([1-6])\b[^>]*>(.*?)</h\1>", re.I | re.S)
_MARKDOWN_LINK = re.compile(r"(?<!!)\[([^\[\]]+)\]\(<?([^\s()<>]+)>?(?:\s+\"[^\"]*\")?\)")
_WIKI_LINK = re.compile(r"\[\[([^\[\]|]+)(?:\|([^\[\]]+))?\]\]")
_HTML_LINK = re.compile(r"<a\b[^>]*?\bhref\s*=\s*[\"']([^\"']+)[\"'][^>]*>(.*?)</a>", re.I | re.S)
_TAG = re.compile(r"<[^>]+>")
_NAME = re.compile(r"[^\W\d][\w.]*\w")
_IDENTIFIER = re.compile(r"[._]|[a-z][A-Z]|[A-Z]{2}")


class Link(NamedTuple):
    """A link from a page to another one; `anchor` is its text, or "" for a link in a field or a mention."""

    page: str
    target: str
    anchor: str = ""


def split_headings(text: str) -> tuple[list[str], str]:
    """Return the headings of a text, and the text without them.

    >>> split_headings("# Sort arrays\\nOrder the items.\\n\\nStable sorts\\n------------\\nEqual items stay.")
    (['Sort arrays', 'Stable sorts'], '\\nOrder the items.\\n\\n\\nEqual items stay.')
    """
    found = [(match.start(), match[1]) for match in _ATX.finditer(text)]
    found += [(match.start(), match["name"]) for match in _UNDERLINED.finditer(text)]
    found += [(match.start(), _TAG.sub(" ", match[2])) for match in _HTML_HEADING.finditer(text)]
    rest = _HTML_HEADING.sub(" ", _UNDERLINED.sub("", _ATX.sub("", text)))
    return [" ".join(name.split()) for _, name in sorted(found)], rest


def field_values(documents: Documents, position: int, names: tuple[str, ...]) -> list[str]:
    """Return the texts in some fields of a document; a list has several.

    >>> field_values(Documents.of({"a": {"text": "x", "metadata": {"links": ["b", "c"]}}}), 0, LINK_FIELDS)
    ['b', 'c']
    """
    metadata = documents.metadata[position] if documents.metadata else {}
    values = [metadata[name] for name in names if name in metadata]
    return [
        text for value in values for one in (value if isinstance(value, list) else [value]) if (text := field_text(one))
    ]


def iterate_links(documents: Documents) -> Iterator[Link]:
    """Yield the links between documents, from fields and from the markup of texts.

    >>> docs = Documents.of({"a": "see [how to sort](guide/b.html)", "guide/b": {"text": "sorting", "see_also": ["a"]}})
    >>> [tuple(link) for link in iterate_links(docs)]
    [('a', 'guide/b', 'how to sort'), ('guide/b', 'a', '')]
    """
    targets = _targets(documents)
    for position, (page, text) in enumerate(zip(documents.ids, documents.texts, strict=True)):
        found = [(name, "") for name in field_values(documents, position, LINK_FIELDS)]
        found += [(match[2], match[1]) for match in _MARKDOWN_LINK.finditer(text)]
        found += [(match[1], match[2] or match[1]) for match in _WIKI_LINK.finditer(text)]
        found += [(match[1], _TAG.sub(" ", match[2])) for match in _HTML_LINK.finditer(text)]
        for name, anchor in found:
            target = _resolve(name, targets)
            if target is not None and target != page:
                yield Link(page, target, " ".join(anchor.split()))


def iterate_mentions(documents: Documents) -> Iterator[Link]:
    """Yield a link for each name of another page in a text.

    The name of a page is the first word of its title if that looks like an identifier ("numpy.sort", "CreateFile"), or
    what follows its last dot, in backticks. A name of several pages is none.

    >>> docs = {"1": {"title": "np.sort", "text": "like np.take"}, "2": {"title": "np.take", "text": "after `sort`"}}
    >>> [tuple(link) for link in iterate_mentions(Documents.of(docs))]
    [('1', '2', ''), ('2', '1', '')]
    """
    names: dict[str, str | None] = {}
    for page, title in zip(documents.ids, documents.titles, strict=True):
        full = title.split(maxsplit=1)[0] if title.strip() else ""
        for name in {full, full.rpartition(".")[2]} - {""}:
            names[name] = None if name in names else page
    for page, text in zip(documents.ids, documents.texts, strict=True):
        for match in _NAME.finditer(text):
            target = names.get(match[0])
            quoted = match.start() > 0 and text[match.start() - 1] == "`"
            if target is not None and target != page and (quoted or _IDENTIFIER.search(match[0])):
                yield Link(page, target)


def _targets(documents: Documents) -> Mapping[str, str | None]:
    """Return the document of each id, title, address and last part of these; None if several have it."""
    metadata = documents.metadata or ({},) * len(documents)
    exact: dict[str, str | None] = {}
    ends: dict[str, str | None] = {}
    for page, title, values in zip(documents.ids, documents.titles, metadata, strict=True):
        for name in {title, str(values.get("url") or "")} - {"", page}:
            exact[_plain(name)] = None if _plain(name) in exact else page
        end = _plain(page).rpartition("/")[2]
        ends[end] = None if end in ends else page
    return ends | exact | {_plain(page): page for page in documents.ids}


def _resolve(name: str, targets: Mapping[str, str | None]) -> str | None:
    plain = _plain(name)
    return targets[plain] if plain in targets else targets.get(plain.rpartition("/")[2])


def _plain(name: str) -> str:
    """Return an address without scheme, fragment, query and suffix, in lower case.

    >>> _plain("https://example.org/Docs/Sort.html#stable")
    'example.org/docs/sort'
    """
    name = re.split(r"[#?]", re.sub(r"^\w+://", "", name.strip()))[0].strip("/").lower()
    return re.sub(r"^(\.{1,2}/)+", "", re.sub(r"\.(html?|md|rst|txt)$", "", name))
