"""Arguments and options that several commands share."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ..data.records import Collection


class Missing(StrEnum):
    """What to do with judgments, clicks and triples of unknown documents and queries."""

    error = "error"
    drop = "drop"


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
        "(see: sparserank datasets), a table of documents (.csv, .tsv or .parquet: id, title, text), or a LETOR / "
        "svmlight file with qids.",
    ),
]


def _table(text: str, metavar: str = "TABLE") -> Any:
    return typer.Option(metavar=metavar, help=text)


QueriesTable = Annotated[str | None, _table("With a table of documents: a table with the columns id, text.")]
JudgmentsTable = Annotated[str | None, _table("Instead of a split: a table with the columns query, document, grade.")]
ClicksTable = Annotated[
    str | None, _table("Learn from a click log: a table with the columns session, query, document, position, clicked.")
]
TriplesTable = Annotated[
    str | None, _table("Learn from preferences: a table with the columns query, better, worse and, optionally, weight.")
]
Ubi = Annotated[
    tuple[str, str] | None,
    typer.Option(
        metavar="QUERIES EVENTS",
        help="Learn from the clicks of OpenSearch User Behavior Insights: two files of JSON lines.",
    ),
]
Texts = Annotated[str | None, _table("The documents, if DATA is a table of clicks, triples or judgments.", "TEXTS")]
MissingRows = Annotated[
    Missing,
    typer.Option("--missing", help="What to do with judgments and other rows that name unknown documents or queries."),
]
ExcludeSelf = Annotated[
    bool | None,
    typer.Option(
        "--exclude-self/--no-exclude-self",
        help="Leave the document that has a query's id out of that query's ranking, as BEIR's evaluator does; the "
        "default for pydocs only.",
    ),
]
FoldsFolder = Annotated[
    Path | None,
    typer.Option(
        "--folds",
        metavar="DIR",
        help="LETOR: a folder with Fold1/train.txt, vali.txt, test.txt, …; or mq2008 or ohsumed. `evaluate` of a text "
        "model: a number of folds of its judged queries.",
    ),
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that `sparserank train` wrote.")]
PairsFile = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="A model file with word pairs: a text model of `sparserank train`, or a file of BilinearRanker.save.",
    ),
]
IndexFile = Annotated[Path | None, typer.Option("--index", help="Search this index instead of MODEL.index.")]
Synonyms = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Synonyms of your own: a file with lines such as 'laptop, notebook' or, one way, 'tv => television'.",
    ),
]
Typos = Annotated[bool, typer.Option("--typos", help="Correct words that no document has.")]
Prefix = Annotated[
    bool, typer.Option("--prefix", help="The last word may be unfinished: also find the words that begin with it.")
]
QueryGroups = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A TSV of query ids and groups, such as the site of each query. Groups are held out as a whole, so pairs "
        "are kept only if they help queries of new groups.",
    ),
]
Seed = Annotated[int, typer.Option(help="Random seed.")]
MaxResults = Annotated[int, typer.Option("-k", help="How many results at most.", min=1)]
Words = Annotated[str, typer.Argument(metavar="WORDS", help="The query, in quotes.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def apply_exclude_self(collection: Collection, queries: Iterable[str], option: bool | None) -> Collection:
    """Set `exclude_self` as the option says; without the option, print a hint if queries have ids of documents."""
    from ..evaluation.reverses import own_documents

    collection = collection if option is None else replace(collection, exclude_self=option)
    queries = list(queries)
    if not collection.exclude_self and option is None and (n := own_documents(collection, queries)):
        print(
            f"{n:,} of {len(queries):,} queries have the id of a document; --exclude-self leaves that document out of "
            "its own query's ranking (--no-exclude-self: the ids name different things)",
            file=sys.stderr,
        )
    return collection
