"""The conversation in which a task was asked for, as the task may read it."""

from typing import TYPE_CHECKING

from tasklore.contracts.messages import ChatTurn

if TYPE_CHECKING:
    from tasklore.workers.context.services import Services

#: Turns; a model is seldom helped by more, and the store keeps 200.
RECENT_TURNS = 20


class Conversation:
    """The conversation in which a task was asked for; an assignment without one has no turns."""

    def __init__(self, conversation_id: str | None, services: "Services") -> None:
        self._conversation_id = conversation_id
        self._services = services

    async def recent(self, count: int = RECENT_TURNS) -> tuple[ChatTurn, ...]:
        """Return the last *count* turns, oldest first.

        Raises:
            MemoryUnavailable: the store did not answer in time; the task is run again.
        """
        if self._conversation_id is None or count < 1:
            return ()
        return tuple(await self._services.recent_turns(self._conversation_id, count))
