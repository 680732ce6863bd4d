"""What requests and answers look like. Unknown fields and numbers written as text are refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from .settings import ID_LENGTH, MOST_PAIRS, MOST_RESULTS, MOST_SHOWN, QUERY_LENGTH

# no database keeps a NUL in a text
NO_NUL = r"^[^\x00]*$"

Query = Annotated[str, Field(min_length=1, max_length=QUERY_LENGTH, pattern=NO_NUL, description="What is looked for.")]
DocumentId = Annotated[str, Field(min_length=1, max_length=ID_LENGTH, pattern=NO_NUL, description="A document's id.")]


class Asked(BaseModel):
    """The body of a request."""

    model_config = ConfigDict(extra="forbid", strict=True)


class SearchAsked(Asked):
    """A search."""

    query: Query
    k: Annotated[int, Field(ge=1, le=MOST_RESULTS, description="How many results at most.")] = 10
    explain: Annotated[bool, Field(description="With the word pairs and a passage of every result.")] = False
    pairs: Annotated[
        int | None,
        Field(ge=0, le=MOST_PAIRS, description="At most so many pairs of a result; what the others add is its `rest`."),
    ] = None
    lexical: Annotated[bool, Field(description="With the results of the lexical score alone beside them.")] = False


class ExplainAsked(Asked):
    """Why a document has its score."""

    query: Query
    document: DocumentId


class CompareAsked(Asked):
    """Why the first of two documents is above the second, or below it."""

    query: Query
    first: DocumentId
    second: DocumentId


class FeedbackAsked(Asked):
    """A click on one of the documents that were shown, or a judgment."""

    id: Annotated[
        str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$", description="Made by the client.")
    ]
    kind: Literal["click", "judgment"]
    query: Query
    document: DocumentId
    shown: Annotated[list[DocumentId], Field(max_length=MOST_SHOWN, description="What was shown, best first.")] = []
    grade: Annotated[float, Field(ge=-1, le=4, description="Above 0 good, below 0 bad.")] = 1.0


class RollbackAsked(Asked):
    """Which version to go back to."""

    to: Annotated[int, Field(ge=1, le=10**9, description="The number of a version.")]


class Problem(BaseModel):
    """What was wrong, and what to do."""

    detail: str


class Pair(BaseModel):
    """A query word that met a document word, and what it added to the score."""

    query: str
    document: str
    contribution: float
    learned: bool


class Rest(BaseModel):
    """Pairs that were left out: how many, and what they add as words themselves, as learned pairs, and below 0."""

    pairs: int
    lexical: float
    learned: float
    away: float


class Mark(BaseModel):
    """Characters [start, end) of a passage, and the numbers of the pairs that they belong to."""

    start: int
    end: int
    pairs: list[int]


class Passage(BaseModel):
    """The part of a document that says most about its score."""

    text: str
    marks: list[Mark]


class Result(BaseModel):
    """One document."""

    id: str
    score: float
    title: str


class Explained(Result):
    """One document; with its passage and pairs where they were asked for."""

    passage: Passage | None = None
    pairs: list[Pair] | None = None
    rest: Rest | None = None


class SearchAnswer(BaseModel):
    """The best documents, best first."""

    query: str
    version: int
    results: list[Explained]
    lexical: list[Result] | None = None
    unknown: list[str]
    milliseconds: float


class ExplainAnswer(BaseModel):
    """The pairs sum to the score."""

    score: float
    version: int
    pairs: list[Pair]
    passage: Passage


class Scored(BaseModel):
    """A document and its score."""

    id: str
    score: float


class PairDifference(BaseModel):
    """A pair, what it adds to each of two documents, and the first less the second."""

    query: str
    document: str
    first: float
    second: float
    difference: float


class CompareAnswer(BaseModel):
    """Two documents; without the pairs of `swap` the lower would be the higher; null where no pairs would do."""

    first: Scored
    second: Scored
    difference: float
    pairs: list[PairDifference]
    swap: list[PairDifference] | None
    version: int


class FeedbackAnswer(BaseModel):
    """Whether it was stored now; false: it was there before."""

    id: str
    stored: bool


class Weight(BaseModel):
    """A word and a weight."""

    word: str
    weight: float


class RelatedAnswer(BaseModel):
    """What a word looks for, and what looks for it; the largest weight first."""

    word: str
    related: list[Weight]
    looked_for_by: list[Weight]


class VersionAnswer(BaseModel):
    """One version of the model."""

    number: int
    made: str
    why: str
    parent: int | None
    pairs: int
    sha256: str
    check: dict[str, Any]
    learned_through: int


class ModelAnswer(BaseModel):
    """The model being served, every version of it, and how learning goes."""

    version: int
    made: str
    why: str
    pairs: int
    documents: int
    words: int
    versions: list[VersionAnswer]
    learner: dict[str, Any]


class ChangeAnswer(BaseModel):
    """A pair whose weight differs between two versions."""

    query: str
    document: str
    before: float
    after: float


class ChangesAnswer(BaseModel):
    """What was learned since; the largest change first."""

    before: int
    after: int
    changes: list[ChangeAnswer]


class HealthAnswer(BaseModel):
    """It answers, with this version, from so many documents; so much feedback is stored."""

    status: Literal["ok"]
    version: int
    documents: int
    feedback: int
