"""SMART files, the format of the Cranfield collection: records of fields, each with a tag of a dot and a letter.

`.I 17` begins record 17; `.T`, `.A`, `.B` and `.W` begin its title, authors, source and text. A field occurs once per
record. A repeated tag is a typing error: the reader drops it and the field continues. (Three of Cranfield's abstracts
have such tags; two of them interrupt a sentence of abstract 240.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...errors import DataError
from ..files import PathLike, numbered_lines
from .lines import parse_number, qrels_from_rows, read_fields

FIELDS = ("I", "T", "A", "B", "W")
_ZERO = re.compile(r"0(\.0*)?")
_TAG = re.compile(r"\.([A-Z])(?:\s+(.*))?")

_GRADE_OF_CODE = {"1": 4.0, "2": 3.0, "3": 2.0, "4": 1.0, "5": 0.0, "-1": 4.0}


def read_smart(path: PathLike) -> tuple[dict[str, str], ...]:
    """Read the records of a SMART file.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    tuple of dict
        `{"I": id, "T": title, "A": authors, "B": source, "W": text}` per record, in file order. A missing field is "".
        Ids keep their form ("001"); "\\n" joins the lines of a field.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from pathlib import Path
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "two.qry").write_text(".I 001\\n.W\\nheat in\\nslabs .\\n.I 004\\n.W\\nflow\\n")
    ...     [(record["I"], record["W"]) for record in read_smart(f"{folder}/two.qry")]
    [('001', 'heat in\\nslabs .'), ('004', 'flow')]
    """
    records: dict[str, dict[str, list[str]]] = {}
    record: dict[str, list[str]] = {}
    lines: list[str] = []
    for number, line in numbered_lines(path, skip_blank=False):
        tag = _TAG.fullmatch(line)
        if tag and tag[1] == "I":
            name = (tag[2] or "").strip()
            _check_id(f"{path}:{number}", name, records)
            record = records[name] = {}
            lines = []
        elif not records:
            if line.strip():
                raise DataError(f"{path}:{number}: a SMART file begins with '.I <id>'; got {line[:40]!r}")
        elif tag and tag[1] not in record:
            lines = record[tag[1]] = [tag[2] or ""]
        elif tag:
            lines += [tag[2]] if tag[2] else []
        else:
            if not record and line.strip():
                raise DataError(f"{path}:{number}: text before the first field of the record; got {line[:40]!r}")
            lines.append(line)
    if not records:
        raise DataError(f"{path}: contains no records; a record begins with '.I <id>'")
    return tuple(_join_fields(name, fields) for name, fields in records.items())


def _check_id(where: str, name: str, records: dict[str, dict[str, list[str]]]) -> None:
    if not name:
        raise DataError(f"{where}: '.I' must be followed by the record's id")
    if name in records:
        raise DataError(f"{where}: record {name!r} occurs a second time")


def _join_fields(name: str, fields: dict[str, list[str]]) -> dict[str, str]:
    record = dict.fromkeys(FIELDS, "")
    record.update({letter: "\n".join(lines).strip() for letter, lines in fields.items()})
    record["I"] = name
    return record


def read_smart_qrels(path: PathLike) -> dict[str, dict[str, float]]:
    """Read the judgments of a SMART collection.

    A line of three columns is `query document code`, as in Cranfield. Cleverdon's codes decrease with relevance. The
    reader converts them to grades that increase:

    | code | meaning | grade |
    |---|---|---|
    | 1 | a complete answer to the question | 4 |
    | 2 | of a high degree of relevance | 3 |
    | 3 | useful as background or for its methods | 2 |
    | 4 | of minimum interest | 1 |
    | 5 | of no interest (never written) | 0 |
    | -1 | not documented; once per query, apparently the source of the question | 4 |

    A line of four columns is `query document 0 0` (CACM, CISI), which means grade 1, or `query 0 document grade` (MED).

    Parameters
    ----------
    path : path
        The file; all lines have three columns or all have four. The query is the position in the query file, counted
        from 1, not the id.

    Returns
    -------
    dict
        `{query: {document: grade}}`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from pathlib import Path
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "cranqrel").write_text("1 184 2 \\n1 486 -1\\n")
    ...     read_smart_qrels(f"{folder}/cranqrel")
    {'1': {'184': 3.0, '486': 4.0}}
    """
    first = next((line for _, line in numbered_lines(path)), "")
    read = _read_four_columns if len(first.split()) == 4 else _read_codes
    qrels = qrels_from_rows(
        (where, _query(where, query), document, grade) for where, query, document, grade in read(path)
    )
    if not qrels:
        raise DataError(f"{path}: contains no judgments; a line is 'query document code' or 'query document 0 0'")
    return qrels


def _query(where: str, query: str) -> str:
    if not (query.isdecimal() and int(query) >= 1):
        raise DataError(f"{where}: the query must be its position, counted from 1; got {query!r}")
    return str(int(query))


def _read_codes(path: PathLike) -> Iterator[tuple[str, str, str, float]]:
    for where, (query, document, code) in read_fields(path, "query document code"):
        if code not in _GRADE_OF_CODE:
            raise DataError(f"{where}: the code must be 1, 2, 3, 4, 5 or -1; got {code!r}")
        yield where, query, document, _GRADE_OF_CODE[code]


def _read_four_columns(path: PathLike) -> Iterator[tuple[str, str, str, float]]:
    rows = list(read_fields(path, "query document 0 0"))
    if all(_ZERO.fullmatch(third) and _ZERO.fullmatch(fourth) for _, (_, _, third, fourth) in rows):
        yield from ((where, query, document, 1.0) for where, (query, document, _, _) in rows)
        return
    for where, (query, zero, document, grade) in rows:
        if zero != "0":
            raise DataError(f"{where}: a line is 'query document 0 0' or 'query 0 document grade'; got {zero!r} second")
        yield where, query, document, parse_number(where, "grade", grade)
