"""All versions of a model that was ever served, in the folder `MODEL.versions`.

`000001.safetensors` is a copy of MODEL when it was first served; each later version has the next number. The file of a
version never changes; only `prune` removes it. The manifest `versions.json` lists the versions and names the served
one. It is replaced atomically, so at any time one whole version is served. `000001.index` is a private copy of the
index of MODEL: training replaces both files, and someone may overwrite the index while it is served.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from ..base.ranker import Ranker
from ..data.files import PathLike, file_id, read_bytes, write_bytes
from ..errors import DataError, ModelError
from ..text_ranker.persistence import load_model, load_text
from ..text_ranker.ranker import TextRanker, index_path
from .index_copies import cache_folder, copy_index, up_to_date_copy
from .manifest import Manifest, Version, read_manifest, utc_now, write_manifest
from .pruning import old_versions, remove_files

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
    def open(cls, model: PathLike, *, register: bool = True, writable: bool = True) -> VersionRegistry:
        """Open the versions of a model file; on first use the model file becomes version 1.

        Parameters
        ----------
        model : path-like
            The model file.
        register : bool, default=True
            If the model file was trained again, register it as the next version and serve it.
        writable : bool, default=True
            If False, nothing is written, and a model file that was never served is the only version.
        """
        registry = cls(Path(model), writable)
        if not registry.model.exists() and not registry._manifest_path.exists():
            raise ModelError(f"{model}: no such file")
        try:
            if writable:
                registry.folder.mkdir(exist_ok=True)
                with registry._locked():
                    if register or not registry._manifest_path.exists():
                        registry._register_model()
        except (OSError, DataError) as error:
            registry.writable = False
            reason = getattr(error, "strerror", None) or error
            log.warning("%s: versions cannot be added: %s", registry.folder, reason)
        if not registry._manifest_path.exists():
            registry._unsaved = Manifest.of_file(_sha256(read_bytes(model)), load_model(model).model_.n_pairs)
        return registry

    def list(self) -> tuple[Version, ...]:
        """Return all versions that were not removed, oldest first."""
        return tuple(version for version in self._manifest().versions if not version.removed)

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
            Index file to use, unless the version has its own. By default the index of the model file.
        """
        version, path = self.get(number), self.path(number)
        if self._unsaved is None:
            _check_file(path, version)
        return load_text(path, self.own_index(version, index))

    def index_source(self, version: Version, index: PathLike | None = None) -> Path:
        """Return the index file that a version is served from a copy of.

        Parameters
        ----------
        version : Version
            The version.
        index : path-like, optional
            Index file; see `load`.
        """
        if version.index is not None:
            return self.folder / version.index
        return index_path(self.model) if index is None else Path(index)

    def own_index(self, version: Version, index: PathLike | None = None) -> Path | None:
        """Return the private copy of the index of a version, or None if there is no index; copy the index if it is new.

        If the index of the model file is damaged, of another model or missing, the last copy stays. An index that the
        caller names raises an error instead.

        Parameters
        ----------
        version : Version
            The version.
        index : path-like, optional
            Index file; see `load`.
        """
        source = self.index_source(version, index)
        if version.index is not None:
            return source
        copy, ranker = self._index_copy(version, index), partial(load_model, self.path(version.number))
        return up_to_date_copy(source, copy, ranker, is_named=index is not None)

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
            The version it was learned from. DataError if another one is served by now, or a candidate is on trial.
        """
        self._require_writable()
        with self._locked():
            served = (manifest := self._manifest()).current
            if parent not in (None, served.number):
                raise DataError(f"version {served.number} is served now, not version {parent}, the parent of this one")
            if parent is not None and manifest.trial is not None:
                raise DataError(f"version {manifest.trial.version} is on trial; learning goes on when it has ended")
            version = self._write_version(
                manifest, lambda path: Ranker.save(ranker, path),
                why=why, parent=served.number, pairs=ranker.model_.n_pairs, check=dict(check or {}),
                learned_through=learned_through, index=served.index,
            )  # fmt: skip
            if not self._shares_index(ranker, served):
                version = replace(version, index=f"{version.number:06d}.index")
                ranker.index_.save(self.folder / f"{version.number:06d}.index")
            return self._serve(manifest, version)

    def add_file(self, model: PathLike, why: str = "added model file") -> Version:
        """Add a model file that was trained elsewhere, with its index, and serve it.

        Parameters
        ----------
        model : path-like
            The model file; its index is beside it.
        why : str, default="added model file"
            Reason for the new version.
        """
        self._require_writable()
        with self._locked():
            return self._serve(self._manifest(), self._copy_files(model, why))

    def _copy_files(self, model: PathLike, why: str) -> Version:
        """Copy a model file and its index; the parent is the served version."""
        ranker, content = load_text(model), read_bytes(model)
        if not hasattr(ranker, "index_"):
            raise ModelError(f"{model}: has no index; build one with `sparserank index MODEL DATA -o MODEL.index`")
        version = self._write_version(
            self._manifest(), lambda path: write_bytes(path, content, compress=False),
            why=why, parent=self.current().number, is_copy=True, pairs=ranker.model_.n_pairs,
        )  # fmt: skip
        copy_index(index_path(model), self.folder / f"{version.number:06d}.index", ranker)
        return replace(version, index=f"{version.number:06d}.index")

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

    def prune(self, keep: int) -> None:
        """Remove the files of old versions.

        Parameters
        ----------
        keep : int
            Number of the newest versions that stay, beside the served one.
        """
        self._require_writable()
        with self._locked():
            manifest, old = self._manifest(), old_versions(self._manifest(), keep)
            if not old:
                return
            versions = tuple(replace(v, removed=True) if v.number in old else v for v in manifest.versions)
            write_manifest(self._manifest_path, replace(manifest, versions=versions))
            remove_files(self.folder, old, in_use={v.index for v in versions if v.index and not v.removed})
        log.info("removed versions %s", ", ".join(map(str, sorted(old))))

    def served_at(self, moment: datetime) -> Version:
        """Return the version that was served at a moment.

        Parameters
        ----------
        moment : datetime
            For a moment before the first version was served, the result is the first version.
        """
        return self._manifest().served_at(moment)

    def root(self, number: int | None = None) -> int:
        """Return the number of the copy of the model file that a version descends from.

        Parameters
        ----------
        number : int, optional
            As in `get`.
        """
        return self._manifest().roots[self.get(number).number]

    def _index_copy(self, version: Version, index: PathLike | None = None) -> Path:
        """Return the path of the private copy of an index, by the root of a version."""
        folder = self.folder if self.writable else cache_folder(self.model)
        given = "" if index is None else f"-{_sha256(str(Path(index).absolute()).encode())[:8]}"
        return folder / f"{self.root(version.number):06d}{given}.index"

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
                manifest, lambda path: write_bytes(path, content, compress=False), why=why, pairs=pairs, is_copy=True,
                parent=manifest.current.number if manifest.versions else None,
            )  # fmt: skip
            manifest = replace(manifest, versions=(*manifest.versions, version), source=version.sha256)
            write_manifest(self._manifest_path, manifest.with_served(version.number))
        self._copy_index()

    def _copy_index(self) -> None:
        """Copy the index of the model file if it matches."""
        newest = self.get(max(self._manifest().roots.values()))
        if index_path(self.model).exists() and self.own_index(newest) != self._index_copy(newest):
            log.warning("%s: it was not copied: it belongs to another model or is damaged", index_path(self.model))

    def _write_version(self, manifest: Manifest, write: Callable[[Path], None], **fields: Any) -> Version:
        """Write the file of a new version under an unused number (a killed writer may have left a file)."""
        number = max((version.number for version in manifest.versions), default=0) + 1
        while (path := self.folder / f"{number:06d}.safetensors").exists():
            number += 1
        write(path)
        return Version(number=number, made=utc_now(), sha256=_sha256(read_bytes(path)), **fields)

    def _serve(self, manifest: Manifest, version: Version) -> Version:
        """Append a version to the manifest and serve it."""
        manifest = replace(manifest, versions=(*manifest.versions, version)).with_served(version.number)
        write_manifest(self._manifest_path, manifest)
        log.info("serving version %d: %s", version.number, version.why)
        return version

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


def _check_file(path: Path, version: Version) -> None:
    if not path.exists():
        raise ModelError(f"{path}: the file of this version is missing")
    if _sha256(read_bytes(path)) != version.sha256:
        raise ModelError(f"{path}: damaged: this is not the file that was written as version {version.number}")


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
