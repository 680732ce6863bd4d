"""The product collections ESCI and WANDS, from the files of their public repositories."""

from __future__ import annotations

from ..formats.shopping import read_esci, read_wands
from ..records import Collection
from .download import LocalFiles


def esci(files: LocalFiles, locale: str = "us", small: bool = True) -> Collection:
    """Load one market of Amazon's Shopping Queries data set."""
    return read_esci(files.folder, locale, small=small)


def wands(files: LocalFiles) -> Collection:
    """Load Wayfair's annotation data set."""
    return read_wands(files.folder)
