"""The command line, called as a user does."""

import json

import pytest

from sparserank.cli import main


def call(*words):
    """The exit code."""
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    return ended.value.code


def printed(capsys, *words):
    """What --json prints, where nothing else is said."""
    assert call(*words, "--json") == 0
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)
