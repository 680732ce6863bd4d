"""The search of documentation sites: real builds by MkDocs and Sphinx, searched in Chromium."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from sparserank.errors import DataError
from sparserank.integrations.static_docs import Page, build_search

from ..export.test_static_site import serve

__all__ = ["serve"]
ROOT = Path(__file__).parents[2]
PAGES = {
    "index": "# Home\n\nWelcome. Read about [apples](fruit/apple.md).",
    "fruit/apple": "# Apple\n\nA red fruit, like the [pear](pear.md).\n\n## Storage\n\nKeep it cool.",
    "fruit/pear": "# Pear\n\nA green fruit & more.",
}


def search_in(browser, address, page, text):
    """Open a page, search in its dialog, and return the titles and addresses of the results."""
    tab = browser.new_page()
    tab.goto(f"{address}{page}")
    tab.click("#sparserank-open")
    tab.fill("#sparserank input", text)
    tab.wait_for_selector("#sparserank li a")
    found = [(link.inner_text(), link.get_attribute("href")) for link in tab.query_selector_all("#sparserank li a")]
    tab.close()
    return found


def test_the_text_of_a_page_has_no_markup_navigation_or_scripts():
    html = (
        '<nav><a href="x/">skip</a></nav><h1 id="a">Title<a class="headerlink" href="#a">¶</a></h1><p>One <b>two</b>'
        '<script>var x = "<p>";</script></p><pre>code\n  more</pre><a href="https://example.org/">out</a>'
        '<a href="../other/#part">in</a><a href="#a">here</a><a href="/abs/">abs</a><a href="../../../up/">up</a>'
    )
    record = Page("guide/a/", "A", html).record()
    assert record["text"].split("\n") == ["Title", "One two", "code", "more", "outinhereabsup"]
    assert record["headings"] == ["Title"]
    assert record["links"] == ["guide/other/"]
    assert Page("", "Home", '<a href="guide/a/">a</a>').record()["links"] == ["guide/a/"]
    assert Page("a/", "A", '<a href="../">home</a>').record()["links"] == ["index.html"]


def test_a_link_of_the_site_is_the_id_of_its_page():
    pages = [
        Page("", "Home", '<a href="%C3%BCber%20uns/">wir</a><a href="./">here</a>'),
        Page(
            "%C3%BCber%20uns/", "Wir", '<a href="../">home</a><a href="../über uns/">here</a><a href="http://[">bad</a>'
        ),
    ]
    assert [(page.id, page.record()["links"]) for page in pages] == [
        ("index.html", ["über uns/"]), ("über uns/", ["index.html"]),
    ]  # fmt: skip
    assert pages[1].record()["metadata"] == {"url": "%C3%BCber%20uns/"}


def test_an_earlier_search_is_replaced(tmp_path):
    pages = [Page(f"p{i}/", f"Page {i}", f'<p>Text {i} <a href="../p{(i + 1) % 50}/">next</a></p>') for i in range(50)]
    summary = build_search(pages, tmp_path / "search")
    assert summary["documents"] == 50
    assert {path.name for path in (tmp_path / "search").iterdir()} >= {
        "search.js",
        "page.js",
        "site.mjs",
        "search.json",
    }
    build_search(pages[:2], tmp_path / "search", learn_from=())  # replaces the earlier one
    assert json.loads((tmp_path / "search/search.json").read_text())["documents"] == 2
    with pytest.raises(DataError, match="no page with text"):
        build_search([], tmp_path / "none")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with the pages, in which MkDocs finds the plugin under the name that pyproject.toml gives it."""
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["mkdocs.plugins"]
    known = tmp_path / "site-packages" / "plugins-1.0.dist-info"
    known.mkdir(parents=True)
    lines = "".join(f"{name} = {target}\n" for name, target in points.items())
    (known / "entry_points.txt").write_text(f"[mkdocs.plugins]\n{lines}")
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: plugins\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site-packages"))
    for name, text in PAGES.items():
        (tmp_path / "docs" / f"{name}.md").parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "docs" / f"{name}.md").write_text(text)
    return tmp_path


def mkdocs_build(folder, plugins):
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    config = {"site_name": "Fruit", "docs_dir": str(folder / "docs"), "site_dir": str(folder / "site")}
    (folder / "mkdocs.yml").write_text(json.dumps(config | {"plugins": plugins}))
    build(load_config(str(folder / "mkdocs.yml")))


@pytest.mark.filterwarnings("ignore")  # of MkDocs and its themes
def test_a_site_of_mkdocs_is_searched_in_the_browser(project, browser, serve):
    pytest.importorskip("mkdocs", reason="pip install 'mkdocs>=1.5'")
    mkdocs_build(project, [{"sparserank": {"max_pairs": 1000}}])
    address = serve(project / "site")
    found = search_in(browser, address, "fruit/pear/", "fruit cool")
    assert found[0] == ("Apple", f"{address}fruit/apple/")
    assert {title for title, _ in found} == {"Apple", "Pear"}
    assert search_in(browser, address, "", "welcome") == [("Home", address)]


@pytest.mark.filterwarnings("ignore")
def test_the_plugin_names_the_mistake(project, caplog):
    pytest.importorskip("mkdocs", reason="pip install 'mkdocs>=1.5'")
    from mkdocs.exceptions import Abort

    for plugins, message in (
        (["search", "sparserank"], "sparserank: the plugin 'search' writes the same folder"),
        ([{"sparserank": {"folder": "assets/search"}}], "sparserank: 'folder' must be one name"),
        ([{"sparserank": {"language": "klingon"}}], "sparserank: "),
    ):
        caplog.clear()
        with pytest.raises(Abort):
            mkdocs_build(project, plugins)
        assert caplog.messages[-1].startswith(message)
        assert "\n" not in caplog.messages[-1]


@pytest.mark.filterwarnings("ignore")
def test_the_search_of_the_theme_material_writes_the_same_folder_too():
    pytest.importorskip("mkdocs", reason="pip install 'mkdocs>=1.5'")
    from mkdocs.exceptions import PluginError

    from sparserank.integrations.mkdocs import SparseRankPlugin

    plugin = SparseRankPlugin()
    plugin.load_config({})
    with pytest.raises(PluginError, match="writes the same folder"):
        plugin.on_config(SimpleNamespace(plugins={"material/search": None, "sparserank": plugin}))


@pytest.mark.filterwarnings("ignore")
def test_a_site_of_sphinx_is_searched_in_the_browser(tmp_path, browser, serve):
    application = pytest.importorskip("sphinx.application", reason="pip install 'sphinx>=7.0'")
    source = tmp_path / "source"
    (source / "fruit").mkdir(parents=True)
    (source / "conf.py").write_text('extensions = ["sparserank.integrations.sphinx"]\nproject = "Fruit"\n')
    (source / "index.rst").write_text(
        "Home\n====\n\nWelcome.\n\n.. toctree::\n\n   fruit/apple\n   fruit/pear\n   empty\n"
    )
    (source / "empty.rst").write_text("")
    (source / "fruit/apple.rst").write_text("Apple\n=====\n\nA red fruit, like the :doc:`pear`. Keep it cool.\n")
    (source / "fruit/pear.rst").write_text("Pear\n====\n\nA green fruit.\n")
    folders = (str(source), str(source), str(tmp_path / "site"), str(tmp_path / "trees"))
    application.Sphinx(*folders, "html", status=None, warning=None).build()
    address = serve(tmp_path / "site")
    found = search_in(browser, address, "fruit/pear.html", "fruit cool")
    assert found[0] == ("Apple", f"{address}fruit/apple.html")
