"""BEIR folders: documents, queries and judgments in three kinds of text file.

    corpus.jsonl      {"_id": …, "title": …, "text": …, "metadata": {…}}   one document per line
    queries.jsonl     {"_id": …, "text": …}                                one query per line
    qrels/<split>.tsv query-id <tab> corpus-id <tab> score

Each file may be compressed (.gz, .xz, .zst). Ids are text; a whole number becomes its digits. Other
keys of a document are text fields or metadata (`Documents.of`); other keys of a query are ignored.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from ... import validation
from ...errors import DataError
from ..files import COMPRESSION_SUFFIXES, PathLike, numbered_lines, stream_lines, write_bytes
from ..metadata import normalize_metadata
from ..records import Collection, Documents, Qrels, split_known
from .lines import has_surrogate, parse_number, qrels_from_rows, read_fields, rows_to_write, write_lines

_COLUMNS = "query-id corpus-id score"


def read_beir(
    folder: PathLike, *, missing: Literal["error", "drop"] = "error", fields: Sequence[str] | None = None
) -> Collection:
    """Read a BEIR folder.

    Parameters
    ----------
    folder : path
        A folder with corpus.jsonl and, optionally, queries.jsonl and qrels/<split>.tsv; judgments need queries.
    missing : {"error", "drop"}, default "error"
        What to do with judgments of unknown documents or queries: raise DataError, or leave them out.
    fields : sequence of str or None, default None
        The text fields of documents beside title and text, as in `Documents.of`.

    Returns
    -------
    Collection
        The splits are the names of the files in `qrels`, in alphabetical order. A duplicate judgment counts once.

    Examples
    --------
    >>> docs = Documents.of({"d1": "heat in slabs", "d2": {"title": "Flow", "text": "past a plate"}})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_beir(f"{folder}/tiny", Collection("tiny", docs, {"q1": "flow"}, {"train": {"q1": {"d2": 1}}}))
    ...     read_beir(f"{folder}/tiny").qrels
    {'train': {'q1': {'d2': 1.0}}}
    """
    validation.choice("missing", missing, ["error", "drop"])
    folder = Path(folder)
    documents = _read_corpus(_file(folder, "corpus.jsonl"), fields)
    splits = split_names(folder)
    has_queries = splits or _candidates(folder, "queries.jsonl")
    queries = read_queries(_file(folder, "queries.jsonl")) if has_queries else {}
    qrels, n_dropped = {}, 0
    for split in splits:
        path = _file(folder / "qrels", f"{split}.tsv")
        qrels[split], n = _restrict(path, _read_qrels(path), set(queries), set(documents.ids), missing)
        n_dropped += n
    return Collection(folder.resolve().name, documents, queries, qrels, n_dropped=n_dropped)


def is_beir(folder: PathLike) -> bool:
    """Return whether a folder has corpus.jsonl and queries.jsonl, compressed or not; reads nothing."""
    return all(_candidates(Path(folder), name) for name in ("corpus.jsonl", "queries.jsonl"))


def corpus_path(folder: PathLike) -> Path | None:
    """Return the file of documents of a BEIR folder, compressed or not; None without one."""
    return next(iter(_candidates(Path(folder), "corpus.jsonl")), None)


def split_names(folder: PathLike) -> list[str]:
    """Return the splits of a BEIR folder in alphabetical order; reads nothing."""
    endings = [f".tsv{suffix}" for suffix in COMPRESSION_SUFFIXES]
    return sorted({path.name.removesuffix(end) for end in endings for path in (Path(folder) / "qrels").glob(f"*{end}")})


def read_queries(path: PathLike) -> dict[str, str]:
    """Read `{query id: text}` from lines like {"_id": "q1", "text": "flow past a plate"}."""
    return {key: _text(where, record, "text") for key, where, record in _records(Path(path))}


def _candidates(folder: Path, name: str) -> list[Path]:
    return [path for suffix in COMPRESSION_SUFFIXES if (path := folder / f"{name}{suffix}").is_file()]


def _file(folder: Path, name: str) -> Path:
    """Return the only file of that name, compressed or not."""
    candidates = _candidates(folder, name)
    if len(candidates) > 1:
        raise DataError(f"{folder}: has both {candidates[0].name} and {candidates[1].name}; keep one")
    if not candidates:
        raise DataError(
            f"{folder}: contains no {name}; a BEIR folder has corpus.jsonl, queries.jsonl and qrels/<split>.tsv "
            "(each may be compressed as .gz, .xz or .zst)"
        )
    return candidates[0]


def _records(
    path: Path, read: Callable[[PathLike], Iterator[tuple[int, str]]] = numbered_lines
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (id, file:line, record) for every line of a .jsonl file, which has at least one and no duplicate ids."""
    lines: dict[str, int] = {}
    for number, line in read(path):
        where = f"{path}:{number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where}: not valid JSON: {error}") from None
        if not isinstance(record, dict):
            raise DataError(f"{where}: a line must be an object with '_id' and 'text'; got {line[:40]!r}")
        key = record.get("_id")
        if isinstance(key, int) and not isinstance(key, bool):
            key = str(key)
        if not isinstance(key, str) or not key:
            found = f"got {key!r}" if "_id" in record else "it is missing"
            raise DataError(f"{where}: '_id' must be non-empty text or a whole number; {found}")
        if key in lines:
            raise DataError(f"{where}: id {key!r} occurs a second time; the first is in line {lines[key]}")
        lines[key] = number
        yield key, where, record
    if not lines:
        raise DataError(f"{path}: contains no records; a line is an object with '_id' and 'text'")


