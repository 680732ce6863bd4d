"""Feedback of users: clicks and judgments."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Feedback:
    """A click or a judgment of a user, with the id that the client made.

    A "click" chooses `document` among `shown`, the ids of the results, best first. A "judgment" gives `document` a
    grade: positive is good, negative is bad. `number` is the position in the order of storage, from 1. `impression`,
    `visitor` and `address` say which search a click belongs to and who made it; feedback that is not `counted` is
    stored and is not used for training.
    """

    id: str
    kind: str
    query: str
    document: str
    shown: tuple[str, ...] = ()
    grade: float = 1.0
    number: int = 0
    received: datetime | None = None
    impression: str = ""
    visitor: str = ""
    address: str = ""
    counted: bool = True


def normalize_query(query: str) -> str:
    """Return a query in lower case with single spaces; all feedback about a query is found by this form.

    >>> normalize_query("  Red   APPLES ")
    'red apples'
    """
    return " ".join(query.casefold().split())
