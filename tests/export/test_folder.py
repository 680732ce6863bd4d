"""A folder is there whole or not at all, and nobody else's is touched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparserank.errors import ConfigError, DataError
from sparserank.export.folder import Folder, _parts, export_folder, json_line


@given(st.lists(st.binary(min_size=1, max_size=9)), st.integers(12, 40))
def test_parts_hold_every_record_once_and_stay_below_the_limit(records, most):
    parts = list(_parts(records, most, b"[", b",", b"]"))
    assert all(len(part) <= most for part in parts)
    assert sum(len(part) for part in parts) == sum(map(len, records)) + len(records) + len(parts)
    plain = list(_parts(records, most, b"", b"", b""))
    assert b"".join(plain) == b"".join(records)


def test_a_record_above_the_limit_has_a_part_of_its_own():
    assert list(_parts([b"a", b"bbbb", b"c"], 2, b"", b"", b"")) == [b"a", b"bbbb", b"c"]


def test_an_export_replaces_an_export_and_nothing_of_the_old_one_stays(tmp_path):
    for name in ("old.txt", "new.txt"):
        with export_folder(tmp_path / "made") as folder:
            folder.text(name, "text")
            folder.json("export.json", {})
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == ["export.json", "new.txt"]
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


def test_where_writing_fails_the_old_export_stays_as_it_was(tmp_path):
    with export_folder(tmp_path / "made") as folder:
        folder.json("export.json", {})
    with pytest.raises(DataError, match="surrogate"), export_folder(tmp_path / "made") as folder:
        folder.lines("lines", ["fine", "\ud800"])
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["export.json"]
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


def test_a_link_stays_a_link_and_the_folder_it_leads_to_is_replaced(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real/made")
    for name in ("old.txt", "new.txt"):
        with export_folder(tmp_path / "link") as folder:
            folder.text(name, "text")
            folder.json("export.json", {})
    assert (tmp_path / "link").is_symlink()
    assert sorted(path.name for path in (tmp_path / "real/made").iterdir()) == ["export.json", "new.txt"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "real"]
    assert [path.name for path in (tmp_path / "real").iterdir()] == ["made"]


def test_where_the_new_export_cannot_take_its_place_the_old_one_is_put_back(tmp_path, monkeypatch):
    with export_folder(tmp_path / "made") as folder:
        folder.json("export.json", {"old": True})
    replace = Path.replace

    def fails(self, target):
        if Path(target).name == "made" and not self.name.endswith(".old"):
            raise OSError("no room")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(DataError, match="no room"), export_folder(tmp_path / "made") as folder:
        folder.json("export.json", {"old": False})
    assert json.loads((tmp_path / "made/export.json").read_text()) == {"old": True}
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


def test_an_error_of_the_system_is_one_sentence(tmp_path):
    with pytest.raises(DataError, match=r"made: cannot be written: no room"), export_folder(tmp_path / "made"):
        raise OSError("no room")


def test_what_is_no_export_is_not_replaced(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/letter.txt").touch()
    with pytest.raises(ConfigError, match="not an export; give a new folder"), export_folder(tmp_path / "mine"):
        pass
    with pytest.raises(ConfigError, match="is a file"), export_folder(tmp_path / "mine/letter.txt"):
        pass
    with pytest.raises(DataError, match="no such folder"), export_folder(tmp_path / "away/made"):
        pass
    (tmp_path / "empty").mkdir()
    with export_folder(tmp_path / "empty") as folder:
        folder.text("a", "b")
    assert (tmp_path / "empty/a").read_text() == "b"


def test_files_are_counted_in_bytes(tmp_path):
    folder = Folder(tmp_path)
    folder.text("deep/a.txt", "ä")
    folder.lines("b.jsonl", [{"x": "ö"}, 2])
    folder.parts("c-{}.json", [json_line(1), json_line(2)], delimiters=(b"[", b",", b"]"))
    assert folder.files == {name: (tmp_path / name).stat().st_size for name in folder.files}
    assert json.loads((tmp_path / "c-00000.json").read_bytes()) == [1, 2]
