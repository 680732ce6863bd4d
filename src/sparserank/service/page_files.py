"""The files of the page, from memory: no path of a request reaches the file system."""

from __future__ import annotations

from functools import cache
from importlib import resources

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from .compression import accept_encoding, choose_encoding, smallest
from .exception_handlers import problem
from .state import services_of

router = APIRouter()
PAGE_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
"""Content types by file extension; other files are not served."""


@router.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
async def index_page(request: Request) -> Response:
    """Return the page; that of the first collection if the path names none."""
    if request.scope["service"] is None:
        return RedirectResponse(f"/{next(iter(services_of(request)))}/")
    return await page("index.html", request)


@router.api_route("/page/{name}", methods=["GET", "HEAD"], include_in_schema=False)
async def page(name: str, request: Request) -> Response:
    """Return a file of the page."""
    if name not in _page_files():
        return problem(404, "there is no such page; start at /")
    encoding = choose_encoding(accept_encoding(request.scope))
    headers = {"content-type": _page_files()[name][1], "cache-control": "no-cache", "vary": "Accept-Encoding"}
    if encoding:
        headers["content-encoding"] = encoding
    return Response(_page_file(name, encoding), headers=headers)


@cache
def _page_file(name: str, encoding: str) -> bytes:
    """Return a file as it is sent in an encoding; it is compressed once."""
    content = _page_files()[name][0]
    return smallest(content, encoding) if encoding else content


@cache
def _page_files() -> dict[str, tuple[bytes, str]]:
    """Return {name: (content, content type)}."""
    files = [(file, file.name.rpartition(".")[2]) for file in (resources.files(__package__) / "page").iterdir()]
    return {file.name: (file.read_bytes(), PAGE_TYPES[kind]) for file, kind in files if kind in PAGE_TYPES}
