"""How many clicks of one visitor, of one address and of one impression count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from .feedback import Feedback, normalize_query

LIMIT_PERIOD = timedelta(hours=24)


@dataclass(frozen=True)
class ClickLimits:
    """Clicks that count per query within LIMIT_PERIOD; in a trial, also impressions that count per day.

    Parameters
    ----------
    per_visitor : int, default=3
        Clicks of one visitor.
    per_address : int, default=10
        Clicks of one client address, whatever visitors it names.
    """

    per_visitor: int = 3
    per_address: int = 10

    def counter(self, clicks: Iterable[Feedback]) -> ClickCounter:
        """Return a counter that knows these earlier clicks."""
        return ClickCounter(self, clicks)


class ClickCounter:
    """Counts the clicks of one batch on top of earlier ones.

    >>> click = Feedback("1", "click", "Red apple", "d1", impression="i", visitor="v")
    >>> counter = ClickLimits(per_visitor=1).counter([])
    >>> counter.reject(click), counter.reject(click)
    ('', 'this click was counted before')
    >>> counter.reject(Feedback("2", "click", "red  apple", "d1", impression="j", visitor="v"))
    'this visitor clicked often enough for this query today'
    """

    def __init__(self, limits: ClickLimits, clicks: Iterable[Feedback]) -> None:
        self._limits = limits
        self._counts: Counter[tuple[str, ...]] = Counter()
        for click in clicks:
            self._counts.update(_keys(click))

    def reject(self, click: Feedback) -> str:
        """Count a click, or return why it does not count; other feedback and clicks without impression pass."""
        if click.kind != "click" or not click.impression or not click.counted:
            return ""
        keys = _keys(click)
        once, visitor, address = (self._counts[key] for key in keys)
        if once:
            return "this click was counted before"
        if visitor >= self._limits.per_visitor:
            return "this visitor clicked often enough for this query today"
        if click.address and address >= self._limits.per_address:
            return "this address clicked often enough for this query today"
        self._counts.update(keys)
        return ""


def _keys(click: Feedback) -> tuple[tuple[str, ...], ...]:
    query = normalize_query(click.query)
    return (
        ("impression", click.impression, click.document),
        ("visitor", click.visitor or click.address, query),
        ("address", click.address, query),
    )
