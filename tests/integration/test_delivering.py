"""From MESSAGES into inboxes: every message once, in order, under its own sender's name."""

import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import nats.errors
import pytest
from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.contracts.agent_messages import agent_message
from tasklore.contracts.conversations import Utterance
from tasklore.contracts.errors import InvalidInput, MemoryUnavailable
from tasklore.contracts.identifiers import PARTITIONS, user_token
from tasklore.contracts.messages import DeadLetter
from tasklore.memory.conversations.inbox import Inbox
from tasklore.runtime.messaging.jetstream import ask_jetstream
from tasklore.runtime.messaging.outbox import open_outbox
from tasklore.runtime.messaging.partitions import Owner
from tasklore.runtime.messaging.streams import declare_consumer
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.dead_letters.letters import read_letter
from tasklore.supervisor.dead_letters.redrive import redrive_of
from tasklore.supervisor.delivery import InboxDelivery, inbox_sources
from tasklore.supervisor.program_client import asking
from tests.integration.partitions import Partitions, partitions_on

ALICE = "coins.Alice"
CAROL = "coins.Carol"


class Store(Inbox):
    """An inbox that is away once for each of these messages in each conversation."""

    away_over: tuple[str, ...] = ()

    def __init__(self, client: Redis) -> None:
        super().__init__(client, 60, window=1_000)
        self.missed: set[tuple[str, str]] = set()

    async def post(
        self,
        owner: str,
        message: Utterance,
        *,
        user_id: str | None = None,
        known_as: str | None = None,
    ) -> bool:
        key = (owner, message.message_id)
        if message.message_id in self.away_over and key not in self.missed:
            self.missed.add(key)
            raise MemoryUnavailable("away")
        return await super().post(owner, message, user_id=user_id, known_as=known_as)


class Post:
    """Delivery of messages as a supervisor does it, and programs that write them."""

    def __init__(self, partitions: Partitions) -> None:
        self.partitions = partitions
        self.link = partitions.link
        self.counts = partitions.counts
        self.store = Store(partitions.redis)

    @contextlib.asynccontextmanager
    async def running(self, readers: int = 1) -> AsyncIterator[None]:
        async with open_outbox(self.link) as outbox:
            desk = InboxDelivery(
                Owner("p1", supervisor_id="S"),
                inbox=self.store,
                outbox=outbox,
                meter=self.counts,
            )
            async with self.partitions.taken_in(desk, inbox_sources(), readers):
                yield

    async def say(self, to: str, sender: str, number: int, **fields: Any) -> None:
        said = {
            "message_id": f"{sender}-{number}",
            "message": f"number {number}",
            "time": number,
        } | fields
        message = agent_message(conversation_id=to, sender=sender, **said)
        await self.partitions.publish(
            subjects.messages(to, sender), message.model_dump_json().encode()
        )

    async def stored(self) -> int:
        return await self.partitions.stored(subjects.MESSAGES)

    async def emptied(self) -> None:
        await self.partitions.until_empty(subjects.MESSAGES)

    async def heard(self, owner: str) -> list[str]:
        """Return the ids of the messages that *owner* takes as new."""
        return [
            one.message_id
            for one in (await self.store.take(owner, "look")).history.current
        ]


@pytest.fixture
async def post(own_servers: EmbeddedServers) -> AsyncIterator[Post]:
    async with partitions_on(own_servers) as partitions:
        yield Post(partitions)


async def test_messages_are_delivered_once_and_in_order(post: Post) -> None:
    """Two supervisors read, every third message is sent twice, and the store is away now and then."""
    post.store.away_over = ("Bob-1", "Dan-7")
    for number in range(30):
        for to in (ALICE, CAROL):
            for sender in ("Bob", "Dan"):
                await post.say(to, sender, number)
                if number % 3 == 0:
                    await post.say(to, sender, number)
    async with post.running(readers=2):
        await post.emptied()
    for to in (ALICE, CAROL):
        heard = await post.heard(to)
        for sender in ("Bob", "Dan"):
            assert [one for one in heard if one.startswith(sender)] == [
                f"{sender}-{number}" for number in range(30)
            ]
    assert post.counts.seen == {"message:delivered": 120, "message:known": 40}


async def test_a_guessed_message_id_does_not_block_the_message_of_another_sender(
    post: Post,
) -> None:
    for sender, message_id in (
        ("Mallory", "Bob-17"),
        ("Bob", "Bob-17"),
        ("Mallory", "t1:said"),
        ("Bob", "Bob-17"),
    ):
        await post.say(
            ALICE, sender, 1, message_id=message_id, message=f"{sender} speaks"
        )
    async with post.running():
        await post.emptied()
    assert await post.store.post(
        ALICE,
        Utterance(message_id="t1:said", speaker="Carol", message="A text", time=1),
    )
    taken = await post.store.take(ALICE, "look")
    assert [(one.speaker, one.message_id) for one in taken.history.current] == [
        ("Mallory", "Bob-17"), ("Bob", "Bob-17"), ("Mallory", "t1:said"), ("Carol", "t1:said"),
    ]  # fmt: skip
    assert post.counts.seen == {"message:delivered": 3, "message:known": 1}
    await post.store.settle(
        ALICE, "look", Utterance(message_id="x", speaker="Alice", message="Hm", time=2)
    )
    assert [
        one.speaker
        for one in (await post.store.take(ALICE, "next")).history.messages
        if one.own
    ] == ["Alice"]


