"""From MESSAGES into inboxes: every message once, in order, under its own sender's name."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import nats.errors
import pytest
from redis.asyncio import Redis

from contracts import subjects
from contracts.agent_messages import agent_message
from contracts.conversations import Utterance
from contracts.errors import InvalidInput, MemoryUnavailable, TaskloreError
from contracts.identifiers import PARTITIONS, user_token
from contracts.messages import DeadLetter
from memory.conversations.inbox import Inbox
from runtime.messaging.connection import connected
from runtime.messaging.erasure import Eraser
from runtime.messaging.jetstream import ask_jetstream
from runtime.messaging.leases import Leases
from runtime.messaging.link import Link
from runtime.messaging.outbox import open_outbox
from runtime.messaging.partitions import Whose, open_partitions
from runtime.messaging.streams import Sizes, Source, declare_consumer, declare_streams, find_consumer
from runtime.metrics import Metrics
from runtime.servers import valkey
from runtime.servers.embedded import EmbeddedServers
from supervisor.asking import asking
from supervisor.dead_letters.letters import read_letter
from supervisor.dead_letters.redrive import redrive_of
from supervisor.delivery import Delivering, MessageDesk, inbox_sources
from tests.integration.listening import Counts, eventually
from tests.traces import files_with, until_away

ALICE, CAROL = "coins.Alice", "coins.Carol"


class Store(Inbox):
    """An inbox that is away once for each of these messages in each conversation."""

    away_over: tuple[str, ...] = ()

    def __init__(self, client: Redis) -> None:
        super().__init__(client, 60, window=1_000)
        self.missed: set[tuple[str, str]] = set()

    async def post(
        self, owner: str, message: Utterance, *, user_id: str | None = None, known_as: str | None = None
    ) -> bool:
        """Post, unless away."""
        key = (owner, message.message_id)
        if message.message_id in self.away_over and key not in self.missed:
            self.missed.add(key)
            raise MemoryUnavailable("away")
        return await super().post(owner, message, user_id=user_id, known_as=known_as)


class Counting(Counts):
    """Counts messages too."""

    def count_message(self, outcome: str) -> None:
        """Count one."""
        self.seen[f"message:{outcome}"] += 1


@dataclass
class Post:
    """The house's own delivery on a pair of servers, and somebody who writes."""

    link: Link
    store: Store
    leases: Leases
    counts: Counting = field(default_factory=Counting)

    @contextlib.asynccontextmanager
    async def running(self, readers: int = 1, eraser: Eraser | None = None) -> AsyncIterator[None]:
        """Deliver, with as many readers as there are supervisors."""
        metrics = Metrics("test")

        async def heal(source: Source) -> str:
            return await find_consumer(self.link.client, source, Sizes(), may_create=True)

        async with open_outbox(self.link) as outbox, asyncio.TaskGroup() as group:
            desk = MessageDesk(
                Whose("p1", supervisor_id="S"), inbox=self.store, outbox=outbox, meter=self.counts, eraser=eraser
            )
            reading = []
            for _ in range(readers):
                engines = await open_partitions(
                    self.link, inbox_sources(), desk, leases=self.leases, meter=metrics, heal=heal, may_create=True
                )
                reading.append(Delivering(engines))
                group.create_task(reading[-1].run())
            yield
            for one in reading:
                assert one.vital_sign()[0]
                await one.drain()

    async def publish(self, subject: str, body: bytes) -> None:
        """Put a message into the stream, as a program does that gives it no id."""
        answer = json.loads((await self.link.client.request(subject, body, timeout=60)).data)
        assert "error" not in answer, answer

    async def say(self, to: str, sender: str, number: int, **fields: Any) -> None:
        """Have *sender* say something to the agent of *to*."""
        said = {"message_id": f"{sender}-{number}", "message": f"number {number}", "time": number} | fields
        message = agent_message(conversation_id=to, sender=sender, **said)
        await self.publish(subjects.messages(to, sender), message.model_dump_json().encode())

    async def stored(self, stream: str) -> int:
        """Return how many messages lie in *stream*."""
        return int((await ask_jetstream(self.link.client, f"STREAM.INFO.{stream}"))["state"]["messages"])

    async def emptied(self) -> None:
        """Return once all that was said is dealt with."""

        async def is_empty() -> bool:
            return await self.stored(subjects.MESSAGES) == 0

        await eventually(is_empty)

    async def heard(self, owner: str) -> list[str]:
        """Return the ids of what *owner* takes as new."""
        taken = await self.store.take(owner, "look")
        return [one.message_id for one in taken.history.current]

    async def letters(self) -> list[tuple[str, bytes]]:
        """Return what lies in DEAD, with its subjects."""
        stream = self.link.client.jetstream()
        found = [await stream.get_msg(subjects.DEAD, 1 + number) for number in range(await self.stored(subjects.DEAD))]
        return [(message.subject or "", message.data or b"") for message in found]


