"""Configuration of a service. Worker processes receive it through a pipe, so the token is on no command line."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from .. import validation
from ..data.files import PathLike
from ..errors import ConfigError
from ..search.segment import MAX_ID_CHARACTERS as MAX_ID_CHARACTERS
from .access import validate_tokens
from .click_limits import ClickLimits
from .logs import LOG_FORMATS

MAX_BODY_BYTES = 64 * 1024
MAX_QUERY_CHARACTERS = 1000
MAX_RESULTS = 100
MAX_SHOWN = 100
MAX_PAIRS = 1000
MAX_OFFSET = 10_000
MAX_FILTER_CHARACTERS = 1000
MAX_FILTER_FIELDS = 20
MAX_FACETS = 10
MAX_FACET_VALUES = 100
MAX_JUDGMENTS = 1000


RESERVED_NAMES = frozenset({
    "changes", "compare", "documents", "explain", "feedback", "health", "judgments", "metrics", "model", "page",
    "ready", "related", "search",
})  # fmt: skip
"""First parts of the paths of a service, which no collection may have as its name."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True)
class CollectionConfig:
    """One of several collections that a service serves, under `/NAME/`.

    Parameters
    ----------
    name : str
        Letters, digits, `-` and `_`.
    model : str
        Path of the model file.
    index : str, optional
        Path of the index file. None uses the one of the model.
    database : str, default=""
        SQLAlchemy URL of its feedback database. The default is that of the service with the name in place of
        `{name}`, or a SQLite file next to the model.
    held_out : str, optional
        BEIR folder or data set name with held-out judgments.
    held_out_split : str, default="dev"
        Split of the held-out judgments.
    """

    name: str
    model: str
    index: str | None = None
    database: str = ""
    held_out: str | None = None
    held_out_split: str = "dev"

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or self.name in RESERVED_NAMES:
            raise ConfigError(
                f"a collection cannot have the name {self.name!r}: use letters, digits, - and _, and no word of the "
                "service's own paths"
            )


