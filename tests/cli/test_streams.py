"""The command in a shell: readers that go away, disks that are full, encodings that know little."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from threading import Timer

import pytest

from sparserank.cli import output
from sparserank.data.formats.beir import write_beir
from sparserank.data.records import Collection, Documents

from .calling import call, unexpected

SPARSERANK = f"'{sys.executable}' -m sparserank"
SOURCE = str(Path(output.__file__).parents[2])
LONE = "half \ud800 a pair, naïve"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    where = tmp_path_factory.mktemp("streams")
    documents = Documents.of({f"d{i}": {"title": "é", "text": "apple"} for i in range(5)})
    write_beir(where / "fruit", Collection("fruit", documents, {"q": "apple"}, {"dev": {"q": {"d1": 1.0}}}))
    line = json.dumps({"_id": "odd", "title": LONE, "text": "plum"}) + "\n"
    with (where / "fruit/corpus.jsonl").open("a") as corpus:
        corpus.write(line)
    done = shell(f"{SPARSERANK} train fruit --output m", where)
    assert done.returncode == 0, done.stderr
    return where / "m"


def shell(command, folder, **more):
    """What a shell makes of the command, with Python's usual buffers."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | more
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, capture_output=True, encoding="utf-8", errors="replace", env=env
    )


@pytest.mark.parametrize("unbuffered", [{}, {"PYTHONUNBUFFERED": "1"}])
@pytest.mark.parametrize("words", ["search m apple --json", "search m apple", "evaluate m fruit", "--help"])
def test_a_reader_that_has_gone_is_no_error(model, words, unbuffered):
    done = shell(f"{SPARSERANK} {words} | true; exit ${{PIPESTATUS[0]}}", model.parent, **unbuffered)
    assert (done.returncode, unexpected(done.stderr)) == (0, [])


@pytest.mark.parametrize("words", ["search m apple --json", "search m apple", "evaluate m fruit", "--help"])
def test_a_full_disk_is_one_line_and_exit_code_2(model, words):
    done = shell(f"{SPARSERANK} {words} > /dev/full", model.parent)
    assert (done.returncode, unexpected(done.stderr)) == (2, ["sparserank: No space left on device"])


@pytest.mark.parametrize(
    ("command", "code"),
    [("search m apple >&-", 0), ("search m apple --json >&-", 0), ("nonsense 2>&-", 2), ("nonsense 2>/dev/full", 2)],
)
def test_a_stream_that_takes_nothing_changes_no_exit_code(model, command, code):
    done = shell(f"{SPARSERANK} {command}", model.parent)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_any_text_is_printed_in_any_encoding_and_json_stays_json(model, encoding):
    done = shell(f"{SPARSERANK} search m plum --json", model.parent, PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["results"][0]["title"] == LONE
    shown = shell(f"{SPARSERANK} search m plum", model.parent, PYTHONIOENCODING=encoding)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "half \\ud800 a pair" in shown.stdout
    wrong = shell(f"{SPARSERANK} explain m plum 'naïve'", model.parent, PYTHONIOENCODING=encoding)
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("sparserank: there is no document 'na")


def test_json_is_written_as_people_read_it_where_the_encoding_allows(model):
    assert "é" in shell(f"{SPARSERANK} search m apple --json", model.parent, PYTHONIOENCODING="utf-8").stdout


def test_in_a_pipe_each_phase_is_one_line_on_stderr(model):
    done = shell(f"{SPARSERANK} evaluate m fruit --json | cat", model.parent)
    assert done.stderr.splitlines() == ["reading fruit", "searching for 1 query", "measuring"]
    assert json.loads(done.stdout)["queries"] == 1


@pytest.mark.parametrize("hold", [0.0, 60.0])
def test_a_mistake_that_is_found_at_once_is_the_only_line(model, monkeypatch, capsys, hold):
    monkeypatch.setattr(output, "HOLD_S", hold)
    monkeypatch.setattr(output, "Timer", Timer if hold else ElapsedTimer)
    monkeypatch.chdir(model.parent)
    assert call("evaluate", "m", "fruit", "--split", "none") == 2
    err = capsys.readouterr().err.splitlines()
    assert err[-1] == "sparserank: fruit has no split 'none'; it has: dev"
    assert err[:-1] == ([] if hold else ["reading fruit"])


class ElapsedTimer(Timer):
    """A timer whose time is over when it starts."""

    def start(self):
        self.function()

    def is_alive(self):
        return False


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """A collection whose queries are found by the lexical score, so that pairs cannot help."""
    where = tmp_path_factory.mktemp("names")
    docs = {f"d{i}": f"name{i} word{i % 7} word{i % 5}" for i in range(60)}
    queries = {f"q{i}": f"name{i}" for i in range(40)}
    qrels = {"train": {f"q{i}": {f"d{i}": 1.0} for i in range(40)}}
    write_beir(where / "names", Collection("names", Documents.of(docs), queries, qrels))
    return where


NOTES = (
    r"training needs about .*: texts .*, lists [\d.]+ [kMG]B",
    "word pairs are unlikely to help here: nDCG@10 on .* pairs",
)


def test_in_a_pipe_notes_are_whole_lines(names):
    done = shell(f"{SPARSERANK} train names --output m | cat", names, PYTHONPATH=SOURCE)
    for note in NOTES:
        assert [line for line in done.stderr.splitlines() if re.fullmatch(note, line)]


@pytest.mark.skipif(shutil.which("script") is None, reason="`script` runs a command in a terminal; install util-linux")
def test_on_a_terminal_notes_stay_on_lines_of_their_own(names):
    done = shell(f'script -qec "{SPARSERANK} train names --output m2" /dev/null < /dev/null', names, PYTHONPATH=SOURCE)
    lines = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", line) for line in done.stdout.splitlines()]
    for note in NOTES:
        assert [line for line in lines if re.fullmatch(note, line)]


def test_details_of_a_phase_are_no_lines(capsys):
    lines = output.PhaseLines()
    for message in ("reading", "fold 1: a", "fold 1: b", "fold 2: a"):
        lines.report(message)
    lines.end(succeeded=True)
    assert capsys.readouterr().err.splitlines() == ["reading", "fold 1", "fold 2"]
