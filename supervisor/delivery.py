"""Delivery: messages to agents go into their inboxes, once each, and in order within a conversation.

Every supervisor reads the same partitions, of which the server gives one message at a time to one of them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from tasklore.contracts import subjects
from tasklore.contracts.agent_messages import AgentMessage, read_agent_message
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import user_of, user_token
from tasklore.memory.conversations.inbox import Inbox
from tasklore.runtime.messaging.erasure import Eraser
from tasklore.runtime.messaging.outbox import Outbox
from tasklore.runtime.messaging.partitions import (
    ACK_WAIT_S,
    Owner,
    PartitionHandler,
    ordered_sources,
)
from tasklore.runtime.messaging.pull import Delivery, PullEngine
from tasklore.runtime.messaging.signatures import Publishers
from tasklore.runtime.messaging.streams import PullSource
from tasklore.runtime.metrics import Metrics

log = structlog.get_logger(__name__)

#: Seconds at the end for messages under way, one of which takes milliseconds and is offered again if it takes longer,
#: and for the last pull requests to end (`STANDING_S`).
_LAST_WORDS_S = 8.0


class InboxDelivery(PartitionHandler):
    """Puts each message into the inbox of its conversation, once for its sender and id, however often it comes.

    *eraser* overwrites it on the server's disk, once it is there.
    """

    def __init__(
        self,
        whose: Owner,
        *,
        inbox: Inbox,
        outbox: Outbox,
        meter: Metrics,
        eraser: Eraser | None = None,
        publishers: Publishers | None = None,
    ) -> None:
        super().__init__(
            subjects.MESSAGES,
            self._post,
            whose,
            outbox=outbox,
            meter=meter,
            eraser=eraser,
            publishers=publishers,
        )
        self._inbox = inbox
        self._messages = meter

    async def _post(self, delivery: Delivery) -> None:
        message = read_message(delivery)
        said = message.as_utterance()
        owner = message.conversation_id
        is_new = await self._inbox.post(
            owner, said, user_id=message.user_id, known_as=message.inbox_id
        )
        self._messages.count_message("delivered" if is_new else "known")


class Delivering:
    """The partitions of messages, and tasks that are pipelines, as one part of a process: `run` until `drain`.

    *leave* hands back tasks that would take longer than the end may.
    """

    def __init__(
        self,
        engines: Sequence[PullEngine],
        leave: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._engines = engines
        self._leave = leave

    async def run(self) -> None:
        """Read every partition; returns after `drain`."""
        async with asyncio.TaskGroup() as group:
            for engine in self._engines:
                group.create_task(engine.run())

    def reconnected(self) -> None:
        """Ask anew in every partition."""
        for engine in self._engines:
            engine.reconnected()

    async def drain(self) -> None:
        """Take nothing more, and return when every delivery is acknowledged or handed back."""
        for engine in self._engines:
            engine.stop()
        try:
            async with asyncio.timeout(_LAST_WORDS_S):
                if self._leave is not None:
                    await self._leave()
                await asyncio.gather(*(engine.emptied() for engine in self._engines))
        except TimeoutError:
            log.warning("messages_left_under_way")

    def vital_sign(self) -> tuple[bool, str]:
        """Return whether every partition makes progress or is provably idle, and a word on the first that does not."""
        signs = [engine.vital_sign() for engine in self._engines]
        return next((sign for sign in signs if not sign[0]), signs[0])

    @property
    def ready(self) -> bool:
        """Whether every partition can be read."""
        return all(engine.ready for engine in self._engines)


def inbox_sources(ack_wait_s: float = ACK_WAIT_S) -> list[PullSource]:
    """Return the partitions of MESSAGES, durables `inbox-0` to `inbox-15`; the seconds are at most `ACK_WAIT_S`."""
    return ordered_sources(subjects.MESSAGES, "inbox", min(ACK_WAIT_S, ack_wait_s))


def read_message(delivery: Delivery) -> AgentMessage:
    """Return the message in *delivery*.

    Raises:
        InvalidInput: it is none, or lies on the subject of another conversation or sender.
    """
    message = read_agent_message(delivery.body)
    wanted = subjects.messages(message.conversation_id, message.sender)
    if delivery.subject == wanted:
        return message
    *whose, speaks = delivery.subject.split(".")
    # The server grants the right to speak as somebody by subject: that counts, and not the body.
    if whose == wanted.split(".")[:-1]:
        try:
            name = repr(user_of(speaks))
        except InvalidInput:
            name = ""
        # Decoding passes over characters that are no base64.
        name = (
            name
            if name and user_token(user_of(speaks)) == speaks
            else f"{speaks!r}, which is not the token of a user"
        )
        raise InvalidInput(
            f"sender is {message.sender!r}, but it was sent as {name}; speak as yourself"
        )
    raise InvalidInput(
        f"conversation_id is {message.conversation_id!r}, but it lies on {delivery.subject!r}; publish it to {wanted!r}"
    )
