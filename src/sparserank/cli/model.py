"""sparserank model list, diff, add, rollback, relearn, candidate, promote"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .arguments import IndexFile, Json, MaxResults, ModelFile

if TYPE_CHECKING:
    from ..versions import Version, VersionRegistry

model = typer.Typer(
    name="model", help="List, compare, add and roll back the versions of a served model.", no_args_is_help=True
)


@model.command("list")
def list_versions(file: ModelFile, as_json: Json = False) -> None:
    """List the versions of MODEL with the time and reason of each; a star marks the served one, a + one on trial.

    Example: sparserank model list model.safetensors
    """
    from ..versions import VersionRegistry
    from ..versions.trials import current_trial
    from .output import print_json, print_table

    versions = VersionRegistry.open(file, writable=False)
    current, trial = versions.current().number, current_trial(versions)
    if as_json:
        on_trial = None if trial is None else asdict(trial)
        print_json({"current": current, "trial": on_trial, "versions": [one.to_dict() for one in versions.list()]})
        return
    marks = {current: "* "} if trial is None else {current: "* ", trial.version: "+ "}
    rows = [_row(one, marks.get(one.number, "")) for one in versions.list()]
    print_table("", ("version", "made", "from", "pairs", "why"), rows, right=(0, 2, 3))


@model.command("diff")
def diff_versions(
    file: ModelFile,
    before: Annotated[
        int | None,
        typer.Option(
            "--from", metavar="N", help="The version to compare from; by default the parent of the other one."
        ),
    ] = None,
    after: Annotated[
        int | None, typer.Option("--to", metavar="N", help="The version to compare to; by default the served one.")
    ] = None,
    k: MaxResults = 20,
    as_json: Json = False,
) -> None:
    """Print the word pairs whose weights differ between two versions of MODEL, the largest difference first.

    Example: sparserank model diff model.safetensors --from 1
    """
    from ..errors import DataError
    from ..text_ranker import diff, load_model
    from ..versions import VersionRegistry
    from .output import print_json, print_table

    versions = VersionRegistry.open(file, writable=False)
    new = versions.get(after)
    start = new.parent if before is None else before
    if start is None:
        raise DataError(f"version {new.number} has no parent; name a version with --from")
    old = versions.get(start)
    changes = diff(load_model(versions.path(old.number)), load_model(versions.path(new.number)), k)
    if as_json:
        print_json({"before": old.number, "after": new.number, "changes": [change._asdict() for change in changes]})
    elif not changes:
        print(f"no pair differs between versions {old.number} and {new.number}")
    else:
        rows = [(c.query, c.document, f"{c.before:+.3f}", f"{c.after:+.3f}") for c in changes]
        columns = ("query word", "document word", f"version {old.number}", f"version {new.number}")
        print_table("", columns, rows, right=(2, 3))


@model.command("add")
def add(
    file: ModelFile,
    new: Annotated[
        Path | None,
        typer.Argument(metavar="NEW", help="A model file with its index; by default MODEL, if it was trained again."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Serve a newly trained model as the next version of MODEL; a running service switches within a second.

    Example: sparserank model add model.safetensors new.safetensors
    """
    from ..versions import VersionRegistry
    from .output import print_json

    versions = _open(file)
    before = versions.current()
    if new is None:
        now = VersionRegistry.open(file).current()
    else:
        now = versions.add_file(new, f"added {new.name}")
    if as_json:
        print_json({"before": before.number, "current": now.number, "version": now.to_dict()})
    elif now == before:
        print(f"version {now.number} is served already: {file} was not trained again")
    else:
        print(f"version {now.number} is served: {now.why} (before: version {before.number})")


@model.command("rollback")
def rollback(
    file: ModelFile,
    to: Annotated[
        int | None,
        typer.Option("--to", metavar="N", help="The version to serve; by default the parent of the served one."),
    ] = None,
    index: IndexFile = None,
    as_json: Json = False,
) -> None:
    """Serve another version of MODEL; a running service switches within a second, and no version is lost.

    Example: sparserank model rollback model.safetensors --to 1
    """
    from .output import print_json

    versions = _open(file)
    before = versions.current()
    now = versions.rollback(to, index)
    if as_json:
        print_json({"before": before.number, "current": now.number, "version": now.to_dict()})
    else:
        print(f"version {now.number} is served, made {_time(now)}: {now.why} (before: version {before.number})")


@model.command("relearn")
def relearn(file: ModelFile, as_json: Json = False) -> None:
    """Learn again from all feedback, on top of the served version; after a rollback, for example.

    A running service begins at its next check for feedback.

    Example: sparserank model relearn model.safetensors
    """
    from .. import validation

    validation.installed("sqlalchemy", extra="service")
    from ..service.learning.rounds import learn_again
    from .output import print_json

    outcome = learn_again(_open(file))
    print_json({"said": outcome.said}) if as_json else print(outcome.said)


@model.command("candidate")
def candidate(
    file: ModelFile,
    new: Annotated[
        Path | None, typer.Argument(metavar="NEW", help="A model file with its index, which becomes a version.")
    ] = None,
    version: Annotated[int | None, typer.Option("--version", metavar="N", help="Or a version of MODEL.")] = None,
    share: Annotated[float, typer.Option(help="Share of the searches in which it takes part.")] = 0.5,
    stop: Annotated[bool, typer.Option("--stop", help="End the trial; the served version stays.")] = False,
    as_json: Json = False,
) -> None:
    """Interleave the results of a candidate with those of the served version; clicks decide which one is better.

    Example: sparserank model candidate model.safetensors new.safetensors --share 0.2
    """
    from ..errors import ConfigError
    from ..versions.trials import start_trial, withdraw
    from .output import print_json

    if (new is not None) + (version is not None) + stop != 1:
        raise ConfigError("name one candidate: the model file NEW, or --version N; or end its trial with --stop")
    versions = _open(file)
    if stop:
        ended = withdraw(versions).number
        print_json({"withdrawn": ended}) if as_json else print(f"the trial of version {ended} has ended")
        return
    chosen = version if new is None else new
    assert chosen is not None
    trial = start_trial(versions, chosen, share)
    if as_json:
        print_json({"candidate": trial.version, "share": trial.share, "current": versions.current().number})
    else:
        print(f"version {trial.version} takes part in {100 * trial.share:g} % of the searches")


@model.command("promote")
def promote(file: ModelFile, as_json: Json = False) -> None:
    """Serve the candidate that is on trial; the page and /model show what clicks say about it.

    Example: sparserank model promote model.safetensors
    """
    from ..versions.trials import promote
    from .output import print_json

    versions = _open(file)
    before, now = versions.current(), promote(versions)
    if as_json:
        print_json({"before": before.number, "current": now.number, "version": now.to_dict()})
    else:
        print(f"version {now.number} is served: {now.why} (before: version {before.number})")


def _open(file: ModelFile) -> VersionRegistry:
    from ..versions import VersionRegistry

    return VersionRegistry.open(file, register=False)  # do not serve a model that was trained since


def _row(one: Version, mark: str) -> tuple[str, str, str, str, str]:
    return f"{mark}{one.number}", _time(one), "" if one.parent is None else str(one.parent), f"{one.pairs:,}", one.why


def _time(one: Version) -> str:
    return one.made[:19].replace("T", " ")
