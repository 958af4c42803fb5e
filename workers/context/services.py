"""The stores and clients that a process lends to the tasks it runs."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import structlog
from pydantic import ValidationError

from tasklore.contracts.messages import ChatTurn, Progress

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from tasklore.memory.conversations.conversation import Conversations
    from tasklore.memory.conversations.inbox import Inbox
    from tasklore.memory.documents.kinds import Kinds
    from tasklore.memory.documents.storage.store import DocumentStore
    from tasklore.memory.episodes.store import Episodes
    from tasklore.memory.ledger.journal import Journal
    from tasklore.memory.ledger.waits import Waits
    from tasklore.memory.long_term.single_flight import SingleFlight
    from tasklore.memory.projects.project import ProjectMemory
    from tasklore.memory.sessions.once import Computed
    from tasklore.memory.sessions.session import SessionCache
    from tasklore.memory.stories.shared_answers import SharedAnswers
    from tasklore.memory.stories.store import StoryStore
    from tasklore.runtime.messaging.outbox import Outbox
    from tasklore.runtime.models.llm import Llm
    from tasklore.workers.child_tasks import ChildTasks
    from tasklore.workers.context.output import TaskOutputWriter
    from tasklore.workers.context.recorder import Recording
    from tasklore.workers.forgetting.erasure import UserStore
    from tasklore.workers.forgetting.hidden_memory import HiddenMemory

log = structlog.get_logger(__name__)


@dataclass(slots=True, kw_only=True)
class Services:
    """Stores and clients of one process, bound to one user, session or story before a task gets them."""

    llm: "Llm"
    conversations: "Conversations"
    send_progress: Callable[[str, Progress], Awaitable[None]]
    documents: "DocumentStore"
    episodes: "Episodes"
    kinds: "Kinds"
    sessions: "SessionCache"
    session_flights: "SingleFlight[Computed]"
    projects: "ProjectMemory"
    journal: "Journal"
    waits: "Waits"
    stories: "StoryStore"
    story_answers: "SharedAnswers"
    inbox: "Inbox"
    agent_files: Path | None
    forgets_in_chat: bool
    count_session_hits: Callable[[int], None]
    redis: "Redis"
    children: "ChildTasks"
    outbox: "Outbox"
    #: How messages of runs are kept; None: none are.
    recording: "Recording | None" = None

    @property
    def edits(self) -> "DocumentStore":
        """The documents, to be changed."""
        return self.documents

    @property
    def words(self) -> "Sequence[UserStore]":
        """The stores of users' words, in the order in which a memory worker empties them."""
        from tasklore.workers.forgetting.stores import stores_in_redis

        return stores_in_redis(self.redis, self.documents)

    @property
    def hiding(self) -> "HiddenMemory":
        """What hides the memory of users for a day."""
        from tasklore.workers.forgetting.hidden_memory import HiddenMemory

        return HiddenMemory(redis=self.redis, kinds=self.kinds, episodes=self.episodes)

    def now(self) -> datetime:
        """Return the time in UTC."""
        return datetime.now(UTC)

    def open_output(
        self,
        supervisor_id: str,
        task_id: str,
        generation: int,
        attempt: int,
        *,
        has_waited: bool,
        before: int,
    ) -> "TaskOutputWriter":
        """Open the output of one run of a task; *has_waited* and *before* as in `TaskOutput`."""
        from tasklore.workers.context.output import TaskOutputWriter

        return TaskOutputWriter(
            send=self.outbox.send,
            supervisor_id=supervisor_id,
            task_id=task_id,
            generation=generation,
            attempt=attempt,
            has_waited=has_waited,
            before=before,
        )

    async def publish_progress(self, supervisor_id: str, progress: Progress) -> None:
        """Send *progress*; a lost one harms nothing."""
        try:
            await self.send_progress(supervisor_id, progress)
        except Exception as error:  # noqa: BLE001 - progress must never fail a task, whatever the broker raises
            log.info(
                "progress_lost",
                task_id=progress.task_id,
                error=str(error) or type(error).__name__,
            )

    async def recent_turns(
        self, conversation_id: str, count: int
    ) -> Sequence[ChatTurn]:
        """Return the last *count* readable turns, oldest first, without what agents say to each other."""
        from tasklore.memory.conversations.inbox import is_utterance

        turns = []
        for body in await self.conversations.recent(conversation_id, count):
            try:
                turns.append(ChatTurn.model_validate_json(body))
            except ValidationError:
                if not is_utterance(body):
                    log.warning("unreadable_turn", conversation=bool(conversation_id))
        return turns
