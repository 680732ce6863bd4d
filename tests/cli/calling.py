"""The command line, called as a user does."""

import json

import pytest

from sparserank.cli import main

PHASES = (
    *("reading", "searching for", "measuring", "indexing", "writing", "learning", "choosing", "starting Spark"),
    *("counting", "fold", "domination", "pamir", "ranksvm", "adarank", "rankboost", "rbf"),
)


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
    return [line for line in err.splitlines() if not line.startswith(PHASES)]
