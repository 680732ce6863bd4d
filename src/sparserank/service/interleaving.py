"""Team-draft interleaving (Radlinski et al., 2008, algorithm 2): which of two models do users prefer?

The served model and a candidate pick documents for one list in turn, as two captains pick players; a coin decides who
picks first in each round. A click is a vote for the model that picked the document; the model with more clicks in an
impression wins it. The coins come from the seed of the impression, so that the signed impression alone says who picked
the document at a position: in round r (positions 2r and 2r + 1) the coin r decides who picks first.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any, TypeVar

from .click_limits import ClickLimits
from .feedback import Feedback, normalize_query

T = TypeVar("T", bound=Hashable)

SERVED, CANDIDATE = 0, 1
SEED_BYTES = 8
SEED_PERIOD_S = 3600.0
"""Within this time one client gets the same list for the same query, so that its pages belong together."""
LEVEL = 0.95
"""Of the interval of the share of wins."""


def seed(key: bytes, query: str, filter: object, client: str, now: float) -> bytes:
    """Return the seed of an impression: random to others, the same for all pages of one list."""
    parts = "\0".join((normalize_query(query), repr(filter), client, str(int(now // SEED_PERIOD_S))))
    content = b"interleaving " + parts.encode("utf-8", "surrogatepass")
    return hmac.new(key, content, hashlib.sha256).digest()[:SEED_BYTES]


def takes_part(seed: bytes, share: float) -> bool:
    """Return whether an impression with this seed is interleaved; a share of all seeds is.

    >>> takes_part(bytes(8), 0.1), takes_part(bytes([255] * 8), 1.0), takes_part(bytes([255] * 8), 0.5)
    (True, True, False)
    """
    return int.from_bytes(seed) < share * 2.0 ** (8 * SEED_BYTES)


def teams(seed: bytes, length: int) -> list[int]:
    """Return who picks at each position, SERVED or CANDIDATE: in each round both pick once."""
    draw = Random(seed)
    picks: list[int] = []
    while len(picks) < length:
        coin = draw.getrandbits(1)
        picks += (coin, 1 - coin)
    return picks[:length]


def team_draft(served: Sequence[T], candidate: Sequence[T], picks: Iterable[int]) -> list[tuple[T, int]]:
    """Interleave two rankings; return each document with its team, until one ranking is used up or nobody picks.

    >>> team_draft(["a", "b", "c"], ["b", "d", "a"], [SERVED, CANDIDATE, CANDIDATE, SERVED])
    [('a', 0), ('b', 1), ('d', 1)]
    """
    drafted: dict[T, int] = {}
    rankings, places = (served, candidate), [0, 0]
    for team in picks:
        for one, ranking in enumerate(rankings):
            while places[one] < len(ranking) and ranking[places[one]] in drafted:
                places[one] += 1
        if any(place >= len(ranking) for place, ranking in zip(places, rankings, strict=True)):
            break
        drafted[rankings[team][places[team]]] = team
    return list(drafted.items())


@dataclass(frozen=True)
class Tally:
    """Impressions that the candidate won, lost and tied, by clicks that count.

    >>> tally = Tally(wins=30, losses=10)
    >>> [round(value, 3) for value in (tally.share, *tally.interval, tally.p_value)]
    [0.75, 0.598, 0.858, 0.002]
    """

    wins: int = 0
    losses: int = 0
    ties: int = 0

    @property
    def decided(self) -> int:
        """Wins and losses."""
        return self.wins + self.losses

    @property
    def share(self) -> float:
        """The share of wins among the decided impressions; 0.5 without any."""
        return self.wins / self.decided if self.decided else 0.5

    @property
    def interval(self) -> tuple[float, float]:
        """The Wilson interval of the share, at LEVEL."""
        if not self.decided:
            return 0.0, 1.0
        from scipy.stats import binomtest

        found = binomtest(self.wins, self.decided).proportion_ci(LEVEL, method="wilson")
        return float(found.low), float(found.high)

    @property
    def p_value(self) -> float:
        """The p-value of the sign test, two-sided and exact: ties do not count."""
        if not self.decided:
            return 1.0
        from scipy.stats import binomtest

        return float(binomtest(self.wins, self.decided).pvalue)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        low, high = self.interval
        return {**asdict(self), "won": self.share, "low": low, "high": high, "p_value": self.p_value}


class ClickCount:
    """Counts the clicks of one trial in the order of storage; `at_look` is the tally after so many decided impressions.

    Parameters
    ----------
    served, candidate : int
        Numbers of the two versions; clicks on lists of others do not count.
    since : str
        ISO time of the start of the trial; earlier clicks do not count.
    look_after : int, optional
        Number of decided impressions after which a rule looks, once.
    limits : ClickLimits, optional
        How many impressions of one visitor and of one address count a day, over all queries.
    """

    def __init__(
        self, served: int, candidate: int, since: str, look_after: int | None = None, limits: ClickLimits | None = None
    ) -> None:
        self._limits = ClickLimits() if limits is None else limits
        self._impressions: Counter[tuple[object, ...]] = Counter()
        self.trial = served, candidate, since
        self._since, self._look_after = datetime.fromisoformat(since) - timedelta(seconds=1), look_after
        self._votes: dict[str, int] = {}
        self._wins = self._losses = 0
        self.last = 0
        self.at_look: Tally | None = None

    @property
    def tally(self) -> Tally:
        """The tally of all clicks so far."""
        return Tally(self._wins, self._losses, len(self._votes) - self._wins - self._losses)

    def add(self, click: Feedback) -> None:
        """Count one feedback entry."""
        from .impressions import read

        self.last = max(self.last, click.number)
        if click.kind != "click" or not click.counted or not click.impression or click.document not in click.shown:
            return
        shown = read(click.impression)
        if (shown.version, shown.candidate) != self.trial[:2]:
            return
        if click.received is not None and click.received < self._since:
            return
        place = shown.offset + click.shown.index(click.document)
        if place >= shown.drafted or not self._admits(click):
            return
        vote = 1 if teams(shown.seed, place + 1)[place] == CANDIDATE else -1
        self._count(click.impression, vote)
        if self._look_after is not None and self.at_look is None and self.tally.decided >= self._look_after:
            self.at_look = self.tally

    def _admits(self, click: Feedback) -> bool:
        """Return whether the impression of a click counts; nobody decides alone with many queries."""
        if click.impression in self._votes:
            return True
        day = click.received and click.received.date()
        visitor, address = ("visitor", click.visitor or click.address, day), ("address", click.address, day)
        limits = {visitor: self._limits.per_visitor, address: self._limits.per_address}
        keys = [key for key in limits if key[1]]
        if any(self._impressions[key] >= limits[key] for key in keys):
            return False
        self._impressions.update(keys)
        return True

    def _count(self, impression: str, vote: int) -> None:
        before = self._votes.get(impression, 0)
        after = self._votes[impression] = before + vote
        self._wins += (after > 0) - (before > 0)
        self._losses += (after < 0) - (before < 0)
