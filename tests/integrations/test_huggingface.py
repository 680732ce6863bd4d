"""The Hugging Face Hub: a local folder, and a stand-in of the endpoint that stores what the real client sends."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import numpy as np
import pytest

import sparserank as sr
from tests.motors import QRELS, QUERIES
from tests.test_docstrings import faults

hub = pytest.importorskip(
    "huggingface_hub", reason="huggingface_hub is not installed: pip install 'sparserank[integrations]'"
)

from sparserank.errors import DataError, ModelError, NotFitted  # noqa: E402
from sparserank.evaluation import evaluate_run  # noqa: E402
from sparserank.integrations import huggingface  # noqa: E402
from sparserank.integrations.huggingface import (  # noqa: E402
    from_pretrained,
    model_card,
    push_to_hub,
    save_pretrained,
)  # fmt: skip

from .conftest import TEXTS  # noqa: E402

SHA = "0123456789abcdef0123456789abcdef01234567"


class Hub(BaseHTTPRequestHandler):
    """The requests of create_repo, upload_folder and snapshot_download; the files lie in `server.repos`."""

    def log_message(self, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        repos, path = self.server.repos, self.path.partition("?")[0]
        self.server.tokens.add(self.headers.get("Authorization"))
        if self.headers.get("Authorization") == "Bearer hf_wrong":
            return self.send_json({"error": "Invalid username or password."}, 401)
        if path == "/api/repos/create":
            repos.setdefault("me/" + json.loads(body)["name"], {})
            return self.send_json({"url": "https://huggingface.co/me/motors"})
        if path == "/api/validate-yaml":
            return self.send_json({"warnings": [], "errors": []})
        if path.endswith("/preupload/main"):
            files = [
                {"path": one["path"], "uploadMode": "regular", "shouldIgnore": False}
                for one in json.loads(body)["files"]
            ]
            return self.send_json({"files": files})
        if path.endswith("/commit/main"):
            repo = re.fullmatch(r"/api/models/(.*)/commit/main", path)[1]
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    repos[repo][line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            return self.send_json({"commitUrl": f"https://huggingface.co/{repo}/commit/{SHA}", "commitOid": SHA})
        return self.send_json({"error": path}, 404)

    def do_GET(self) -> None:
        repos, path = self.server.repos, self.path.partition("?")[0]
        if info := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/(.*))?", path):
            if info[1] in repos:
                files = [{"rfilename": name} for name in repos[info[1]]]
                return self.send_json({"id": info[1], "modelId": info[1], "sha": SHA, "siblings": files})
        elif tree := re.fullmatch(r"/api/models/([^/]+/[^/]+)/tree/.*", path):
            return self.send_json(
                [
                    {"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
                    for name, data in repos[tree[1]].items()
                ]
            )
        elif file := re.fullmatch(r"/([^/]+/[^/]+)/resolve/[^/]+/(.*)", path):
            data = repos[file[1]].get(file[2])
            if data is not None:
                headers = {"ETag": f'"{hashlib.sha1(data).hexdigest()}"', "X-Repo-Commit": SHA}
                return self.reply(data, headers)
        return self.send_json({"error": "Repository not found"}, 404, {"X-Error-Code": "RepoNotFound"})

    do_HEAD = do_GET  # noqa: N815

    def send_json(self, value: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.reply(json.dumps(value).encode(), {"Content-Type": "application/json"} | (headers or {}), status)

    def reply(self, data: bytes, headers: dict[str, str], status: int = 200) -> None:
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(data))}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Any]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.repos, server.tokens = {}, set()
    server.address = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def results(ranker):
    return [[(hit.id, hit.score) for hit in ranker.search(text)] for text in TEXTS]


def test_a_pushed_model_comes_back_with_the_same_results(endpoint, ranker, tmp_path):
    where = push_to_hub(ranker, "me/motors", token="hf_secret", endpoint=endpoint.address)
    assert where == f"https://huggingface.co/me/motors/commit/{SHA}"
    assert endpoint.tokens == {"Bearer hf_secret"}
    assert set(endpoint.repos["me/motors"]) == {"model.safetensors", "model.safetensors.index", "README.md"}
    options = {"cache_dir": tmp_path, "endpoint": endpoint.address}
    loaded = from_pretrained("me/motors", **options)
    assert results(loaded) == results(ranker)
    assert loaded.get_params(deep=False).keys() == ranker.get_params(deep=False).keys()
    kept = from_pretrained("me/motors", cache_dir=tmp_path, local_files_only=True, endpoint="http://127.0.0.1:9")
    assert results(kept) == results(ranker), "from the cache, without the network"


def test_a_folder_is_loaded_without_the_hub_and_may_leave_the_texts_out(ranker, tmp_path):
    save_pretrained(ranker, tmp_path / "new/folder")
    assert results(from_pretrained(tmp_path / "new/folder")) == results(ranker)
    save_pretrained(ranker, tmp_path / "new/folder", index=False)
    assert {file.name for file in (tmp_path / "new/folder").iterdir()} == {"model.safetensors", "README.md"}
    assert not hasattr(from_pretrained(tmp_path / "new/folder"), "index_")


@pytest.fixture(scope="module")
def dense_ranker() -> sr.TextRanker:
    """Latin names that no document has; only the vectors lead from them to the documents."""
    fruits = ("malus", "pyrus", "vitis", "ficus", "rubus", "citrus", "prunus", "musa")
    docs = {f"{name}-{i}": f"fruit {i} of shelf {n}" for n, name in enumerate(fruits) for i in range(6)}
    qrels = {name: {f"{name}-{i}": 1.0 for i in range(6)} for name in fruits}
    unit = np.eye(8)
    dense = sr.Dense(unit, np.repeat(unit, 6, axis=0), name="latin-8")
    ranker = sr.TextRanker("bm25").fit(docs, {name: f"a fruit {name}" for name in fruits}, qrels, dense=dense)
    assert ranker.model_.dense.weight > 0.0
    return ranker


def test_a_model_with_embeddings_takes_its_vectors_along_and_says_what_it_needs(endpoint, dense_ranker, tmp_path):
    push_to_hub(dense_ranker, "me/dense", endpoint=endpoint.address)
    assert "model.safetensors.dense" in endpoint.repos["me/dense"]
    card = endpoint.repos["me/dense"]["README.md"].decode()
    assert "embeddings of latin-8 (8 dimensions)" in card
    assert "k=10, dense=vector)" in card
    vector = [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    wanted = [(hit.id, hit.score) for hit in dense_ranker.search("a fruit", 6, dense=vector)]
    assert {doc_id for doc_id, _ in wanted} == {f"vitis-{i}" for i in range(6)}
    save_pretrained(dense_ranker, tmp_path / "folder")
    for loaded in (
        from_pretrained("me/dense", cache_dir=tmp_path / "cache", endpoint=endpoint.address),
        from_pretrained(tmp_path / "folder"),
    ):
        assert [(hit.id, hit.score) for hit in loaded.search("a fruit", 6, dense=vector)] == wanted
        with pytest.raises(DataError, match=r"ranks with vectors of latin-8 \(8 dimensions\)"):
            loaded.search("a fruit")


def test_without_the_index_no_vector_of_a_document_is_written(endpoint, dense_ranker, tmp_path):
    save_pretrained(dense_ranker, tmp_path)  # the files of an earlier call are removed
    save_pretrained(dense_ranker, tmp_path, index=False)
    assert {file.name for file in tmp_path.iterdir()} == {"model.safetensors", "README.md"}
    push_to_hub(dense_ranker, "me/private", index=False, endpoint=endpoint.address)
    assert set(endpoint.repos["me/private"]) == {"model.safetensors", "README.md"}
    other = from_pretrained(tmp_path).over({"d1": "a fruit", "d2": "a fruit"})
    with pytest.raises(NotFitted, match=r"no vectors of documents, of latin-8 \(8 dimensions\); set them with embed"):
        other.search("a fruit", dense=[1.0] * 8)


def test_the_card_has_data_figures_with_intervals_pairs_and_licence(ranker):
    model, lexical = (
        evaluate_run({q: {h.id: h.score for h in search(text)} for q, text in QUERIES.items()}, QRELS, "nDCG@10 RR")
        for search in (ranker.search, ranker.search_lexical)
    )
    card = model_card(
        ranker, name="me/motors", data="Four documents.", evaluation=model, baseline=lexical, license="cc-by-4.0"
    )
    parsed = hub.ModelCard(card)
    assert (parsed.data.license, parsed.data.library_name) == ("cc-by-4.0", "sparserank")
    value = model["nDCG@10"]
    assert f"| nDCG@10 | {value.value:.4f} [{value.low:.4f}, {value.high:.4f}] | " in card
    pair = ranker.top_pairs(1)[0]
    assert f"| {pair.query} | {pair.document} | {pair.contribution:+.3f} |" in card
    assert "Four documents." in card
    assert "did not say" in model_card(ranker)


def test_what_is_not_there_is_one_line(endpoint, ranker, tmp_path):
    options = {"cache_dir": tmp_path, "endpoint": endpoint.address}
    with pytest.raises(DataError, match="me/none: no folder, and no model that the Hub gives") as error:
        from_pretrained("me/none", **options)
    assert "\n" not in str(error.value)
    with pytest.raises(DataError, match="no folder"):
        from_pretrained("me/none", local_files_only=True, **options)
    with pytest.raises(DataError, match="no folder"):
        from_pretrained("not a/repo/id", **options)
    with pytest.raises(DataError, match=r"me/other: the Hub does not take the upload: .*401") as error:
        push_to_hub(ranker, "me/other", token="hf_wrong", endpoint=endpoint.address)
    assert "\n" not in str(error.value)
    with pytest.raises(DataError, match="not a repo: the Hub does not take the upload"):
        push_to_hub(ranker, "not a repo", endpoint=endpoint.address)
    with pytest.raises(DataError, match=r"the Hub does not take the upload: .*refused"):
        push_to_hub(ranker, "me/other", endpoint="http://127.0.0.1:9")
    with pytest.raises(DataError, match=r"contains no model\.safetensors"):
        from_pretrained(tmp_path)
    sr.RankSVM().fit([[1.0], [0.0]], [1, 0]).save(tmp_path / "model.safetensors")
    with pytest.raises(ModelError, match="expected a text ranker, found RankSVM"):
        from_pretrained(tmp_path)


def test_every_function_describes_its_parameters():
    for name in ("model_card", "save_pretrained", "push_to_hub", "from_pretrained"):
        assert not faults(getattr(huggingface, name))
