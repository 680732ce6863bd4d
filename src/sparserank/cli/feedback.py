"""sparserank feedback backup, restore"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .. import validation
from ..errors import DataError
from .arguments import Json, ModelFile

if TYPE_CHECKING:
    from ..service.backup import Backup

feedback = typer.Typer(name="feedback", help="Back up and restore the feedback of a service.", no_args_is_help=True)

BackupFile = Annotated[Path, typer.Argument(metavar="FILE", help="The backup; compressed if it ends in .gz or .zst.")]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="URL",
        help="The database of the service, as in `serve`; by default the SQLite file beside MODEL.",
    ),
]


@feedback.command("backup")
def back_up(model: ModelFile, file: BackupFile, database: DatabaseUrl = None, as_json: Json = False) -> None:
    """Write all feedback of MODEL to FILE, consistent while the service runs.

    Example: sparserank feedback backup model.safetensors feedback.jsonl.gz
    """
    validation.installed("sqlalchemy", extra="service")
    from ..service.backup import back_up

    _print("backed up to", file, back_up(_url(model, database), file), as_json)


@feedback.command("restore")
def restore(
    model: ModelFile,
    file: BackupFile,
    database: DatabaseUrl = None,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace the feedback that the database has; otherwise it must be empty."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Put the feedback of FILE into the database of MODEL; stop the service first.

    After you restored an older state, `sparserank model relearn MODEL` learns from all of it again.

    Example: sparserank feedback restore model.safetensors feedback.jsonl.gz
    """
    validation.installed("sqlalchemy", extra="service")
    from ..service.backup import restore

    _print("restored from", file, restore(file, _url(model, database), overwrite=overwrite), as_json)


def _url(model: Path, database: str | None) -> str:
    from ..service.config import default_database

    if database:
        return database
    if not model.exists():  # a mistyped name would restore into a new database that no service reads
        raise DataError(f"{model}: no such file")
    return default_database(model)


def _print(action: str, file: Path, backup: Backup, as_json: bool) -> None:
    from .output import print_json

    if as_json:
        print_json({"file": str(file), "entries": backup.entries, "made": backup.made})
    else:
        print(f"{backup.entries:,} feedback entries {action} {file}, made {backup.made[:19]} UTC")
