"""DominationRanker against XGBoost's gblinear with rank:pairwise on MQ2008 and OHSUMED, five folds, on two threads.

gblinear takes the number of rounds with the best NDCG@10 on validation, ours runs until convergence. The objectives
differ, so results cannot be equal: each side tries as many penalties, the time is that of the best one on validation
(without the search), and the table has nDCG@10 of both on test data.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np

from sparserank import DominationRanker, data
from sparserank.letor.base import measure_by_query

from .measure import best_seconds, peak_megabytes

LETOR_ALPHAS, GBLINEAR_ALPHAS = (0.3, 1.0, 3.0, 5.0, 10.0, 30.0), (0.0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)


def by_group(part: Any) -> tuple[Any, Any, Any]:
    """Rows in the order of their queries, as XGBoost wants them."""
    import xgboost

    order = np.argsort(part.qid, kind="stable")
    rows = xgboost.DMatrix(part.X[order], part.y[order])
    rows.set_group(np.unique(part.qid, return_counts=True)[1])
    return rows, part.y[order], np.asarray(part.qid)[order]


def letor(name: str, quick: bool) -> list[dict[str, Any]]:
    import xgboost

    always = {"booster": "gblinear", "objective": "rank:pairwise", "nthread": 2, "eval_metric": "ndcg@10", "seed": 0}
    seconds, quality = {"ours": 0.0, "theirs": 0.0}, {"nDCG@10": 0.0, "their_nDCG@10": 0.0}
    folds = data.load(name)[: 1 if quick else 5]
    for fold in folds:
        (train, _, _), (vali, vali_y, vali_qid), (test, y, qid) = map(by_group, (fold.train, fold.vali, fold.test))

        def theirs(alpha: float, rounds: int, rows: Any = train) -> Any:
            return xgboost.train(always | {"alpha": alpha}, rows, rounds)

        def ours(alpha: float, part: Any = fold.train) -> Any:
            return DominationRanker(alpha=alpha, tol=1e-2).fit(part.X, part.y, part.qid)

        def on_vali(model: Any, held: Any = fold.vali) -> float:
            return measure_by_query(held.y, model.predict(held.X), qid=held.qid)

        settings = [(alpha, _rounds(always | {"alpha": alpha}, train, vali)) for alpha in GBLINEAR_ALPHAS]
        values = [measure_by_query(vali_y, theirs(*one).predict(vali), qid=vali_qid) for one in settings]
        their_best, our_best = settings[int(np.argmax(values))], max(LETOR_ALPHAS, key=lambda a: on_vali(ours(a)))
        calls = {"ours": partial(ours, our_best), "theirs": partial(theirs, *their_best)}
        best = best_seconds(calls, 1 if quick else 3)
        seconds = {who: seconds[who] + best[who] for who in seconds}
        quality["nDCG@10"] += measure_by_query(fold.test.y, ours(our_best).predict(fold.test.X), qid=fold.test.qid)
        quality["their_nDCG@10"] += measure_by_query(y, theirs(*their_best).predict(test), qid=qid)
    figures = {key: round(value, 3) for key, value in seconds.items()}
    figures |= {key: round(value / len(folds), 4) for key, value in quality.items()} | {
        "settings_tried": len(LETOR_ALPHAS)
    }
    return [{"name": f"{name}, {len(folds)} folds", "ratio": seconds["theirs"] / seconds["ours"]} | figures]


def _rounds(settings: dict[str, Any], train: Any, vali: Any) -> int:
    """The number of rounds, of 300, with the best NDCG@10 on validation."""
    import xgboost

    history: dict[str, Any] = {}
    xgboost.train(settings, train, 300, evals=[(vali, "v")], evals_result=history, verbose_eval=False)
    return int(np.argmax(history["v"]["ndcg@10"])) + 1


def run(quick: bool = False) -> dict[str, Any]:
    """Seconds and quality of both."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = letor("mq2008", quick) + letor("ohsumed", quick)
    return {
        "case": "domination, graded rows by query",
        "size": "MQ2008 and OHSUMED in five folds, 2 threads",
        "peer": "XGBoost gblinear, rank:pairwise",
        "rows": [row | {"ratio": round(row["ratio"], 2)} for row in rows],
        "peak_mb": peak_megabytes(),
    }
