"""BEIR folders: there and back, refused by file and line, and NFCorpus."""

from __future__ import annotations

import gzip
import json
import lzma
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from sparserank.data.formats.beir import read_beir, stream_corpus, write_beir
from sparserank.data.open import stream_documents
from sparserank.data.records import Collection, Documents
from sparserank.errors import ConfigError, DataError

CORPUS = '{"_id": "d1", "title": "Heat", "text": "in slabs"}\n{"_id": "d2", "text": "flow", "metadata": {"a": 1}}\n'
QUERIES = '{"_id": "q1", "text": "what is flow"}\n{"_id": "q2", "text": "heat"}\n'
TRAIN = "query-id\tcorpus-id\tscore\nq1\td2\t2\nq1\td1\t0\n"


def folder_of(root: Path, **files: str) -> Path:
    """A BEIR folder; a file given as "" is left out."""
    wanted = {"corpus": CORPUS, "queries": QUERIES, "train": TRAIN, **files}
    (root / "qrels").mkdir()
    for name, content in wanted.items():
        path = root / f"{name}.jsonl" if name in ("corpus", "queries") else root / "qrels" / f"{name}.tsv"
        if content:
            path.write_bytes(content.encode())
    return root


def test_a_folder_is_documents_queries_and_a_split_a_file(tmp_path: Path) -> None:
    root = tmp_path / "tiny"
    root.mkdir()
    collection = read_beir(folder_of(root, dev="q2\td1\t1.5\n"))
    assert collection == Collection(
        "tiny",
        Documents(("d1", "d2"), ("Heat", ""), ("in slabs", "flow"), ({}, {"a": 1})),
        {"q1": "what is flow", "q2": "heat"},
        {"dev": {"q2": {"d1": 1.5}}, "train": {"q1": {"d2": 2.0, "d1": 0.0}}},
    )


def test_ids_that_are_whole_numbers_are_taken_as_their_digits(tmp_path: Path) -> None:
    collection = read_beir(
        folder_of(tmp_path, corpus='{"_id": 7, "text": "x"}', queries='{"_id": 3, "text": "y"}', train="3\t7\t1\n")
    )
    assert collection.documents.ids == ("7",)
    assert collection.qrels == {"train": {"3": {"7": 1}}}


def test_no_judgments_at_all_are_no_splits(tmp_path: Path) -> None:
    assert read_beir(folder_of(tmp_path, train="")).qrels == {}


@pytest.mark.parametrize("content", ["\n", "query-id\tcorpus-id\tscore\n"])
def test_an_empty_file_of_judgments_is_a_split_that_says_so(tmp_path: Path, content: str) -> None:
    collection = read_beir(folder_of(tmp_path, dev=content))
    assert collection.split("train")
    with pytest.raises(DataError, match=r"the split 'dev' of .* has no judgments"):
        collection.split("dev")


def test_an_agreeing_judgment_said_twice_is_taken_once(tmp_path: Path) -> None:
    assert read_beir(folder_of(tmp_path, train=TRAIN + "q1\td2\t2.0\r\n")).qrels["train"]["q1"]["d2"] == 2


