"""What a language model answers."""

from pydantic import BaseModel, Field


class SlotAnswer(BaseModel):
    """One value: of which field, how it was said, and in which source."""

    field: str
    value: str
    quotation: str
    source: str


class IntentAnswer(BaseModel):
    """One task that the utterance asks for."""

    agent_id: str
    task_name: str
    slots: tuple[SlotAnswer, ...]


class Reading(BaseModel):
    """All that the utterance asks for; `unfit` quotes wishes that no task is for."""

    reasoning: str
    intents: tuple[IntentAnswer, ...]
    unfit: tuple[str, ...]
