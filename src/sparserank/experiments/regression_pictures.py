"""The regression report's figures as PNG: E_RMS of three parts of the rows against one setting.

The same numbers give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Any

from ..validation import installed

_PARTS = {"train": ("#2a6fdb", "o"), "validation": ("#8c5fb5", "s"), "test": ("#d4691e", "D")}
_INK, _SOFT, _GRID = "#1b1f24", "#6a7380", "#dfe3e8"


def picture(figure: Mapping[str, Any], constant: Mapping[str, float], title: str) -> bytes:
    """One panel a method, side by side, each with a line for every part and the constant predictor's, dashed."""
    installed("matplotlib", extra="plot")
    import matplotlib.style

    out = BytesIO()
    with matplotlib.style.context(["default", {"font.family": ["DejaVu Sans"], "text.parse_math": False}]):
        _drawn(figure, constant, title).savefig(out, format="png", dpi=130, metadata={"Software": None})
    return out.getvalue()


def _drawn(figure: Mapping[str, Any], constant: Mapping[str, float], title: str) -> Any:
    from matplotlib.figure import Figure

    methods = figure["curves"]
    sheet = Figure(figsize=(max(3.6 * len(methods), 6.5), 3.9), layout="constrained", facecolor="white")
    sheet.suptitle(title, fontsize=10, color=_INK, x=0.01, ha="left")
    panels = sheet.subplots(1, len(methods), squeeze=False, sharey=len(methods) > 1)[0]
    for panel, (method, curves) in zip(panels, methods.items(), strict=True):
        for part, values in curves.items():
            colour, mark = _PARTS[part]
            panel.plot(figure["values"], values, color=colour, marker=mark, markersize=3.5, linewidth=1.5, label=part)
            panel.axhline(constant[part], color=colour, linewidth=1, linestyle="--", alpha=0.7)
        if figure["values"][-1] / figure["values"][0] >= 50:
            panel.set_xscale("log")
        _label(panel, method, figure["x"])
    panels[0].set_ylabel("E_RMS", color=_SOFT, fontsize=9)
    sheet.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return sheet


def _label(panel: Any, title: str, x: str) -> None:
    panel.set_title(title, loc="left", fontsize=10, fontweight="bold", color=_INK)
    panel.set_xlabel(x, color=_SOFT, fontsize=9)
    panel.tick_params(length=0, labelsize=8, labelcolor=_SOFT)
    panel.grid(color=_GRID, linewidth=0.7)
    panel.set_axisbelow(True)
    for side in ("top", "right", "left", "bottom"):
        panel.spines[side].set_visible(False)
