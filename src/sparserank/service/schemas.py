"""The bodies of requests and responses."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from .config import (
    MAX_FACET_VALUES,
    MAX_FACETS,
    MAX_FILTER_CHARACTERS,
    MAX_FILTER_FIELDS,
    MAX_ID_CHARACTERS,
    MAX_OFFSET,
    MAX_PAIRS,
    MAX_QUERY_CHARACTERS,
    MAX_RESULTS,
    MAX_SHOWN,
)
from .impressions import IMPRESSION_CHARACTERS, INTERLEAVED_CHARACTERS

# no database stores NUL in text
NO_NUL = r"^[^\x00]*$"

Query = Annotated[str, Field(min_length=1, max_length=MAX_QUERY_CHARACTERS, pattern=NO_NUL, description="The query.")]
DocumentId = Annotated[
    str, Field(min_length=1, max_length=MAX_ID_CHARACTERS, pattern=NO_NUL, description="Document id.")
]


FilterText = Annotated[str, Field(max_length=MAX_FILTER_CHARACTERS)]
FilterMapping = Annotated[dict[str, Any], Field(min_length=1, max_length=MAX_FILTER_FIELDS)]


class RequestBody(BaseModel):
    """The body of a request; unknown fields and numbers in quotes are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)


class QueryBody(RequestBody):
    """A query, and how forgiving the search is."""

    query: Query
    typos: Annotated[bool, Field(description="Correct words that no document has.")] = False
    prefix: Annotated[bool, Field(description="The last word may be unfinished.")] = False


class SearchRequest(QueryBody):
    """A search request."""

    k: Annotated[int, Field(ge=1, le=MAX_RESULTS, description="Maximum number of results.")] = 10
    explain: Annotated[bool, Field(description="Add the word pairs and a passage to each result.")] = False
    pairs: Annotated[
        int | None,
        Field(ge=0, le=MAX_PAIRS, description="Maximum number of pairs per result; `rest` sums up the others."),
    ] = None
    snippets: Annotated[
        bool, Field(description="Add a passage to each result, without its pairs; cheaper than `explain`.")
    ] = False
    split: Annotated[
        bool,
        Field(description="With `snippets`: add how much of each score same words and learned pairs are."),
    ] = False
    total: Annotated[bool, Field(description="Count all documents that match.")] = False
    lexical: Annotated[bool, Field(description="Add the results of the lexical score alone.")] = False
    filter: Annotated[
        FilterText | FilterMapping | None,
        Field(description='Only documents with this metadata: "kind:function AND year>=2000", or a mapping.'),
    ] = None
    offset: Annotated[int, Field(ge=0, le=MAX_OFFSET, description="Skip this many results.")] = 0
    facets: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=MAX_ID_CHARACTERS)]],
        Field(
            max_length=MAX_FACETS,
            description=f"Metadata fields whose {MAX_FACET_VALUES} most frequent values are counted among all results.",
        ),
    ] = []


class ExplainRequest(QueryBody):
    """A request to explain the score of a document."""

    document: DocumentId
    pairs: Annotated[
        int | None, Field(ge=0, le=MAX_PAIRS, description="Maximum number of pairs; `rest` sums up the others.")
    ] = None
    version: Annotated[
        int | None, Field(ge=1, le=10**9, description="The version of an interleaved result, which explains it.")
    ] = None


class CompareRequest(QueryBody):
    """A request to compare two documents."""

    first: DocumentId
    second: DocumentId


class FeedbackRequest(RequestBody):
    """A click on one of the shown documents, or a judgment."""

    id: Annotated[
        str,
        Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$", description="Unique id that the client made."),
    ]
    kind: Literal["click", "judgment"]
    query: Query
    document: DocumentId
    shown: Annotated[
        list[DocumentId], Field(max_length=MAX_SHOWN, description="Ids of the shown results, best first.")
    ] = []
    grade: Annotated[float, Field(ge=-1, le=4, description="Positive is good, negative is bad.")] = 1.0
    impression: Annotated[
        str | None,
        Field(
            min_length=IMPRESSION_CHARACTERS,
            max_length=INTERLEAVED_CHARACTERS,
            pattern=r"^[A-Za-z0-9_-]+$",
            description="What /search returned with the shown documents; a click without it does not count.",
        ),
    ] = None
    visitor: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=64,
            pattern=r"^[A-Za-z0-9_-]+$",
            description="An opaque id of the visitor; by default the address of the client stands for it.",
        ),
    ] = None


class RollbackRequest(RequestBody):
    """A request to serve another version."""

    to: Annotated[int, Field(ge=1, le=10**9, description="Number of the version.")]


class CandidateRequest(RequestBody):
    """A request about the trial of a candidate."""

    candidate: Annotated[int, Field(ge=1, le=10**9, description="Number of the version that is on trial.")]


class Problem(BaseModel):
    """What is wrong, and what to do."""

    detail: str


