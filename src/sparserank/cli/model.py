"""sparserank model list, diff, rollback"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .arguments import IndexFile, Json, ModelFile

if TYPE_CHECKING:
    from ..versions import Version, VersionRegistry

model = typer.Typer(
    name="model",
    help="The versions of a model that is served: see them, compare them, go back.",
    no_args_is_help=True,
)


@model.command("list")
def list_versions(file: ModelFile, as_json: Json = False) -> None:
    """List the versions of MODEL, when and why each was made; a star marks the served one.

    Example: sparserank model list model.safetensors
    """
    from .output import print_json, print_table

    versions = _open(file)
    current = versions.current().number
    if as_json:
        print_json({"current": current, "versions": [one.to_dict() for one in versions.list()]})
        return
    rows = [_row(one, one.number == current) for one in versions.list()]
    print_table("", ("version", "made", "from", "pairs", "why"), rows, right=(0, 2, 3))


@model.command("diff")
def diff_versions(
    file: ModelFile,
    before: Annotated[
        int | None, typer.Option("--from", metavar="N", help="From this version: by default the other's parent.")
    ] = None,
    after: Annotated[
        int | None, typer.Option("--to", metavar="N", help="To this one: by default what is served.")
    ] = None,
    k: Annotated[int, typer.Option("-k", help="How many word pairs at most.", min=1)] = 20,
    as_json: Json = False,
) -> None:
    """Print the word pairs whose weights differ between two versions of MODEL, the largest difference first.

    Example: sparserank model diff model.safetensors --from 1
    """
    from ..errors import DataError
    from ..text_ranker import diff, load_model
    from .output import print_json, print_table

    versions = _open(file)
    new = _version(versions, after)
    start = new.parent if before is None else before
    if start is None:
        raise DataError(f"version {new.number} was learned from no other; name one with --from")
    old = _version(versions, start)
    found = diff(load_model(versions.path(old.number)), load_model(versions.path(new.number)), k)
    if as_json:
        print_json({"before": old.number, "after": new.number, "changes": [change._asdict() for change in found]})
    elif not found:
        print(f"no pair differs between versions {old.number} and {new.number}")
    else:
        rows = [(c.query, c.document, f"{c.before:+.3f}", f"{c.after:+.3f}") for c in found]
        columns = ("query word", "document word", f"version {old.number}", f"version {new.number}")
        print_table("", columns, rows, right=(2, 3))


@model.command("rollback")
def rollback(
    file: ModelFile,
    to: Annotated[
        int | None,
        typer.Option("--to", metavar="N", help="Serve this version: by default the parent of the one served."),
    ] = None,
    index: IndexFile = None,
    as_json: Json = False,
) -> None:
    """Serve another version of MODEL; a running service takes it up within a second, and no version is lost.

    Example: sparserank model rollback model.safetensors --to 1
    """
    from .output import print_json

    versions = _open(file)
    before = versions.current()
    now = versions.rollback(to, index)
    if as_json:
        print_json({"before": before.number, "current": now.number, "version": now.to_dict()})
    else:
        print(f"version {now.number} is served, made {_when(now)}: {now.why} (before: version {before.number})")


def _open(file: ModelFile) -> VersionRegistry:
    from ..versions import VersionRegistry

    return VersionRegistry.open(file, register=False)  # to ask, or to go back, is not to serve what was trained since


def _version(versions: VersionRegistry, number: int | None) -> Version:
    return versions.get(number)


def _row(one: Version, served: bool) -> tuple[str, str, str, str, str]:
    number = f"* {one.number}" if served else str(one.number)
    return number, _when(one), "" if one.parent is None else str(one.parent), f"{one.pairs:,}", one.why


def _when(one: Version) -> str:
    return one.made[:19].replace("T", " ")