@pytest.fixture
async def post(own_servers: EmbeddedServers) -> AsyncIterator[Post]:
    """Connect to servers of the test's own, whose streams are empty."""

    def must_not_fail(error: BaseException) -> None:
        raise AssertionError(f"the leases ended: {error!r}")

    async with (
        connected(own_servers.nats_url, "post") as client,
        valkey.connect(own_servers.redis_url) as redis,
        Leases(own_servers.nats_url, 10.0, Metrics("test"), failed=must_not_fail) as leases,
    ):
        await declare_streams(client, Sizes())
        yield Post(Link(client), Store(redis), leases)


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
            assert [one for one in heard if one.startswith(sender)] == [f"{sender}-{number}" for number in range(30)]
    assert post.counts.seen == {"message:delivered": 120, "message:known": 40}


async def test_a_guessed_message_id_does_not_block_the_message_of_another_sender(post: Post) -> None:
    for sender, message_id in (("Mallory", "Bob-17"), ("Bob", "Bob-17"), ("Mallory", "t1:said"), ("Bob", "Bob-17")):
        await post.say(ALICE, sender, 1, message_id=message_id, message=f"{sender} speaks")
    async with post.running():
        await post.emptied()
    assert await post.store.post(ALICE, Utterance(message_id="t1:said", speaker="Carol", message="A text", time=1))
    taken = await post.store.take(ALICE, "look")
    assert [(one.speaker, one.message_id) for one in taken.history.current] == [
        ("Mallory", "Bob-17"), ("Bob", "Bob-17"), ("Mallory", "t1:said"), ("Carol", "t1:said"),
    ]  # fmt: skip
    assert post.counts.seen == {"message:delivered": 3, "message:known": 1}
    await post.store.settle(ALICE, "look", Utterance(message_id="x", speaker="Alice", message="Hm", time=2))
    assert [one.speaker for one in (await post.store.take(ALICE, "next")).history.messages if one.own] == ["Alice"]


async def test_a_subject_that_nobody_reads_is_refused_at_once(post: Post) -> None:
    for subject in ("messages.99.x.y", "messages.x", "messages.1.x", f"{_BOB}.x", "messages.01.x.y"):
        with pytest.raises(nats.errors.NoRespondersError):
            await post.link.client.request(subject, b"{}", timeout=60)
    for partition in range(PARTITIONS):
        await post.publish(f"messages.{partition}.x.y", b"{}")
    assert await post.stored(subjects.MESSAGES) == PARTITIONS


_GOOD = {"message_id": "m1", "conversation_id": ALICE, "sender": "Bob", "message": "hi", "time": 1}
_BOB = subjects.messages(ALICE, "Bob")

#: Where somebody says what, beside what would do, and what is told of it.
BAD = [
    (_BOB, {"sender": "Eve"}, "sender is 'Eve', but it was sent as 'Bob'; speak as yourself"),
    (f"{_BOB[:-4]}~", {}, "sender is 'Bob', but it was sent as '~', which is nobody's token; speak as yourself"),
    (_BOB, {"conversation_id": CAROL}, f"conversation_id is '{CAROL}', but it lies on '{_BOB}'; publish it to"),
    (_BOB, {"conversation_id": ""}, "conversation_id is not usable; it takes the conversation of the agent that is to"),
    (_BOB, {"message": "x" * 900_000, "user_id": "ann"}, "message is not usable; it takes text of 1 to 2,000"),
    (_BOB, {"message": "ring \x07"}, "message holds the control character '\\x07'; leave it out"),
    (_BOB, {"time": float("nan")}, "time is not usable; it takes seconds of the world"),
    (_BOB, {"message_id": "m\n1", "sender": 'B"b'}, "message_id is not usable; it takes 1 to 128 printable"),
]  # fmt: skip


