"""The trees of `fit_lambdamart` for the learning-to-rank plugins of Elasticsearch and OpenSearch.

The words and pairs of a document are those of `sparserank export --to ENGINE`: the field `sparserank`, where `word` is
a word and `word~` the target of pairs. `updates` adds numbers, `length` and `clicks`, and the texts of fields beside
title and text, which the export has as metadata. Lucene allows no negative scores, so pairs are two features,
`pairs_for` and `pairs_against`, and `pair_score` is their difference; and a constant tree keeps the score of the model
above 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .. import validation
from ..data.files import PathLike
from ..errors import DataError
from ..export.folder import export_folder, json_line
from ..export.lucene import ENGINES, MAX_WEIGHT, body
from ..export.stages import MAX_CLAUSES
from ..export.vectors import LEARNED, term_name
from .ltr import LambdaMART
from .ltr_trees import smallest_sum

__all__ = ["export_ltr"]
NAME = "sparserank"
LENGTH, CLICKS = "sparserank_length", "sparserank_clicks"
PLUGINS = {
    "elasticsearch": ("https://elasticsearch-learning-to-rank.readthedocs.io/", "a plugin that you install"),
    "opensearch": ("https://docs.opensearch.org/latest/search-plugins/ltr/", "part of the distribution since 2.19"),
}
"""Where the plugin of an engine is documented, and where it comes from."""


def _engine_field(name: str) -> str:
    """Return the field of the engine that has the text of a searched field."""
    return name if name in ("title", "text") else f"sparserank_field_{term_name(name)}"


def feature_set(model: LambdaMART, name: str = NAME) -> dict[str, Any]:
    """Return the body of `POST _ltr/_featureset/NAME`.

    Parameters
    ----------
    model : LambdaMART
        The trees.
    name : str, default="sparserank"
        The name of the feature set.
    """
    features = []
    fields = {f"bm25_{term_name(name)}": _engine_field(name) for name in model.features.fields}
    for one in model.features.names:
        if one == "pair_score":
            features += [_query(part, part) for part in ("pairs_for", "pairs_against")]
            features.append(_feature(one, [], "pairs_for - pairs_against", "derived_expression"))
        elif one in ("bm25", "coverage"):
            features.append(_query(one, one))
        elif one in ("length", "clicks"):
            field = {"field": LENGTH if one == "length" else CLICKS, "modifier": "ln1p", "missing": 0}
            score = {"query": {"match_all": {}}, "field_value_factor": field, "boost_mode": "replace"}
            features.append(_feature(one, [], {"function_score": score}))
        else:
            features.append(_feature(one, ["keywords"], {"match": {fields[one]: "{{keywords}}"}}))
    return {"featureset": {"name": name, "features": features}}


def _query(name: str, param: str) -> dict[str, Any]:
    """A feature whose query is a parameter of the request."""
    return _feature(name, [param], f"{{{{#toJson}}}}{param}{{{{/toJson}}}}")


def _feature(name: str, params: list[str], template: Any, language: str = "mustache") -> dict[str, Any]:
    return {"name": name, "params": params, "template_language": language, "template": template}


def model_body(model: LambdaMART, name: str = NAME) -> dict[str, Any]:
    """Return the body of `POST _ltr/_featureset/NAME/_createmodel`.

    Parameters
    ----------
    model : LambdaMART
        The trees.
    name : str, default="sparserank"
        The name of the model.
    """
    trees = [*model.trees, {"nodeid": 0, "leaf": max(0.0, -smallest_sum(model.trees)) + 1.0}]
    return {"model": {"name": name, "model": {"type": "model/xgboost+json", "definition": trees}}}


def parameters(model: LambdaMART, text: str, engine: str = "elasticsearch") -> dict[str, Any]:
    """Return the parameters of the features for one query: its words, and its queries for words and pairs.

    Parameters
    ----------
    model : LambdaMART
        The trees.
    text : str
        The query.
    engine : {"elasticsearch", "opensearch"}, default="elasticsearch"
        The engine.
    """
    vectors = model.features.vectors
    weights = vectors.by_name(vectors.query(text))
    words = {name: weight for name, weight in weights.items() if not name.endswith(LEARNED)}
    pairs = {name: weight for name, weight in weights.items() if name.endswith(LEARNED)}
    share = 1.0 / max(len(words), 1)
    found = [{"constant_score": {"filter": _terms(engine, {name: 1.0}), "boost": share}} for name in words]
    return {
        "keywords": text,
        "bm25": _terms(engine, words),
        "pairs_for": _terms(engine, {name: weight for name, weight in pairs.items() if weight > 0.0}),
        "pairs_against": _terms(engine, {name: -weight for name, weight in pairs.items() if weight < 0.0}),
        "coverage": {"bool": {"should": found}} if found else {"match_none": {}},
    }


def _terms(engine: str, weights: Mapping[str, float]) -> dict[str, Any]:
    """Return the query for weighted terms: the heaviest ones that Lucene takes."""
    if not weights:
        return {"match_none": {}}
    heaviest = sorted(weights.items(), key=lambda one: -one[1])[:MAX_CLAUSES]
    return ENGINES[engine].clause({name: min(weight, MAX_WEIGHT) for name, weight in heaviest})


def request(
    model: LambdaMART, text: str, k: int = 10, name: str = NAME, engine: str = "elasticsearch"
) -> dict[str, Any]:
    """Return the search: the best documents by words and pairs, ranked again by the trees.

    Parameters
    ----------
    model : LambdaMART
        The trees.
    text : str
        The query.
    k : int, default=10
        The number of results.
    name : str, default="sparserank"
        The name of the model.
    engine : {"elasticsearch", "opensearch"}, default="elasticsearch"
        The engine.
    """
    search = body(ENGINES[engine], model.features.vectors, text, k, model.depth)
    trees = {"sltr": {"params": parameters(model, text, engine), "model": name}}
    again = {"rescore_query": trees, "query_weight": 0.0, "rescore_query_weight": 1.0}
    rescore = [*search.get("rescore", []), {"window_size": model.depth, "query": again}]
    return search | {"rescore": rescore}


def updates(model: LambdaMART) -> Iterator[bytes]:
    """Yield an action and a partial document for the bulk API, one line each: length, clicks, and further fields.

    Parameters
    ----------
    model : LambdaMART
        The trees.
    """
    features = model.features
    added = _added_fields(model)
    columns = zip(*(features.columns[name] for name in added), strict=True) if added else [()] * len(features.ids)
    rows = zip(features.ids, features.lengths.tolist(), features.click_counts.tolist(), columns, strict=True)
    for doc_id, length, clicks, texts in rows:
        document = {LENGTH: length, CLICKS: clicks} | dict(zip(added.values(), texts, strict=True))
        yield json_line({"update": {"_id": doc_id}}) + json_line({"doc": document})


def _added_fields(model: LambdaMART) -> dict[str, str]:
    """Return {searched field: field of the engine} of those that the export has only as metadata."""
    return {name: _engine_field(name) for name in model.features.fields if _engine_field(name) != name}


def export_ltr(
    model: LambdaMART,
    output: PathLike,
    queries: Mapping[str, str],
    name: str = NAME,
    engine: str = "elasticsearch",
) -> Path:
    """Write a folder with everything that the plugin needs beside an export to the same engine.

    Parameters
    ----------
    model : LambdaMART
        The trees.
    output : path
        The folder; an earlier export there is replaced.
    queries : mapping of str to str
        {id: text} of queries to write as requests.
    name : str, default="sparserank"
        The name of the feature set and of the model.
    engine : {"elasticsearch", "opensearch"}, default="elasticsearch"
        The engine.

    Returns
    -------
    Path
        The folder.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sparserank import TextRanker
    >>> from sparserank.integrations.ltr import Features, LambdaMART
    >>> features = Features(TextRanker("bm25").fit({"d1": "red apples", "d2": "a pear"}))
    >>> model = LambdaMART(features, [{"nodeid": 0, "leaf": 1.0}], depth=100, info={})
    >>> with TemporaryDirectory() as folder:
    ...     sorted(path.name for path in export_ltr(model, f"{folder}/ltr", {"q1": "apple"}).glob("*.json"))
    ['export.json', 'featureset.json', 'mapping.json', 'model.json', 'query.json']
    """
    if not queries:
        raise DataError("there are no queries: give at least one")
    validation.choice("engine", engine, tuple(PLUGINS))
    target, (manual, comes) = f"{engine}-ltr", PLUGINS[engine]
    texts = {field: {"type": "text"} for field in _added_fields(model).values()}
    mapping = {"properties": {LENGTH: {"type": "integer"}, CLICKS: {"type": "double"}} | texts}
    with export_folder(output) as folder:
        folder.json("mapping.json", mapping)
        folder.parts("updates-{}.ndjson", updates(model))
        folder.json("featureset.json", feature_set(model, name))
        folder.json("model.json", model_body(model, name))
        folder.requests(queries, lambda text: {"body": request(model, text, name=name, engine=engine)})
        folder.readme(
            "ltr", model.features.vectors, queries,
            target=engine, title=ENGINES[engine].title, needs=ENGINES[engine].needs, manual=manual, comes=comes,
            model=name, trees=len(model.trees), depth=model.depth,
        )  # fmt: skip
        folder.json("export.json", {"target": target, "info": dict(model.info), "files": folder.files})
    return Path(output)
