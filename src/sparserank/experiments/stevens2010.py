"""Stevens et al., *Efficient Learning of Sparse Ranking Functions* (2010): its three tables, on public data.

Table 1.1 uses LETOR data sets, the five-fold protocol and the measures of LETOR 4.0. Tables 1.2 and 1.3 learn one w per
topic: MNIST replaces an image collection that was never published, RCV1 is a part of the paper's. Settings are chosen
on validation parts only. A seed always gives the same numbers, apart from the seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from time import perf_counter
from typing import Any

import numpy as np

from .. import validation
from ..data import load
from ..data.formats.letor_folds import FOLDS, fold_of_subsets
from ..data.records import Fold, Letor
from ..evaluation.runs import evaluate_rows
from ..letor.model_selection import tune
from .peers import lambdamart
from .published import TABLE_1_1, TABLE_1_1_METHODS
from .report import Section
from .runner import METHOD, Column, Progress, note, parameter_grid, table_of
from .stevens_topics import table_1_2, table_1_3

TITLE = "Efficient Learning of Sparse Ranking Functions (Stevens, Bengio, Singer)"
LETOR_DATASETS = ("mq2008", "ohsumed", "mq2007")
DATASETS = (*LETOR_DATASETS, "mnist", "rcv1")
MEASURES = "nDCG-letor4@10 nDCG-letor4@5 P@10 AP"
SELECTION_MEASURE = "nDCG-letor4@10"
LAMBDAMART = "LambdaMART (LightGBM)"
PARTIAL = {"mq2007": "partial: 59,135 of 69,623 rows, own folds; not comparable with published scores"}

_ALPHAS = (0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 100.0)
_ROUNDS = (1, 3, 5, 10, 20, 30, 50, 70, 100, 150, 200, 300)
_COSTS = (1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 1.0)
GRIDS: dict[str, list[dict[str, Any]]] = {
    "domination": parameter_grid(alpha=_ALPHAS),
    "domination-base": parameter_grid(alpha=_ALPHAS),
    "domination-margin": parameter_grid(alpha=(1.0, 3.0, 10.0, 30.0), margin=(0.1, 0.3, 1.0)),
    "adarank-ndcg": parameter_grid(cutoff=(10, 5, 3), max_iter=(10, 50, 100, 300)),
    "adarank": parameter_grid(max_iter=_ROUNDS),
    "rankboost": parameter_grid(max_iter=_ROUNDS),
    "ranksvm": parameter_grid(C=_COSTS),
    LAMBDAMART: parameter_grid(learning_rate=(0.02, 0.05, 0.1), num_leaves=(4, 7, 15, 31)),
}
"""Settings that each method of Table 1.1 tries on the validation part of each fold: equally many for each method.