async def test_a_subject_that_nobody_reads_is_refused_at_once(post: Post) -> None:
    for subject in (
        "messages.99.x.y",
        "messages.x",
        "messages.1.x",
        f"{_BOB}.x",
        "messages.01.x.y",
    ):
        with pytest.raises(nats.errors.NoRespondersError):
            await post.link.client.request(subject, b"{}", timeout=60)
    for partition in range(PARTITIONS):
        await post.partitions.publish(f"messages.{partition}.x.y", b"{}")
    assert await post.stored() == PARTITIONS


_GOOD = {
    "message_id": "m1",
    "conversation_id": ALICE,
    "sender": "Bob",
    "message": "hi",
    "time": 1,
}
_BOB = subjects.messages(ALICE, "Bob")

#: Where somebody says what, beside what would do, and what is told of it.
BAD = [
    (_BOB, {"sender": "Eve"}, "sender is 'Eve', but it was sent as 'Bob'; speak as yourself"),
    (f"{_BOB[:-4]}~", {}, "sender is 'Bob', but it was sent as '~', which is not the token of a user"),
    (_BOB, {"conversation_id": CAROL}, f"conversation_id is '{CAROL}', but it lies on '{_BOB}'; publish it to"),
    (_BOB, {"conversation_id": ""}, "conversation_id is not usable; it takes the conversation of the receiving agent"),
    (_BOB, {"message": "x" * 900_000, "user_id": "ann"}, "message is not usable; it takes text of 1 to 2,000"),
    (_BOB, {"message": "ring \x07"}, "message holds the control character '\\x07'; leave it out"),
    (_BOB, {"time": float("nan")}, "time is not usable; it takes seconds of the world"),
    (_BOB, {"message_id": "m\n1", "sender": 'B"b'}, "message_id is not usable; it takes 1 to 128 printable"),
]  # fmt: skip


async def test_an_undeliverable_message_becomes_a_dead_letter_with_field_and_cure(
    post: Post,
) -> None:
    for subject, changes, _ in BAD:
        await post.partitions.publish(subject, json.dumps(_GOOD | changes).encode())
    await post.partitions.publish(_BOB, b"no JSON")
    await post.say(ALICE, "Bob", 1)
    async with post.running():
        await post.emptied()
    letters = await post.partitions.dead_letters()
    assert len(letters) == len(BAD) + 1
    errors = {
        DeadLetter.model_validate_json(letter.data or b"").error.message
        for letter in letters
    }
    for _, changes, wanted in BAD:
        assert any(one.startswith(wanted) for one in errors), (changes, errors)
    assert (
        "the body is not a JSON object; send the fields of an AgentMessage in UTF-8"
        in errors
    )
    assert post.counts.seen == {"message:delivered": 1, "dead:unreadable": len(letters)}
    assert await post.heard(ALICE) == ["Bob-1"]
    assert await post.heard(CAROL) == []
    # Of the long one only the beginning is kept: the header says whose words it holds.
    assert user_token("ann") in [
        (letter.headers or {}).get(subjects.USER_HEADER) for letter in letters
    ]
    letter = read_letter(
        1, letters[0].subject or "", datetime.now(UTC), letters[0].data or b""
    )
    assert (letter.content.supervisor_id, letter.content.agent_id) == ("S", None)
    with pytest.raises(
        InvalidInput,
        match="letter 1 is a chat message and not a task, so that it cannot be sent again",
    ):
        redrive_of(letter, letter.body, datetime.now(UTC))


async def test_a_program_sends_messages_to_agents(
    post: Post, own_servers: EmbeddedServers
) -> None:
    """A repeat under its id is one message; an invalid message is refused before it is sent."""
    async with asking(
        "World", nats_url=own_servers.nats_url, redis_url=own_servers.redis_url
    ) as asker:
        for _ in range(2):
            assert (
                await asker.tell(ALICE, "Bob", "Found coins!", time=5, message_id="b1")
                == "b1"
            )
        # To another agent the same id is another message.
        await asker.tell(CAROL, "Bob", "Found coins!", time=5, message_id="b1")
        own_id = await asker.tell(ALICE, "Bob", "More!", time=6, user_id="ann")
        for to, sender, text, error in (
            (ALICE, "Bob", "x" * 1_000_000, "message is not usable"),
            ("", "Bob", "hi", "conversation_id is not usable"),
            (ALICE, "I", "hi", "'I' is what an agent calls itself; write a name"),
        ):
            with pytest.raises(InvalidInput, match=error):
                await asker.tell(to, sender, text, time=5)
    assert await post.stored() == 3
    async with post.running():
        await post.emptied()
    taken = await post.store.take(ALICE, "look")
    assert [
        (one.speaker, one.message, one.message_id, one.user_id)
        for one in taken.history.current
    ] == [
        ("Bob", "Found coins!", "b1", None),
        ("Bob", "More!", own_id, "ann"),
    ]


async def test_a_widened_partition_is_ordered_again_at_the_next_start(
    post: Post,
) -> None:
    source = inbox_sources()[3]
    await declare_consumer(post.link.client, replace(source, max_ack_pending=100))
    async with post.running():
        info = await ask_jetstream(
            post.link.client, f"CONSUMER.INFO.{subjects.MESSAGES}.{source.durable}"
        )
    assert info["config"]["max_ack_pending"] == 1
