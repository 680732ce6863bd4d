"""Backup and restore of feedback: consistent while a service writes, whole or not at all, nothing overwritten."""

from __future__ import annotations

import gzip
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

from sparserank.errors import DataError
from sparserank.service.backup import back_up, restore
from sparserank.service.database import Database, feedback_table
from sparserank.service.feedback import Feedback
from sparserank.service.store import FeedbackStore

from ..cli.calling import call
from .conftest import new_postgres_database, wait_until
from .process import TOKEN

ODD = "réd “car”\n\t\u2028 \U0001f697 \\ %s ; --"


def said(number, **other):
    return Feedback(**({"id": f"id-{number}", "kind": "judgment", "query": "red car", "document": "d"} | other))


def fill(url, n=3):
    store = FeedbackStore(url)
    store.add(
        said(0, query=ODD, document=ODD, kind="click", shown=(ODD, "b"), grade=1 / 3, impression="i", visitor="v")
    )
    store.add(said(1, kind="click", shown=("d",), counted=False, address="a"))
    for number in range(2, n):
        store.add(said(number))
    everything, key = store.since(0), store.key
    store.close()
    return everything, key


def content(url):
    store = FeedbackStore(url, create=False)
    try:
        return store.since(0), store.key
    finally:
        store.close()


@pytest.mark.parametrize("name", ["f.jsonl", "f.jsonl.gz", "f.jsonl.zst"])
def test_a_backup_restores_every_entry_and_the_key_of_impressions(database, tmp_path, name):
    before = fill(database)
    assert back_up(database, tmp_path / name).entries == 3
    assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    target = f"sqlite:///{tmp_path}/other.sqlite"
    assert restore(tmp_path / name, target).entries == 3
    assert content(target) == before


def test_a_backup_of_sqlite_restores_into_postgresql(tmp_path, postgres):
    source, target = f"sqlite:///{tmp_path}/f.sqlite", new_postgres_database(postgres)
    before = fill(source)
    back_up(source, tmp_path / "b.jsonl")
    restore(tmp_path / "b.jsonl", target)
    assert content(target) == before
    store = FeedbackStore(target)
    assert store.add(said(9)), "and the numbers go on"
    assert store.last() == 4
    store.close()


def test_a_restore_overwrites_only_when_told(database, tmp_path):
    fill(database)
    back_up(database, tmp_path / "b.jsonl")
    saved = content(database)
    store = FeedbackStore(database)
    store.add(said(7))
    store.close()
    later = content(database)
    with pytest.raises(DataError, match=r"has 4 feedback entries; .* --overwrite"):
        restore(tmp_path / "b.jsonl", database)
    assert content(database) == later
    restore(tmp_path / "b.jsonl", database, overwrite=True)
    assert content(database) == saved


def test_a_backup_while_writers_work_has_all_that_was_acknowledged_before_it_and_no_gap(database, tmp_path):
    store, stop = FeedbackStore(database), threading.Event()
    acknowledged: list[int] = []

    def write():
        while not stop.is_set():
            number = len(acknowledged)
            store.add(said(number))
            acknowledged.append(number)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for turn in range(3):
            wait_until(lambda turn=turn: len(acknowledged) > 10 * turn)
            known = len(acknowledged)
            backup = back_up(database, tmp_path / "b.jsonl")
            rows = [json.loads(line) for line in (tmp_path / "b.jsonl").read_text().splitlines()][1:-1]
            assert [row["number"] for row in rows] == list(range(1, backup.entries + 1))
            assert known <= backup.entries <= len(acknowledged) + 1
    finally:
        stop.set()
        writer.join()
        store.close()


def truncated(lines):
    return lines[:-1]


def shorter(lines):
    return [*lines[:2], *lines[3:]]


def changed(lines):
    return [line.replace('"grade": 1.0', '"grade": 4.0') for line in lines]


def half_a_line(lines):
    return [*lines[:2], lines[2][:20]]


def without_a_field(lines):
    return [line.replace('"document"', '"other"') for line in lines]


@pytest.mark.parametrize("spoil", [truncated, shorter, changed, half_a_line, without_a_field])
def test_a_backup_that_is_not_whole_changes_nothing(database, tmp_path, spoil):
    fill(database)
    path = tmp_path / "b.jsonl"
    back_up(database, path)
    before = content(database)
    path.write_text("".join(spoil(path.read_text().splitlines(keepends=True))))
    with pytest.raises(DataError, match=r"b\.jsonl.*(not complete|damaged)"):
        restore(path, database, overwrite=True)
    assert content(database) == before


