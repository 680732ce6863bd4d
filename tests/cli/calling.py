"""The command line, called as a user does."""

import json
import re

import pytest

from sparserank.cli import main

PHASE = re.compile(r"[a-z][\w ,.=%()/:@*\[\]-]*")
"""A line that names a phase of the work."""


def call(*words):
    """The exit code."""
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    return ended.value.code


def printed(capsys, *words):
    """What --json prints on stdout; stderr has nothing but lines that name a phase."""
    capsys.readouterr()
    assert call(*words, "--json") == 0
    out, err = capsys.readouterr()
    assert unexpected(err) == []
    return json.loads(out)


def unexpected(err):
    """The lines on stderr that do not name a phase of the work."""
    return [line for line in err.splitlines() if not PHASE.fullmatch(line) or line.startswith("sparserank: ")]