@pytest.mark.parametrize(
    ("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress), (".zst", zstandard.compress)]
)
def test_packed_files_read_as_plain_ones(tmp_path: Path, suffix: str, pack: Callable[[bytes], bytes]) -> None:
    plain = read_beir(folder_of(tmp_path))
    for path in [tmp_path / "corpus.jsonl", tmp_path / "queries.jsonl", tmp_path / "qrels" / "train.tsv"]:
        path.with_name(path.name + suffix).write_bytes(pack(path.read_bytes()))
        path.unlink()
    assert read_beir(tmp_path) == plain


BAD_FILES = [
    ("corpus", '{"_id": "d1", "text": "x"}\n{"_id": "d2"', ":2: not valid JSON"),
    ("corpus", "[" * 100_000, ":1: not valid JSON"),
    ("corpus", '{"_id": ' + "7" * 5_000 + ', "text": "x"}', ":1: not valid JSON"),
    ("corpus", '["d1", "x"]', ":1: a line must be an object with '_id' and 'text'"),
    ("corpus", '{"text": "x"}', ":1: '_id' must be non-empty text or a whole number; it is missing"),
    ("corpus", '{"_id": "", "text": "x"}', ":1: '_id' must be non-empty text or a whole number; got ''"),
    ("corpus", '{"_id": true, "text": "x"}', ":1: '_id' must be non-empty text or a whole number; got True"),
    ("corpus", '{"_id": 1.5, "text": "x"}', ":1: '_id' must be non-empty text or a whole number; got 1.5"),
    ("corpus", '{"_id": "d1"}', ":1: 'text' must be text; it is missing"),
    ("corpus", '{"_id": "d1", "text": null}', ":1: 'text' must be text; got None"),
    ("corpus", '{"_id": "d1", "text": "x", "title": 3}', ":1: 'title' must be text; got 3"),
    ("corpus", CORPUS + '\n{"_id": "d1", "text": "x"}', ":4: id 'd1' occurs a second time; the first is in line 1"),
    (
        "corpus",
        '{"_id": "d1", "text": "x", "metadata": [1]}',
        ":1: metadata must be a mapping of fields to values; got",
    ),
    ("corpus", '{"_id": "d1", "text": "x", "metadata": {"a": {}}}', ":1: metadata 'a' must be text, a finite number"),
    ("corpus", '{"_id": "d1", "text": "x", "metadata": {"a": NaN}}', ":1: metadata 'a' must be text, a finite number"),
    ("corpus", "\n", ": contains no records"),
    ("queries", QUERIES + '{"_id": "q1", "text": "x"}', ":3: id 'q1' occurs a second time"),
    ("queries", '{"_id": "q1"}', ":1: 'text' must be text; it is missing"),
    ("train", TRAIN + "q1\td2\n", ":4: a line has 3 tab-separated fields"),
    ("train", TRAIN + "q1 d2 1\n", ":4: a line has 3 tab-separated fields"),
    ("train", TRAIN + "q1\td2\tgood\n", ":4: the grade must be a finite number; got 'good'"),
    ("train", TRAIN + TRAIN, ":4: the grade must be a finite number; got 'score'"),
    ("train", "q1\td2\tscore\n", ":1: the grade must be a finite number; got 'score'"),
    ("train", TRAIN + "q1\td2\t1\n", ":4: document 'd2' has the grades 1 and 2 for query 'q1'"),
]


@pytest.mark.parametrize(("name", "content", "sentence"), BAD_FILES)
def test_a_bad_line_is_named_by_its_file(tmp_path: Path, name: str, content: str, sentence: str) -> None:
    folder_of(tmp_path, **{name: content})
    path = tmp_path / "qrels" / "train.tsv" if name == "train" else tmp_path / f"{name}.jsonl"
    with pytest.raises(DataError) as caught:
        read_beir(tmp_path)
    assert str(caught.value).startswith(f"{path}{sentence}")


@pytest.mark.parametrize("name", ["corpus", "queries"])
def test_a_folder_that_lacks_a_file_is_told_what_it_must_hold(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=rf"no {name}.jsonl; a BEIR folder has corpus.jsonl, queries.jsonl and"):
        read_beir(folder_of(tmp_path, **{name: ""}))


def test_a_folder_of_documents_alone_needs_no_queries(tmp_path: Path) -> None:
    folder_of(tmp_path, queries="")
    (tmp_path / "qrels" / "train.tsv").unlink()
    (tmp_path / "qrels").rmdir()
    found = read_beir(tmp_path)
    assert len(found.documents) > 0
    assert (found.queries, found.qrels) == ({}, {})


def test_a_file_that_is_there_twice_raises(tmp_path: Path) -> None:
    folder_of(tmp_path)
    (tmp_path / "qrels" / "train.tsv.gz").write_bytes(gzip.compress(TRAIN.encode()))
    with pytest.raises(DataError, match=r"has both train.tsv and train.tsv.gz"):
        read_beir(tmp_path)


def test_judgments_of_what_is_not_there_are_counted_and_the_first_is_named(tmp_path: Path) -> None:
    folder_of(tmp_path, train=TRAIN + "q1\td9\t1\nq9\td1\t1\nq9\td2\t1\n")
    with pytest.raises(DataError, match=r"train.tsv: 3 judgments name .* 'q1', 'd9': no document 'd9'"):
        read_beir(tmp_path)
    assert read_beir(tmp_path, missing="drop").qrels == {"train": {"q1": {"d2": 2.0, "d1": 0.0}}}
    (tmp_path / "qrels" / "train.tsv").write_text("q9\td1\t1\n")
    with pytest.raises(DataError, match=r"1 judgments name .* 'q9', 'd1': no query 'q9'"):
        read_beir(tmp_path)
    with pytest.raises(ConfigError, match="'missing'"):
        read_beir(tmp_path, missing="keep")  # type: ignore[arg-type]


TEXT = st.text(max_size=8)
IDS = st.text(st.characters(exclude_characters="\t\n\r", exclude_categories=["Cs"]), min_size=1, max_size=4)
VALUES = TEXT | st.integers() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False)
FIELDS = st.dictionaries(st.text(min_size=1, max_size=4), VALUES | st.lists(VALUES, max_size=3), max_size=3)


