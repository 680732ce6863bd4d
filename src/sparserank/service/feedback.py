"""Feedback of users: clicks and judgments."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Feedback:
    """A click or a judgment of a user.

    Parameters
    ----------
    id : str
        Unique id that the client made.
    kind : {"click", "judgment"}
        A click chooses `document` among `shown`; a judgment gives `document` a grade.
    query, document : str
        The query and the id of the document.
    shown : tuple of str, default=()
        Ids of the results that the user saw, best first.
    grade : float, default=1.0
        Grade of a judgment: positive is good, negative is bad.
    number : int, default=0
        Position in the order of storage, from 1.
    received : datetime, optional
        Time of storage.
    """

    id: str
    kind: str
    query: str
    document: str
    shown: tuple[str, ...] = ()
    grade: float = 1.0
    number: int = 0
    received: datetime | None = None


def normalize_query(query: str) -> str:
    """Return a query in lower case with single spaces; all feedback about a query is found by this form.

    >>> normalize_query("  Red   APPLES ")
    'red apples'
    """
    return " ".join(query.casefold().split())
