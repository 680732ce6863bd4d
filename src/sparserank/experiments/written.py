"""What `chen2010.reproduce` has found, as files: JSON for programs, Markdown and a page for people, pictures as PNG.

The pictures are Figure 1 and, where Table III has two words or more, a heat map of W between them. The page holds all
it shows: no script, no link, nothing to fetch. Each file appears whole or not at all.
"""

from __future__ import annotations

import json
import tempfile
from base64 import b64encode
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from ..data.files import PathLike, write_bytes
from ..errors import DataError
from ..evaluation.report import Table
from ..validation import installed
from .tables import SLIDES

TITLE = "Learning Preferences with Millions of Parameters by Enforcing Sparsity (Chen et al., 2010)"

ERRORS = (
    "[low, high]: 95 % interval over queries. error: the mean over queries of the share of a query's triples in the "
    "wrong order. error of triples: the share of all triples in the wrong order. steps: the triples of all passes, "
    "refit included."
)

STYLE = """
:root { color-scheme: light dark; --page: #fff; --ink: #1b1f24; --soft: #6a7380; --line: #dfe3e8; --card: #f6f7f9; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14171b; --ink: #e8eaed; --soft: #9aa4b0; --line: #323841; --card: #1c2026; }
}
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 68rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.2; } h2 { font-size: 1.15rem; margin: 2.4rem 0 .8rem; }
p { background: var(--card); border-radius: 8px; padding: .8rem 1.1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .5rem .9rem .5rem 0; border-bottom: 1px solid var(--line); }
thead th { color: var(--soft); font-size: .85rem; }
img { width: 100%; height: auto; border-radius: 8px; }
figure { margin: 1.2rem 0; } figcaption { color: var(--soft); font-size: .88rem; }
""".strip()


def prepare(folder: PathLike) -> Path:
    """The folder, made where it is not there; refused now, and not after the work, where it cannot be written."""
    installed("matplotlib", extra="plot")
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            return path
    except OSError as error:
        raise DataError(f"{path}: no folder that can be written: {error.strerror}; give another --output") from None


def write(found: Mapping[str, Any], folder: PathLike) -> list[Path]:
    """Write all files – five with a heat map, four without – and return where they are."""
    name, place = found["dataset"], Path(folder)
    drawn = pictures(found)
    content = {
        f"chen2010-{name}.json": (json.dumps(found, ensure_ascii=False, allow_nan=False, indent=1) + "\n").encode(),
        f"chen2010-{name}.md": markdown(found).encode(),
        f"chen2010-{name}.html": page(found, drawn).encode(),
        **{f"{key}-{name}.png": picture for key, picture in drawn.items()},
    }
    for file, raw in content.items():
        write_bytes(place / file, raw)
    return [place / file for file in content]


def pictures(found: Mapping[str, Any]) -> dict[str, bytes]:
    """The pictures as PNG, by name."""
    from ..base.plots import heatmap
    from .pictures import figure_1

    drawn = {"figure1": figure_1(found)}
    if found["heatmap"] is not None:
        values = np.array(found["heatmap"]["values"], np.float32)
        drawn["heatmap"] = heatmap(found["heatmap"]["words"], values)
    return drawn


