"""Many strings in two arrays, which may be mapped from a file; only the strings that are used are read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.formats.tensors import pack_strings
from ..errors import ModelError


@dataclass(frozen=True)
class StringArray:
    """String i is utf8[ends[i]:ends[i + 1]].

    >>> StringArray.from_strings(["red", "äpple"])[1]
    'äpple'
    """

    utf8: NDArray[np.uint8]
    ends: NDArray[np.int64]

    @classmethod
    def from_strings(cls, strings: Iterable[str]) -> StringArray:
        """Encode strings."""
        arrays = pack_strings("s", list(strings))
        return cls(arrays["s.utf8"], arrays["s.ends"])

    def __len__(self) -> int:
        return len(self.ends) - 1

    def __getitem__(self, at: int) -> str:
        if not 0 <= at < len(self):
            raise IndexError(at)
        try:
            return self._bytes(at).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise ModelError(f"the index is damaged: string {at} is not UTF-8; rebuild the index") from None

    def size(self, at: int) -> int:
        """Return the bytes of a string in UTF-8, without reading it.

        >>> StringArray.from_strings(["red", "äpple"]).size(1)
        6
        """
        return int(self.ends[at + 1]) - int(self.ends[at])

    def _bytes(self, at: int) -> bytes:
        begin, end = int(self.ends[at]), int(self.ends[at + 1])
        if not 0 <= begin <= end <= len(self.utf8):
            raise ModelError(f"the index is damaged: string {at} lies outside of its array; rebuild the index")
        return self.utf8[begin:end].tobytes()

    def find_descending(self, string: str) -> int:
        """Return the position of a string in a descending array, or -1. UTF-8 sorts as the code points do."""
        from .._kernels.strings import find_descending

        key = np.frombuffer(string.encode("utf-8", "surrogatepass"), np.uint8)
        at = int(find_descending(self._letters, self._bounds, key))
        if at < -1:
            self._bytes(-2 - at)  # raises ModelError
        return at

    @cached_property
    def _letters(self) -> NDArray[np.uint8]:
        return read_only(self.utf8)

    @cached_property
    def _bounds(self) -> NDArray[np.int64]:
        return read_only(self.ends)

    def arrays(self, name: str) -> dict[str, NDArray[Any]]:
        """Return the arrays for a file, in the format of `Tensors.strings`."""
        return {f"{name}.utf8": self.utf8, f"{name}.ends": self.ends}


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view; kernels are compiled once, for read-only arrays."""
    view = array.view()
    view.setflags(write=False)
    return view
