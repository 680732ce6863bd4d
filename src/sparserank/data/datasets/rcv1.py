"""RCV1-v2: 30,000 news stories as cosine-normalised log tf-idf rows with several topics each.

The source is the ten files "rcv1v2 (topics; subsets)" of the LIBSVM site: five subsets of 3,000 training and 3,000 test
stories. Some stories occur in more than one file. Stories with equal sets of words count as one, and the first
occurrence stays; 27,495 remain and none is in both halves. The site numbers the topics; their Reuters codes were
inferred. The words of the 47,236 columns are unknown.
"""

from __future__ import annotations

import bz2
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ..files import atomic_write
from ..records import Stories
from .download import LocalFiles

ARCHIVE = "rcv1v2_subsets_30k.npz"
FILES = tuple(f"rcv1subset_topics_{half}_{subset}.svm.bz2" for subset in (1, 2, 3, 4, 5) for half in ("train", "test"))
N_COLUMNS = 47_236
_CODES = """
C11 C12 C13 C14 C15 C151 C1511 C152 C16 C17 C171 C172 C173 C174 C18 C181 C182 C183 C21 C22 C23 C24 C31 C311 C312
C313 C32 C33 C331 C34 C41 C411 C42 CCAT E11 E12 E121 E13 E131 E132 E14 E141 E142 E143 E21 E211 E212 E31 E311 E312
E313 E41 E411 E51 E511 E512 E513 E61 E71 ECAT G15 G151 G152 G153 G154 G155 G156 G157 G158 G159 GCAT GCRIM GDEF
GDIP GDIS GENT GENV GFAS GHEA GJOB GMIL GOBIT GODD GPOL GPRO GREL GSCI GSPO GTOUR GVIO GVOTE GWEA GWELF M11 M12
M13 M131 M132 M14 M141 M142
"""
TOPICS = tuple(_CODES.split())


def load(files: LocalFiles, unique: bool = True) -> Stories:
    """Load each story once, or with `unique=False` all 30,000 rows of the files."""
    from scipy.sparse import csr_array

    with np.load(files.paths[ARCHIVE], allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    rows = np.flatnonzero(arrays["first_occurrence"]) if unique else np.arange(len(arrays["half"]))
    X = csr_array((arrays["X_data"], arrays["X_indices"], arrays["X_indptr"]), shape=tuple(arrays["X_shape"]))
    topics = arrays["Y_indices"].astype(np.int32)
    ones = np.ones(len(topics), dtype=np.int8)
    Y = csr_array((ones, topics, arrays["Y_indptr"]), shape=tuple(arrays["Y_shape"]))
    codes = tuple(str(code) for code in arrays["topic_codes_inferred"])
    return Stories(X[rows], Y[rows], arrays["half"][rows], codes)


def assemble(raw: Path, ready: Path) -> None:
    """Combine the ten files of the LIBSVM site into the archive that `load` reads."""
    from scipy.sparse import vstack

    matrices, topics = [], []
    for name in FILES:
        matrix, labels = _read_svm(raw / name)
        matrices.append(matrix)
        topics += labels
    X = vstack(matrices, format="csr")
    sizes = [matrix.shape[0] for matrix in matrices]
    arrays = {
        "X_data": X.data.astype(np.float32),
        "X_indices": X.indices.astype(np.int32),
        "X_indptr": X.indptr.astype(np.int32),
        "X_shape": np.array(X.shape, dtype=np.int64),
        "Y_indices": np.array([topic for row in topics for topic in row], dtype=np.int16),
        "Y_indptr": np.concatenate([[0], np.cumsum([len(row) for row in topics])]).astype(np.int32),
        "Y_shape": np.array([len(topics), len(TOPICS)], dtype=np.int64),
        "subset": np.repeat(np.arange(len(FILES)) // 2 + 1, sizes).astype(np.int8),
        "half": np.repeat(np.arange(len(FILES)) % 2, sizes).astype(np.int8),
        "first_occurrence": _first_occurrence(X.indices, X.indptr),
        "topic_codes_inferred": np.array(TOPICS),
    }
    with atomic_write(ready / ARCHIVE) as file:
        np.savez_compressed(file, **arrays)


def _read_svm(path: Path) -> tuple[Any, list[list[int]]]:
    from sklearn.datasets import load_svmlight_file

    try:
        with bz2.open(path) as file:
            X, labels = load_svmlight_file(
                file, n_features=N_COLUMNS, dtype=np.float32, multilabel=True, zero_based=False
            )
    except (OSError, EOFError, ValueError) as error:
        raise DataError(f"{path.name}: not a complete svmlight file: {error}") from None
    topics = [sorted(int(label) for label in row) for row in labels]
    if any(topic not in range(len(TOPICS)) for row in topics for topic in row):
        raise DataError(f"{path.name}: topics must be numbered from 0 to {len(TOPICS) - 1}")
    return X, topics


def _first_occurrence(indices: NDArray[Any], indptr: NDArray[Any]) -> NDArray[np.bool_]:
    seen: set[bytes] = set()
    first = np.zeros(len(indptr) - 1, dtype=np.bool_)
    for row in range(len(first)):
        words = indices[indptr[row] : indptr[row + 1]].astype(np.int32).tobytes()
        first[row] = words not in seen
        seen.add(words)
    return first
