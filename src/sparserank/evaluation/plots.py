"""The plots of a report as inline SVG in the page's colors; the same report gives the same bytes.

Text stays text and is taken literally: a dollar sign in a system's name does not start a formula.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from .comparison import Comparison
from .report import Report, measure_heading

# The light theme of page.css; `_rewrite` replaces each color by its name there.
COLORS = {
    "--ink": "#1b1f24",
    "--soft": "#6a7380",
    "--line": "#dfe3e8",
    "--plain": "#a3adba",
    "--better": "#2a6fdb",
    "--worse": "#d4691e",
}
_TITLE: dict[str, Any] = {"loc": "left", "fontsize": 10, "fontweight": "bold", "color": COLORS["--ink"]}
_MAX_POINTS = 500


def bars(report: Report) -> str:
    """One panel per measure, one bar per system, with its interval."""
    label = f"Bars of {', '.join(report.measures)} for {', '.join(report.systems)}"
    with _drawing("values"):
        return _svg(bars_figure(report), "values", label)


def differences(report: Report, name: str, number: int = 0) -> str:
    """One panel per measure: the difference of one system from the baseline on each query, sorted."""
    label = f"Differences of {name} from {report.baseline}, query by query"
    with _drawing(f"against{number}"):
        return _svg(differences_figure(report, name), f"against{number}", label)


def bars_figure(report: Report) -> Any:
    """`bars` as a matplotlib figure."""
    figure, panels = _panels(len(report.measures), 0.62 + 0.34 * len(report.systems))
    for panel, measure in zip(panels, report.measures, strict=True):
        panel.grid(visible=False, axis="y")
        _bar_panel(panel, report, measure)
        panel.set_title(_printable(measure_heading(report, measure)), **_TITLE)
        panel.tick_params(labelleft=panel.get_subplotspec().is_first_col())
    return figure


def differences_figure(report: Report, name: str) -> Any:
    """`differences` as a matplotlib figure."""
    comparisons = list(report.comparisons[name].values())
    figure, panels = _panels(len(comparisons), 2.5)
    for panel, comparison in zip(panels, comparisons, strict=True):
        _difference_panel(panel, comparison)
        panel.set_title(_printable(measure_heading(report, str(comparison.measure))), **_TITLE)
    return figure


def _bar_panel(panel: Any, report: Report, measure: str) -> None:
    estimates = {name: evaluation.estimates.get(measure) for name, evaluation in report.systems.items()}
    highest = max([estimate.high for estimate in estimates.values() if estimate is not None] + [1e-9])
    for place, (name, estimate) in enumerate(estimates.items()):
        if estimate is None:
            panel.text(0, place, " –", va="center", fontsize=9, color=COLORS["--soft"])
            continue
        panel.barh(place, estimate.value, height=0.62, color=_verdict_color(report, name, measure), alpha=0.85)
        panel.plot([estimate.low, estimate.high], [place, place], color=COLORS["--ink"], linewidth=1.4)
        right = max(estimate.value, estimate.high) + highest * 0.03
        panel.text(right, place, f"{estimate.value:.3f}", va="center", fontsize=9, color=COLORS["--ink"])
    panel.set_xlim(0, highest * 1.25)
    panel.set_ylim(len(estimates) - 0.45, -0.55)
    panel.set_yticks(range(len(estimates)), [_short(name) for name in estimates])
    panel.xaxis.set_major_locator(_few_ticks())


def _verdict_color(report: Report, name: str, measure: str) -> str:
    if len(report.systems) == 1:
        return COLORS["--better"]
    comparison = report.comparisons.get(name, {}).get(measure)
    names = {True: "--better", False: "--worse", None: "--plain"}
    return COLORS[names[comparison.better if comparison else None]]


def _difference_panel(panel: Any, comparison: Comparison) -> None:
    differences = np.sort(np.array(list(comparison.per_query.values())))[::-1]
    if comparison.measure.lower_is_better:
        differences = differences[::-1]
    if len(differences) > _MAX_POINTS:
        differences = differences[np.linspace(0, len(differences) - 1, _MAX_POINTS).round().astype(int)]
    sign = -1 if comparison.measure.lower_is_better else 1
    for color, side in (("--better", sign * differences > 0), ("--worse", sign * differences < 0)):
        _steps(panel, differences, np.flatnonzero(side), COLORS[color])
    panel.axhline(0, color=COLORS["--soft"], linewidth=0.8)
    height = 1.15 * (float(np.abs(differences).max()) or 1.0)
    panel.set_ylim(-height, height)
    panel.set_xlim(-0.01, 1.01)
    panel.set_xticks([])
    panel.set_xlabel(f"{comparison.wins} better · {comparison.ties} equal · {comparison.losses} worse", fontsize=9)
    panel.yaxis.set_major_locator(_few_ticks())


def _steps(panel: Any, heights: NDArray[np.float64], places: NDArray[np.intp], color: str) -> None:
    """One polygon over adjacent places: one step each; all places together are as wide as the panel."""
    if len(places) > 0:
        edges = np.arange(places[0], places[-1] + 2) / len(heights)
        x = np.concatenate([edges[:1], np.repeat(edges, 2)[1:-1], edges[-1:]])
        y = np.concatenate([[0.0], np.repeat(heights[places], 2), [0.0]])
        panel.fill(x, y, color=color, linewidth=0.0, alpha=0.85)


def _few_ticks() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=4, steps=[1, 2, 2.5, 5, 10])


def _panels(count: int, height: float) -> tuple[Any, list[Any]]:
    """Up to three panels per row."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    columns = min(count, 2 if count == 4 else 3)
    rows = -(-count // columns)
    figure = Figure(figsize=(9.6, rows * height), layout=ConstrainedLayoutEngine(wspace=0.05, hspace=0.05))
    panels = [figure.add_subplot(rows, columns, i + 1) for i in range(count)]
    for panel in panels:
        panel.set_facecolor("none")
        for side in ("top", "right", "left", "bottom"):
            panel.spines[side].set_visible(False)
        panel.tick_params(length=0, labelsize=9, labelcolor=COLORS["--soft"])
        panel.xaxis.label.set_color(COLORS["--soft"])
        panel.grid(axis="both", color=COLORS["--line"], linewidth=0.7)
        panel.set_axisbelow(True)
    return figure, panels


def _svg(figure: Any, name: str, label: str) -> str:
    """The figure as an element of a page, with ids of its own, colors by name and no external references."""
    out = StringIO()
    with warnings.catch_warnings():
        # The layout's font may lack a script; the browser draws the text with its own fonts.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    root = ElementTree.fromstring(out.getvalue())
    for element in root.iter():
        element.tag = _local(element.tag)
        element.attrib = {_local(key): _rewrite(_local(key), value, name) for key, value in element.attrib.items()}
    for metadata in root.findall("metadata"):
        root.remove(metadata)
    root.attrib = {"role": "img", "aria-label": _printable(label), **root.attrib}
    return ElementTree.tostring(root, encoding="unicode")


def _local(name: str) -> str:
    """A tag or attribute without its namespace."""
    return name.rpartition("}")[2]


def _rewrite(key: str, value: str, name: str) -> str:
    if key == "id":
        return f"{name}-{value}"
    for variable, color in COLORS.items():
        value = value.replace(color, f"var({variable})")
    return value.replace("url(#", f"url(#{name}-") if key != "href" else value.replace("#", f"#{name}-", 1)


@contextmanager
def _drawing(name: str) -> Iterator[None]:
    """matplotlib's defaults whatever the user's settings are, with literal names and stable ids."""
    import matplotlib.style

    own: dict[str, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "text.parse_math": False,
        "font.family": ["DejaVu Sans"],
    }
    with matplotlib.style.context(["default", own]):
        yield


def _short(name: str) -> str:
    """A name that fits beside a bar."""
    name = _printable(name)
    return name if len(name) <= 22 else name[:21] + "…"


def _printable(text: str) -> str:
    """Text without characters that SVG cannot contain."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
