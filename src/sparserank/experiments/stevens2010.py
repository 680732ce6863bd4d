"""Stevens, Bengio, Singer, *Efficient Learning of Sparse Ranking Functions*: its three tables, on data one can get.

Table 1.1 is on LETOR sets, by the five-fold protocol and LETOR 4.0's own measures. Tables 1.2 and 1.3 learn one w a
topic: MNIST stands in for an image collection that was never published, RCV1 is a part of the paper's. Settings are
chosen on validation parts only. A seed gives the same numbers always, apart from the seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from time import perf_counter
from typing import Any

import numpy as np

from .. import validation
from ..data import load
from ..data.datasets.letor_sets import FOLDS, fold_of
from ..data.records import Fold, Letor
from ..evaluation.report import Table
from ..evaluation.runs import evaluate_rows
from ..letor.base import measure_by_query
from ..letor.model_selection import choose
from .sheets import Section
from .stevens_grids import LAMBDAMART, TRIED
from .stevens_tables import METHODS, TABLE_1_1
from .stevens_topics import table_1_2, table_1_3

TITLE = "Efficient Learning of Sparse Ranking Functions (Stevens, Bengio, Singer)"
LETOR_SETS = ("mq2008", "ohsumed", "mq2007")
SETS = (*LETOR_SETS, "mnist", "rcv1")
MEASURES = "nDCG-letor4@10 nDCG-letor4@5 P@10 AP"
CHOSEN_BY = "nDCG-letor4@10"
REFERENCE = "LambdaMART (LightGBM)"
PARTIAL = {"mq2007": "partial: 59,135 of 69,623 rows, own folds; not comparable with published scores"}

Tell = Callable[[str], None]


def reproduce(
    datasets: Sequence[str] = SETS, *, seed: int = 0, items: int | None = None, tell: Tell = lambda message: None
) -> dict[str, Any]:
    """The tables that these data sets have a part in; `items` takes so many items of topics only, to try things."""
    validation.count("seed", seed)
    for name in datasets:
        validation.choice("dataset", name, SETS)
    found: dict[str, Any] = {"paper": "stevens2010", "seed": seed, "datasets": list(datasets)}
    letor = [name for name in LETOR_SETS if name in datasets]
    if letor:
        measured = {name: _on_folds(name, folds(name), seed, tell) for name in letor}
        found |= {"table1_1": average_ranks(measured), "letor": measured}
    if "mnist" in datasets:
        found["table1_2"] = table_1_2(seed, items, tell)
    if "rcv1" in datasets:
        found["table1_3"] = table_1_3(seed, items, tell)
    return found | {"differs": _differs(letor, found)}


def folds(name: str) -> tuple[Fold, ...]:
    """The five folds; MQ2007, which has none here, is cut by query, in the order of their first rows."""
    loaded = load(name)
    if isinstance(loaded, tuple):
        return loaded
    _, first, query = np.unique(loaded.qid, return_index=True, return_inverse=True)
    place = np.argsort(np.argsort(first))[query]
    subset = place * len(FOLDS) // len(first)
    parts = [Letor(loaded.X[subset == s], loaded.y[subset == s], loaded.qid[subset == s]) for s in range(len(FOLDS))]
    return tuple(fold_of(parts, number) for number in FOLDS)


def _on_folds(name: str, given: Sequence[Fold], seed: int, tell: Tell) -> list[dict[str, Any]]:
    rows = []
    for method, ranker in METHODS.items():
        started, scores, settings = perf_counter(), [], []
        for number, fold in enumerate(given, start=1):
            tell(f"{name}: {method}, fold {number} of {len(given)}")
            chosen = choose(ranker, fold.train, fold.vali, measure=CHOSEN_BY, seed=seed, tried=TRIED[ranker])
            scores.append(chosen.ranker.predict(fold.test.X))
            settings.append(chosen.settings)
        rows.append(_row(method, given, scores, started, settings, len(TRIED[ranker])))
    if find_spec("lightgbm") is not None:
        started, scores, settings = perf_counter(), [], []
        for number, fold in enumerate(given, start=1):
            tell(f"{name}: {REFERENCE}, fold {number} of {len(given)}")
            found, best = lambdamart(fold, seed)
            scores.append(found)
            settings.append(best)
        rows.append(_row(REFERENCE, given, scores, started, settings, len(LAMBDAMART)))
    return rows


def _row(
    method: str,
    given: Sequence[Fold],
    scores: Sequence[Any],
    started: float,
    settings: Sequence[Mapping[str, Any]],
    tried: int,
) -> dict[str, Any]:
    """The mean over folds of each measure, and the settings of each fold."""
    each = [evaluate_rows(s, fold.test.y, fold.test.qid, MEASURES) for s, fold in zip(scores, given, strict=True)]
    means = {
        str(column.measure): float(np.mean([one.columns[k].mean for one in each]))
        for k, column in enumerate(each[0].columns)
    }
    return {
        "method": method,
        **means,
        "settings": list(settings),
        "settings_tried": tried,
        "seconds": round(perf_counter() - started, 3),
    }


def lambdamart(fold: Fold, seed: int) -> tuple[Any, dict[str, Any]]:
    """Test scores of LightGBM's LambdaMART, and its settings: those with the best NDCG@10 on the validation part.

    Within a setting, training stops where LightGBM's own NDCG@10 on the validation part has not risen for 50 rounds.
    """
    import lightgbm

    always = {
        "objective": "lambdarank", "metric": "ndcg", "eval_at": [10], "min_data_in_leaf": 50, "verbosity": -1,
        "seed": seed, "deterministic": True, "num_threads": 1,
    }  # fmt: skip
    best: tuple[float, Any, dict[str, Any]] | None = None
    for settings in LAMBDAMART:
        train, vali = (_dataset(part) for part in (fold.train, fold.vali))
        stop = lightgbm.early_stopping(50, verbose=False)
        model = lightgbm.train(always | settings, train, 500, valid_sets=[vali], callbacks=[stop])
        scores = model.predict(fold.vali.X.toarray(), num_iteration=model.best_iteration)
        value = measure_by_query(fold.vali.y, scores, qid=fold.vali.qid, measure=CHOSEN_BY)
        if best is None or value > best[0]:
            best = value, model, settings | {"rounds": model.best_iteration}
    assert best is not None
    return best[1].predict(fold.test.X.toarray(), num_iteration=best[1].best_iteration), best[2]


def _dataset(part: Letor) -> Any:
    """Rows of one query must stand together, as many as `group` says."""
    import lightgbm

    order = np.argsort(part.qid, kind="stable")
    group = np.unique(part.qid[order], return_counts=True)[1]
    return lightgbm.Dataset(part.X[order].toarray(), label=part.y[order].astype(int), group=group)


def average_ranks(measured: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Table 1.1: for each measure, each method's rank among the paper's six, averaged over the data sets.

    Equal values share their rank. RankSVM and LightGBM are ranked apart: what they would have been among the six.

    >>> rows = average_ranks({"a": [{"method": m, "P@10": v} for m, v in zip(METHODS, (3, 2, 1, 0, 0, 0, 9))]})
    >>> [row["rank"] for row in rows if row["measure"] == "P@10"]
    [1.0, 2.0, 3.0, 5.0, 5.0, 5.0, 0.5]
    """
    six = list(METHODS)[:6]
    table = []
    for measure, printed in TABLE_1_1.items():
        if not all(measure in row for rows in measured.values() for row in rows):
            continue
        methods = [row["method"] for row in next(iter(measured.values()))]
        for method in methods:
            ranks = []
            for rows in measured.values():
                value = {row["method"]: row[measure] for row in rows}
                others = [value[other] for other in six if other != method]
                above = sum(other > value[method] for other in others)
                equal = sum(other == value[method] for other in others)
                ranks.append(above + equal / 2 + (1.0 if method in six else 0.5))
            paper = printed[six.index(method)] if method in six else None
            table.append({"measure": measure, "method": method, "rank": float(np.mean(ranks)), "paper_rank": paper})
    return table