async def test_an_undeliverable_message_becomes_a_dead_letter_with_field_and_cure(post: Post) -> None:
    for subject, changes, _ in BAD:
        await post.publish(subject, json.dumps(_GOOD | changes).encode())
    await post.publish(_BOB, b"no JSON")
    await post.say(ALICE, "Bob", 1)
    async with post.running():
        await post.emptied()
    letters = await post.letters()
    assert len(letters) == len(BAD) + 1
    told = {DeadLetter.model_validate_json(body).error.message for _, body in letters}
    for _, changes, wanted in BAD:
        assert any(one.startswith(wanted) for one in told), (changes, told)
    assert "the body is no JSON object; send the fields of an AgentMessage in UTF-8" in told
    assert post.counts.seen == {"message:delivered": 1, "dead:unreadable": len(letters)}
    assert await post.heard(ALICE) == ["Bob-1"]
    assert await post.heard(CAROL) == []
    # Of the long one only the beginning is kept: the header says whose words it holds.
    headers = [(await post.link.client.jetstream().get_msg(subjects.DEAD, 1 + n)).headers for n in range(len(letters))]
    assert user_token("ann") in [(one or {}).get(subjects.USER_HEADER) for one in headers]
    letter = read_letter(1, letters[0][0], datetime.now(UTC), letters[0][1])
    assert (letter.content.supervisor_id, letter.content.agent_id) == ("S", None)
    with pytest.raises(
        InvalidInput, match="letter 1 is no task: somebody has to say it anew, as its error tells; purge"
    ):
        redrive_of(letter, letter.body, datetime.now(UTC))


async def test_a_deleted_stream_is_made_again_and_read(post: Post) -> None:
    async with post.running():
        await post.say(ALICE, "Bob", 1)
        await post.emptied()
        await ask_jetstream(post.link.client, f"STREAM.DELETE.{subjects.MESSAGES}")

        async def is_back() -> bool:
            try:
                info = await ask_jetstream(post.link.client, f"STREAM.INFO.{subjects.MESSAGES}")
            except TaskloreError:
                return False
            return int(info["state"]["consumer_count"]) == PARTITIONS

        await eventually(is_back)
        await post.say(ALICE, "Bob", 2)
        await post.emptied()
    assert await post.heard(ALICE) == ["Bob-1", "Bob-2"]


async def test_a_program_sends_messages_to_agents(post: Post, own_servers: EmbeddedServers) -> None:
    """A repeat under its id is one message; an invalid message is refused before it is sent."""
    async with asking("World", nats_url=own_servers.nats_url, redis_url=own_servers.redis_url) as asker:
        for _ in range(2):
            assert await asker.tell(ALICE, "Bob", "Found coins!", time=5, message_id="b1") == "b1"
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
    assert await post.stored(subjects.MESSAGES) == 3
    async with post.running():
        await post.emptied()
    taken = await post.store.take(ALICE, "look")
    assert [(one.speaker, one.message, one.message_id, one.user_id) for one in taken.history.current] == [
        ("Bob", "Found coins!", "b1", None),
        ("Bob", "More!", own_id, "ann"),
    ]


async def test_a_widened_partition_is_ordered_again_at_the_next_start(post: Post) -> None:
    source = inbox_sources()[3]
    await declare_consumer(post.link.client, replace(source, max_ack_pending=100))
    async with post.running():
        info = await ask_jetstream(post.link.client, f"CONSUMER.INFO.{subjects.MESSAGES}.{source.durable}")
    assert info["config"]["max_ack_pending"] == 1


async def test_delivered_messages_can_be_erased_from_the_servers_disk(post: Post, own_servers: EmbeddedServers) -> None:
    await post.say(ALICE, "Bob", 1, message="a secret word: xylophone-9f3b71c2")
    await post.publish(f"{subjects.filler(subjects.MESSAGES)}.1", b"what stays there: marimba-5d20e8a4")
    async with post.running(eraser=Eraser(post.link)):

        async def is_delivered() -> bool:
            return await post.stored(subjects.MESSAGES) == 1

        await eventually(is_delivered)
    assert await post.heard(ALICE) == ["Bob-1"]
    await until_away([own_servers.nats.data_dir], "xylophone-9f3b71c2")
    assert files_with(own_servers.nats.data_dir, "marimba-5d20e8a4")
