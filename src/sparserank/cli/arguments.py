"""Arguments and options that several commands share, each described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A BEIR folder (corpus.jsonl, queries.jsonl, qrels/SPLIT.tsv) or the name of a known collection "
        "(see: sparserank datasets).",
    ),
]
DataOrNone = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA",
        help="A BEIR folder (corpus.jsonl, queries.jsonl, qrels/SPLIT.tsv), the name of a known collection "
        "(see: sparserank datasets), a table of documents (.tsv or .parquet: id, title, text), or a LETOR / svmlight "
        "file with qids.",
        show_default=False,
    ),
]
QueriesTable = Annotated[
    str | None,
    typer.Option(
        "--queries", metavar="TABLE", help="Beside a table of documents: a table id, text.", show_default=False
    ),
]
JudgmentsTable = Annotated[
    str | None,
    typer.Option(
        "--judgments",
        metavar="TABLE",
        help="In place of a split: a table query, document, grade.",
        show_default=False,
    ),
]
FoldsFolder = Annotated[
    Path | None,
    typer.Option(
        "--folds",
        metavar="DIR",
        help="LETOR: all folds of a folder with Fold1/train.txt, vali.txt, test.txt, …; or mq2008 or ohsumed.",
        show_default=False,
    ),
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that `sparserank train` wrote.")]
PairsFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model file of word pairs, as BilinearRanker.save writes it.")
]
IndexFile = Annotated[
    Path | None, typer.Option("--index", help="Search this index instead of MODEL.index.", show_default=False)
]
Words = Annotated[str, typer.Argument(metavar="WORDS", help="What to search for, in quotes.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
