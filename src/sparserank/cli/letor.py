"""`sparserank train` and `sparserank evaluate` for LETOR files, with cross-validation over folds."""

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
    data: str | None, output: Path, ranker: str, vali: Path | None, folds: Path | None, assignments: Sequence[str],
    measure: str, seed: int, as_json: bool,
) -> None:  # fmt: skip
    """Train a LETOR ranker and save it."""
    settings = _parse_settings(assignments)
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
        validation = None if vali is None else open_letor(vali, n_features=rows.X.shape[1], zero_based=rows.zero_based)
    with progress() as report:
        tuned = tune(ranker, rows, validation, measure=measure, fixed=settings, random_state=seed, callback=report)
    tuned.ranker.zero_based_ = rows.zero_based
    tuned.ranker.save(output)
    summary = {
        "model": str(output),
        "data": data,
        "queries": len(set(rows.qid.tolist())),
        **_tuning_summary(ranker, tuned, measure),
    }
    summary |= {"rows": len(rows), "features": rows.X.shape[1], "seconds": round(perf_counter() - started, 3)}
    summary |= {"documents": len(rows), "pairs": _count_weights(tuned.ranker)}
    if as_json:
        print_json(summary)
        return
    print(
        f"{ranker} on {summary['rows']:,} rows, {summary['queries']:,} queries and {summary['features']:,} features of "
        f"{data} in {summary['seconds']:.1f} s: {output}\n{_describe_tuning(tuned, measure, vali)}"
    )


def train_folds(
    folder: Path, output: Path, ranker: str, settings: dict[str, Any], measure: str, seed: int, as_json: bool
) -> None:
    """Train on each fold's training file, tune on its validation file and evaluate on its test file."""
    from ..letor.model_selection import tune

    folds = _open_folds(folder)
    output.mkdir(parents=True, exist_ok=True)
    summaries, started = [], perf_counter()
    with progress() as report:
        for number, fold in enumerate(folds, start=1):

            def report_fold(message: str, number: int = number) -> None:
                report(f"fold {number} of {len(folds)}: {message}")

            tuned = tune(
                ranker, fold.train, fold.vali, measure=measure, fixed=settings, random_state=seed, callback=report_fold
            )
            tuned.ranker.zero_based_ = fold.train.zero_based
            tuned.ranker.save(output / f"fold{number}.safetensors")
            sizes = {"documents": len(fold.train), "pairs": _count_weights(tuned.ranker)}
            summaries.append(_tuning_summary(ranker, tuned, measure) | sizes)
    figures = _evaluate(_predict(output, folds), [fold.test for fold in folds], measure, seed)
    summary = {"models": str(output), "folds": summaries, "seconds": round(perf_counter() - started, 3), **figures}
    summary |= {"documents": sum(len(fold.test) for fold in folds), "pairs": sum(one["pairs"] for one in summaries)}
    if as_json:
        print_json(summary)
        return
    print(f"{ranker} on {len(folds)} folds of {folder} in {summary['seconds']:.1f} s: {output}/fold1.safetensors, …")
    _print_measures(figures, f"{ranker}, test parts of {len(folds)} folds")


def evaluate_rows(model: Path, data: str | None, folds: Path | None, measures: str, seed: int, as_json: bool) -> None:
    """Evaluate a LETOR model, or a folder with one model per fold."""
    if folds is not None:
        if data is not None:
            raise ConfigError("--folds brings its own test files; give no DATA")
        if not model.is_dir():
            raise DataError(f"{model}: with --folds, MODEL is the folder that `sparserank train --folds` wrote")
        parts = _open_folds(folds)
        rows, scores, about = [fold.test for fold in parts], _predict(model, parts), str(folds)
    else:
        if data is None:
            raise ConfigError("give the LETOR file to measure on, or --folds DIR")
        from ..base.registry import load
        from ..data.open import open_letor

        ranker: Any = load(model)
        with phase(f"reading {data}"):
            zero_based: Any = getattr(ranker, "zero_based_", "auto")
            rows = [open_letor(data, n_features=ranker.n_features_in_, zero_based=zero_based)]
        scores, about = [ranker.predict(rows[0].X)], data
    figures = _evaluate(scores, rows, measures, seed)
    if as_json:
        print_json({"model": str(model), "data": about, "seed": seed} | figures)
    else:
        _print_measures(figures, f"{model.name} on {about}")


