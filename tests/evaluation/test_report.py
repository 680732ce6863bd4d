from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from sparserank.errors import ConfigError, DataError, NotInstalled
from sparserank.evaluation import Evaluation, Report, evaluate_run

NASTY = '<b>"a" & $x_1$ | *b* `c` \x07 日本 [l](u)'


def evaluated(skill: float, measures: str = "nDCG@5 AP PairError", queries: int = 30) -> Evaluation:
    random = np.random.default_rng(int(skill * 100))
    qrels = {f"q{i}": {f"d{j}": j % 3 for j in range(8)} for i in range(queries)}
    run = {q: {d: skill * g + random.normal() for d, g in judged.items()} for q, judged in qrels.items()}
    return evaluate_run(run, qrels, measures)


@pytest.fixture(scope="module")
def report() -> Report:
    systems = {"BM25": evaluated(0.3), "learned": evaluated(2.0), NASTY: evaluated(0.2)}
    return Report.of(f"Test {NASTY}", systems, notes=[f"note {NASTY}"], settings={"k1": 0.9, NASTY: Path("x")})


class Elements(HTMLParser):
    """Every tag and every text of a page; checks that tags nest."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_text_is_a_table_with_aligned_columns() -> None:
    report = Report.of("Two systems", {"BM25": evaluated(0.3, "AP RR"), "a longer name": evaluated(2.0, "AP RR")})
    lines = report.text().splitlines()
    assert lines[:2] == ["Two systems", "==========="]
    head, rule, first, second = lines[3:7]
    assert head.split() == ["System", "AP", "RR"]
    assert [m.start() for m in re.finditer(r"-+", rule)] == [head.index(word) for word in ("System", "AP", "RR")]
    assert re.fullmatch(r"BM25 +0\.\d{4} \[0\.\d{4}, 0\.\d{4}\]  0\.\d{4} \[0\.\d{4}, [01]\.\d{4}\]", first)
    assert second.startswith("a longer name  ")
    assert "a longer name is better than BM25 on AP: " in report.text()
    assert "30 judged queries" in report.text()
    assert max(map(len, lines)) <= 110


def test_a_system_is_said_to_differ_only_where_chance_would_not_do() -> None:
    same = Report.of("t", {"a": evaluated(1.0), "b": evaluated(1.0)})
    assert "b is not clearly different from a on nDCG@5" in same.findings()[0]
    assert "; p = 1.0000)." in same.findings()[0]
    worse = Report.of("t", {"a": evaluated(2.0), "b": evaluated(0.0)})
    assert worse.findings()[0].startswith("b is worse than a on nDCG@5")


def test_a_small_p_is_not_printed_as_zero() -> None:
    found = Report.of("t", {"a": evaluated(0.0, queries=300), "b": evaluated(3.0, queries=300)})
    assert {row[3] for row in found.differences().rows} == {"<0.0001"}
    assert "p <0.0001)." in found.findings()[0]


def test_errors_are_marked_as_better_when_lower(report: Report) -> None:
    assert report.values().head == ("System", "nDCG@5", "AP", "PairError ↓")
    assert "↓: lower is better" in report.text()
    assert "↓" not in Report.of("t", {"a": evaluated(0.3, "AP")}).text()


def test_markdown_has_a_cell_a_column_whatever_the_names(report: Report) -> None:
    tables = [line for line in report.markdown().splitlines() if line.startswith("|")]
    widths = {len(re.findall(r"(?<!\\)\|", line)) for line in tables}
    assert widths == {5, 8, 3}, "values, differences and settings"
    assert '\\<b>"a" & \\$x\\_1\\$ \\| \\*b\\* \\`c\\` \x07 日本 [l\\](u)' in report.markdown()
    assert re.search(r"\| learned \| 0\.\d{4} \[0\.\d{4}, ", report.markdown())


def test_json_says_everything_and_reads_back(report: Report) -> None:
    read = json.loads(report.json())
    assert read == report.to_dict()
    assert read["baseline"] == "BM25"
    assert read["queries"] == 30
    assert read["systems"]["learned"]["measures"] == report.systems["learned"].to_dict()
    assert len(read["systems"]["learned"]["per_query"]["AP"]) == 30
    assert set(read["comparisons"]) == {"learned", NASTY}
    assert read["comparisons"]["learned"]["AP"]["p"] == report.comparisons["learned"]["AP"].p
    assert read["settings"] == {"k1": 0.9, NASTY: "x"}


def test_settings_that_json_cannot_hold_become_text() -> None:
    found = Report.of("t", {"a": evaluated(0.3, "AP")}, settings={"x": float("nan"), "y": None, "z": True})
    assert json.loads(found.json())["settings"] == {"x": "nan", "y": None, "z": True}


def test_the_page_stands_alone(report: Report) -> None:
    page = report.html()
    elements = Elements(page)
    assert elements.open == []
    tags = {tag for tag, _ in elements.tags}
    assert not tags & {"script", "link", "img", "iframe", "object", "b"}
    assert not re.search(r"https?:|//|@import", page)
    addresses = [a.get(key) for _, a in elements.tags for key in ("href", "src", "xlink:href") if key in a]
    assert all(address is not None and address.startswith("#") for address in addresses)
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", page))


def test_the_page_escapes_every_text_of_the_users(report: Report) -> None:
    page = report.html()
    assert NASTY not in page
    texts = "\n".join(Elements(page).texts)
    for shown in (f"Test {NASTY}", f"note {NASTY}", f"{NASTY} is not clearly different from BM25"):
        assert shown in texts


def test_the_page_has_tables_plots_and_counts(report: Report) -> None:
    elements = Elements(report.html())
    plots = [attributes for tag, attributes in elements.tags if tag == "svg"]
    assert [plot["role"] for plot in plots] == ["img", "img", "img"], "values, and a plot for each other system"
    assert plots[1]["aria-label"] == "Differences of learned from BM25, query by query"
    texts = "".join(elements.texts)
    comparison = report.comparisons["learned"]["AP"]
    assert f"{comparison.wins} better · {comparison.ties} equal · {comparison.losses} worse" in texts
    assert sum(tag == "table" for tag, _ in elements.tags) == 3


def test_plots_take_the_colours_of_the_page_and_ids_of_their_own(report: Report) -> None:
    page = report.html()
    plots = page[page.index("<main>") :]
    assert not re.search(r"(fill|stroke): #", plots)
    used, defined = set(re.findall(r"var\((--\w+)\)", page)), set(re.findall(r"(--\w+): #", page))
    assert used == defined
    ids = re.findall(r' id="([^"]*)"', plots)
    assert len(ids) == len(set(ids)) > 0
    targets = re.findall(r'(?:url\(#|href="#)([^)"]*)', plots)
    assert set(targets) <= set(ids)


def test_the_same_report_gives_the_same_bytes(report: Report) -> None:
    again = Report.of(report.title, report.systems, notes=report.notes, settings=report.settings)
    assert again.html() == report.html()
    assert again.text() == report.text()
    assert again.json() == report.json()
    assert again.markdown() == report.markdown()


def test_a_users_matplotlib_settings_do_not_reach_the_page(report: Report) -> None:
    import matplotlib

    page = report.html()
    with matplotlib.rc_context({"font.size": 30, "axes.grid": True, "svg.fonttype": "path", "savefig.dpi": 10}):
        assert report.html() == page


@pytest.mark.parametrize("measures", ["AP", "AP RR", "AP RR P@1 P@2", "AP RR P@1 P@2 P@3 RMSE PairError"])
def test_one_system_and_any_number_of_measures_make_a_page(measures: str) -> None:
    found = Report.of("Alone", {"only": evaluated(0.3, measures)})
    elements = Elements(found.html())
    assert sum(tag == "svg" for tag, _ in elements.tags) == 1
    assert found.comparisons == {}
    assert "Differences" not in found.text()
    assert found.text().count("only") == -(-len(measures.split()) // 3)


def test_a_measure_that_one_system_lacks_is_a_dash() -> None:
    found = Report.of("t", {"a": evaluated(0.3, "AP"), "b": evaluated(2.0, "AP RR")})
    assert found.values().rows[0][2] == "–"
    assert " –" in Elements(found.html()).texts


def test_thousands_of_queries_make_a_page_that_loads() -> None:
    found = Report.of("t", {"a": evaluated(0.3, "AP", 3000), "b": evaluated(0.5, "AP", 3000)})
    assert len(found.html()) < 100_000


def test_systems_that_never_differ_make_a_page() -> None:
    assert "0 better · 30 equal · 0 worse" in Report.of("t", {"a": evaluated(1.0), "b": evaluated(1.0)}).html()


@pytest.mark.parametrize(
    ("name", "start"), [("r.txt", b"Test"), ("r.md", b"# Test"), ("r.json", b"{"), ("r.HTML", b"<!")]
)
def test_the_name_says_what_is_written(report: Report, tmp_path: Path, name: str, start: bytes) -> None:
    report.write(tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_other_names_are_rejected_and_nothing_is_written(report: Report, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"r\.pdf: a report is written as one of \.txt, \.md, \.json, \.html"):
        report.write(tmp_path / "r.pdf")
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_the_page_is_rejected_with_the_way_to_get_it(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(NotInstalled, match=r"needs matplotlib; install it with: pip install 'sparserank\[plot\]'"):
        report.write(tmp_path / "r.html")
    assert list(tmp_path.iterdir()) == []
    assert report.text()


def test_the_seed_is_that_of_the_figures_unless_another_is_given() -> None:
    qrels, run = {"q": {"a": 1}}, {"q": {"a": 1.0}}
    systems = {"a": evaluate_run(run, qrels, "AP", random_state=7)}
    assert "(10,000 resamples, seed 7)" in Report.of("t", systems).method()
    assert "(10,000 resamples, seed 8)" in Report.of("t", systems, random_state=8).method()


def test_a_report_needs_a_system() -> None:
    with pytest.raises(DataError, match="at least one system"):
        Report.of("t", {})
