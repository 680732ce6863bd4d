"""The template of every HTML page, and the page of a report: self-contained, without scripts, light or dark."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files

from ..validation import installed
from .report import Report, Table


def html_page(report: Report) -> str:
    """The page of a report."""
    installed("matplotlib", extra="plot")
    from .plots import bars, differences

    lead = f"{len(report.systems)} system{'s' * (len(report.systems) != 1)}, {report.query_count()}"
    parts = [f"<h1>{escape(report.title)}</h1>", f'<p class="lead">{lead}</p>']
    if report.comparisons:
        sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in report.findings())
        parts.append(f'<div class="findings">{sentences}</div>')
    caption = "Bars are values, lines their 95 % intervals."
    if report.comparisons:
        caption += f" Blue is better than {report.baseline}, orange worse (p < 0.05); gray is neither."
    parts += ["<h2>Values</h2>", html_table(report.values()), html_figure(bars(report), caption)]
    if report.comparisons:
        parts += [f"<h2>Against {escape(report.baseline)}</h2>", _comparisons(report)]
        for number, name in enumerate(report.comparisons):
            caption = f"{name} minus {report.baseline} for each query, sorted."
            parts.append(html_figure(differences(report, name, number), caption))
    if report.notes:
        parts += ["<h2>Notes</h2>", f"<ul>{''.join(f'<li>{escape(note)}</li>' for note in report.notes)}</ul>"]
    if report.settings:
        rows = tuple((str(key), str(value)) for key, value in report.settings.items())
        parts += ["<h2>Settings</h2>", html_table(Table(("Setting", "Value"), rows))]
    parts.append(f"<footer>{escape(report.method())}</footer>")
    return html_document(report.title, parts)


def html_document(title: str, parts: Sequence[str]) -> str:
    """A page with this title, the style sheet and the parts of the body."""
    style = files("sparserank.evaluation").joinpath("page.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(parts)
        + "\n</main>\n</body>\n</html>\n"
    )


def _comparisons(report: Report) -> str:
    """The table of differences, significant ones in color."""
    verdicts = [c.better for by_measure in report.comparisons.values() for c in by_measure.values()]
    names = {True: ' class="better"', False: ' class="worse"', None: ""}
    return html_table(report.differences(), [{2: names[verdict]} for verdict in verdicts])


def html_table(table: Table, marks: Sequence[dict[int, str]] | None = None) -> str:
    """A table that scrolls if it is wide; marks[i][j] are attributes of the cell in row i and column j."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in table.head)
    body = []
    for number, (first, *rest) in enumerate(table.rows):
        mark = marks[number] if marks else {}
        cells = "".join(f"<td{mark.get(i, '')}>{_cell(cell)}</td>" for i, cell in enumerate(rest, start=1))
        body.append(f'<tr><th scope="row">{escape(first)}</th>{cells}</tr>')
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n<tbody>\n'
        + "\n".join(body)
        + "\n</tbody></table></div>"
    )


def _cell(text: str) -> str:
    """A value, with its interval in small type."""
    value, bracket, interval = text.partition(" [")
    return f"{escape(value)} <small>[{escape(interval)}</small>" if bracket else escape(value)


def html_figure(picture: str, caption: str) -> str:
    """A picture, as an SVG or IMG element, with its caption."""
    return f"<figure>\n{picture}\n<figcaption>{escape(caption)}</figcaption>\n</figure>"
