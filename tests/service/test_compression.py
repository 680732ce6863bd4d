"""Answers in brotli or gzip, by the q-values of Accept-Encoding."""

from __future__ import annotations

import gzip

import brotli
import httpx
import pytest

from sparserank.service.compression import choose_encoding

BODY = {"query": "red car", "k": 24, "explain": True}
DECODERS = {"br": brotli.decompress, "gzip": gzip.decompress, "": lambda content: content}


def raw(service, method, path, accept, **options):
    """The answer with its body as it was sent."""
    with service.client.stream(method, path, headers={"Accept-Encoding": accept}, **options) as answer:
        return answer, b"".join(answer.iter_raw())


@pytest.mark.parametrize(
    ("accept", "encoding"),
    [
        ("br", "br"), ("gzip", "gzip"), ("gzip, br", "br"), ("gzip, br;q=0.9", "gzip"), ("GZIP;Q=0.5", "gzip"),
        ("identity", ""), ("", ""), ("*", "br"), ("*, br;q=0", "gzip"), ("br;q=0, gzip;q=0", ""),
        ("identity;q=1, br;q=0.5", ""), ("br;q=x, gzip", "gzip"), ("deflate, zstd", ""), (";;,,q=1", ""),
    ],
)  # fmt: skip
def test_the_encoding_is_the_one_that_the_client_prefers(service, accept, encoding):
    assert choose_encoding(accept) == encoding
    plain = service.client.post("/search", json=BODY, headers={"Accept-Encoding": "identity"})
    answer, body = raw(service, "POST", "/search", accept, json=BODY)
    assert answer.headers.get("content-encoding", "") == encoding
    assert answer.headers["vary"] == "Accept-Encoding"
    assert int(answer.headers["content-length"]) == len(body)
    assert len(DECODERS[encoding](body)) == pytest.approx(len(plain.content), abs=20)  # the time differs
    assert not encoding or len(body) < len(plain.content) / 2


@pytest.mark.parametrize("encoding", ["br", "gzip", ""])
def test_files_of_the_page_are_compressed_once_and_well(service, encoding):
    answer, body = raw(service, "GET", "/page/results.js", encoding or "identity")
    assert answer.headers.get("content-encoding", "") == encoding
    assert answer.headers["vary"] == "Accept-Encoding"
    plain = service.client.get("/page/results.js", headers={"Accept-Encoding": "identity"}).content
    assert DECODERS[encoding](body) == plain
    assert encoding != "br" or body == brotli.compress(plain, quality=11)


def test_small_answers_stay_as_they_are(service):
    answer, _ = raw(service, "GET", "/ready", "br, gzip")
    assert "content-encoding" not in answer.headers
    assert "vary" not in answer.headers


def test_head_answers_with_the_headers_of_get(service):
    for path in ("/", "/page/main.js"):
        head = httpx.head(f"{service.address}{path[1:]}", headers={"Accept-Encoding": "br"})
        assert (head.status_code, head.content, head.headers["content-encoding"]) == (200, b"", "br")