def _differs(letor: Sequence[str], found: dict[str, Any]) -> str:
    said = []
    if letor:
        said.append(
            f"Table 1.1: {', '.join(letor)} stand for the paper's eight LETOR sets. Measures are LETOR 4.0's own "
            "(gains 2^l − 1, discount 1 at rank 1 and 1/log2(rank) from rank 2, 0 where a query has fewer than k "
            f"documents), means over five folds; each method tries {len(LAMBDAMART)} settings on the validation "
            f"part of each fold, by {CHOSEN_BY}."
        )
        said += [f"{name}: {PARTIAL[name]}." for name in letor if name in PARTIAL]
    said += [found[table]["differs"] for table in ("table1_2", "table1_3") if table in found]
    return " ".join(said)


def sections(found: dict[str, Any]) -> list[Section]:
    """The tables, as they are written down."""
    return list(_sections(found))


def _sections(found: dict[str, Any]) -> Iterator[Section]:
    if "table1_1" in found:
        rows = tuple(
            (row["measure"], row["method"], f"{row['rank']:.2f}", _number(row["paper_rank"], ".2f"))
            for row in found["table1_1"]
        )
        note = f"Average rank over {', '.join(found['letor'])}; lower is better. The paper's is over its eight sets."
        yield Section("Table 1.1", Table(("measure", "method", "average rank", "paper"), rows), note)
        for name, measured in found["letor"].items():
            head = ("method", "NDCG@10", "NDCG@5", "P@10", "MAP", "settings tried", "seconds")
            body = tuple(
                (
                    row["method"],
                    f"{row['nDCG-letor4@10']:.4f}",
                    f"{row['nDCG-letor4@5']:.4f}",
                    f"{row['P@10']:.4f}",
                    f"{row['AP']:.4f}",
                    str(row["settings_tried"]),
                    f"{row['seconds']:.1f}",
                )
                for row in measured
            )
            yield Section(f"{name}, five folds", Table(head, body), PARTIAL.get(name, ""))
    for key, heading in (("table1_2", "Table 1.2"), ("table1_3", "Table 1.3")):
        if key in found:
            yield Section(heading, topics_table(found[key]), found[key]["differs"])


def topics_table(found: dict[str, Any]) -> Table:
    """Table 1.2 or 1.3 with the paper's numbers in brackets."""
    names = ("average_precision", "precision_10", "domination_error", "pair_error", "zero_percent")
    head = ("method", "AP", "P@10", "domination error", "pair error", "% zero", "settings tried", "seconds")
    body = tuple(
        (
            row["method"],
            *(f"{row[name]:.3f}{_bracket(row['paper_' + name])}" for name in names[:-1]),
            f"{row['zero_percent']:.1f}{_bracket(row['paper_zero_percent'], '.1f')}",
            str(row["settings_tried"]),
            f"{row['seconds']:.1f}",
        )
        for row in found["rows"]
    )
    return Table(head, body)


def _bracket(value: float | None, form: str = ".3f") -> str:
    return "" if value is None else f" ({value:{form}})"


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)
