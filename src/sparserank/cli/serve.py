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
from .arguments import IndexFile, Json

if TYPE_CHECKING:
    from ..service.config import CollectionConfig, ServiceConfig

TOKEN = "SPARSERANK_TOKEN"
COLLECTIONS = "sparserank.collections"
"""The tables of a configuration file, in the context of the command."""


def _read_config(context: typer.Context, file: Path | None) -> Path | None:
    """Take the options of a TOML file as defaults."""
    if file is not None:
        import tomllib

        from ..data.files import read_text

        try:
            options = tomllib.loads(read_text(file))
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{file}: not TOML: {error}") from None
        collections = options.pop("collections", {})
        if collections:
            options["model"] = _read_collections(context, file, collections)
        elif isinstance(options.get("model"), str):
            options["model"] = [options["model"]]
        known = {parameter.name for parameter in context.command.params} - {"config", "check", "help"}
        for name in options:
            if name not in known:
                raise ConfigError(f"{file}: there is no option {name!r}; the options are: {', '.join(sorted(known))}")
        context.default_map = {**options, **(context.default_map or {})}
    return file


def _read_collections(context: typer.Context, file: Path, tables: object) -> list[str]:
    """Keep the tables [collections.NAME]; return NAME=MODEL of each."""
    known = ("model", "index", "database", "held_out", "held_out_split")
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise ConfigError(f"{file}: write a table [collections.NAME] for each collection")
    for name, table in tables.items():
        where = f"{file}: [collections.{name}]"
        for option, value in table.items():
            if option not in known:
                raise ConfigError(f"{where}: there is no option {option!r}; the options are: {', '.join(known)}")
            if not isinstance(value, str):
                raise ConfigError(f"{where}: the option {option!r} must be text; got {value!r}")
        if "model" not in table:
            raise ConfigError(f"{where}: the option 'model' is missing")
    context.meta[COLLECTIONS] = tables
    return [f"{name}={table['model']}" for name, table in tables.items()]


