"""What the site takes from the package itself: public names, commands, HTTP paths, and the pictures of the gallery.

A page asks for one of them with a line of its own, `{{ commands }}` or `{{ http }}`. Every public package gets a page.
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import sparserank
from sparserank.errors import NotInstalled

DOCS = Path(__file__).parent
GALLERY = Path(os.environ.get("SPARSERANK_GALLERY", DOCS.parent / "build/gallery"))
"""Where the pictures of the gallery are drawn."""
NOT_IN_PYTHON = {"cli", "service", "experiments", "deprecated"}
"""Packages that are used through commands and HTTP, and the names of the previous release."""


def public_packages() -> list[str]:
    """The package, its public packages and integrations that have `__all__`, and the modules that `__all__` names."""
    found = ["sparserank", "sparserank.errors"]
    for module in pkgutil.iter_modules(sparserank.__path__):
        public = module.ispkg and not module.name.startswith("_") and module.name not in NOT_IN_PYTHON
        if public and "__all__" in Path(sparserank.__path__[0], module.name, "__init__.py").read_text():
            found.append(f"sparserank.{module.name}")
    integrations = sorted(Path(sparserank.__path__[0], "integrations").glob("*.py"))
    found += [f"sparserank.integrations.{file.stem}" for file in integrations if offered_names(file)]
    modules = [getattr(sparserank, name) for name in sparserank.__all__]
    named = [module.__name__ for module in modules if isinstance(module, ModuleType)]
    return [*found, *(name for name in named if name not in found)]


def offered_names(file: Path) -> list[str]:
    """`__all__` of a file, which may need a library that is not installed."""
    found = re.search(r"(?m)^__all__ = (\[.*\])$", file.read_text())
    return ast.literal_eval(found[1]) if found else []


def public_names(package: str) -> dict[str, Any]:
    """What a package or module offers: `__all__`, or what it defines; no modules and no dunder names.

    The values are None if the module needs a library that is not installed.
    """
    try:
        module = importlib.import_module(package)
    except NotInstalled:
        return dict.fromkeys(offered_names(Path(sparserank.__path__[0], *package.split(".")[1:]).with_suffix(".py")))
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == package]
    offered = getattr(module, "__all__", [name for name in own if hasattr(getattr(module, name), "__qualname__")])
    names = {name: getattr(module, name) for name in offered if not name.startswith("_")}
    return {name: value for name, value in names.items() if not isinstance(value, ModuleType)}


def names(package: str, described: set[str]) -> str:
    """A block of mkdocstrings for each public name; a link for one that another page describes already."""
    blocks = []
    for name, value in public_names(package).items():
        home = getattr(value, "__module__", package) if hasattr(value, "__qualname__") else package
        full = f"{home}.{name}"
        inherited = "\n    options:\n      inherited_members: true" if isinstance(value, type) else ""
        blocks.append(f"- [`{name}`][{full}]" if full in described else f"::: {full}{inherited}")
        described.add(full)
    return "\n\n".join(blocks)


def commands() -> str:
    """Every command with its arguments and options, from the application itself."""
    import typer
    from typer.cli import get_docs_for_click

    from sparserank.cli.app import app

    command = typer.main.get_command(app)
    text = get_docs_for_click(obj=command, ctx=typer.Context(command), name="sparserank")
    text = text.split("\n", 2)[2]  # the page has a title of its own
    return re.sub(r"(?m)^Example: (sparserank.*(?:\n(?!\s*$).*)*)", r"```console\n$ \1\n```", text)


def http() -> str:
    """Every path of the service, from its OpenAPI document."""
    from sparserank.service.app import create_app
    from sparserank.service.config import ServiceConfig

    with TemporaryDirectory() as folder:
        model = Path(folder, "model.safetensors")
        sparserank.TextRanker("bm25").fit({"d": "a document"}).save(model)
        app = create_app(ServiceConfig(str(model), "token", learn=False))
        document = app.openapi()
        app.state.service.store.close()
    lines = []
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            lines += [f"## `{method.upper()} {path}`", "", operation.get("description") or operation["summary"], ""]
            lines += _fields(operation, document)
            lines += ["Answers: " + "; ".join(_answer(code, said) for code, said in operation["responses"].items()), ""]
    return "\n".join(lines)


def _fields(operation: dict[str, Any], document: dict[str, Any]) -> list[str]:
    rows = [(one["name"], one["schema"], one.get("required", False)) for one in operation.get("parameters", [])]
    for content in operation.get("requestBody", {}).get("content", {}).values():
        schema = _resolve(content["schema"], document)
        needed = schema.get("required", [])
        rows += [(name, field, name in needed) for name, field in schema.get("properties", {}).items()]
    if not rows:
        return []
    table = ["| field | type | default | meaning |", "|---|---|---|---|"]
    for name, field, needed in rows:
        default = "required" if needed else f"`{json.dumps(field.get('default'))}`"
        table.append(f"| `{name}` | {_type(field, document)} | {default} | {field.get('description', '')} |")
    return [*table, ""]


def _answer(code: str, said: dict[str, Any]) -> str:
    return f"**{code}** {said['description'].rstrip('.')}"


def _type(field: dict[str, Any], document: dict[str, Any]) -> str:
    field = _resolve(field, document)
    if "anyOf" in field:
        return " or ".join(_type(one, document) for one in field["anyOf"])
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"])
    limits = {"minimum": "≥", "maximum": "≤", "maxLength": "at most", "maxItems": "at most"}
    bounds = ", ".join(f"{sign} {field[key]:,.0f}" for key, sign in limits.items() if key in field)
    inner = f" of {_type(field['items'], document)}" if "items" in field else ""
    return f"{field.get('type', 'any')}{inner}{f' ({bounds})' if bounds else ''}"


def _resolve(schema: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref")
    return document["components"]["schemas"][reference.rpartition("/")[2]] if reference else schema


def on_pre_build(**_: Any) -> None:
    """Draw the pictures of the gallery that are not there yet."""
    subprocess.run([sys.executable, DOCS / "pictures.py", GALLERY], check=True)


def page(package: str) -> str:
    """The path of a package's page."""
    return f"reference/python/{package.rpartition('.')[2]}.md"


def on_config(config: Any) -> Any:
    """Name the pages of the public packages under Reference, Python; and that of the benchmarks once it is there."""
    (reference,) = (entry["Reference"] for entry in config.nav if "Reference" in entry)
    (python,) = (entry for entry in reference if "Python" in entry)
    python["Python"] = [{package: page(package)} for package in public_packages()]
    if (DOCS / "benchmarks.md").exists():
        (explanation,) = (entry["Explanation"] for entry in config.nav if "Explanation" in entry)
        explanation.append({"Benchmarks": "benchmarks.md"})
    return config


def on_files(files: Any, config: Any) -> Any:
    """Write a page for each public package, and take the gallery's pictures."""
    from mkdocs.structure.files import File

    for picture in sorted(GALLERY.iterdir()):
        files.append(File.generated(config, f"gallery/{picture.name}", abs_src_path=str(picture)))

    described: set[str] = set()
    for package in public_packages():
        content = f"# `{package}`\n\n{names(package, described)}\n"
        files.append(File.generated(config, page(package), content=content))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put what a page asks for in its place."""
    markdown = re.sub(r"(?m)^\{\{ commands \}\}$", lambda _: commands(), markdown)
    return re.sub(r"(?m)^\{\{ http \}\}$", lambda _: http(), markdown)
