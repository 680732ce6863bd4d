"""LETOR / svmlight files: one judged document per line, `<grade> qid:<id> <index>:<value> ... # comment`.

Reading and writing are exact: a number is the double that Python's float() parses, and is written as the shortest text
that reads back as the same double. Blank lines and lines with only a comment are skipped.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ... import validation
from ...errors import DataError
from ..files import PathLike, atomic_write, decode_utf8, read_bytes
from ..memory import BYTES_PER_FEATURE, features_in_memory, format_bytes
from ..records import Letor
from .group_sizes import group_path, read_group_sizes
from .lines import format_number

if TYPE_CHECKING:
    from scipy.sparse import csr_array

ZeroBased: TypeAlias = bool | Literal["auto"]

_WORD = re.compile(rb"[^\s#]+")
_ID = re.compile(r"[^\s#\0]+", re.ASCII)
_DOCID = re.compile(r"\bdocid\s*=\s*(\S+)")
_MIN_PART_BYTES = 1 << 22
"""The smallest part of a file that a thread reads."""


def read_letor(
    path: PathLike,
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    require_qid: bool = False,
    n_jobs: int | None = None,
) -> Letor:
    """Read a LETOR / svmlight file, plain or compressed as .gz, .xz or .zst.

    Parameters
    ----------
    path : path
        The file. Explicit zeros stay stored. A file without qids takes its queries from PATH.query, as LightGBM does:
        one number of rows per line. Without that file, too, every row has qid 0.
    n_features : int, optional
        The number of columns of X; by default the largest index, which raises DataError if no memory can hold as many.
    zero_based : bool or "auto", default "auto"
        Whether features count from 0. With "auto" they do if index 0 occurs, else from 1. Give a test file the
        `zero_based` of its training file, because it may happen to have no index 0.
    require_qid : bool, default False
        Whether a file without qids and without PATH.query raises DataError.
    n_jobs : int, optional
        Threads; the result does not depend on it.

    Returns
    -------
    Letor
        The rows.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.txt").write_text("2 qid:10 1:0.5 3:1e-3 #docid = GX1\\n0 qid:10 2:0.25 #docid = GX7\\n")
    ...     letor = read_letor(f"{folder}/a.txt")
    >>> letor.X.toarray().tolist(), letor.y.tolist(), letor.qid.tolist(), docids(letor)
    ([[0.5, 0.0, 0.001], [0.0, 0.25, 0.0]], [2.0, 0.0], [10, 10], ('GX1', 'GX7'))
    """
    letor = parse_letor(read_bytes(path), str(path), n_features=n_features, zero_based=zero_based, n_jobs=n_jobs)
    if letor.has_qid:
        return letor
    sizes = group_path(path)
    if sizes.is_file():
        return replace(letor, qid=read_group_sizes(sizes, path, len(letor)), has_qid=True)
    if require_qid:
        raise DataError(
            f"{path}: the rows have no query ids; write 'qid:<id>' after each grade, or the number of rows of each "
            f"query, one per line, to {sizes}"
        )
    return letor


def parse_letor(
    content: bytes,
    name: str,
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    n_jobs: int | None = None,
) -> Letor:
    """Parse the content of a LETOR file; see `read_letor`.

    Parameters
    ----------
    content : bytes
        The content of the file.
    name : str
        The name of the file in errors.
    n_features, zero_based, n_jobs
        As in `read_letor`.

    Returns
    -------
    Letor
        The rows.

    Examples
    --------
    >>> parse_letor(b"1 qid:7 1:0.5", "one row").qid.tolist()
    [7]
    """
    if n_features is not None:
        validation.count("n_features", n_features, low=1)
    validation.choice("zero_based", zero_based, ["auto", True, False])
    content = content.removeprefix(b"\xef\xbb\xbf")
    text = _Text(content if content.endswith(b"\n") else content + b"\n", name)
    if not text.content.isascii():
        decode_utf8(text.content, name)
    parts = _read_parts(text, validation.threads(n_jobs))
    if not any(len(part.grades) for part in parts):
        raise DataError(f"{name}: contains no rows; a row is '<grade> qid:<id> <index>:<value> ...'")
    grades = np.concatenate([part.grades for part in parts])
    values = np.concatenate([part.values for part in parts])
    if any(part.doubts for part in parts):
        _parse_doubtful(text, "grade", grades)
        _parse_doubtful(text, "feature's value", values)
    X, base = _matrix(text, parts, values, n_features, zero_based)
    comments = _comments(text, np.concatenate([part.at[:, 2] for part in parts]))
    from_zero = zero_based is True or (base == 0 and len(values) > 0)
    has_qid = any(bool((part.at[:, 1] >= 0).any()) for part in parts)
    return Letor(X, grades, _qid(text, parts), comments, from_zero, has_qid)


@dataclass(frozen=True)
class _Text:
    """The bytes of the file, which end in a newline, and its name."""

    content: bytes
    name: str

    def where(self, place: int) -> str:
        number = self.content.count(b"\n", 0, place) + 1
        return f"{self.name}:{number}"

    def word(self, place: int) -> bytes:
        match = _WORD.match(self.content, place)
        return match[0] if match else b""


@dataclass(frozen=True)
class _Part:
    """The arrays and counts that the kernel returns for some lines."""

    code: int
    place: int
    grades: NDArray[np.float64]
    qids: NDArray[np.int64]
    at: NDArray[np.int64]
    ends: NDArray[np.int64]
    indices: NDArray[Any]
    values: NDArray[np.float64]
    smallest: int
    largest: int
    doubts: int
    text_qids: int


def _read_parts(text: _Text, threads: int, dtype: type[np.signedinteger] = np.int32) -> list[_Part]:
    """Read all lines in parts, in parallel; raise the first error in the file."""
    from ..._kernels import letor as kernel

    size = len(text.content)
    pieces = max(1, min(4 * threads, size // _MIN_PART_BYTES))
    cuts = {0, size} | {text.content.find(b"\n", size * k // pieces) + 1 for k in range(1, pieces)}
    with ThreadPoolExecutor(threads) as pool:
        share = pool.map if pieces > 1 else map
        parts = list(share(lambda ends: _read_part(text, ends[0], ends[1], dtype), pairwise(sorted(cuts))))
    wrong = next((part for part in parts if part.code != kernel.OK), None)
    if wrong is None:
        return parts
    if wrong.code == kernel.WIDE_INDEX and dtype is np.int32:
        return _read_parts(text, threads, np.int64)
    raise _parse_error(text, wrong.code, wrong.place)


def _read_part(text: _Text, start: int, stop: int, dtype: type[np.signedinteger]) -> _Part:
    from ..._kernels import letor as kernel

    content = np.frombuffer(text.content, dtype=np.uint8)
    lines, colons = kernel.count_marks(content, start, stop)
    grades, values = np.empty(lines), np.empty(colons)
    qids, ends = np.empty(lines, dtype=np.int64), np.empty(lines, dtype=np.int64)
    at, indices = np.empty((lines, 3), dtype=np.int64), np.empty(colons, dtype=dtype)
    widest = 2**31 - 2 if dtype is np.int32 else 10**17
    code, place, rows, n, smallest, largest, doubts, text_qids = kernel.fill(
        content, start, stop, grades, grades.view(np.uint64), qids, at, ends,
        indices, values, values.view(np.uint64), widest,
    )  # fmt: skip
    return _Part(
        code, place, grades[:rows], qids[:rows], at[:rows], ends[:rows], indices[:n], values[:n],
        smallest, largest, doubts, text_qids,
    )  # fmt: skip


def _parse_doubtful(text: _Text, what: str, numbers: NDArray[np.float64]) -> None:
    """Parse, with Python and in place, the numbers that the kernel marked as NaNs that encode their position."""
    from ..._kernels import letor as kernel

    bits = numbers.view(np.uint64)
    for k in np.flatnonzero(np.isnan(numbers)):
        place = int(bits[k] - kernel.DOUBT)
        numbers[k] = float(text.word(place))
        if math.isinf(numbers[k]):
            raise DataError(f"{text.where(place)}: the {what} must be finite; {text.word(place).decode()} is too large")


def _matrix(
    text: _Text, parts: list[_Part], values: NDArray[np.float64], n_features: int | None, zero_based: ZeroBased
) -> tuple[csr_array, int]:
    """Return X and the index of the first feature, 0 or 1."""
    from scipy.sparse import csr_array

    smallest, largest = min(part.smallest for part in parts), max(part.largest for part in parts)
    base = int(smallest > 0 and len(values) > 0) if zero_based == "auto" else int(not zero_based)
    if base and len(values) and smallest == 0:
        place, _ = _first(parts, lambda indices: indices == 0)
        raise DataError(f"{text.where(place)}: feature index 0 in a file that counts from 1; give zero_based=True")
    width = max(largest, base) + 1 - base
    limit = features_in_memory(width) if n_features is None else n_features
    if width > limit:
        place, index = _first(parts, lambda indices: indices >= limit + base)
        needed = f"{index} needs {format_bytes(BYTES_PER_FEATURE * index)} to train; correct it, or give n_features"
        problem = needed if n_features is None else f"beyond n_features={n_features}"
        raise DataError(f"{text.where(place)}: feature index {problem}")
    indices = np.concatenate([part.indices for part in parts])
    indices -= base
    wide = np.int64 if indices.dtype == np.int64 or len(values) > np.iinfo(np.int32).max else np.int32
    indptr = np.zeros(1 + sum(len(part.ends) for part in parts), dtype=wide)
    row = done = 0
    for part in parts:
        indptr[row + 1 : row + 1 + len(part.ends)] = part.ends + done
        row, done = row + len(part.ends), done + len(part.values)
    X = csr_array((values, indices, indptr), shape=(len(indptr) - 1, n_features or width))
    X.has_canonical_format = True
    return X, base


def _first(parts: list[_Part], wrong: Callable[[NDArray[Any]], NDArray[np.bool_]]) -> tuple[int, int]:
    """Return the position of the first row with a wrong index, and the index; there must be one."""
    part = next(part for part in parts if wrong(part.indices).any())
    at = int(wrong(part.indices).argmax())
    return int(part.at[np.searchsorted(part.ends, at, side="right"), 0]), int(part.indices[at])


def _qid(text: _Text, parts: list[_Part]) -> NDArray[Any]:
    places = np.concatenate([part.at[:, 1] for part in parts])
    without = places < 0
    if without.all():
        return np.zeros(len(places), dtype=np.int64)
    if without.any():
        odd = int(np.flatnonzero(without != without[0])[0])
        rows = np.concatenate([part.at[:, 0] for part in parts])
        here, above = ("no qid", "have one") if without[odd] else ("a qid", "have none")
        raise DataError(
            f"{text.where(int(rows[odd]))}: {here}, but the rows above {above}; give every row a qid or none"
        )
    if not any(part.text_qids for part in parts):
        return np.concatenate([part.qids for part in parts])
    for place in places.tolist():
        # NumPy strips a trailing NUL from text: two ids would become one.
        if b"\0" in text.word(place):
            raise DataError(f"{text.where(place)}: a qid contains no NUL byte; got {text.word(place).decode()!r}")
    return np.array([text.word(place).decode() for place in places.tolist()])


def _comments(text: _Text, places: NDArray[np.int64]) -> tuple[str, ...]:
    if (places < 0).all():
        return ()
    content = text.content
    ends = [content.find(b"\n", place) if place >= 0 else place + 1 for place in places.tolist()]
    return tuple([content[a + 1 : b].decode().removesuffix("\r") for a, b in zip(places.tolist(), ends, strict=True)])


def _parse_error(text: _Text, code: int, place: int) -> DataError:
    from ..._kernels import letor as kernel

    word = text.word(place).decode(errors="replace")
    index, colon, value = word.partition(":")
    messages = {
        kernel.BAD_GRADE: f"a line must begin with its grade, a finite number; got {word!r}",
        kernel.BAD_QID: f"the second field must be 'qid:<id>'; got {word!r}",
        kernel.WIDE_INDEX: f"the feature index is too large; got {word!r}",
        kernel.NOT_RISING: f"feature indices must increase within a line; got {word!r} after an equal or larger index",
    }
    if code == kernel.BAD_VALUE and value:
        message = f"a feature's value must be a finite number; got {word!r}"
    elif index == "qid":
        message = f"'qid:<id>' must be the second field; got {word!r} further on"
    elif re.fullmatch(r"-\d+", index) and colon:
        message = f"a feature index must not be negative; got {word!r}"
    else:
        message = f"a feature must be '<index>:<value>'; got {word!r} (is the line truncated?)"
    return DataError(f"{text.where(place)}: {messages.get(code, message)}")


def docids(letor: Letor) -> tuple[str, ...]:
    """Return the document id of every row, from its comment `docid = <id>`.

    Parameters
    ----------
    letor : Letor
        Rows with comments.

    Returns
    -------
    tuple of str
        The ids. A row without one raises DataError.

    Examples
    --------
    >>> docids(parse_letor(b"1 qid:7 1:0.5 #docid = GX000-00 inc = 1 prob = 0.02", "one row"))
    ('GX000-00',)
    """
    if not letor.comments:
        raise DataError("the rows have no comments; document ids are read from 'docid = <id>' after '#'")
    ids = []
    for row, comment in enumerate(letor.comments):
        match = _DOCID.search(comment)
        if match is None:
            raise DataError(f"row {row}: no 'docid = <id>' in its comment {comment!r}")
        ids.append(match[1])
    return tuple(ids)


def write_letor(path: PathLike, letor: Letor) -> None:
    """Write rows so that `read_letor(path, n_features=letor.X.shape[1])` returns them bit for bit.

    Parameters
    ----------
    path : path
        The file to write. Feature indices count from 1.
    letor : Letor
        The rows. Text ids that all look like whole numbers come back as numbers.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from scipy.sparse import csr_array
    >>> rows = Letor(csr_array([[0.5, 0.0], [0.0, 2.0]]), np.array([1.0, 0.0]), np.array([7, 7]))
    >>> with TemporaryDirectory() as folder:
    ...     write_letor(Path(folder, "rows.txt"), rows)
    ...     print(Path(folder, "rows.txt").read_text(), end="")
    1 qid:7 1:0.5
    0 qid:7 2:2
    """
    X, qids = _validate(letor)
    all_empty = bool(letor.comments) and not any(letor.comments)
    with atomic_write(path) as file:
        for row, (grade, qid) in enumerate(zip(letor.y.tolist(), qids, strict=True)):
            start, stop = X.indptr[row], X.indptr[row + 1]
            columns, values = (X.indices[start:stop] + 1).tolist(), X.data[start:stop].tolist()
            fields = [format_number(grade), f"qid:{qid}"]
            fields += [f"{j}:{format_number(value)}" for j, value in zip(columns, values, strict=True)]
            if letor.comments and (letor.comments[row] or all_empty):
                fields.append(f"#{letor.comments[row]}")
            file.write((" ".join(fields) + "\n").encode())


def _validate(letor: Letor) -> tuple[csr_array, list[Any]]:
    """Return the features and qids to write; raise DataError if the file could not be read back as the same rows."""
    from scipy.sparse import csr_array

    X = csr_array(letor.X, dtype=np.float64)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    rows = X.shape[0]
    if not rows or len(letor.y) != rows or len(letor.qid) != rows or len(letor.comments) not in (0, rows):
        raise DataError(
            f"a LETOR file needs at least one row, and one grade and one qid per row; got {rows} rows, "
            f"{len(letor.y)} grades, {len(letor.qid)} qids and {len(letor.comments)} comments"
        )
    if not np.isfinite(X.data).all() or not np.isfinite(letor.y).all():
        raise DataError("a LETOR file contains finite numbers only; a value or a grade is NaN or infinite")
    qids: list[Any] = letor.qid.tolist()
    for row, qid in enumerate(qids):
        if not isinstance(qid, int) and not (isinstance(qid, str) and _ID.fullmatch(qid)):
            raise DataError(f"row {row}: a qid must be a whole number or text without blanks, '#' and NUL; got {qid!r}")
    for row, comment in enumerate(letor.comments):
        if "\n" in comment or comment.endswith("\r"):
            raise DataError(f"row {row}: a comment must stay on its line; got {comment!r}")
    return X, qids
