"""For the reference page: examples in docstrings (`>>> …` up to the next blank line) become code blocks."""

from __future__ import annotations

import re
from typing import Any

import griffe


class FenceExamples(griffe.Extension):
    """Put every example between fences before the docstring is read as Markdown."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring in place."""
        if obj.docstring:
            obj.docstring.value = re.sub(r"(?m)^>>> (?:.+\n?)+", _fenced, obj.docstring.value)


def _fenced(example: re.Match[str]) -> str:
    return f"```pycon\n{example.group().rstrip()}\n```\n"
