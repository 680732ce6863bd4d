"""The requests of simulated users: searches, explanations of results, clicks and judgments."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import sparserank as sr
from sparserank.data.records import Collection

from .load import Ask
from .service import TOKEN

SHARES = {"search": 55, "search as the page": 5, "explain": 20, "feedback": 20}
"""Of a hundred requests. The page wants a passage of every result; it explains one when it is opened."""
ALL_PAIRS = 0.05
"""The share of explanations that want all pairs; the page asks for 20, and for all when someone wants to see them."""
MOST_QUERIES = 1000
FORGIVING = {"typos": True, "prefix": True}
PAGE_WITH_PAIRS = {"explain": True, "pairs": 20, **FORGIVING}
PAGE = {"snippets": True, "split": True, "total": True, **FORGIVING}
"""What the page sends with a search: passages, how much of a score is learned, and the number of results."""


class Users:
    """People with queries of a collection; what they say is what its judgments say.

    Queries of the held-out split are searched for and never judged. `feedback` holds what was said, by id.
    """

    def __init__(self, model: Path, collection: Collection, held_out: str, seed: int = 0) -> None:
        self._draw = random.Random(seed)
        ranker = sr.load(model)
        pairs = [(q, grades) for split, qrels in collection.qrels.items() if split != held_out
                  for q, grades in qrels.items()]  # fmt: skip
        self._draw.shuffle(pairs)
        self._lists: list[tuple[str, list[str], list[str]]] = []
        for query, grades in pairs[:MOST_QUERIES]:
            text = collection.queries[query][:1000]
            good = [d for d, grade in grades.items() if grade > 0 and d in ranker.index_]
            shown = [hit.id for hit in ranker.search(text, 10)]
            if good and shown and text.strip():
                self._lists.append((text, shown, good))
        self.feedback: dict[str, dict[str, Any]] = {}

    def queries(self, number: int) -> list[str]:
        """So many queries."""
        return [self._draw.choice(self._lists)[0] for _ in range(number)]

    def common_words(self, number: int) -> list[str]:
        """The most frequent words of the queries."""
        counts = Counter(word for text, _, _ in self._lists for word in set(text.lower().split()) if len(word) > 3)
        return [word for word, _ in counts.most_common(number)]

    def asks(self, number: int, phase: str, teaching: int = 0) -> list[Ask]:
        """So many requests; feedback about `teaching` queries where it is meant to teach, else about any."""
        kinds = self._draw.choices(list(SHARES), weights=list(SHARES.values()), k=number)
        wrong = [one for one in self._lists if one[1][0] not in one[2]]  # the first result is not what they want
        said = self._said(phase, wrong[:teaching] or self._lists)
        return [self._ask(kind, said) for kind in kinds]

    def _ask(self, kind: str, said: Iterator[Ask]) -> Ask:
        if kind == "feedback":
            return next(said)
        text, shown, _ = self._draw.choice(self._lists)
        if kind == "explain":
            few = {} if self._draw.random() < ALL_PAIRS else {"pairs": 20}
            return Ask(
                kind, post("/explain", {"query": text, "document": self._draw.choice(shown), **FORGIVING, **few})
            )
        page = PAGE if kind == "search as the page" else {}
        return Ask(kind, post("/search", {"query": text, **page}))

    def _said(self, phase: str, lists: Sequence[tuple[str, list[str], list[str]]]) -> Iterator[Ask]:
        number = 0
        while True:
            text, shown, good = self._draw.choice(lists)
            document, number = self._draw.choice(good), number + 1
            one: dict[str, Any] = {"id": f"{phase}-{number}", "query": text, "document": document}
            if document in shown:
                one |= {"kind": "click", "shown": shown, "grade": 1.0}
            else:
                one |= {"kind": "judgment", "shown": [], "grade": 1.0}
            self.feedback[one["id"]] = one
            yield Ask("feedback", post("/feedback", one), one["id"])


def get(path: str) -> bytes:
    """A request without a body."""
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()


def post(path: str, body: dict[str, Any]) -> bytes:
    """A request over HTTP/1.1; the connection stays open."""
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {TOKEN}\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content
