"""The named data sets: the registry, what a user can ask of it, and every set on the real thing."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import lzma
import struct
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import sparserank as sr
from sparserank.data.datasets import cranfield, images, letor_sets, newsgroups, nfcorpus, rcv1
from sparserank.data.datasets.catalog import CATALOG, DataSet, Edition, import_function
from sparserank.data.datasets.checksum import members, verify
from sparserank.data.datasets.download import LocalFiles
from sparserank.errors import ConfigError, DataError

NAMES = ("20newsgroups", "mnist", "digits", "rcv1", "mq2007", "mq2008", "ohsumed", "nfcorpus", "cranfield")
NAMES += ("esci", "wands", "pydocs")
Real = Callable[[str], Path]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSERANK_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def nothing_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARSERANK_DATA", raising=False)


def found(folder: Path, **files: bytes) -> LocalFiles:
    """A set with these files; `__` in a name stands for a dot."""
    folder.mkdir(exist_ok=True)
    paths = {name.replace("__", "."): folder / name.replace("__", ".") for name in files}
    for path, raw in zip(paths.values(), files.values(), strict=True):
        path.write_bytes(raw)
    return LocalFiles(folder, paths)


def tar(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, raw in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(raw)
            archive.addfile(entry, io.BytesIO(raw))
    return out.getvalue()


# --- the catalog


def test_the_catalog_has_the_twelve_sets() -> None:
    assert tuple(CATALOG) == NAMES
    assert all(name == row.name for name, row in CATALOG.items())


@pytest.mark.parametrize("row", CATALOG.values(), ids=lambda row: row.name)
def test_every_entry_is_complete(row: DataSet) -> None:
    assert callable(import_function(row.loader))
    assert row.what and row.size and row.terms and row.how.endswith(".")
    assert bool(row.editions) != bool(row.location)
    for edition in row.editions:
        assert not edition.assemble or callable(import_function(edition.assemble))
        for digests in edition.parts.values():
            for digest in digests:
                kind, _, number = digest.partition(":")
                if kind == "begins":
                    assert number
                    continue
                assert kind in ("file", "content", "text", "members")
                assert len(bytes.fromhex(number)) == 32
        for urls in edition.sources.values():
            assert all(url.startswith(("https://", "http://")) for url in urls)
    fetched = any(edition.sources for edition in row.editions)
    assert fetched == ("ownloaded on first use" in row.how)
    assert ("Not downloaded" in row.how) == (bool(row.editions) and not fetched)


def test_an_unknown_name_is_rejected_with_the_nearest_ones() -> None:
    with pytest.raises(DataError, match=r"unknown data set 'minst'; did you mean 'mnist'\?"):
        sr.data.load("minst")
    with pytest.raises(DataError, match=r"did you mean 'mq200[78]' or 'mq200[78]'"):
        sr.data.load("MQ2009")
    with pytest.raises(DataError, match="the names are: 20newsgroups, mnist"):
        sr.data.load("zzz")
    with pytest.raises(DataError, match=r"unknown data set \['a'\]"):
        sr.data.load(["a"])  # type: ignore[arg-type]


def test_an_unknown_option_is_rejected_before_anything_is_read(nothing_here: None) -> None:
    with pytest.raises(ConfigError, match="'ohsumed' has no option 'nrom'; its options: fold, norm"):
        sr.data.load("ohsumed", nrom="Feature-min")
    with pytest.raises(ConfigError, match="its options: none"):
        sr.data.load("digits", fold=1)


@pytest.mark.parametrize("name", [name for name in NAMES if CATALOG[name].editions])
def test_a_set_that_is_not_here_says_where_it_was_looked_for(name: str, nothing_here: None, tmp_path: Path) -> None:
    with pytest.raises(DataError) as error:
        sr.data.load(name, download=False)
    assert str(tmp_path / "cache" / "data" / name) in str(error.value)
    assert "$SPARSERANK_DATA" in str(error.value)
    assert CATALOG[name].how in str(error.value)


def test_the_list_says_where_each_set_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSERANK_DATA", str(tmp_path))
    for name in ("cran.all.1400.xz", "cran.qry", "cranqrel"):
        (tmp_path / "cranfield").mkdir(exist_ok=True)
        (tmp_path / "cranfield" / name).write_bytes(b"")
    rows = {row.name: row for row in sr.data.list_datasets()}
    assert tuple(rows) == NAMES
    assert rows["cranfield"].path == tmp_path / "cranfield"
    assert rows["mnist"].path is None
    assert rows["pydocs"].path is None
    digits = rows["digits"].path
    assert digits is not None and digits.is_file()


def test_a_loader_gets_what_was_found_and_the_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = tar({f"S{number}.txt": f"1 qid:{number} 46:0.5\n".encode() for number in (1, 2, 3, 4, 5)})
    parts = {"sets.tar": (f"file:{hashlib.sha256(raw).hexdigest()}",)}
    row = DataSet("tiny", "", "", "", "", "sparserank.data.datasets.letor_sets:mq2008", editions=(Edition(parts),))
    monkeypatch.setitem(CATALOG, "tiny", row)
    monkeypatch.setenv("SPARSERANK_DATA", str(tmp_path))
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "sets.tar").write_bytes(raw)
    assert sr.data.load("tiny", fold=2).test.qid.tolist() == [1]
    with pytest.raises(ConfigError, match="'fold' parameter must be one of 1, 2, 3, 4, 5"):
        sr.data.load("tiny", fold=6)


def test_the_package_and_its_list_import_nothing_heavy() -> None:
    code = (
        "import sys, sparserank as sr; assert 'load' in dir(sr.data); sr.data.list_datasets(); "
        "print(*{'scipy', 'sklearn', 'numba', 'polars', 'pyarrow'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_every_public_name_of_the_package_is_there() -> None:
    assert [name for name in sr.data.__all__ if not hasattr(sr.data, name)] == []
    assert sr.data.__all__ == sorted(sr.data.__all__)
    with pytest.raises(AttributeError, match="no attribute 'laod'"):
        _ = sr.data.laod


# --- each set, small


def test_newsgroups_are_ordered_by_group_then_number(tmp_path: Path) -> None:
    files = {
        "20news-bydate-train/rec.autos/12": b"car",
        "20news-bydate-train/alt.atheism/9": b"caf\xe9",
        "20news-bydate-train/alt.atheism/10": b"ten",
        "20news-bydate-test/rec.autos/7": b"van",
    }
    split = newsgroups.load(found(tmp_path, a__tar=tar(files)))
    assert split.train.ids == ("alt.atheism/10", "alt.atheism/9", "rec.autos/12")
    assert split.train.items == ("ten", "café", "car")
    assert split.train.y.tolist() == [0, 0, 1]
    assert split.test.y.tolist() == [1]
    assert split.train.classes == split.test.classes == ("alt.atheism", "rec.autos")
    with pytest.raises(DataError, match="<part>/<group>/<number>"):
        newsgroups.load(found(tmp_path, a__tar=tar({"readme": b""})))


def idx(array: np.ndarray[Any, Any]) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def test_images_are_rows_of_bytes(tmp_path: Path) -> None:
    pixels = np.arange(3 * 2 * 2, dtype=np.uint8).reshape(3, 2, 2)
    labels = np.array([7, 0, 9], dtype=np.uint8)
    files = {"train-images-idx3-ubyte": idx(pixels), "train-labels-idx1-ubyte": idx(labels)}
    files |= {name.replace("train", "t10k"): raw for name, raw in files.items()}
    split = images.mnist(found(tmp_path, **files))
    assert_array_equal(split.train.items, pixels.reshape(3, 4))
    assert split.train.items.dtype == np.uint8
    assert split.test.y.tolist() == [7, 0, 9]
    files["t10k-labels-idx1-ubyte"] = idx(labels[:2])
    with pytest.raises(DataError, match="t10k: expected one label per image"):
        images.mnist(found(tmp_path, **files))


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        (b"", "got nothing"),
        (b"\x00\x00\x0d\x01", "got 00 00 0d"),
        (b"\x00\x00\x08\x02\x00\x00\x00\x01", "the header is truncated"),
        (b"\x00\x00\x08\x01\x00\x00\x00\x03ab", "announces 3 bytes; got 2"),
    ],
)
def test_a_bad_idx_file_is_rejected_by_name(raw: bytes, complaint: str) -> None:
    with pytest.raises(DataError, match=f"^labels: .*{complaint}"):
        images.parse_idx(raw, "labels")


def test_digits_are_scikit_learns_in_its_order() -> None:
    from sklearn.datasets import load_digits

    split = sr.data.load("digits")
    pixels, labels = load_digits(return_X_y=True)
    assert (len(split.train), len(split.test)) == (1297, 500)
    assert_array_equal(np.vstack([split.train.items, split.test.items]), pixels)
    assert_array_equal(np.concatenate([split.train.y, split.test.y]), labels)


def test_a_missing_scikit_learn_has_no_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "find_spec", lambda name: None)
    assert images.digits_file() is None


CRANFIELD = {
    "cran__all__1400": b".I 1\n.T\nflow on\nwings .\n.W\nflow .\n.I 2\n.T\nheat\n.W\nslabs\n",
    "cran__qry": b".I 004\n.W\nheat in\nslabs .\n",
    "cranqrel": b"1 2 1\n1 1 4\n",
}


def test_cranfields_queries_are_numbered_by_position(tmp_path: Path) -> None:
    collection = cranfield.load(found(tmp_path, **CRANFIELD))
    assert collection.queries == {"1": "heat in slabs ."}
    assert collection.qrels == {"all": {"1": {"2": 4.0, "1": 1.0}}}
    assert collection.documents.titles == ("flow on wings .", "heat")


@pytest.mark.parametrize("judgment", [b"2 1 1\n", b"1 3 1\n"])
def test_cranfields_judgments_must_lead_somewhere(tmp_path: Path, judgment: bytes) -> None:
    with pytest.raises(DataError, match="cranqrel: query"):
        cranfield.load(found(tmp_path, **{**CRANFIELD, "cranqrel": judgment}))


def beir(folder: str) -> dict[str, bytes]:
    return {
        f"{folder}corpus.jsonl": json.dumps({"_id": "d", "title": "T", "text": "words"}).encode() + b"\n",
        f"{folder}queries.jsonl": json.dumps({"_id": "q", "text": "word"}).encode() + b"\n",
        f"{folder}qrels/train.tsv": b"query-id\tcorpus-id\tscore\nq\td\t2\n",
    }


def test_nfcorpus_says_which_edition_it_is(tmp_path: Path) -> None:
    for name, raw in beir("").items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(raw)
    titles = nfcorpus.load(LocalFiles(tmp_path, {name: tmp_path / name for name in beir("")}))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, raw in beir("nfcorpus/").items():
            archive.writestr(name, raw)
    packed = nfcorpus.load(found(tmp_path / "zip", nfcorpus__zip=out.getvalue()))
    assert titles.versions != packed.versions
    assert titles.name == packed.name == "nfcorpus"
    assert titles.qrels == packed.qrels == {"train": {"q": {"d": 2.0}}}
    assert titles.documents == packed.documents


def test_no_member_of_an_archive_is_written_elsewhere(tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("../escaped", b"")
    with pytest.raises(DataError, match="outside the archive"):
        nfcorpus.load(found(tmp_path, nfcorpus__zip=out.getvalue()))


@pytest.mark.parametrize("norm", ["QueryLevelNorm", "Feature-min"])
def test_ohsumeds_folds_turn_as_its_authors_say(tmp_path: Path, norm: str) -> None:
    names = {f"{norm}/Fold{fold}/{letor_sets.OHSUMED_FILES[norm]}": fold for fold in (1, 2, 3, 4, 5)}
    rows = {name: f"2 qid:{fold} 1:0.25 45:{fold} #docid = {fold}\n".encode() for name, fold in names.items()}
    folds = letor_sets.ohsumed(found(tmp_path, all__tar=tar(rows)), norm=norm)
    assert isinstance(folds, tuple)
    for number, fold in enumerate(folds, start=1):
        after = [(number + step) % 5 + 1 for step in range(4)]
        assert fold.test.qid.tolist() == [number]
        assert fold.train.qid.tolist() == after[:3]
        assert fold.vali.qid.tolist() == after[3:]
        assert fold.train.X.shape == (3, 45)
        assert fold.train.X.toarray()[:, 44].tolist() == after[:3]
        assert len(fold.train.comments) == 3
    with pytest.raises(ConfigError, match="'norm'"):
        letor_sets.ohsumed(found(tmp_path, all__tar=tar(rows)), norm="none")


def test_mq2008s_folds_turn_as_its_authors_say(tmp_path: Path) -> None:
    rows = {f"S{part}.txt": f"0 qid:{part} 1:1\n".encode() for part in (1, 2, 3, 4, 5)}
    folds = letor_sets.mq2008(found(tmp_path, all__tar=tar(rows)))
    assert isinstance(folds, tuple)
    assert [(*fold.train.qid, *fold.vali.qid, *fold.test.qid) for fold in folds] == [
        (1, 2, 3, 4, 5), (2, 3, 4, 5, 1), (3, 4, 5, 1, 2), (4, 5, 1, 2, 3), (5, 1, 2, 3, 4),
    ]  # fmt: skip


def svm_files(folder: Path, lines: list[list[str]]) -> None:
    folder.mkdir()
    for name, rows in zip(rcv1.FILES, lines, strict=True):
        (folder / name).write_bytes(bz2.compress("".join(row + "\n" for row in rows).encode()))


def test_rcv1_is_put_together_from_ten_files_and_each_story_counts_once(tmp_path: Path) -> None:
    lines = [[f"{number},33 {number + 1}:0.5 47236:0.25"] for number in range(10)]
    lines[3].append("7 1:0.125 47236:0.75")
    svm_files(tmp_path / "raw", lines)
    (tmp_path / "ready").mkdir()
    rcv1.assemble(tmp_path / "raw", tmp_path / "ready")
    here = LocalFiles(tmp_path / "ready", {rcv1.ARCHIVE: tmp_path / "ready" / rcv1.ARCHIVE})
    stories, everything = rcv1.load(here), rcv1.load(here, unique=False)
    assert (len(stories), len(everything)) == (10, 11)
    assert everything.half.tolist() == [0, 1, 0, 1, 1, 0, 1, 0, 1, 0, 1]
    assert stories.X.shape == (10, 47_236)
    assert stories.X.dtype == np.float32
    assert stories.X[[2], :].toarray()[0, [2, 47_235]].tolist() == [0.5, 0.25]
    assert [stories.topics[topic] for topic in stories.Y[[2], :].indices] == ["C13", "CCAT"]
    assert len(stories.topics) == stories.Y.shape[1] == 101


@pytest.mark.parametrize("line", ["101 1:0.5", "not svm at all", "3 0:0.5"])
def test_rcv1s_files_are_rejected_by_name_where_they_are_wrong(tmp_path: Path, line: str) -> None:
    svm_files(tmp_path / "raw", [["1 1:0.5"]] * 9 + [[line]])
    (tmp_path / "ready").mkdir()
    with pytest.raises(DataError, match=r"rcv1subset_topics_test_5\.svm\.bz2"):
        rcv1.assemble(tmp_path / "raw", tmp_path / "ready")
    assert list((tmp_path / "ready").iterdir()) == []


# --- each set, real


@pytest.mark.data
def test_the_real_newsgroups(real: Real) -> None:
    real("20newsgroups")
    split = sr.data.load("20newsgroups", download=False)
    assert (len(split.train), len(split.test), len(split.train.classes)) == (11_314, 7_532, 20)
    assert np.bincount(split.train.y).tolist() == [
        480, 584, 591, 590, 578, 593, 585, 594, 598, 597, 600, 595, 591, 594, 593, 599, 546, 564, 465, 377,
    ]  # fmt: skip
    assert np.bincount(split.test.y).tolist() == [
        319, 389, 394, 392, 385, 395, 390, 396, 398, 397, 399, 396, 393, 396, 394, 398, 364, 376, 310, 251,
    ]  # fmt: skip
    assert all("\nSubject:" in f"\n{post}" for post in split.train.items[:50])
    assert split.test.ids[0] == "alt.atheism/53068"


@pytest.mark.data
def test_the_real_newsgroups_packed_as_at_their_public_home_are_the_same(real: Real, tmp_path: Path) -> None:
    inside = members(real("20newsgroups") / "20news-bydate.tar.xz")
    path = tmp_path / "20news-bydate.tar.gz"
    path.write_bytes(gzip.compress(tar(dict(reversed(inside.items()))), compresslevel=1))
    (edition,) = CATALOG["20newsgroups"].editions
    verify(path, *edition.parts.values())


@pytest.mark.data
def test_the_real_mnist(real: Real) -> None:
    real("mnist")
    split = sr.data.load("mnist", download=False)
    assert (split.train.items.shape, split.test.items.shape) == ((60_000, 784), (10_000, 784))
    assert split.train.items.dtype == np.uint8 and split.train.items.max() == 255
    assert split.train.y[:5].tolist() == [5, 0, 4, 1, 9]
    assert split.test.y[:5].tolist() == [7, 2, 1, 0, 4]


@pytest.mark.data
def test_the_real_rcv1(real: Real) -> None:
    real("rcv1")
    stories = sr.data.load("rcv1", download=False)
    assert stories.X.shape == (27_495, 47_236)
    assert stories.Y.shape == (27_495, 101)
    assert np.allclose(np.sqrt((stories.X.multiply(stories.X)).sum(axis=1)), 1, atol=1e-4)
    assert stories.Y.sum(axis=1).min() >= 1
    halves = [{row.indices.tobytes() for row in stories.X[stories.half == half]} for half in (0, 1)]
    assert not halves[0] & halves[1]
    assert stories.topics == rcv1.TOPICS
    assert len(sr.data.load("rcv1", download=False, unique=False)) == 30_000


@pytest.mark.data
@pytest.mark.slow
def test_the_real_rcv1_comes_out_the_same_from_ten_svmlight_files(real: Real, tmp_path: Path) -> None:
    real("rcv1")
    stories = sr.data.load("rcv1", download=False, unique=False)
    text = [f"{index + 1}:{value:.6f}" for index, value in zip(stories.X.indices, stories.X.data, strict=True)]
    starts, topics = stories.X.indptr, stories.Y.indptr
    lines = [
        ",".join(map(str, stories.Y.indices[topics[row] : topics[row + 1]]))
        + " "
        + " ".join(text[starts[row] : starts[row + 1]])
        for row in range(len(stories))
    ]
    svm_files(tmp_path / "raw", [lines[start : start + 3_000] for start in range(0, 30_000, 3_000)])
    (tmp_path / "ready").mkdir()
    rcv1.assemble(tmp_path / "raw", tmp_path / "ready")
    (edition,) = CATALOG["rcv1"].editions
    verify(tmp_path / "ready" / rcv1.ARCHIVE, *edition.parts.values())


@pytest.mark.data
def test_the_real_mq2007(real: Real) -> None:
    real("letor/mq2007")
    letor = sr.data.load("mq2007", download=False)
    assert letor.X.shape == (59_135, 46)
    assert len(np.unique(letor.qid)) == 1_692
    assert set(letor.y) == {0.0, 1.0, 2.0}


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "options", "rows", "queries", "width"),
    [
        ("mq2008", {}, 15_211, 784, 46),
        ("ohsumed", {}, 16_140, 106, 45),
        ("ohsumed", {"norm": "Feature-min"}, 16_140, 106, 45),
    ],
)
def test_the_real_folds_test_every_row_once(
    real: Real, name: str, options: dict[str, str], rows: int, queries: int, width: int
) -> None:
    real(f"letor/{name}")
    folds = sr.data.load(name, download=False, **options)
    assert sum(len(fold.test) for fold in folds) == rows
    assert len(np.unique(np.concatenate([fold.test.qid for fold in folds]))) == queries
    for fold in folds:
        assert len(fold.train) + len(fold.vali) + len(fold.test) == rows
        assert not set(fold.train.qid) & set(fold.test.qid) | set(fold.vali.qid) & set(fold.test.qid)
        assert fold.train.X.shape[1] == fold.vali.X.shape[1] == fold.test.X.shape[1] == width
    third = sr.data.load(name, download=False, fold=3, **options)
    assert_array_equal(third.train.y, folds[2].train.y)
    assert_array_equal(third.train.X.toarray(), folds[2].train.X.toarray())


@pytest.mark.data
def test_the_real_mq2008_with_the_line_ends_of_its_authors_is_the_same(
    real: Real, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = members(real("letor/mq2008") / "MQ2008_S1-S5.tar.xz")
    here = sr.data.load("mq2008", download=False, fold=1)
    folder = tmp_path / "letor" / "mq2008"
    folder.mkdir(parents=True)
    for name, raw in inside.items():
        (folder / name).write_bytes(raw.replace(b"\n", b"\r\n"))
    monkeypatch.setenv("SPARSERANK_DATA", str(tmp_path))
    loose = sr.data.load("mq2008", download=False, fold=1)
    assert_array_equal(loose.train.X.toarray(), here.train.X.toarray())
    assert loose.train.comments == here.train.comments


@pytest.mark.data
def test_the_real_nfcorpus(real: Real) -> None:
    real("nfcorpus")
    collection = sr.data.load("nfcorpus", download=False)
    assert len(collection.documents) == 3_395
    assert {name: len(split) for name, split in collection.qrels.items()} == {"train": 2_563, "dev": 324}
    assert sum(map(len, collection.qrels["train"].values())) == 110_075
    assert sum(map(len, collection.qrels["dev"].values())) == 11_385


@pytest.mark.data
def test_the_real_cranfield(real: Real, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = real("cranfield")
    collection = sr.data.load("cranfield", download=False)
    assert (len(collection.documents), len(collection.queries)) == (1_400, 225)
    assert sum(map(len, collection.qrels["all"].values())) == 1_837
    assert collection.queries["3"].startswith("what problems of heat conduction in composite slabs")
    assert collection.queries["225"].startswith("what design factors can be used to control lift-drag ratios")
    (tmp_path / "raw").mkdir()
    (tmp_path / "cranfield").mkdir()
    files = {name: (folder / name).read_bytes() for name in ("cran.qry", "cranqrel")}
    files["cran.all.1400"] = lzma.decompress((folder / "cran.all.1400.xz").read_bytes())
    (tmp_path / "raw" / "cran.tar.gz").write_bytes(gzip.compress(tar(files)))
    cranfield.unpack(tmp_path / "raw", tmp_path / "cranfield")
    monkeypatch.setenv("SPARSERANK_DATA", str(tmp_path))
    assert sr.data.load("cranfield", download=False) == collection


@pytest.mark.data
def test_a_damaged_real_file_is_named(real: Real, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = real("cranfield")
    (tmp_path / "cranfield").mkdir()
    for name in ("cran.all.1400.xz", "cran.qry", "cranqrel"):
        (tmp_path / "cranfield" / name).write_bytes((folder / name).read_bytes())
    with (tmp_path / "cranfield" / "cranqrel").open("ab") as file:
        file.write(b"\n1 1 1")
    monkeypatch.setenv("SPARSERANK_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"cranfield/cranqrel: wrong checksum"):
        sr.data.load("cranfield", download=False)
