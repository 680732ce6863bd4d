"""LETOR files on the command line: rankers of graded rows, trained, measured, and taken through five folds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError, DataError
from .output import phase, print_json, print_table, progress

if TYPE_CHECKING:
    from ..data.records import Fold, Letor
    from ..letor.model_selection import TunedRanker


def train_rows(
    data: str | None, output: Path, ranker: str, vali: Path | None, folds: Path | None, given: Sequence[str],
    measure: str, seed: int, as_json: bool,
) -> None:  # fmt: skip
    """`sparserank train` for a ranker of graded rows."""
    settings = _settings(given)
    if folds is not None:
        if data is not None or vali is not None:
            raise ConfigError("--folds brings its own training and validation files; give no DATA and no --vali")
        train_folds(folds, output, ranker, settings, measure, seed, as_json)
        return
    if data is None:
        raise ConfigError(f"--ranker {ranker} learns from a LETOR file: give one, or --folds DIR")
    from ..data.files import check_writable
    from ..data.open import open_letor
    from ..letor.model_selection import tune

    started = perf_counter()
    check_writable(output)
    with phase(f"reading {data}"):
        rows = open_letor(data)
        held = None if vali is None else open_letor(vali, n_features=rows.X.shape[1], zero_based=rows.zero_based)
    with progress() as report:
        chosen = tune(ranker, rows, held, measure=measure, fixed=settings, random_state=seed, callback=report)
    chosen.ranker.zero_based_ = rows.zero_based
    chosen.ranker.save(output)
    summary = {
        "model": str(output),
        "data": data,
        "queries": len(set(rows.qid.tolist())),
        **_told(ranker, chosen, measure),
    }
    summary |= {"rows": len(rows), "features": rows.X.shape[1], "seconds": round(perf_counter() - started, 3)}
    if as_json:
        print_json(summary)
        return
    print(
        f"{ranker} on {summary['rows']:,} rows, {summary['queries']:,} queries and {summary['features']:,} features of "
        f"{data} in {summary['seconds']:.1f} s: {output}\n{_sentence(chosen, measure, vali)}"
    )


def train_folds(
    folder: Path, output: Path, ranker: str, settings: dict[str, Any], measure: str, seed: int, as_json: bool
) -> None:
    """Learn on every fold's training part, choose on its validation part, and measure on its test part."""
    from ..letor.model_selection import tune

    folds = _folds(folder)
    output.mkdir(parents=True, exist_ok=True)
    told, started = [], perf_counter()
    with progress() as report:
        for number, fold in enumerate(folds, start=1):

            def of_fold(message: str, number: int = number) -> None:
                report(f"fold {number} of {len(folds)}: {message}")

            chosen = tune(
                ranker, fold.train, fold.vali, measure=measure, fixed=settings, random_state=seed, callback=of_fold
            )
            chosen.ranker.zero_based_ = fold.train.zero_based
            chosen.ranker.save(output / f"fold{number}.safetensors")
            told.append(_told(ranker, chosen, measure))
    scores = _scored(output, folds)
    shown = _measured(scores, [fold.test for fold in folds], measure, seed)
    summary = {"models": str(output), "folds": told, "seconds": round(perf_counter() - started, 3), **shown}
    if as_json:
        print_json(summary)
        return
    print(f"{ranker} on {len(folds)} folds of {folder} in {summary['seconds']:.1f} s: {output}/fold1.safetensors, …")
    _print_measures(shown, f"{ranker}, test parts of {len(folds)} folds")


