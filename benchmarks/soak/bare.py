"""A bare search service to compare with: uvicorn and bm25s, JSON in and out, nothing else.

It answers each request with a search for its `query`, whatever the path. `python -m benchmarks.soak.bare DATA WORKERS`
prints its address as a JSON line.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

from .service import descendants

TOP = 10


def main() -> None:
    import bm25s
    import Stemmer
    import uvicorn

    from sparserank.data.open import open_collection
    from sparserank.service.server import listen, url_of

    documents = open_collection(sys.argv[1]).documents
    ids, titles, stemmer = list(documents.ids), list(documents.titles), Stemmer.Stemmer("english")
    texts = [f"{title} {text}" for title, text in zip(titles, documents.texts, strict=True)]
    index = bm25s.BM25()
    index.index(bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False), show_progress=False)

    def search(query: str) -> list[dict[str, Any]]:
        tokens = bm25s.tokenize([query], stopwords="en", stemmer=stemmer, show_progress=False)
        found, scores = index.retrieve(tokens, k=min(TOP, len(ids)), show_progress=False, n_threads=0)
        pairs = zip(found[0].tolist(), scores[0].tolist(), strict=True)
        return [{"id": ids[i], "title": titles[i], "score": score} for i, score in pairs]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        body = (await receive())["body"]
        answer = json.dumps({"results": search(json.loads(body)["query"])}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    (listening,) = listen("127.0.0.1", 0)
    print(json.dumps({"address": url_of(listening)}), flush=True)
    for _ in range(1, int(sys.argv[2])):
        if os.fork() == 0:
            break
    config = uvicorn.Config(app, lifespan="off", log_level="error", access_log=False)
    uvicorn.Server(config).run(sockets=[listening])


class Bare:
    """The bare service as a process, or as several that share its address."""

    command = "bare uvicorn + bm25s"

    def __init__(self, data: str, workers: int = 1) -> None:
        self._data, self._workers = data, workers

    def __enter__(self) -> Bare:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.soak.bare", self._data, str(self._workers)],
            stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        assert self.process.stdout is not None
        self.address = str(json.loads(self.process.stdout.readline())["address"]).rstrip("/")
        return self

    def pids(self) -> list[int]:
        """All of its processes."""
        return descendants(self.process.pid)

    def __exit__(self, *_: object) -> None:
        for pid in reversed(self.pids()):
            os.kill(pid, signal.SIGTERM)
        self.process.communicate()


if __name__ == "__main__":
    main()
