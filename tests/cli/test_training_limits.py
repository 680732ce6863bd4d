"""`sparserank train` at its limits: little memory, Ctrl-C, a document as long as a library."""

import re
import signal
import subprocess
import sys
import time

import pytest

import sparserank as sr
from sparserank.data.formats.beir import write_beir
from sparserank.data.records import Collection, Documents
from sparserank.errors import DataError

from ..text_ranker.test_checkpoint import synonyms
from .calling import call

PLAIN = ("--stem", "none", "--stop-words", "none", "--max-pairs", "2000")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    docs, queries, qrels = synonyms()
    where = tmp_path_factory.mktemp("limits") / "synonyms"
    write_beir(where, Collection("synonyms", Documents.of(docs), queries, {"train": qrels}))
    return where


@pytest.mark.parametrize("packed", [False, True])
def test_documents_that_cannot_fit_are_not_read(tmp_path, capsys, packed):
    """The line names what is there and what to do; the corpus would be an error if it were read."""
    where = tmp_path / "large"
    where.mkdir()
    (where / f"corpus.jsonl{'.xz' if packed else ''}").write_bytes(b"\0" * 3_000_000)
    (where / "queries.jsonl").write_text("")
    assert call("train", where, "--memory", "2MB", "--output", tmp_path / "m") == 2
    assert capsys.readouterr().err == (
        f"sparserank: the documents of {where} have about {'12 MB' if packed else '3 MB'} of text or more, and the "
        "memory limit is 2 MB; raise --memory, or train on Spark (--engine spark)\n"
    )
    assert call("train", where, "--memory", "13MB", "--output", tmp_path / "m") == 2
    assert "corpus.jsonl" in capsys.readouterr().err


def test_a_known_collection_that_cannot_fit_is_not_read(tmp_path, capsys, real):
    real("winapi")
    assert call("train", "winapi", "--memory", "20MB", "--output", tmp_path / "m") == 2
    assert capsys.readouterr().err.startswith("sparserank: the documents of winapi have about 36 MB of text or more")


def test_a_limit_below_the_least_plan_is_one_line(folder, tmp_path, capsys):
    assert call("train", folder, "--memory", "300kB", *PLAIN, "--output", tmp_path / "m") == 2
    assert re.fullmatch(
        r"sparserank: training needs at least [\d.]+ MB for 300 documents and 240 queries, and the memory limit is "
        r"0\.3 MB; raise memory_limit \(--memory\), .*",
        capsys.readouterr().err.splitlines()[-1],
    )
    assert not (tmp_path / "m").exists()


def test_ctrl_c_and_the_same_command_again_give_the_same_model(folder, tmp_path):
    words = [sys.executable, "-m", "sparserank", "train", str(folder), *PLAIN, "--output"]
    command = [*words, str(tmp_path / "m"), "--checkpoint", str(tmp_path / "stages")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not (tmp_path / "stages").exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    said = f"sparserank: interrupted; the same command continues from {tmp_path / 'stages'}"
    assert err.splitlines()[-1] == said
    assert "Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["stages"]
    subprocess.run(command, check=True, capture_output=True)
    assert not (tmp_path / "stages").exists()
    subprocess.run([*words, str(tmp_path / "whole")], check=True, capture_output=True)
    one, other = (sr.load(tmp_path / name) for name in ("m", "whole"))
    assert one.model_.n_pairs > 0
    assert one.fingerprint() == other.fingerprint()


def test_a_document_of_a_million_words_is_learned_from(tmp_path, capsys):
    docs, queries, qrels = synonyms(60, 60)
    docs["library"] = " ".join(f"w{i % 5_000}" for i in range(10**6))
    write_beir(tmp_path / "long", Collection("long", Documents.of(docs), queries, {"train": qrels}))
    assert call("train", tmp_path / "long", *PLAIN, "--output", tmp_path / "m") == 0
    capsys.readouterr()
    hits = sr.load(tmp_path / "m").search("w4999", k=1)
    assert [hit.id for hit in hits] == ["library"]


def test_grades_of_removed_documents_are_an_error_and_change_nothing():
    docs, queries, qrels = synonyms(60, 60)
    ranker = sr.TextRanker(analyzer=sr.Analyzer(stem=None, stop_words=None), max_pairs=500).fit(docs, queries, qrels)
    ranker.remove(["d0"])
    before = ranker.fingerprint(), repr(ranker.search("w1 w2"))
    with pytest.raises(DataError, match="1 judged document not among the documents, the first is 'd0'"):
        ranker.partial_fit(None, queries, {query: {"d0": 1} for query in queries})
    assert (ranker.fingerprint(), repr(ranker.search("w1 w2"))) == before
