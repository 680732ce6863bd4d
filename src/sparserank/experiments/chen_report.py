"""The tables and figures of `chen2010.reproduce` as sections of a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..base.plots import heatmap
from ..evaluation.report import Table
from .plots import learning_curves
from .published import SLIDES
from .report import Section, format_optional

TITLE = "Learning Preferences with Millions of Parameters by Enforcing Sparsity (Chen et al., 2010)"

_TABLE_2_NOTE = (
    "[low, high]: 95 % interval over queries. error: the mean over queries of the share of a query's triples in the "
    "wrong order. error of triples: the share of all triples in the wrong order. steps: the triples of all passes, "
    "refit included."
)
_HEATMAP_NOTE = (
    "W (Sparse) between the words of Table III: red for a positive weight between a query word and a document word, "
    "blue for a negative one; a cell without a number has no entry in W."
)


def sections(result: Mapping[str, Any]) -> list[Section]:
    """Tables I, II and III, the ablation if there is one, Figure 1 and the heat map."""
    return [*_tables(result), *_figures(result)]


def _tables(result: Mapping[str, Any]) -> Iterator[Section]:
    rows = tuple(
        (r["statistic"], *(format_optional(r[key], ",") for key in ("ours", "paper"))) for r in result["table1"]
    )
    empty = "Rows with no known word, which score 0: {training:,} of training, {test:,} of test."
    yield Section("Table I", Table(("", "here", _paper(result)), rows), empty.format(**result["empty_rows"]))
    methods: dict[str, list[str]] = {}
    for row in result["table2"]:
        if "note" in row:
            methods.setdefault(row["note"], []).append(row["method"])
    notes = [_TABLE_2_NOTE, *(f"{', '.join(names)}: {note}" for note, names in methods.items())]
    notes += [result["order"]] if result["order"] else []
    yield Section("Table II", table_2(result), " ".join(notes))
    if result.get("ablation"):
        note = "Each row changes one setting; the paper's number is that of its own settings."
        yield Section("Ablation", ablation_table(result), note)
    if result.get("rate_sweep"):
        yield Section("The paper's C, by the objective", rate_sweep_table(result), result["rate_sweep"]["note"])
    yield _table_3(result)


def _table_3(result: Mapping[str, Any]) -> Section:
    unknown = ", ".join(result["unknown_words"])
    notes = [f"Not among the columns' names: {unknown}."] if unknown else []
    slides = [word for word in result["table3"] if word in SLIDES]
    notes += [f"Quoted from the authors' slides, which show four words: {', '.join(slides)}."] if slides else []
    rows = tuple(
        (
            word,
            ", ".join(f"{name} {weight:+.2f}" for name, weight in related),
            ", ".join(result["paper_table3"].get(word, ())) or "–",
        )
        for word, related in result["table3"].items()
    )
    head = ("query word", "largest entries of its row of W (Sparse)", "paper")
    return Section("Table III", Table(head, rows) if rows else None, " ".join(notes))


def _figures(result: Mapping[str, Any]) -> Iterator[Section]:
    name = result["dataset"]
    note = (
        f"Error (mean over queries) of all triples among {result['figure1']['test_items']:,} test items, the same for "
        "every method, and nonzeros of W, during training. Every curve starts at the identity; that of Sparse-R starts "
        "at the final W of Sparse. Sparse is measured after pruning to its final density; the dotted line is its "
        "density during training, where zero entries are removed from time to time."
    )
    yield Section("Figure 1", None, note, (f"figure1-{name}.png", learning_curves(result)))
    if result["heatmap"] is not None:
        picture = heatmap(result["heatmap"]["words"], np.array(result["heatmap"]["values"], np.float32))
        yield Section("Heat map", None, _HEATMAP_NOTE, (f"heatmap-{name}.png", picture))


def table_2(result: Mapping[str, Any], *, intervals: bool = True) -> Table:
    """Table II with the paper's numbers; a terminal is too narrow for the intervals."""
    paper = _paper(result)
    head = ("method", "MAP", paper, "error", paper, "error of triples", "MB of W", paper, "density", "steps", "seconds")
    return Table(head, tuple(_table_2_row(row, intervals) for row in result["table2"]))


def _table_2_row(row: Mapping[str, Any], intervals: bool) -> tuple[str, ...]:
    map_, error = (f" [{row[f'{key}_low']:.3f}, {row[f'{key}_high']:.3f}]" * intervals for key in ("map", "error"))
    return (
        row["method"],
        f"{row['map']:.3f}{map_}",
        format_optional(row["paper_map"], ".3f"),
        f"{row['error']:.3f}{error}",
        format_optional(row["paper_error"], ".3f"),
        f"{row['error_of_triples']:.3f}",
        f"{row['megabytes']:.4g}",
        format_optional(row["paper_megabytes"], ".4g"),
        f"{100 * row['density']:.3g} %",
        f"{row['steps']:,}",
        f"{row['seconds']:.1f}",
    )


def ablation_table(result: Mapping[str, Any]) -> Table:
    """The effect of each changed setting."""
    keys = ("map", "paper_map", "error", "paper_error")
    rows = [
        (row["method"], row["change"], *(format_optional(row[key], ".3f") for key in keys))
        for row in result["ablation"]
    ]
    return Table(("method", "change", "MAP", _paper(result), "error", _paper(result)), tuple(rows))


def rate_sweep_table(result: Mapping[str, Any]) -> Table:
    """The objective on training triples for every C; MAP and error on test data of the best C and of the paper's."""
    rows = [
        (
            f"{row['c']:g}", f"{row['hinge']:.4f}", f"{row['objective']:.4f}", f"{100 * row['density']:.3g} %",
            format_optional(row["map"], ".3f"), format_optional(row["error"], ".3f"),
        )
        for row in result["rate_sweep"]["rows"]
    ]  # fmt: skip
    return Table(("C", "hinge", "objective", "density", "MAP", "error"), tuple(rows))


def _paper(result: Mapping[str, Any]) -> str:
    """The heading of a column of the paper's numbers."""
    return "paper (other split)" if result["own_split"] else "paper"
