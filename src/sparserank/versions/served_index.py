"""The index of a model file that is served, kept under another name: training anew puts others in the place of both."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

from ..data.files import writing
from ..errors import DataError, ModelError
from ..text_ranker.persistence import load_text

log = logging.getLogger(__name__)


def keep(model: Path, index: Path, kept: Path) -> None:
    """Let `kept` be the index beside a model, if it is that model's: the same file, or a copy where that cannot be."""
    if not index.exists() or _is_kept(index, kept):
        return
    try:
        load_text(model, index)
        _link(index, kept)
    except (OSError, DataError, ModelError) as error:  # it is served from where it lies, as long as it lies there
        log.warning("%s: not kept: %s", index, error)


def _is_kept(index: Path, kept: Path) -> bool:
    return kept.exists() and (kept.samefile(index) or kept.stat().st_mtime_ns >= index.stat().st_mtime_ns)


def _link(index: Path, kept: Path) -> None:
    made = kept.with_name(f".{kept.name}.tmp")
    made.unlink(missing_ok=True)  # of one who was killed here
    try:
        made.hardlink_to(index)
        made.replace(kept)
    except OSError:
        with writing(kept, pack=False) as file, index.open("rb") as content:
            shutil.copyfileobj(content, file)
