"""Figure 1 as a PNG: the error on test triples and the density of W against the steps of training.

The same numbers give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..base.plots import GRID, INK, SOFT, png

# Told apart by colour and by mark, also without colours; the order is that of Table II.
_LINES = {
    "Diagonal": ("#8a94a3", "v"),
    "SGD (fixed rate)": ("#8c5fb5", "s"),
    "SGD (decaying rate)": ("#2a6fdb", "^"),
    "Sparse": ("#d4691e", "o"),
    "Sparse-R": ("#1a8a5a", "D"),
}
_BESIDE: dict[str, Any] = {"xytext": (0, 5), "textcoords": "offset points", "ha": "right", "fontsize": 8}


def figure_1(found: Mapping[str, Any]) -> bytes:
    """The picture of `found["figure1"]`, as `chen2010.reproduce` returns it."""
    return png(lambda: _drawn(found))


def _drawn(found: Mapping[str, Any]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 4.2), layout="constrained", facecolor="white")
    error, density = figure.subplots(1, 2)
    for method, curve in found["figure1"]["curves"].items():
        colour, mark = _LINES[method]
        line: dict[str, Any] = {"color": colour, "marker": mark, "markersize": 4, "linewidth": 1.6}
        if method == "Sparse-R":  # it lies on Sparse where both are equally dense
            line["linestyle"] = "--"
        error.plot(curve["steps"], curve["error"], label=method, **line)
        density.plot(curve["steps"], [100 * share for share in curve["density"]], label=method, **line)
        if method == "Sparse":
            shares = [100 * share for share in curve["density_in_training"]]
            density.plot(curve["steps"], shares, color=colour, linewidth=1.2, linestyle=":", label="")
            density.annotate("held in training by Sparse", (curve["steps"][-1], shares[-1]), **_BESIDE, color=colour)
    items = found["figure1"]["test_items"]
    _label(error, f"{found['dataset']}: test error", f"error, all triples of {items:,} test items")
    _label(density, f"{found['dataset']}: density of W", "nonzero entries of W, %")
    error.set_ylim(bottom=0)
    density.set_ylim(-2, 102)
    figure.legend(*error.get_legend_handles_labels(), loc="outside lower center", ncols=len(_LINES), frameon=False)
    return figure


def _label(panel: Any, title: str, height: str) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    panel.set_title(title, loc="left", fontsize=11, fontweight="bold", color=INK)
    panel.set_xlabel("training steps (Sparse-R: steps of its refit)", color=SOFT, fontsize=9)
    panel.set_ylabel(height, color=SOFT, fontsize=9)
    panel.set_xlim(left=0)
    panel.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda steps, _: f"{steps:,.0f}"))
    panel.tick_params(length=0, labelsize=9, labelcolor=SOFT)
    panel.grid(color=GRID, linewidth=0.7)
    panel.set_axisbelow(True)
    for side in ("top", "right", "left", "bottom"):
        panel.spines[side].set_visible(False)
