"""Configuration of a service. Worker processes receive it through a pipe, so the token is on no command line."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

from .. import validation
from ..errors import ConfigError

MAX_BODY_BYTES = 64 * 1024
MAX_QUERY_CHARACTERS = 1000
MAX_ID_CHARACTERS = 512
MAX_RESULTS = 100
MAX_SHOWN = 100
MAX_PAIRS = 1000
MAX_OFFSET = 10_000
MAX_FILTER_CHARACTERS = 1000
MAX_FILTER_FIELDS = 20
MAX_FACETS = 10
MAX_FACET_VALUES = 100
MAX_JUDGMENTS = 1000


@dataclass(frozen=True)
class ServiceConfig:
    """The options of `sparserank serve`.

    Parameters
    ----------
    model : str
        Path of the model file.
    token : str
        Bearer token of writes.
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
        Requests per second that each worker accepts from one address.
    open_reads : bool, default=False
        Let other machines read without the token.

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

    def __post_init__(self) -> None:
        if not self.database:
            object.__setattr__(self, "database", f"sqlite:///{self.model}.feedback.sqlite")
        validation.number("rate", self.rate, low=0.0, open_low=True)
        validation.number("learn_every", self.learn_every, low=0.0, open_low=True)
        if not self.token.isascii() or not self.token.isprintable() or " " in self.token or not self.token:
            raise ConfigError("the token must consist of printable ASCII characters without spaces")

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the service."""
        return is_loopback(self.host)

    @property
    def reads_need_token(self) -> bool:
        """Whether reads need the token."""
        return not self.loopback and not self.open_reads


def is_loopback(host: str) -> bool:
    """Return whether an address or host name belongs to this machine alone.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("example.org")
    (True, True, False, False)
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"
