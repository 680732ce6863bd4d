"""Results of an experiment as files: JSON for programs, Markdown and HTML for people, figures as PNG.

The HTML page is self-contained: no script, no link. Each file appears whole or not at all.
"""

from __future__ import annotations

import json
import tempfile
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from ..data.files import PathLike, write_bytes
from ..errors import DataError
from ..evaluation.html import html_document, html_figure, html_table
from ..evaluation.report import Table
from ..validation import installed


@dataclass(frozen=True)
class Section:
    """A heading with a table, a note and a picture (file name and bytes); each of the three is optional."""

    heading: str
    table: Table | None = None
    note: str = ""
    picture: tuple[str, bytes] | None = None


def prepare_folder(folder: PathLike) -> Path:
    """Create the folder; raise DataError before any work if it cannot be written to."""
    installed("matplotlib", extra="plot")
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            return path
    except OSError as error:
        raise DataError(f"{path}: no folder that can be written: {error.strerror}; give another --output") from None


def write_report(
    name: str, title: str, result: Mapping[str, Any], sections: Sequence[Section], folder: PathLike
) -> list[Path]:
    """Write NAME.json, NAME.md, NAME.html and the pictures, and return their paths."""
    content = {
        f"{name}.json": (json.dumps(result, ensure_ascii=False, allow_nan=False, indent=1) + "\n").encode(),
        f"{name}.md": markdown_report(title, result["differs"], sections).encode(),
        f"{name}.html": html_report(title, result["differs"], sections).encode(),
        **dict(section.picture for section in sections if section.picture is not None),
    }
    paths = {Path(folder) / file: raw for file, raw in content.items()}
    for path, raw in paths.items():
        write_bytes(path, raw)
    return list(paths)


def markdown_report(title: str, lead: str, sections: Sequence[Section]) -> str:
    """The report as Markdown; pictures are the PNG files beside it."""
    parts = [f"# {title}", lead]
    for section in sections:
        parts.append(f"## {section.heading}")
        parts += [section.table.markdown()] if section.table is not None else []
        parts += [f"![{section.heading}]({section.picture[0]})"] if section.picture is not None else []
        parts += [section.note] if section.note else []
    return "\n\n".join(parts) + "\n"


def html_report(title: str, lead: str, sections: Sequence[Section]) -> str:
    """The report as one HTML page that contains its pictures."""
    parts = [f"<h1>{escape(title)}</h1>", f'<p class="lead">{escape(lead)}</p>']
    for section in sections:
        parts.append(f"<h2>{escape(section.heading)}</h2>")
        parts += [html_table(section.table)] if section.table is not None else []
        if section.picture is not None:
            source = b64encode(section.picture[1]).decode("ascii")
            image = f'<img src="data:image/png;base64,{source}" alt="{escape(section.heading)}">'
            parts.append(html_figure(image, section.note))
        elif section.note:
            parts.append(f"<p>{escape(section.note)}</p>")
    return html_document(title, parts)
