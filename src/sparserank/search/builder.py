"""Build an index file from parts of a collection, in bounded memory.

Each part becomes a segment in a temporary folder. Then the segments are merged into one, some terms at a time, and the
file is assembled from the merged arrays. The result has the bytes of `Index.build(…).save(…)` for the whole collection.
Memory holds one part, the ids, offsets and metadata values of all documents, and MERGED_POSTINGS postings.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise, repeat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data.files import PathLike, check_writable
from ..data.formats.tensors import FileArray, write_tensor_files
from ..data.records import Documents
from ..errors import DataError
from .block_maxima import BlockMaxima
from .index_file import arrays_digest
from .metadata_columns import MetadataColumns
from .segment import Segment, inverse_order
from .string_array import StringArray, read_only

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MERGED_POSTINGS = 1 << 22
"""Postings that are merged at a time."""
_RECORDS = "metadata.records"


def build_index_file(
    path: PathLike,
    parts: Iterable[tuple[csr_array, Documents]],
    made_for: str = "",
    callback: Callable[[str], None] | None = None,
) -> None:
    """Index a collection that comes in parts and write the file; an id in two parts raises DataError.

    Parameters
    ----------
    path : path-like
        The file.
    parts : iterable of (csr_array, Documents)
        Some documents each, with their rows, as in `Index.build`.
    made_for : str, default=""
        Fingerprint of the model that weighted the documents.
    callback : callable or None, default=None
        Called with messages such as "indexing: 50,000 documents".

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from sparserank.search import Index
    >>> parts = [(csr_array([[1.0]]), Documents.of({"a": ""})), (csr_array([[2.0]]), Documents.of({"b": ""}))]
    >>> with TemporaryDirectory() as folder:
    ...     build_index_file(f"{folder}/index", parts)
    ...     [hit.id for hit in Index.load(f"{folder}/index").search(csr_array([[1.0]]))[0]]
    ['b', 'a']
    """
    report = callback or (lambda _: None)
    path = Path(path)
    check_writable(path)
    with TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as name:
        folder, stored = Path(name), []
        n_docs = 0
        for number, (matrix, documents) in enumerate(parts):
            stored.append(StoredPart.write(folder / str(number), Segment.build(matrix, documents)))
            n_docs += len(documents)
            report(f"indexing: {n_docs:,} documents")
        if not stored:
            raise DataError("there are no documents to index")
        arrays = _merge(folder, stored, n_docs, report)
        report("writing the index")
        settings = {"made_for": made_for, "segments": 1, "digest": arrays_digest(arrays)}
        write_tensor_files(path, "index", settings, arrays)


@dataclass(frozen=True)
class StoredPart:
    """A segment in files: its postings and strings; starts, ids, ends and the input order stay in memory."""

    prefix: Path
    starts: NDArray[np.int64]
    ids: list[str]
    ends: dict[str, NDArray[np.int64]]
    input_order: NDArray[np.int64]

    @classmethod
    def write(cls, prefix: Path, segment: Segment) -> StoredPart:
        """Write the postings and the strings of a segment."""
        segment.docs.tofile(f"{prefix}.docs")
        segment.weights.tofile(f"{prefix}.weights")
        strings = {"titles": segment.titles, "texts": segment.texts}
        if segment.metadata is not None:
            strings[_RECORDS] = segment.metadata.records
        for name, array in strings.items():
            array.utf8.tofile(f"{prefix}.{name}")
        ids = [segment.ids[i] for i in range(len(segment))]
        ends = {name: array.ends for name, array in strings.items()}
        return cls(prefix, segment.starts, ids, ends, segment.live_in_input_order)

    def postings(self, first: int, last: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Read the postings of the terms first … last - 1."""
        begin, count = int(self.starts[first]), int(self.starts[last] - self.starts[first])
        docs = np.fromfile(f"{self.prefix}.docs", np.int32, count, offset=4 * begin)
        return docs, np.fromfile(f"{self.prefix}.weights", np.float32, count, offset=4 * begin)


def _merge(
    folder: Path, parts: Sequence[StoredPart], n_docs: int, report: Callable[[str], None]
) -> dict[str, NDArray[Any] | FileArray]:
    """Return the arrays of the merged segment, by their names in the file; long ones are in files."""
    ids = [doc_id for part in parts for doc_id in part.ids]
    order = np.array(sorted(range(n_docs), key=ids.__getitem__, reverse=True), np.int64)
    duplicate = next((ids[b] for a, b in pairwise(order.tolist()) if ids[a] == ids[b]), None)
    if duplicate is not None:
        raise DataError(f"document id {duplicate!r} occurs more than once")
    rank = inverse_order(order)
    part_of = np.repeat(np.arange(len(parts)), [len(part.ids) for part in parts])[order]
    arrays: dict[str, NDArray[Any] | FileArray] = {"0.gone": np.zeros(0, np.int32)}
    arrays |= StringArray.from_strings(ids[i] for i in order).arrays("0.ids")
    first = np.cumsum([0, *(len(part.ids) for part in parts)])
    arrays["0.input_order"] = rank[
        np.concatenate([at + part.input_order for at, part in zip(first, parts, strict=False)])
    ]
    for name in ("titles", "texts"):
        arrays[f"0.{name}.utf8"], arrays[f"0.{name}.ends"] = _merge_strings(folder / name, name, parts, part_of)
    if any(_RECORDS in part.ends for part in parts):
        arrays |= _merge_metadata(folder / _RECORDS, parts, part_of)
    return arrays | _merge_postings(folder, parts, rank, report)


