"""BEIR folders: a whole search experiment as three kinds of text file.

    corpus.jsonl      {"_id": …, "title": …, "text": …}   a document a line
    queries.jsonl     {"_id": …, "text": …}               a query a line
    qrels/<split>.tsv query-id <tab> corpus-id <tab> score

Each file may be packed (.gz, .xz, .zst). Ids are text: a whole number is taken as its digits. Other keys are ignored.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from ... import validation
from ...errors import DataError
from ..files import PACKINGS, PathLike, numbered_lines, write_bytes
from ..records import Collection, Documents, Qrels
from .trec import Judgments, finite, shortest

_HEADER = "query-id\tcorpus-id\tscore"


def read_beir(folder: PathLike, *, missing: Literal["error", "drop"] = "error") -> Collection:
    """Read a BEIR folder; its splits are the names of the files in `qrels`, in alphabetical order.

    A judgment said twice counts once. One that names a document or a query which is not there is an error, or is left
    out with missing="drop". A folder without `qrels` is a collection without splits.

    >>> docs = Documents.of({"d1": "heat in slabs", "d2": {"title": "Flow", "text": "past a plate"}})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_beir(f"{folder}/tiny", Collection("tiny", docs, {"q1": "flow"}, {"train": {"q1": {"d2": 1}}}))
    ...     read_beir(f"{folder}/tiny").qrels
    {'train': {'q1': {'d2': 1.0}}}
    """
    validation.choice("missing", missing, ["error", "drop"])
    folder = Path(folder)
    documents = _documents(_file(folder, "corpus.jsonl"))
    queries = read_queries(_file(folder, "queries.jsonl"))
    qrels = {}
    for split, path in _splits(folder):
        qrels[split] = _known_only(path, _judgments(path), set(queries), set(documents.ids), missing)
    return Collection(folder.resolve().name, documents, queries, qrels)


def is_beir(folder: PathLike) -> bool:
    """Whether a folder has the documents and queries of a BEIR folder; nothing is read.

    Parameters
    ----------
    folder : path
        The folder.

    Returns
    -------
    bool
        True if corpus.jsonl and queries.jsonl are there, packed or not.
    """
    files = ("corpus.jsonl", "queries.jsonl")
    return all(any((Path(folder) / f"{name}{packed}").is_file() for packed in PACKINGS) for name in files)


def split_names(folder: PathLike) -> list[str]:
    """The splits of a BEIR folder in alphabetical order; nothing is read."""
    endings = [f".tsv{packed}" for packed in PACKINGS]
    return sorted({path.name.removesuffix(end) for end in endings for path in (Path(folder) / "qrels").glob(f"*{end}")})


def read_queries(path: PathLike) -> dict[str, str]:
    """{query id: text} of a file of lines like {"_id": "q1", "text": "flow past a plate"}."""
    return {key: _text(where, record, "text") for key, where, record in _records(Path(path))}


def _file(folder: Path, name: str) -> Path:
    """The one file of that name, packed or not."""
    found = [path for path in (folder / f"{name}{packed}" for packed in PACKINGS) if path.is_file()]
    if len(found) > 1:
        raise DataError(f"{folder}: both {found[0].name} and {found[1].name} are there; keep one")
    if not found:
        raise DataError(
            f"{folder}: no {name} in it; a BEIR folder holds corpus.jsonl, queries.jsonl and qrels/<split>.tsv "
            "(each may be packed as .gz, .xz or .zst)"
        )
    return found[0]


def _records(path: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(id, file:line, record) of every line of a .jsonl file; at least one, and no id twice."""
    lines: dict[str, int] = {}
    for number, line in numbered_lines(path):
        where = f"{path}:{number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where}: not a line of JSON: {error}") from None
        if not isinstance(record, dict):
            raise DataError(f"{where}: a line must be an object with '_id' and 'text'; got {line[:40]!r}")
        key = record.get("_id")
        if isinstance(key, int) and not isinstance(key, bool):
            key = str(key)
        if not isinstance(key, str) or not key:
            found = f"got {key!r}" if "_id" in record else "it is missing"
            raise DataError(f"{where}: '_id' must be text that is not empty, or a whole number; {found}")
        if key in lines:
            raise DataError(f"{where}: id {key!r} occurs a second time; it is in line {lines[key]} already")
        lines[key] = number
        yield key, where, record
    if not lines:
        raise DataError(f"{path}: no record in it; a line is an object with '_id' and 'text'")


