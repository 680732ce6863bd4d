"""What was learned since a moment: the difference of two versions, worked out once."""

from __future__ import annotations

import threading
from datetime import datetime
from typing import Any

from ...text_ranker import diff, load_model
from ..served import Served

MOST = 1000
"""Changes that are kept of two versions."""


class Changes:
    """The pairs that differ between the version being served and the one that was served at a moment."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._lock = threading.Lock()
        self._known: tuple[tuple[int, int], list[dict[str, Any]]] | None = None

    def since(self, moment: datetime, k: int) -> dict[str, Any]:
        """The k largest changes, the largest first."""
        serving, versions = self._served.now(), self._served.versions
        before = versions.served_at(moment).number
        after = serving.version.number
        with self._lock:  # many may ask at once; one works it out
            if self._known is None or self._known[0] != (before, after):
                found = [] if before == after else diff(load_model(versions.path(before)), serving.ranker, MOST)
                self._known = (before, after), [change._asdict() for change in found]
            changes = self._known[1]
        return {"before": before, "after": after, "changes": changes[:k]}
