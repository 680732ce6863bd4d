"""The plots of a report as inline SVG in the page's colors; the same report gives the same bytes.

Text stays text and is taken literally: a dollar sign in a system's name does not start a formula.
"""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from ..base.plots import CHOSEN, GRID, INK, LINE, SOFT, default_style, printable, style_panel
from .comparison import Comparison
from .report import Report, measure_heading

PLAIN = "#a3adba"
COLORS = {"--ink": INK, "--soft": SOFT, "--line": GRID, "--plain": PLAIN, "--better": LINE, "--worse": CHOSEN}
"""The light theme of page.css; `_rewrite` replaces each color by its name there."""
_MAX_POINTS = 500


def bars(report: Report) -> str:
    """One panel per measure, one bar per system, with its interval."""
    label = f"Bars of {', '.join(report.measures)} for {', '.join(report.systems)}"
    height = 0.62 + 0.34 * len(report.systems)
    return _svg(lambda: _figure(report, report.measures, height, _bar_panel), "values", label)


def differences(report: Report, name: str, number: int = 0) -> str:
    """One panel per measure: the difference of one system from the baseline on each query, sorted."""

    def draw(panel: Any, report: Report, measure: str) -> None:
        _difference_panel(panel, report.comparisons[name][measure])

    label = f"Differences of {name} from {report.baseline}, query by query"
    return _svg(lambda: _figure(report, tuple(report.comparisons[name]), 2.5, draw), f"against{number}", label)


def _figure(report: Report, measures: tuple[str, ...], height: float, draw: Callable[[Any, Report, str], None]) -> Any:
    """One panel per measure, up to three in a row."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    columns = min(len(measures), 2 if len(measures) == 4 else 3)
    rows = -(-len(measures) // columns)
    figure = Figure(figsize=(9.6, rows * height), layout=ConstrainedLayoutEngine(wspace=0.05, hspace=0.05))
    for number, measure in enumerate(measures, start=1):
        panel = figure.add_subplot(rows, columns, number)
        panel.set_facecolor("none")
        style_panel(panel, printable(measure_heading(report, measure), 1000))
        draw(panel, report, measure)
    return figure


def _bar_panel(panel: Any, report: Report, measure: str) -> None:
    panel.grid(visible=False, axis="y")
    estimates = {name: evaluation.estimates.get(measure) for name, evaluation in report.systems.items()}
    highest = max([estimate.high for estimate in estimates.values() if estimate is not None] + [1e-9])
    for place, (name, estimate) in enumerate(estimates.items()):
        if estimate is None:
            panel.text(0, place, " –", va="center", fontsize=9, color=SOFT)
            continue
        panel.barh(place, estimate.value, height=0.62, color=_verdict_color(report, name, measure), alpha=0.85)
        panel.plot([estimate.low, estimate.high], [place, place], color=INK, linewidth=1.4)
        right = max(estimate.value, estimate.high) + highest * 0.03
        panel.text(right, place, f"{estimate.value:.3f}", va="center", fontsize=9, color=INK)
    panel.set_xlim(0, highest * 1.25)
    panel.set_ylim(len(estimates) - 0.45, -0.55)
    panel.set_yticks(range(len(estimates)), [printable(name, 22) for name in estimates])
    panel.tick_params(labelleft=panel.get_subplotspec().is_first_col())
    panel.xaxis.set_major_locator(_few_ticks())


def _verdict_color(report: Report, name: str, measure: str) -> str:
    if len(report.systems) == 1:
        return LINE
    comparison = report.comparisons.get(name, {}).get(measure)
    return {True: LINE, False: CHOSEN, None: PLAIN}[comparison.better if comparison else None]


def _difference_panel(panel: Any, comparison: Comparison) -> None:
    differences = np.sort(np.array(list(comparison.per_query.values())))[::-1]
    if comparison.measure.lower_is_better:
        differences = differences[::-1]
    if len(differences) > _MAX_POINTS:
        differences = differences[np.linspace(0, len(differences) - 1, _MAX_POINTS).round().astype(int)]
    sign = -1 if comparison.measure.lower_is_better else 1
    for color, side in ((LINE, sign * differences > 0), (CHOSEN, sign * differences < 0)):
        _steps(panel, differences, np.flatnonzero(side), color)
    panel.axhline(0, color=SOFT, linewidth=0.8)
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


def _svg(draw: Callable[[], Any], name: str, label: str) -> str:
    """The figure as an element of a page, with stable ids of its own, colors by name and no external references."""
    out = StringIO()
    with default_style({"svg.fonttype": "none", "svg.hashsalt": name}):  # the browser draws text with its own fonts
        draw().savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    root = ElementTree.fromstring(out.getvalue())
    for element in root.iter():
        element.tag = _local(element.tag)
        element.attrib = {_local(key): _rewrite(_local(key), value, name) for key, value in element.attrib.items()}
    for metadata in root.findall("metadata"):
        root.remove(metadata)
    root.attrib = {"role": "img", "aria-label": printable(label, 1000), **root.attrib}
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
