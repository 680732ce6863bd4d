"""Learned pairs as a synonym file in Solr's format, for engines that support nothing else.

    motor, motors => motor, engine

The engine applies rules before its stemmer, so rules have words as documents spell them: on the left all spellings of a
query word, on the right its commonest spelling and that of each paired word. The format has no weights, signs or word
n-grams. Light pairs are left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .. import validation
from ..errors import ModelError
from ..text.segmentation import SEGMENTED
from ..text.tokens import tokenize
from .folder import Folder
from .lucene import bulk, metadata_property, with_filter
from .vectors import Vectors, term_name

MAX_WORDS, MIN_WEIGHT = 40, 1 / 6
"""The most words that a rule adds, and the least weight of a pair relative to the heaviest one. Tuned on NFCorpus
training queries: benchmarks/synonym_defaults.py."""
_SPECIAL = re.compile(r"([,\\#]|=>)")


@dataclass(frozen=True)
class Rule:
    """Any of the words is replaced by all of the replacements; a group of equals has the same words on both sides."""

    words: tuple[str, ...]
    replacements: tuple[str, ...]

    def __str__(self) -> str:
        words, replacements = (", ".join(map(_escape, side)) for side in (self.words, self.replacements))
        return words if self.words == self.replacements else f"{words} => {replacements}"


def _escape(word: str) -> str:
    return _SPECIAL.sub(lambda special: "".join("\\" + c for c in special[0]), word)


def spellings(vectors: Vectors) -> dict[str, list[str]]:
    """Return {word of the vocabulary: its spellings in the documents, the commonest first}."""
    analyzer = replace(vectors.model.lexical.analyzer, ngrams=1)
    unstemmed = replace(analyzer, stem=None, stop_words=None, accents="keep")
    counts: Counter[str] = Counter()
    for texts in vectors.model.lexical.columns(vectors.index.documents).values():
        for names, tokens, _ in tokenize(unstemmed, texts):
            counts.update({names[token]: n for token, n in Counter(tokens.tolist()).items()})
    words = sorted(counts, key=lambda word: (-counts[word], word))
    out: dict[str, list[str]] = {}
    for word, form in zip(words, analyzer.normal_forms(words), strict=True):
        if form is not None:
            out.setdefault(form, []).append(word)
    return out


def rules(vectors: Vectors, max_words: int = MAX_WORDS, min_weight: float = MIN_WEIGHT) -> list[Rule]:
    """Return a rule for every query word with pairs, by descending weight; a model without pairs raises ModelError."""
    validation.count("max_words", max_words, low=1)
    validation.number("min_weight", min_weight, low=0.0, high=1.0)
    if vectors.model.W is None:
        if vectors.model.lexical.synonyms:
            return []
        raise ModelError("this model has no word pairs, so it has no synonyms to export")
    if vectors.model.lexical.analyzer.splits_scripts and any(map(SEGMENTED.search, vectors.model.lexical.words)):
        raise ModelError(
            "a synonym file cannot hold words of scripts without blanks, which an engine splits in its own way; export "
            "the vectors instead"
        )
    by_word = spellings(vectors)
    paired: dict[str, list[tuple[float, str]]] = {}
    pairs = {pair: weight for pair, weight in vectors.model.named_pairs().items() if pair[0] != pair[1]}
    threshold = min_weight * max(pairs.values(), default=0.0)
    for (query, document), weight in pairs.items():
        if weight > 0.0 and weight >= threshold and " " not in query and " " not in document:
            paired.setdefault(query, []).append((-weight, document))
    out = []
    for query in sorted(paired, key=lambda word: (min(paired[word]), word)):
        added = [by_word[word][0] for _, word in sorted(paired[query]) if word in by_word][:max_words]
        if added:
            own = by_word.get(query, [query])
            out.append(Rule(tuple(own), (own[0], *added)))
    return out


def own_rules(vectors: Vectors) -> list[Rule]:
    """Return the synonyms that the user gave; one way, a word is kept beside what it also finds."""
    out = []
    for rule in vectors.model.lexical.synonyms.rules:
        if rule.words == rule.added:
            out.append(Rule(rule.words, rule.words))
        else:
            out += [Rule((word,), (word, *(one for one in rule.added if one != word))) for word in rule.words]
    return out


def matching_rules(vectors: Vectors, text: str) -> list[Rule]:
    """Return the rules that match a query, those of the user first."""
    analyzer = replace(vectors.model.lexical.analyzer, ngrams=1, stem=None, stop_words=None, accents="keep")

    def words(text: str) -> str:
        return f" {' '.join(analyzer.tokens(text))} "

    query = words(text)
    own = [rule for rule in own_rules(vectors) if any(words(one) in query for one in rule.words)]
    return own + [rule for rule in rules(vectors) if not set(query.split()).isdisjoint(rule.words)]


def index_body(vectors: Vectors) -> dict[str, Any]:
    """Return an index that analyzes words as the model does and applies the rules to queries.

    All fields that the model searches are copied to one.
    Java's word class has ASCII letters only, or combining marks too, so the pattern lists letters and digits.
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
    if analyzer.folds_accents:
        after.append("asciifolding")
    marks, characters = (r"\p{M}", {"char_filter": ["folded"]}) if analyzer.normalizes else ("", {})
    tokens = {"word": {"type": "pattern", "pattern": rf"[^\p{{L}}\p{{N}}{marks}_]+"}}
    kinds = {"document": [*before, *after], "query": [*before, "pairs", *after]}
    custom = {"type": "custom", "tokenizer": "word", **characters}
    analyzers = {name: custom | {"filter": chain} for name, chain in kinds.items()}
    content = {"type": "text", "analyzer": "document", "search_analyzer": "query"}
    analysis = {"tokenizer": tokens, "filter": filters, "analyzer": analyzers}
    if analyzer.normalizes:  # needs the engine's plugin analysis-icu
        analysis["char_filter"] = {"folded": {"type": "icu_normalizer", "name": "nfkc_cf"}}
    stored = {"type": "text", "index": False, "copy_to": "content"}
    metadata = metadata_property(vectors.metadata_fields)
    searched = set(map(term_name, vectors.model.lexical.fields))
    for name, field in metadata["metadata"]["properties"].items() if metadata else ():
        field |= {"copy_to": "content"} if name in searched else {}
    properties = {"id": {"type": "keyword"}, "title": stored, "text": stored, "content": content} | metadata
    return {"settings": {"analysis": analysis}, "mappings": {"dynamic": "strict", "properties": properties}}