Models = Annotated[
    list[str],
    typer.Argument(
        metavar="MODEL...",
        help="A model file that `sparserank train` wrote; or several, each as NAME=MODEL, to serve them under /NAME/.",
    ),
]
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
RoleTokenFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--role-token-file",
        metavar="ROLE=FILE",
        help="File with the token of one role: read, click, judge, admin or metrics; or set $SPARSERANK_CLICK_TOKEN, …",
    ),
]
TrustedProxies = Annotated[
    list[str] | None,
    typer.Option(
        "--trusted-proxy", metavar="NETWORK", help="Address or network of a proxy whose X-Forwarded-For is trusted."
    ),
]
UnsignedClicks = Annotated[bool, typer.Option("--unsigned-clicks", help="Count clicks without an impression too.")]
RoundTimeout = Annotated[float, typer.Option(metavar="SECONDS", help="Seconds after which a learning round is ended.")]
KeepVersions = Annotated[
    int | None,
    typer.Option(metavar="N", help="Keep the last N versions of the model and the served one; default: all."),
]
ClicksPerVisitor = Annotated[int, typer.Option(help="Clicks of one visitor on one query that count in a day.", min=1)]
ClicksPerAddress = Annotated[int, typer.Option(help="Clicks of one address on one query that count in a day.", min=1)]
LogFormat = Annotated[
    str, typer.Option(metavar="plain|json", help="Log lines of text, or JSON objects, one also for each request.")
]
Traces = Annotated[
    bool,
    typer.Option("--telemetry", help="Send OpenTelemetry traces to $OTEL_EXPORTER_OTLP_ENDPOINT; needs the extra."),
]
PromoteAfter = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, help="Serve a candidate, or end its trial, by its first N impressions that one model won."
    ),
]
PromoteLevel = Annotated[
    float, typer.Option(metavar="P", help="With --promote-after: serve it if the sign test has a p-value below P.")
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="TOML file with any of these options: names without dashes in front, `_` for `-`.",
        callback=_read_config,
        is_eager=True,
    ),
]
Check = Annotated[
    bool, typer.Option("--check", help="Check the options, the model, the database and the judgments, and exit.")
]
Drain = Annotated[
    float,
    typer.Option(metavar="SECONDS", help="Seconds to keep answering after SIGTERM, while /ready returns 503.", min=0),
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
Rate = Annotated[
    float,
    typer.Option(
        help="Cost per second that a worker accepts from one address: 1 for a search, more if it computes longer."
    ),
]
OpenReads = Annotated[bool, typer.Option("--open-reads", help="Let other machines search without a token.")]


def serve(
    context: typer.Context,
    model: Models,
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
    role_token_file: RoleTokenFiles = None,
    trusted_proxy: TrustedProxies = None,
    unsigned_clicks: UnsignedClicks = False,
    clicks_per_visitor: ClicksPerVisitor = 3,
    clicks_per_address: ClicksPerAddress = 10,
    drain: Drain = 1.0,
    round_timeout: RoundTimeout = 900.0,
    keep_versions: KeepVersions = None,
    log_format: LogFormat = "plain",
    telemetry: Traces = False,
    promote_after: PromoteAfter = None,
    promote_level: PromoteLevel = 0.05,
    config: ConfigFile = None,
    check: Check = False,
    as_json: Json = False,
) -> None:
    """Serve MODEL over HTTP, with a search page, and learn from clicks and ratings.

    An option comes from the command line, else from a variable such as $SPARSERANK_SERVE_LEARN_EVERY, else from the
    file of --config. Several models are collections of one service, each with its own feedback:
    `sparserank serve docs=docs.safetensors api=api.safetensors` answers at /docs/search and /api/search.

    Example: sparserank serve pydocs.safetensors --held-out pydocs
    """
    for module in ("fastapi", "uvicorn", "sqlalchemy", "alembic", "prometheus_client", "httptools"):
        validation.installed(module, extra="service")
    import secrets

    from ..service.config import ServiceConfig
    from ..service.server import listen, prepare, run, url_of

    token, tokens = _read_token(token_file), _read_role_tokens(role_token_file or [])
    new_token = secrets.token_urlsafe(24) if token is None and not tokens.keys() - {"metrics"} else None
    path, collections = _named(model, context.meta.get(COLLECTIONS, {}))
    if collections and (index or held_out):
        raise ConfigError("--index and --held-out are those of one model; write [collections.NAME] in --config FILE")
    settings = ServiceConfig(
        path, token or new_token or "", None if index is None else str(index), database or "", host,
        held_out, held_out_split, learn, learn_every, rate, open_reads, tokens, unsigned_clicks,
        clicks_per_visitor, clicks_per_address, trusted_proxies=tuple(trusted_proxy or ()), drain=drain,
        round_timeout=round_timeout, keep_versions=keep_versions, log_format=log_format,
        telemetry=telemetry, promote_after=promote_after, promote_level=promote_level, collections=collections,
    )  # fmt: skip
    if check:
        _print_check(settings, workers, as_json)
        return
    with ExitStack() as closing:
        sockets = [closing.enter_context(one) for one in listen(host, port, workers)]
        service = prepare(settings, workers)
        _print_address(settings, url_of(sockets[0]), workers, new_token=new_token is not None, as_json=as_json)
        run(service, sockets)


def _named(models: list[str], tables: dict[str, dict[str, str]]) -> tuple[str, tuple[CollectionConfig, ...]]:
    """Return the path of the only model, or the collections of several."""
    from ..service.config import CollectionConfig

    if len(models) == 1 and ("=" not in models[0] or Path(models[0]).exists()):
        return models[0], ()
    collections = []
    for entry in models:
        name, equals, path = entry.partition("=")
        if not equals:
            raise ConfigError(f"several models need names: write NAME=MODEL, not {entry!r}")
        options = tables.get(name, {})
        same = options.get("model") == path
        collections.append(CollectionConfig(**{**(options if same else {}), "name": name, "model": path}))
    return "", tuple(collections)


def _read_token(file: Path | None) -> str | None:
    """Read the token from the file or the environment, if there is one."""
    if file is None:
        return os.environ.get(TOKEN) or None
    from ..data.files import read_text

    token = read_text(file).strip()
    if not token:
        raise ConfigError(f"{file}: is empty; it must contain a token")
    return token


def _read_role_tokens(files: list[str]) -> dict[str, str]:
    """Read the tokens of roles from files and the environment."""
    from ..service.access import METRICS, ROLES

    variables = {role: os.environ.get(f"SPARSERANK_{role.upper()}_TOKEN") for role in (*ROLES, METRICS)}
    tokens = {role: token for role, token in variables.items() if token}
    for entry in files:
        role, equals, file = entry.partition("=")
        if not equals or role not in variables:
            raise ConfigError(f"--role-token-file must be ROLE=FILE with one of {', '.join(variables)}; got {entry!r}")
        tokens[role] = _read_token(Path(file)) or ""
    return tokens


def _print_address(settings: ServiceConfig, address: str, workers: int, new_token: bool, as_json: bool) -> None:
    """Print where to open the service; the token only if it is new."""
    from ..service.database import hide_password
    from .output import print_json

    databases = {name: hide_password(one.database) for name, one in settings.by_collection.items()}
    if as_json:
        token = {"token": settings.token} if new_token else {}
        content = {"collections": databases} if settings.collections else {"database": databases[""]}
        print_json({"address": address, "workers": workers, **content, "pid": os.getpid()} | token)
    else:
        from rich.console import Console
        from rich.text import Text

        console = Console(highlight=False, soft_wrap=True)
        reads = "open to this machine" if settings.loopback else "open to all" if settings.open_reads else "by token"
        for name, one in settings.by_collection.items():
            page = f"{address}{name}/" if name else address
            page = f"{page}#token={settings.token}" if new_token else page
            console.print(Text.assemble("SparseRank serves ", (one.model, "bold")))
            console.print(Text.assemble("  open      ", (page, "bold cyan")))
            console.print(Text(f"  feedback  {databases[name]}"))
        console.print(Text(f"  reads     {reads}; writes by token"))
        console.print(Text(f"  workers   {workers}; Ctrl-C ends the service"))
    sys.stdout.flush()


def _print_check(settings: ServiceConfig, workers: int, as_json: bool) -> None:
    """Check everything that a start checks, except the address."""
    from ..service.database import hide_password
    from ..service.server import check
    from .output import print_json

    found = check(settings)
    contents = {
        name: {"model": one.model, "version": found[name][0], "documents": found[name][1],
               "database": hide_password(one.database)}
        for name, one in settings.by_collection.items()
    }  # fmt: skip
    if as_json:
        content = {"collections": contents} if settings.collections else contents[""]
        print_json({**content, "workers": workers, "ok": True})
        return
    for one in contents.values():
        what = f"version {one['version']}, {one['documents']:,} documents; {one['database']}"
        print(f"{one['model']}: {what}; all checks passed")
