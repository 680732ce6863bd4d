"""MkDocs plugin: pages are searched in the browser, by a model that learned from the site.

plugins:
  - sparserank
"""

from __future__ import annotations

from typing import Any

from ..errors import SparseRankError
from .requirement import require

require("mkdocs", "1.5")

from mkdocs.config import config_options  # noqa: E402
from mkdocs.config.base import Config  # noqa: E402
from mkdocs.exceptions import PluginError  # noqa: E402
from mkdocs.plugins import BasePlugin  # noqa: E402

from .static_docs import LEARN_FROM, MAX_PAIRS, SCRIPT, Page, build_search  # noqa: E402

__all__ = ["SparseRankPlugin"]


class SparseRankConfig(Config):
    """The options of the plugin in mkdocs.yml."""

    folder = config_options.Type(str, default="search")
    language = config_options.Type(str, default="english")
    learn_from = config_options.Type(list, default=list(LEARN_FROM))
    max_pairs = config_options.Type(int, default=MAX_PAIRS)


class SparseRankPlugin(BasePlugin[SparseRankConfig]):
    """Collect the pages, train, and write the search into the site.

    The option `folder` is that of the search in the site; `language`, `learn_from` and `max_pairs` are those of
    `static_docs.train_search`.
    """

    def on_config(self, config: Any) -> Any:
        """Add the script to every page.

        Parameters
        ----------
        config : MkDocsConfig
            The configuration of the site.
        """
        if "/" in self.config.folder.strip("/"):
            raise PluginError(f"sparserank: 'folder' must be one name, not a path; got {self.config.folder!r}")
        is_taken = any(name.rpartition("/")[2] == "search" for name in config.plugins)  # also material/search
        if self.config.folder.strip("/") == "search" and is_taken:
            raise PluginError("sparserank: the plugin 'search' writes the same folder; remove it or set 'folder'")
        self.pages: list[Page] = []
        script = config_options.ExtraScript().run_validation(f"{self.config.folder}/{SCRIPT}")  # a module
        config.extra_javascript.append(script)
        return config

    def on_page_content(self, html: str, page: Any, **_: Any) -> str:
        """Keep the content of a page.

        Parameters
        ----------
        html : str
            The content.
        page : Page
            The page of MkDocs.
        """
        if not (page.meta.get("search") or {}).get("exclude", False):
            self.pages.append(Page(page.url.removeprefix("./").removeprefix("/"), str(page.title or ""), html))
        return html

    def on_post_build(self, config: Any) -> None:
        """Train on the pages and write the search.

        Parameters
        ----------
        config : MkDocsConfig
            The configuration of the site.
        """
        options = {name: self.config[name] for name in ("language", "learn_from", "max_pairs")}
        try:
            build_search(self.pages, f"{config.site_dir}/{self.config.folder}", **options)
        except SparseRankError as error:
            raise PluginError(f"sparserank: {error}") from None
