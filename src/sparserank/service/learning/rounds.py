"""A learning round: new feedback in, a new version out, or a sentence that says why not.

A version records the last feedback that it takes into account, and is written atomically with the manifest. A killed
round has therefore happened or not, and no feedback is lost or learned twice. `learner.json` keeps the outcome of the
last round.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ...data.files import PathLike, read_bytes, write_bytes
from ...errors import DataError
from ...versions import Version, VersionRegistry
from ..feedback import Feedback, normalize_query
from .candidates import Candidate, CandidateSearch
from .gate import MIN_HELD_OUT_QUERIES, Gate, GateScores, HeldOutJudgments, held_out_share, mean_agreement
from .grades import GradedQueries, is_held_out

if TYPE_CHECKING:
    from ..store import FeedbackStore

OUTCOME_FILE = "learner.json"
MAX_QUERIES_PER_ROUND = 500
"""The next round continues after these queries."""
RECENT_FEEDBACK = 20_000
"""The gate uses the held-out queries among this many latest feedback entries."""
MIN_QUERIES_FOR_FIRST_PAIRS = 20
MAX_WORSE_QUERIES = 10
"""Held-out queries with a loss that an outcome lists."""
PAIR_GROWTH, EXTRA_PAIRS = 1.2, 20_000
"""A model may have PAIR_GROWTH times the pairs of the trained model, plus EXTRA_PAIRS."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a round, as `learner.json` and `/model` show it.

    `outcome` is "learned" (a new version is served), "refused" (no candidate passed), "nothing" (nothing to learn),
    "waiting" (too little data) or "failed"; `said` is the same as a sentence. `looked_through` and `seen` are the
    numbers of the last feedback that was used and stored. `before` and `after` are the scores of the served model and
    of the new one, or of the best rejected candidate; `comparison` compares the two on held-out judgments. `learned`,
    `refused` and `held_out` count queries. `again_since` is the time since which everything is learned again.
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
    again_since: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def last_outcome(registry: VersionRegistry) -> Outcome:
    """Return the outcome of the last round; an empty one if there is none or it is unreadable."""
    try:
        return Outcome(**json.loads(read_bytes(registry.folder / OUTCOME_FILE)))
    except (DataError, ValueError, TypeError):
        return Outcome("nothing", "no learning round yet")


def last_used_feedback(registry: VersionRegistry) -> int:
    """Return the number of the last feedback that was used for the served model or its relatives."""
    root, last = registry.root(), last_outcome(registry)
    used = [
        version.learned_through
        for version in registry.list()
        if registry.root(version.number) == root and version.made > last.again_since
    ]
    return max([0, *used, last.looked_through if last.root == root else 0])


def is_due(registry: VersionRegistry, last: int) -> bool:
    """Return whether there is feedback, up to number `last`, that no round has seen."""
    before, used = last_outcome(registry), last_used_feedback(registry)
    if before.root != registry.root() or before.outcome == "failed":
        return last > used
    return last > before.seen or (before.outcome != "waiting" and before.seen > used)


def run_round(
    registry: VersionRegistry,
    store: FeedbackStore,
    *,
    index: PathLike | None = None,
    judgments: HeldOutJudgments | None = None,
) -> Outcome:
    """Learn from new feedback, and serve a better model if there is one."""
    start = time.monotonic()
    outcome = _run(registry, store, index, judgments)
    return save_outcome(registry, replace(outcome, seconds=round(time.monotonic() - start, 3)))


def save_outcome(registry: VersionRegistry, outcome: Outcome) -> Outcome:
    """Write `learner.json`."""
    since = outcome.again_since or last_outcome(registry).again_since
    outcome = replace(outcome, root=registry.root(), at=datetime.now(UTC).isoformat(), again_since=since)
    content = json.dumps(outcome.to_dict(), allow_nan=False, indent=1).encode()
    write_bytes(registry.folder / OUTCOME_FILE, content, compress=False)
    return outcome


def learn_again(registry: VersionRegistry) -> Outcome:
    """Let the next rounds learn from all feedback, on top of the served version, for example after a rollback."""
    said = f"all feedback will be learned again, on top of version {registry.current().number}"
    return save_outcome(registry, Outcome("nothing", said, again_since=datetime.now(UTC).isoformat()))


