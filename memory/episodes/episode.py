"""The values of episodes: a turn as it was said, and the place of one that is near a question in meaning."""

from datetime import datetime
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

__all__ = ["Episode", "NearTurn"]


class Episode(BaseModel):
    """One turn as it was said. `speaker` is `person`, `assistant` or `agent`; `agent_id` is the agent that answered."""

    model_config = ConfigDict(frozen=True)

    turn_id: str
    conversation_id: str
    speaker: str
    at: datetime
    text: str
    agent_id: str | None = None


class NearTurn(NamedTuple):
    """A turn whose vector is near that of a question: its number, and the cosine, -1 to 1.

    *nearness* is the cosine and a tenth of the deviations by which it stands out from all turns of the owner: all that
    a person said is a little near to some questions.
    """

    number: int
    cosine: float
    nearness: float
