"""Learned pairs as a synonym file in Solr's format, for engines that take nothing else.

    motor, motors => motor, engine

A rule stands before the engine's stemmer, so it is spelled as documents spell its words: on the left every spelling of
a query word, on the right one spelling of it and one of each word it has learned to look for. Weights, signs and pairs
of neighbouring words do not fit into such a file and are left out, as are light pairs.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .. import validation
from ..data.files import PathLike, numbered_lines
from ..errors import DataError, ModelError
from ..text.analyzer import tokenize
from .folder import Folder
from .lucene import LOADING, bulk
from .vectors import Vectors

MOST, AT_LEAST = 5, 1 / 6
"""Words a rule adds at most, and what a pair must weigh, the heaviest being 1. Chosen on NFCorpus dev;
benchmarks/synonym_defaults.py varies them on training queries."""
_SPECIAL = re.compile(r"([,\\#]|=>)")
README = """# Synonyms

{rules:,} rules in Solr's format, which Lucene, Solr, Elasticsearch and OpenSearch read. They only widen a query:
weights and signs are lost, so expect far less than the model itself gives (docs/guides/export.md has figures).

`index.json` makes an index of Elasticsearch or OpenSearch whose queries, and only those, go through the rules, before
stop words and the {stem} stemmer, which documents go through as well. Put `synonyms.txt` under `config/analysis/` of
every node, then make the index and load the {documents:,} documents:

{loading}

A query – here {example!r} – finds something only when the documents are loaded:

    curl -X POST $ENGINE/sparserank/_search -H 'content-type: application/json' -d @query.json

`queries.jsonl` has every query that was given, one a line: its `id`, and the `body` to send.

In Solr, use the same order: SynonymGraphFilterFactory with synonyms="synonyms.txt" in the query analyzer, behind
LowerCaseFilterFactory and before the stemmer. Which rules a query meets is what

    sparserank export MODEL --to synonyms --query {quoted}

