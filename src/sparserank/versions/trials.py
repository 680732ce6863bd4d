"""Trials: a candidate version answers a share of the searches together with the served one."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .. import validation
from ..data.files import PathLike
from ..errors import DataError
from .manifest import Manifest, Trial, Version, utc_now, write_manifest
from .registry import VersionRegistry

log = logging.getLogger(__name__)


def current_trial(registry: VersionRegistry) -> Trial | None:
    """Return the trial that runs now, if any.

    Parameters
    ----------
    registry : VersionRegistry
        The versions of a model.
    """
    return registry._manifest().trial


def start_trial(registry: VersionRegistry, candidate: PathLike | int, share: float = 0.5) -> Trial:
    """Let a candidate answer a share of the searches together with the served version; it replaces another candidate.

    Parameters
    ----------
    registry : VersionRegistry
        The versions of a model.
    candidate : path-like or int
        A model file with its index beside it, which becomes a version; or the number of a version.
    share : float, default=0.5
        Share of the searches, in (0, 1].

    Examples
    --------
    >>> import tempfile
    >>> from sparserank import TextRanker
    >>> folder = tempfile.TemporaryDirectory()
    >>> TextRanker().fit({"d1": "red apples"}).save(f"{folder.name}/model")
    >>> TextRanker().fit({"d1": "red apples", "d2": "apples"}).save(f"{folder.name}/new")
    >>> registry = VersionRegistry.open(f"{folder.name}/model")
    >>> start_trial(registry, f"{folder.name}/new", share=0.25).version, registry.current().number
    (2, 1)
    >>> promote(registry, 2).number, current_trial(registry)
    (2, None)
    >>> folder.cleanup()
    """
    validation.number("share", share, low=0.0, high=1.0, open_low=True)
    registry._require_writable()
    with registry._locked():
        manifest = registry._manifest()
        if isinstance(candidate, int):
            version = manifest.get(candidate)
            registry.load(candidate)  # raises if it is damaged
        else:
            version = registry._copy_files(candidate, "candidate")
            manifest = replace(manifest, versions=(*manifest.versions, version))
        if version.number == manifest.current.number:
            raise DataError(f"version {version.number} is served already; name another version as the candidate")
        trial = Trial(version.number, float(share), utc_now())
        write_manifest(registry._manifest_path, replace(manifest, trial=trial))
    log.info("version %d is on trial beside version %d", version.number, manifest.current.number)
    return trial


def promote(
    registry: VersionRegistry, candidate: int | None = None, result: Mapping[str, Any] | None = None
) -> Version:
    """Serve the candidate; the trial ends.

    Parameters
    ----------
    registry : VersionRegistry
        The versions of a model.
    candidate : int, optional
        Number of the candidate. If another one is on trial, DataError is raised.
    result : dict, optional
        The result of the trial, which the version records.
    """
    registry._require_writable()
    with registry._locked():
        manifest = registry._manifest()
        version = _candidate(manifest, candidate)
        if result is not None:
            recorded = replace(version, check={**version.check, "interleaving": dict(result)})
            versions = tuple(recorded if one is version else one for one in manifest.versions)
            manifest, version = replace(manifest, versions=versions), recorded
        write_manifest(registry._manifest_path, manifest.with_served(version.number))
    log.info("serving version %d, which was on trial", version.number)
    return version


def withdraw(registry: VersionRegistry, candidate: int | None = None) -> Version:
    """End the trial; the served version stays, and the candidate remains a version.

    Parameters
    ----------
    registry : VersionRegistry
        The versions of a model.
    candidate : int, optional
        As in `promote`.
    """
    registry._require_writable()
    with registry._locked():
        manifest = registry._manifest()
        version = _candidate(manifest, candidate)
        write_manifest(registry._manifest_path, replace(manifest, trial=None))
    log.info("the trial of version %d has ended", version.number)
    return version


def _candidate(manifest: Manifest, number: int | None) -> Version:
    if manifest.trial is None:
        raise DataError("no candidate is on trial; start one with `sparserank model candidate MODEL NEW`")
    if number not in (None, manifest.trial.version):
        raise DataError(f"version {manifest.trial.version} is on trial, not version {number}")
    return manifest.get(manifest.trial.version)
