"""Pictures of W: they are PNG, the same every time, and take any word."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from sparserank.base import plots as pictures
from sparserank.bilinear.ranker import BilinearRanker
from sparserank.errors import DataError, NotInstalled

from ..bilinear.test_ranker import PREFS, SETTINGS, X

WORDS = [f"w{i}" for i in range(60)]
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def ranker():
    return BilinearRanker(**SETTINGS).fit(X, X, PREFS, query_words=WORDS, document_words=WORDS)


def test_the_block_between_words_is_Ws(ranker):
    block = ranker.submatrix(["w7", "w3", "w7"])
    assert np.array_equal(block, ranker.W_.toarray()[[7, 3, 7]][:, [7, 3, 7]])


def test_a_heat_map_is_written_whole_and_always_the_same(ranker, tmp_path):
    ranker.heatmap(WORDS[:8], tmp_path / "a.png")
    ranker.heatmap(WORDS[:8], tmp_path / "b.png")
    assert (tmp_path / "a.png").read_bytes().startswith(PNG)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    ranker.heatmap(WORDS, tmp_path / "many.png")
    assert (tmp_path / "many.png").read_bytes().startswith(PNG)


def drawn(words, values):
    from matplotlib.figure import Figure

    figure = pictures._heatmap(words, np.asarray(values, np.float32))
    assert isinstance(figure, Figure)
    return figure.axes[0]


def test_colours_are_centred_at_0_and_numbers_stand_in_the_cells():
    panel = drawn(["a", "b"], [[2.0, -5.0], [0.0, 0.001]])
    assert panel.images[0].get_clim() == (-5.0, 5.0)
    assert sorted((text.get_position(), text.get_text()) for text in panel.texts) == [
        ((0, 0), "2.00"), ((1, 0), "-5.00"), ((1, 1), "·"),
    ]  # fmt: skip
    assert [label.get_text() for label in panel.get_xticklabels()] == ["a", "b"]
    assert [label.get_text() for label in panel.get_yticklabels()] == ["a", "b"]
    assert panel.get_xlabel() == "document word"
    assert panel.get_ylabel() == "query word"


def test_many_cells_have_no_numbers_and_nothing_but_zeros_is_no_problem():
    many = [str(i) for i in range(pictures.MAX_NUMBERED_WORDS + 1)]
    assert not drawn(many, np.ones((len(many), len(many)))).texts
    assert drawn(["a"], [[0.0]]).images[0].get_clim() == (-1.0, 1.0)
    assert [text.get_text() for text in drawn(["a"], [[250.4]]).texts] == ["250"]


def test_any_word_can_be_a_label():
    words = ["$x^2$", "日本", "a\tb\n", "long" * 20]
    assert pictures.heatmap(words, np.ones((4, 4), np.float32)).startswith(PNG)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["w1", "zebra"], "'zebra' is not among the 60 query words"),
        (["w1", "W10"], "did you mean 'w10'"),
        ([], "must be a list of words"),
        ("w1", "must be a list of words; got 'w1'"),
        (["w1"] * 201, "at most 200 words; got 201"),
    ],
)
def test_words_that_cannot_be_shown_are_named_and_nothing_is_written(ranker, tmp_path, words, says):
    with pytest.raises(DataError, match=says):
        ranker.heatmap(words, tmp_path / "h.png")
    assert list(tmp_path.iterdir()) == []


def test_without_names_there_is_nothing_to_show(tmp_path):
    nameless = BilinearRanker(**SETTINGS | {"max_iter": 10}).fit(X, X, PREFS, query_words=WORDS)
    with pytest.raises(DataError, match="give document_words to fit"):
        nameless.heatmap(["w1"], tmp_path / "h.png")


def test_without_matplotlib_the_message_says_what_to_install(ranker, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(NotInstalled, match=r"pip install 'sparserank\[plot\]'"):
        ranker.heatmap(["w1"], tmp_path / "h.png")
    assert list(tmp_path.iterdir()) == []
