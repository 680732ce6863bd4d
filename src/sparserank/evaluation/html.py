"""A report as one HTML page: no script, no link, nothing to fetch; light or dark as the reader's screen is.

Every text of the user's is escaped. Plots are SVG drawn by matplotlib whose colours are named by the page's style
sheet, so that they follow it.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ..validation import installed
from .report import Report, Table

_STYLE = """
:root {
  color-scheme: light dark;
  --page: #ffffff; --card: #f6f7f9; --ink: #1b1f24; --soft: #6a7380; --line: #dfe3e8;
  --plain: #a3adba; --better: #2a6fdb; --worse: #d4691e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171b; --card: #1c2026; --ink: #e8eaed; --soft: #9aa4b0; --line: #323841;
    --plain: #76808d; --better: #6ba4ff; --worse: #f0924b;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, "Segoe UI", Roboto, sans-serif;
}
main { max-width: 62rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .4rem; letter-spacing: -.01em; }
h2 { font-size: 1.15rem; margin: 2.6rem 0 .8rem; }
.lead { color: var(--soft); margin: 0 0 1.6rem; }
.findings {
  background: var(--card); border-left: 3px solid var(--better); border-radius: 0 8px 8px 0;
  margin: 1.4rem 0; padding: .8rem 1.1rem;
}
.findings p { margin: .2rem 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td {
  text-align: left; padding: .5rem .9rem .5rem 0; border-bottom: 1px solid var(--line);
  vertical-align: baseline; white-space: nowrap;
}
th { color: var(--soft); font-weight: 600; font-size: .85rem; }
tbody th { color: var(--ink); font-size: 1rem; }
td small { color: var(--soft); font-size: .85em; padding-left: .35em; }
td.better { color: var(--better); } td.worse { color: var(--worse); }
figure { margin: 1.2rem 0; }
figure svg, figure img { display: block; width: 100%; height: auto; }
figure svg text { font-family: inherit !important; }
figcaption, footer { color: var(--soft); font-size: .88rem; }
footer { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: 1rem; }
li { margin: .3rem 0; }
""".strip()


def html_page(report: Report) -> str:
    """The whole page."""
    installed("matplotlib", extra="plot")
    from .plots import bars, differences

    lead = f"{len(report.systems)} system{_s(len(report.systems))}, {report.judged()}"
    parts = [f"<h1>{escape(report.title)}</h1>", f'<p class="lead">{lead}</p>']
    if report.comparisons:
        parts.append(_paragraphs("findings", report.findings()))
    parts += [
        "<h2>Values</h2>",
        html_table(report.values()),
        html_figure(bars(report), _bar_caption(report)),
    ]
    if report.comparisons:
        parts += [f"<h2>Against {escape(report.baseline)}</h2>", _comparisons(report)]
        for number, name in enumerate(report.comparisons):
            caption = f"{name} less {report.baseline}, query by query, sorted."
            parts.append(html_figure(differences(report, name, number), caption))
    if report.notes:
        parts += ["<h2>Notes</h2>", f"<ul>{''.join(f'<li>{escape(note)}</li>' for note in report.notes)}</ul>"]
    if report.settings:
        rows = tuple((str(key), str(value)) for key, value in report.settings.items())
        parts += ["<h2>Settings</h2>", html_table(Table(("Setting", "Value"), rows))]
    parts.append(f"<footer>{escape(report.method())}</footer>")
    return html_document(report.title, parts)


def html_document(title: str, parts: Sequence[str]) -> str:
    """The template of every HTML page: the title, the style sheet and the parts of the body."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_STYLE}\n</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(parts)
        + "\n</main>\n</body>\n</html>\n"
    )


def _comparisons(report: Report) -> str:
    """The table of differences, each coloured where it is not chance."""
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


def _bar_caption(report: Report) -> str:
    caption = "Bars are values, lines their 95 % intervals."
    if report.comparisons:
        caption += f" Blue is better than {report.baseline}, orange worse (p < 0.05); grey is neither."
    return caption


def _s(number: int) -> str:
    return "" if number == 1 else "s"


def html_figure(picture: str, caption: str) -> str:
    """A picture, as an SVG or IMG element, with its caption."""
    return f"<figure>\n{picture}\n<figcaption>{escape(caption)}</figcaption>\n</figure>"


def _paragraphs(name: str, sentences: Sequence[str]) -> str:
    return f'<div class="{name}">' + "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences) + "</div>"
