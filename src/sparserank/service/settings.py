"""How one service was asked to run. Worker processes get it through a pipe: the token is on no command line."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

from .. import validation
from ..errors import ConfigError

BODY_BYTES = 64 * 1024
QUERY_LENGTH = 1000
MOST_RESULTS = 100
MOST_SHOWN = 100
MOST_PAIRS = 1000
ID_LENGTH = 512
"""Limits on what a request may hold; each is a 4xx that says so."""


@dataclass(frozen=True)
class Settings:
    """What `sparserank serve` was told.

    database : an SQLAlchemy URL; a file beside the model unless given.
    rate : requests a second that each worker takes from one address, with as many at once.

    >>> Settings("m.safetensors", token="secret")
    Settings(model='m.safetensors', index=None, database='sqlite:///m.safetensors.feedback.sqlite', host='127.0.0.1', \
held_out=None, held_out_split='dev', learn=True, learn_every=30.0, rate=1000.0, open_reads=False)
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
            raise ConfigError("a token is made of printable ASCII characters without spaces")

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the service."""
        return is_loopback(self.host)

    @property
    def reads_need_token(self) -> bool:
        """Reads are open on this machine alone, unless they were opened on purpose."""
        return not self.loopback and not self.open_reads


def is_loopback(host: str) -> bool:
    """Whether an address or a host name names this machine alone.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("example.org")
    (True, True, False, False)
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"
