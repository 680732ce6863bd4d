"""Systems side by side, for people and programs: one record, written as text, Markdown, JSON or an HTML page.

The first system is the baseline that the others are compared with. The same report gives the same bytes, always.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..data.files import PathLike, write_bytes
from ..errors import ConfigError, DataError
from ..validation import installed
from .intervals import LEVEL, PERMUTATIONS, RESAMPLES, Estimate
from .runs import Comparison, Evaluation, compare

SUFFIXES = (".txt", ".md", ".json", ".html")
_MEASURES_ABREAST = 3


@dataclass(frozen=True)
class Table:
    """Cells as text, under a row of heads."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def text(self) -> str:
        """Columns aligned by blanks."""
        lines = [self.head, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.head))]
        padded = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
        rule = "  ".join("-" * width for width in widths)
        return "\n".join(line.rstrip() for line in [padded[0], rule, *padded[1:]])

    def markdown(self) -> str:
        """A pipe table."""
        lines = [self.head, ("---",) * len(self.head), *self.rows]
        return "\n".join("| " + " | ".join(_plain(cell) for cell in line) + " |" for line in lines)


@dataclass(frozen=True)
class Report:
    """What was measured for each system, and how each differs from the first; made by `Report.of`.

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
    seed: int = 0

    @classmethod
    def of(
        cls,
        title: str,
        systems: Mapping[str, Evaluation],
        *,
        notes: Sequence[str] = (),
        settings: Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> Report:
        """Compare every system with the first of them; the seed is the first one's unless another is given."""
        if not systems:
            raise DataError("a report needs at least one system")
        first, *others = systems.items()
        seed = first[1].seed if seed is None else seed
        comparisons = {name: compare(first[1], evaluation, seed=seed) for name, evaluation in others}
        return cls(title, dict(systems), comparisons, tuple(notes), dict(settings or {}), seed)

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
        """How many judged queries there are."""
        return len(self.systems[self.baseline].queries)

    def values(self, measures: Sequence[str] | None = None) -> Table:
        """A row a system, a column a measure: value [low, high]."""
        wanted = tuple(self.measures if measures is None else measures)
        rows = (
            (name, *(_with_interval(evaluation.estimates.get(measure)) for measure in wanted))
            for name, evaluation in self.systems.items()
        )
        return Table(("System", *(self.head(measure) for measure in wanted)), tuple(rows))

    def differences(self) -> Table:
        """A row a system and measure: how it differs from the baseline, and whether that may be chance."""
        head = ("System", "Measure", "Difference", "p", "Better", "Worse", "Equal")
        rows = (
            (
                name,
                self.head(measure),
                _with_interval(c.difference, "+"),
                _p(c.p),
                *map(str, (c.wins, c.losses, c.ties)),
            )
            for name, by_measure in self.comparisons.items()
            for measure, c in by_measure.items()
        )
        return Table(head, tuple(rows))

    def findings(self) -> tuple[str, ...]:
        """One sentence a system: how it stands to the baseline on the first measure they share."""
        firsts = {name: next(iter(by_measure.values())) for name, by_measure in self.comparisons.items()}
        return tuple(_finding(name, self.baseline, comparison) for name, comparison in firsts.items())

    def judged(self) -> str:
        """'324 judged queries'."""
        return f"{self.queries:,} judged {'query' if self.queries == 1 else 'queries'}"

    def method(self) -> str:
        """How the figures were made."""
        sentence = (
            f"{self.judged()}. [low, high] is a {LEVEL * 100:g} % percentile bootstrap interval over queries "
            f"({RESAMPLES:,} resamples, seed {self.seed})."
        )
        if self.comparisons:
            sentence += (
                " Differences are system less baseline; Better, Worse and Equal count queries; p is a two-sided paired "
                f"randomisation test ({PERMUTATIONS:,} sign patterns, or all of them where at most 14 queries differ), "
                "not corrected for the number of comparisons."
            )
        if any("↓" in self.head(measure) for measure in self.measures):
            sentence += " ↓: lower is better."
        return sentence

    def text(self) -> str:
        """Plain text, aligned, for a terminal."""
        abreast = [self.measures[i : i + _MEASURES_ABREAST] for i in range(0, len(self.measures), _MEASURES_ABREAST)]
        parts = [f"{self.title}\n{'=' * len(self.title)}", *(self.values(measures).text() for measures in abreast)]
        if self.comparisons:
            parts += [
                f"Against {self.baseline}\n\n{self.differences().text()}",
                "\n".join(map(_filled, self.findings())),
            ]
        parts += ["\n".join(_filled(f"- {note}") for note in self.notes)] if self.notes else []
        parts += ["\n".join(f"{key}: {value}" for key, value in self.settings.items())] if self.settings else []
        return "\n\n".join([*parts, _filled(self.method())]) + "\n"

    def markdown(self) -> str:
        """GitHub-flavoured Markdown."""
        parts = [f"# {_plain(self.title)}", self.values().markdown()]
        if self.comparisons:
            parts += [f"## Against {_plain(self.baseline)}", self.differences().markdown()]
            parts += ["\n".join(f"- {_plain(finding)}" for finding in self.findings())]
        if self.notes:
            parts += ["## Notes", "\n".join(f"- {_plain(note)}" for note in self.notes)]
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
        """One page with tables and plots that needs nothing beside itself (the extra `plot` makes the plots)."""
        from .html import html_page

        return html_page(self)

    def write(self, path: PathLike) -> None:
        """Write the report as its name asks for: .txt, .md, .json or .html."""
        forms = {".txt": self.text, ".md": self.markdown, ".json": self.json, ".html": self.html}
        write_bytes(path, forms[report_suffix(path)]().encode("utf-8", errors="replace"))

    def head(self, measure: str) -> str:
        """The measure's name, with an arrow where lower is better."""
        lower = {str(m) for evaluation in self.systems.values() for m in evaluation.measures if m.lower_is_better}
        return f"{measure} ↓" if measure in lower else measure


def report_suffix(path: PathLike) -> str:
    """The form that a report's name asks for; refused where there is no such form, or its extra is not installed.

    >>> report_suffix("found.md")
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


def _filled(paragraph: str) -> str:
    return textwrap.fill(paragraph, width=100, subsequent_indent="  " if paragraph.startswith("- ") else "")


def _plain(text: str) -> str:
    """Text that Markdown takes as it is: no markup, no link, no HTML, one line."""
    text = re.sub(r"([\\`*_#|~$])", r"\\\1", " ".join(text.split()))
    return re.sub(r"<(?=[A-Za-z/!?])|&(?=[#\w]+;)|\](?=[(\[:])", r"\\\g<0>", text)


def _jsonable(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    return value if isinstance(value, float) and value - value == 0 else str(value)
