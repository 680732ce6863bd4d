"""The collection built from the packages that are installed."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparserank.data.datasets import pydocs
from sparserank.data.records import Collection
from sparserank.errors import DataError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARSERANK_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield Path(os.environ["SPARSERANK_CACHE"])


@pytest.fixture(scope="module")
def docs(folder: Path) -> Collection:
    return pydocs.load()


@pytest.fixture(scope="module")
def text(docs: Collection) -> dict[str, str]:
    return dict(zip(docs.documents.ids, docs.documents.texts, strict=True))


@pytest.fixture(scope="module")
def judged(docs: Collection) -> dict[str, set[str]]:
    return {query: set(grades) for split in docs.qrels.values() for query, grades in split.items()}


def in_a_new_process(code: str, *flags: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *flags, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )


def test_it_is_about_as_large_as_it_is_said_to_be(docs: Collection, judged: dict[str, set[str]]) -> None:
    assert 2_500 <= len(docs.documents) <= 4_500
    assert 1_200 <= len(docs.queries) <= 2_500
    assert 3_000 <= sum(map(len, judged.values())) <= 7_000


@pytest.mark.parametrize(
    ("query", "relevant"),
    [
        ("numpy.argsort", {"numpy.sort", "numpy.lexsort"}),
        ("scipy.linalg.lu_factor", {"scipy.linalg.lu_solve"}),
        ("scipy.linalg.lu_solve", {"scipy.linalg.lu_factor"}),
        ("numpy.logaddexp", {"numpy.logaddexp2"}),
        ("scipy.special.gammainc", {"scipy.special.gammaincc"}),
        ("sklearn.linear_model.Ridge", {"sklearn.kernel_ridge.KernelRidge"}),
        ("scipy.fft.fft2", {"scipy.fft.ifft2"}),
        ("scipy.stats.wishart", {"scipy.stats.invwishart"}),
    ],
)
def test_a_known_see_also_leads_to_its_objects(judged: dict[str, set[str]], query: str, relevant: set[str]) -> None:
    assert relevant <= judged[query]


def test_the_section_itself_is_cut_out_of_every_text(text: dict[str, str]) -> None:
    section = re.compile(r"^see also\s*\n-{3,}", re.MULTILINE | re.IGNORECASE)
    assert [one for one in text if section.search(text[one])] == []
    assert "Returns the indices that would sort an array." in text["numpy.argsort"]
    assert "Parameters" in text["numpy.argsort"]


def test_a_query_is_the_summary_of_the_document_with_its_id(docs: Collection, text: dict[str, str]) -> None:
    assert docs.queries["numpy.argsort"] == "Returns the indices that would sort an array."
    for query, words in docs.queries.items():
        assert words in " ".join(text[query].split())


def test_a_signature_is_never_a_query(docs: Collection) -> None:
    assert docs.queries["numpy.logaddexp"].startswith("Logarithm of the sum")
    call = re.compile(r"[\w.]+\([^)]*\)\s*(->.*)?")
    assert [words for words in docs.queries.values() if call.fullmatch(words) or "casting='same_kind'" in words] == []


def test_judgments_name_documents_and_never_the_query_itself(docs: Collection, judged: dict[str, set[str]]) -> None:
    ids = set(docs.documents.ids)
    assert docs.exclude_self
    assert set(judged) == set(docs.queries) <= ids
    for query, relevant in judged.items():
        assert relevant
        assert relevant <= ids - {query}
    assert {grade for split in docs.qrels.values() for grades in split.values() for grade in grades.values()} == {1.0}


def test_an_object_has_one_document_under_its_shortest_public_name(docs: Collection) -> None:
    ids = set(docs.documents.ids)
    assert docs.documents.titles == docs.documents.ids == tuple(sorted(ids))
    assert {"numpy.sort", "numpy.emath.sqrt", "scipy.sparse.csr_array", "sklearn.pipeline.Pipeline"} <= ids
    assert not {"numpy.matlib.sort", "numpy.lib.scimath.sqrt", "scipy.stats.distributions.norm"} & ids
    parts = {part for one in ids for part in one.split(".")}
    assert not {part for part in parts if part.startswith("_")} | parts & pydocs.SKIPPED


def test_the_split_goes_by_the_hash_of_the_id_and_is_about_70_10_20(docs: Collection) -> None:
    sizes = {name: len(split) for name, split in docs.qrels.items()}
    assert sum(sizes.values()) == len(docs.queries)
    for name, share in {"train": 0.7, "dev": 0.1, "test": 0.2}.items():
        assert abs(sizes[name] / len(docs.queries) - share) < 0.03
        for query in docs.qrels[name]:
            tenth = int(hashlib.sha256(query.encode()).hexdigest()[:16], 16) % 10
            assert name == ("train" if tenth < 7 else "dev" if tenth == 7 else "test")


def test_it_carries_the_versions_it_was_built_from(docs: Collection) -> None:
    import numpy
    import scipy
    import sklearn

    assert docs.versions == {
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }


def test_what_a_process_has_switched_on_does_not_matter(docs: Collection) -> None:
    code = (
        "import hashlib; from sklearn.experimental import enable_halving_search_cv, enable_iterative_imputer; "
        "from sparserank.data.datasets import pydocs; "
        "print(hashlib.sha256(pydocs._to_json(pydocs.build(pydocs.installed_versions()))).hexdigest())"
    )
    done = in_a_new_process(code)
    assert done.stdout.split() == [hashlib.sha256(pydocs._to_json(docs)).hexdigest()]


def test_two_builds_in_two_processes_are_the_same_and_silent(docs: Collection, folder: Path) -> None:
    code = (
        "import hashlib, sys; from sparserank.data.datasets import pydocs; "
        "built = pydocs.build(pydocs.installed_versions()); "
        "assert not {'matplotlib', 'tkinter', 'pytest'} & set(sys.modules); "
        "print(hashlib.sha256(pydocs._to_json(built)).hexdigest())"
    )
    done = in_a_new_process(code, "-W", "error", PYTHONHASHSEED="7")
    assert done.stderr == ""
    assert done.stdout.split() == [hashlib.sha256(pydocs._to_json(docs)).hexdigest()]


def test_what_is_cached_reads_back_as_it_was_built(docs: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_build(versions: object) -> Collection:
        raise AssertionError("built again")

    monkeypatch.setattr(pydocs, "build", no_build)
    assert pydocs.load() == docs
    assert pydocs.cached_file() == pydocs.cache_file(docs.versions)


def _damage_bytes(path: Path) -> None:
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) // 2])


def _other_versions(path: Path) -> None:
    whole = json.loads(gzip.decompress(path.read_bytes()))
    whole["versions"]["numpy"] = "0.1"
    path.write_bytes(gzip.compress(json.dumps(whole).encode()))


def _not_the_right_json(path: Path) -> None:
    path.write_bytes(gzip.compress(b"[1, 2]"))


def _texts_missing(path: Path) -> None:
    whole = json.loads(gzip.decompress(path.read_bytes()))
    whole["texts"].pop()
    path.write_bytes(gzip.compress(json.dumps(whole).encode()))


@pytest.mark.parametrize("damage", [_damage_bytes, _other_versions, _not_the_right_json, _texts_missing, Path.unlink])
def test_a_cache_that_cannot_be_used_is_built_again(
    docs: Collection, monkeypatch: pytest.MonkeyPatch, damage: object
) -> None:
    path = pydocs.cache_file(docs.versions)
    whole = path.read_bytes()
    damage(path)  # type: ignore[operator]
    monkeypatch.setattr(pydocs, "build", lambda versions: docs)
    assert pydocs.load() == docs
    assert path.read_bytes() == whole


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(
    docs: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("SPARSERANK_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr(pydocs, "build", lambda versions: docs)
    assert pydocs.load() == docs
    assert pydocs.cached_file() is None


def test_without_docstrings_it_says_so(tmp_path: Path) -> None:
    code = "from sparserank.data.datasets import pydocs; pydocs.load()"
    done = in_a_new_process(code, "-OO", SPARSERANK_CACHE=str(tmp_path))
    assert "DataError: pydocs is built from docstrings, and Python was started with -OO" in done.stderr
    assert list(tmp_path.rglob("*.gz")) == []


def test_where_hardly_anything_is_documented_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pydocs, "MIN_DOCUMENTS", 10**6)
    with pytest.raises(DataError, match=r"only .* objects of numpy, scipy and scikit-learn have one"):
        pydocs.build({})


def test_a_package_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import sys; sys.modules['sklearn'] = None; from sparserank.data.datasets import pydocs; "
        "pydocs.build(pydocs.installed_versions())"
    )
    done = in_a_new_process(code, SPARSERANK_CACHE=str(tmp_path))
    assert re.search(r"DataError: pydocs is built from numpy, scipy and scikit-learn; .*sklearn", done.stderr)
    monkeypatch.setitem(pydocs.PACKAGES, "nowhere", "no-such-package-anywhere")
    with pytest.raises(DataError, match="no-such-package-anywhere is not installed"):
        pydocs.installed_versions()
    assert pydocs.cached_file() is None
