"""The trial of a candidate: interleaved searches, the tally of their clicks, and promotion."""

from __future__ import annotations

import logging
import threading
from typing import Any

from ..errors import FilterError, SparseRankError
from ..search import Hit
from ..versions import Version
from ..versions.manifest import Trial
from ..versions.trials import current_trial, promote, withdraw
from .click_limits import ClickLimits
from .interleaving import ClickCount, Tally, seed, takes_part, team_draft, teams
from .reloader import LoadedModel, LoadedTrial, ModelReloader
from .store import FeedbackStore

log = logging.getLogger(__name__)

CHECK_INTERVAL_S = 5.0
"""Time between two looks for new clicks of a rule."""
CLICKS_PER_READ = 10_000


class TrialObserver:
    """Counts the clicks of the trial that runs, and promotes the candidate by a rule.

    The rule looks once, at the first `promote_after` impressions that one of the two versions won: if the candidate won
    more of them and the p-value of the sign test is below `promote_level`, it is served; otherwise the trial ends. One
    look at a number that was fixed before keeps the level.
    """

    _count: ClickCount | None

    def __init__(
        self, reloader: ModelReloader, store: FeedbackStore, promote_after: int | None, promote_level: float,
        limits: ClickLimits,
    ) -> None:  # fmt: skip
        self._reloader, self._store = reloader, store
        self._promote_after, self._promote_level = promote_after, promote_level
        self._limits, self._count = limits, None
        self._counting, self._stopped = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start to look for clicks, if there is a rule."""
        if self._promote_after is not None:
            self._thread = threading.Thread(target=self._watch, name="trial", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def state(self) -> dict[str, Any] | None:
        """Return the trial with its tally, for JSON; None if there is none."""
        found = self._refresh()
        if found is None:
            return None
        trial, count = found
        rule = None
        if self._promote_after is not None:
            rule = {"after": self._promote_after, "level": self._promote_level}
        return {"candidate": trial.version, "share": trial.share, "since": trial.since, "rule": rule,
                **count.tally.to_dict()}  # fmt: skip

    def promote(self, candidate: int | None) -> Version:
        """Serve the candidate; its version records the tally."""
        return self._end(candidate, promoted=True, result=self.state())

    def withdraw(self, candidate: int | None) -> Version:
        """End the trial; the served version stays."""
        return self._end(candidate, promoted=False)

    def _end(self, candidate: int | None, promoted: bool, result: dict[str, Any] | None = None) -> Version:
        registry = self._reloader.registry
        version = promote(registry, candidate, result) if promoted else withdraw(registry, candidate)
        self._reloader.reload()
        return version

    def _refresh(self) -> tuple[Trial, ClickCount] | None:
        """Count the clicks that are new."""
        registry = self._reloader.registry
        with self._counting:
            trial = current_trial(registry)
            if trial is None:
                self._count = None
                return None
            key = registry.current().number, trial.version, trial.since
            if self._count is None or self._count.trial != key:
                self._count = ClickCount(*key, look_after=self._promote_after, limits=self._limits)
            while new := self._store.since(self._count.last, CLICKS_PER_READ):
                for click in new:
                    self._count.add(click)
            return trial, self._count

    def _watch(self) -> None:
        while not self._stopped.wait(CHECK_INTERVAL_S):
            try:
                self.apply_rule()
            except (SparseRankError, OSError) as error:
                log.warning("the trial was not decided: %s", error)

    def apply_rule(self) -> None:
        """Promote or withdraw the candidate if its number of impressions is reached."""
        found = self._refresh()
        if found is None or found[1].at_look is None or self._reloader.registry.writable is False:
            return
        trial, tally = found[0], found[1].at_look
        won = tally.wins > tally.losses and tally.p_value < self._promote_level
        result = {**tally.to_dict(), "rule": {"after": self._promote_after, "level": self._promote_level}}
        self._end(trial.version, promoted=won, result=result)
        log.info("version %d is %s: %s", trial.version, "served" if won else "not served", describe(tally))


def describe(tally: Tally) -> str:
    """Return a tally as a sentence.

    >>> describe(Tally(wins=30, losses=10, ties=2))
    'it won 30 of 40 decided impressions (75 %, 60 to 86 %; p = 0.0022)'
    """
    low, high = tally.interval
    return (
        f"it won {tally.wins} of {tally.decided} decided impressions ({100 * tally.share:.0f} %, {100 * low:.0f} to "
        f"{100 * high:.0f} %; p = {tally.p_value:.2g})"
    )


class Interleaved:
    """The results of a search in which a candidate takes part, and who picked each.

    `served` are the results of the served model alone, `hits` those from `offset` on, `models` the models that rank
    them, `drafted` the number of positions of the whole list that were picked in turn; the rest of the list is that of
    the longer ranking.
    """

    def __init__(self, served: LoadedModel, trial: LoadedTrial, seed: bytes, query: str, k: int, offset: int,
                 **options: Any) -> None:  # fmt: skip
        models, self.seed = (served, trial.model), seed
        counted = {name: options.pop(name) for name in ("facets", "total") if name in options}
        rankings = [
            model.ranker.search(query, k + offset, **options, **({} if team else counted))
            for team, model in enumerate(models)
        ]
        self.served = rankings[0]
        by_id = [{hit.id: hit for hit in ranking} for ranking in rankings]
        drafted = team_draft(list(by_id[0]), list(by_id[1]), teams(seed, k + offset))
        self.candidate, self.drafted = trial.model.version.number, len(drafted)
        known = {id for id, _ in drafted}
        rest = [(id, team) for team, ids in enumerate(by_id) for id in ids if id not in known]
        rows = (drafted + rest)[offset : offset + k]
        self.hits: list[Hit] = [by_id[team][id] for id, team in rows]
        self.models = [models[team] for _, team in rows]

    @classmethod
    def draw(cls, served: LoadedModel, trial: LoadedTrial | None, key: bytes, client: str, now: float,
             query: str, k: int, offset: int, **options: Any) -> Interleaved | None:  # fmt: skip
        """Return the interleaved results, or None if this impression does not take part."""
        if trial is None or trial.trial.version == served.version.number:
            return None
        drawn = seed(key, query, options.get("filter"), client, now)
        if not takes_part(drawn, trial.trial.share):
            return None
        try:
            return cls(served, trial, drawn, query, k, offset, **options)
        except FilterError:  # the candidate may lack a field that the served version has
            return None
