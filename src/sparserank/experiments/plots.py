"""Figures of the papers as PNG; the same numbers give the same bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..base.plots import INK, png, style_panel

# Colours and markers; markers distinguish the lines without colours. The order is that of Table II.
_METHODS = {
    "Diagonal": ("#8a94a3", "v"),
    "SGD (fixed rate)": ("#8c5fb5", "s"),
    "SGD (decaying rate)": ("#2a6fdb", "^"),
    "Sparse": ("#d4691e", "o"),
    "Sparse-R": ("#1a8a5a", "D"),
}
_SPLITS = {"train": ("#2a6fdb", "o"), "validation": ("#8c5fb5", "s"), "test": ("#d4691e", "D")}
_ANNOTATION: dict[str, Any] = {"xytext": (0, 5), "textcoords": "offset points", "ha": "right", "fontsize": 8}


def learning_curves(result: Mapping[str, Any]) -> bytes:
    """Figure 1 of Chen et al. (2010): test error and density of W against training steps.

    `result` is what `chen2010.reproduce` returns.
    """
    return png(lambda: _draw_learning_curves(result))


def _draw_learning_curves(result: Mapping[str, Any]) -> Any:
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    figure = Figure(figsize=(10.5, 4.2), layout="constrained", facecolor="white")
    error, density = figure.subplots(1, 2)
    for method, curve in result["figure1"]["curves"].items():
        colour, marker = _METHODS[method]
        line: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 4, "linewidth": 1.6}
        if method == "Sparse-R":  # it covers Sparse where both are equally dense
            line["linestyle"] = "--"
        error.plot(curve["steps"], curve["error"], label=method, **line)
        density.plot(curve["steps"], [100 * share for share in curve["density"]], label=method, **line)
        if method == "Sparse":
            shares = [100 * share for share in curve["density_in_training"]]
            density.plot(curve["steps"], shares, color=colour, linewidth=1.2, linestyle=":", label="")
            density.annotate("Sparse during training", (curve["steps"][-1], shares[-1]), **_ANNOTATION, color=colour)
    items, x = result["figure1"]["test_items"], "training steps (Sparse-R: steps of its refit)"
    y = f"error, all triples of {items:,} test items"
    style_panel(error, f"{result['dataset']}: test error", x, y, title_size=11)
    style_panel(density, f"{result['dataset']}: density of W", x, "nonzero entries of W, %", title_size=11)
    for panel in (error, density):
        panel.set_xlim(left=0)
        panel.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
        panel.xaxis.set_major_formatter(FuncFormatter(lambda steps, _: f"{steps:,.0f}"))
    error.set_ylim(bottom=0)
    density.set_ylim(-2, 102)
    figure.legend(*error.get_legend_handles_labels(), loc="outside lower center", ncols=len(_METHODS), frameon=False)
    return figure


def rmse_curves(figure: Mapping[str, Any], constant: Mapping[str, float], title: str) -> bytes:
    """E_RMS of each split against one setting, one panel per method; dashed lines show the constant predictor."""
    return png(lambda: _draw_rmse_curves(figure, constant, title))


def _draw_rmse_curves(figure: Mapping[str, Any], constant: Mapping[str, float], title: str) -> Any:
    from matplotlib.figure import Figure

    methods = figure["curves"]
    drawing = Figure(figsize=(max(3.6 * len(methods), 6.5), 3.9), layout="constrained", facecolor="white")
    drawing.suptitle(title, fontsize=10, color=INK, x=0.01, ha="left")
    panels = drawing.subplots(1, len(methods), squeeze=False, sharey=len(methods) > 1)[0]
    for panel, (method, curves) in zip(panels, methods.items(), strict=True):
        for split, values in curves.items():
            colour, marker = _SPLITS[split]
            line: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 3.5, "linewidth": 1.5}
            panel.plot(figure["values"], values, label=split, **line)
            panel.axhline(constant[split], color=colour, linewidth=1, linestyle="--", alpha=0.7)
        if figure["values"][-1] / figure["values"][0] >= 50:
            panel.set_xscale("log")
        style_panel(panel, method, figure["x"], "E_RMS" if panel is panels[0] else "", size=8)
    drawing.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return drawing
