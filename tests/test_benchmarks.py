"""What the benchmarks check before they time anything, and how their tables are printed."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import benchmarks
import numpy as np
import pytest
from benchmarks import languages, markdown, run, vowpal, word_pairs
from scipy.sparse import csr_array

from sparserank import BilinearRanker, Preferences, data
from sparserank.text import compounds


@pytest.fixture(scope="module")
def digits():
    split = data.load("digits").train
    rows = csr_array(split.items / np.linalg.norm(split.items, axis=1, keepdims=True)).astype(np.float32)
    return rows, split.y


def test_the_w_that_is_timed_is_that_of_the_literal_algorithm(digits):
    X, y = digits
    _, ranker = word_pairs.trained(X, y, 500)
    W = word_pairs.literal_w(X, Preferences.from_labels(y).draw(500, random_state=0))
    assert word_pairs.check_literal(ranker, W) <= word_pairs.NEAR


def test_a_w_that_is_not_that_of_the_literal_algorithm_is_not_timed(digits):
    X, y = digits
    _, ranker = word_pairs.trained(X, y, 500)
    other = word_pairs.literal_w(X, Preferences.from_labels(y).draw(500, random_state=0), alpha=2 * word_pairs.LAMBDA)
    with pytest.raises(AssertionError, match="off the literal one"):
        word_pairs.check_literal(ranker, other)


def test_vowpal_wabbit_without_a_penalty_runs_algorithm_1(digits, tmp_path):
    pytest.importorskip("vowpalwabbit", reason="this peer is an extra: pip install 'sparserank[bench]'")
    X, y = digits
    prefs = Preferences.from_labels(y)
    ranker = BilinearRanker(penalty="none", max_iter=300, random_state=0).fit(X, X, prefs)
    for name, triples in (("seen", prefs.draw(300, random_state=0)), ("asked", prefs.draw(100, random_state=1))):
        vowpal.write(tmp_path / name, X, triples)
    vowpal.learn(tmp_path / "seen", tmp_path / "model", 0.0, word_pairs.ETA0)
    ours = word_pairs.in_order(ranker.W_, X, prefs.draw(100, random_state=1))
    np.testing.assert_allclose(vowpal.margins(tmp_path / "asked", tmp_path / "model"), ours, rtol=1e-3, atol=1e-2)


def test_the_constants_of_compounds_are_chosen_on_training_queries_and_put_back(capsys):
    texts = ["die Datei"] * 6 + ["der Name"] * 6 + ["ein Dateiname"]
    documents = data.Documents.of({f"d{i}": text for i, text in enumerate(texts)})
    small = data.Collection("small", documents, {"q": "Name der Datei"}, {"train": {"q": {"d12": 1.0}}})
    before = compounds.MIN_PART, compounds.MIN_DOCUMENTS
    found = languages.tune_compounds(small, [(5, 2), (3, 2)])  # "Name" has four letters
    assert found[None].tolist() == found[5, 2].tolist() == [0.0]
    assert found[3, 2].tolist() == [1.0]
    assert capsys.readouterr().out.splitlines()[-1] == (
        "chosen: at least 3 letters, 2 documents: 1.0000 (+1.0000 ± 0.0000)"
    )
    assert before == (compounds.MIN_PART, compounds.MIN_DOCUMENTS)


def test_full_sizes_are_those_of_cases_that_have_them(monkeypatch):
    for case in run.FULL_CASES:
        assert "full" in inspect.signature(importlib.import_module(f"benchmarks.{case}").run).parameters
    calls = []
    monkeypatch.setattr(run.subprocess, "run", lambda command, **_: calls.append(command[-1]) or Failed())
    for case in ("scale", "vowpal"):
        run.run_case(case, quick=False, full=True)
    assert "b.run(quick=False, full=True)" in calls[0]
    assert "b.run(quick=False)" in calls[1]


class Failed:
    """A benchmark that ended at once."""

    returncode, stderr = 1, "not run"


def test_the_environment_names_the_processor():
    assert f"({markdown.processor()})" in markdown.environment()
    assert markdown.processor()


def test_markdown_tables():
    assert doctest.testmod(markdown).failed == 0


def test_nested_figures_are_tables():
    section = markdown.section(
        {"case": "x", "peak": 1, "seconds": {"half": [{"phase": "read", "s": 2}]}, "end": [3, 4]}
    )
    assert (
        section == "## X\n\n- peak: 1\n\n**seconds, half**\n\n| phase | s |\n|---|---|\n| read | 2 |\n\n- end: [3, 4]"
    )
    many = {"first": {f"figure_{i}": i for i in range(9)}, "second": {"figure_8": 9}}
    assert markdown.figures("many", many).splitlines()[2::9] == ["| | first | second |", "| figure 7 | 7 | |"]
    assert markdown.figures("shape", {"rows": 2, "columns": 1000}).splitlines()[-2:] == [
        "| rows | 2 |",
        "| columns | 1,000 |",
    ]


def test_no_figure_of_the_page_is_a_python_record():
    page = (Path(__file__).parent.parent / "docs/benchmarks.md").read_text()
    assert not re.search(r"(?m)^- [^:]+: (\{|\[\{)", page)


def test_the_page_has_every_benchmark_and_names_the_one_that_failed():
    rows = [{"name": "ours", "ratio": 2.0, "queries_per_s": 1000}, {"name": "peer", "ratio": 1.0}]
    results = [{"case": "search", "size": "10 posts", "peer": "bm25s", "rows": rows}, {"case": "load", "error": "x"}]
    page = markdown.document([markdown.section(result) for result in results])
    assert "## Search\n\nSize: 10 posts.\n\nCompared with: bm25s." in page
    assert "| ours | 2.0 | 1,000 |" in page
    assert "## Load\n\nNot measured: x" in page
    assert not re.search(r"wanted|reach|dream", page)


def test_every_benchmark_can_be_imported_and_every_case_runs_quickly_or_in_full():
    names = [module.name for module in pkgutil.iter_modules(benchmarks.__path__) if not module.ispkg]
    modules = {name: importlib.import_module(f"benchmarks.{name}") for name in names}
    for case in run.CASES:
        assert next(iter(inspect.signature(modules[case].run).parameters)) == "quick", case


def test_run_writes_the_page(monkeypatch, tmp_path, capsys):
    rows = [{"name": "ours", "ratio": 1.5}]
    monkeypatch.setattr(run, "run_case", lambda case, quick, full: {"case": case, "rows": rows})
    monkeypatch.setattr("sys.argv", ["run", "--output", str(tmp_path / "b.json"), "--markdown", str(tmp_path / "b.md")])
    run.main()
    assert capsys.readouterr().out.count("1.50x") == len(run.CASES)
    page = (tmp_path / "b.md").read_text()
    assert page.count("\n## ") == len(run.CASES)


def test_a_case_that_runs_alone_replaces_its_section_only(monkeypatch, tmp_path):
    page = tmp_path / "b.md"

    def measure(ratio, *arguments):
        monkeypatch.setattr(
            run, "run_case", lambda case, quick, full: {"case": case, "rows": [{"name": "us", "ratio": ratio}]}
        )
        options = ["run", *arguments, "--output", str(tmp_path / "b.json"), "--markdown", str(page)]
        monkeypatch.setattr("sys.argv", options)
        run.main()
        return page.read_text()

    first = measure(1.5)
    assert measure(9.0, "word_pairs", "--quick") == first
    second = measure(9.0, "word_pairs")
    assert second.count("| us | 9.0 |") == 1 and second.count("| us | 1.5 |") == len(run.CASES) - 1
    assert re.findall(r"\n## .*", second) == re.findall(r"\n## .*", first)
