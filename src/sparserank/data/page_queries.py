"""Training queries that a collection has without judgments: titles, first sentences, headings, links and mentions.

The words of a query must be no easy match in its own page, else there is nothing to learn. So each kind of query comes
with the documents without it: titles with texts that do not begin with the title, headings with texts without headings.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from .. import validation
from ..errors import ConfigError
from .page_links import HEADING_FIELDS, Link, field_values, iterate_links, iterate_mentions, split_headings
from .records import Documents, Qrels

SOURCES = ("titles", "openings", "headings", "links", "mentions")
"""The sources of training queries without judgments."""
LEARN_FROM = (*SOURCES, "log", "judgments", "clicks")
"""What `TextRanker.fit(learn_from=)` and `train --learn-from` accept."""
MAX_SHARED = 3
"""A heading or an anchor text of more pages, such as "Examples" or "here", is no query."""
MAX_LINKED = 50
"""A page that more pages link to, such as a home page, is relevant to none of them."""
SENTENCE_WORDS, CUT_WORDS, CUT_CHARACTERS = 40, 16, 160
"""A first sentence with more words is cut after so many words, and after so many characters."""
NAME_SUFFIX = "#name"
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n\s*\n")


@dataclass(frozen=True)
class TrainingQueries:
    """Queries that were made from the pages of a collection, and the pages that are relevant to each.

    Parameters
    ----------
    source : str
        "titles", "openings", "headings", "links", "anchors", "mentions" or "log".
    queries : mapping
        `{query id: text}`.
    qrels : mapping
        `{query id: {document id: grade}}`.
    weights : mapping
        `{query id: weight}`; the queries that one page gave have the sum 1.
    documents : Documents
        The documents without the words of the queries.
    exclude_self : bool, default False
        Whether a query must not find the page that it was made from, whose id it has.
    """

    source: str
    queries: Mapping[str, str]
    qrels: Qrels
    weights: Mapping[str, float]
    documents: Documents
    exclude_self: bool = False

    def __len__(self) -> int:
        return len(self.qrels)

    def with_names(self) -> TrainingQueries:
        """Add the title of each page as a query for it, so that pairs keep finding pages by their names.

        Documents that have no titles stay as they are.

        Examples
        --------
        >>> docs = Documents.of({"d1": {"title": "Sorting", "text": "Put the items in order. Equal items stay."}})
        >>> training_queries(docs, "openings")["openings"].with_names().queries
        {'d1': 'Put the items in order.', 'd1#name': 'Sorting'}
        """
        documents = self.documents
        titles = {page: title for page, title in zip(documents.ids, documents.titles, strict=True) if title.strip()}
        names = {f"{page}{NAME_SUFFIX}": page for page in titles}
        return replace(
            self,
            queries={**self.queries, **{name: titles[page] for name, page in names.items()}},
            qrels={**self.qrels, **{name: {page: 1.0} for name, page in names.items()}},
            weights={**self.weights, **dict.fromkeys(names, 1.0)},
        )


def training_queries(documents: Documents, sources: str | Sequence[str]) -> dict[str, TrainingQueries]:
    """Make training queries from documents, without judgments.

    Parameters
    ----------
    documents : Documents
        The documents.
    sources : str or sequence of str
        "titles": a title, or the beginning of a text without one, for its own page. "openings": the first sentence for
        its own page. "headings": a heading (Markdown, reStructuredText, HTML or a field `headings`) for its own page.
        "links": the first sentence of a page for the pages that it links to (Markdown, wiki or HTML links, or a field
        `links`, `see_also` or `related`), and the text of a link for its target. "mentions": the first sentence of a
        page for the pages whose name is in its text.

    Returns
    -------
    dict of str to TrainingQueries
        One entry for each kind of query; "links" gives "links" and "anchors". An entry may be empty.

    Examples
    --------
    >>> docs = Documents.of({"d1": {"title": "Sorting", "text": "Sorting. Put the items in order."}})
    >>> made = training_queries(docs, "titles")["titles"]
    >>> made.queries, made.qrels, made.documents.texts
    ({'d1': 'Sorting'}, {'d1': {'d1': 1.0}}, ('Put the items in order.',))
    """
    out: dict[str, TrainingQueries] = {}
    for source in as_sources(sources):
        validation.choice("source", source, SOURCES)
        if source == "titles":
            out[source] = _titles(documents)
        elif source == "openings":
            out[source] = _openings(documents)
        elif source == "headings":
            out[source] = _headings(documents)
        elif source == "mentions":
            out[source] = _linked_pages(source, documents, iterate_mentions(documents))
        else:
            links = list(iterate_links(documents))
            out |= {"links": _linked_pages(source, documents, links), "anchors": _anchors(documents, links)}
    return out


def as_sources(sources: str | Sequence[str]) -> list[str]:
    """Return the names of sources, once each; a string may have several, separated by commas.

    >>> as_sources("titles, links,titles")
    ['titles', 'links']
    """
    names = [sources] if isinstance(sources, str) else list(sources)
    parts = [part.strip() for name in names for part in name.split(",")]
    for name in parts:
        if name not in LEARN_FROM:
            raise ConfigError(f"learn_from must be of {', '.join(LEARN_FROM)}. Got {name!r} instead.")
    return list(dict.fromkeys(parts))


def _titles(documents: Documents) -> TrainingQueries:
    queries, texts = {}, []
    for page, title, text in zip(documents.ids, documents.titles, documents.texts, strict=True):
        query, rest = (title, without_beginning(text, title)) if title.strip() else split_opening(text)
        queries[page] = query
        texts.append(rest)
    return _own_pages("titles", queries, replace(documents, titles=("",) * len(documents), texts=tuple(texts)))


def _openings(documents: Documents) -> TrainingQueries:
    queries, texts = {}, []
    for page, title, text in zip(documents.ids, documents.titles, documents.texts, strict=True):
        body = without_beginning(text, title) if title.strip() else split_opening(text)[1]
        queries[page], rest = split_opening(body)
        texts.append(rest)
    return _own_pages("openings", queries, replace(documents, texts=tuple(texts)))


def _headings(documents: Documents) -> TrainingQueries:
    pages: dict[str, list[str]] = {}
    texts = []
    for position, (page, title, text) in enumerate(zip(documents.ids, documents.titles, documents.texts, strict=True)):
        found, rest = split_headings(text)
        found += field_values(documents, position, HEADING_FIELDS)
        pages[page] = [name for name in dict.fromkeys(found) if _folded(name) not in ("", _folded(title))]
        texts.append(rest)
    frequency: dict[str, int] = defaultdict(int)
    for names in pages.values():
        for name in {_folded(name) for name in names}:
            frequency[name] += 1
    queries: dict[str, str] = {}
    qrels: dict[str, dict[str, float]] = {}
    weights: dict[str, float] = {}
    for page, names in pages.items():
        names = [name for name in names if frequency[_folded(name)] <= MAX_SHARED]
        for number, name in enumerate(names, 1):
            query = f"{page}#{number}"
            queries[query], qrels[query], weights[query] = name, {page: 1.0}, 1.0 / len(names)
    metadata = tuple({k: v for k, v in one.items() if k not in HEADING_FIELDS} for one in documents.metadata)
    return TrainingQueries(
        "headings", queries, qrels, weights, replace(documents, texts=tuple(texts), metadata=metadata)
    )


def _linked_pages(source: str, documents: Documents, links: Iterable[Link]) -> TrainingQueries:
    """The first sentence of each page as a query for the pages that it links to."""
    targets: dict[str, dict[str, float]] = defaultdict(dict)
    sources: dict[str, set[str]] = defaultdict(set)
    for page, target, _ in links:
        targets[page][target] = 1.0
        sources[target].add(page)
    openings = _openings(documents).queries
    begins = {
        page: openings.get(page) or title or split_opening(text)[0]
        for page, title, text in zip(documents.ids, documents.titles, documents.texts, strict=True)
    }
    qrels = {}
    for page, found in targets.items():
        kept = {target: grade for target, grade in found.items() if len(sources[target]) <= MAX_LINKED}
        if kept and begins[page]:
            qrels[page] = kept
    queries = {page: begins[page] for page in qrels}
    return TrainingQueries(source, queries, qrels, dict.fromkeys(qrels, 1.0), documents, exclude_self=True)


def _anchors(documents: Documents, links: Iterable[Link]) -> TrainingQueries:
    """The text of a link as a query for its target; titles are left out, because link texts often repeat them."""
    targets: dict[str, dict[str, float]] = defaultdict(dict)
    for _, target, anchor in links:
        if anchor:
            targets[_folded(anchor)][target] = 1.0
    kept = [(text, found) for text, found in targets.items() if len(found) <= MAX_SHARED]
    queries = {f"anchor {number}": text for number, (text, _) in enumerate(kept, 1)}
    qrels = {f"anchor {number}": found for number, (_, found) in enumerate(kept, 1)}
    without = _titles(documents).documents
    return TrainingQueries("anchors", queries, qrels, dict.fromkeys(qrels, 1.0), without)


def _own_pages(source: str, queries: Mapping[str, str], documents: Documents) -> TrainingQueries:
    """Queries for their own pages; a page without a query, or without any text beside it, gives none."""
    texts = zip(documents.ids, documents.titles, documents.texts, strict=True)
    empty = {page for page, title, text in texts if not (title.strip() or text.strip())}
    kept = {page: query for page, query in queries.items() if query.strip() and page not in empty}
    qrels = {page: {page: 1.0} for page in kept}
    return TrainingQueries(source, kept, qrels, dict.fromkeys(kept, 1.0), documents)


def split_opening(text: str) -> tuple[str, str]:
    """Return the first sentence of a text, or its first words if there is no end of it nearby, and the rest.

    >>> split_opening("Put the items in order. Equal items stay.")
    ('Put the items in order.', 'Equal items stay.')
    """
    text = text.strip()
    end = _SENTENCE_END.search(text)
    sentence, rest = (text[: end.start()], text[end.end() :]) if end else (text, "")
    if len(sentence.split()) <= SENTENCE_WORDS and len(sentence) <= 2 * CUT_CHARACTERS and rest:
        return " ".join(sentence.split()), rest
    words = list(re.finditer(r"\S+", text))[:CUT_WORDS]
    cut = min(words[-1].end(), CUT_CHARACTERS) if words else 0
    return " ".join(text[:cut].split()), text[cut:].strip()


def without_beginning(text: str, title: str) -> str:
    """Return a text without the title at its beginning.

    >>> without_beginning("heat in slabs .\\n the heat flow", "Heat in slabs")
    'the heat flow'
    """
    words, at = _folded(title).split(), 0
    for word in words:
        match = re.compile(r"[\W_]*(\w+)").match(text, at)
        if match is None or match[1].lower() != word:
            return text
        at = match.end()
    return text[at:].lstrip(" \t\r\n.:;,!?-–—=#*") if words else text


def _folded(text: str) -> str:
    """Return the words of a text in lower case.

    >>> _folded("See also: numpy.sort")
    'see also numpy sort'
    """
    return " ".join(re.findall(r"\w+", text.lower()))