@dataclass(frozen=True)
class ServiceConfig:
    """The options of `sparserank serve`.

    Parameters
    ----------
    model : str
        Path of the model file.
    token : str
        Bearer token of every role. May be empty if `tokens` has some.
    index : str, optional
        Path of the index file. None uses the one of the model.
    database : str, default=""
        SQLAlchemy URL of the feedback database. The default is a SQLite file next to the model.
    host : str, default="127.0.0.1"
        Address to listen at.
    held_out : str, optional
        BEIR folder or data set name with held-out judgments.
    held_out_split : str, default="dev"
        Split of the held-out judgments.
    learn : bool, default=True
        Learn from feedback.
    learn_every : float, default=30.0
        Seconds between two checks for new feedback.
    rate : float, default=1000.0
        Cost per second that each worker accepts from one address. A request costs 1, and 1 more for each half
        millisecond of computation after the first.
    open_reads : bool, default=False
        Let other machines read without the token.
    tokens : dict, optional
        Tokens of single roles: "read", "click", "judge", "admin"; and "metrics" for `/metrics` alone.
    unsigned_clicks : bool, default=False
        Count clicks without an impression too.
    clicks_per_visitor : int, default=3
        Clicks of one visitor on one query that count in 24 hours.
    clicks_per_address : int, default=10
        Clicks of one address on one query that count in 24 hours.
    trusted_proxies : tuple of str, default=()
        Addresses or networks of proxies whose `X-Forwarded-For` names the client.
    drain : float, default=1.0
        Seconds between SIGTERM, when `/ready` turns to 503, and the end of listening.
    round_timeout : float, default=900.0
        Seconds after which a learning round is ended; the next one begins later.
    keep_versions : int, optional
        Number of versions to keep; None keeps all.
    log_format : {"plain", "json"}, default="plain"
        Lines of text, or one JSON object per line, also for each request.
    telemetry : bool, default=False
        Send OpenTelemetry traces to the collector of $OTEL_EXPORTER_OTLP_ENDPOINT.
    promote_after : int, optional
        Decided impressions after which a candidate is served, or its trial ended. None leaves it to an administrator.
    promote_level : float, default=0.05
        A candidate is served if it won more impressions and the p-value of the sign test is below this.
    collections : tuple of CollectionConfig, default=()
        Several collections with names. `model` is empty then, and `index`, `held_out` and `held_out_split` do not
        apply.

    Examples
    --------
    >>> ServiceConfig("m.safetensors", token="secret").database
    'sqlite:///m.safetensors.feedback.sqlite'
    """

    model: str
    token: str = field(repr=False)
    index: str | None = None
    database: str = ""
    host: str = "127.0.0.1"
    held_out: str | None = None
    held_out_split: str = "dev"
    learn: bool = True
    learn_every: float = 30.0
    rate: float = 1000.0
    open_reads: bool = False
    tokens: Mapping[str, str] = field(default_factory=dict, repr=False)
    unsigned_clicks: bool = False
    clicks_per_visitor: int = 3
    clicks_per_address: int = 10
    trusted_proxies: tuple[str, ...] = ()
    drain: float = 1.0
    round_timeout: float = 900.0
    keep_versions: int | None = None
    log_format: str = "plain"
    telemetry: bool = False
    promote_after: int | None = None
    promote_level: float = 0.05
    collections: tuple[CollectionConfig, ...] = ()

    def __post_init__(self) -> None:
        if self.collections:
            self._check_collections()
        elif not self.database:
            object.__setattr__(self, "database", default_database(self.model))
        validation.number("rate", self.rate, low=0.0, open_low=True)
        validation.number("learn_every", self.learn_every, low=0.0, open_low=True)
        validation.number("drain", self.drain, low=0.0)
        validation.count("clicks_per_visitor", self.clicks_per_visitor, low=1)
        validation.count("clicks_per_address", self.clicks_per_address, low=1)
        validation.number("round_timeout", self.round_timeout, low=0.0, open_low=True)
        if self.keep_versions is not None:
            validation.count("keep_versions", self.keep_versions, low=1)
        if self.promote_after is not None:
            validation.count("promote_after", self.promote_after, low=1)
        validation.number("promote_level", self.promote_level, low=0.0, high=1.0, open_low=True)
        validation.choice("log_format", self.log_format, LOG_FORMATS)
        self.proxy_networks()
        validate_tokens(self.token, self.tokens, public=not self.loopback)

    @property
    def by_collection(self) -> dict[str, ServiceConfig]:
        """The configuration of each collection; a model without a name has the empty one."""
        if not self.collections:
            return {"": self}
        return {
            one.name: replace(
                self, collections=(), model=one.model, index=one.index, held_out=one.held_out,
                held_out_split=one.held_out_split, database=one.database or self.database.replace("{name}", one.name),
            )
            for one in self.collections
        }  # fmt: skip

    def _check_collections(self) -> None:
        """Raise ConfigError for names that are the same, and for collections that would share feedback or versions."""
        if self.database and "{name}" not in self.database and not all(one.database for one in self.collections):
            raise ConfigError(
                "each collection has its own feedback: write --database with {name} in it, which stands for its name"
            )
        configs = self.by_collection.values()
        for what, values in (
            ("name", [one.name for one in self.collections]),
            ("database", [_without_links(config.database) for config in configs]),
        ):
            if len(set(values)) < len(values):
                raise ConfigError(f"two collections have the same {what}; give each its own")
        if self.learn and len({Path(config.model).resolve() for config in configs}) < len(configs):
            raise ConfigError("two collections learn into the same model; give each its own, or use --no-learn")

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the service; a proxy on this machine lets others reach it."""
        return is_loopback(self.host) and not self.trusted_proxies

    @property
    def reads_need_token(self) -> bool:
        """Whether reads need the token."""
        return not self.loopback and not self.open_reads

    @property
    def click_limits(self) -> ClickLimits:
        """How many clicks count."""
        return ClickLimits(self.clicks_per_visitor, self.clicks_per_address)

    def proxy_networks(self) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
        """Return the networks of the trusted proxies. Another text raises ConfigError."""
        try:
            return [ipaddress.ip_network(text) for text in self.trusted_proxies]
        except ValueError as error:
            raise ConfigError(f"trusted_proxies: {error}; write an address or a network such as 10.0.0.0/8") from None


def default_database(model: PathLike) -> str:
    """Return the URL of the feedback database next to a model file."""
    return f"sqlite:///{model}.feedback.sqlite"


def _without_links(database: str) -> str:
    """Return the URL of a database; that of a SQLite file names the file itself, however it was spelled."""
    scheme, _, path = database.partition(":///")
    return f"{scheme}:///{Path(path).resolve()}" if scheme == "sqlite" else database


def is_loopback(host: str) -> bool:
    """Return whether an address or host name belongs to this machine alone.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("example.org")
    (True, True, False, False)
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"
