"""Logs of OpenSearch User Behavior Insights (UBI), and judgments of Quepid.

A UBI log has two files of JSON lines. A line of the queries has `query_id`, `user_query` and, if it was logged,
`query_response_hit_ids`, the documents that were shown, best first. A line of the events has `query_id`, `action_name`
and `event_attributes` with `object.object_id` and, if it was logged, `position.ordinal`. Lines of a dump, with the
record in `_source`, are read too.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import DataError
from ..files import PathLike, decode_utf8, numbered_lines, read_bytes, write_bytes
from ..records import Qrels
from .lines import format_number, parse_number, qrels_from_rows

CLICK_ACTIONS = ("click", "item_click", "product_click", "result_click", "add_to_cart", "purchase")
"""Actions that count as a click of a result."""
_RATING = "query,docid,rating"


@dataclass(frozen=True)
class Search:
    """One search of a user.

    Parameters
    ----------
    text : str
        The words of the user.
    shown : tuple of str
        The documents that were shown, best first; empty if the log has no impressions.
    clicks : mapping of str to int
        {document: position}, counted from 1; the position is 0 if the log has none.
    """

    text: str
    shown: tuple[str, ...]
    clicks: Mapping[str, int]


def read_ubi(queries: PathLike, events: PathLike, actions: Sequence[str] = CLICK_ACTIONS) -> list[Search]:
    """Read the searches of a UBI log; `preferences.clicks.search_grades` estimates judgments from them.

    Parameters
    ----------
    queries, events : path
        Files of JSON lines, which may be packed.
    actions : sequence of str, default=CLICK_ACTIONS
        The values of `action_name` that count as a click.

    Returns
    -------
    list of Search
        One for each line of the queries; events of other queries are ignored.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     where = Path(folder, "queries.ndjson"), Path(folder, "events.ndjson")
    ...     _ = where[0].write_text('{"query_id": "1", "user_query": "tv", "query_response_hit_ids": ["a", "b"]}')
    ...     _ = where[1].write_text('{"query_id": "1", "action_name": "click", '
    ...                             '"event_attributes": {"object": {"object_id": "b"}}}')
    ...     read_ubi(*where)
    [Search(text='tv', shown=('a', 'b'), clicks={'b': 2})]
    """
    searches: dict[str, tuple[str, tuple[str, ...], dict[str, int]]] = {}
    for where, line in _json_lines(queries):
        query_id, text = _text(where, line, "query_id"), line.get("user_query")
        if not isinstance(text, str):
            raise DataError(f"{where}: 'user_query' must be text; got {text!r:.60}")
        hits = line.get("query_response_hit_ids") or []
        if not isinstance(hits, list):
            raise DataError(f"{where}: 'query_response_hit_ids' must be a list; got {hits!r:.60}")
        searches[query_id] = " ".join(text.split()), tuple(map(str, hits)), {}
    if not searches:
        raise DataError(f"{queries}: contains no queries; a line is a JSON object with query_id and user_query")
    for where, line in _json_lines(events):
        if line.get("action_name") not in actions or str(line.get("query_id")) not in searches:
            continue
        attributes = line.get("event_attributes") or {}
        document = _text(where, attributes.get("object") or {}, "object_id")
        _, shown, clicks = searches[str(line["query_id"])]
        ordinal = (attributes.get("position") or {}).get("ordinal")
        place = shown.index(document) + 1 if document in shown else ordinal if isinstance(ordinal, int) else 0
        clicks.setdefault(document, max(place, 0))
    return [Search(*search) for search in searches.values() if search[0]]


def read_quepid(path: PathLike) -> dict[str, dict[str, float]]:
    """Read judgments that Quepid exported as CSV with the columns query, docid and rating.

    Parameters
    ----------
    path : path
        The file; other columns are ignored, and a line without a rating is left out.

    Returns
    -------
    dict
        `{query: {document id: rating}}`; a query is named by its text.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_quepid(f"{folder}/ratings.csv", {"red, ripe": {"d1": 3.0}})
    ...     read_quepid(f"{folder}/ratings.csv")
    {'red, ripe': {'d1': 3.0}}
    """
    reader = csv.DictReader(io.StringIO(decode_utf8(read_bytes(path), path), newline=""))
    names = [name.strip().lower() for name in reader.fieldnames or ()]
    if missing := [name for name in _RATING.split(",") if name not in names]:
        raise DataError(f"{path}: expected the columns {_RATING}; missing: {', '.join(missing)}")
    reader.fieldnames = names
    rows = ((f"{path}:{reader.line_num}", row) for row in reader)
    return qrels_from_rows(
        (where, row["query"], row["docid"], parse_number(where, "rating", row["rating"].strip()))
        for where, row in rows
        if (row["rating"] or "").strip()
    )


def write_quepid(path: PathLike, qrels: Qrels, queries: Mapping[str, str] | None = None) -> None:
    """Write judgments as CSV for Quepid.

    Parameters
    ----------
    path : path
        The file to write.
    qrels : mapping
        `{query id: {document id: grade}}`.
    queries : mapping or None, default=None
        `{query id: text}`; None means that the ids are texts.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_quepid(Path(folder, "ratings.csv"), {"q1": {"d1": 3.0}}, {"q1": "red apples"})
    ...     Path(folder, "ratings.csv").read_text().splitlines()
    ['query,docid,rating', 'red apples,d1,3']
    """
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_RATING.split(","))
    for query, grades in qrels.items():
        if queries is not None and query not in queries:
            raise DataError(f"query {query!r} has judgments and no text")
        text = query if queries is None else queries[query]
        writer.writerows((text, document, format_number(grade)) for document, grade in grades.items())
    write_bytes(path, out.getvalue().encode())


def _json_lines(path: PathLike) -> Iterator[tuple[str, dict[str, Any]]]:
    """The records of JSON lines, without the action lines of a bulk file."""
    for number, line in numbered_lines(path):
        where = f"{path}:{number}"
        try:
            record = json.loads(line)
        except ValueError as error:
            raise DataError(f"{where}: not a JSON object: {error}") from None
        if not isinstance(record, dict):
            raise DataError(f"{where}: expected a JSON object; got {record!r:.60}")
        record = record.get("_source", record)
        if not set(record) <= {"index", "create"}:
            yield where, record


def _text(where: str, record: Any, name: str) -> str:
    value = record.get(name) if isinstance(record, dict) else None
    if not isinstance(value, str | int) or value == "":
        raise DataError(f"{where}: {name!r} must be text; got {value!r:.60}")
    return str(value)