def body(text: str, k: int = 10, chosen: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a search in the searched fields of the documents that match a filter; the engine applies the rules."""
    query = with_filter({"match": {"content": {"query": text}}}, chosen)
    return {"size": k, "_source": ["id", "title"], "query": query}


def typesense(rules: Iterable[Rule]) -> list[dict[str, Any]]:
    """Return the rules as one-way synonyms of Typesense: a word also finds the replacements of all its rules.

    >>> typesense([Rule(("motors",), ("motor", "engine"))])
    [{'id': 'motors', 'root': 'motors', 'synonyms': ['motor', 'engine']}]
    """
    by_word = _by_word(rules)
    return [{"id": word, "root": word, "synonyms": added} for word, added in by_word.items()]


def meilisearch(rules: Iterable[Rule]) -> dict[str, Any]:
    """Return the rules as the settings of Meilisearch: a word also finds the replacements of all its rules.

    >>> meilisearch([Rule(("motors",), ("motor", "engine"))])
    {'synonyms': {'motors': ['motor', 'engine']}}
    """
    return {"synonyms": _by_word(rules)}


def _by_word(rules: Iterable[Rule]) -> dict[str, list[str]]:
    out: dict[str, dict[str, None]] = {}
    for word, added in ((word, rule.replacements) for rule in rules for word in rule.words):
        out.setdefault(word, {}).update((one, None) for one in added if one != word)
    return {word: list(added) for word, added in out.items() if added}


def write(folder: Folder, vectors: Vectors, queries: Mapping[str, str], chosen: dict[str, Any] | None = None) -> None:
    """Write the rules, the settings of an index that uses them, its documents and queries."""
    synonyms = [*own_rules(vectors), *rules(vectors)]
    folder.lines("typesense.jsonl", typesense(synonyms))
    folder.json("meilisearch.json", meilisearch(synonyms))
    folder.text("synonyms.txt", "".join(f"{rule}\n" for rule in synonyms))
    folder.json("index.json", index_body(vectors))
    folder.parts("bulk-{}.ndjson", bulk(vectors, weighted=False))
    folder.requests(queries, lambda text: {"body": body(text, chosen=chosen)})
    stem = vectors.model.lexical.analyzer.stemmer or "missing"
    folder.readme("synonyms", vectors, queries, rules=len(synonyms), stem=stem)
