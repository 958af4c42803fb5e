"""The conversation of a running task: its messages, which of them are new, and the agent's observations."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tasklore.contracts.conversations import said_id

if TYPE_CHECKING:
    from tasklore.contracts.conversations import Page, TakenMessages, Utterance
    from tasklore.contracts.messages import TaskAssignment
    from tasklore.contracts.observations import Observation
    from tasklore.memory.conversations.inbox import Inbox


class TaskHistory:
    """The conversation of a task, whose id is the agent's own or that of a person's talk with it.

    A task takes its messages, decides, settles, posts what it says to others, and reports. If it ends before it
    settles, the messages are new for its next run, and for the next task if it has none. A run that finds in
    `TakenMessages.done` what an earlier one did posts that, once more or at last, so that nobody is told what does not
    stand. Every method raises MemoryUnavailable when the store did not answer in time: then the task is run again.
    """

    def __init__(
        self, assignment: "TaskAssignment", conversation_id: str, store: "Inbox"
    ) -> None:
        self.conversation_id = conversation_id
        self._task_id = assignment.task_id
        self._user_id = assignment.user_id
        self._store = store
        self._removals: int | None = None

    @property
    def said_id(self) -> str:
        """The message id of what the task says: the same in each of its runs, so that it is said once."""
        return said_id(self._task_id)

    async def take(
        self,
        new_messages: "Sequence[Utterance]" = (),
        *,
        observations: int = 0,
        senses: bool = True,
    ) -> "TakenMessages":
        """Store *new_messages* and waiting ones, and return the conversation, of which the last `num_new` are new.

        With it come the last *observations* of what the agent sensed and did; without *senses* only what it did, which
        is quicker. A message known by its id is stored once.
        """
        taken = await self._store.take(
            self.conversation_id,
            self._task_id,
            new_messages,
            observations=observations,
            senses=senses,
            user_id=self._user_id,
        )
        self._removals = taken.history.earlier.removals
        return taken

    async def observations(self, count: int) -> "tuple[Observation, ...]":
        """Return the last *count*, oldest first; `take` brings them with the messages at no further cost."""
        return await self._store.recent_observations(self.conversation_id, count)

    async def post(self, to: str, message: "Utterance") -> bool:
        """Deliver *message* to the conversation *to*; False when it has been delivered before. Give it `said_id`."""
        return await self._store.post(to, message, user_id=self._user_id)

    async def settle(
        self, said: "Utterance | None" = None, observation: "Observation | None" = None
    ) -> None:
        """Mark the taken messages as old; *said* and *observation* enter once, those of the first run that settles.

        Whatever id *said* has, in the history it is `said_id`.
        """
        await self._store.settle(
            self.conversation_id,
            self._task_id,
            said,
            observation=observation,
            user_id=self._user_id,
        )

    async def page(self, before: int | None = None, count: int = 100) -> "Page":
        """Return up to *count* messages of the whole conversation before a place, the last ones by default."""
        return await self._store.page(self.conversation_id, before, count)

    async def summarise(self, upto: int, text: str) -> bool:
        """Keep *text* as the summary of the first *upto* messages; False when more are summarised already.

        They are those that have fallen out of what is shown: `earlier.count` at most. False also when somebody's words
        were removed since the messages were taken: they may be in it. `tasklore.workers.summary` asks a model for the
        text.
        """
        return await self._store.summarise(
            self.conversation_id, upto, text, removals=self._removals
        )
