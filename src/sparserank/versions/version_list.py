"""What `versions.json` holds: every version of a model, and which one was served from when on."""

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
    """One model: when and why it was made, from which other one, and what was found when it was checked.

    learned_through : the number of the last feedback that was looked at for it. index : the name of the index file that
        it needs where the one beside MODEL does not fit it (it has pairs, and MODEL had none).
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

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Known:
    """The versions, (number, from when on) of those that were served, and what MODEL was.

    source : the digest of MODEL when it was last looked at.
    """

    versions: tuple[Version, ...]
    served: tuple[tuple[int, str], ...]
    source: str

    def of(self, number: int) -> Version:
        """One of them; a number that is not there is refused."""
        for version in self.versions:
            if version.number == number:
                return version
        there = ", ".join(str(version.number) for version in self.versions)
        raise DataError(f"there is no version {number}; there are: {there}")

    def with_served(self, number: int) -> Known:
        """This version is served from now on."""
        return replace(self, served=(*self.served, (number, now())))

    @cached_property
    def roots(self) -> dict[int, int]:
        """The number of the copy of MODEL that each version was learned from, by way of others."""
        found: dict[int, int] = {}
        for version in self.versions:  # a parent comes before what was learned from it
            found[version.number] = version.number if version.parent is None else found[version.parent]
        return found

    @property
    def current(self) -> Version:
        """The one that is served."""
        return self.of(self.served[-1][0])


def read_known(path: Path) -> Known:
    """The versions that a file names; one that is not whole and consistent is refused by name."""
    try:
        content = json.loads(read_bytes(path))
        if content["format"] != FORMAT:
            raise ValueError(f"format {content['format']!r}; this version reads {FORMAT}")
        names = [one.name for one in fields(Version)]
        versions = tuple(Version(**{name: one[name] for name in names}) for one in content["versions"])
        served = tuple(
            (int(one["version"]), datetime.fromisoformat(one["since"]).isoformat()) for one in content["served"]
        )
        known = Known(versions, served, str(content["source"]))
        for number, _ in served:
            known.of(number)
        known.current, known.roots  # noqa: B018 - one at least must be served, and no parent be missing
    except DataError as error:
        raise ModelError(str(error) if str(path) in str(error) else f"{path}: {error}") from None
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise ModelError(f"{path}: damaged: {error}; move it away to begin again from the model file") from None
    return known


def write_known(path: Path, known: Known) -> None:
    """Put these in the place of what the file held, as a whole."""
    content = {
        "format": FORMAT,
        "source": known.source,
        "versions": [version.to_dict() for version in known.versions],
        "served": [{"version": number, "since": since} for number, since in known.served],
    }
    write_bytes(path, json.dumps(content, allow_nan=False, indent=1).encode(), pack=False)


def now() -> str:
    """The time, as it is written down."""
    return datetime.now(UTC).isoformat()
