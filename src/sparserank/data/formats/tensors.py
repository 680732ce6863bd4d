"""Safetensors files of named arrays, strings and settings; reading one cannot run code.

A file states its `kind` and format version. A truncated or inconsistent file raises ModelError with its path. Writing
is atomic.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ModelError
from ..files import PathLike, atomic_write, write_bytes

if TYPE_CHECKING:
    from scipy.sparse import csr_array

VERSION = "1"
PIECE_BYTES = 1 << 23


@dataclass(frozen=True)
class Tensors:
    """The content of one file; `path` appears in errors."""

    path: str
    kind: str
    settings: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]

    def raw(self, name: str, dtype: str) -> NDArray[Any]:
        """Return an array of this type, without checking its values."""
        if name not in self.arrays:
            raise ModelError(f"{self.path}: has no array {name!r}")
        array = self.arrays[name]
        if array.dtype != np.dtype(dtype) or array.ndim != 1:
            raise ModelError(
                f"{self.path}: {name!r} must be a vector of {dtype}; got {array.dtype} of shape {array.shape}"
            )
        return array

    def array(self, name: str, dtype: str, length: int | None = None) -> NDArray[Any]:
        """Return an array of this type and length; its numbers are finite."""
        array = self.raw(name, dtype)
        if length is not None and len(array) != length:
            raise ModelError(f"{self.path}: {name!r} must have {length} entries; got {len(array)}")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ModelError(f"{self.path}: {name!r} contains a number that is not finite")
        return array

    def offsets(self, name: str, total: int, rows: int | None = None) -> NDArray[np.int64]:
        """Return offsets 0 = b[0] ≤ b[1] ≤ … = total, such as the row pointers of a CSR matrix."""
        dtype = "int32" if name in self.arrays and self.arrays[name].dtype == np.int32 else "int64"
        array = self.array(name, dtype, None if rows is None else rows + 1).astype(np.int64, copy=False)
        if len(array) == 0 or array[0] != 0 or array[-1] != total or (array[1:] < array[:-1]).any():
            raise ModelError(f"{self.path}: {name!r} does not increase from 0 to {total}")
        return array

    def indices(self, name: str, below: int, length: int | None = None) -> NDArray[np.int32]:
        """Return an array of integers in [0, below)."""
        array = self.array(name, "int32", length)
        if len(array) and (array.min() < 0 or array.max() >= below):
            raise ModelError(f"{self.path}: {name!r} contains an index outside [0, {below})")
        return array

    def strings(self, name: str) -> tuple[str, ...]:
        """Return the strings that `pack_strings` packed under this name."""
        raw = self.array(f"{name}.utf8", "uint8").tobytes()
        bounds = self.offsets(f"{name}.ends", len(raw)).tolist()
        try:
            text = raw.decode("utf-8", "surrogatepass")
            if len(text) == len(raw):
                return tuple(text[a:b] for a, b in pairwise(bounds))
            return tuple(raw[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(bounds))
        except UnicodeDecodeError:
            raise ModelError(f"{self.path}: {name!r} is not UTF-8 text") from None

    def csr(self, name: str, shape: tuple[int | None, int], dtype: str | None = "float32") -> csr_array:
        """Return the matrix that `pack_csr` packed under this name; None takes the rows or the dtype of the file."""
        from scipy.sparse import csr_array

        data = self.array(f"{name}.data", dtype or str(self.arrays[f"{name}.data"].dtype))
        indices = self.indices(f"{name}.indices", shape[1], len(data))
        indptr = self.offsets(f"{name}.indptr", len(data), shape[0])
        falls = np.flatnonzero(indices[1:] <= indices[:-1]) + 1
        if (indptr[np.searchsorted(indptr, falls)] != falls).any():
            raise ModelError(f"{self.path}: the columns of {name} do not increase within a row")
        narrow = indptr.astype(np.int32) if len(data) < 2**31 else indptr
        return csr_array((data, indices, narrow), shape=(len(indptr) - 1, shape[1]))

    def setting(self, name: str, kind: type | tuple[type, ...]) -> Any:
        """Return a setting of this type."""
        value = self.settings.get(name)
        if not isinstance(value, kind):
            raise ModelError(f"{self.path}: the setting {name!r} is missing or of the wrong type")
        return value


def pack_strings(name: str, strings: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Pack strings into two arrays; `Tensors.strings(name)` unpacks them."""
    encoded = [s.encode("utf-8", "surrogatepass") for s in strings]
    ends = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(p) for p in encoded], out=ends[1:])
    return {f"{name}.utf8": np.frombuffer(b"".join(encoded), np.uint8), f"{name}.ends": ends}


def pack_csr(name: str, matrix: csr_array) -> dict[str, NDArray[Any]]:
    """Three arrays that hold a sparse matrix; `Tensors.csr(name, shape)` gives it back."""
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return {
        f"{name}.indptr": matrix.indptr.astype(np.int64),
        f"{name}.indices": matrix.indices.astype(np.int32),
        f"{name}.data": matrix.data,
    }


