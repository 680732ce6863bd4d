"""The tables and figures of `chen2010.reproduce` as sections of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ..base.plots import heatmap
from ..evaluation.report import Table
from .plots import learning_curves
from .published import SLIDES
from .report import Section
from .runner import METHOD, Column, Row, note, table_of

TITLE = "Learning Preferences with Millions of Parameters by Enforcing Sparsity (Chen et al., 2010)"
DENSITY: Column = ("density", lambda row: f"{100 * row['density']:.3g} %", "")
MAP: Column = ("MAP", "map", ".3f")
ERROR: Column = ("error", "error", ".3f")


def sections(result: Mapping[str, Any]) -> list[Section]:
    """Tables I, II and III, the ablation if there is one, Figure 1 and the heat map."""
    return [*_tables(result), *_figures(result)]


def _tables(result: Mapping[str, Any]) -> Iterator[Section]:
    statistics = table_of(
        result["table1"], ("", "statistic", ""), ("here", "ours", ","), (_paper(result), "paper", ",")
    )
    empty = "Rows with no known word, which score 0: {training:,} of training, {test:,} of test."
    yield Section("Table I", statistics, empty.format(**result["empty_rows"]))
    methods: dict[str, list[str]] = {}
    for row in result["table2"]:
        if "note" in row:
            methods.setdefault(row["note"], []).append(row["method"])
    notes = [note("chen", "table_2"), *(f"{', '.join(names)}: {remark}" for remark, names in methods.items())]
    notes += [result["order"]] if result["order"] else []
    yield Section("Table II", table_2(result), " ".join(notes))
    if result.get("ablation"):
        yield Section("Ablation", ablation_table(result), note("chen", "ablation"))
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
    remark = note("chen", "figure_1", items=result["figure1"]["test_items"])
    yield Section("Figure 1", None, remark, (f"figure1-{name}.png", learning_curves(result)))
    if result["heatmap"] is not None:
        picture = heatmap(result["heatmap"]["words"], np.array(result["heatmap"]["values"], np.float32))
        yield Section("Heat map", None, note("chen", "heatmap"), (f"heatmap-{name}.png", picture))


def table_2(result: Mapping[str, Any], *, intervals: bool = True) -> Table:
    """Table II with the paper's numbers; a terminal is too narrow for the intervals."""
    paper = _paper(result)

    def value(key: str) -> Callable[[Row], str]:
        return lambda row: f"{row[key]:.3f}" + f" [{row[f'{key}_low']:.3f}, {row[f'{key}_high']:.3f}]" * intervals

    return table_of(
        result["table2"], METHOD, ("MAP", value("map"), ""), (paper, "paper_map", ".3f"),
        ("error", value("error"), ""), (paper, "paper_error", ".3f"), ("error of triples", "error_of_triples", ".3f"),
        ("MB of W", "megabytes", ".4g"), (paper, "paper_megabytes", ".4g"), DENSITY,
        ("steps", "steps", ","), ("seconds", "seconds", ".1f"),
    )  # fmt: skip


def ablation_table(result: Mapping[str, Any]) -> Table:
    """The effect of each changed setting."""
    paper = _paper(result)
    paper_map, paper_error = (paper, "paper_map", ".3f"), (paper, "paper_error", ".3f")
    return table_of(result["ablation"], METHOD, ("change", "change", ""), MAP, paper_map, ERROR, paper_error)


def rate_sweep_table(result: Mapping[str, Any]) -> Table:
    """The objective on training triples for every C; MAP and error on test data of the best C and of the paper's."""
    objective: tuple[Column, ...] = (("C", "c", "g"), ("hinge", "hinge", ".4f"), ("objective", "objective", ".4f"))
    return table_of(result["rate_sweep"]["rows"], *objective, DENSITY, MAP, ERROR)


def _paper(result: Mapping[str, Any]) -> str:
    """The heading of a column of the paper's numbers."""
    return "paper (other split)" if result["own_split"] else "paper"
