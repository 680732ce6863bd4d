"""What `sparserank serve` cannot use is refused at the start, in one line."""

from __future__ import annotations

import pytest

from sparserank.data.formats.beir import write_beir
from sparserank.data.records import Collection, Documents
from sparserank.service.server import listen

from ..cli.calling import call

pytestmark = pytest.mark.usefixtures("logging_as_it_was")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--host", "no.such.host.invalid"], "no.such.host.invalid"),
        (["--database", "mysql://x"], "--database must begin with sqlite:///"),
        (["--index", "nowhere.index"], "nowhere.index"),
        (["--rate", "0"], "'rate' parameter must be a number"),
        (["--token-file", "{empty}"], "is empty; it must contain a token"),
        (["--database", "sqlite:///{empty}.d/x"], "unable to open database file"),
        (["--workers", "2", "--database", "sqlite:///{text}"], "damaged, or not a database"),
    ],
)
def test_what_cannot_be_served_is_one_line_and_exit_code_2(model, tmp_path, capsys, words, told):
    empty, text = tmp_path / "empty", tmp_path / "text"
    empty.touch()
    text.write_text("no database " * 1000)
    words = [word.format(empty=empty, text=text) for word in words]
    assert call("serve", model, "--port", 0, *words) == 2
    out, err = capsys.readouterr()
    assert told in err
    assert (out, err.count("\n")) == ("", 1)


def test_a_model_that_is_not_there_is_one_line_and_exit_code_2(tmp_path, capsys):
    assert call("serve", tmp_path / "nothing", "--port", 0) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "nothing: no such file" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_an_address_that_is_taken_is_rejected_by_name(model, capsys, workers):
    sockets = listen("127.0.0.1", 0, workers)
    port = sockets[0].getsockname()[1]
    assert call("serve", model, "--port", port, "--workers", workers) == 2
    assert f"127.0.0.1:{port}: Address already in use; choose another" in capsys.readouterr().err
    for one in sockets:
        one.close()


def test_held_out_judgments_that_are_not_there_are_rejected_at_once(capsys, model):
    assert call("serve", model, "--port", "0", "--held-out", "no-such-set") == 2
    assert "no-such-set" in capsys.readouterr().err


@pytest.mark.parametrize("workers", [1, 2])
def test_held_out_judgments_of_other_documents_are_rejected_at_once(capsys, model, tmp_path, workers):
    docs = Documents.of({"elsewhere": "a green meadow"})
    write_beir(tmp_path / "other", Collection("other", docs, {"q": "meadow"}, {"dev": {"q": {"elsewhere": 1}}}))
    words = ["--held-out", tmp_path / "other", "--workers", workers]
    assert call("serve", model, "--port", "0", *words) == 2
    out, err = capsys.readouterr()
    assert "the served documents include no relevant document of other dev" in err
    assert (out, err.count("\n")) == ("", 1)