Early stopping also chooses the number of rounds of LambdaMART.
"""


def reproduce(
    datasets: Sequence[str] = DATASETS,
    *,
    seed: int = 0,
    items: int | None = None,
    progress: Progress = lambda message: None,
) -> dict[str, Any]:
    """Reproduce the tables that use these data sets: LETOR for Table 1.1, mnist for Table 1.2, rcv1 for Table 1.3.

    seed : of samples and of methods that draw. items : use only this many items of mnist and rcv1, for a quick look.
    progress : called with a line of text at every phase.
    """
    validation.count("seed", seed)
    for name in datasets:
        validation.choice("dataset", name, DATASETS)
    result: dict[str, Any] = {"paper": "stevens2010", "seed": seed, "datasets": list(datasets)}
    letor = [name for name in LETOR_DATASETS if name in datasets]
    if letor:
        rows = {name: _evaluate_folds(name, load_folds(name), seed, progress) for name in letor}
        result |= {"table1_1": average_ranks(rows), "letor": rows}
    if "mnist" in datasets:
        result["table1_2"] = table_1_2(seed, items, progress)
    if "rcv1" in datasets:
        result["table1_3"] = table_1_3(seed, items, progress)
    return result | {"differs": _differences(letor, result)}


def load_folds(name: str) -> tuple[Fold, ...]:
    """The five folds; MQ2007, which comes without folds, is split by query, in the order of the first rows."""
    loaded = load(name)
    if isinstance(loaded, tuple):
        return loaded
    _, first, query = np.unique(loaded.qid, return_index=True, return_inverse=True)
    place = np.argsort(np.argsort(first))[query]
    subset = place * len(FOLDS) // len(first)
    parts = [Letor(loaded.X[subset == s], loaded.y[subset == s], loaded.qid[subset == s]) for s in range(len(FOLDS))]
    return tuple(fold_of_subsets(parts, number) for number in FOLDS)


def _evaluate_folds(name: str, folds: Sequence[Fold], seed: int, progress: Progress) -> list[dict[str, Any]]:
    """For each method: the mean over folds of each measure, and the chosen settings of each fold."""
    methods = TABLE_1_1_METHODS | ({LAMBDAMART: LAMBDAMART} if find_spec("lightgbm") is not None else {})
    rows = []
    for method, ranker in methods.items():
        started, evaluations, settings = perf_counter(), [], []
        for number, fold in enumerate(folds, start=1):
            progress(f"{name}: {method}, fold {number} of {len(folds)}")
            scores, chosen = _score_fold(ranker, fold, seed)
            evaluations.append(evaluate_rows(scores, fold.test.y, fold.test.qid, MEASURES))
            settings.append(chosen)
        means = {
            str(column.measure): float(np.mean([one.columns[k].mean for one in evaluations]))
            for k, column in enumerate(evaluations[0].columns)
        }
        seconds = round(perf_counter() - started, 3)
        tried = {"settings": settings, "settings_tried": len(GRIDS[ranker])}
        rows.append({"method": method, **means, **tried, "seconds": seconds})
    return rows


def _score_fold(ranker: str, fold: Fold, seed: int) -> tuple[Any, Mapping[str, Any]]:
    """Scores of the test part, and the settings that are best on the validation part."""
    if ranker == LAMBDAMART:
        return lambdamart(fold, seed, GRIDS[LAMBDAMART], SELECTION_MEASURE)
    chosen = tune(ranker, fold.train, fold.vali, measure=SELECTION_MEASURE, random_state=seed, candidates=GRIDS[ranker])
    return chosen.ranker.predict(fold.test.X), chosen.settings


def average_ranks(rows_by_dataset: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Table 1.1: for each measure, each method's rank among the paper's six, averaged over the data sets.

    Equal values share their rank. RankSVM and LightGBM get the rank that they would have beside the six.

    >>> values = zip(TABLE_1_1_METHODS, (3, 2, 1, 0, 0, 0, 9))
    >>> rows = average_ranks({"a": [{"method": method, "P@10": value} for method, value in values]})
    >>> [row["rank"] for row in rows if row["measure"] == "P@10"]
    [1.0, 2.0, 3.0, 5.0, 5.0, 5.0, 0.5]
    """
    six = list(TABLE_1_1_METHODS)[:6]
    table = []
    for measure, printed in TABLE_1_1.items():
        if not all(measure in row for rows in rows_by_dataset.values() for row in rows):
            continue
        for method in [row["method"] for row in next(iter(rows_by_dataset.values()))]:
            ranks = []
            for rows in rows_by_dataset.values():
                value = {row["method"]: row[measure] for row in rows}
                others = [value[other] for other in six if other != method]
                above = sum(other > value[method] for other in others)
                equal = sum(other == value[method] for other in others)
                ranks.append(above + equal / 2 + (1.0 if method in six else 0.5))
            paper = printed[six.index(method)] if method in six else None
            table.append({"measure": measure, "method": method, "rank": float(np.mean(ranks)), "paper_rank": paper})
    return table


def _differences(letor: Sequence[str], result: Mapping[str, Any]) -> str:
    """How data and protocol differ from the paper's."""
    notes = []
    if letor:
        settings, names = len(GRIDS[LAMBDAMART]), ", ".join(letor)
        notes.append(note("stevens", "table_1_1", datasets=names, settings=settings, measure=SELECTION_MEASURE))
        notes += [f"{name}: {PARTIAL[name]}." for name in letor if name in PARTIAL]
    notes += [result[table]["differs"] for table in ("table1_2", "table1_3") if table in result]
    return " ".join(notes)


def sections(result: Mapping[str, Any]) -> list[Section]:
    """The tables as sections of a report."""
    return list(_sections(result))


def _sections(result: Mapping[str, Any]) -> Iterator[Section]:
    cost: tuple[Column, ...] = (("settings tried", "settings_tried", ""), ("seconds", "seconds", ".1f"))
    if "table1_1" in result:
        remark = f"Average rank over {', '.join(result['letor'])}; lower is better. The paper's is over its eight sets."
        ranks: tuple[Column, ...] = (("average rank", "rank", ".2f"), ("paper", "paper_rank", ".2f"))
        yield Section("Table 1.1", table_of(result["table1_1"], ("measure", "measure", ""), METHOD, *ranks), remark)
        headings = zip(("NDCG@10", "NDCG@5", "P@10", "MAP"), MEASURES.split(), strict=True)
        measures = [(heading, measure, ".4f") for heading, measure in headings]
        for name, methods in result["letor"].items():
            yield Section(f"{name}, five folds", table_of(methods, METHOD, *measures, *cost), PARTIAL.get(name, ""))
    topics = (
        _with_paper("AP", "average_precision"), _with_paper("P@10", "precision_10"),
        _with_paper("domination error", "domination_error"), _with_paper("pair error", "pair_error"),
        _with_paper("% zero", "zero_percent", ".1f"),
    )  # fmt: skip
    for key, heading in (("table1_2", "Table 1.2"), ("table1_3", "Table 1.3")):
        if key in result:
            yield Section(heading, table_of(result[key]["rows"], METHOD, *topics, *cost), result[key]["differs"])


def _with_paper(heading: str, key: str, spec: str = ".3f") -> Column:
    """A column with the paper's number in brackets."""

    def cell(row: Mapping[str, Any]) -> str:
        paper = row[f"paper_{key}"]
        return f"{row[key]:{spec}}" + ("" if paper is None else f" ({paper:{spec}})")

    return heading, cell, ""
