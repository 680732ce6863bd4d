"""Judgments and runs as trec_eval reads them, both ways.

A judgment line is `query iteration document grade`, a run line `query Q0 document rank score tag`, fields separated by
white space. A run is ordered by its scores alone: the rank column is written for people and ignored when read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import numpy as np

from ...errors import ConfigError, DataError
from ..files import PathLike, numbered_lines, writing
from ..records import Qrels, Run

_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def decimal(where: str, name: str, text: str) -> float:
    """The finite number a field holds; `where` and `name` say which field was wrong.

    >>> decimal("run.txt:1", "score", "2.5")
    2.5
    """
    value = float(text) if _DECIMAL.fullmatch(text) else math.nan
    if not math.isfinite(value):
        raise DataError(f"{where}: the {name} must be a finite number; got {text!r}")
    return value


class Judgments:
    """Judgments as they are read, line by line: one said twice is taken once, two that disagree are refused.

    >>> judged = Judgments()
    >>> judged.add("qrels.txt:1", "q1", "d7", "2")
    >>> judged.grades
    {'q1': {'d7': 2.0}}
    """

    def __init__(self) -> None:
        self.grades: dict[str, dict[str, float]] = {}
        self._known: dict[str, float] = {}

    def add(self, where: str, query: str, document: str, grade: str) -> None:
        """Take the judgment of one line; `where` is the line's `file:line`."""
        value = self._known.get(grade)
        if value is None:
            value = self._known[grade] = decimal(where, "grade", grade)
        of_query = self.grades.setdefault(query, {})
        if of_query.setdefault(document, value) != value:
            raise DataError(
                f"{where}: query {query!r} and document {document!r} have grade {grade} here "
                f"and {of_query[document]:g} above; keep one of the two lines"
            )


def finite(name: str, query: str, document: str, value: float) -> float:
    """The value that a file is to hold for a query and a document, refused where it is NaN or infinite.

    >>> finite("grade", "q1", "d7", 2)
    2.0
    """
    if not math.isfinite(value):
        raise DataError(f"the {name} of query {query!r} and document {document!r} must be finite; got {value!r}")
    return float(value)


def shortest(number: float) -> str:
    """The shortest decimal that reads back as the same number, bit for bit.

    >>> shortest(2.0), shortest(0.1)
    ('2', '0.1')
    """
    return repr(float(number)).removesuffix(".0")


def read_qrels(path: PathLike) -> Qrels:
    """Judgments from lines of `query iteration document grade`; larger grades are better.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_qrels(f"{folder}/qrels.txt", {"q1": {"d1": 2, "d2": 0}})
    ...     read_qrels(f"{folder}/qrels.txt")
    {'q1': {'d1': 2.0, 'd2': 0.0}}
    """
    judged = Judgments()
    for number, line in numbered_lines(path):
        fields = line.split()
        if len(fields) != 4:
            raise DataError(
                f"{path}:{number}: a judgment has four fields, 'query iteration document grade'; got {len(fields)}"
            )
        judged.add(f"{path}:{number}", fields[0], fields[2], fields[3])
    if not judged.grades:
        raise DataError(f"{path}: no judgment in it; a line is 'query iteration document grade'")
    return judged.grades


def write_qrels(path: PathLike, qrels: Qrels) -> None:
    """Write judgments as `query 0 document grade`, in the order of the mapping."""
    lines = []
    for query, of_query in qrels.items():
        _one_word("query id", query)
        for document, grade in of_query.items():
            _one_word("document id", document)
            lines.append(f"{query} 0 {document} {shortest(finite('grade', query, document, grade))}\n")
    with writing(path) as file:
        file.write("".join(lines).encode())


def read_run(path: PathLike) -> Run:
    """Scores from lines of `query Q0 document rank score tag`; a document may occur once a query.

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
        of_query = run.setdefault(query, {})
        if document in of_query:
            raise DataError(f"{path}:{number}: document {document!r} occurs a second time for query {query!r}")
        of_query[document] = decimal(f"{path}:{number}", "score", score)
    if not run:
        raise DataError(f"{path}: no result in it; a line is 'query Q0 document rank score tag'")
    return run


def write_run(path: PathLike, run: Run, name: str = "sparserank") -> None:
    """Write a run, each query's documents from the best down, ranks counted from 1.

    The order is the one trec_eval makes of the scores: score as float32, then document id, both descending.
    """
    if not name or name.split() != [name]:
        raise ConfigError(f"The 'name' parameter must be one word. Got {name!r} instead.")
    lines = []
    for query, scores in run.items():
        _one_word("query id", query)
        for rank, document in enumerate(_best_first(query, scores), start=1):
            _one_word("document id", document)
            lines.append(f"{query} Q0 {document} {rank} {shortest(scores[document])} {name}\n")
    with writing(path) as file:
        file.write("".join(lines).encode())


def _best_first(query: str, scores: Mapping[str, float]) -> list[str]:
    for document, score in scores.items():
        finite("score", query, document, score)
    with np.errstate(over="ignore"):
        single = {document: np.float32(score) for document, score in scores.items()}
    return sorted(scores, key=lambda document: (single[document], document), reverse=True)


def _one_word(what: str, text: object) -> None:
    if not isinstance(text, str) or text.split() != [text]:
        raise DataError(f"a {what} in a TREC file must be text without white space; got {text!r}")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise DataError(f"a {what} in a TREC file must be text that UTF-8 can write; got {text!r}")