def _open_folds(folder: Path) -> tuple[Fold, ...]:
    from ..data.open import open_folds

    with phase(f"reading {folder}"):
        return open_folds(folder)


def _predict(models: Path, folds: Sequence[Fold]) -> list[Any]:
    from ..base.registry import load

    rankers: list[Any] = [load(models / f"fold{number}.safetensors") for number in range(1, len(folds) + 1)]
    return [ranker.predict(fold.test.X) for ranker, fold in zip(rankers, folds, strict=True)]


def _evaluate(scores: Sequence[Any], parts: Sequence[Letor], measures: str, seed: int) -> dict[str, Any]:
    """Return each measure and its interval over the queries of all parts; of several parts, also its value in each."""
    import numpy as np

    from ..evaluation import evaluate_rows as evaluate

    qid = np.concatenate([[f"{number}:{q}" for q in part.qid.tolist()] for number, part in enumerate(parts, start=1)])
    grades = np.concatenate([part.y for part in parts])
    pooled = evaluate(np.concatenate(scores), grades, qid, measures, random_state=seed)
    figures: dict[str, Any] = {"queries": len(pooled.queries), "measures": pooled.to_dict()}
    if len(parts) > 1:
        pairs = zip(scores, parts, strict=True)
        each = [evaluate(s, part.y, part.qid, measures, random_state=seed) for s, part in pairs]
        by_fold = {name: [one.estimates[name].value for one in each] for name in pooled.estimates}
        figures["by_fold"] = by_fold
        figures["mean_of_folds"] = {name: float(np.mean(values)) for name, values in by_fold.items()}
    return figures


def _print_measures(figures: dict[str, Any], title: str) -> None:
    head = ["measure", "value", "95 % interval"] + (["mean of folds"] if "by_fold" in figures else [])
    rows = [
        [name, f"{one['value']:.4f}", f"{one['low']:.4f} to {one['high']:.4f}"]
        + ([f"{figures['mean_of_folds'][name]:.4f}"] if "by_fold" in figures else [])
        for name, one in figures["measures"].items()
    ]
    print_table(f"{title}, {figures['queries']:,} queries", head, rows, right=(1,))


def _count_weights(ranker: Any) -> int:
    """The number of weights of a ranker that are not 0: of features, of basis functions or of stumps."""
    weights = ranker.coef_ if hasattr(ranker, "coef_") else ranker.stumps_.alpha
    return int((weights != 0.0).sum())


def _tuning_summary(ranker: str, tuned: TunedRanker, measure: str) -> dict[str, Any]:
    score = tuned.validation_score
    validation = {} if score is None else {"chosen_on": measure, "validation": score}
    return {"ranker": ranker, "settings": tuned.settings} | validation


def _describe_tuning(tuned: TunedRanker, measure: str, vali: Path | None) -> str:
    settings = ", ".join(f"{name}={value}" for name, value in tuned.settings.items()) or "defaults"
    where = "held-out queries" if vali is None else vali
    score = tuned.validation_score
    return settings if score is None else f"chosen by {measure} {score:.4f} on {where}: {settings}"


def _parse_settings(assignments: Sequence[str]) -> dict[str, Any]:
    """Parse ["C=0.1", "average=true"]; a value is a number, true, false, none, or text."""
    settings: dict[str, Any] = {}
    constants: dict[str, Any] = {"true": True, "false": False, "none": None}
    for one in assignments:
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise ConfigError(f"--set must be NAME=VALUE; got {one!r}")
        settings[name] = constants[value.lower()] if value.lower() in constants else _parse_number(value)
    return settings


def _parse_number(value: str) -> Any:
    readers: tuple[Callable[[str], Any], ...] = (int, float)
    for read in readers:
        with suppress(ValueError):
            return read(value)
    return value
