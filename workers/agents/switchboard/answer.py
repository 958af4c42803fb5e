"""What a model is asked to answer with: facts, after the reasoning that led to them."""

from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict


class ProposedFact(BaseModel):
    """One fact as a model words it."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="ignore")

    text: str
    evidence: str
    tags: tuple[str, ...]
    polarity: Literal["positive", "negative", "neutral"]
    durability: Literal["permanent", "long_term", "short_term", "momentary"]
    confidence: float
    inferred: bool


class Heard(BaseModel):
    """What a model heard in a turn."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="ignore")

    reasoning: str
    facts: tuple[ProposedFact, ...]
