"""The values of episodes: a turn as it was said, and how near each is to a question in meaning."""

from datetime import datetime
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict

from tasklore.memory.episodes.passages import passages_of
from tasklore.memory.episodes.words import is_asking

__all__ = ["Episode", "NearTurns"]


class Episode(BaseModel):
    """One turn as it was said. `speaker` is `person`, `assistant` or `agent`; `agent_id` is the agent that answered.

    A turn of several *passages* has as many numbers in a row, each found by its own words.
    """

    model_config = ConfigDict(frozen=True)

    turn_id: str
    conversation_id: str
    speaker: str
    at: datetime
    text: str
    agent_id: str | None = None
    passages: int = 1

    @property
    def texts(self) -> tuple[str, ...]:
        """Its passages, as many as it has numbers; a turn that was kept before there were passages is one."""
        return passages_of(self.text) if self.passages > 1 else (self.text,)

    @property
    def is_asking(self) -> bool:
        """Whether a person does nothing but ask: such words say nothing about them."""
        return self.speaker == "person" and is_asking(self.text)


class NearTurns(NamedTuple):
    """How near all turns of an owner are to a question: arrays of their numbers, and of the cosines of these, -1 to 1.

    `nearness` are the cosines and a tenth of the deviations by which each stands out from all turns of the owner: all
    that a person said is a little near to some questions.
    """

    numbers: Any
    cosines: Any
    nearness: Any