def write_tensors(path: PathLike, kind: str, settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a file atomically; equal content gives equal bytes."""
    from safetensors.numpy import save

    about = json.dumps({"format": VERSION, "kind": kind, "settings": settings}, sort_keys=True)
    contiguous = {name: np.ascontiguousarray(array) for name, array in sorted(arrays.items())}
    # one key only: the library writes several in an order that changes from run to run
    write_bytes(path, save(contiguous, metadata={"sparserank": about}), compress=False)


@dataclass(frozen=True)
class FileArray:
    """A vector in a file of its own, for `write_tensor_files`."""

    path: Path
    dtype: np.dtype[Any]

    def __len__(self) -> int:
        return self.path.stat().st_size // self.dtype.itemsize

    def pieces(self) -> Iterator[NDArray[Any]]:
        """Yield the bytes, some megabytes at a time."""
        with self.path.open("rb") as file:
            while piece := file.read(PIECE_BYTES):
                yield np.frombuffer(piece, np.uint8)


def write_tensor_files(
    path: PathLike, kind: str, settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any] | FileArray]
) -> None:
    """Write the bytes that `write_tensors` writes, with vectors that need not be in memory."""
    about = json.dumps({"format": VERSION, "kind": kind, "settings": settings}, sort_keys=True)
    codes = {np.dtype(dtype): code for code, dtype in DTYPES.items()}
    order = sorted(arrays, key=lambda name: (_FILE_ORDER.index(codes[arrays[name].dtype]), name))
    header: dict[str, Any] = {"__metadata__": {"sparserank": about}}
    end = 0
    for name in order:
        begin, end = end, end + len(arrays[name]) * arrays[name].dtype.itemsize
        dtype, shape = codes[arrays[name].dtype], [len(arrays[name])]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with atomic_write(path, compress=False) as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            array = arrays[name]
            for piece in array.pieces() if isinstance(array, FileArray) else [np.ascontiguousarray(array)]:
                file.write(piece.data)


def read_tensors(path: PathLike, kind: str | None = None) -> Tensors:
    """Read a file of this kind; anything else raises ModelError."""
    path = Path(path)
    with _open(path, kind) as (file, about):
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    return Tensors(str(path), about["kind"], about["settings"], arrays)


def map_tensors(path: PathLike, kind: str | None = None) -> Tensors:
    """Memory-map a file of this kind: pages are read on first access.

    `write_tensors` replaces files by renaming, so a mapped file never changes under its reader.
    """
    path = Path(path)
    with _open(path, kind) as (_, about):  # safetensors checks sizes and offsets on opening
        whole = np.memmap(path, np.uint8, "r")
    length = int(whole[:8].view("<u8")[0])
    header = json.loads(whole[8 : 8 + length].tobytes())
    header.pop("__metadata__")
    arrays = {}
    for name, entry in header.items():
        if entry["dtype"] not in DTYPES:
            raise ModelError(f"{path}: {name!r} holds {entry['dtype']}, which no SparseRank file contains")
        dtype = np.dtype(DTYPES[entry["dtype"]])
        begin, end = (8 + length + at for at in entry["data_offsets"])
        raw = whole[begin:end]
        aligned = raw if begin % dtype.itemsize == 0 else raw.copy()
        arrays[name] = np.asarray(aligned).view(dtype).reshape(entry["shape"])
    return Tensors(str(path), about["kind"], about["settings"], arrays)


DTYPES = {"U8": "u1", "I32": "<i4", "I64": "<i8", "F16": "<f2", "F32": "<f4", "F64": "<f8"}
"""The types of arrays in SparseRank files."""
_FILE_ORDER = ("I64", "F64", "F32", "I32", "F16", "U8")
"""safetensors writes arrays by type in this order, then by name."""


@contextmanager
def _open(path: Path, kind: str | None) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Open a file of this kind with safetensors, and its metadata; its errors become ModelError with the path."""
    from safetensors import SafetensorError, safe_open

    if path.is_dir():
        raise ModelError(f"{path}: is a folder, not a {kind or 'model'} file")
    if not path.exists():
        raise ModelError(f"{path}: no such file")
    try:
        with safe_open(str(path), framework="numpy") as file:
            yield file, _metadata(path, kind, (file.metadata() or {}).get("sparserank"))
    except (SafetensorError, OSError, TypeError, AttributeError) as error:  # the last two: types numpy does not know
        raise ModelError(f"{path}: truncated, damaged or not a model file: {error}") from None


def _metadata(path: Path, kind: str | None, header: str | None) -> dict[str, Any]:
    """Parse and check the metadata of the file."""
    if header is None:
        raise ModelError(f"{path}: a safetensors file, but SparseRank did not write it")
    try:
        about = json.loads(header)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path}: its metadata is not valid JSON: {error}") from None
    if not isinstance(about, dict) or not isinstance(about.get("settings"), dict):
        raise ModelError(f"{path}: its metadata has no settings")
    if about.get("format") != VERSION:
        raise ModelError(f"{path}: format {about.get('format')!r}; this version reads {VERSION!r}. Train it again.")
    if kind is not None and about.get("kind") != kind:
        raise ModelError(f"{path}: contains a {about.get('kind')!r}, not a {kind!r}")
    return about
