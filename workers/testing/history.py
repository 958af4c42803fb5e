"""The conversation of an agent that tasks of a testing kit find."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tasklore.workers.testing.stores import PATIENCE_S

if TYPE_CHECKING:
    from tasklore.contracts.conversations import Utterance
    from tasklore.contracts.observations import Observation
    from tasklore.workers.testing.fakes import KitServices

#: The task that heard what lies before the test.
_BEFORE = "before"


@dataclass(frozen=True)
class KitHistory:
    """Past messages of the agent, waiting ones, and its observations, all oldest first."""

    past: "tuple[Utterance, ...]" = ()
    waiting: "tuple[Utterance, ...]" = ()
    observations: "tuple[Observation, ...]" = ()

    async def put_into(self, services: "KitServices", conversation_id: str) -> None:
        """Make *services* know all of it; the messages before are not new to any task."""
        from tasklore.memory.conversations.inbox import Inbox
        from tasklore.memory.conversations.observations import Observations

        # Not the one of *services*, which a test may have put there to fail.
        inbox = Inbox(services.redis, PATIENCE_S)
        await inbox.take(conversation_id, _BEFORE, self.past)
        await inbox.settle(conversation_id, _BEFORE)
        observed = Observations(services.redis, PATIENCE_S)
        for number, observation in enumerate(self.observations, start=1):
            await observed.note(conversation_id, f"{_BEFORE}-{number}", observation)
        for message in self.waiting:
            await inbox.post(conversation_id, message)
