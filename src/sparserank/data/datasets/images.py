"""Handwritten digits: MNIST from its idx files, and scikit-learn's small set, which needs no file.

Items are the rows of a uint8 array, one pixel a column, row by row of the image, exactly as the files hold them:
0 to 255 for MNIST, 0 to 16 for digits. Nothing is scaled.
"""

from __future__ import annotations

import math
import struct
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ..records import Labelled, Split
from .download import Found

CLASSES = tuple("0123456789")
DIGITS_FOR_TRAINING = 1297


def parse_idx(raw: bytes, name: str) -> NDArray[np.uint8]:
    """The array of bytes in an idx file; `name` is what an error calls it.

    >>> parse_idx(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]), "three")
    array([7, 8, 9], dtype=uint8)
    """
    if len(raw) < 4 or raw[:3] != b"\x00\x00\x08":
        raise DataError(f"{name}: an idx file of bytes begins with 00 00 08; got {raw[:3].hex(' ') or 'nothing'}")
    start = 4 + 4 * raw[3]
    if len(raw) < start:
        raise DataError(f"{name}: ends within its header")
    shape = struct.unpack(f">{raw[3]}I", raw[4:start])
    if len(raw) - start != math.prod(shape):
        raise DataError(f"{name}: its header announces {math.prod(shape):,} bytes; there are {len(raw) - start:,}")
    return np.frombuffer(raw, dtype=np.uint8, offset=start).reshape(shape)


def mnist(found: Found) -> Split:
    """60,000 images of 28 × 28 to train on and 10,000 to test on."""
    raw = found.contents()
    return Split(_part(raw, "train"), _part(raw, "t10k"))


def _part(raw: dict[str, bytes], part: str) -> Labelled:
    images, labels = (parse_idx(raw[name], name) for name in (f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte"))
    if images.ndim < 2 or labels.ndim != 1 or len(images) != len(labels):
        raise DataError(f"{part}: one label an image is wanted; got images {images.shape} and labels {labels.shape}")
    return Labelled(images.reshape(len(images), -1), labels.astype(np.int64), CLASSES)


def digits() -> Split:
    """1,797 images of 8 × 8 from scikit-learn: the first 1,297 to train on, the last 500 to test on."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    cut = DIGITS_FOR_TRAINING
    return Split(_digits(pixels[:cut], labels[:cut]), _digits(pixels[cut:], labels[cut:]))


def digits_file() -> Path | None:
    """Where scikit-learn keeps the set, found without importing scikit-learn."""
    package = find_spec("sklearn")
    if package is None or package.origin is None:
        return None
    return Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz"


def _digits(pixels: NDArray[Any], labels: NDArray[Any]) -> Labelled:
    return Labelled(pixels.astype(np.uint8), labels.astype(np.int64), CLASSES)
