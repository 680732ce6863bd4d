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

IMPRESSION_CHARACTERS, INTERLEAVED_CHARACTERS = 48, 60
MAX_AGE_S = 24 * 3600.0
CLOCK_SKEW_S = 300.0
"""Difference between the clocks of two machines that share a database."""
_FIELDS = struct.Struct(">III8s")  # version, offset, seconds since 1970, random number
_DRAFT = struct.Struct(">IH3s")  # candidate, drafted, random number
_SIGNATURE_BYTES = 16


class InvalidImpression(DataError):
    """A click that does not belong to the impression that it names."""


class Impression(NamedTuple):
    """The version that answered, the number of results before the first one, the time, and a random number.

    If a candidate picked some of the results, `candidate` is its version, and the first `drafted` positions of the
    whole list were picked in turn, by the coins of `seed`.
    """

    version: int
    offset: int
    seconds: int
    seed: bytes = b""
    candidate: int = 0
    drafted: int = 0


def sign(key: bytes, query: str, shown: Sequence[str], impression: Impression) -> str:
    """Return the impression of one answer as text; without a seed it gets a random one.

    >>> text = sign(b"key", "red apple", ["d2", "d1"], Impression(version=3, offset=0, seconds=1000))
    >>> len(text), verify(b"key", text, "red apple", ["d2", "d1"], now=1060.0)[:3]
    (48, (3, 0, 1000))
    >>> text = sign(b"key", "red apple", ["d2"], Impression(3, 0, 1000, bytes(8), candidate=4, drafted=10))
    >>> len(text), read(text).candidate, read(text).drafted
    (60, 4, 10)
    """
    seed = impression.seed or secrets.token_bytes(8)
    fields = _FIELDS.pack(*impression[:3], seed)
    if impression.candidate:
        # people behind one address may ask the same in the same second; each has an impression of their own
        fields += _DRAFT.pack(impression.candidate, impression.drafted, secrets.token_bytes(3))
    return urlsafe_b64encode(fields + _signature(key, fields, query, shown)).decode()


def read(impression: str) -> Impression:
    """Return what an impression says, without a check of its signature; another text raises InvalidImpression."""
    return _read(impression)[0]


def _read(impression: str) -> tuple[Impression, bytes, bytes]:
    """Return what an impression says, its fields as bytes, and its signature."""
    try:
        content = urlsafe_b64decode(impression.encode("ascii"))
        fields, signature = content[:-_SIGNATURE_BYTES], content[-_SIGNATURE_BYTES:]
        found = Impression(*_FIELDS.unpack(fields[: _FIELDS.size]))
        if len(fields) > _FIELDS.size:
            candidate, drafted, _ = _DRAFT.unpack(fields[_FIELDS.size :])
            found = found._replace(candidate=candidate, drafted=drafted)
    except (ValueError, struct.error):
        raise InvalidImpression("the impression is not one that /search returned") from None
    return found, fields, signature


def verify(key: bytes, impression: str, query: str, shown: Sequence[str], now: float | None = None) -> Impression:
    """Return what an impression says; one that is forged, of another search or too old raises InvalidImpression.

    >>> verify(b"key", sign(b"key", "red", ["d1", "d2"], Impression(3, 0, 0)), "red", ["d2", "d1"])
    Traceback (most recent call last):
    ...
    sparserank.service.impressions.InvalidImpression: the impression is not one of this query with these documents ...
    """
    found, fields, signature = _read(impression)
    if not hmac.compare_digest(signature, _signature(key, fields, query, shown)):
        raise InvalidImpression(
            "the impression is not one of this query with these documents in this order; "
            "send query, shown and impression as /search returned them"
        )
    age = (time.time() if now is None else now) - found.seconds
    if not -CLOCK_SKEW_S <= age <= MAX_AGE_S:
        raise InvalidImpression(f"the impression is older than {MAX_AGE_S / 3600:.0f} hours; search again")
    return found


def address_digest(key: bytes, address: str) -> str:
    """Return an opaque name of a client address: the database contains no address."""
    return hmac.new(key, b"address " + address.encode(), hashlib.sha256).hexdigest()[:16]


def _signature(key: bytes, fields: bytes, query: str, shown: Sequence[str]) -> bytes:
    content = json.dumps([query, list(shown)]).encode()
    return hmac.new(key, b"impression " + fields + content, hashlib.sha256).digest()[:_SIGNATURE_BYTES]
