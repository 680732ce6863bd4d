"""Tuning of LETOR rankers on validation data: the grid of each ranker by name, and the best settings of it.

Boosting is trained once and evaluated after several numbers of rounds. Nothing here sees a test part.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from ..base.registry import RANKERS, ranker_class
from ..data.records import Letor
from ..errors import ConfigError, DataError
from ..evaluation.measures import parse
from ..validation import choice
from .base import BoostedRanker, LetorRanker, measure_by_query

Settings = dict[str, Any]
VALIDATION_SHARE = 5
"""Without a validation part, one query of this many is held out."""
_ROUNDS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300)
_ADARANK_ROUNDS = tuple(n for n in _ROUNDS if n <= 100)
_ALPHAS = (0.3, 1.0, 3.0, 10.0, 30.0)


@dataclass(frozen=True)
class Grid:
    """Settings that a ranker always has, and the candidates that are compared."""

    fixed: Settings = field(default_factory=dict)
    candidates: tuple[Settings, ...] = ()


def _grid(**values: Sequence[Any]) -> tuple[Settings, ...]:
    return tuple(dict(zip(values, one, strict=True)) for one in product(*values.values()))


GRIDS: dict[str, Grid] = {
    "domination": Grid({"tol": 1e-3}, _grid(alpha=_ALPHAS)),
    "domination-base": Grid({"tol": 1e-3, "loss": "base"}, _grid(alpha=_ALPHAS)),
    "domination-margin": Grid(
        {"tol": 1e-3}, tuple({"alpha": alpha, "margin": margin} for margin in (0.1, 0.3, 1.0) for alpha in _ALPHAS)
    ),
    "pamir": Grid({"average": True}, _grid(C=(0.001, 0.01, 0.1, 1.0))),
    "ranksvm": Grid({}, _grid(C=(1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0))),
    "adarank": Grid({"measure": "AP"}, _grid(max_iter=_ADARANK_ROUNDS)),
    "adarank-ndcg": Grid({"measure": "nDCG"}, _grid(cutoff=(10, 5, 3, 1), max_iter=_ADARANK_ROUNDS)),
    "rankboost": Grid({}, _grid(max_iter=_ROUNDS)),
    "rbf": Grid({}, _grid(n_basis=(100,), width=(3.0, 10.0, 30.0, 100.0, 300.0))),
}
"""The grids of the rankers of the registry; a ranker without one is trained with its defaults."""


@dataclass(frozen=True)
class TunedRanker:
    """A fitted ranker, its settings, and its measure on validation data (None if nothing was compared)."""

    ranker: LetorRanker
    settings: Settings
    validation_score: float | None


def tune(
    name: str,
    train: Letor,
    validation: Letor | None = None,
    *,
    measure: str = "nDCG@10",
    fixed: Mapping[str, Any] | None = None,
    candidates: Sequence[Mapping[str, Any]] | None = None,
    random_state: int = 0,
    callback: Callable[[str], None] = lambda message: None,
) -> TunedRanker:
    """Fit the ranker of that name with the settings that are best on `validation`.

    Without a validation part, queries held out of `train` take its place, and the best settings are fitted to all of
    `train` at the end. `fixed` settings are not compared; if no candidate is left, no query is held out. `candidates`
    replace the grid.
    """
    ranker_type = ranker_class("letor", choice("ranker", name, tuple(RANKERS["letor"])))
    grid = GRIDS.get(name, Grid())
    known = ranker_type().get_params()
    settings = grid.fixed | ({"random_state": random_state} if "random_state" in known else {}) | dict(fixed or {})
    trials = [dict(one) for one in (grid.candidates if candidates is None else candidates)]
    for one in (settings, *trials):
        _check_known(ranker_type, one, known)
    trials = [one for one in trials if not one.keys() & settings.keys()]
    with warnings.catch_warnings():
        # Settings that do not converge are compared like any other; their validation score decides.
        warnings.simplefilter("ignore", ConvergenceWarning)
        if not trials:
            callback(name)
            return TunedRanker(_fit(ranker_type, settings, train), settings, None)
        part, held = (train, validation) if validation is not None else held_out(train)
        sign = -1.0 if parse(measure).lower_is_better else 1.0
        results = []
        for number, (trial, ranker, scores) in enumerate(_run_trials(ranker_type, settings, trials, part, held), 1):
            value = measure_by_query(held.y, scores, qid=held.qid, measure=measure)
            spelled = ", ".join(f"{key}={one}" for key, one in trial.items())
            callback(f"{name}: {spelled} ({number} of {len(trials)}), {measure} {value:.4f}")
            results.append((sign * value, trial, ranker))
        best, trial, ranker = max(results, key=lambda one: one[0])
        settings |= trial
        if validation is None or ranker.get_params() != ranker.get_params() | settings:
            ranker = _fit(ranker_type, settings, train)
        return TunedRanker(ranker, settings, sign * best)


def held_out(train: Letor) -> tuple[Letor, Letor]:
    """All rows but those of every fifth query, in the order of their ids, and the rows of these."""
    names, query = np.unique(train.qid, return_inverse=True)
    if len(names) < 2:
        raise DataError("tuning needs two queries at least; give the settings, or a validation file")
    held = query % VALIDATION_SHARE == min(VALIDATION_SHARE, len(names)) - 1
    return _select(train, ~held), _select(train, held)


def _select(rows: Letor, keep: NDArray[np.bool_]) -> Letor:
    return Letor(rows.X[keep], rows.y[keep], rows.qid[keep])


def _check_known(ranker_type: type[Any], settings: Settings, known: Settings) -> None:
    for name in settings:
        if name not in known:
            raise ConfigError(f"{ranker_type.__name__} has no setting {name!r}; it has: {', '.join(known)}")


def _fit(ranker_type: type[Any], settings: Settings, rows: Letor) -> LetorRanker:
    ranker: LetorRanker = ranker_type(**settings)
    return ranker.fit(rows.X, rows.y, rows.qid)


def _run_trials(
    ranker_type: type[Any], settings: Settings, trials: Sequence[Settings], part: Letor, held: Letor
) -> Iterator[tuple[Settings, LetorRanker, NDArray[np.float64]]]:
    """Every trial, a ranker fitted with it, and its scores; boosting is fitted once, for the most rounds."""
    if not issubclass(ranker_type, BoostedRanker):
        for trial in trials:
            ranker = _fit(ranker_type, settings | trial, part)
            yield trial, ranker, ranker.predict(held.X)
        return
    most_rounds = max(trial.get("max_iter", 1) for trial in trials)
    fitted: dict[str, Any] = {}
    for trial in trials:
        others = {name: value for name, value in trial.items() if name != "max_iter"}
        if repr(others) not in fitted:
            fitted[repr(others)] = _fit(ranker_type, {"max_iter": most_rounds} | settings | others, part)
        boosted = fitted[repr(others)]
        yield trial, boosted, boosted.predict_after(held.X, trial.get("max_iter", boosted.max_iter))