Display = Annotated[dict[str, str], Field(description="How most documents spell a word that is a stem.")]


class Pair(BaseModel):
    """A query word, a document word, and what the pair adds to the score."""

    query: str
    document: str
    contribution: float
    learned: bool
    note: Annotated[str | None, Field(description="Such as 'typo of apple' or 'begins with app'.")] = None


class Rest(BaseModel):
    """The omitted pairs: their number, and the sums of lexical, learned and negative contributions."""

    pairs: int
    lexical: float
    learned: float
    away: float


class Split(BaseModel):
    """The sums of lexical, learned and negative contributions."""

    lexical: float
    learned: float
    away: float


class Mark(BaseModel):
    """Characters [start, end) of a passage, and the numbers of the pairs that match them.

    `learned` says that all of these pairs are learned.
    """

    start: int
    end: int
    pairs: list[int]
    learned: bool


class Passage(BaseModel):
    """The part of a document that explains its score best."""

    text: str
    marks: list[Mark]


class Result(BaseModel):
    """A result."""

    id: str
    score: float
    title: str
    metadata: dict[str, Any]


class ExplainedResult(Result):
    """A result, with its passage and pairs on request."""

    version: Annotated[
        int | None, Field(description="The version that picked it, if a candidate takes part in the search.")
    ] = None
    passage: Passage | None = None
    pairs: list[Pair] | None = None
    rest: Rest | None = None
    split: Split | None = None


class CorrectionBody(BaseModel):
    """A word of the query that was corrected, and the word that was searched instead."""

    word: str
    replacement: str


class SearchResponse(BaseModel):
    """The best documents, best first."""

    query: str
    version: int
    impression: Annotated[str, Field(description="Signed proof of this list of results; a click carries it.")]
    results: list[ExplainedResult]
    lexical: list[Result] | None = None
    facets: dict[str, dict[str, int]] | None = None
    total: Annotated[
        int | None, Field(description="The number of all documents that match, if it is known; see `total_is_exact`.")
    ]
    total_is_exact: Annotated[bool, Field(description="False if a candidate takes part.")]
    completed: Annotated[list[str], Field(description="Unfinished words that stand for words that begin with them.")]
    unknown: list[str]
    corrections: list[CorrectionBody]
    typed: Annotated[dict[str, str], Field(description="How the user spelled a word of the query, by stem.")]
    milliseconds: float
    display: Display


class DocumentResponse(BaseModel):
    """A document as it was indexed; a long text comes in parts."""

    id: str
    title: str
    text: str
    metadata: dict[str, Any]
    next: Annotated[int | None, Field(description="The `offset` of the rest of the text, if there is more.")]


class Group(BaseModel):
    """A query word, at most six document words that it finds, and what they add to the score together."""

    query: str
    documents: list[str]
    contribution: float


class ExplainResponse(BaseModel):
    """A score and the pairs that sum to it."""

    score: float
    version: int
    pairs: list[Pair]
    rest: Rest | None = None
    split: Split
    groups: Annotated[
        list[Group], Field(description="The learned pairs in groups, largest first; at most as many as `pairs`.")
    ]
    explained_share: Annotated[
        float | None, Field(description="The share of the learned part that the five largest groups are.")
    ]
    passage: Passage
    display: Display


class DocumentScore(BaseModel):
    """A document and its score."""

    id: str
    score: float


class ComparedPair(BaseModel):
    """A pair, what it adds to each of two documents, and the first value minus the second."""

    query: str
    document: str
    first: float
    second: float
    difference: float


class CompareResponse(BaseModel):
    """Two documents; without the pairs of `swap` they would swap, null if no set of pairs suffices."""

    first: DocumentScore
    second: DocumentScore
    difference: float
    pairs: list[ComparedPair]
    swap: list[ComparedPair] | None
    version: int
    display: Display


class FeedbackResponse(BaseModel):
    """Whether the feedback was stored now; false if it was stored before. `reason` says why it does not count."""

    id: str
    stored: bool
    counted: bool
    reason: str


class Judgment(BaseModel):
    """A stored judgment; `number` is its position in the order of storage."""

    number: int
    query: str
    document: str
    grade: float


class JudgmentsResponse(BaseModel):
    """Judgments, oldest first; fewer than requested if there are no more."""

    judgments: list[Judgment]


class Weight(BaseModel):
    """A word and its weight."""

    word: str
    weight: float


class RelatedResponse(BaseModel):
    """Document words that a query word looks for, and query words that look for it, by descending weight."""

    word: str
    related: list[Weight]
    looked_for_by: list[Weight]
    display: Display


class HealthResponse(BaseModel):
    """The served version, and the numbers of documents and of stored feedback."""

    status: Literal["ok"]
    version: int
    documents: int
    feedback: int


class ReadyResponse(BaseModel):
    """This worker accepts requests."""

    status: Literal["ready"]
    version: int
