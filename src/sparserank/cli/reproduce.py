"""sparserank reproduce"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .arguments import Json, Seed
from .output import progress

if TYPE_CHECKING:
    from ..bilinear.progress import Callback
    from ..experiments.report import Section


class Paper(StrEnum):
    """The papers that can be reproduced."""

    chen2010 = "chen2010"
    stevens2010 = "stevens2010"
    letor_regression = "letor-regression"


def reproduce(
    paper: Annotated[Paper, typer.Argument(help="The paper.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="The folder to write JSON, Markdown, page and PNG to.")
    ],
    dataset: Annotated[
        str,
        typer.Option(
            help="all: the paper's own. chen2010: 20newsgroups, mnist, rcv1 or digits (small, not in the paper). "
            "stevens2010: mq2008, ohsumed, mq2007 (Table 1.1), mnist (1.2), rcv1 (1.3). letor-regression: mq2007."
        ),
    ] = "all",
    steps: Annotated[int, typer.Option(help="chen2010: training steps of every method.")] = 100_000,
    seed: Seed = 0,
    words: Annotated[str, typer.Option(help="chen2010: more words for Table III, separated by commas.")] = "",
    items: Annotated[
        int | None,
        typer.Option(help="stevens2010 (topics), letor-regression: use only this many items, for a quick trial."),
    ] = None,
    ablation: Annotated[
        bool,
        typer.Option(
            "--ablation", help="chen2010: also change one setting at a time and tune C by the training objective."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Reproduce the tables and figures of a paper, with the published numbers for comparison.

    Example: sparserank reproduce chen2010 --dataset digits --steps 2000 --output reports

    Example: sparserank reproduce stevens2010 --dataset mq2008 --output reports
    """
    from .. import validation

    validation.count("seed", seed)
    if items is not None:
        validation.count("items", items, low=100)
    if paper is Paper.chen2010:
        _chen2010(output, dataset, steps, seed, words, ablation, as_json)
    elif paper is Paper.stevens2010:
        _stevens2010(output, dataset, seed, items, as_json)
    else:
        _letor_regression(output, dataset, seed, items, as_json)


def _chen2010(output: Path, dataset: str, steps: int, seed: int, words: str, ablation: bool, as_json: bool) -> None:
    from .. import validation
    from ..experiments import chen2010
    from ..experiments.chen_ablation import ablate, sweep_rates
    from ..experiments.chen_report import TITLE, ablation_table, rate_sweep_table, sections, table_2
    from ..experiments.datasets import DATASETS, PAPER_DATASETS
    from ..experiments.report import prepare_folder, write_report
    from .output import print_json, print_table

    validation.choice("dataset", dataset, ("all", *DATASETS))
    validation.count("steps", steps, low=1)
    folder = prepare_folder(output)
    shown = [word for word in map(str.strip, words.split(",")) if word]
    results, paths = {}, {}
    with _training_progress(steps) as (report, callback):
        for name in PAPER_DATASETS if dataset == "all" else (dataset,):
            results[name] = chen2010.reproduce(
                name, steps=steps, seed=seed, words=shown, progress=report, callback=callback
            )
            if ablation:
                results[name]["ablation"] = ablate(name, steps=steps, seed=seed, progress=report)
                results[name]["rate_sweep"] = sweep_rates(name, steps=steps, seed=seed, progress=report)
            files = f"chen2010-{name}", f"{TITLE}: {name}"
            paths[name] = write_report(*files, results[name], sections(results[name]), folder)
    if as_json:
        rows = [{"dataset": name, **row} for name, one in results.items() for row in one["table2"]]
        combined = {"paper": "chen2010", "table2": rows, "datasets": results}
        print_json(combined if dataset == "all" else results[dataset])
        return
    for name, one in results.items():
        table = table_2(one, intervals=False)
        print_table(f"chen2010, Table II: {name}", table.head, table.rows, right=tuple(range(1, len(table.head))))
        if ablation:
            changes = ablation_table(one)
            print_table(f"One setting changed: {name}", changes.head, changes.rows, right=(2, 3, 4, 5))
            sweep = rate_sweep_table(one)
            print_table(f"The paper's C: {name}", sweep.head, sweep.rows, right=tuple(range(6)))
            print(one["rate_sweep"]["note"])
        if one["order"]:
            print(one["order"])
        if one["unknown_words"]:
            print(f"unknown words: {', '.join(one['unknown_words'])}")
        print(f"{one['differs']}\n{', '.join(map(str, paths[name]))}\n")


@contextmanager
def _training_progress(steps: int) -> Iterator[tuple[Callable[[str], None], Callback | None]]:
    """Yield a callback for messages and, on a terminal, one that shows each training as a bar."""
    if not sys.stderr.isatty():
        with progress() as report:
            yield report, None
        return
    from ..bilinear.progress import TrainingBar

    with TrainingBar("training", steps, leave=False) as bar:
        yield bar.set_heading, bar


def _stevens2010(output: Path, dataset: str, seed: int, items: int | None, as_json: bool) -> None:
    from .. import validation
    from ..experiments import stevens2010
    from ..experiments.report import prepare_folder

    validation.choice("dataset", dataset, ("all", *stevens2010.DATASETS))
    folder = prepare_folder(output)
    with progress() as report:
        names = stevens2010.DATASETS if dataset == "all" else (dataset,)
        results = stevens2010.reproduce(names, seed=seed, items=items, progress=report)
    name = "stevens2010" if dataset == "all" else f"stevens2010-{dataset}"
    _write_report(name, stevens2010.TITLE, results, stevens2010.sections(results), folder, as_json)


def _letor_regression(output: Path, dataset: str, seed: int, items: int | None, as_json: bool) -> None:
    from .. import validation
    from ..experiments import letor_regression
    from ..experiments.report import prepare_folder

    validation.choice("dataset", dataset, ("all", "mq2007"))
    folder = prepare_folder(output)
    with progress() as report:
        results = letor_regression.reproduce(seed=seed, rows=items, progress=report)
    _write_report(
        "letor-regression", letor_regression.TITLE, results, letor_regression.sections(results), folder, as_json
    )


def _write_report(
    name: str, title: str, results: dict[str, Any], sections: Sequence[Section], folder: Path, as_json: bool
) -> None:
    """Write the report and print its tables or its JSON."""
    from ..experiments.report import write_report
    from .output import print_json, print_table

    files = write_report(name, title, results, sections, folder)
    if as_json:
        print_json(results)
        return
    for section in sections:
        if section.table is not None:
            columns = len(section.table.head)
            print_table(section.heading, section.table.head, section.table.rows, right=tuple(range(1, columns)))
    print(f"{results['differs']}\n{', '.join(map(str, files))}")
