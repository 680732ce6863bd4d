"""LambdaMART on the features of a ranker, with the real LightGBM and XGBoost, and the plugins of two engines."""

from __future__ import annotations

import json

import numpy as np
import pytest

import sparserank as sr
from sparserank.errors import ConfigError, DataError, NotFitted, NotInstalled
from sparserank.integrations import ltr, ltr_export, ltr_trees

from ..fruits import ENGLISH, fruits

pytest.importorskip("lightgbm")
pytest.importorskip("xgboost")
CLICKS = {f"d{i}": float(i % 7) for i in range(0, 60, 2)}


@pytest.fixture(scope="module")
def ranker():
    data = fruits()
    return sr.TextRanker(loss="squared").fit(data.documents, data.queries, data.qrels["train"])


@pytest.fixture(scope="module", params=["lightgbm", "xgboost"])
def model(request, ranker):
    data, patch = fruits(), pytest.MonkeyPatch()
    with patch.context() as smaller:  # one choice, so that the test is fast
        smaller.setattr(ltr, "LEAVES", (4,))
        smaller.setattr(ltr, "RATES", (0.1,))
        smaller.setattr(ltr, "ROUNDS", (5, 10))
        return ltr.fit_lambdamart(
            ranker, data.queries, data.qrels["train"], library=request.param, clicks=CLICKS, depth=40
        )


def plugin_score(definition, names, row):
    """The plugin's rule, literally: 32-bit numbers, `threshold > value` goes left, leaves are added."""
    total = np.float32(0.0)
    for tree in definition:
        node = tree
        while "leaf" not in node:
            yes, no = node["children"]
            assert (node["yes"], node["no"]) == (yes["nodeid"], no["nodeid"])
            assert isinstance(node["depth"], int)
            assert node["split"] in names
            goes_left = np.float32(node["split_condition"]) > row[names.index(node["split"])]
            node = yes if goes_left else no
        assert isinstance(node["nodeid"], int)
        total += np.float32(node["leaf"])
    return float(total)


def test_features_are_the_parts_of_the_score(ranker):
    features = ltr.Features(ranker, CLICKS)
    names = features.names
    assert names == ("bm25", "bm25_title", "bm25_text", "pair_score", "coverage", "length", "clicks")
    for doc in ("d0", "d7", "d12"):
        row = dict(zip(names, features.rows("malus red", [doc])[0].tolist(), strict=True))
        lexical, learned = ranker.explainer("malus red").parts(doc)
        assert row["bm25"] == pytest.approx(lexical.score, rel=1e-5)
        assert row["pair_score"] == pytest.approx(learned.score, rel=1e-4, abs=1e-6)
        words = ranker.index_.text_of(doc).split()
        assert row["coverage"] == float("red" in words)  # the index does not know the other word
        assert row["length"] == pytest.approx(np.log(1 + len(words) + 1))
        assert row["clicks"] == pytest.approx(np.log(1 + CLICKS.get(doc, 0.0)))
    documents = {f"d{i}": f"{ENGLISH[i % 5]}" for i in range(60)}
    titles = sr.TextRanker("bm25").fit(documents)
    assert features.rows("apple", ["d5"])[0, 1] == pytest.approx(titles.scores(["apple"], ["d5"])[0, 0])


def test_every_searched_field_has_a_feature_and_its_text_in_the_engine(tmp_path):
    docs = {
        "d1": {"title": "Apples", "body": "red and sweet", "tags": ["malus", "orchard tree"], "year": 1999},
        "d2": {"title": "Pears", "body": "green and sour", "tags": ["pyrus"], "year": 2000},
        "d3": {"title": "Figs", "body": "a sweet fruit", "year": 2001},
    }
    features = ltr.Features(sr.TextRanker("bm25").fit(docs))
    assert features.names[:4] == ("bm25", "bm25_title", "bm25_text", "bm25_tags")
    tags = sr.TextRanker("bm25").fit({"d1": "malus orchard tree", "d2": "pyrus", "d3": ""})
    for doc_id in docs:
        assert features.rows("malus", [doc_id])[0, 3] == pytest.approx(tags.scores(["malus"], [doc_id])[0, 0])
    assert features.lengths.tolist() == [1 + 3 + 3, 1 + 3 + 1, 1 + 3]
    model = ltr.LambdaMART(features, [{"nodeid": 0, "leaf": 1.0}], 10, {})
    stored = {one["name"]: one for one in ltr_export.feature_set(model)["featureset"]["features"]}
    assert stored["bm25_text"]["template"] == {"match": {"text": "{{keywords}}"}}
    assert stored["bm25_tags"]["template"] == {"match": {"sparserank_field_tags": "{{keywords}}"}}
    folder = ltr_export.export_ltr(model, tmp_path / "ltr", {"q": "malus"})
    mapping = json.loads((folder / "mapping.json").read_text())["properties"]
    assert mapping["sparserank_field_tags"] == {"type": "text"}
    added = json.loads((folder / "updates-00000.ndjson").read_text().splitlines()[1])["doc"]
    assert added == {"sparserank_length": 7, "sparserank_clicks": 0.0, "sparserank_field_tags": "malus orchard tree"}


