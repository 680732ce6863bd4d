"""What an experiment has found, as files: JSON for programs, Markdown and a page for people, its figures as PNG.

The page holds all it shows: no script, no link, nothing to fetch. Each file appears whole or not at all.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from ..data.files import PathLike, write_bytes
from ..evaluation.report import Table
from .written import STYLE, html_table


@dataclass(frozen=True)
class Section:
    """A heading, and under it a table, a picture (its file's name and bytes), a sentence; each where there is one."""

    heading: str
    table: Table | None = None
    note: str = ""
    picture: tuple[str, bytes] | None = None


def write(name: str, title: str, found: Mapping[str, Any], sections: Sequence[Section], folder: PathLike) -> list[Path]:
    """Write NAME.json, NAME.md, NAME.html and the pictures; return where they are."""
    place = Path(folder)
    content = {
        f"{name}.json": (json.dumps(found, ensure_ascii=False, allow_nan=False, indent=1) + "\n").encode(),
        f"{name}.md": markdown(title, found["differs"], sections).encode(),
        f"{name}.html": page(title, found["differs"], sections).encode(),
        **dict(section.picture for section in sections if section.picture is not None),
    }
    for file, raw in content.items():
        write_bytes(place / file, raw)
    return [place / file for file in content]


def markdown(title: str, differs: str, sections: Sequence[Section]) -> str:
    """All of it as Markdown; pictures are the PNGs beside it."""
    parts = [f"# {title}", differs]
    for section in sections:
        parts.append(f"## {section.heading}")
        parts += [section.table.markdown()] if section.table is not None else []
        parts += [f"![{section.heading}]({section.picture[0]})"] if section.picture is not None else []
        parts += [section.note] if section.note else []
    return "\n\n".join(parts) + "\n"


def page(title: str, differs: str, sections: Sequence[Section]) -> str:
    """All of it as one HTML page that holds its pictures."""
    parts = [f"<h1>{escape(title)}</h1>", f"<p>{escape(differs)}</p>"]
    for section in sections:
        parts.append(f"<h2>{escape(section.heading)}</h2>")
        parts += [html_table(section.table)] if section.table is not None else []
        if section.picture is not None:
            source = b64encode(section.picture[1]).decode("ascii")
            image = f'<img src="data:image/png;base64,{source}" alt="{escape(section.heading)}">'
            parts.append(f"<figure>{image}<figcaption>{escape(section.note)}</figcaption></figure>")
        elif section.note:
            parts.append(f"<p>{escape(section.note)}</p>")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{STYLE}\n</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(parts)
        + "\n</main>\n</body>\n</html>\n"
    )
