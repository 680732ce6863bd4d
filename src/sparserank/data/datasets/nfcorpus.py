"""NFCorpus, medical search, in either of two editions that differ in text, queries and splits.

- A BEIR folder made from the authors' own release: titles as queries, text lower-cased and without stop words,
  splits train and dev.
- BEIR's `nfcorpus.zip`, which is what is fetched: text as it was written, splits train, dev and test.

`Collection.versions["nfcorpus"]` says which one it is; their figures must not be compared.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from ...errors import DataError
from ..records import Collection
from .checksum import members
from .download import Found

TITLES, BEIR = "authors' release, title queries", "BEIR"


def load(found: Found) -> Collection:
    """The collection, by the reader of BEIR folders."""
    from ..formats.beir import read_beir

    if "nfcorpus.zip" not in found.paths:
        return replace(read_beir(found.folder), name="nfcorpus", versions={"nfcorpus": TITLES})
    with TemporaryDirectory() as folder:
        for name, raw in members(found.paths["nfcorpus.zip"]).items():
            target = Path(folder, *name.split("/"))
            if not target.resolve().is_relative_to(Path(folder).resolve()):
                raise DataError(f"{found.paths['nfcorpus.zip']}: the member {name!r} would be written elsewhere")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(raw)
        return replace(read_beir(Path(folder, "nfcorpus")), name="nfcorpus", versions={"nfcorpus": BEIR})
