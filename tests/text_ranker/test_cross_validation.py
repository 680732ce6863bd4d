"""Cross-validation: near-duplicates share a fold, and no model sees the judgments of its fold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparserank as sr
from sparserank.data.formats.beir import write_beir
from sparserank.data.records import Collection, Documents
from sparserank.errors import ConfigError
from sparserank.text_ranker import cross_validation
from sparserank.text_ranker.cross_validation import cross_validate
from sparserank.text_ranker.held_out import divide_groups

from ..cli.calling import call, printed


@pytest.fixture(scope="module")
def collection():
    rng, words = np.random.default_rng(0), [f"{a}{b}" for a in "bdfgklm" for b in ("ato", "ine", "upo", "ery")]
    docs = {f"d{i}": " ".join(rng.choice(words, 8)) for i in range(40)}
    queries = {f"q{i}": " ".join(rng.choice(docs[f"d{i}"].split(), 3)) for i in range(30)}
    qrels = {f"q{i}": {f"d{i}": 1.0} for i in range(30)}
    return Collection("planted", Documents.of(docs), queries, {"train": qrels})


@given(st.lists(st.integers(0, 9), min_size=2, max_size=40), st.integers(2, 4), st.integers(0, 5))
def test_groups_are_never_divided_and_parts_differ_by_at_most_one_group(groups, n_parts, seed):
    groups = np.array(groups)
    part = divide_groups(groups, n_parts, seed)
    for group in np.unique(groups):
        assert len(np.unique(part[groups == group])) == 1
    sizes = np.bincount(part, minlength=n_parts)
    assert sizes.max() - sizes.min() <= np.bincount(groups).max()


def test_a_model_never_learns_from_the_judgments_of_its_fold(collection, monkeypatch):
    seen = []

    class Spy(sr.TextRanker):
        def fit(self, docs, queries=None, qrels=None, **options):
            seen.append(set(qrels or ()))
            return super().fit(docs, queries, qrels, **options)

    monkeypatch.setattr(cross_validation, "TextRanker", Spy)
    messages = []
    found = cross_validate(sr.TextRanker("bm25"), collection, collection.qrels["train"], 3, callback=messages.append)
    trained = [queries for queries in seen if queries]
    assert len(trained) == 3
    assert [message for message in messages if ":" not in message] == [f"fold {i} of 3" for i in (1, 2, 3)]
    for fold, queries in enumerate(trained):
        assert queries | set(found.queries_of(fold)) == set(found.qrels)
        assert not queries & set(found.queries_of(fold))
    assert found.run == found.bm25_run


def test_bm25_has_the_language_of_the_model():
    """An English analyzer finds no word of these queries, since Japanese has no spaces between words."""
    docs = {"d1": "日本語の文章です", "d2": "新しいオブジェクトを返します", "d3": "数学の関数を計算します"}
    queries = {"q1": "文章", "q2": "オブジェクト", "q3": "関数"}
    qrels = {f"q{i}": {f"d{i}": 1.0} for i in (1, 2, 3)}
    collection = Collection("japanese", Documents.of(docs), queries, {"train": qrels})
    found = cross_validate(sr.TextRanker("bm25", analyzer="japanese"), collection, qrels, 3)
    assert {query: next(iter(run)) for query, run in found.bm25_run.items()} == {"q1": "d1", "q2": "d2", "q3": "d3"}
    assert found.bm25_run == found.run


def test_the_command_prints_learned_bm25_and_the_worst_fold(capsys, collection, tmp_path):
    write_beir(tmp_path / "planted", collection)
    model = tmp_path / "m.safetensors"
    sr.TextRanker("bm25", lexical=sr.BM25(k1=1.2)).fit(collection.documents).save(model)
    command = ("evaluate", model, tmp_path / "planted", "--folds", "3")
    said = printed(capsys, *command)
    assert (said["folds"], said["split"], len(said["by_fold"])) == (3, "train", 3)
    assert said["queries"] == sum(fold["queries"] for fold in said["by_fold"])
    assert said["worst_fold"]["difference"] == min(fold["difference"] for fold in said["by_fold"])
    comparison = said["comparisons"]["learned"]["nDCG@10"]
    assert comparison["value"] == pytest.approx(said["measures"]["nDCG@10"]["value"])
    assert comparison["baseline"] == pytest.approx(said["bm25"]["nDCG@10"]["value"])
    assert call(*command) == 0
    out = capsys.readouterr().out
    assert "m.safetensors: its settings on 3 folds of planted (train)" in out
    assert "Worst fold: nDCG@10" in out
    assert call(*command, "--against", tmp_path / "other") == 2
    assert "give no --against" in capsys.readouterr().err


def test_the_command_prints_the_share_of_judgments_whose_reverse_is_in_another_fold(capsys, tmp_path):
    """p0 … p7 form a ring: each page links to both neighbours, so every link is mutual."""
    words = ["abate", "bribe", "clove", "drake", "elope", "flute", "grape", "hinge"]
    pages = {f"p{i}": f"{word}s {words[i - 1]}" for i, word in enumerate(words)}
    links = {f"p{i}": {f"p{(i + 1) % 8}": 1.0, f"p{(i - 1) % 8}": 1.0} for i in range(8)}
    collection = Collection("pages", Documents.of(pages), pages, {"train": links}, exclude_self=True)
    found = cross_validate(sr.TextRanker("bm25"), collection, links, 2)
    literal = sum(found.fold[d] != found.fold[q] for q in links for d in links[q])
    assert (found.reverses.judgments, found.reverses.of) == (literal, 16)
    write_beir(tmp_path / "pages", collection)
    sr.TextRanker("bm25").fit(collection.documents).save(tmp_path / "m.safetensors")
    command = ("evaluate", tmp_path / "m.safetensors", tmp_path / "pages", "--folds", "2", "--exclude-self")
    reverse = printed(capsys, *command)["reverse_in_training"]
    assert (reverse["judgments"], reverse["of"]) == (literal, 16)
    assert set(reverse) == {"judgments", "of", "share", "measures_without", "bm25_without"}
    assert call(*command) == 0
    out = capsys.readouterr().out
    assert f"{literal} of 16 judgments" in out
    assert 0 < literal < 16


def test_queries_of_one_group_are_in_one_fold(collection, tmp_path, capsys):
    qrels = collection.qrels["train"]
    group = {query: f"site {number % 7}" for number, query in enumerate(qrels)}
    found = cross_validate(sr.TextRanker("bm25"), collection, qrels, 3, query_group=group)
    folds_of = {name: {found.fold[query] for query in found.fold if group[query] == name} for name in group.values()}
    assert all(len(folds) == 1 for folds in folds_of.values())
    write_beir(tmp_path / "planted", collection)
    (tmp_path / "groups.tsv").write_text("".join(f"{query}\t{name}\n" for query, name in group.items()))
    sr.TextRanker("bm25").fit(collection.documents).save(tmp_path / "m.safetensors")
    command = ("evaluate", tmp_path / "m.safetensors", tmp_path / "planted", "--query-groups", tmp_path / "groups.tsv")
    said = printed(capsys, *command, "--folds", "3")
    sizes = [sum(number == fold for number in found.fold.values()) for fold in range(3)]
    assert [fold["queries"] for fold in said["by_fold"]] == sizes
    assert call(*command) == 2
    assert "--query-groups needs --folds N" in capsys.readouterr().err


def test_there_are_at_most_as_many_folds_as_groups(collection):
    with pytest.raises(ConfigError, match=r"number of folds must be from 2 to \d+, the number of groups"):
        cross_validate(sr.TextRanker(), collection, collection.qrels["train"], 10_000)