def evaluate_rows(model: Path, data: str | None, folds: Path | None, measures: str, seed: int, as_json: bool) -> None:
    """`sparserank evaluate` for a model of graded rows, or for a folder of one model a fold."""
    if folds is not None:
        if data is not None:
            raise ConfigError("--folds brings its own test files; give no DATA")
        if not model.is_dir():
            raise DataError(f"{model}: with --folds, MODEL is the folder that `sparserank train --folds` wrote")
        parts = _folds(folds)
        rows, scores, about = [fold.test for fold in parts], _scored(model, parts), str(folds)
    else:
        if data is None:
            raise ConfigError("give the LETOR file to measure on, or --folds DIR")
        from ..base.registry import load
        from ..data.open import open_letor

        ranker: Any = load(model)
        with phase(f"reading {data}"):
            from_zero: Any = getattr(ranker, "zero_based_", "auto")
            rows = [open_letor(data, n_features=ranker.n_features_in_, zero_based=from_zero)]
        scores, about = [ranker.predict(rows[0].X)], data
    shown = _measured(scores, rows, measures, seed)
    if as_json:
        print_json({"model": str(model), "data": about, "seed": seed} | shown)
    else:
        _print_measures(shown, f"{model.name} on {about}")


def _folds(folder: Path) -> tuple[Fold, ...]:
    from ..data.open import open_folds

    with phase(f"reading {folder}"):
        return open_folds(folder)


def _scored(models: Path, folds: Sequence[Fold]) -> list[Any]:
    from ..base.registry import load

    rankers: list[Any] = [load(models / f"fold{number}.safetensors") for number in range(1, len(folds) + 1)]
    return [ranker.predict(fold.test.X) for ranker, fold in zip(rankers, folds, strict=True)]


def _measured(scores: Sequence[Any], parts: Sequence[Letor], measures: str, seed: int) -> dict[str, Any]:
    """Each measure over the queries of all parts, with its interval; of several parts, the value of each as well."""
    import numpy as np

    from ..evaluation import evaluate_rows as evaluate

    qid = np.concatenate([[f"{number}:{q}" for q in part.qid.tolist()] for number, part in enumerate(parts, start=1)])
    grades = np.concatenate([part.y for part in parts])
    everything = evaluate(np.concatenate(scores), grades, qid, measures, random_state=seed)
    shown: dict[str, Any] = {"queries": len(everything.queries), "measures": everything.to_dict()}
    if len(parts) > 1:
        pairs = zip(scores, parts, strict=True)
        each = [evaluate(s, part.y, part.qid, measures, random_state=seed) for s, part in pairs]
        by_fold = {name: [one.estimates[name].value for one in each] for name in everything.estimates}
        shown["by_fold"] = by_fold
        shown["mean_of_folds"] = {name: float(np.mean(values)) for name, values in by_fold.items()}
    return shown


def _print_measures(shown: dict[str, Any], title: str) -> None:
    head = ["measure", "value", "95 % interval"] + (["mean of folds"] if "by_fold" in shown else [])
    rows = [
        [name, f"{found['value']:.4f}", f"{found['low']:.4f} to {found['high']:.4f}"]
        + ([f"{shown['mean_of_folds'][name]:.4f}"] if "by_fold" in shown else [])
        for name, found in shown["measures"].items()
    ]
    print_table(f"{title}, {shown['queries']:,} queries", head, rows, right=(1,))


def _told(ranker: str, chosen: TunedRanker, measure: str) -> dict[str, Any]:
    score = chosen.validation_score
    validation = {} if score is None else {"chosen_on": measure, "validation": score}
    return {"ranker": ranker, "settings": chosen.settings} | validation


def _sentence(chosen: TunedRanker, measure: str, vali: Path | None) -> str:
    settings = ", ".join(f"{name}={value}" for name, value in chosen.settings.items()) or "defaults"
    where = "held-out queries" if vali is None else vali
    score = chosen.validation_score
    return settings if score is None else f"chosen by {measure} {score:.4f} on {where}: {settings}"


def _settings(given: Sequence[str]) -> dict[str, Any]:
    """["C=0.1", "average=true"] as settings: numbers, true, false, none, or text."""
    found: dict[str, Any] = {}
    plain: dict[str, Any] = {"true": True, "false": False, "none": None}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise ConfigError(f"a setting is NAME=VALUE; got {one!r}")
        found[name] = plain[value.lower()] if value.lower() in plain else _number(value)
    return found


def _number(value: str) -> Any:
    readers: tuple[Callable[[str], Any], ...] = (int, float)
    for read in readers:
        with suppress(ValueError):
            return read(value)
    return value
