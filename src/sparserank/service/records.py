"""What the parts of the service hand to one another."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Feedback:
    """One thing that a user told us. `id` was made by the client; `number` counts what is stored, from 1, in order.

    kind : 'click', and `document` was taken from `shown`, the ids that were shown, best first; or 'judgment', and
        `document` has this grade for the query: above 0 good, below 0 bad.
    """

    id: str
    kind: str
    query: str
    document: str
    shown: tuple[str, ...] = ()
    grade: float = 1.0
    number: int = 0
    received: datetime | None = None
