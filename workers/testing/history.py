"""The conversation of an agent that tasks of a testing kit find, on a fake."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tasklore.contracts.conversations import Utterance
    from tasklore.contracts.observations import Observation
    from tasklore.workers.testing.inbox import FakeInbox


@dataclass(frozen=True)
class KitHistory:
    """Past messages of the agent, waiting ones, and its observations, all oldest first."""

    past: "tuple[Utterance, ...]" = ()
    waiting: "tuple[Utterance, ...]" = ()
    observations: "tuple[Observation, ...]" = ()

    async def put_into(self, inbox: "FakeInbox", conversation_id: str) -> None:
        """Make *inbox* know all of it."""
        inbox.put(conversation_id, self.past, self.observations)
        for message in self.waiting:
            await inbox.post(conversation_id, message)
