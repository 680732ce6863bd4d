"""Every number and word that the tables quote is in the papers' own text.

The texts are not part of the repository. They are looked up beside the data sets: `$SPARSERANK_DATA/../seeds`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from sparserank.experiments import letor_regression, published

PAPER, SCAN, SLIDES, LETOR, STEVENS = "001_*.txt", "000_*.txt", "002_*.txt", "003_*.txt", "004_*.txt"
SETS = ("20newsgroups", "rcv1", "mnist")
STATISTICS = (
    "No. of training samples", "No. of testing samples", "No. of Classes", "Dictionary Size", "No. of Free Parameters",
)  # fmt: skip
METHODS = {
    "Identity": "Identity",
    "Diagonal": "Diagonal",
    "SGD (fixed rate)": "SGD FLR",
    "SGD (decaying rate)": "SGD DLR",
    "Sparse": "Sparse",
    "Sparse-R": "Sparse-R",
}
SLIDES_METHODS = {
    "Identity": "Identity",
    "Diagonal": "Diagonal",
    "SGD (fixed rate)": "SGD (fixed learning rate)",
    "SGD (decaying rate)": "SGD (decaying learning rate)",
    "Sparse": "Sparse",
    "Sparse-R": "Sparse (refitting)",
}
MEASURES = ("Avg. Precision", "Precision @ 10", "Domination Error", "All Pairs Error", "% Zero Weights")


def text_of(pattern: str) -> str:
    root = os.environ.get("SPARSERANK_DATA")
    found = sorted((Path(root).parent / "seeds").glob(pattern)) if root else []
    if not found:
        pytest.skip(f"the papers' texts are not here: put {pattern} under $SPARSERANK_DATA/../seeds")
    return found[0].read_text()


def part(text: str, first: str, last: str) -> str:
    """What stands between two phrases."""
    return text.split(first, 1)[1].split(last, 1)[0]


def rows(text: str, names: tuple[str, ...]) -> dict[str, list[str]]:
    """For each name the cells of every line that begins with it; of two names that fit, the longer one counts."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        fitting = [name for name in names if re.match(rf"{re.escape(name)}\s", line)]
        if fitting:
            name = max(fitting, key=len)
            found.setdefault(name, []).append(line.removeprefix(name).strip())
    return found


def numbers(cells: str) -> tuple[float, ...]:
    return tuple(float(cell.replace(",", "")) for cell in cells.split())


@pytest.mark.parametrize("source", [PAPER, SCAN])
def test_table_i_of_chen_is_quoted_number_by_number(source):
    found = rows(text_of(source), STATISTICS)
    assert set(found) == set(STATISTICS)
    for place, name in enumerate(STATISTICS):
        (cells,) = found[name]
        # one text has "108" for 10⁸ and "614, 656", the other "10 <sup>8</sup>", "$10^{8}$" and a D in TeX
        plain = re.sub(r"^(D|\$\\mathcal\{D\}\$)\s|</?sup>|[${}^]|, (?=\d)", "", cells)
        if name == "No. of Free Parameters":
            plain = re.sub(r"\b10 ?8\b", "100000000", plain)
        assert numbers(plain) == tuple(published.TABLE_I[dataset][place] for dataset in SETS), name


@pytest.mark.parametrize("source", [PAPER, SCAN])
def test_table_ii_of_chen_is_quoted_number_by_number(source):
    found = rows(part(text_of(source), "RETRIEVAL PERFORMANCE AND MEMORY", "CONCLUSIONS"), tuple(METHODS.values()))
    for method, printed in METHODS.items():
        assert [numbers(cells) for cells in found[printed]] == [published.TABLE_II[name][method] for name in SETS], (
            method
        )


def test_the_slides_of_chen_have_the_same_table_ii_in_percent():
    text = text_of(SLIDES)
    found = rows(text[text.index("20NG\n\n") :], tuple(SLIDES_METHODS.values()))
    for method, printed in SLIDES_METHODS.items():
        for name, cells in zip(("20newsgroups", "rcv1"), found[printed], strict=True):
            map_, percent, megabytes = numbers(cells)
            quoted = published.TABLE_II[name][method]
            assert (map_, megabytes) == (quoted.map, quoted.megabytes)
            assert percent / 100 == pytest.approx(quoted.error, abs=1e-9)


def test_table_iii_of_chen_is_quoted_word_by_word():
    found = rows(
        part(text_of(PAPER), "THE EXAMPLES OF LEARNED RELATED WORD PAIRS", "CONCLUSIONS"), (*published.TABLE_III,)
    )
    assert {word: tuple(cells.split()) for word, (cells,) in found.items()} == published.TABLE_III


def test_the_slides_words_are_quoted_word_by_word():
    """The slides leave out the query word itself and `jon`, and have one word more than the paper: atheism."""
    asked = (*published.TABLE_III, *published.SLIDES)
    found = rows(text_of(SLIDES).split("Most related document words")[1], asked)
    shown = {word: tuple(cells.split()) for word, (cells,) in found.items()}
    assert {word: shown[word] for word in published.SLIDES} == published.SLIDES
    for word in shown.keys() & published.TABLE_III.keys():
        assert [other for other in published.TABLE_III[word] if other not in (word, "jon")] == list(shown[word])


def test_table_1_1_of_stevens_is_quoted_number_by_number():
    names = {"nDCG-letor4@10": "NDCG 10", "P@10": "Precision 10", "nDCG-letor4@5": "NDCG 5"}
    found = rows(text_of(STEVENS), tuple(names.values()))
    assert published.TABLE_1_1.keys() == names.keys()
    for measure, printed in names.items():
        assert [numbers(cells) for cells in found[printed]] == [published.TABLE_1_1[measure]]


@pytest.mark.parametrize(("number", "quoted"), [(0, published.TABLE_1_2), (1, published.TABLE_1_3)])
def test_tables_1_2_and_1_3_of_stevens_are_quoted_number_by_number(number, quoted):
    found = rows(text_of(STEVENS), MEASURES)
    for place, measure in enumerate(MEASURES):
        assert numbers(found[measure][number]) == tuple(column[place] for column in quoted.values()), measure


def test_the_errors_of_the_letor_report_are_quoted_number_by_number():
    """Figure 1 is against λ, Figure 2 against the number of functions; each gives the closed form first, then SGD."""
    by_lambda, by_functions = text_of(LETOR).split("In Figure 1, I plot")[1].split("In Figure 2, I plot")
    found = [re.findall(r"\b0\.\d{5}\b", part) for part in (by_lambda, by_functions)]
    report = letor_regression.REPORT
    assert [[float(number) for number in numbers] for numbers in found] == [
        [report["closed_lambda"], report["sgd_lambda"]], [report["closed_functions"], report["sgd_functions"]],
    ]  # fmt: skip
