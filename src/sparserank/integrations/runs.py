"""Runs and judgments of other evaluation tools as mappings, which those tools take as they are.

`evaluation` and `data.write_run` take {query id: {document id: number}}; so do ir_measures, pytrec_eval and ranx.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..data.formats.lines import qrels_from_rows
from ..data.frames import is_frame
from ..errors import DataError

__all__ = ["as_qrels", "as_run"]


def as_run(run: Any) -> dict[str, dict[str, float]]:
    """Return a run of another tool as {query id: {document id: score}}.

    Parameters
    ----------
    run : mapping, iterable, DataFrame or Run
        A mapping; `ScoredDoc`s of ir_measures or ir_datasets; a frame of PyTerrier (`qid`, `docno`, `score`) or of
        ir_measures (`query_id`, `doc_id`, `score`); or a `Run` of ranx.

    Examples
    --------
    >>> from ir_measures import ScoredDoc
    >>> as_run([ScoredDoc("q1", "d1", 2.0), ScoredDoc("q1", "d2", 1.0)])
    {'q1': {'d1': 2.0, 'd2': 1.0}}
    """
    return _nested(run, "score", ("score",))


def as_qrels(qrels: Any) -> dict[str, dict[str, float]]:
    """Return judgments of another tool as {query id: {document id: grade}}.

    Parameters
    ----------
    qrels : mapping, iterable, DataFrame or Qrels
        A mapping; `Qrel`s of ir_measures or ir_datasets; a frame of PyTerrier (`qid`, `docno`, `label`) or of
        ir_measures (`query_id`, `doc_id`, `relevance`); or the `Qrels` of ranx.

    Examples
    --------
    >>> from ir_measures import Qrel
    >>> as_qrels([Qrel("q1", "d1", 2)])
    {'q1': {'d1': 2.0}}
    """
    return _nested(qrels, "grade", ("relevance", "label"))


def _nested(given: Any, what: str, names: tuple[str, ...]) -> dict[str, dict[str, float]]:
    if hasattr(given, "to_dict") and not is_frame(given):
        given = given.to_dict()
    if isinstance(given, Mapping):
        return {str(q): {str(d): float(value) for d, value in docs.items()} for q, docs in given.items()}
    if is_frame(given):
        columns = [_column(given, names) for names in (("qid", "query_id"), ("docno", "doc_id"), names)]
        rows = list(zip(*columns, strict=True))
    else:
        rows = [(one.query_id, one.doc_id, next(getattr(one, n) for n in names if hasattr(one, n))) for one in given]
    return qrels_from_rows((f"{what} {n}", str(q), str(d), float(value)) for n, (q, d, value) in enumerate(rows, 1))


def _column(frame: Any, names: tuple[str, ...]) -> list[Any]:
    found = next((name for name in names if name in frame.columns), None)
    if found is None:
        raise DataError(f"the table has no column {' or '.join(names)}; its columns are {', '.join(frame.columns)}")
    column = frame[found]
    return column.tolist() if hasattr(column, "tolist") else column.to_list()
