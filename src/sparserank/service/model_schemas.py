"""The bodies of responses about the model, its versions and the trial of a candidate."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

from .schemas import Display


class VersionResponse(BaseModel):
    """A version of the model."""

    number: int
    made: str
    why: str
    parent: int | None
    pairs: int
    sha256: str
    check: dict[str, Any]
    learned_through: int


class PromotionRule(BaseModel):
    """When the service looks at a trial by itself: once, after so many decided impressions, at this level."""

    after: int
    level: float


class TrialResponse(BaseModel):
    """The trial of a candidate: impressions that it won, lost and tied, the share of wins with its interval."""

    candidate: int
    share: Annotated[float, Field(description="Share of the searches in which it takes part.")]
    since: str
    rule: PromotionRule | None
    wins: int
    losses: int
    ties: int
    won: Annotated[float, Field(description="Wins among wins and losses; `low` and `high` are its Wilson interval.")]
    low: float
    high: float
    p_value: Annotated[float, Field(description="Of the exact two-sided sign test.")]


class ModelResponse(BaseModel):
    """The served model, all its versions, and the state of the learner."""

    collection: Annotated[str, Field(description="Its name; empty if the service has one model without a name.")]
    collections: Annotated[list[str], Field(description="The names of all collections of the service.")]
    version: int
    made: str
    why: str
    pairs: int
    documents: int
    words: int
    fields: Annotated[dict[str, int], Field(description="Metadata fields, and the number of values of each.")]
    examples: Annotated[list[str], Field(description="Example queries: words with large learned weights, or titles.")]
    versions: list[VersionResponse]
    learner: dict[str, Any]
    trial: TrialResponse | None


class PairChangeBody(BaseModel):
    """A pair whose weight differs between two versions."""

    query: str
    document: str
    before: float
    after: float


class ChangesResponse(BaseModel):
    """The pairs that changed, the largest change first."""

    before: int
    after: int
    changes: list[PairChangeBody]
    display: Display
