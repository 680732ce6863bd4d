"""Sphinx extension: pages are searched in the browser, by a model that learned from the site.

extensions = ["sparserank.integrations.sphinx"]
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import SparseRankError
from .requirement import require

require("sphinx", "7.0")

from sphinx.errors import ExtensionError  # noqa: E402

from .. import __version__  # noqa: E402
from .static_docs import LEARN_FROM, MAX_PAIRS, SCRIPT, Page, build_search  # noqa: E402

FOLDER = "sparserank"
"""The folder of the search in the site."""


def setup(app: Any) -> dict[str, Any]:
    """Register the extension and its options.

    Parameters
    ----------
    app : Sphinx
        The application. The options in conf.py are `sparserank_language`, `sparserank_learn_from` and
        `sparserank_max_pairs`, those of `static_docs.train_search`.
    """
    app.add_config_value("sparserank_language", "english", "html", [str])
    app.add_config_value("sparserank_learn_from", list(LEARN_FROM), "html", [list, tuple])
    app.add_config_value("sparserank_max_pairs", MAX_PAIRS, "html", [int])
    app.connect("builder-inited", _start)
    app.connect("html-page-context", _keep)
    app.connect("build-finished", _write)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": False}


def _start(app: Any) -> None:
    app.sparserank_pages = {}


def _keep(app: Any, name: str, template: str, context: dict[str, Any], _: Any) -> None:
    """Keep the content of a page, and add the script."""
    script = context["pathto"](f"{FOLDER}/{SCRIPT}", 1)
    context["metatags"] = context.get("metatags", "") + f'<script type="module" src="{script}"></script>'
    if name in app.env.found_docs:
        title, body = (str(context.get(part) or "") for part in ("title", "body"))
        page = Page(app.builder.get_target_uri(name), _plain(title), body)
        app.sparserank_pages[name] = page


def _plain(html: str) -> str:
    return str(Page("", "", html).record()["text"])


def _write(app: Any, exception: Exception | None) -> None:
    """Train on the pages and write the search; a build without changes has none to write."""
    if exception is not None or app.builder.format != "html" or set(app.sparserank_pages) != set(app.env.found_docs):
        return
    options = {name: app.config[f"sparserank_{name}"] for name in ("language", "learn_from", "max_pairs")}
    try:
        build_search(list(app.sparserank_pages.values()), Path(app.outdir, FOLDER), **options)
    except SparseRankError as error:
        raise ExtensionError(f"sparserank: {error}") from None
