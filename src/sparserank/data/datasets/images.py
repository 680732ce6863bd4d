"""Handwritten digits: MNIST from its idx files, and the small set of scikit-learn.

An item is a row of a uint8 array with one column per pixel, unscaled: 0 to 255 for MNIST, 0 to 16 for digits.
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
from ..records import LabeledData, TrainTestSplit
from .download import LocalFiles

CLASSES = tuple("0123456789")
N_DIGITS_TRAIN = 1297


def parse_idx(raw: bytes, name: str) -> NDArray[np.uint8]:
    """Parse the uint8 array in an idx file; `name` appears in errors.

    >>> parse_idx(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]), "three")
    array([7, 8, 9], dtype=uint8)
    """
    if len(raw) < 4 or raw[:3] != b"\x00\x00\x08":
        raise DataError(f"{name}: an idx file of bytes begins with 00 00 08; got {raw[:3].hex(' ') or 'nothing'}")
    start = 4 + 4 * raw[3]
    if len(raw) < start:
        raise DataError(f"{name}: the header is truncated")
    shape = struct.unpack(f">{raw[3]}I", raw[4:start])
    if len(raw) - start != math.prod(shape):
        raise DataError(f"{name}: the header announces {math.prod(shape):,} bytes; got {len(raw) - start:,}")
    return np.frombuffer(raw, dtype=np.uint8, offset=start).reshape(shape)


def mnist(files: LocalFiles) -> TrainTestSplit:
    """Load 60,000 training and 10,000 test images of 28 × 28 pixels."""
    raw = files.contents()
    return TrainTestSplit(_part(raw, "train"), _part(raw, "t10k"))


def _part(raw: dict[str, bytes], part: str) -> LabeledData:
    images, labels = (parse_idx(raw[name], name) for name in (f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte"))
    if images.ndim < 2 or labels.ndim != 1 or len(images) != len(labels):
        raise DataError(f"{part}: expected one label per image; got images {images.shape} and labels {labels.shape}")
    return LabeledData(images.reshape(len(images), -1), labels.astype(np.int64), CLASSES)


def digits() -> TrainTestSplit:
    """Load 1,797 images of 8 × 8 pixels from scikit-learn: 1,297 for training, the last 500 for testing."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    cut = N_DIGITS_TRAIN
    return TrainTestSplit(_digits(pixels[:cut], labels[:cut]), _digits(pixels[cut:], labels[cut:]))


def digits_file() -> Path | None:
    """Return where scikit-learn keeps the set, without importing scikit-learn."""
    package = find_spec("sklearn")
    if package is None or package.origin is None:
        return None
    return Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz"


def _digits(pixels: NDArray[Any], labels: NDArray[Any]) -> LabeledData:
    return LabeledData(pixels.astype(np.uint8), labels.astype(np.int64), CLASSES)
