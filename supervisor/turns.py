"""The turns of a stored conversation: what a person said and was answered, without what agents say to each other."""

from typing import Protocol

import structlog
from pydantic import ValidationError

from contracts.errors import MemoryUnavailable
from contracts.messages import ChatTurn
from memory.inbox import is_utterance

log = structlog.get_logger(__name__)


class RecentBodies(Protocol):
    """What is needed of the conversation store."""

    async def recent(self, conversation_id: str, count: int = 20) -> list[bytes]:
        """Return the last turns, oldest first."""


async def stored_turns(store: RecentBodies, conversation_id: str, count: int) -> list[ChatTurn]:
    """Return those among the last *count* entries, oldest first; none when the store does not answer in time."""
    try:
        stored = await store.recent(conversation_id, count)
    except MemoryUnavailable as error:
        log.warning("conversation_away", error=str(error))
        return []
    turns = []
    for body in stored:
        if is_utterance(body):
            continue
        try:
            turns.append(ChatTurn.model_validate_json(body))
        except ValidationError:
            log.warning("unreadable_turn")
    return turns
