"""Which versions are old, and the removal of their files."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path

from .manifest import Manifest


def old_versions(manifest: Manifest, keep: int) -> set[int]:
    """Return the versions that can be removed: none of the newest, served or on trial, and no root of one of these."""
    numbers = [version.number for version in manifest.versions if not version.removed]
    kept = {*numbers[-keep:], manifest.current.number}
    if manifest.trial is not None:
        kept.add(manifest.trial.version)
    return set(numbers) - kept - {manifest.roots[number] for number in kept}


def remove_files(folder: Path, numbers: Collection[int], in_use: Collection[str]) -> None:
    """Remove the model files of versions, and their indexes unless other versions use them."""
    for number in numbers:
        (folder / f"{number:06d}.safetensors").unlink(missing_ok=True)
        index = folder / f"{number:06d}.index"
        if index.name not in in_use:
            shutil.rmtree(index) if index.is_dir() else index.unlink(missing_ok=True)
