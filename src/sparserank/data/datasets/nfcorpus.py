"""NFCorpus, medical search, in one of two editions with different text, queries and splits.

- A BEIR folder from the authors' release: titles as queries, lower-case text without stop words, splits train and dev.
- BEIR's `nfcorpus.zip`, which is downloaded: original text, splits train, dev and test.

`Collection.versions["nfcorpus"]` names the edition. Do not compare figures of the two.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from ...errors import DataError
from ..records import Collection
from .checksum import members
from .download import LocalFiles

TITLES, BEIR = "authors' release, title queries", "BEIR"


def load(files: LocalFiles) -> Collection:
    """Load the collection from a BEIR folder or from nfcorpus.zip."""
    from ..formats.beir import read_beir

    if "nfcorpus.zip" not in files.paths:
        return replace(read_beir(files.folder), name="nfcorpus", versions={"nfcorpus": TITLES})
    with TemporaryDirectory() as folder:
        for name, raw in members(files.paths["nfcorpus.zip"]).items():
            target = Path(folder, *name.split("/"))
            if not target.resolve().is_relative_to(Path(folder).resolve()):
                raise DataError(f"{files.paths['nfcorpus.zip']}: the member {name!r} has a path outside the archive")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(raw)
        return replace(read_beir(Path(folder, "nfcorpus")), name="nfcorpus", versions={"nfcorpus": BEIR})
