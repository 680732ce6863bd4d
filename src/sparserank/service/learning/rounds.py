"""One round of learning: new feedback in, a new version out, or a sentence that says why not.

The version itself says through which feedback it was learned, and it is written with the pointer to it in one step: a
round that is killed has either happened or not, and what it looked at is neither lost nor learned twice. What was
looked at and not learned is in `learner.json`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from ...data.files import read_bytes, write_bytes
from ...errors import DataError
from ...versions import Version, VersionRegistry
from ..records import Feedback
from .candidates import Candidate, Search
from .gate import ENOUGH, Checks, Figures, Judgments, agreed, one_of
from .grades import Lessons, is_held_out, plain

MOST_QUERIES = 500
"""Queries that one round learns from; the next one goes on from there."""
LOOKED_BACK = 20_000
"""Of so many of the latest feedback, that of held-out queries is checked on."""
FIRST_QUERIES = 20
"""Queries with feedback that a model without any pair needs to learn its first."""
SHOWN_WORSE = 10
"""Held-out queries that got worse, of which an outcome tells both rankings."""
ROOM, MORE = 1.2, 20_000
"""A model may grow to so many times the pairs that it had when it was trained, and so many more."""


class Store(Protocol):
    """What a round asks of stored feedback."""

    def since(self, number: int, limit: int = 10_000) -> Sequence[Feedback]:
        """What was stored after the one of this number."""
        ...

    def of_queries(self, queries: Collection[str]) -> Sequence[Feedback]:
        """All that was said about these queries, however they were spelled."""
        ...

    def last(self) -> int:
        """The number of the last one."""
        ...


@dataclass(frozen=True)
class Outcome:
    """What became of one round.

    outcome : 'learned' (a new version is served), 'refused' (no candidate passed the checks), 'nothing' (nothing new,
        or all is as users want it), 'waiting' (there is not enough to check on) or 'failed'.
    before, after : figures of the model that was served and of the one that is, or of the best one that was refused.
    comparison : these two on the held-out judgments, as `evaluate --against` has it; the ten largest losses among it.
    """

    outcome: str
    said: str
    looked_through: int = 0
    seen: int = 0
    version: int | None = None
    root: int = 0
    before: Mapping[str, float | None] | None = None
    after: Mapping[str, float | None] | None = None
    comparison: Mapping[str, Any] | None = None
    checked_on: Mapping[str, Any] = field(default_factory=dict)
    learned: int = 0
    refused: int = 0
    held_out: int = 0
    seconds: float = 0.0
    at: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def state_path(versions: VersionRegistry) -> Path:
    """Where the outcome of the last round is kept."""
    return versions.folder / "learner.json"


def last_outcome(versions: VersionRegistry) -> Outcome:
    """The outcome of the last round, as it was kept; an empty one where there is none that can be read."""
    try:
        return Outcome(**json.loads(read_bytes(state_path(versions))))
    except (DataError, ValueError, TypeError):
        return Outcome("nothing", "no round of learning yet")


def looked_through(versions: VersionRegistry) -> int:
    """The last feedback that was looked at for models learned from the one that is served, or from its first one."""
    root, last = versions.root(), last_outcome(versions)
    through = [one.learned_through for one in versions.list() if versions.root(one.number) == root]
    return max([*through, last.looked_through if last.root == root else 0])


def due(versions: VersionRegistry, last: int) -> bool:
    """Whether there is feedback that no round has seen, the last one being of this number."""
    before, through = last_outcome(versions), looked_through(versions)
    if before.root != versions.root() or before.outcome == "failed":
        return last > through
    return last > before.seen or (before.outcome != "waiting" and before.seen > through)


def learn(
    versions: VersionRegistry, store: Store, *, index: Path | None = None, judgments: Judgments | None = None
) -> Outcome:
    """Look at what users said since the last round, and serve a better model if there is one."""
    began = time.monotonic()
    done = _round(versions, store, index, judgments)
    return keep(versions, replace(done, seconds=round(time.monotonic() - began, 3)))


def keep(versions: VersionRegistry, done: Outcome) -> Outcome:
    """Write an outcome down."""
    done = replace(done, root=versions.root(), at=datetime.now(UTC).isoformat())
    write_bytes(state_path(versions), json.dumps(done.to_dict(), allow_nan=False, indent=1).encode(), pack=False)
    return done


def _round(versions: VersionRegistry, store: Store, index: Path | None, judgments: Judgments | None) -> Outcome:
    last, start = store.last(), looked_through(versions)
    fresh = _next(store, start)
    if not fresh:
        return Outcome("nothing", "no new feedback", start, last)
    version = versions.current()
    ranker = versions.load(version.number, index)
    recent = Lessons.of(store.since(max(last - LOOKED_BACK, 0), LOOKED_BACK)).among(ranker.index_)
    checks, lessons = Checks.parted(None if judgments is None else judgments.among(ranker), recent)
    share, queries = one_of(judgments is not None), {plain(one.query) for one in fresh}
    held = {query for query in queries if is_held_out(query, share)}
    if not checks.enough:
        return Outcome("waiting", _too_few(len(checks.feedback)), start, last, checked_on=checks.to_dict())
    if ranker.model_.W is not None:
        lessons = Lessons.of(store.of_queries(queries - held)).among(ranker.index_).parted(share)[0]
    elif len(lessons) < FIRST_QUERIES:
        said = f"{len(lessons)} queries have feedback; first pairs are learned from {FIRST_QUERIES}"
        return Outcome("waiting", said, start, last, checked_on=checks.to_dict())
    before = Candidate(ranker, checks.of(ranker, lessons, agreed(ranker, lessons)))
    search = Search(before, lessons, checks, room=int(ROOM * versions.get(versions.root()).pairs) + MORE)
    search.run()
    after = search.nearest if search.nearest and not search.learned else search.best
    done = Outcome(
        *_told(search, before.figures), fresh[-1].number, last, before=before.figures.to_dict(),
        after=after.figures.to_dict(), comparison=_compared(checks, before, after),
        checked_on=checks.to_dict(), learned=len(search.learned), refused=len(search.refused),
        held_out=len(held),
    )  # fmt: skip
    return _served(versions, version, search, done, start) if search.learned else done


def _served(versions: VersionRegistry, version: Version, search: Search, done: Outcome, start: int) -> Outcome:
    """The outcome, with the new version."""
    check = {name: getattr(done, name) for name in ("before", "after", "checked_on", "learned", "refused")}
    if done.comparison is not None:
        check["comparison"] = {name: found for name, found in done.comparison.items() if name != "worse"}
    try:
        made = versions.add(
            search.best.ranker, done.said, check, learned_through=done.looked_through, parent=version.number
        )
    except DataError as error:  # someone went back meanwhile, or the disk is full: nothing has been learned
        return replace(done, outcome="failed", said=str(error), looked_through=start, after=None, learned=0)
    return replace(done, version=made.number)


def _compared(checks: Checks, before: Candidate, after: Candidate) -> dict[str, Any] | None:
    """The paired comparison on held-out judgments; None where there are none, or nothing new was tried."""
    if checks.judgments is None or after is before:
        return None
    return checks.judgments.paired(before.ranker, after.ranker).to_dict(most=SHOWN_WORSE)


def _next(store: Store, start: int) -> list[Feedback]:
    """New feedback, as much as one round takes."""
    fresh: list[Feedback] = []
    queries: set[str] = set()
    for one in store.since(start):
        queries.add(plain(one.query))
        if len(queries) > MOST_QUERIES:
            break
        fresh.append(one)
    return fresh


def _told(search: Search, before: Figures) -> tuple[str, str]:
    """The outcome in a word and in a sentence."""
    learned, refused = len(search.learned), len(search.refused)
    if learned:
        better = f"{before.lessons:.3f} → {search.best.figures.lessons:.3f}"
        left = f"; {_queries(refused)} could not be learned" if refused else ""
        return "learned", f"learned from {_queries(learned)}: agreement with users {better}{left}"
    if not refused:
        return "nothing", "all new feedback is of held-out queries, or the order is as users want it"
    if search.nearest is None:
        return "refused", f"nothing that could be learned ranks {_queries(refused)} better"
    worse = _worse(before, search.nearest.figures)
    return "refused", f"what was said about {_queries(refused)} would make held-out queries worse: {worse}"


def _worse(before: Figures, after: Figures) -> str:
    sides = (
        ("nDCG@10 of judgments", before.judgments, after.judgments),
        ("of those not taught", before.others, after.others),
        ("agreement with users", before.feedback, after.feedback),
    )
    return ", ".join(
        f"{name} {old:.5f} → {new:.5f}" for name, old, new in sides if old is not None and new is not None and new < old
    )


def _queries(n: int) -> str:
    return f"{n} quer{'y' if n == 1 else 'ies'}"


def _too_few(held: int) -> str:
    return (
        f"{_queries(held)} of those held out have feedback and {ENOUGH} are needed to check on; "
        "with held-out judgments (--held-out) learning starts at once"
    )
