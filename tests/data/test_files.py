"""Files: packed both ways, whole or refused when read, whole or not there when written."""

from __future__ import annotations

import gzip
import lzma
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from sparserank.data.files import atomic_write, numbered_lines, read_bytes, read_text, stream_lines, write_bytes
from sparserank.errors import DataError

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.compress,
}
SUFFIXES = ["", *PACKERS]
WORDS = b"some words, not too few of them, " * 50


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_another_program_packed_is_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(PACKERS.get(suffix, bytes)(WORDS))
    assert read_bytes(path) == WORDS


@pytest.mark.parametrize("suffix", PACKERS)
def test_what_is_written_is_packed_as_its_name_says(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.txt{suffix}"
    write_bytes(path, WORDS)
    unpack = {
        ".gz": gzip.decompress,
        ".xz": lzma.decompress,
        ".zst": zstandard.ZstdDecompressor().decompressobj().decompress,
    }
    assert len(path.read_bytes()) < len(WORDS) / 2
    assert unpack[suffix](path.read_bytes()) == WORDS


@given(content=st.binary(max_size=300), suffix=st.sampled_from(SUFFIXES))
def test_written_bytes_read_back_the_same(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, suffix: str
) -> None:
    path = tmp_path_factory.mktemp("files") / f"a{suffix}"
    write_bytes(path, content)
    assert read_bytes(path) == content


@pytest.mark.parametrize("suffix", PACKERS)
def test_packed_pieces_set_end_to_end_are_one_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_bytes(PACKERS[suffix](b"one ") + PACKERS[suffix](b"two"))
    assert read_bytes(path) == b"one two"


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_packed_file_cut_off_anywhere_raises(tmp_path: Path, suffix: str) -> None:
    packed = PACKERS[suffix](bytes(range(256)))
    path = tmp_path / f"a{suffix}"
    for length in range(len(packed)):
        path.write_bytes(packed[:length])
        with pytest.raises(DataError, match=f"{path}: not a complete {suffix} file"):
            read_bytes(path)


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_file_that_is_not_packed_as_its_name_says_raises(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"plain words, not packed at all")
    with pytest.raises(DataError, match=f"not a complete {suffix} file"):
        read_bytes(path)


def test_a_packed_file_with_a_wrong_byte_raises(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(WORDS))
    packed[12] ^= 0xFF
    path = tmp_path / "a.gz"
    path.write_bytes(packed)
    with pytest.raises(DataError, match=f"{path}: not a complete .gz file"):
        read_bytes(path)


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_format_that_is_never_packed_is_written_as_it_is(tmp_path: Path, suffix: str) -> None:
    write_bytes(tmp_path / f"a{suffix}", WORDS, compress=False)
    assert (tmp_path / f"a{suffix}").read_bytes() == WORDS


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"{tmp_path / 'no'}: no such file"):
        read_bytes(tmp_path / "no")
    with pytest.raises(DataError, match=f"{tmp_path}: is a folder"):
        read_bytes(tmp_path)
    with pytest.raises(DataError, match="cannot be read"):
        read_bytes(tmp_path / ("x" * 300))


def test_a_byte_that_is_no_utf8_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\ntwo\nth\xffree\n")
    with pytest.raises(DataError, match=f"^{path}:3: not UTF-8 text .byte 0xff.$"):
        read_text(path)


def test_lines_keep_their_numbers_and_lose_their_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffone\r\n\n \t\n two\u2028still two \nthree".encode())
    assert list(numbered_lines(path)) == [(1, "one"), (4, " two\u2028still two "), (5, "three")]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.txt{suffix}"
    write_bytes(path, b"old")
    with pytest.raises(RuntimeError, match="stop"), atomic_write(path) as file:
        file.write(b"half of the n")
        raise RuntimeError("stop")
    assert read_bytes(path) == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_old_file_stands_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_bytes(path, b"old")
    with atomic_write(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_of_the_disk_is_a_data_error_that_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with pytest.raises(DataError, match=f"{path}: cannot be written: No space left on device"), atomic_write(path):
        raise OSError(28, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_or_in_the_way_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be written"):
        write_bytes(tmp_path / "no" / "a.txt", b"x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match="cannot be written: it is a folder; give the name of a file"):
        write_bytes(tmp_path / "folder", b"x")
    with pytest.raises(DataError, match="cannot be written: it is a folder; give the name of a file"):
        write_bytes("", b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_bare_name_is_written_into_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_bytes("a.txt", b"x")
    assert (tmp_path / "a.txt").read_bytes() == b"x"


def test_a_new_file_has_the_rights_the_user_asks_for(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        write_bytes(tmp_path / "a.txt", b"x")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o640


def test_the_same_content_packs_to_the_same_bytes(tmp_path: Path) -> None:
    for suffix in PACKERS:
        write_bytes(tmp_path / f"a{suffix}", WORDS)
        write_bytes(tmp_path / f"b{suffix}", WORDS)
        assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


@pytest.mark.parametrize("suffix", ["", *PACKERS])
@given(text=st.text(st.characters(codec="utf-8")) | st.text("a\n\r \ufeff\x0b"))
def test_streamed_lines_are_those_of_the_whole_file(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, text: str
) -> None:
    path = tmp_path_factory.mktemp("lines") / f"lines.txt{suffix}"
    write_bytes(path, text.encode())
    assert list(stream_lines(path)) == list(numbered_lines(path))


@pytest.mark.parametrize("suffix", PACKERS)
def test_streaming_an_incomplete_or_missing_file_raises(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"lines.txt{suffix}"
    with pytest.raises(DataError, match="no such file"):
        list(stream_lines(path))
    write_bytes(path, b"some words\n" * 1000)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match=r"not complete|not a complete"):
        list(stream_lines(path))
    path.with_name("plain").write_bytes(b"one\ntwo \xff\n")
    with pytest.raises(DataError, match=":2: not UTF-8"):
        list(stream_lines(path.with_name("plain")))
