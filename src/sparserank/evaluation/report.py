"""Reports that compare systems, as text, Markdown, JSON or an HTML page; the first system is the baseline."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..data.files import PathLike, write_bytes
from ..deprecated import renamed_attribute, renamed_parameters
from ..errors import ConfigError, DataError
from ..validation import installed
from .comparison import Comparison, compare
from .runs import Evaluation
from .significance import EXACT_UP_TO_QUERIES, LEVEL, PERMUTATIONS, RESAMPLES, Estimate

SUFFIXES = (".txt", ".md", ".json", ".html")
_MEASURES_PER_TEXT_TABLE = 3


@dataclass(frozen=True)
class Table:
    """Cells of text under a row of column headings."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def text(self) -> str:
        """Columns aligned with blanks."""
        lines = [self.head, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.head))]
        padded = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
        rule = "  ".join("-" * width for width in widths)
        return "\n".join(line.rstrip() for line in [padded[0], rule, *padded[1:]])

    def markdown(self) -> str:
        """A pipe table."""
        lines = [self.head, ("---",) * len(self.head), *self.rows]
        return "\n".join("| " + " | ".join(_escape(cell) for cell in line) + " |" for line in lines)


@dataclass(frozen=True)
class Report:
    """The values of each system, compared with the first one; made by `Report.of`.

    Attributes
    ----------
    title : str
        The title.
    systems : mapping of str to Evaluation
        The values of each system; the first is the baseline.
    comparisons : mapping of str to mapping of str to Comparison
        For each other system, its comparison on each measure.
    notes : tuple of str
        Remarks.
    settings : mapping
        Settings to list.
    random_state : int
        Seed of intervals and tests.

    Examples
    --------
    >>> from sparserank.evaluation import evaluate_run
    >>> qrels = {"q": {"b": 1}}
    >>> old, new = ({"q": {"a": 2.0, "b": score}} for score in (1.0, 3.0))
    >>> report = Report.of("Demo", {"old": evaluate_run(old, qrels, "RR"), "new": evaluate_run(new, qrels, "RR")})
    >>> print(report.values().text())
    System  RR
    ------  -----------------------
    old     0.5000 [0.5000, 0.5000]
    new     1.0000 [1.0000, 1.0000]
    """

    title: str
    systems: Mapping[str, Evaluation]
    comparisons: Mapping[str, Mapping[str, Comparison]]
    notes: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    random_state: int = 0
    seed = renamed_attribute("seed", "random_state")

    @classmethod
    @renamed_parameters({"seed": "random_state"})
    def of(
        cls,
        title: str,
        systems: Mapping[str, Evaluation],
        *,
        notes: Sequence[str] = (),
        settings: Mapping[str, Any] | None = None,
        random_state: int | None = None,
    ) -> Report:
        """Compare every system with the first one.

        Parameters
        ----------
        title, systems, notes, settings : str, mapping of str to Evaluation, sequence of str, and mapping
            The attributes of the report, the baseline first.
        random_state : int, default=None
            Seed of intervals and tests. None means that of the first system.
        """
        if not systems:
            raise DataError("a report needs at least one system")
        first, *others = systems.items()
        random_state = first[1].random_state if random_state is None else random_state
        comparisons = {name: compare(first[1], other, random_state=random_state) for name, other in others}
        return cls(title, dict(systems), comparisons, tuple(notes), dict(settings or {}), random_state)

    @property
    def baseline(self) -> str:
        """The name of the first system."""
        return next(iter(self.systems))

    @property
    def measures(self) -> tuple[str, ...]:
        """Every measure of any system, in order."""
        return tuple(dict.fromkeys(name for evaluation in self.systems.values() for name in evaluation.estimates))

    @property
    def queries(self) -> int:
        """The number of judged queries."""
        return len(self.systems[self.baseline].queries)

    def values(self, measures: Sequence[str] | None = None) -> Table:
        """Return one row per system and one column per measure: value [low, high].

        Parameters
        ----------
        measures : sequence of str, default=None
            The columns. None means all measures.
        """
        names = tuple(self.measures if measures is None else measures)
        rows = (
            (name, *(_with_interval(evaluation.estimates.get(measure)) for measure in names))
            for name, evaluation in self.systems.items()
        )
        return Table(("System", *(measure_heading(self, name) for name in names)), tuple(rows))

    def differences(self) -> Table:
        """One row per system and measure: the difference from the baseline, and its p-value."""
        head = ("System", "Measure", "Difference", "p", "Better", "Worse", "Equal")
        rows = (
            (
                name, measure_heading(self, measure), _with_interval(c.difference, "+"), _p(c.p),
                str(c.wins), str(c.losses), str(c.ties),
            )
            for name, by_measure in self.comparisons.items()
            for measure, c in by_measure.items()
        )  # fmt: skip
        return Table(head, tuple(rows))

    def findings(self) -> tuple[str, ...]:
        """One sentence per system: how it compares with the baseline on the first measure that both have."""
        firsts = {name: next(iter(by_measure.values())) for name, by_measure in self.comparisons.items()}
        return tuple(_finding(name, self.baseline, comparison) for name, comparison in firsts.items())

    def query_count(self) -> str:
        """'324 judged queries'."""
        return f"{self.queries:,} judged {'query' if self.queries == 1 else 'queries'}"

    def method(self) -> str:
        """How intervals and tests were computed."""
        sentence = (
            f"{self.query_count()}. [low, high] is a {LEVEL * 100:g} % percentile bootstrap interval over queries "
            f"({RESAMPLES:,} resamples, seed {self.random_state})."
        )
        if self.comparisons:
            sentence += (
                " Differences are system minus baseline; Better, Worse and Equal count queries; p is of a two-sided "
                f"paired sign-flip test ({PERMUTATIONS:,} sign patterns, or all of them if at most "
                f"{EXACT_UP_TO_QUERIES} queries differ), not corrected for the number of comparisons."
            )
        if any("↓" in measure_heading(self, measure) for measure in self.measures):
            sentence += " ↓: lower is better."
        return sentence

    def text(self) -> str:
        """Plain text with aligned columns, for a terminal."""
        step = _MEASURES_PER_TEXT_TABLE
        tables = (self.values(self.measures[i : i + step]).text() for i in range(0, len(self.measures), step))
        parts = [f"{self.title}\n{'=' * len(self.title)}", *tables]
        if self.comparisons:
            parts += [
                f"Against {self.baseline}\n\n{self.differences().text()}",
                "\n".join(map(_fill, self.findings())),
            ]
        parts += ["\n".join(_fill(f"- {note}") for note in self.notes)] if self.notes else []
        parts += ["\n".join(f"{key}: {value}" for key, value in self.settings.items())] if self.settings else []
        return "\n\n".join([*parts, _fill(self.method())]) + "\n"

    def markdown(self) -> str:
        """GitHub-flavored Markdown."""
        parts = [f"# {_escape(self.title)}", self.values().markdown()]
        if self.comparisons:
            parts += [f"## Against {_escape(self.baseline)}", self.differences().markdown()]
            parts += ["\n".join(f"- {_escape(finding)}" for finding in self.findings())]
        if self.notes:
            parts += ["## Notes", "\n".join(f"- {_escape(note)}" for note in self.notes)]
        if self.settings:
            table = Table(("Setting", "Value"), tuple((str(k), str(v)) for k, v in self.settings.items()))
            parts += ["## Settings", table.markdown()]
        return "\n\n".join([*parts, f"*{self.method()}*"]) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values for JSON: `systems`, `comparisons` with the `baseline`, `notes`, `settings`."""
        return {
            "title": self.title,
            "queries": self.queries,
            "baseline": self.baseline,
            "systems": {
                name: {"measures": evaluation.to_dict(), "per_query": evaluation.per_query}
                for name, evaluation in self.systems.items()
            },
            "comparisons": {
                name: {measure: comparison.to_dict() for measure, comparison in by_measure.items()}
                for name, by_measure in self.comparisons.items()
            },
            "notes": list(self.notes),
            "settings": {str(key): _jsonable(value) for key, value in self.settings.items()},
            "method": self.method(),
        }

    def json(self) -> str:
        """`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=2) + "\n"

    def html(self) -> str:
        """One self-contained page with tables and plots; it needs the extra `plot`."""
        from .html import html_page

        return html_page(self)

    def write(self, path: PathLike) -> None:
        """Write the report in the format of the file name's suffix.

        Parameters
        ----------
        path : str or Path
            A name that ends in .txt, .md, .json or .html.
        """
        forms = {".txt": self.text, ".md": self.markdown, ".json": self.json, ".html": self.html}
        write_bytes(path, forms[report_suffix(path)]().encode("utf-8", errors="replace"))


def measure_heading(report: Report, measure: str) -> str:
    """The measure's name, with an arrow if lower is better."""
    lower = {str(m) for evaluation in report.systems.values() for m in evaluation.measures if m.lower_is_better}
    return f"{measure} ↓" if measure in lower else measure


def report_suffix(path: PathLike) -> str:
    """The format of a report by its file name; raises an error if it is unknown or its extra is not installed.

    >>> report_suffix("results.md")
    '.md'
    """
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise ConfigError(f"{path}: a report is written as one of {', '.join(SUFFIXES)}")
    if suffix == ".html":
        installed("matplotlib", extra="plot")
    return suffix


def _with_interval(estimate: Estimate | None, sign: str = "") -> str:
    if estimate is None:
        return "–"
    return f"{estimate.value:{sign}.4f} [{estimate.low:{sign}.4f}, {estimate.high:{sign}.4f}]"


def _p(p: float) -> str:
    return "<0.0001" if p < 0.0001 else f"{p:.4f}"


def _finding(name: str, baseline: str, c: Comparison) -> str:
    verdict = {True: "is better than", False: "is worse than", None: "is not clearly different from"}[c.better]
    p = _p(c.p) if c.p < 0.0001 else f"= {_p(c.p)}"
    return (
        f"{name} {verdict} {baseline} on {c.measure}: {c.value:.4f} against {c.baseline:.4f} "
        f"({c.difference.value:+.4f}, from {c.difference.low:+.4f} to {c.difference.high:+.4f}; p {p})."
    )


def _fill(paragraph: str) -> str:
    return textwrap.fill(paragraph, width=100, subsequent_indent="  " if paragraph.startswith("- ") else "")


def _escape(text: str) -> str:
    """One line of text without Markdown markup, links or HTML."""
    text = re.sub(r"([\\`*_#|~$])", r"\\\1", " ".join(text.split()))
    return re.sub(r"<(?=[A-Za-z/!?])|&(?=[#\w]+;)|\](?=[(\[:])", r"\\\g<0>", text)


def _jsonable(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    return value if isinstance(value, float) and value - value == 0 else str(value)