prints.
"""


@dataclass(frozen=True)
class Rule:
    """What is written for what is found."""

    found: tuple[str, ...]
    written: tuple[str, ...]

    def __str__(self) -> str:
        return f"{', '.join(map(_quoted, self.found))} => {', '.join(map(_quoted, self.written))}"


def _quoted(word: str) -> str:
    return _SPECIAL.sub(lambda special: "".join("\\" + c for c in special[0]), word)


def spellings(vectors: Vectors) -> dict[str, list[str]]:
    """{word as it is counted: its spellings in the documents, the commonest first}."""
    analyzer = replace(vectors.model.lexical.analyzer, ngrams=1)
    written = replace(analyzer, stem=None, stop_words=None)
    counts: Counter[str] = Counter()
    for texts in (vectors.index.documents.titles, vectors.index.documents.texts):
        for names, tokens, _ in tokenize(written, texts):
            counts.update({names[token]: n for token, n in Counter(tokens.tolist()).items()})
    words = sorted(counts, key=lambda word: (-counts[word], word))
    out: dict[str, list[str]] = {}
    for word, form in zip(words, analyzer.normal_forms(words), strict=True):
        if form is not None:
            out.setdefault(form, []).append(word)
    return out


def rules(vectors: Vectors, most: int = MOST, at_least: float = AT_LEAST) -> list[Rule]:
    """A rule for every word that looks for others, by falling weight of the pairs; a model without pairs is refused."""
    validation.count("most", most, low=1)
    validation.number("at_least", at_least, low=0.0, high=1.0)
    if vectors.model.W is None:
        raise ModelError("this model has learned no word pairs; there is nothing to make synonyms of")
    spelled = spellings(vectors)
    looked_for: dict[str, list[tuple[float, str]]] = {}
    pairs = {pair: weight for pair, weight in vectors.model.named_pairs().items() if pair[0] != pair[1]}
    enough = at_least * max(pairs.values(), default=0.0)
    for (query, document), weight in pairs.items():
        if weight > 0.0 and weight >= enough and " " not in query and " " not in document:
            looked_for.setdefault(query, []).append((-weight, document))
    out = []
    for query in sorted(looked_for, key=lambda word: (min(looked_for[word]), word)):
        chosen = [word for _, word in sorted(looked_for[query]) if word in spelled][:most]
        if chosen:
            own = spelled.get(query, [query])
            out.append(Rule(tuple(own), (own[0], *(spelled[word][0] for word in chosen))))
    return out


def read_synonyms(path: PathLike) -> list[Rule]:
    """Rules of a file, explicit ones alone: `a, b => c, d`."""
    out = []
    for number, line in numbered_lines(path):
        if line.lstrip().startswith("#"):
            continue
        sides = re.split(r"(?<!\\)=>", line)
        if len(sides) != 2 or not all(side.strip() for side in sides):
            raise DataError(f"{path}:{number}: a rule is 'found, found => written, written'; got {line[:60]!r}")
        out.append(Rule(*(_words(side) for side in sides)))
    return out


def _words(side: str) -> tuple[str, ...]:
    return tuple(re.sub(r"\\(.)", r"\1", word.strip()) for word in re.split(r"(?<!\\),", side))


def met(made: Iterable[Rule], vectors: Vectors, text: str) -> list[Rule]:
    """The rules that a query meets."""
    analyzer = replace(vectors.model.lexical.analyzer, ngrams=1, stem=None, stop_words=None)
    words = set(analyzer.tokens(text))
    return [rule for rule in made if words.intersection(rule.found)]


def index_body(vectors: Vectors) -> dict[str, Any]:
    """An index that analyses words as the model does, and queries through the rules first.

    Java's own word class knows no letter beyond ASCII, or combining marks too; letters and digits are what ours has.
    """
    analyzer = vectors.model.lexical.analyzer
    filters: dict[str, Any] = {"pairs": {"type": "synonym_graph", "synonyms_path": "analysis/synonyms.txt"}}
    filters["long"] = {"type": "length", "min": analyzer.shortest}
    before = [*(["lowercase"] if analyzer.lowercase else []), "long"]
    after = []
    if analyzer.stop_word_set:
        filters["stopped"] = {"type": "stop", "stopwords": sorted(analyzer.stop_word_set)}
        after.append("stopped")
    if analyzer.stemmer:
        filters["stems"] = {"type": "snowball", "language": analyzer.stemmer.capitalize()}
        after.append("stems")
    tokens = {"word": {"type": "pattern", "pattern": r"[^\p{L}\p{N}_]+"}}
    kinds = {"written": [*before, *after], "asked": [*before, "pairs", *after]}
    analyzers = {name: {"type": "custom", "tokenizer": "word", "filter": chain} for name, chain in kinds.items()}
    searched = {"type": "text", "analyzer": "written", "search_analyzer": "asked"}
    analysis = {"tokenizer": tokens, "filter": filters, "analyzer": analyzers}
    stored = {"type": "text", "index": False, "copy_to": "content"}
    properties = {"id": {"type": "keyword"}, "title": stored, "text": stored, "content": searched}
    return {"settings": {"analysis": analysis}, "mappings": {"dynamic": "strict", "properties": properties}}


def body(text: str, k: int = 10) -> dict[str, Any]:
    """A search in titles and texts together; the rules are the engine's part."""
    return {"size": k, "_source": ["id", "title"], "query": {"match": {"content": {"query": text}}}}


def write(folder: Folder, vectors: Vectors, queries: Mapping[str, str]) -> None:
    """Rules, an index that uses them, its documents and queries."""
    made = rules(vectors)
    folder.text("synonyms.txt", "".join(f"{rule}\n" for rule in made))
    folder.json("index.json", index_body(vectors))
    folder.parts("bulk-{}.ndjson", bulk(vectors, weighted=False))
    first = next(iter(queries.values()))
    folder.json("query.json", body(first))
    folder.lines("queries.jsonl", ({"id": name, "body": body(text)} for name, text in queries.items()))
    numbers = {"rules": len(made), "documents": len(vectors.index)}
    told = {"stem": vectors.model.lexical.analyzer.stemmer or "missing", "loading": LOADING}
    folder.text("README.md", README.format(example=first, quoted=shlex.quote(first), **told, **numbers))