@st.composite
def collections(draw: st.DrawFn) -> Collection:
    documents = draw(st.dictionaries(IDS, st.tuples(TEXT, TEXT, FIELDS), min_size=1, max_size=4))
    queries = draw(st.dictionaries(IDS, TEXT, min_size=1, max_size=3))
    grades = st.floats(allow_nan=False, allow_infinity=False)
    judged = st.dictionaries(st.sampled_from(sorted(documents)), grades, min_size=1)
    qrels = draw(
        st.dictionaries(st.sampled_from(["train", "dev"]), st.dictionaries(st.sampled_from(sorted(queries)), judged))
    )
    return Collection("made", Documents(tuple(documents), *zip(*documents.values(), strict=True)), queries, qrels)


@given(collections())
def test_a_collection_reads_back_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, made: Any) -> None:
    folder = tmp_path_factory.mktemp("beir") / "made"
    write_beir(folder, made)
    assert read_beir(folder) == made


def test_text_is_written_to_be_read_by_people(tmp_path: Path) -> None:
    write_beir(
        tmp_path / "new" / "tiny",
        Collection("tiny", Documents.of({"é": "naïve"}), {"q": "ü"}, {"test": {"q": {"é": 1}}}),
    )
    assert json.loads((tmp_path / "new" / "tiny" / "corpus.jsonl").read_text()) == {
        "_id": "é",
        "title": "",
        "text": "naïve",
    }
    assert "naïve" in (tmp_path / "new" / "tiny" / "corpus.jsonl").read_text()
    assert (tmp_path / "new" / "tiny" / "qrels" / "test.tsv").read_text() == "query-id\tcorpus-id\tscore\nq\té\t1\n"


def test_half_of_a_surrogate_pair_is_written_as_an_escape_and_rejected_in_judgments(tmp_path: Path) -> None:
    half = "half \ud800 a pair"
    made = Collection("odd", Documents.of({"d": half}), {"q": half}, {})
    write_beir(tmp_path / "odd", made)
    assert read_beir(tmp_path / "odd") == made
    named = Collection("odd", Documents.of({half: "text"}), {"q": "x"}, {"train": {"q": {half: 1.0}}})
    with pytest.raises(DataError, match="must be valid UTF-8"):
        write_beir(tmp_path / "named", named)
    assert not (tmp_path / "named").exists()


def test_a_folder_with_files_in_it_is_not_written_into(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="exists already; give a new or an empty folder"):
        write_beir(folder_of(tmp_path), Collection("tiny", Documents.of({"d": "x"}), {}, {}))
    assert read_beir(tmp_path).documents.ids == ("d1", "d2")


@pytest.mark.parametrize("qrels", [{"q": {"a\tb": 1.0}}, {"q\n": {"d": 1.0}}, {"q": {"d": math.nan}}])
def test_a_collection_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path, qrels: Any) -> None:
    with pytest.raises(DataError):
        write_beir(tmp_path / "tiny", Collection("tiny", Documents.of({"d": "x"}), {"q": "y"}, {"train": qrels}))
    with pytest.raises(DataError, match="must not be empty"):
        write_beir(tmp_path / "tiny", Collection("tiny", Documents.of({"": "x"}), {"q": "y"}, {}))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.data
def test_nfcorpus_has_what_its_readme_counts(real: Callable[[str], Path]) -> None:
    collection = read_beir(real("nfcorpus"))
    assert collection.name == "nfcorpus"
    assert len(collection.documents) == 3_395
    counts = {split: (len(qrels), sum(map(len, qrels.values()))) for split, qrels in collection.qrels.items()}
    assert counts == {"train": (2_563, 110_075), "dev": (324, 11_385)}


@pytest.mark.parametrize("size", [1, 2, 5])
def test_documents_come_in_parts(tmp_path: Path, size: int) -> None:
    docs = Documents.of({f"d{i}": {"title": "T" * i, "text": f"text {i}"} for i in range(5)})
    write_beir(tmp_path / "five", Collection("five", docs, {"q": "text"}, {"train": {"q": {"d1": 1}}}))
    (tmp_path / "docs.tsv").write_text("id\ttitle\ttext\n" + "".join(f"d{i}\t{'T' * i}\ttext {i}\n" for i in range(5)))
    for data in (tmp_path / "five", tmp_path / "docs.tsv"):
        parts = list(stream_documents(data, size))
        assert [len(part) for part in parts] == [size] * (5 // size) + [5 % size] * (5 % size > 0)
        assert [i for part in parts for i in part.ids] == list(docs.ids)
        assert [text for part in parts for text in part.texts] == list(docs.texts)
    (tmp_path / "five" / "corpus.jsonl").write_text(CORPUS + CORPUS)
    with pytest.raises(DataError, match=r":3: id 'd1' occurs a second time"):
        list(stream_corpus(tmp_path / "five", size))