def test_the_exported_trees_score_as_the_library_does(ranker, monkeypatch):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(400, 3)), 1).astype(np.float32)  # many values are thresholds
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 0.3).astype(int) + (X[:, 1] > 1.0)
    names, sizes = ["a", "b", "c"], [40] * 10
    import lightgbm
    import xgboost

    data = lightgbm.Dataset(X, y, group=sizes, feature_name=names)
    light = lightgbm.train({"objective": "lambdarank", "num_leaves": 8, "verbose": -1, "num_threads": 1}, data, 30)
    matrix = xgboost.DMatrix(X, y, feature_names=names)
    matrix.set_group(sizes)
    extreme = xgboost.train({"objective": "rank:ndcg", "base_score": 0.0, "nthread": 1}, matrix, 30)
    for trees, predicted in (
        (ltr_trees.lightgbm_trees(light), light.predict(X)),
        (ltr_trees.xgboost_trees(extreme), extreme.predict(matrix, output_margin=True)),
    ):
        literal = [plugin_score(json.loads(json.dumps(trees)), names, row) for row in X]
        np.testing.assert_allclose(literal, predicted, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(ltr_trees.evaluate_trees(trees, names, X), predicted, rtol=1e-4, atol=1e-5)


def test_the_model_file_scores_as_the_model_and_never_below_0(model):
    definition = ltr_export.model_body(model)["model"]["model"]["definition"]
    ids = list(model.features.ids)[:20]
    rows, scores = model.features.rows("prunus green", ids), model.scores("prunus green", ids)
    literal = np.array([plugin_score(definition, model.features.names, row) for row in rows])
    np.testing.assert_allclose(literal - definition[-1]["leaf"], scores, atol=1e-4)
    assert literal.min() > 0.0


def test_search_ranks_the_best_documents_again(model):
    ranker = model.features.ranker
    found = ranker.search("ficus black", 40)
    again = model.search("ficus black", 40)
    assert {hit.id for hit in again} == {hit.id for hit in found}
    assert [hit.score for hit in again] == sorted((hit.score for hit in again), reverse=True)
    assert model.search("no such words") == []
    assert model.info["queries"] == 40
    assert 0.0 < model.info["ndcg"] <= 1.0
    assert model.info["rounds"] == len(model.trees)


@pytest.mark.parametrize("engine", ["elasticsearch", "opensearch"])
def test_the_feature_set_has_a_query_for_every_feature_and_the_request_its_parameters(model, engine):
    stored = ltr_export.feature_set(model)["featureset"]["features"]
    request = ltr_export.request(model, "malus red", engine=engine)
    (params,) = [one["query"]["rescore_query"]["sltr"]["params"] for one in request["rescore"][-1:]]
    assert [one["name"] for one in stored if one["name"] in model.features.names] == list(model.features.names)
    assert {name for one in stored for name in one["params"]} == set(params)
    assert all(set(one) == {"name", "params", "template_language", "template"} for one in stored)
    if engine == "elasticsearch":
        terms = params["pairs_for"]["sparse_vector"]["query_vector"]
        assert request["query"]["sparse_vector"]["field"] == "sparserank"
    else:
        terms = params["pairs_for"]["neural_sparse"]["sparserank"]["query_tokens"]
        assert set(request["query"]["neural_sparse"]) == {"sparserank"}
        assert "sparse_vector" not in json.dumps(request)
    assert terms
    assert all(name.endswith("~") and 0.0 < weight <= 64.0 for name, weight in terms.items())


@pytest.mark.parametrize("engine", ["elasticsearch", "opensearch"])
def test_the_folder_has_what_the_plugin_needs(model, tmp_path, engine):
    folder = ltr_export.export_ltr(model, tmp_path / "ltr", {"q": "malus red"}, name="fruit", engine=engine)
    names = {"mapping.json", "updates-00000.ndjson", "featureset.json", "model.json", "query.json", "queries.jsonl"}
    assert names | {"README.md", "export.json"} == {path.name for path in folder.iterdir()}
    lines = (folder / "updates-00000.ndjson").read_text().splitlines()
    assert json.loads(lines[0]) == {"update": {"_id": "d0"}}
    assert json.loads(lines[1]) == {"doc": {"sparserank_length": 3, "sparserank_clicks": 0.0}}
    readme = (folder / "README.md").read_text()
    assert "_ltr/_featureset/fruit/_createmodel" in readme
    assert f"sparserank export --to {engine}`" in readme
    assert json.loads((folder / "export.json").read_text())["target"] == f"{engine}-ltr"
    assert json.loads((folder / "query.json").read_text()) == ltr_export.request(
        model, "malus red", name="fruit", engine=engine
    )
    with pytest.raises(ConfigError, match="engine"):
        ltr_export.export_ltr(model, tmp_path / "other", {"q": "malus"}, engine="solr")
    with pytest.raises(DataError, match="at least one"):
        ltr_export.export_ltr(model, tmp_path / "other", {})


def test_wrong_input_is_one_line(ranker, monkeypatch):
    data = fruits()
    queries, qrels = data.queries, data.qrels["train"]
    with pytest.raises(ConfigError, match="library"):
        ltr.fit_lambdamart(ranker, queries, qrels, library="catboost")
    with pytest.raises(NotFitted, match="this ranker has no index"):
        ltr.fit_lambdamart(sr.TextRanker("bm25"), queries, qrels)
    with pytest.raises(DataError, match="clicks on 'unknown', which is not in the index"):
        ltr.fit_lambdamart(ranker, queries, qrels, clicks={"unknown": 1.0})
    with pytest.raises(DataError, match="there is no document 'unknown'"):
        ltr.Features(ranker).rows("malus", ["unknown"])
    monkeypatch.setitem(ltr.LIBRARIES, "lightgbm", ("lightgbm", "99"))
    with pytest.raises(NotInstalled, match=r"pip install 'lightgbm>=99'"):
        ltr.fit_lambdamart(ranker, queries, qrels)
