"""Settings chosen on validation data: for each ranker by name, the settings worth trying, and the best of them.

Boosting is tried once and looked at after some of its rounds. Nothing here sees a test part.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from .. import validation
from ..data.records import Letor
from ..errors import ConfigError, DataError
from ..evaluation.measures import parse
from .adarank import AdaRank
from .base import ByQueryRanker, measure_by_query
from .domination import DominationRanker
from .pamir import PAMIR
from .rankboost import RankBoost
from .ranksvm import RankSVM
from .rbf import RBFRegressionRanker

Settings = dict[str, Any]
Tell = Callable[[str], None]
HELD_OUT = 5
"""Without a validation part, one query of so many is held out to choose on."""
_ROUNDS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300)
_ALPHAS = (0.3, 1.0, 3.0, 10.0, 30.0)


@dataclass(frozen=True)
class Kind:
    """A ranker by its name: how it is made, what is always set, and what is tried."""

    make: type[Any]
    always: Settings
    tried: tuple[Settings, ...]
    drawn: bool = False


def _each(name: str, values: tuple[Any, ...], **more: Any) -> tuple[Settings, ...]:
    return tuple({name: value} | more for value in values)


_MARGINS = tuple(entry for margin in (0.1, 0.3, 1.0) for entry in _each("alpha", _ALPHAS, margin=margin))
KINDS_BY_NAME: dict[str, Kind] = {
    "domination": Kind(DominationRanker, {"tol": 1e-3}, _each("alpha", _ALPHAS)),
    "domination-base": Kind(DominationRanker, {"tol": 1e-3, "loss": "base"}, _each("alpha", _ALPHAS)),
    "domination-margin": Kind(DominationRanker, {"tol": 1e-3}, _MARGINS),
    "pamir": Kind(PAMIR, {"average": True}, _each("C", (0.001, 0.01, 0.1, 1.0)), drawn=True),
    "ranksvm": Kind(RankSVM, {}, _each("C", (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0))),
    "adarank": Kind(AdaRank, {"measure": "map"}, _each("max_iter", tuple(n for n in _ROUNDS if n <= 100))),
    "adarank-ndcg": Kind(
        AdaRank,
        {"measure": "ndcg"},
        tuple({"cutoff": k, "max_iter": n} for k in (10, 5, 3, 1) for n in _ROUNDS if n <= 100),
    ),
    "rankboost": Kind(RankBoost, {}, _each("max_iter", _ROUNDS)),
    "rbf": Kind(
        RBFRegressionRanker,
        {},
        tuple({"n_basis": 100, "width": w} for w in (3.0, 10.0, 30.0, 100.0, 300.0)),
        drawn=True,
    ),
}
"""The rankers that learn from graded rows, by the names the command line knows."""


@dataclass(frozen=True)
class Chosen:
    """A ranker that was fitted, the settings it has, and what they were worth in validation (None: not tried)."""

    ranker: ByQueryRanker
    settings: Settings
    worth: float | None


def choose(
    name: str,
    train: Letor,
    vali: Letor | None = None,
    *,
    measure: str = "nDCG@10",
    given: Mapping[str, Any] | None = None,
    tried: Sequence[Mapping[str, Any]] | None = None,
    seed: int = 0,
    tell: Tell = lambda message: None,
) -> Chosen:
    """Fit the ranker of that name with the settings that are best on `vali`.

    Without a validation part, queries held out of `train` take its place, and the best settings are fitted to all of
    `train` in the end. `given` settings are not tried but taken as they are; where they are all that would be tried,
    nothing is held out. `tried` replaces the settings that are tried by default.
    """
    kind = KINDS_BY_NAME[validation.choice("ranker", name, tuple(KINDS_BY_NAME))]
    fixed = kind.always | ({"random_state": seed} if kind.drawn else {}) | _known(kind, given or {})
    grid = kind.tried if tried is None else [_known(kind, settings) for settings in tried]
    trials: list[Settings] = [settings for settings in grid if not settings.keys() & fixed.keys()] or [{}]
    with warnings.catch_warnings():
        # settings that come to no end are tried like any other; what they are worth decides
        warnings.simplefilter("ignore", ConvergenceWarning)
        if trials == [{}]:
            tell(name)
            return Chosen(_fitted(kind, fixed, train), fixed, None)
        part, held = (train, vali) if vali is not None else held_out(train)
        sign = -1.0 if parse(measure).lower_is_better else 1.0
        found = []
        for number, (settings, ranker, scores) in enumerate(_trials(kind, fixed, trials, part, held), start=1):
            worth = measure_by_query(held.y, scores, qid=held.qid, measure=measure)
            tell(f"{name}: {_spelled(settings)} ({number} of {len(trials)}), {measure} {worth:.4f}")
            found.append((sign * worth, settings, ranker))
        best = max(found, key=lambda one: one[0])
        settings = fixed | best[1]
        again = vali is None or best[2].get_params() != best[2].get_params() | settings
        ranker = _fitted(kind, settings, train) if again else best[2]
        return Chosen(ranker, settings, sign * best[0])


def held_out(train: Letor) -> tuple[Letor, Letor]:
    """The rows of every fifth query, in the order of their names, apart from the others."""
    names, query = np.unique(train.qid, return_inverse=True)
    if len(names) < 2:
        raise DataError("choosing settings needs two queries at least; give the settings, or a validation file")
    held = query % HELD_OUT == min(HELD_OUT, len(names)) - 1
    return _rows(train, ~held), _rows(train, held)


def _rows(letor: Letor, keep: NDArray[np.bool_]) -> Letor:
    return Letor(letor.X[keep], letor.y[keep], letor.qid[keep])


def _known(kind: Kind, given: Mapping[str, Any]) -> Settings:
    there: Settings = kind.make().get_params()
    for name in given:
        if name not in there:
            raise ConfigError(f"{kind.make.__name__} has no setting {name!r}; it has: {', '.join(there)}")
    return dict(given)


def _fitted(kind: Kind, settings: Settings, rows: Letor) -> ByQueryRanker:
    ranker: ByQueryRanker = kind.make(**settings)
    return ranker.fit(rows.X, rows.y, rows.qid)


def _trials(
    kind: Kind, fixed: Settings, tried: Sequence[Settings], part: Letor, held: Letor
) -> Iterator[tuple[Settings, ByQueryRanker, NDArray[np.float64]]]:
    """Every setting, a ranker fitted with it, and its scores; boosting is fitted once, for all its rounds."""
    if issubclass(kind.make, AdaRank | RankBoost):
        longest = max(settings.get("max_iter", 1) for settings in tried)
        fitted: dict[str, Any] = {}
        for settings in tried:
            rest = {name: value for name, value in settings.items() if name != "max_iter"}
            if repr(rest) not in fitted:
                fitted[repr(rest)] = _fitted(kind, {"max_iter": longest} | fixed | rest, part)
            ranker = fitted[repr(rest)]
            yield settings, ranker, ranker.predict_after(held.X, settings.get("max_iter", ranker.max_iter))
        return
    for settings in tried:
        ranker = _fitted(kind, fixed | settings, part)
        yield settings, ranker, ranker.predict(held.X)


def _spelled(settings: Settings) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())
