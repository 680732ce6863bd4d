"""The page, read into memory once: no path of a request reaches the file system."""

from __future__ import annotations

from functools import cache
from importlib import resources

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
}
"""Content types by the ending of a file's name; other files are not served."""


@cache
def files() -> dict[str, tuple[bytes, str]]:
    """{name: (content, content type)}"""
    folder = resources.files(__package__) / "page"
    found = [file for file in folder.iterdir() if file.is_file()] if folder.is_dir() else []
    endings = ((file, "." + file.name.rpartition(".")[2]) for file in found)
    return {file.name: (file.read_bytes(), KINDS[ending]) for file, ending in endings if ending in KINDS}
