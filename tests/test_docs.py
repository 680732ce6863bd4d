"""The documentation: the tutorial runs as it is written, commands and names exist, links lead somewhere."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
TUTORIAL = (DOCS / "tutorial/index.md").read_text()
COMMANDS = re.findall(r"(?m)^\$ (.*)$", TUTORIAL)


def hooks(name: str = "hooks"):
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sparserank(command: str, folder: Path) -> str:
    words = [sys.executable, "-m", *shlex.split(command)]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, env=os.environ | {"COLUMNS": "120"})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_tutorial_runs_as_it_is_written(tmp_path):
    for name in re.findall(r"\]\((\w+\.csv)\)", TUTORIAL):
        shutil.copy(DOCS / "tutorial" / name, tmp_path)
    install, bm25, before, train, after, related, explain, serve, curl = COMMANDS
    assert install == "pip install 'sparserank[service]'"
    sparserank(bm25, tmp_path)
    assert "trainers-red" not in first_result(sparserank(before, tmp_path))
    assert "nDCG@10" in sparserank(train, tmp_path)
    assert "trainers-red" in first_result(sparserank(after, tmp_path))
    assert "trainer" in sparserank(related, tmp_path)
    assert re.search(r"sneakers +trainers ", sparserank(explain, tmp_path))
    assert serve == "sparserank serve shop.safetensors --port 8000"
    served_search_finds_it(tmp_path, json.loads(shlex.split(curl)[-1]))


def first_result(shown: str) -> str:
    return next(line for line in shown.splitlines() if line.startswith(" 1 "))


def served_search_finds_it(folder: Path, request: dict[str, object]) -> None:
    command = [sys.executable, "-m", "sparserank", "serve", "shop.safetensors", "--port", "0", "--json"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        try:
            address = json.loads(process.stdout.readline())["address"]
            found = httpx.post(f"{address}search", json=request, timeout=60).json()
            assert found["results"][0]["id"] == "sofa-blue"
        finally:
            process.send_signal(signal.SIGINT)


def test_every_command_that_the_pages_quote_exists_with_its_options():
    import typer

    from sparserank.cli.app import app

    root = typer.main.get_command(app)
    checked = 0
    for page in PAGES:
        for line in re.findall(r"(?m)^(?:    |\$ )(sparserank .*(?:\\\n.*)*)", page.read_text()):
            words = re.sub(r"\\\n|  #.*", " ", line).split()
            command = root.commands[words[1]]
            if hasattr(command, "commands") and words[2] in command.commands:
                command = command.commands[words[2]]
            known = {name for option in command.params for name in [*option.opts, *option.secondary_opts]} | {"--help"}
            for option in (word for word in words[2:] if re.fullmatch(r"--?[a-z][a-z-]*", word)):
                assert option in known, f"{page.name}: {line}"
                checked += 1
    assert checked > 30


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        prose = re.sub(r"(?ms)^```.*?^```", "", page.read_text())
        for target in re.findall(r"\]\(([^)\s]+)\)", prose):
            path, _, anchor = target.partition("#")
            if "://" in path or not path or (path.endswith((".svg", ".png")) and "gallery" in str(page)):
                continue
            there = (page.parent / path).resolve()
            assert there.exists(), f"{page.relative_to(ROOT)}: {target}"
            if anchor and there.suffix == ".md":
                headings = re.findall(r"(?m)^#+ (.*)$", there.read_text())
                slugs = [re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings]
                assert anchor in slugs, f"{page.relative_to(ROOT)}: {target}"


def test_code_blocks_compile():
    for page in PAGES:
        for block in re.findall(r"(?ms)^```python\n(.*?)^```", page.read_text()):
            if ">>>" not in block:
                compile(block, str(page), "exec")


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text()
    for page in set(DOCS.rglob("*.md")) - {DOCS / "benchmarks.md"}:  # docs/hooks.py adds that one
        assert f" {page.relative_to(DOCS).as_posix()}\n" in navigation, page


def test_every_integration_that_the_pages_import_is_in_the_reference():
    made, imported = hooks(), set()
    for page in PAGES:
        line = r"(?m)^(?:>>> )?from (sparserank\.integrations\.\w+) import (.*)$"
        imported |= {(where, name) for where, names in re.findall(line, page.read_text()) for name in names.split(", ")}
    assert len(imported) > 10
    packages = made.public_packages()
    assert len({made.page(package) for package in packages}) == len(packages)
    assert not {
        (where, name) for where, name in imported if where not in packages or name not in made.public_names(where)
    }


def test_a_reference_lists_an_integration_whose_library_is_missing(monkeypatch):
    monkeypatch.delitem(sys.modules, "sparserank.integrations.tantivy", raising=False)
    monkeypatch.setattr("sparserank.integrations.requirement.version", lambda name: "0.1")
    made = hooks()
    assert made.public_names("sparserank.integrations.tantivy") == {"TantivySearch": None}
    assert made.names("sparserank.integrations.tantivy", set()) == "::: sparserank.integrations.tantivy.TantivySearch"


def test_the_reference_of_commands_and_of_http_comes_from_the_program():
    made = hooks()
    commands = made.commands()
    for name in ("sparserank train", "sparserank evaluate", "sparserank model rollback"):
        assert f" `{name}`" in commands
    pytest.importorskip("fastapi", reason="the HTTP reference needs the extra: pip install 'sparserank[service]'")
    paths = made.http()
    for path in ("POST /search", "POST /feedback", "GET /related/{word}"):
        assert f"## `{path}`" in paths
    assert "| `query` | string" in paths


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("material", reason="the site needs the extra: pip install 'sparserank[docs]'")
    gallery, pictures = tmp_path / "gallery", hooks("pictures")
    gallery.mkdir()
    pictures.learning_curve(gallery / "learning-curve.svg")
    for name in pictures.PICTURES.keys() - {"learning-curve.svg"}:  # stand-ins: to draw them all takes a minute
        shutil.copy(gallery / "learning-curve.svg", gallery / name)
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"],
        cwd=ROOT, capture_output=True, text=True, env=os.environ | {"SPARSERANK_GALLERY": str(gallery)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((tmp_path / "site/search/search.json").read_text())["documents"] > 50
    made = hooks()
    for package in made.public_packages():
        page = (tmp_path / "site" / made.page(package).removesuffix(".md") / "index.html").read_text()
        for name in made.public_names(package):
            assert re.search(rf'(?:id|href)="[^"]*\b{name}"', page), f"{package}.{name} is not in the reference"
    assert {path.name for path in (tmp_path / "site/gallery").iterdir()} >= {"size-path.png", "explanation.svg"}


@pytest.mark.slow
def test_the_pictures_of_the_search_page_are_photographs_of_it(tmp_path, browser):
    (tmp_path / "pictures").mkdir()
    script = DOCS / "page_pictures.py"
    done = subprocess.run([sys.executable, script, tmp_path / "pictures"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    made = {path.name: path.read_bytes() for path in (tmp_path / "pictures").iterdir()}
    assert set(made) == set(hooks("page_pictures").VIEWS)
    assert len(set(made.values())) == len(made)
    assert all(len(content) > 10_000 for content in made.values())
    committed = {path.read_bytes() for path in (DOCS / "pictures").iterdir()}
    assert not committed >= set(made.values()), "they are copies"


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def test_internal_targets_are_not_in_the_product():
    for path in PAGES:
        found = re.search(r"(?i)\b(wanted|reach|dream\w*)\b", path.read_text())
        assert not found, f"{path.relative_to(ROOT)}: {found[0]!r}"


def test_every_figure_of_the_readme_stands_on_the_page_that_its_row_links_to():
    cells = r"(?m)^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| \[`(.+)`\]\((.+)\) \|$"
    rows = re.findall(cells, (ROOT / "README.md").read_text())
    assert 5 <= len(rows) <= 10
    for name, ours, beside, command, page in rows:
        text = (ROOT / page).read_text()
        assert command.removesuffix(" --output reports").split(" ARGS")[0] in text, f"{page} does not name {command}"
        there = {float(number) for number in re.findall(r"-?\d*\.?\d+", text)}
        for figure in re.findall(r"\.\d+|\b\d+(?= ms)", f"{ours} {beside}"):
            half = 0.5 * 10.0 ** -len(figure.partition(".")[2]) + 1e-9
            assert any(abs(abs(number) - float(figure)) <= half for number in there), f"{name}: {figure}"
