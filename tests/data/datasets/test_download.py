"""Finding, fetching and verifying, against a real HTTP server on this machine."""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparserank.data.datasets import checksum
from sparserank.data.datasets import download as fetch
from sparserank.data.datasets.catalog import DataSet, Edition
from sparserank.errors import DataError

WORDS = b"some words, and then some more of them\n" * 100


def sha256(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def tar(files: dict[str, bytes], folders: tuple[str, ...] = ()) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name in folders:
            entry = tarfile.TarInfo(name)
            entry.type = tarfile.DIRTYPE
            archive.addfile(entry)
        for name, raw in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(raw)
            archive.addfile(entry, io.BytesIO(raw))
    return out.getvalue()


@dataclass
class Server:
    """Answers each path with what is put under it: (status, body, announced length or None)."""

    base: str = ""
    answers: dict[str, tuple[int, bytes, int | None]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def offer(self, path: str, body: bytes, status: int = 200, announced: int | None = -1) -> str:
        self.answers[path] = (status, body, len(body) if announced == -1 else announced)
        return self.base + path


@pytest.fixture
def server() -> Iterator[Server]:
    shown = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            shown.asked.append(self.path)
            status, body, announced = shown.answers.get(self.path, (404, b"", 0))
            self.send_response(status)
            if announced is not None:
                self.send_header("Content-Length", str(announced))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    shown.base = f"http://127.0.0.1:{http.server_address[1]}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield shown
    http.shutdown()
    thread.join()
    http.server_close()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPARSERANK_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SPARSERANK_DATA", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return tmp_path / "cache"


def row_of(*editions: Edition, name: str = "tiny", folder: str = "") -> DataSet:
    return DataSet(name, "a test", "small", "none", "Ask for it.", "builtins:len", folder, editions)


def words_row(*urls: str) -> DataSet:
    return row_of(Edition({"words.txt": (f"content:{sha256(WORDS)}",)}, {"words.txt.gz": urls}))


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


# --- fetching


def test_a_good_file_is_fetched_once_and_then_found_in_the_cache(server: Server, cache: Path) -> None:
    row = words_row(server.offer("/words.gz", gzip.compress(WORDS)))
    first = fetch.obtain(row)
    again = fetch.obtain(row)
    assert server.asked == ["/words.gz"]
    assert first == again
    assert files_in(cache) == ["data/tiny/words.txt.gz"]
    assert first.contents() == {"words.txt": WORDS}


def test_progress_counts_every_byte_to_the_announced_end(server: Server) -> None:
    body = gzip.compress(bytes(range(256)) * 4000, compresslevel=0)
    parts = {"bytes": (f"content:{sha256(gzip.decompress(body))}",)}
    row = row_of(Edition(parts, {"bytes.gz": (server.offer("/bytes.gz", body),)}))
    calls: list[tuple[str, int, int | None]] = []
    fetch.obtain(row, progress=lambda *call: calls.append(call))
    assert len(calls) > 1
    assert [done for _, done, _ in calls] == sorted({done for _, done, _ in calls})
    assert calls[-1] == ("bytes.gz", len(body), len(body))


def test_a_server_that_announces_no_length_is_judged_by_checksum_alone(server: Server) -> None:
    row = words_row(server.offer("/words.gz", gzip.compress(WORDS), announced=None))
    totals = []
    fetch.obtain(row, progress=lambda _, __, total: totals.append(total))
    assert set(totals) == {None}


def test_a_truncated_file_is_rejected_with_both_checksums_and_leaves_nothing(server: Server, cache: Path) -> None:
    body = gzip.compress(WORDS)
    url = server.offer("/words.gz", body[:-9], announced=len(body))
    with pytest.raises(DataError) as error:
        fetch.obtain(words_row(url))
    message = str(error.value)
    assert f"only {len(body) - 9} of {len(body)} bytes" in message
    assert sha256(body[:-9]) in message
    assert sha256(WORDS) in message
    assert files_in(cache) == []


def test_a_file_cut_short_that_looks_whole_to_http_is_rejected_too(server: Server, cache: Path) -> None:
    body = gzip.compress(WORDS)[:-9]
    with pytest.raises(DataError) as error:
        fetch.obtain(words_row(server.offer("/words.gz", body)))
    assert sha256(body) in str(error.value)
    assert sha256(WORDS) in str(error.value)
    assert files_in(cache) == []


def test_a_wrong_file_is_rejected_with_both_checksums_and_leaves_nothing(server: Server, cache: Path) -> None:
    url = server.offer("/words.gz", gzip.compress(b"other words"))
    with pytest.raises(DataError) as error:
        fetch.obtain(words_row(url))
    assert sha256(b"other words") in str(error.value)
    assert sha256(WORDS) in str(error.value)
    assert url in str(error.value)
    assert files_in(cache) == []


def test_a_file_that_is_not_there_is_rejected_with_the_servers_answer(server: Server, cache: Path) -> None:
    with pytest.raises(DataError, match=r"gone\.gz: the server answers 404"):
        fetch.obtain(words_row(server.base + "/gone.gz"))
    assert files_in(cache) == []


def test_the_next_address_is_tried_where_one_fails(server: Server) -> None:
    wrong = server.offer("/wrong.gz", gzip.compress(b"other words"))
    right = server.offer("/right.gz", gzip.compress(WORDS))
    found = fetch.obtain(words_row(server.base + "/gone.gz", wrong, right))
    assert server.asked == ["/gone.gz", "/wrong.gz", "/right.gz"]
    assert found.contents() == {"words.txt": WORDS}


def test_without_network_the_error_says_where_it_looked_and_how_to_get_it(
    server: Server, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARSERANK_DATA", str(tmp_path / "mine"))
    with pytest.raises(DataError) as error:
        fetch.obtain(words_row("http://127.0.0.1:9/nobody-listens"))
    message = str(error.value)
    for part in (str(tmp_path / "mine" / "tiny"), str(cache / "data" / "tiny"), "http://127.0.0.1:9/", "Ask for it."):
        assert part in message
    assert "\n" not in message


def test_download_false_never_asks_the_server(server: Server) -> None:
    row = words_row(server.offer("/words.gz", gzip.compress(WORDS)))
    with pytest.raises(DataError, match=r"\$SPARSERANK_DATA \(not set\)"):
        fetch.obtain(row, download=False)
    assert server.asked == []


def test_a_set_without_sources_says_how_to_get_it() -> None:
    row = row_of(Edition({"words.txt": ("content:00",)}))
    with pytest.raises(DataError, match=r"not on this machine.*Ask for it"):
        fetch.obtain(row)


def test_an_assembled_set_keeps_only_its_parts(server: Server, cache: Path) -> None:
    inside = {"cran.all.1400": b".I 1\n", "cran.qry": b".I 001\r\n", "cranqrel": b"1 1 2\n", "readme": b"thanks"}
    url = server.offer("/cran.tar.gz", gzip.compress(tar(inside)))
    parts = {
        name: (f"text:{sha256(inside[name].replace(bytes([13, 10]), bytes([10])))}",)
        for name in ("cran.all.1400", "cran.qry", "cranqrel")
    }
    edition = Edition(parts, {"cran.tar.gz": (url,)}, assemble="sparserank.data.datasets.cranfield:unpack")
    fetch.obtain(row_of(edition))
    assert files_in(cache) == ["data/tiny/cran.all.1400", "data/tiny/cran.qry", "data/tiny/cranqrel"]


@pytest.mark.parametrize(
    ("inside", "complaint"),
    [
        ({"cran.qry": b"x"}, "the download contains no cran.all.1400"),
        ({"cran.all.1400": b"y", "cran.qry": b"x", "cranqrel": b"z"}, "cran.all.1400, as downloaded: wrong checksum"),
    ],
)
def test_an_assembled_set_is_judged_by_what_came_of_it(
    server: Server, cache: Path, inside: dict[str, bytes], complaint: str
) -> None:
    url = server.offer("/cran.tar.gz", gzip.compress(tar(inside)))
    parts = {name: (f"content:{sha256(b'right')}",) for name in ("cran.all.1400", "cran.qry", "cranqrel")}
    edition = Edition(parts, {"cran.tar.gz": (url,)}, assemble="sparserank.data.datasets.cranfield:unpack")
    with pytest.raises(DataError, match=complaint):
        fetch.obtain(row_of(edition))
    assert files_in(cache) == []


def test_a_cache_that_cannot_be_made_is_named(server: Server, cache: Path) -> None:
    cache.write_bytes(b"a file where the folder should be")
    with pytest.raises(DataError, match="cannot be written"):
        fetch.obtain(words_row(server.offer("/words.gz", gzip.compress(WORDS))))


def test_a_place_in_the_cache_that_is_taken_is_named_and_left_alone(server: Server, cache: Path) -> None:
    (cache / "data").mkdir(parents=True)
    (cache / "data" / "tiny").write_bytes(b"mine")
    with pytest.raises(DataError, match=r"data/tiny: cannot be written"):
        fetch.obtain(words_row(server.offer("/words.gz", gzip.compress(WORDS))))
    assert files_in(cache) == ["data/tiny"]


def test_the_cache_is_the_systems_unless_the_environment_says_otherwise(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fetch.cache_folder() == cache
    monkeypatch.delenv("SPARSERANK_CACHE")
    assert fetch.cache_folder().name == "sparserank"


# --- finding


def test_the_users_folder_comes_before_the_cache(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = words_row(server.offer("/words.gz", gzip.compress(WORDS)))
    fetch.obtain(row)
    own = tmp_path / "mine" / "letor" / "tiny"
    own.mkdir(parents=True)
    (own / "words.txt").write_bytes(WORDS)
    monkeypatch.setenv("SPARSERANK_DATA", str(tmp_path / "mine"))
    assert fetch.obtain(replace(row, folder="letor/tiny")).folder == own
    named = tmp_path / "mine" / "tiny"
    named.mkdir()
    (named / "words.txt").write_bytes(WORDS)
    assert fetch.obtain(replace(row, folder="letor/tiny")).folder == named, "by its name alone, too"


@pytest.mark.parametrize(("ending", "pack"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)])
def test_a_part_may_lie_in_any_packing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, pack: object
) -> None:
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / f"words.txt{ending}").write_bytes(pack(WORDS))  # type: ignore[operator]
    monkeypatch.setenv("SPARSERANK_DATA", str(tmp_path))
    assert fetch.obtain(words_row()).contents() == {"words.txt": WORDS}


def test_a_damaged_file_of_the_users_is_named_and_nothing_is_fetched(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tiny").mkdir()
    damaged = tmp_path / "tiny" / "words.txt"
    damaged.write_bytes(WORDS[:-1])
    monkeypatch.setenv("SPARSERANK_DATA", str(tmp_path))
    with pytest.raises(DataError, match="wrong checksum") as error:
        fetch.obtain(words_row(server.offer("/words.gz", gzip.compress(WORDS))))
    for part in (str(damaged), sha256(WORDS), sha256(WORDS[:-1])):
        assert part in str(error.value)
    assert server.asked == []


def test_a_set_with_a_part_missing_is_not_there_and_the_part_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "one").write_bytes(b"1")
    monkeypatch.setenv("SPARSERANK_DATA", str(tmp_path))
    row = row_of(Edition({"one": (f"content:{sha256(b'1')}",), "two": (f"content:{sha256(b'2')}",)}))
    assert fetch.locate(row) is None
    with pytest.raises(DataError, match=r"\(no two\)"):
        fetch.obtain(row)


def test_any_edition_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"a.txt": b"aa", "b.txt": b"bb"}
    packed = Edition({"both.tar": ("members:00",)})
    loose = Edition({name: (f"content:{sha256(raw)}",) for name, raw in files.items()})
    (tmp_path / "tiny").mkdir()
    for name, raw in files.items():
        (tmp_path / "tiny" / name).write_bytes(raw)
    monkeypatch.setenv("SPARSERANK_DATA", str(tmp_path))
    assert fetch.obtain(row_of(packed, loose)).contents() == files


# --- checksums


@given(st.dictionaries(st.text("abc/", min_size=1, max_size=6), st.binary(max_size=9), max_size=5), st.randoms())
def test_the_digest_of_members_is_that_of_their_sorted_names_and_sums(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes], order: object
) -> None:
    files = {f"m{name.replace('/', '-')}": raw for name, raw in files.items()}
    names = list(files)
    order.shuffle(names)  # type: ignore[attr-defined]
    folder = tmp_path_factory.mktemp("archives")
    shuffled = {name: files[name] for name in names}
    (folder / "a.tar").write_bytes(tar(shuffled))
    (folder / "a.tar.gz").write_bytes(gzip.compress(tar({f"./{name}": files[name] for name in files}, ("./d",))))
    with zipfile.ZipFile(folder / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("d")
        for name in names:
            archive.writestr(name, files[name])
    listed = "".join(f"{sha256(files[name])}  {name}\n" for name in sorted(files))
    for name in ("a.tar", "a.tar.gz", "a.zip"):
        assert checksum.digest(folder / name, "members") == f"members:{sha256(listed.encode())}"
        assert checksum.members(folder / name) == files


def test_text_digests_do_not_see_line_endings_and_content_digests_do(tmp_path: Path) -> None:
    (tmp_path / "unix").write_bytes(b"a\nb\n")
    (tmp_path / "dos").write_bytes(b"a\r\nb\r\n")
    assert checksum.digest(tmp_path / "unix", "text") == checksum.digest(tmp_path / "dos", "text")
    assert checksum.digest(tmp_path / "unix", "content") != checksum.digest(tmp_path / "dos", "content")


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.zip", "a.npz"])
def test_what_is_no_archive_is_rejected_with_its_own_checksum(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"this is no archive of any kind" * 20)
    with pytest.raises(DataError) as error:
        checksum.verify(tmp_path / name, ("members:00",))
    assert checksum.digest(tmp_path / name, "file") in str(error.value)
    assert "members:00" in str(error.value)


def test_a_truncated_tar_raises(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(tar({"one": WORDS})[:2000])
    with pytest.raises(DataError, match="not a complete archive"):
        checksum.members(tmp_path / "a.tar")


def test_any_one_accepted_digest_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "words.gz"
    path.write_bytes(gzip.compress(WORDS))
    right = {kind: checksum.digest(path, kind) for kind in ("file", "content")}
    for kind in right:
        checksum.verify(path, ("file:00", right[kind], "content:00", "text:00"))
    with pytest.raises(DataError, match="expected text:00"):
        checksum.verify(path, ("file:00", "content:00", "text:00"))