def _run(
    registry: VersionRegistry, store: FeedbackStore, index: PathLike | None, judgments: HeldOutJudgments | None
) -> Outcome:
    last, used = store.last(), last_used_feedback(registry)
    new = _new_feedback(store, used)
    if not new:
        return Outcome("nothing", "no new feedback", used, last)
    version = registry.current()
    ranker = registry.load(version.number, index)
    recent = GradedQueries.from_feedback(store.since(max(last - RECENT_FEEDBACK, 0), RECENT_FEEDBACK))
    judgments = None if judgments is None else judgments.require_documents(ranker)
    gate, training = Gate.split(judgments, recent.restrict_to(ranker.index_))
    share, queries = held_out_share(judgments), {normalize_query(feedback.query) for feedback in new}
    held_out = {query for query in queries if is_held_out(query, share)}
    if not gate.is_ready:
        return Outcome("waiting", _too_few(len(gate.feedback)), used, last, checked_on=gate.to_dict())
    if ranker.model_.W is not None:
        feedback = GradedQueries.from_feedback(store.of_queries(queries - held_out))
        training = feedback.restrict_to(ranker.index_).split(share)[0]
    elif len(training) < MIN_QUERIES_FOR_FIRST_PAIRS:
        message = f"{_queries(len(training))} with feedback; the first pairs need {MIN_QUERIES_FOR_FIRST_PAIRS}"
        return Outcome("waiting", message, used, last, checked_on=gate.to_dict())
    before = Candidate(ranker, gate.score(ranker, training, mean_agreement(ranker, training)))
    max_pairs = int(PAIR_GROWTH * registry.get(registry.root()).pairs) + EXTRA_PAIRS
    search = CandidateSearch(before, training, gate, max_pairs)
    search.run()
    after = search.nearest if search.nearest and not search.learned else search.best
    outcome = Outcome(
        *_summary(search, before.scores), new[-1].number, last, before=before.scores.to_dict(),
        after=after.scores.to_dict(), comparison=_comparison(gate, before, after), checked_on=gate.to_dict(),
        learned=len(search.learned), refused=len(search.rejected), held_out=len(held_out),
    )  # fmt: skip
    return _add_version(registry, version, search, outcome, used) if search.learned else outcome


def _add_version(
    registry: VersionRegistry, parent: Version, search: CandidateSearch, outcome: Outcome, used: int
) -> Outcome:
    """Serve the best candidate as a new version."""
    check = {name: getattr(outcome, name) for name in ("before", "after", "checked_on", "learned", "refused")}
    if outcome.comparison is not None:
        check["comparison"] = {name: value for name, value in outcome.comparison.items() if name != "worse"}
    try:
        version = registry.add(
            search.best.ranker, outcome.said, check, learned_through=outcome.looked_through, parent=parent.number
        )
    except DataError as error:  # a rollback happened meanwhile, or the disk is full: nothing was learned
        return replace(outcome, outcome="failed", said=str(error), looked_through=used, after=None, learned=0)
    return replace(outcome, version=version.number)


def _comparison(gate: Gate, before: Candidate, after: Candidate) -> dict[str, Any] | None:
    if gate.judgments is None or after is before:
        return None
    return gate.judgments.compare(before.ranker, after.ranker).to_dict(most=MAX_WORSE_QUERIES)


def _new_feedback(store: FeedbackStore, used: int) -> list[Feedback]:
    """Return new feedback about at most MAX_QUERIES_PER_ROUND queries."""
    new: list[Feedback] = []
    queries: set[str] = set()
    for feedback in store.since(used):
        queries.add(normalize_query(feedback.query))
        if len(queries) > MAX_QUERIES_PER_ROUND:
            break
        new.append(feedback)
    return new


def _summary(search: CandidateSearch, before: GateScores) -> tuple[str, str]:
    """Return the outcome as a word and as a sentence."""
    learned, rejected = len(search.learned), len(search.rejected)
    if learned:
        change = f"{before.training:.3f} → {search.best.scores.training:.3f}"
        rest = f"; {_queries(rejected)} could not be learned" if rejected else ""
        return "learned", f"learned from {_queries(learned)}: agreement with users {change}{rest}"
    if not rejected:
        return "nothing", "all new feedback is held out, or the model ranks as the users want"
    if search.nearest is None:
        return "refused", f"no candidate ranks {_queries(rejected)} better"
    worse = _worse_scores(before, search.nearest.scores)
    return "refused", f"learning from {_queries(rejected)} would make held-out queries worse: {worse}"


def _worse_scores(before: GateScores, after: GateScores) -> str:
    scores = (
        ("nDCG@10 of judgments", before.judgments, after.judgments),
        ("of queries without feedback", before.others, after.others),
        ("agreement with users", before.feedback, after.feedback),
    )
    return ", ".join(
        f"{name} {old:.5f} → {new:.5f}"
        for name, old, new in scores
        if old is not None and new is not None and new < old
    )


def _queries(n: int) -> str:
    return f"{n} quer{'y' if n == 1 else 'ies'}"


def _too_few(held_out: int) -> str:
    return (
        f"{held_out} held-out queries have feedback, and the gate needs {MIN_HELD_OUT_QUERIES}; "
        "with held-out judgments (--held-out) learning starts at once"
    )
