"""The drawing layer of every plot, a block of W as a heat map, and accuracy against size.

The same numbers give the same bytes. Text is literal: a dollar sign in a word does not start a formula.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..validation import installed

INK, SOFT, GRID = "#1b1f24", "#6a7380", "#dfe3e8"
LINE, CHOSEN = "#2a6fdb", "#d4691e"
MAX_NUMBERED_WORDS = 15
"""Up to this many words, the cells show their numbers; in a larger block they would be too small."""
MAX_WORDS = 200
"""The labels of more words would overlap on a page."""


@contextmanager
def default_style(more: Mapping[str, Any] | None = None) -> Iterator[None]:
    """matplotlib's defaults instead of the user's settings, and `more` settings."""
    installed("matplotlib", extra="plot")
    import matplotlib.style

    own: dict[str, Any] = {"font.family": ["DejaVu Sans"], "text.parse_math": False, **(more or {})}
    with matplotlib.style.context(["default", own]), warnings.catch_warnings():
        # the font draws words of a script that it lacks as boxes
        warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
        yield


def png(draw: Callable[[], Any]) -> bytes:
    """Render the figure that `draw` returns."""
    out = BytesIO()
    with default_style():
        draw().savefig(out, format="png", dpi=150, metadata={"Software": None})
    return out.getvalue()


def style_panel(panel: Any, title: str = "", x: str = "", y: str = "", *, title_size: int = 10, size: int = 9) -> None:
    """Titles and labels of a panel, a pale grid and no frame."""
    panel.set_title(title, loc="left", fontsize=title_size, fontweight="bold", color=INK)
    panel.set_xlabel(x, color=SOFT, fontsize=9)
    panel.set_ylabel(y, color=SOFT, fontsize=9)
    panel.tick_params(which="both", length=0, labelsize=size, labelcolor=SOFT)
    panel.grid(color=GRID, linewidth=0.7)
    panel.set_axisbelow(True)
    hide_frame(panel)


def hide_frame(panel: Any) -> None:
    """Remove the four lines around a panel."""
    for edge in panel.spines.values():
        edge.set_visible(False)


def heatmap(words: Sequence[str], values: NDArray[np.float32]) -> bytes:
    """Plot values[i, j] for query word words[i] and document word words[j]: white at 0, red above and blue below."""
    return png(lambda: _heatmap([printable(word) for word in words], values))


def _heatmap(words: list[str], values: NDArray[np.float32]) -> Any:
    from matplotlib.figure import Figure

    n = len(words)
    side = min(max(0.62 * n, 3.0), 24.0)
    figure = Figure(figsize=(side + 2.0, side + 1.2), layout="constrained", facecolor="white")
    panel = figure.add_subplot()
    reach = float(np.abs(values).max()) or 1.0
    image = panel.imshow(values, cmap="RdBu_r", vmin=-reach, vmax=reach, aspect="equal", interpolation="nearest")
    size = 10 if n <= 40 else 6
    panel.set_xticks(range(n), words, rotation=45, ha="left", rotation_mode="anchor", fontsize=size)
    panel.set_yticks(range(n), words, fontsize=size)
    panel.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False, labelcolor=INK)
    panel.set_xlabel("document word", color=SOFT, fontsize=10)
    panel.xaxis.set_label_position("top")
    panel.set_ylabel("query word", color=SOFT, fontsize=10)
    hide_frame(panel)
    panel.set_xticks(np.arange(n + 1) - 0.5, minor=True)
    panel.set_yticks(np.arange(n + 1) - 0.5, minor=True)
    panel.grid(which="minor", color="white", linewidth=1.5 if n <= 40 else 0.4)
    panel.tick_params(which="minor", length=0, top=False)
    if n <= MAX_NUMBERED_WORDS:
        _write_cells(panel, values, reach)
    bar = figure.colorbar(image, ax=panel, shrink=0.7, pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize=9, labelcolor=SOFT)
    return figure


def size_curve(points: Sequence[tuple[int, float]], by: str, chosen: int, within: float) -> bytes:
    """Plot (pairs, value) from the smallest model to the largest, with the chosen one marked."""
    return png(lambda: _size_curve(points, printable(by), chosen, within))


def _size_curve(points: Sequence[tuple[int, float]], by: str, chosen: int, within: float) -> Any:
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    figure = Figure(figsize=(7.2, 4.2), layout="constrained", facecolor="white")
    panel = figure.add_subplot()
    pairs, values = [pairs for pairs, _ in points], [value for _, value in points]
    panel.plot(pairs, values, color=LINE, marker="o", markersize=5, linewidth=1.6)
    label = f"{pairs[chosen]:,} pairs: {values[chosen]:.3f}, the smallest within {within:g} of the best"
    panel.plot(pairs[chosen], values[chosen], color=CHOSEN, marker="o", markersize=9, linestyle="none", label=label)
    panel.legend(loc="best", frameon=False, fontsize=9, labelcolor=INK)
    panel.set_xscale("log")
    panel.xaxis.set_major_formatter(FuncFormatter(lambda count, _: f"{count:,.0f}"))
    style_panel(panel, x="word pairs in W", y=by)
    panel.margins(y=0.12)
    return figure


def _write_cells(panel: Any, values: NDArray[np.float32], reach: float) -> None:
    """Write every number that is not 0, and a dot if it rounds to 0; dark on pale cells, white on strong ones."""
    places = 0 if reach >= 100 else 1 if reach >= 10 else 2
    for i, j in np.argwhere(values != 0).tolist():
        value = round(float(values[i, j]), places)
        colour = "white" if abs(value) > 0.6 * reach else INK
        panel.text(j, i, f"{value:.{places}f}" if value else "·", ha="center", va="center", fontsize=8, color=colour)


def printable(text: str, most: int = 24) -> str:
    """Text as a label: without characters that SVG cannot contain, and at most `most` characters."""
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return text if len(text) <= most else text[: most - 1] + "…"
