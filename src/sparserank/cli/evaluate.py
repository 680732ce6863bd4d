"""sparserank evaluate"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ..errors import ConfigError, count_of
from .arguments import (
    DataOrNone,
    ExcludeSelf,
    FoldsFolder,
    Json,
    JudgmentsTable,
    Missing,
    MissingRows,
    ModelFile,
    QueriesTable,
    QueryGroups,
    Seed,
)

if TYPE_CHECKING:
    from ..data.records import Qrels
    from ..text_ranker import TextRanker

DEPTH = 1000


def evaluate(
    model: ModelFile,
    data: DataOrNone = None,
    folds: FoldsFolder = None,
    queries: QueriesTable = None,
    judgments: JudgmentsTable = None,
    missing: MissingRows = Missing.error,
    split: Annotated[
        str | None, typer.Option(help="The split to evaluate on, by default dev; with --folds N, by default train.")
    ] = None,
    measures: Annotated[str, typer.Option(help="ir-measures names, separated by blanks.")] = "nDCG@10 AP R@100",
    report: Annotated[
        Path | None,
        typer.Option(help="Also write a report to this .txt, .md, .json or .html file; .html needs the extra `plot`."),
    ] = None,
    run: Annotated[Path | None, typer.Option(help="Also write the ranking as a TREC run file.")] = None,
    exclude_self: ExcludeSelf = None,
    query_groups: QueryGroups = None,
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="Compare with this model on the same queries: a paired test and the queries that got worse.",
        ),
    ] = None,
    worse: Annotated[
        int, typer.Option(min=0, help="With --against: how many of the queries that got worse to show.")
    ] = 5,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Evaluate MODEL on one split of DATA, with 95 % intervals, and compare it with BM25 on the same documents.

    Example: sparserank evaluate model.safetensors nfcorpus --split dev --measures "nDCG@10 AP R@100"

    Example: sparserank evaluate model.safetensors docs.parquet --queries queries.parquet --judgments dev.parquet

    Example: sparserank evaluate new.safetensors nfcorpus --against old.safetensors --worse 10

    With --folds N, train N models with the settings of MODEL, each without one fold of the judged queries.

    Example: sparserank evaluate model.safetensors nfcorpus --folds 5

    Evaluate a LETOR model on a LETOR file, or with --folds on the test files of all folds.

    Example: sparserank evaluate model.safetensors test.txt --measures "nDCG-letor4@10 AP"
    """
    n_folds = int(str(folds)) if str(folds).isdecimal() and not (folds and folds.exists()) else None
    if (folds is not None and n_folds is None) or (model.is_file() and is_letor_model(model)):
        from .letor import evaluate_rows

        if queries is not None or judgments is not None:
            raise ConfigError("--queries and --judgments are for text models; a LETOR file has its own grades")
        if report is not None or run is not None:
            raise ConfigError("--report and --run are for text models; --json prints the figures of a LETOR file")
        if missing is Missing.drop:
            raise ConfigError("--missing is for text models; a LETOR file lists its own rows")
        if exclude_self is not None or against is not None:
            raise ConfigError("--exclude-self and --against are for text models; a LETOR file lists its own rows")
        evaluate_rows(model, data, folds, measures, seed, as_json)
        return
    if query_groups is not None and n_folds is None:
        raise ConfigError("--query-groups needs --folds N, the number of folds of a text model's queries")
    if data is None:
        raise ConfigError("give the DATA to measure on: a BEIR folder, a table, or the name of a known collection")
    if against is not None and n_folds is not None:
        raise ConfigError("--folds N compares with BM25; give no --against")
    if against is not None and against.resolve() == model.resolve():
        raise ConfigError(f"--against {against} is MODEL itself; name another model")
    from ..data.files import check_writable
    from ..data.formats.trec import write_run
    from ..data.open import Sources, open_sources
    from ..evaluation.measures import parse_all
    from ..evaluation.report import report_suffix
    from ..text_ranker.cross_validation import fit_bm25
    from .arguments import apply_exclude_self
    from .model_evaluation import ModelEvaluation, rank_queries, training_split
    from .output import phase, print_json

    parsed = parse_all(measures)
    depth = max([DEPTH, *(int(cutoff) for cutoff in re.findall(r"@(\d+)", " ".join(map(str, parsed))))])
    if report is not None:
        report_suffix(report)
    for path in (report, run):
        if path is not None:
            check_writable(path)
    rankers = {path: _load(path) for path in (model, against) if path is not None}
    with phase(f"reading {data}"):
        sources = Sources(data, queries=queries, judgments=judgments, missing=missing.value)
        collection, table, n_dropped = open_sources(sources, learns=False)
        split = split or ("dev" if n_folds is None else "train")
        qrels = collection.split(split) if table is None else cast("Qrels", table)
    collection = apply_exclude_self(collection, qrels, exclude_self)
    about = {
        "data": collection.name,
        "split": split if judgments is None else judgments,
        "queries": len(qrels),
        "depth": depth,
        "seed": seed,
        "exclude_self": collection.exclude_self,
    } | ({"left_out": n_dropped} if n_dropped else {})
    if n_folds is not None:
        from ..data.formats.lines import read_groups
        from .cross_validation import evaluate_folds

        del about["depth"]
        folded = evaluate_folds(
            rankers[model],
            model,
            collection,
            qrels,
            n_folds,
            parsed,
            depth,
            about,
            report,
            as_json,
            None if query_groups is None else read_groups(query_groups),
        )
        if run is not None:
            write_run(run, folded.run)
        return
    with phase(f"searching for {count_of(len(qrels), 'query')}"):
        runs = {path: rank_queries(ranker, collection, qrels, depth) for path, ranker in rankers.items()}
        lexical = rank_queries(fit_bm25(collection, rankers[model]), collection, qrels, depth)
    with phase("measuring"):
        other = None if against is None else runs[against]
        splits = {path: training_split(ranker, collection) for path, ranker in rankers.items()}
        seen = tuple(path for path in rankers if judgments is None and splits[path] == split)
        evaluation = ModelEvaluation(
            collection, qrels, parsed, seed, model, runs[model], lexical, against, other, splits[model] or "train", seen
        )
        full_report = evaluation.report(about)
    if report is not None:
        full_report.write(report)
    if run is not None:
        write_run(run, runs[model])
    if as_json:
        del about["depth"]
        print_json({"model": str(model)} | about | evaluation.to_dict())
    else:
        print(full_report.text() + evaluation.worse_queries(worse), end="")


def is_letor_model(model: Path) -> bool:
    """Return whether the file contains a LETOR ranker; for an unreadable file, a later step raises the error."""
    from ..data.formats.tensors import read_tensors
    from ..errors import ModelError

    try:
        return read_tensors(model).kind == "by-query"
    except ModelError:
        return False


def _load(model: Path) -> TextRanker:
    """Load the model with its index, or without one if the index is damaged or missing."""
    from ..errors import ModelError
    from ..text_ranker import load_model, load_text

    try:
        return load_text(model)
    except ModelError:
        return load_model(model)  # raises the error again if the model itself is damaged
