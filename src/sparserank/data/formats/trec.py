"""Judgments and runs in the format of trec_eval.

A judgment line is `query iteration document grade`, a run line `query Q0 document rank score tag`; white space
separates the fields. Only the scores order a run: readers ignore the rank.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import numpy as np

from ...errors import ConfigError, DataError
from ..files import PathLike, atomic_write, numbered_lines
from ..records import Qrels, Run

_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def parse_decimal(where: str, name: str, text: str) -> float:
    """Parse the finite number in a field; `where` and `name` identify the field in the error.

    >>> parse_decimal("run.txt:1", "score", "2.5")
    2.5
    """
    value = float(text) if _DECIMAL.fullmatch(text) else math.nan
    if not math.isfinite(value):
        raise DataError(f"{where}: the {name} must be a finite number; got {text!r}")
    return value


class QrelsBuilder:
    """Collects judgments line by line: duplicates count once, contradictions raise DataError.

    >>> builder = QrelsBuilder()
    >>> builder.add("qrels.txt:1", "q1", "d7", "2")
    >>> builder.qrels
    {'q1': {'d7': 2.0}}
    """

    def __init__(self) -> None:
        self.qrels: dict[str, dict[str, float]] = {}
        self._parsed: dict[str, float] = {}

    def add(self, where: str, query: str, document: str, grade: str) -> None:
        """Add the judgment of one line; `where` is its `file:line`."""
        value = self._parsed.get(grade)
        if value is None:
            value = self._parsed[grade] = parse_decimal(where, "grade", grade)
        grades = self.qrels.setdefault(query, {})
        if grades.setdefault(document, value) != value:
            raise DataError(
                f"{where}: query {query!r} and document {document!r} have grade {grade} here "
                f"and {grades[document]:g} above; keep one of the two lines"
            )


def check_finite(name: str, query: str, document: str, value: float) -> float:
    """Return the value as a float; raise DataError if it is NaN or infinite.

    >>> check_finite("grade", "q1", "d7", 2)
    2.0
    """
    if not math.isfinite(value):
        raise DataError(f"the {name} of query {query!r} and document {document!r} must be finite; got {value!r}")
    return float(value)


def format_float(number: float) -> str:
    """Format a float as the shortest decimal that reads back as the same number.

    >>> format_float(2.0), format_float(0.1)
    ('2', '0.1')
    """
    return repr(float(number)).removesuffix(".0")


def read_qrels(path: PathLike) -> Qrels:
    """Read TREC judgments.

    Parameters
    ----------
    path : path
        A file of lines `query iteration document grade`.

    Returns
    -------
    mapping
        `{query id: {document id: grade}}`; larger grades are better.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_qrels(f"{folder}/qrels.txt", {"q1": {"d1": 2, "d2": 0}})
    ...     read_qrels(f"{folder}/qrels.txt")
    {'q1': {'d1': 2.0, 'd2': 0.0}}
    """
    builder = QrelsBuilder()
    for number, line in numbered_lines(path):
        fields = line.split()
        if len(fields) != 4:
            raise DataError(
                f"{path}:{number}: a judgment has four fields, 'query iteration document grade'; got {len(fields)}"
            )
        builder.add(f"{path}:{number}", fields[0], fields[2], fields[3])
    if not builder.qrels:
        raise DataError(f"{path}: contains no judgments; a line is 'query iteration document grade'")
    return builder.qrels


def write_qrels(path: PathLike, qrels: Qrels) -> None:
    """Write judgments as lines `query 0 document grade`, in the order of the mapping.

    Parameters
    ----------
    path : path
        The file to write.
    qrels : mapping
        `{query id: {document id: grade}}`.
    """
    lines = []
    for query, grades in qrels.items():
        _check_id("query id", query)
        for document, grade in grades.items():
            _check_id("document id", document)
            lines.append(f"{query} 0 {document} {format_float(check_finite('grade', query, document, grade))}\n")
    with atomic_write(path) as file:
        file.write("".join(lines).encode())


def read_run(path: PathLike) -> Run:
    """Read a TREC run.

    Parameters
    ----------
    path : path
        A file of lines `query Q0 document rank score tag`; a document occurs at most once per query.

    Returns
    -------
    mapping
        `{query id: {document id: score}}`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_run(f"{folder}/run.txt", {"q1": {"d1": 0.5, "d2": 1.5}})
    ...     read_run(f"{folder}/run.txt")
    {'q1': {'d2': 1.5, 'd1': 0.5}}
    """
    run: dict[str, dict[str, float]] = {}
    for number, line in numbered_lines(path):
        fields = line.split()
        if len(fields) != 6:
            raise DataError(
                f"{path}:{number}: a run line has six fields, 'query Q0 document rank score tag'; got {len(fields)}"
            )
        query, _, document, _, score, _ = fields
        scores = run.setdefault(query, {})
        if document in scores:
            raise DataError(f"{path}:{number}: document {document!r} occurs a second time for query {query!r}")
        scores[document] = parse_decimal(f"{path}:{number}", "score", score)
    if not run:
        raise DataError(f"{path}: contains no results; a line is 'query Q0 document rank score tag'")
    return run


def write_run(path: PathLike, run: Run, name: str = "sparserank") -> None:
    """Write a run, the documents of each query from best to worst.

    The order is that of trec_eval: by score as float32, then by document id, both descending.

    Parameters
    ----------
    path : path
        The file to write.
    run : mapping
        `{query id: {document id: score}}`.
    name : str, default "sparserank"
        The tag of the run, one word.
    """
    if not name or name.split() != [name]:
        raise ConfigError(f"The 'name' parameter must be one word. Got {name!r} instead.")
    lines = []
    for query, scores in run.items():
        _check_id("query id", query)
        for rank, document in enumerate(_ranking(query, scores), start=1):
            _check_id("document id", document)
            lines.append(f"{query} Q0 {document} {rank} {format_float(scores[document])} {name}\n")
    with atomic_write(path) as file:
        file.write("".join(lines).encode())


def _ranking(query: str, scores: Mapping[str, float]) -> list[str]:
    for document, score in scores.items():
        check_finite("score", query, document, score)
    with np.errstate(over="ignore"):
        single = {document: np.float32(score) for document, score in scores.items()}
    return sorted(scores, key=lambda document: (single[document], document), reverse=True)


def _check_id(what: str, text: object) -> None:
    if not isinstance(text, str) or text.split() != [text]:
        raise DataError(f"a {what} in a TREC file must be text without white space; got {text!r}")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise DataError(f"a {what} in a TREC file must be valid UTF-8 text; got {text!r}")