@pytest.mark.parametrize("text", ["dear diary\n", '{"format": "another"}\n', "[]\n", ""])
def test_another_file_is_no_backup(tmp_path, text):
    (tmp_path / "b.jsonl").write_text(text)
    with pytest.raises(DataError, match=r"b\.jsonl"):
        restore(tmp_path / "b.jsonl", f"sqlite:///{tmp_path}/f.sqlite")
    assert not (tmp_path / "f.sqlite").exists()


def test_a_database_that_is_not_there_is_not_backed_up_and_not_created(tmp_path):
    with pytest.raises(DataError, match=r"nothing\.sqlite"):
        back_up(f"sqlite:///{tmp_path}/nothing.sqlite", tmp_path / "b.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_is_not_there_is_an_error_and_no_database_is_made(tmp_path, capsys):
    source = f"sqlite:///{tmp_path}/f.sqlite"
    fill(source)
    back_up(source, tmp_path / "b.jsonl")
    assert call("feedback", "restore", tmp_path / "modell", tmp_path / "b.jsonl") == 2
    assert "modell: no such file" in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "modell.feedback.sqlite").exists()


def command(*words):
    return subprocess.Popen([sys.executable, "-m", "sparserank", "feedback", *map(str, words)], start_new_session=True)


def many(url, n):
    database = Database(url)
    row = {"kind": "judgment", "query": ODD, "document": "d", "shown": "[]", "grade": 1.0, "query_digest": "",
           "received": datetime.now(UTC).replace(tzinfo=None), "impression": "", "visitor": "", "address": "",
           "counted": True}  # fmt: skip
    with database.writing() as connection:
        connection.execute(feedback_table.insert(), [row | {"number": i, "id": str(i)} for i in range(1, n + 1)])
    database.close()


def test_a_backup_that_is_killed_leaves_the_last_one_whole(database, tmp_path):
    many(database, 20_000)
    path = tmp_path / "b.jsonl"
    path.write_text("the last one\n")
    process = command("backup", "MODEL", path, "--database", database)
    wait_until(lambda: any(one.stat().st_size > 100_000 for one in tmp_path.glob(".b.jsonl.*")))
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "it was in the middle"
    assert path.read_text() == "the last one\n"
    assert back_up(database, path).entries == 20_000


def test_a_restore_that_is_killed_in_the_middle_has_not_happened(database, tmp_path):
    source = f"sqlite:///{tmp_path}/source.sqlite"
    many(source, 2_000)
    back_up(source, tmp_path / "b.jsonl")
    before = fill(database)
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    process = command("restore", "MODEL", pipe, "--database", database, "--overwrite")
    text = (tmp_path / "b.jsonl").read_bytes()
    with pipe.open("wb", buffering=0) as writer:
        writer.write(text[: 3 * len(text) // 4])  # returns when the command has read most of it
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    assert content(database) == before
    restore(tmp_path / "b.jsonl", database, overwrite=True)
    opened = Database(database)
    with opened.reading() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(feedback_table)) == 2_000
    opened.close()


def test_the_commands_round_trip_what_a_running_service_was_told(run, model, tmp_path, capsys):
    service = run("--no-learn")
    for number in range(3):
        assert service.give(number).status_code == 201
    searched = service.search().json()
    saved = tmp_path / "saved.jsonl.gz"
    assert call("feedback", "backup", model, saved, "--json") == 0
    assert json.loads(capsys.readouterr().out)["entries"] == 3
    assert TOKEN not in gzip.decompress(saved.read_bytes()).decode()
    service.end()
    assert call("feedback", "restore", model, saved) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert call("feedback", "restore", model, saved, "--overwrite") == 0
    assert "3 feedback entries restored" in capsys.readouterr().out
    again = run("--no-learn")
    assert again.client.get("/health").json()["feedback"] == 3
    assert again.give(1).json()["stored"] is False
    shown = [one["id"] for one in searched["results"]]
    click = {"id": "c", "kind": "click", "query": "red car", "shown": shown, "document": shown[0]}
    answer = again.client.post("/feedback", json=click | {"impression": searched["impression"]})
    assert answer.json()["counted"], "impressions of before stay valid"