def _text(where: str, record: dict[str, Any], key: str) -> str:
    value = record.get(key)
    if not isinstance(value, str):
        raise DataError(f"{where}: {key!r} must be text; {f'got {value!r}' if key in record else 'it is missing'}")
    return value


def _documents(path: Path) -> Documents:
    ids, titles, texts = [], [], []
    for key, where, record in _records(path):
        ids.append(key)
        titles.append("" if record.get("title") is None else _text(where, record, "title"))
        texts.append(_text(where, record, "text"))
    return Documents(tuple(ids), tuple(titles), tuple(texts))


def _splits(folder: Path) -> list[tuple[str, Path]]:
    return [(name, _file(folder / "qrels", f"{name}.tsv")) for name in split_names(folder)]


def _judgments(path: Path) -> dict[str, dict[str, float]]:
    judged = Judgments()
    for number, line in numbered_lines(path):
        fields = line.split("\t")
        if len(fields) != 3:
            raise DataError(
                f"{path}:{number}: a judgment has three fields between tabs, 'query-id corpus-id score'; "
                f"got {len(fields)}"
            )
        query, document, grade = fields
        if number > 1 or query.lower().replace("_", "-") != "query-id":
            judged.add(f"{path}:{number}", query, document, grade.strip())
    return judged.grades


def _known_only(
    path: Path, judged: dict[str, dict[str, float]], queries: set[str], documents: set[str], missing: str
) -> Qrels:
    """The judgments whose query and document are both there."""
    known: dict[str, dict[str, float]] = {}
    unknown: list[tuple[str, str]] = []
    for query, grades in judged.items():
        if query in queries and grades.keys() <= documents:
            known[query] = grades
            continue
        kept = {key: grade for key, grade in grades.items() if query in queries and key in documents}
        unknown += [(query, key) for key in grades if key not in kept]
        if kept:
            known[query] = kept
    if unknown and missing == "error":
        query, document = unknown[0]
        absent = f"query {query!r}" if query not in queries else f"document {document!r}"
        raise DataError(
            f"{path}: {len(unknown)} judgments name a query or a document that is not in the folder; the first is "
            f"{query!r}, {document!r}: no {absent}. Add what is missing, or leave them out with missing='drop'"
        )
    return known


def write_beir(folder: PathLike, collection: Collection) -> None:
    """Write a collection as a BEIR folder, which appears whole or not at all; a folder with files in it is refused."""
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataError(f"{folder}: is there already; give a new or an empty folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".tmp", dir=folder.parent))
    try:
        docs = collection.documents
        rows = zip(docs.ids, docs.titles, docs.texts, strict=True)
        _write_jsonl(building / "corpus.jsonl", [{"_id": i, "title": title, "text": text} for i, title, text in rows])
        _write_jsonl(building / "queries.jsonl", [{"_id": i, "text": text} for i, text in collection.queries.items()])
        (building / "qrels").mkdir()
        for split, qrels in collection.qrels.items():
            _write_judgments(building / "qrels" / f"{split}.tsv", qrels)
        building.chmod(0o755)
        building.replace(folder)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise


def _write_jsonl(path: Path, records: list[dict[str, str]]) -> None:
    if not all(record["_id"] for record in records):
        raise DataError("an id in a BEIR folder must not be empty")
    write_bytes(path, b"".join(_json_line(record) for record in records))


def _json_line(record: dict[str, str]) -> bytes:
    try:
        return json.dumps(record, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair has no UTF-8, but JSON has an escape for it
        return json.dumps(record).encode() + b"\n"


def _write_judgments(path: Path, qrels: Qrels) -> None:
    lines = [_HEADER]
    for query, grades in qrels.items():
        for document, grade in grades.items():
            if any(mark in query + document for mark in "\t\n\r"):
                raise DataError(f"ids in a BEIR folder must hold no tab and no line end; got {query!r}, {document!r}")
            if any("\ud800" <= mark <= "\udfff" for mark in query + document):
                raise DataError(f"judged ids must hold no half of a surrogate pair; got {query!r}, {document!r}")
            lines.append(f"{query}\t{document}\t{shortest(finite('grade', query, document, grade))}")
    write_bytes(path, ("\n".join(lines) + "\n").encode())
