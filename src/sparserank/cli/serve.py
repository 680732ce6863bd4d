"""sparserank serve"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .. import validation
from ..errors import ConfigError
from .arguments import IndexFile, Json, ModelFile

if TYPE_CHECKING:
    from ..service.config import ServiceConfig

TOKEN = "SPARSERANK_TOKEN"


Host = Annotated[str, typer.Option(help="Address to listen on; only this machine reaches a loopback address.")]
Port = Annotated[int, typer.Option(help="Port to listen on; 0 chooses a free one.", min=0, max=65535)]
Workers = Annotated[int, typer.Option(help="Number of worker processes.", min=1, max=64)]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Database for feedback: sqlite:///FILE or postgresql+psycopg://…; by default a file beside MODEL.",
    ),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help=f"File with the token for writes; or set ${TOKEN}. By default a new token is printed."
    ),
]
HeldOut = Annotated[
    str | None,
    typer.Option(
        metavar="DATA",
        help="Judged queries, as a BEIR folder or a known name: a model that is worse on them is never served.",
    ),
]
Split = Annotated[str, typer.Option(metavar="SPLIT", help="The split of --held-out.")]
Learn = Annotated[bool, typer.Option("--learn/--no-learn", help="Learn from feedback.")]
LearnEvery = Annotated[float, typer.Option(metavar="SECONDS", help="Seconds between two checks for feedback.")]
Rate = Annotated[float, typer.Option(help="Requests per second that a worker accepts from one address.")]
OpenReads = Annotated[bool, typer.Option("--open-reads", help="Let other machines search without a token.")]


def serve(
    model: ModelFile,
    index: IndexFile = None,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    workers: Workers = 1,
    database: DatabaseUrl = None,
    token_file: TokenFile = None,
    held_out: HeldOut = None,
    held_out_split: Split = "dev",
    learn: Learn = True,
    learn_every: LearnEvery = 30.0,
    rate: Rate = 1000.0,
    open_reads: OpenReads = False,
    as_json: Json = False,
) -> None:
    """Serve MODEL over HTTP, with a search page, and learn from clicks and ratings.

    Example: sparserank serve pydocs.safetensors --held-out pydocs
    """
    for module in ("fastapi", "uvicorn", "sqlalchemy", "alembic", "prometheus_client", "httptools"):
        validation.installed(module, extra="service")
    import secrets

    from ..service.config import ServiceConfig
    from ..service.server import listen, prepare, run, url_of

    token = _read_token(token_file)
    settings = ServiceConfig(
        str(model), token or secrets.token_urlsafe(24), None if index is None else str(index), database or "", host,
        held_out, held_out_split, learn, learn_every, rate, open_reads,
    )  # fmt: skip
    with ExitStack() as closing:
        sockets = [closing.enter_context(one) for one in listen(host, port, workers)]
        service = prepare(settings, workers)
        _print_address(settings, url_of(sockets[0]), workers, new_token=token is None, as_json=as_json)
        run(service, sockets)


def _read_token(file: Path | None) -> str | None:
    """Read the token from the file or the environment, if there is one."""
    if file is None:
        return os.environ.get(TOKEN) or None
    from ..data.files import read_text

    token = read_text(file).strip()
    if not token:
        raise ConfigError(f"{file}: is empty; it must contain a token")
    return token


def _print_address(settings: ServiceConfig, address: str, workers: int, new_token: bool, as_json: bool) -> None:
    """Print where to open the service; the token only if it is new."""
    from ..service.database import hide_password
    from .output import print_json

    database = hide_password(settings.database)
    if as_json:
        token = {"token": settings.token} if new_token else {}
        print_json({"address": address, "workers": workers, "database": database, "pid": os.getpid()} | token)
    else:
        from rich.console import Console
        from rich.text import Text

        console = Console(highlight=False, soft_wrap=True)
        reads = "open to this machine" if settings.loopback else "open to all" if settings.open_reads else "by token"
        page = f"{address}#token={settings.token}" if new_token else address
        console.print(Text.assemble("SparseRank serves ", (settings.model, "bold")))
        console.print(Text.assemble("  open      ", (page, "bold cyan")))
        console.print(Text(f"  reads     {reads}; writes by token"))
        console.print(Text(f"  feedback  {database}"))
        console.print(Text(f"  workers   {workers}; Ctrl-C ends the service"))
    sys.stdout.flush()
