"""The manifest `versions.json`: all versions of a model, and when each of them was served."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from ..data.files import read_bytes, write_bytes
from ..errors import DataError, ModelError

FORMAT = 1


@dataclass(frozen=True)
class Version:
    """A version of a model.

    Parameters
    ----------
    number : int
        Number of the version, from 1.
    made : str
        ISO time of its creation.
    why : str
        Reason for its creation.
    parent : int or None
        The version it was learned from, or for a copy of a model file the one that was served before; None for the
        first version.
    pairs : int
        Number of word pairs.
    sha256 : str
        Digest of its file.
    check : dict, optional
        Results of the checks before it was served.
    learned_through : int, default=0
        Number of the last feedback that it takes into account.
    index : str, optional
        Name of its own index file, if the index of the model file does not match.
    removed : bool, default=False
        Its files were removed; the record of it stays.
    is_copy : bool, default=False
        It is a copy of a model file, and not learned from its parent.

    Examples
    --------
    >>> Version(1, "2026-01-01T00:00:00+00:00", "initial model file", None, 0, "").to_dict()["number"]
    1
    """

    number: int
    made: str
    why: str
    parent: int | None
    pairs: int
    sha256: str
    check: Mapping[str, Any] = field(default_factory=dict)
    learned_through: int = 0
    index: str | None = None
    removed: bool = False
    is_copy: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Trial:
    """A version that answers a share of the searches together with the served one, until users have chosen.

    Parameters
    ----------
    version : int
        Number of the candidate.
    share : float
        Share of the searches, in (0, 1].
    since : str
        ISO time of the start.
    """

    version: int
    share: float
    since: str


@dataclass(frozen=True)
class Manifest:
    """All versions, (number, ISO time) of each start of serving, the digest of the model file, and the trial."""

    versions: tuple[Version, ...]
    served: tuple[tuple[int, str], ...]
    source: str
    trial: Trial | None = None

    @classmethod
    def of_file(cls, sha256: str, pairs: int) -> Manifest:
        """Return a manifest whose only version is the model file."""
        now = utc_now()
        return cls((Version(1, now, "initial model file", None, pairs, sha256),), ((1, now),), sha256)

    def served_at(self, moment: datetime) -> Version:
        """Return the version that was served at a moment, or the next one that was not removed."""
        before = [number for number, since in self.served if datetime.fromisoformat(since) <= moment.astimezone(UTC)]
        kept = {version.number for version in self.versions if not version.removed}
        later = [number for number, _ in self.served[max(len(before) - 1, 0) :] if number in kept]
        return self.get(later[0])  # the served version is never removed

    def get(self, number: int) -> Version:
        """Return a version. An unknown number raises DataError."""
        for version in self.versions:
            if version.number == number and not version.removed:
                return version
        numbers = ", ".join(str(version.number) for version in self.versions if not version.removed)
        raise DataError(f"there is no version {number}; the versions are: {numbers}")

    def with_served(self, number: int) -> Manifest:
        """Return a manifest that serves this version from now on; it is no candidate any more."""
        trial = None if self.trial is not None and self.trial.version == number else self.trial
        return replace(self, served=(*self.served, (number, utc_now())), trial=trial)

    @cached_property
    def roots(self) -> dict[int, int]:
        """For each version the number of the copy of the model file that it descends from."""
        roots: dict[int, int] = {}
        for version in self.versions:  # a parent precedes its children
            parent = None if version.is_copy else version.parent
            roots[version.number] = version.number if parent is None else roots[parent]
        return roots

    @property
    def current(self) -> Version:
        """The served version."""
        return self.get(self.served[-1][0])


def read_manifest(path: Path) -> Manifest:
    """Read a manifest. A damaged or inconsistent file raises ModelError with its path."""
    try:
        content = json.loads(read_bytes(path))
        if content["format"] != FORMAT:
            raise ValueError(f"format {content['format']!r}; this release reads format {FORMAT}")
        names = [field.name for field in fields(Version)]
        versions = tuple(
            Version(**{"removed": False} | {name: version[name] for name in names if name in version})
            for version in content["versions"]
        )
        served = tuple(
            (int(entry["version"]), datetime.fromisoformat(entry["since"]).isoformat()) for entry in content["served"]
        )
        manifest = Manifest(versions, served, str(content["source"]), _read_trial(content.get("trial")))
        if not {number for number, _ in served} <= {version.number for version in versions}:
            raise ValueError("a served version is not listed")
        if manifest.trial is not None:
            manifest.get(manifest.trial.version)
        manifest.current, manifest.roots  # noqa: B018 - raises if no version is served or a parent is missing
    except DataError as error:
        raise ModelError(str(error) if str(path) in str(error) else f"{path}: {error}") from None
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise ModelError(f"{path}: damaged: {error}; move it away to start again from the model file") from None
    return manifest


def _read_trial(content: Any) -> Trial | None:
    if content is None:
        return None
    return Trial(int(content["version"]), float(content["share"]), datetime.fromisoformat(content["since"]).isoformat())


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Write a manifest, atomically."""
    content: dict[str, Any] = {
        "format": FORMAT,
        "source": manifest.source,
        "versions": [version.to_dict() for version in manifest.versions],
        "served": [{"version": number, "since": since} for number, since in manifest.served],
    }
    if manifest.trial is not None:
        content["trial"] = asdict(manifest.trial)
    write_bytes(path, json.dumps(content, allow_nan=False, indent=1).encode(), compress=False)


def utc_now() -> str:
    """Return the current time in ISO format."""
    return datetime.now(UTC).isoformat()
