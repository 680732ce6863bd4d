"""The typer application with all commands."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import __version__
from . import datasets, demo, evaluate, explain, export, index, mcp, related, reproduce, search, serve, train
from .feedback import feedback
from .model import model

app = typer.Typer(
    name="sparserank",
    help="Learn to rank from raw words on a CPU, with sparse and readable models.",
    epilog="Start with: sparserank demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(option: bool) -> None:
    if option:
        typer.echo(f"sparserank {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


CONTEXT = {"serve": {"auto_envvar_prefix": "SPARSERANK_SERVE"}}
"""Options of a command that come from the environment too."""

for command in (
    demo.demo,
    train.train,
    evaluate.evaluate,
    search.search,
    explain.explain,
    related.related,
    index.index,
    serve.serve,
    mcp.mcp,
    export.export,
    reproduce.reproduce,
    datasets.datasets,
):
    app.command(context_settings=CONTEXT.get(command.__name__))(command)
app.add_typer(model)
app.add_typer(feedback)