def _merge_strings(
    path: Path, name: str, parts: Sequence[StoredPart], part_of: NDArray[np.int64]
) -> tuple[FileArray, NDArray[np.int64]]:
    """Merge the strings of parts, each of which is in the final order; a part without them has empty strings."""
    lengths = [iter(np.diff(part.ends[name]).tolist()) if name in part.ends else repeat(0) for part in parts]
    ends = np.zeros(len(part_of) + 1, np.int64)
    with ExitStack() as stack:
        names = [f"{part.prefix}.{name}" if name in part.ends else os.devnull for part in parts]
        files = [stack.enter_context(Path(path).open("rb")) for path in names]
        out = stack.enter_context(path.open("wb"))
        for at, part in enumerate(part_of.tolist(), start=1):
            ends[at] = next(lengths[part])
            out.write(files[part].read(int(ends[at])))
    return FileArray(path, np.dtype(np.uint8)), np.cumsum(ends)


def _merge_metadata(
    path: Path, parts: Sequence[StoredPart], part_of: NDArray[np.int64]
) -> dict[str, NDArray[Any] | FileArray]:
    """Merge the records of metadata and index their values."""
    utf8, ends = _merge_strings(path, _RECORDS, parts, part_of)
    arrays: dict[str, NDArray[Any] | FileArray] = {}
    arrays |= MetadataColumns.from_records(_read_strings(path, ends)).arrays("0.")
    return arrays | {f"0.{_RECORDS}.utf8": utf8, f"0.{_RECORDS}.ends": ends}


def _read_strings(path: Path, ends: NDArray[np.int64]) -> Iterator[str]:
    with path.open("rb") as file:
        for length in np.diff(ends).tolist():
            yield file.read(length).decode("utf-8", "surrogatepass")


def _merge_postings(
    folder: Path, parts: Sequence[StoredPart], rank: NDArray[np.int32], report: Callable[[str], None]
) -> dict[str, NDArray[Any] | FileArray]:
    """Merge postings, some terms at a time, with their block maxima."""
    starts, writer = np.sum([part.starts for part in parts], axis=0), ArrayWriter(folder)
    n_entries = n_rows = 0
    for first, last in _term_ranges(starts):
        docs, weights = _merge_terms(parts, rank, first, last)
        writer.append("docs", docs)
        writer.append("weights", weights)
        blocks = BlockMaxima.build(starts[first : last + 1] - starts[first], docs, weights, len(rank))
        if blocks is not None:
            shifted = {
                "starts": blocks.starts[1 if first else 0 :] + n_entries,
                "rows": np.where(blocks.rows >= 0, blocks.rows + np.int32(n_rows), np.int32(-1)),
            }
            n_entries, n_rows = n_entries + len(blocks.entries), n_rows + len(blocks.levels)
            for name, array in (
                blocks.arrays("") | {f"blocks.{name}": array for name, array in shifted.items()}
            ).items():
                writer.append(name, array)
        report(f"merging: {100 * int(starts[last]) // max(int(starts[-1]), 1)} %")
    return {f"0.{name}": array for name, array in writer.arrays().items()} | {"0.starts": starts}


def _merge_terms(
    parts: Sequence[StoredPart], rank: NDArray[np.int32], first: int, last: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the merged postings of the terms first … last - 1; document i of all parts becomes rank[i]."""
    from scipy.sparse import csr_array

    read = [part.postings(first, last) for part in parts]
    ranks = np.split(rank, np.cumsum([len(part.ids) for part in parts])[:-1])
    docs = np.concatenate([part_rank[docs] for part_rank, (docs, _) in zip(ranks, read, strict=True)])
    lengths = [np.diff(part.starts[first : last + 1]) for part in parts]
    terms = np.concatenate([np.repeat(np.arange(last - first), length) for length in lengths])
    weights = np.concatenate([weights for _, weights in read])
    merged = csr_array((weights, (terms, docs)), shape=(last - first, len(rank)))
    merged.sort_indices()
    return read_only(merged.indices.astype(np.int32, copy=False)), read_only(merged.data)


def _term_ranges(starts: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Split the terms into ranges of about MERGED_POSTINGS postings."""
    first, n_terms = 0, len(starts) - 1
    while first < n_terms:
        last = int(np.searchsorted(starts, starts[first] + MERGED_POSTINGS, side="right")) - 1
        last = min(max(last, first + 1), n_terms)
        yield first, last
        first = last


class ArrayWriter:
    """Arrays that grow in files."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._types = folder, dict[str, np.dtype[Any]]()

    def append(self, name: str, array: NDArray[Any]) -> None:
        """Append to the array of this name."""
        self._types[name] = array.dtype
        with (self._folder / name).open("ab") as file:
            array.tofile(file)

    def arrays(self) -> dict[str, NDArray[Any] | FileArray]:
        """Return all arrays by name."""
        return {name: FileArray(self._folder / name, dtype) for name, dtype in self._types.items()}