def figures(found: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(name, heading, caption) of every picture."""
    yield "figure1", "Figure 1", caption(found)
    if found["heatmap"] is not None:
        text = (
            "W (Sparse) between the words of Table III: red where a query word looks for a document word, blue where "
        )
        yield "heatmap", "Heat map", text + "it turns it away; nothing is written where W has no entry."


def markdown(found: Mapping[str, Any]) -> str:
    """Tables, Figure 1 and what differs, as Markdown; the pictures are the PNG files beside it."""
    parts = [f"# {TITLE}: {found['dataset']}", found["differs"]]
    for heading, table, note in sections(found):
        parts += [f"## {heading}", *([table.markdown()] if table.rows else []), *([note] if note else [])]
    for name, heading, text in figures(found):
        parts += [f"## {heading}", f"![{heading}]({name}-{found['dataset']}.png)", text]
    return "\n\n".join(parts) + "\n"


def page(found: Mapping[str, Any], drawn: Mapping[str, bytes]) -> str:
    """The same as one HTML page that holds the pictures."""
    title = escape(f"{TITLE}: {found['dataset']}")
    parts = [f"<h1>{title}</h1>", f"<p>{escape(found['differs'])}</p>"]
    for heading, table, note in sections(found):
        parts += [f"<h2>{escape(heading)}</h2>", *([html_table(table)] if table.rows else [])]
        parts += [f"<p>{escape(note)}</p>"] if note else []
    for name, heading, text in figures(found):
        source = b64encode(drawn[name]).decode("ascii")
        parts.append(
            f'<h2>{heading}</h2>\n<figure><img src="data:image/png;base64,{source}" alt="{heading}">'
            f"<figcaption>{escape(text)}</figcaption></figure>"
        )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>\n{STYLE}\n</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(parts)
        + "\n</main>\n</body>\n</html>\n"
    )


def caption(found: Mapping[str, Any]) -> str:
    """What Figure 1 shows."""
    return (
        f"Error (mean over queries) of all triples among {found['figure1']['test_items']:,} test items (the same for "
        "every method), and nonzeros of W, while W is trained. Every curve starts at the identity; that of Sparse-R "
        "starts where Sparse ended. Sparse is shown as it would be handed over at that step, cut to the density asked "
        "for; the dotted line is what it holds in training, where entries that have died are cleared away from time to "
        "time."
    )


def sections(found: Mapping[str, Any]) -> Iterator[tuple[str, Table, str]]:
    """(heading, table, note) of Tables I, II and III, and of the ablation where there is one."""
    rows = tuple((row["statistic"], _count(row["ours"]), _count(row["paper"])) for row in found["table1"])
    empty = found["empty_rows"]
    note = "Rows with no known word, which score 0: {training:,} of training, {test:,} of test.".format(**empty)
    yield "Table I", Table(("", "here", _paper(found)), rows), note
    noted: dict[str, list[str]] = {}
    for row in found["table2"]:
        if "note" in row:
            noted.setdefault(row["note"], []).append(row["method"])
    notes = [f"{', '.join(methods)}: {note}" for note, methods in noted.items()]
    notes += [found["order"]] if found["order"] else []
    yield "Table II", table_2(found), " ".join([ERRORS, *notes])
    if found.get("ablation"):
        yield (
            "Ablation",
            ablation(found),
            "One setting changed at a time; the paper's number is that of its own settings.",
        )
    if found.get("rate_sweep"):
        yield "The paper's C, by the objective", rate_sweep(found), found["rate_sweep"]["note"]
    unknown = ", ".join(found["unknown_words"])
    notes = [f"Not among the columns' names: {unknown}."] if unknown else []
    slides = [word for word in found["table3"] if word in SLIDES]
    notes += [f"Quoted from the authors' slides, which show four words: {', '.join(slides)}."] if slides else []
    words = tuple(
        (word, ", ".join(f"{name} {weight:+.2f}" for name, weight in related), _paper_words(found, word))
        for word, related in found["table3"].items()
    )
    yield (
        "Table III",
        Table(("query word", "largest entries of its row of W (Sparse)", "paper"), words),
        " ".join(notes),
    )


def table_2(found: Mapping[str, Any], *, intervals: bool = True) -> Table:
    """Table II with the paper's numbers beside ours; a terminal is too narrow for the intervals."""
    paper = _paper(found)
    head = ("method", "MAP", paper, "error", paper, "error of triples", "MB of W", paper, "density", "steps", "seconds")
    return Table(head, tuple(_method(row, intervals) for row in found["table2"]))


def ablation(found: Mapping[str, Any]) -> Table:
    """What one changed setting does to a method."""
    paper, rows = _paper(found), []
    for row in found["ablation"]:
        numbers = (
            f"{row['map']:.3f}",
            _number(row["paper_map"], ".3f"),
            f"{row['error']:.3f}",
            _number(row["paper_error"], ".3f"),
        )
        rows.append((row["method"], row["change"], *numbers))
    return Table(("method", "change", "MAP", paper, "error", paper), tuple(rows))


def rate_sweep(found: Mapping[str, Any]) -> Table:
    """The objective on training triples for every C; MAP and error on test of the best C and of the paper's."""
    rows = [
        (
            f"{row['c']:g}",
            f"{row['hinge']:.4f}",
            f"{row['objective']:.4f}",
            f"{100 * row['density']:.3g} %",
            _number(row["map"], ".3f"),
            _number(row["error"], ".3f"),
        )
        for row in found["rate_sweep"]["rows"]
    ]
    return Table(("C", "hinge", "objective", "density", "MAP", "error"), tuple(rows))


def _method(row: Mapping[str, Any], intervals: bool) -> tuple[str, ...]:
    map_, error = (f" [{row[f'{key}_low']:.3f}, {row[f'{key}_high']:.3f}]" * intervals for key in ("map", "error"))
    return (
        row["method"],
        f"{row['map']:.3f}{map_}",
        _number(row["paper_map"], ".3f"),
        f"{row['error']:.3f}{error}",
        _number(row["paper_error"], ".3f"),
        f"{row['error_of_triples']:.3f}",
        f"{row['megabytes']:.4g}",
        _number(row["paper_megabytes"], ".4g"),
        f"{100 * row['density']:.3g} %",
        _count(row["steps"]),
        f"{row['seconds']:.1f}",
    )


def _paper(found: Mapping[str, Any]) -> str:
    """The head of a column of the paper's numbers."""
    return "paper (other split)" if found["own_split"] else "paper"


def _paper_words(found: Mapping[str, Any], word: str) -> str:
    return ", ".join(found["paper_table3"].get(word, ())) or "–"


def _count(value: int | None) -> str:
    return _number(value, ",")


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def html_table(table: Table) -> str:
    """A table for a page, wide ones to be scrolled."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in table.head)
    body = "\n".join(
        f'<tr><th scope="row">{escape(first)}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in rest)}</tr>'
        for first, *rest in table.rows
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>'
