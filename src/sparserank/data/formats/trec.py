"""Judgments and runs in the format of trec_eval.

A judgment line is `query iteration document grade`, a run line `query Q0 document rank score tag`; white space
separates the fields. Only the scores order a run: readers ignore the rank.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...errors import ConfigError, DataError
from ..files import PathLike
from ..records import Qrels, Run
from .lines import has_surrogate, parse_number, qrels_from_rows, read_fields, rows_to_write, write_lines

_JUDGMENT, _RESULT = "query iteration document grade", "query Q0 document rank score tag"


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
    rows = read_fields(path, _JUDGMENT)
    qrels = qrels_from_rows((at, query, doc, parse_number(at, "grade", grade)) for at, (query, _, doc, grade) in rows)
    if not qrels:
        raise DataError(f"{path}: contains no judgments; a line is {_JUDGMENT!r}")
    return qrels


def write_qrels(path: PathLike, qrels: Qrels) -> None:
    """Write judgments as lines `query 0 document grade`, in the order of the mapping.

    Parameters
    ----------
    path : path
        The file to write.
    qrels : mapping
        `{query id: {document id: grade}}`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_qrels(Path(folder, "qrels.txt"), {"q1": {"d7": 2}})
    ...     Path(folder, "qrels.txt").read_text().splitlines()
    ['q1 0 d7 2']
    """
    rows = rows_to_write(qrels, "grade", _check_id)
    write_lines(path, (f"{query} 0 {document} {grade}" for query, document, grade in rows))


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
    for where, (query, _, document, _, score, _) in read_fields(path, _RESULT):
        scores = run.setdefault(query, {})
        if document in scores:
            raise DataError(f"{where}: document {document!r} occurs a second time for query {query!r}")
        scores[document] = parse_number(where, "score", score)
    if not run:
        raise DataError(f"{path}: contains no results; a line is {_RESULT!r}")
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

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_run(Path(folder, "run.txt"), {"q1": {"d7": 0.5, "d2": 3.0}})
    ...     print(Path(folder, "run.txt").read_text(), end="")
    q1 Q0 d2 1 3 sparserank
    q1 Q0 d7 2 0.5 sparserank
    """
    if not name or name.split() != [name]:
        raise ConfigError(f"The 'name' parameter must be one word. Got {name!r} instead.")
    scores = {(query, document): score for query, document, score in rows_to_write(run, "score", _check_id)}
    write_lines(
        path,
        (
            f"{query} Q0 {document} {rank} {scores[query, document]} {name}"
            for query in run
            for rank, document in enumerate(_ranking(run[query]), start=1)
        ),
    )


def _ranking(scores: Mapping[str, float]) -> list[str]:
    with np.errstate(over="ignore"):
        single = {document: np.float32(score) for document, score in scores.items()}
    return sorted(scores, key=lambda document: (single[document], document), reverse=True)


def _check_id(what: str, text: object) -> None:
    if not isinstance(text, str) or text.split() != [text]:
        raise DataError(f"a {what} in a TREC file must be text without white space; got {text!r}")
    if has_surrogate(text):
        raise DataError(f"a {what} in a TREC file must be valid UTF-8 text; got {text!r}")
