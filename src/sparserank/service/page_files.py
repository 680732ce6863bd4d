"""The files of the page, from memory: no path of a request reaches the file system."""

from __future__ import annotations

from functools import cache
from importlib import resources

from fastapi import APIRouter, Response

from .exception_handlers import problem

router = APIRouter()
PAGE_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
"""Content types by file extension; other files are not served."""


@router.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
async def index_page() -> Response:
    """Return the page."""
    return await page("index.html")


@router.api_route("/page/{name}", methods=["GET", "HEAD"], include_in_schema=False)
async def page(name: str) -> Response:
    """Return a file of the page."""
    if name not in _page_files():
        return problem(404, "there is no such page; start at /")
    content, kind = _page_files()[name]
    return Response(content, headers={"content-type": kind, "cache-control": "no-cache"})


@cache
def _page_files() -> dict[str, tuple[bytes, str]]:
    """Return {name: (content, content type)}."""
    files = [(file, file.name.rpartition(".")[2]) for file in (resources.files(__package__) / "page").iterdir()]
    return {file.name: (file.read_bytes(), PAGE_TYPES[kind]) for file, kind in files if kind in PAGE_TYPES}
