"""Every model that was ever served from MODEL, in the folder `MODEL.versions` beside it.

`000001.safetensors` is a copy of MODEL when it was first served; what is learned later gets the next number. The file
of a version is never changed or removed. `versions.json` names them all and says which one was served from when on; it
is the only pointer, and it changes as a whole: whatever happens, one version or another is served, never half of one.
`000001.index` is the index that lay beside MODEL, since MODEL trained anew puts another in its place.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..data.files import PathLike, read_bytes, stamp, write_bytes
from ..data.formats.tensors import write_tensors
from ..errors import DataError, ModelError
from ..text_ranker.persistence import OtherIndex, load_model, load_text
from ..text_ranker.ranker import MODEL_KIND, TextRanker, index_path
from .served_index import keep
from .version_list import Known, Version, now, read_known, write_known

__all__ = ["Version", "Versions"]

log = logging.getLogger(__name__)


class Versions:
    """The versions of one model file. `writable` is False where none can be added; MODEL may then be the only one.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> TextRanker().fit({"d1": "red apples"}).save(f"{folder.name}/model")
    >>> versions = Versions.open(f"{folder.name}/model")
    >>> versions.current().number, versions.current().why
    (1, 'the model as it was first served')
    >>> versions.load().search("apple")[0].id
    'd1'
    >>> folder.cleanup()
    """

    def __init__(self, model: Path, writable: bool, alone: Known | None = None) -> None:
        self.model, self.writable, self._alone = model, writable, alone
        self.folder = Path(f"{model}.versions")
        self._read: tuple[object, Known] | None = None

    @classmethod
    def open(cls, model: PathLike, *, take_up: bool = True) -> Versions:
        """The versions of MODEL. On first use MODEL becomes the first.

        take_up : a MODEL that was trained anew becomes the next one, and is served. Else it waits for who does that.
        """
        found = cls(Path(model), writable=True)
        if not found.model.exists() and not found._pointer.exists():
            raise ModelError(f"{model}: no such file")
        try:
            found.folder.mkdir(exist_ok=True)
            with found._locked():
                if take_up or not found._pointer.exists():
                    found._take_up()
        except (OSError, DataError) as error:
            found.writable = False
            log.warning("%s: no version can be added: %s", found.folder, getattr(error, "strerror", None) or error)
            if not found._pointer.exists():
                found._alone = _first(found.model)
        return found

    def list(self) -> tuple[Version, ...]:
        """All, the oldest first."""
        return self._known().versions

    def current(self) -> Version:
        """The one that is served."""
        return self._known().current

    def of(self, number: int) -> Version:
        """One of them; a number that is not there is refused."""
        return self._known().of(number)

    def stamp(self) -> object:
        """Something that differs once anything here has changed; it costs one look at the folder."""
        return stamp(self._pointer)

    def path(self, number: int | None = None) -> Path:
        """The file of a version, by default of the one that is served."""
        if self._alone is not None:
            return self.model
        return (
            self.folder / f"{(self.current() if number is None else self._known().of(number)).number:06d}.safetensors"
        )

    def load(self, number: int | None = None, index: PathLike | None = None) -> TextRanker:
        """A version (by default the one that is served) with its index: its own, `index`, or the one beside MODEL.

        Where another model's lies there, or none, the one that was kept.
        A file that is not the one that was written is refused by name.
        """
        version, path = self.current() if number is None else self._known().of(number), self.path(number)
        if self._alone is None:
            if not path.exists():
                raise ModelError(f"{path}: this version's file is missing")
            if _digest(read_bytes(path)) != version.sha256:
                raise ModelError(f"{path}: damaged: it is not the file that was written as version {version.number}")
        where = self.index_of(version, index)
        try:
            return load_text(path, where)
        except OtherIndex:  # MODEL was trained anew since
            kept = self._kept_index(version)
            if index is not None or version.index is not None or not kept.exists():
                raise
            return load_text(path, kept)

    def index_of(self, version: Version, index: PathLike | None = None) -> Path | None:
        """Where the index of a version lies; None where there is none."""
        if version.index is not None:
            return self.folder / version.index
        if index is not None:
            return Path(index)
        return next((found for found in (index_path(self.model), self._kept_index(version)) if found.exists()), None)

    def last_good(self, index: PathLike | None = None) -> tuple[Version, TextRanker]:
        """The version that is served; where its file is damaged, the newest earlier one that is whole."""
        wanted = self.current()
        try:
            return wanted, self.load(wanted.number, index)
        except (ModelError, DataError) as error:
            first = error
        for version in reversed(self.list()):
            if version.number < wanted.number:
                try:
                    found = self.load(version.number, index)
                except (ModelError, DataError):
                    continue
                log.error("%s; version %d is served instead of %d", first, version.number, wanted.number)
                return version, found
        raise first

    def add(
        self,
        ranker: TextRanker,
        why: str,
        check: Mapping[str, Any] | None = None,
        learned_through: int = 0,
        *,
        parent: int | None = None,
    ) -> Version:
        """Keep this ranker as a new version, learned from the one that is served, and serve it from now on.

        parent : the one it was learned from; where another is served by now (someone went back), nothing is added.
        """
        self._must_be_writable()
        with self._locked():
            known = self._known()
            served = known.current
            if parent not in (None, served.number):
                raise DataError(f"version {served.number} is served by now, not {parent}, which this was learned from")
            made = self._written(
                known, lambda path: write_tensors(path, MODEL_KIND, *ranker.model_.state()),
                why=why, parent=served.number, pairs=ranker.model_.n_pairs, check=dict(check or {}),
                learned_through=learned_through, index=served.index,
            )  # fmt: skip
            if not self._fits(ranker, served):
                made = replace(made, index=f"{made.number:06d}.index")
                ranker.index_.save(self.folder / f"{made.number:06d}.index")
            write_known(self._pointer, replace(known, versions=(*known.versions, made)).with_served(made.number))
        log.info("version %d is served: %s", made.number, why)
        return made

    def rollback(self, to: int | None = None, index: PathLike | None = None) -> Version:
        """Serve an earlier version again, or any other: the parent of the one that is served where none is named."""
        self._must_be_writable()
        with self._locked():
            known = self._known()
            number = known.current.parent if to is None else to
            if number is None:
                raise DataError(f"version {known.current.number} is the first of its kind; there is none to go back to")
            chosen = known.of(number)
            if chosen != known.current:
                self.load(number, index)  # a damaged one is refused here, not where it would be served
                write_known(self._pointer, known.with_served(number))
        return chosen

    def at(self, moment: datetime) -> Version:
        """The one that was served at a moment; before the first was, the first."""
        known, wanted = self._known(), moment.astimezone(UTC)
        then = [number for number, since in known.served if datetime.fromisoformat(since) <= wanted]
        return known.of(then[-1] if then else known.served[0][0])

    def root(self, number: int | None = None) -> int:
        """The number of the copy of MODEL that a version (None: what is served) was learned from, by way of others."""
        known = self._known()
        return known.roots[(known.current if number is None else known.of(number)).number]

    # ---- the files

    @property
    def _pointer(self) -> Path:
        return self.folder / "versions.json"

    def _kept_index(self, version: Version) -> Path:
        """Where the index is kept that lay beside MODEL when this version's first one was MODEL."""
        return self.folder / f"{self.root(version.number):06d}.index"

    def _known(self) -> Known:
        if self._alone is not None:
            return self._alone
        stamp = self.stamp()
        if self._read is None or self._read[0] != stamp:
            self._read = (stamp, read_known(self._pointer))
        return self._read[1]

    def _take_up(self) -> None:
        """MODEL becomes a version unless it is one already; a damaged or missing MODEL harms no version there is."""
        if not self._pointer.exists():
            known = Known((), (), "")
        else:
            known = self._known()
            if not self.model.exists():
                return
        content = read_bytes(self.model)
        if _digest(content) == known.source:
            self._keep_index()
            return
        try:
            pairs = load_model(self.model).model_.n_pairs
        except ModelError as error:
            if not known.versions:
                raise
            log.error("%s; version %d is served as before", error, known.current.number)
            return
        why = "the model file was replaced by another" if known.versions else "the model as it was first served"
        made = self._written(
            known, lambda path: write_bytes(path, content, pack=False), why=why, parent=None, pairs=pairs
        )
        write_known(self._pointer, Known((*known.versions, made), known.served, made.sha256).with_served(made.number))
        self._keep_index()

    def _keep_index(self) -> None:
        """Of the version that MODEL is."""
        newest = max(set(self._known().roots.values()))
        keep(self.path(newest), index_path(self.model), self._kept_index(self.of(newest)))

    def _written(self, known: Known, write: Callable[[Path], None], **about: Any) -> Version:
        """A new version's file, under a number that no file has (one may have been left where a writer was killed)."""
        number = max((version.number for version in known.versions), default=0) + 1
        while (path := self.folder / f"{number:06d}.safetensors").exists():
            number += 1
        write(path)
        return Version(number=number, made=now(), sha256=_digest(read_bytes(path)), **about)

    def _fits(self, ranker: TextRanker, parent: Version) -> bool:
        """Whether the parent's index is this ranker's too."""
        before = load_model(self.path(parent.number))
        return before.model_.n_terms == ranker.model_.n_terms and before.fingerprint() == ranker.fingerprint()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One process at a time changes versions; the system frees the lock when its holder ends, however it ends."""
        import fcntl

        with (self.folder / "versions.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _must_be_writable(self) -> None:
        if not self.writable:
            raise DataError(f"{self.folder}: cannot be written, so the version that is served stays")


def _first(model: Path) -> Known:
    """MODEL itself as the only version."""
    pairs, made = load_model(model).model_.n_pairs, now()
    sha256 = _digest(read_bytes(model))
    return Known((Version(1, made, "the model as it was first served", None, pairs, sha256),), ((1, made),), sha256)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
