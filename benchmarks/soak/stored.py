"""Checks after a fault: every acknowledged feedback is stored once and unchanged, and all files can be read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from sparserank.errors import SparseRankError
from sparserank.versions import VersionRegistry


def faults(
    model: Path, database: str, said: Mapping[str, Mapping[str, Any]], acknowledged: Collection[str]
) -> list[str]:
    """What is wrong with the feedback, the model or the index; nothing, it is hoped."""
    return [*feedback_faults(database, said, acknowledged), *model_faults(model)]


def feedback_faults(database: str, said: Mapping[str, Mapping[str, Any]], acknowledged: Collection[str]) -> list[str]:
    """Feedback that is lost, there twice, or other than it was said; and a database that is not whole."""
    engine = sa.create_engine(database)
    with engine.connect() as connection:
        is_sqlite = engine.dialect.name == "sqlite"
        whole = connection.scalar(sa.text("PRAGMA integrity_check")) if is_sqlite else "ok"
        rows = connection.execute(
            sa.text("SELECT number, id, query, document FROM sparserank_feedback ORDER BY number")
        )
        stored = [tuple(row) for row in rows]
    engine.dispose()
    ids = [row[1] for row in stored]
    wrong = [] if whole == "ok" else [f"{database}: {whole}"]
    wrong += [f"lost: {one}" for one in sorted(set(acknowledged) - set(ids))]
    wrong += (
        [f"stored twice: {one}" for one in sorted({one for one in ids if ids.count(one) > 1})] if _twice(ids) else []
    )
    wrong += [
        f"not as it was said: {one}"
        for _, one, query, document in stored
        if (said[one]["query"], said[one]["document"]) != (query, document)
    ]
    if [row[0] for row in stored] != list(range(1, len(stored) + 1)):
        wrong.append("the numbers of feedback have gaps")
    return wrong


def model_faults(model: Path) -> list[str]:
    """Versions, or their index, that cannot be loaded."""
    try:
        versions = VersionRegistry.open(model)
        found = {one.number: versions.load(one.number).search("function that returns a red car", 1)
                 for one in versions.list()}  # fmt: skip
    except (SparseRankError, OSError) as error:
        return [str(error)]
    return [f"version {number} finds nothing" for number, hits in found.items() if not hits]


def _twice(ids: list[str]) -> bool:
    return len(set(ids)) < len(ids)
