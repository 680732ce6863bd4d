"""Files of term weights: what is written is read back."""

from __future__ import annotations

import re
import shlex
from collections import Counter

import numpy as np
import pytest
from benchmarks.engine_simulation import Postings

from sparserank.data.formats.trec import read_run
from sparserank.errors import DataError
from sparserank.export import export, trec, vectors_of

from .readers import read_ciff, read_vectors
from .worlds import exact, vectors_and_queries, world


def test_weights_impacts_queries_topics_and_the_run_come_back(tmp_path):
    ranker, queries = world(1)
    summary = export(ranker, "trec", tmp_path / "made", queries)
    made, vectors = tmp_path / "made", vectors_of(ranker)
    assert set(summary["files"]) >= {"vectors.jsonl", "impacts/impacts.jsonl", "queries.jsonl", "topics.tsv", "run.txt"}
    documents = read_vectors(made / "vectors.jsonl")
    impacts = read_vectors(made / "impacts/impacts.jsonl")
    for document in vectors.documents():
        names = [vectors.names[term] for term in document.terms]
        assert list(documents[document.id]) == names == list(impacts[document.id])
        assert (np.float32(list(documents[document.id].values())) == document.weights).all()
        assert all(value == int(value) >= 1 for value in impacts[document.id].values())
    encoded = read_vectors(made / "queries.jsonl")
    for name, text in queries.items():
        assert encoded[name] == pytest.approx(vectors.by_name(vectors.query(text)))
    topics = dict(line.split("\t") for line in (made / "topics.tsv").read_text().splitlines())
    assert "none" not in topics, "readers stumble over an empty topic"
    for name, line in topics.items():
        counts = Counter(line.split(" "))
        assert set(counts) <= {term for term, weight in encoded[name].items() if weight > 0.0}
        assert max(counts.values()) == 2**trec.QUERY_BITS - 1
    run = read_run(made / "run.txt")
    for name, text in queries.items():
        assert list(run.get(name, {}))[:10] == [doc for doc, _ in exact(vectors, text)]


def test_ciff_and_the_impacts_beside_it_agree(tmp_path):
    ranker, queries = world(2)
    export(ranker, "trec", tmp_path / "trec", queries)
    export(ranker, "ciff", tmp_path / "ciff", queries)
    index = read_ciff(tmp_path / "ciff/index.ciff")
    rows = {
        doc: {index.terms[j]: float(row[j]) for j in np.flatnonzero(row)}
        for doc, row in zip(index.ids, index.impacts.toarray(), strict=True)
    }
    assert rows == read_vectors(tmp_path / "trec/impacts/impacts.jsonl")
    topics = (tmp_path / "ciff/topics.txt").read_text().splitlines()
    assert [line.replace(":", "\t", 1) for line in topics] == (tmp_path / "trec/topics.tsv").read_text().splitlines()


# of https://pisa-engine.github.io/pisa/book/cli/evaluate_queries.html and its neighbours, and of ciff2pisa --help
PISA_OPTIONS = {
    "ciff2pisa": {"--ciff-file", "--output", "--generate-lexicons"},
    "compress_inverted_index": {"--encoding", "--collection", "--output"},
    "create_wand_data": {"--collection", "--output", "--block-size", "--scorer"},
    "evaluate_queries": {
        "--encoding", "--algorithm", "--index", "--wand", "--terms", "--documents", "--tokenizer", "--weighted",
        "--scorer", "--queries", "-k",
    },
}  # fmt: skip


def test_pisa_is_given_lexicons_and_a_tokenizer_that_leaves_terms_whole(tmp_path):
    ranker, queries = world(2)
    export(ranker, "ciff", tmp_path / "made", queries)
    readme = (tmp_path / "made/README.md").read_text().replace("\\\n", " ")
    commands = [
        shlex.split(line) for line in readme.splitlines() if line.split()[:1] and line.split()[0] in PISA_OPTIONS
    ]
    assert [command[0] for command in commands] == list(PISA_OPTIONS)
    for tool, *words in commands:
        assert {word for word in words if word.startswith("-")} <= PISA_OPTIONS[tool]
    made, _, _, options = (dict(re.findall(r"(-\S+) ([^-]\S*)", " ".join(command))) for command in commands)
    assert "--generate-lexicons" in commands[0], "without it there is no .termlex and no .doclex"
    assert (options["--terms"], options["--documents"]) == (f"{made['--output']}.termlex", f"{made['--output']}.doclex")
    assert options["--tokenizer"] == "whitespace"
    assert options["--scorer"] == "quantized"
    assert "--weighted" in commands[3]


def test_impacts_find_nearly_what_the_positive_weights_find():
    vectors, queries = vectors_and_queries(3)
    from sparserank.export.impacts import Impacts

    lines = list(trec.vector_lines(vectors, Impacts.over(float(vectors.largest.max()))))
    engine = Postings([line["id"] for line in lines], [line["vector"] for line in lines])
    for text in queries.values():
        positive = {vectors.names[t]: w for t, w in vectors.query(text).items() if w > 0.0}
        whole = Postings([line["id"] for line in lines], [line["vector"] for line in trec.vector_lines(vectors)])
        expected, found = whole.scores(positive), engine.scores(trec.topic(vectors, text))
        if expected.max() > 0.0:
            assert expected[found.argmax()] >= 0.9 * expected.max()


def test_a_topic_has_no_more_terms_than_lucene_takes(monkeypatch):
    vectors, queries = vectors_and_queries(4)
    split = trec.SignedQuery.split
    monkeypatch.setattr(trec.SignedQuery, "split", lambda query, largest: split(query, largest, max_terms=2))
    assert all(len(trec.topic(vectors, text)) <= 2 for text in queries.values())


def test_ids_that_a_topic_file_cannot_hold_raise(tmp_path):
    ranker, _ = world(5)
    with pytest.raises(DataError, match="must have no colon"):
        export(ranker, "ciff", tmp_path / "made", {"a:b": "alkan"})
    with pytest.raises(DataError, match="white space"):
        export(ranker, "trec", tmp_path / "made", {"a b": "alkan"})
    assert not (tmp_path / "made").exists()
