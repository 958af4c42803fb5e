"""What a language model is asked for: which task it reads in a text, and which values, each with its quote."""

from typing import Any

from pydantic import BaseModel, Field


def _demanded(schema: dict[str, Any]) -> None:
    # Structured output knows no defaults; ours is for models that answer as they were asked before.
    schema.pop("default", None)


class QuotedValue(BaseModel):
    """One value as a model claims to have read it."""

    field: str
    values: list[str] = Field(description="the value as written; one entry per item of a list, else exactly one")
    quote: str = Field(description="the exact words of the text that hold the value")
    earlier: bool = Field(description="true when the quote stands in an earlier turn of the conversation")
    remembered: bool = Field(
        default=False, description="true when the quote stands in memory", json_schema_extra=_demanded
    )


class TaskReading(BaseModel):
    """Which task a model reads in a text."""

    reasoning: str
    agent_id: str
    task_name: str
    values: list[QuotedValue]


class CallReading(BaseModel):
    """One of several tasks that a model reads in a text."""

    agent_id: str
    task_name: str
    values: list[QuotedValue]


class SeveralReading(BaseModel):
    """Which tasks a model reads in a text that asks for more than one."""

    reasoning: str
    calls: list[CallReading]
