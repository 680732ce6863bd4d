"""sparserank reproduce"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .arguments import Json

if TYPE_CHECKING:
    from ..rankers.progress import Follow


class Paper(StrEnum):
    """The papers whose tables are here as code."""

    chen2010 = "chen2010"


def reproduce(
    paper: Annotated[Paper, typer.Argument(help="Which paper.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="The folder to write JSON, Markdown, page and PNG to.")
    ],
    dataset: Annotated[
        str, typer.Option(help="20newsgroups, mnist, rcv1 or digits (small, not in the paper); all: the paper's three.")
    ] = "all",
    steps: Annotated[int, typer.Option(help="Training steps of every method.")] = 100_000,
    seed: Annotated[int, typer.Option(help="Seed of the triples drawn.")] = 0,
    words: Annotated[str, typer.Option(help="More words for Table III, with commas between.", show_default=False)] = "",
    ablation: Annotated[
        bool, typer.Option("--ablation", help="Also train methods with one setting changed at a time.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Make a paper's tables and figures anew, with the paper's own numbers beside them.

    Example: sparserank reproduce chen2010 --dataset digits --steps 2000 --output reports
    """
    from .. import check
    from ..experiments import chen2010
    from ..experiments.ablation import ablate
    from ..experiments.problems import PAPER_SETS, SETS
    from ..experiments.written import ablation as ablation_table
    from ..experiments.written import prepare, table_2, write
    from .output import print_json, print_table

    check.choice("dataset", dataset, ("all", *SETS))
    check.count("steps", steps, low=1)
    check.count("seed", seed)
    folder = prepare(output)
    asked = [word for word in map(str.strip, words.split(",")) if word]
    found, written = {}, {}
    with _telling(steps) as (tell, follow):
        for name in PAPER_SETS if dataset == "all" else (dataset,):
            found[name] = chen2010.reproduce(name, steps=steps, seed=seed, words=asked, tell=tell, follow=follow)
            if ablation:
                found[name]["ablation"] = ablate(name, steps=steps, seed=seed, tell=tell)
            written[name] = write(found[name], folder)
    if as_json:
        print_json({"paper": str(paper), "datasets": found} if dataset == "all" else found[dataset])
        return
    for name, one in found.items():
        table = table_2(one, intervals=False)
        print_table(f"{paper}, Table II: {name}", table.head, table.rows, right=tuple(range(1, len(table.head))))
        if ablation:
            changes = ablation_table(one)
            print_table(f"One setting changed: {name}", changes.head, changes.rows, right=(2, 3, 4, 5))
        if one["unknown_words"]:
            print(f"not among the columns' names: {', '.join(one['unknown_words'])}")
        print(f"{one['differs']}\n{', '.join(map(str, written[name]))}\n")


@contextmanager
def _telling(steps: int) -> Iterator[tuple[Callable[[str], None], Follow | None]]:
    """What is going on, with a bar for every training, on a terminal's stderr; in a pipe, nothing."""
    if not sys.stderr.isatty():
        yield lambda message: None, None
        return
    from ..rankers.progress import TrainingBar

    with TrainingBar("training", steps, leave=False) as bar:
        yield bar.say, bar
