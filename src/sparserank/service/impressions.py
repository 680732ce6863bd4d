"""Signed impressions: a click must show that the service returned these documents, in this order, for this query.

An impression is a string that `/search` returns. Its signature covers the query, the documents with their positions,
the version of the model and the time, so that the service needs to store nothing for a search. The key is in the
feedback database, which all workers share; no token can make an impression.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import struct
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import NamedTuple

from ..errors import DataError

IMPRESSION_CHARACTERS = 48
MAX_AGE_S = 24 * 3600.0
CLOCK_SKEW_S = 300.0
"""Difference between the clocks of two machines that share a database."""
_FIELDS = struct.Struct(">III8s")  # version, offset, seconds since 1970, random number
_SIGNATURE_BYTES = 16


class InvalidImpression(DataError):
    """A click that does not belong to the impression that it names."""


class Impression(NamedTuple):
    """The version that answered, the number of results before the first one, and the time."""

    version: int
    offset: int
    seconds: int


def sign(key: bytes, query: str, shown: Sequence[str], version: int, offset: int, now: float | None = None) -> str:
    """Return the impression of one answer.

    >>> impression = sign(b"key", "red apple", ["d2", "d1"], version=3, offset=0, now=1000.0)
    >>> len(impression), verify(b"key", impression, "red apple", ["d2", "d1"], now=1060.0)
    (48, Impression(version=3, offset=0, seconds=1000))
    """
    seconds = int(time.time() if now is None else now)
    fields = _FIELDS.pack(version, offset, seconds, secrets.token_bytes(8))
    return urlsafe_b64encode(fields + _signature(key, fields, query, shown)).decode()


def verify(key: bytes, impression: str, query: str, shown: Sequence[str], now: float | None = None) -> Impression:
    """Return what an impression says; one that is forged, of another search or too old raises InvalidImpression.

    >>> verify(b"key", sign(b"key", "red", ["d1", "d2"], 3, 0), "red", ["d2", "d1"])
    Traceback (most recent call last):
    ...
    sparserank.service.impressions.InvalidImpression: the impression is not one of this query with these documents ...
    """
    try:
        content = urlsafe_b64decode(impression.encode("ascii"))
        fields, signature = content[: _FIELDS.size], content[_FIELDS.size :]
        version, offset, seconds, _ = _FIELDS.unpack(fields)
    except (ValueError, struct.error):
        raise InvalidImpression("the impression is not one that /search returned") from None
    if not hmac.compare_digest(signature, _signature(key, fields, query, shown)):
        raise InvalidImpression(
            "the impression is not one of this query with these documents in this order; "
            "send query, shown and impression as /search returned them"
        )
    age = (time.time() if now is None else now) - seconds
    if not -CLOCK_SKEW_S <= age <= MAX_AGE_S:
        raise InvalidImpression(f"the impression is older than {MAX_AGE_S / 3600:.0f} hours; search again")
    return Impression(version, offset, seconds)


def address_digest(key: bytes, address: str) -> str:
    """Return an opaque name of a client address: the database contains no address."""
    return hmac.new(key, b"address " + address.encode(), hashlib.sha256).hexdigest()[:16]


def _signature(key: bytes, fields: bytes, query: str, shown: Sequence[str]) -> bytes:
    content = json.dumps([query, list(shown)]).encode()
    return hmac.new(key, b"impression " + fields + content, hashlib.sha256).digest()[:_SIGNATURE_BYTES]
