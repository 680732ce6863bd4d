"""Roles and their tokens: who may read, click, judge and administrate.

A role includes those before it in ROLES. The main token of a service has every role.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from ..errors import ConfigError

ROLES = ("read", "click", "judge", "admin")
"""In ascending order."""
METRICS = "metrics"
"""The role of a token that reads `/metrics` and nothing else."""
MIN_PUBLIC_TOKEN_CHARACTERS = 16


class Access:
    """Find the role of a request.

    Parameters
    ----------
    token : str
        Token with every role; empty if there is none.
    tokens : dict
        A token for each role that has its own.

    Examples
    --------
    >>> access = Access("", {"click": "abc", "admin": "xyz"})
    >>> access.role(b"Bearer abc"), access.role(b"Bearer wrong"), access.role(b"")
    ('click', None, None)
    >>> may("admin", "click"), may("click", "judge"), may(None, "read")
    (True, False, False)
    """

    def __init__(self, token: str, tokens: Mapping[str, str]) -> None:
        own = {role: tokens[role] for role in (METRICS, *ROLES) if role in tokens}
        self._tokens = [(role, value.encode()) for role, value in own.items()]
        if token:
            self._tokens.append(("admin", token.encode()))
        self.has_metrics_token = METRICS in own

    def role(self, authorization: bytes) -> str | None:
        """Return the role of an Authorization header, or None; every token is compared, in constant time."""
        scheme, _, token = authorization.partition(b" ")
        found = None
        for role, known in self._tokens:
            if hmac.compare_digest(token.strip(), known) and scheme.lower() == b"bearer":
                found = role
        return found


def may(role: str | None, needed: str) -> bool:
    """Return whether a role includes the one that a request needs."""
    if role is None or role not in ROLES or needed not in ROLES:
        return role == needed
    return ROLES.index(role) >= ROLES.index(needed)


def validate_tokens(token: str, tokens: Mapping[str, str], public: bool) -> None:
    """Raise ConfigError for an unknown role, and for a token that no header can carry or that is easy to guess."""
    for role in tokens:
        if role not in (*ROLES, METRICS):
            raise ConfigError(f"there is no role {role!r}; the roles are: {', '.join((*ROLES, METRICS))}")
    if not tokens and not token:
        _validate(token, public)
    for value in [*([token] if token else []), *tokens.values()]:
        _validate(value, public)
    values = [*([token] if token else []), *tokens.values()]
    if len(set(values)) < len(values):
        raise ConfigError("two roles have the same token; give each role its own")


def _validate(token: str, public: bool) -> None:
    if not token.isascii() or not token.isprintable() or " " in token or not token:
        raise ConfigError("the token must consist of printable ASCII characters without spaces")
    if public and len(token) < MIN_PUBLIC_TOKEN_CHARACTERS:
        raise ConfigError(
            f"a token must have at least {MIN_PUBLIC_TOKEN_CHARACTERS} characters if other machines can reach the "
            "service; leave it out to get a new one"
        )
