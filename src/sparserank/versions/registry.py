"""All versions of a model that was ever served, in the folder `MODEL.versions`.

`000001.safetensors` is a copy of MODEL when it was first served; each later version has the next number. The file of a
version is never changed or removed. The manifest `versions.json` lists the versions and names the served one. It is
replaced atomically, so at any time one whole version is served. `000001.index` keeps the index of MODEL, because
training replaces both files.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..base.ranker import Ranker
from ..data.files import PathLike, atomic_write, file_id, read_bytes, write_bytes
from ..errors import DataError, ModelError
from ..search.shards import link_shards
from ..text_ranker.persistence import load_model, load_text
from ..text_ranker.ranker import OtherIndex, TextRanker, index_path
from .manifest import Manifest, Version, read_manifest, utc_now, write_manifest

log = logging.getLogger(__name__)


class VersionRegistry:
    """The versions of one model file.

    Attributes
    ----------
    model : Path
        The model file.
    folder : Path
        The folder of the versions.
    writable : bool
        Whether versions can be added. If not, the model file may be the only version.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> TextRanker().fit({"d1": "red apples"}).save(f"{folder.name}/model")
    >>> registry = VersionRegistry.open(f"{folder.name}/model")
    >>> registry.current().number, registry.current().why
    (1, 'initial model file')
    >>> registry.load().search("apple")[0].id
    'd1'
    >>> folder.cleanup()
    """

    def __init__(self, model: Path, writable: bool) -> None:
        self.model, self.writable = model, writable
        self.folder = Path(f"{model}.versions")
        self._manifest_path = self.folder / "versions.json"
        self._cache: tuple[object, Manifest] | None = None
        self._unsaved: Manifest | None = None  # the model file as the only version

    @classmethod
    def open(cls, model: PathLike, *, register: bool = True) -> VersionRegistry:
        """Open the versions of a model file; on first use the model file becomes version 1.

        Parameters
        ----------
        model : path-like
            The model file.
        register : bool, default=True
            If the model file was trained again, register it as the next version and serve it.
        """
        registry = cls(Path(model), writable=True)
        if not registry.model.exists() and not registry._manifest_path.exists():
            raise ModelError(f"{model}: no such file")
        try:
            registry.folder.mkdir(exist_ok=True)
            with registry._locked():
                if register or not registry._manifest_path.exists():
                    registry._register_model()
        except (OSError, DataError) as error:
            registry.writable = False
            reason = getattr(error, "strerror", None) or error
            log.warning("%s: versions cannot be added: %s", registry.folder, reason)
            if not registry._manifest_path.exists():
                digest, pairs, now = _sha256(read_bytes(model)), load_model(model).model_.n_pairs, utc_now()
                version = Version(1, now, "initial model file", None, pairs, digest)
                registry._unsaved = Manifest((version,), ((1, now),), digest)
        return registry

    def list(self) -> tuple[Version, ...]:
        """Return all versions, oldest first."""
        return self._manifest().versions

    def current(self) -> Version:
        """Return the served version."""
        return self._manifest().current

    def get(self, number: int | None = None) -> Version:
        """Return a version. An unknown number raises DataError.

        Parameters
        ----------
        number : int, optional
            Number of the version. None means the served one.
        """
        return self.current() if number is None else self._manifest().get(number)

    def stamp(self) -> object:
        """Return a value that changes when the manifest changes; costs one file status call."""
        return file_id(self._manifest_path)

    def path(self, number: int | None = None) -> Path:
        """Return the file of a version.

        Parameters
        ----------
        number : int, optional
            Number of the version. None means the served one.
        """
        return self.model if self._unsaved else self.folder / f"{self.get(number).number:06d}.safetensors"

    def load(self, number: int | None = None, index: PathLike | None = None) -> TextRanker:
        """Load a version with its index. A damaged or missing file raises ModelError with its path.

        Parameters
        ----------
        number : int, optional
            Number of the version. None means the served one.
        index : path-like, optional
            Index file to use, unless the version has its own. By default the index of the model file; if that belongs
            to another model or is missing, the copy in the folder of the versions.
        """
        version, path = self.get(number), self.path(number)
        if self._unsaved is None:
            if not path.exists():
                raise ModelError(f"{path}: the file of this version is missing")
            if _sha256(read_bytes(path)) != version.sha256:
                raise ModelError(f"{path}: damaged: this is not the file that was written as version {version.number}")
        try:
            return load_text(path, self.index_path_of(version, index))
        except OtherIndex:  # the model file was trained again since
            copy = self._index_copy(version)
            if index is not None or version.index is not None or not copy.exists():
                raise
            return load_text(path, copy)

    def index_path_of(self, version: Version, index: PathLike | None = None) -> Path | None:
        """Return the index file of a version, or None if there is none.

        Parameters
        ----------
        version : Version
            The version.
        index : path-like, optional
            Index file; see `load`.
        """
        if version.index is not None:
            return self.folder / version.index
        if index is not None:
            return Path(index)
        return next((path for path in (index_path(self.model), self._index_copy(version)) if path.exists()), None)

    def load_last_good(self, index: PathLike | None = None) -> tuple[Version, TextRanker]:
        """Load the served version; if it is damaged, the newest earlier version that is not.

        Parameters
        ----------
        index : path-like, optional
            Index file; see `load`.
        """
        current = self.current()
        try:
            return current, self.load(current.number, index)
        except (ModelError, DataError) as error:
            failure = error
        for version in reversed(self.list()):
            if version.number < current.number:
                try:
                    ranker = self.load(version.number, index)
                except (ModelError, DataError):
                    continue
                log.error("%s; serving version %d instead of %d", failure, version.number, current.number)
                return version, ranker
        raise failure

    def add(
        self, ranker: TextRanker, why: str, check: Mapping[str, Any] | None = None, learned_through: int = 0,
        *, parent: int | None = None,
    ) -> Version:  # fmt: skip
        """Add a ranker that was learned from the served version, and serve it.

        Parameters
        ----------
        ranker : TextRanker
            The new model.
        why : str
            Reason for the new version.
        check : dict, optional
            Results of the checks.
        learned_through : int, default=0
            Number of the last feedback that it takes into account.
        parent : int, optional
            The version it was learned from. If another version is served by now, DataError is raised.
        """
        self._require_writable()
        with self._locked():
            manifest = self._manifest()
            served = manifest.current
            if parent not in (None, served.number):
                raise DataError(f"version {served.number} is served now, not version {parent}, the parent of this one")
            version = self._write_version(
                manifest, lambda path: Ranker.save(ranker, path),
                why=why, parent=served.number, pairs=ranker.model_.n_pairs, check=dict(check or {}),
                learned_through=learned_through, index=served.index,
            )  # fmt: skip
            if not self._shares_index(ranker, served):
                version = replace(version, index=f"{version.number:06d}.index")
                ranker.index_.save(self.folder / f"{version.number:06d}.index")
            manifest = replace(manifest, versions=(*manifest.versions, version)).with_served(version.number)
            write_manifest(self._manifest_path, manifest)
        log.info("serving version %d: %s", version.number, why)
        return version

    def rollback(self, to: int | None = None, index: PathLike | None = None) -> Version:
        """Serve another version.

        Parameters
        ----------
        to : int, optional
            Number of the version. None means the parent of the served one.
        index : path-like, optional
            Index file; see `load`.
        """
        self._require_writable()
        with self._locked():
            manifest = self._manifest()
            number = manifest.current.parent if to is None else to
            if number is None:
                raise DataError(f"version {manifest.current.number} has no parent to go back to; name a version")
            version = manifest.get(number)
            if version != manifest.current:
                self.load(number, index)  # raises if it is damaged
                write_manifest(self._manifest_path, manifest.with_served(number))
        return version

    def served_at(self, moment: datetime) -> Version:
        """Return the version that was served at a moment.

        Parameters
        ----------
        moment : datetime
            For a moment before the first version was served, the result is the first version.
        """
        manifest = self._manifest()
        moment = moment.astimezone(UTC)
        served = [number for number, since in manifest.served if datetime.fromisoformat(since) <= moment]
        return manifest.get(served[-1] if served else manifest.served[0][0])

    def root(self, number: int | None = None) -> int:
        """Return the number of the copy of the model file that a version descends from.

        Parameters
        ----------
        number : int, optional
            Number of the version. None means the served one.
        """
        return self._manifest().roots[self.get(number).number]

    def _index_copy(self, version: Version) -> Path:
        """Return the path of the index copy of the model file that a version descends from."""
        return self.folder / f"{self.root(version.number):06d}.index"

    def _manifest(self) -> Manifest:
        if self._unsaved is not None:
            return self._unsaved
        stamp = self.stamp()
        if self._cache is None or self._cache[0] != stamp:
            self._cache = (stamp, read_manifest(self._manifest_path))
        return self._cache[1]

    def _register_model(self) -> None:
        """Add the model file as a version unless it is one; ignore a damaged or missing file if versions exist."""
        manifest = self._manifest() if self._manifest_path.exists() else Manifest((), (), "")
        if manifest.versions and not self.model.exists():
            return
        content = read_bytes(self.model)
        if _sha256(content) != manifest.source:
            try:
                pairs = load_model(self.model).model_.n_pairs
            except ModelError as error:
                if not manifest.versions:
                    raise
                log.error("%s; version %d stays", error, manifest.current.number)
                return
            why = "new model file" if manifest.versions else "initial model file"
            version = self._write_version(
                manifest, lambda path: write_bytes(path, content, compress=False), why=why, parent=None, pairs=pairs
            )
            manifest = Manifest((*manifest.versions, version), manifest.served, version.sha256)
            write_manifest(self._manifest_path, manifest.with_served(version.number))
        self._copy_index()

    def _copy_index(self) -> None:
        """Copy the index of the model file if it matches: as a hard link if that is possible."""
        number = max(self._manifest().roots.values())
        index, copy = index_path(self.model), self._index_copy(self.get(number))
        if not index.exists():
            return
        if copy.exists() and (copy.samefile(index) or copy.stat().st_mtime_ns >= index.stat().st_mtime_ns):
            return
        try:
            load_text(self.path(number), index)
            (link_shards if index.is_dir() else _link_or_copy)(index, copy)
        except (OSError, DataError, ModelError) as error:  # it is still served from its own path
            log.warning("%s: it was not copied: %s", index, error)

    def _write_version(self, manifest: Manifest, write: Callable[[Path], None], **fields: Any) -> Version:
        """Write the file of a new version under an unused number (a killed writer may have left a file)."""
        number = max((version.number for version in manifest.versions), default=0) + 1
        while (path := self.folder / f"{number:06d}.safetensors").exists():
            number += 1
        write(path)
        return Version(number=number, made=utc_now(), sha256=_sha256(read_bytes(path)), **fields)

    def _shares_index(self, ranker: TextRanker, parent: Version) -> bool:
        """Return whether the index of the parent matches the ranker."""
        model = load_model(self.path(parent.number))
        return model.model_.n_terms == ranker.model_.n_terms and model.fingerprint() == ranker.fingerprint()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Let one process at a time change versions; the system releases the lock when a process dies."""
        import fcntl

        with (self.folder / "versions.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _require_writable(self) -> None:
        if not self.writable:
            raise DataError(f"{self.folder}: cannot be written; the served version stays")


def _link_or_copy(source: Path, target: Path) -> None:
    temporary = target.with_name(f".{target.name}.tmp")
    temporary.unlink(missing_ok=True)  # a killed process may have left it
    try:
        temporary.hardlink_to(source)
        temporary.replace(target)
    except OSError:
        with atomic_write(target, compress=False) as file, source.open("rb") as content:
            shutil.copyfileobj(content, file)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
