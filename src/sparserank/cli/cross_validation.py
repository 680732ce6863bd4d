"""`sparserank evaluate --folds N`: N models with the settings of a text model, each on queries that it has not seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..evaluation import Evaluation, Report, compare, evaluate_run
from ..evaluation.measures import Measure
from ..text_ranker.cross_validation import CrossValidation, cross_validate
from .output import phase, print_json, progress, without_training_warnings

if TYPE_CHECKING:
    from ..data.records import Collection, Qrels
    from ..text_ranker import TextRanker


def evaluate_folds(
    ranker: TextRanker, model: Path, collection: Collection, qrels: Qrels, n_folds: int, measures: Sequence[Measure],
    depth: int, about: dict[str, Any], report: Path | None, as_json: bool, query_group: Mapping[str, str] | None = None,
) -> CrossValidation:  # fmt: skip
    """Cross-validate the settings of a model and print the figures of all folds."""
    with progress() as callback, without_training_warnings():
        found = cross_validate(ranker, collection, qrels, n_folds, depth, callback, query_group)
    with phase("measuring"):
        seed = about["seed"]
        learned, bm25 = (
            evaluate_run(run, found.qrels, measures, random_state=seed) for run in (found.run, found.bm25_run)
        )
        folds = [_fold(found, number, measures[0]) for number in range(n_folds)]
        about = about | {"queries": len(found.qrels), "folds": n_folds}
        worst = min(folds, key=lambda fold: fold["difference"])
        note = (
            f"Worst fold: {measures[0]} {worst['value']:.4f} against {worst['bm25']:.4f} of BM25 "
            f"({worst['difference']:+.4f}, {worst['queries']} queries). Folds with word pairs: "
            f"{sum(n > 0 for n in found.pairs)} of {n_folds}. Each model was trained on the other folds, and "
            f"near-duplicate queries{' and queries of one group' * bool(query_group)} are in the same fold."
        )
        without = _without_reverses(found, measures, seed)
        notes = [note, *(found.reverses.sentences(without) if found.reverses is not None else ())]
        title = f"{model.name}: its settings on {n_folds} folds of {about['data']} ({about['split']})"
        systems = {"BM25": bm25, "learned": learned}
        full_report = Report.of(title, systems, notes=notes, settings=about)
    if report is not None:
        full_report.write(report)
    if as_json:
        comparisons = {name: one.to_dict() for name, one in compare(bm25, learned, random_state=seed).items()}
        figures = {"measures": learned.to_dict(), "bm25": bm25.to_dict(), "comparisons": {"learned": comparisons}}
        if found.reverses is not None:
            keys = {"learned": "measures_without", "BM25": "bm25_without"}
            values = {key: None if (one := without[name]) is None else one.to_dict() for name, key in keys.items()}
            figures["reverse_in_training"] = found.reverses.to_dict() | values
        print_json({"model": str(model)} | about | figures | {"by_fold": folds, "worst_fold": worst})
    else:
        print(full_report.text(), end="")
    return found


def _without_reverses(
    found: CrossValidation, measures: Sequence[Measure], seed: int
) -> dict[str, Evaluation | None]:  # fmt: skip
    """Return the measures of both systems without judgments whose reverse is in another fold; {} without links."""
    if found.reverses is None:
        return {}
    runs = {"BM25": found.bm25_run, "learned": found.run}
    return {name: found.reverses.evaluate(run, found.qrels, measures, random_state=seed) for name, run in runs.items()}


def _fold(found: CrossValidation, number: int, measure: Measure) -> dict[str, Any]:
    """Return the figures of one fold on the first measure."""
    queries = found.queries_of(number)
    qrels = {query: found.qrels[query] for query in queries}
    value, bm25 = (
        evaluate_run({query: run[query] for query in queries if query in run}, qrels, measure)[str(measure)].value
        for run in (found.run, found.bm25_run)
    )
    pairs = found.pairs[number]
    return {"fold": number + 1, "queries": len(queries), "pairs": pairs, "value": value, "bm25": bm25} | {
        "difference": value - bm25
    }