def _text(where: str, record: dict[str, Any], key: str) -> str:
    value = record.get(key)
    if not isinstance(value, str):
        raise DataError(f"{where}: {key!r} must be text; {f'got {value!r}' if key in record else 'it is missing'}")
    return value


def _read_corpus(path: Path, fields: Sequence[str] | None) -> Documents:
    return _documents(map(_checked, _records(path)), fields)


def stream_corpus(folder: PathLike, size: int) -> Iterator[Documents]:
    """Yield the documents of a BEIR folder, `size` at a time, without holding all of them in memory."""
    rows = map(_checked, _records(_file(Path(folder), "corpus.jsonl"), stream_lines))
    while len(part := _documents(islice(rows, size))):
        yield part


def _checked(entry: tuple[str, str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """Return the id and the record of a document, whose title and text are text, and one of which is there."""
    key, where, record = entry
    for name in ("title", "text"):
        if record.get(name) is not None:
            _text(where, record, name)
    if not any(isinstance(value, str) for name, value in record.items() if name != "_id"):
        _text(where, record, "text")
    return key, record | {"metadata": normalize_metadata(where, record.get("metadata"))}


def _documents(rows: Iterable[tuple[str, dict[str, Any]]], fields: Sequence[str] | None = None) -> Documents:
    return Documents.of(dict(rows), fields)


def _read_qrels(path: Path) -> dict[str, dict[str, float]]:
    header = f"{path}:1"
    return qrels_from_rows(
        (where, query, document, parse_number(where, "grade", grade.strip()))
        for where, (query, document, grade) in read_fields(path, _COLUMNS, "\t")
        if where != header or query.lower().replace("_", "-") != "query-id"
    )


def _restrict(path: Path, qrels: Qrels, queries: set[str], documents: set[str], missing: str) -> tuple[Qrels, int]:
    """Keep the judgments of known queries and documents, and count the others; missing="error" allows none."""
    known, unknown = split_known(qrels, queries, documents)
    if unknown and missing == "error":
        query, document = unknown[0]
        absent = f"query {query!r}" if query not in queries else f"document {document!r}"
        raise DataError(
            f"{path}: {len(unknown)} judgments name an unknown query or document; the first is "
            f"{query!r}, {document!r}: no {absent}. Add it, or leave such judgments out with missing='drop'"
        )
    return known, len(unknown)


def write_beir(folder: PathLike, collection: Collection) -> None:
    """Write a collection as a BEIR folder, completely or not at all.

    Parameters
    ----------
    folder : path
        A new or empty folder; anything else raises DataError.
    collection : Collection
        The documents, queries and judgments to write.

    Examples
    --------
    >>> from sparserank.data import Collection, Documents, read_beir
    >>> fruit = Collection("fruit", Documents.of({"d1": "red apples"}), {"q1": "apple"}, {"train": {"q1": {"d1": 1}}})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_beir(Path(folder, "fruit"), fruit)
    ...     read_beir(Path(folder, "fruit")).qrels
    {'train': {'q1': {'d1': 1.0}}}
    """
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataError(f"{folder}: exists already; give a new or an empty folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".tmp", dir=folder.parent))
    try:
        docs = collection.documents
        rows = [
            {"_id": i, "title": title, docs.text_field: text} | _written_metadata(metadata, docs.fields)
            for i, (title, text, metadata) in docs.rows().items()
        ]
        _write_jsonl(building / "corpus.jsonl", rows)
        _write_jsonl(building / "queries.jsonl", [{"_id": i, "text": text} for i, text in collection.queries.items()])
        (building / "qrels").mkdir()
        for split, qrels in collection.qrels.items():
            judgments = rows_to_write(qrels, "grade", _check_id)
            write_lines(building / "qrels" / f"{split}.tsv", ["\t".join(_COLUMNS.split()), *map("\t".join, judgments)])
        building.chmod(0o755)
        building.replace(folder)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise


def _written_metadata(metadata: Mapping[str, Any], fields: Sequence[str]) -> dict[str, Any]:
    """Return text fields as keys of the record, and the other metadata under "metadata"."""
    others = {name: value for name, value in metadata.items() if name not in fields}
    out: dict[str, Any] = {name: metadata[name] for name in fields if name in metadata}
    return out | ({"metadata": others} if others else {})


def _write_jsonl(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    if not all(record["_id"] for record in records):
        raise DataError("ids in a BEIR folder must not be empty")
    write_bytes(path, b"".join(_json_line(record) for record in records))


def _json_line(record: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(record, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:  # a lone surrogate has no UTF-8, but JSON can escape it
        return json.dumps(record).encode() + b"\n"


def _check_id(what: str, text: object) -> None:
    if any(mark in str(text) for mark in "\t\n\r"):
        raise DataError(f"a {what} in a BEIR folder must contain no tab and no line end; got {text!r}")
    if has_surrogate(str(text)):
        raise DataError(f"a {what} in a BEIR folder must be valid UTF-8 text; got {text!r}")
