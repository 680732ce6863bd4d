"""Many strings as two arrays that may lie in a mapped file: what is not looked at is not read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from ..data.formats.tensors import pack_strings
from ..errors import ModelError


@dataclass(frozen=True)
class Stored(Sequence[str]):
    """String i is utf8[ends[i]:ends[i + 1]].

    >>> Stored.of(["red", "äpple"])[1]
    'äpple'
    """

    utf8: NDArray[np.uint8]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, strings: Iterable[str]) -> Stored:
        """From strings in memory."""
        packed = pack_strings("s", list(strings))
        return cls(packed["s.utf8"], packed["s.ends"])

    def __len__(self) -> int:
        return len(self.ends) - 1

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[str]: ...
    def __getitem__(self, at: int | slice) -> str | Sequence[str]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        if not 0 <= at < len(self):
            raise IndexError(at)
        return self._text(self._bytes(at))

    def __iter__(self) -> Iterator[str]:
        return (self[i] for i in range(len(self)))

    def _bytes(self, at: int) -> bytes:
        begin, end = int(self.ends[at]), int(self.ends[at + 1])
        if not 0 <= begin <= end <= len(self.utf8):
            raise ModelError(f"the index is damaged: string {at} has no place in it; make it again")
        return self.utf8[begin:end].tobytes()

    @staticmethod
    def _text(raw: bytes) -> str:
        try:
            return raw.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise ModelError("the index is damaged: a string in it is not UTF-8; make it again") from None

    def falling_place(self, wanted: str) -> int:
        """Where a string stands among strings that fall, or -1. UTF-8 sorts as the code points do."""
        key, low, high = wanted.encode("utf-8", "surrogatepass"), 0, len(self)
        while low < high:
            middle = (low + high) // 2
            found = self._bytes(middle)
            if found == key:
                return middle
            low, high = (middle + 1, high) if found > key else (low, middle)
        return -1

    def arrays(self, name: str) -> dict[str, NDArray[Any]]:
        """For a file; `Tensors.strings(name)` reads them too."""
        return {f"{name}.utf8": self.utf8, f"{name}.ends": self.ends}
