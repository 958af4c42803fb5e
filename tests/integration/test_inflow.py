"""From TURNS and FACTS into the tables: every message once, in order, and off the disk."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from redis.asyncio import Redis

from contracts import subjects
from contracts.errors import MemoryUnavailable, TaskloreError
from contracts.identifiers import partition_of
from contracts.messages import ChatTurn, DeadLetter, ExtractedFacts, Fact
from memory.queues.queue import PersonalQueue
from runtime.messaging.connection import connected
from runtime.messaging.erasure import Eraser
from runtime.messaging.jetstream import ask_jetstream
from runtime.messaging.leases import Leases
from runtime.messaging.link import Link
from runtime.messaging.outbox import open_outbox
from runtime.messaging.partitions import MOST_ERASURES, Whose
from runtime.messaging.pull import PullEngine
from runtime.messaging.streams import Sizes, Source, declare_consumer, declare_streams, find_consumer
from runtime.metrics import Metrics
from runtime.servers.embedded import EmbeddedServers
from tests.integration.listening import Counts, eventually
from workers.listening.declaration import Queue
from workers.listening.inflow import InflowDesk
from workers.listening.wiring import sources_of

ACK_WAIT_S = 600.0


class Table(PersonalQueue):
    """A table that can be away, and is so as often as it is told."""

    is_away_for = 0

    async def append(self, owner: str, rows: Sequence[tuple[str, bytes]], *, trace: str = "") -> int:
        """Append, unless away."""
        if self.is_away_for:
            self.is_away_for -= 1
            raise MemoryUnavailable("away")
        return await super().append(owner, rows, trace=trace)


class Tired(Eraser):
    """An eraser that cannot, as often as it is told."""

    fails_for = 0

    async def erase(self, stream: str, sequence: int) -> bool:
        """Erase, unless tired."""
        if self.fails_for:
            self.fails_for -= 1
            raise TaskloreError("may not delete")
        return await super().erase(stream, sequence)


class Inflow:
    """Desks and engines on both streams of a server of their own."""

    def __init__(self, link: Link, redis: Redis, leases: Leases) -> None:
        self.link = link
        self.leases = leases
        self.counts = Counts()
        self.metrics = Metrics("test")
        self.tables: dict[Queue, Table] = {"turns": Table(redis, "turns"), "facts": Table(redis, "facts")}
        self.eraser: Tired | None = Tired(link.client)
        self.appended = 0

    def _note(self) -> None:
        self.appended += 1

    @contextlib.asynccontextmanager
    async def running(self, *queues: Queue, readers: int = 1) -> AsyncIterator[None]:
        """Take in what comes to *queues*, with so many engines on each partition, as so many workers have."""
        running = []
        async with open_outbox(self.link) as outbox:
            for queue in queues:
                stream = subjects.TURNS if queue == "turns" else subjects.FACTS
                desk = InflowDesk(
                    stream,
                    Whose("worker-1", "Ear"),
                    queue=self.tables[queue],
                    eraser=self.eraser,
                    outbox=outbox,
                    meter=self.counts,
                    appended=self._note,
                )
                for source in sources_of(queue, ACK_WAIT_S):
                    await declare_consumer(self.link.client, source)
                    engines = [self._engine(source, desk) for _ in range(readers)]
                    running += [(engine, asyncio.create_task(engine.run())) for engine in engines]
            try:
                yield
            finally:
                for engine, _ in running:
                    engine.stop()
                await asyncio.gather(*(task for _, task in running))

    def _engine(self, source: Source, desk: InflowDesk) -> PullEngine:
        async def heal() -> str:
            return await find_consumer(self.link.client, source, Sizes(), may_create=True)

        return PullEngine(self.link, source, 1, desk, self.leases, self.metrics, heal)

    async def publish(self, subject: str, body: bytes) -> None:
        """Put a message into its stream."""
        answer = json.loads((await self.link.client.request(subject, body, timeout=60)).data)
        assert "error" not in answer, answer

    async def say(self, user: str | None, turn_id: str, text: str = "hello", conversation: str = "c") -> None:
        """Publish a turn."""
        turn = a_turn(user, turn_id, text, conversation)
        await self.publish(subjects.turns(user or conversation), turn)

    async def stored(self, stream: str) -> int:
        """Return how many messages lie in *stream*."""
        info = await ask_jetstream(self.link.client, f"STREAM.INFO.{stream}")
        return int(info["state"]["messages"])

    async def emptied(self, stream: str) -> None:
        """Return once nothing lies in *stream* any more and every word on it is said."""

        async def is_empty() -> bool:
            return await self.stored(stream) == 0

        await eventually(is_empty)

    async def ids(self, queue: Queue, user: str) -> list[str]:
        """Return the ids of the rows of *user*, in order."""
        return [row.row_id for row in await self.tables[queue].rows(user, 10_000)]

    async def letters(self) -> list[DeadLetter]:
        """Return what lies in DEAD."""
        info = await ask_jetstream(self.link.client, f"STREAM.INFO.{subjects.DEAD}")
        stream = self.link.client.jetstream()
        first, last = info["state"]["first_seq"], info["state"]["last_seq"]
        found = [await stream.get_msg(subjects.DEAD, number) for number in range(first, last + 1)]
        return [DeadLetter.model_validate_json(message.data or b"") for message in found]


def a_turn(user: str | None, turn_id: str, text: str = "hello", conversation: str = "c") -> bytes:
    """Return a turn as it crosses the wire."""
    turn = ChatTurn(
        turn_id=turn_id,
        conversation_id=conversation,
        user_id=user,
        speaker="person",
        text=text,
        at=datetime.now(UTC),
    )
    return turn.model_dump_json(exclude_none=True).encode()


def some_facts(user: str, turn_id: str, *texts: str) -> bytes:
    """Return facts as they cross the wire."""
    facts = tuple(Fact(fact_id=f"{turn_id}-{number}", text=text) for number, text in enumerate(texts))
    extracted = ExtractedFacts(turn_id=turn_id, conversation_id="c", user_id=user, facts=facts, at=datetime.now(UTC))
    return extracted.model_dump_json(exclude_none=True).encode()


def holds(folder: Path, word: bytes) -> bool:
    """Return whether *word* stands in any file below *folder*."""
    return any(word in file.read_bytes() for file in folder.rglob("*") if file.is_file())


def _must_not_fail(error: BaseException) -> None:
    raise AssertionError(f"the leases ended: {error!r}")


@pytest.fixture
async def inflow(own_servers: EmbeddedServers) -> AsyncIterator[Inflow]:
    """Connect to servers of the test's own, whose streams are empty."""
    async with (
        connected(own_servers.nats_url, "inflow") as client,
        Leases(own_servers.nats_url, ACK_WAIT_S, Metrics("test"), failed=_must_not_fail) as leases,
        Redis.from_url(own_servers.redis_url, socket_timeout=None) as redis,
    ):
        await declare_streams(client, Sizes())
        yield Inflow(Link(client), redis, leases)


async def test_turns_are_moved_into_their_users_table_in_order_by_several_workers(inflow: Inflow) -> None:
    for number in range(20):
        await inflow.say("ann", f"a{number}", f"text {number}")
        await inflow.say("ben", f"b{number}")
    async with inflow.running("turns", readers=3):
        await inflow.emptied(subjects.TURNS)
    assert await inflow.ids("turns", "ann") == [f"a{number}" for number in range(20)]
    assert await inflow.ids("turns", "ben") == [f"b{number}" for number in range(20)]
    bodies = [row.body for row in await inflow.tables["turns"].rows("ann", 100)]
    assert [ChatTurn.model_validate_json(body).text for body in bodies] == [f"text {number}" for number in range(20)]
    assert inflow.appended == 40


async def test_one_message_of_facts_becomes_a_row_for_each_fact(inflow: Inflow) -> None:
    await inflow.publish(subjects.facts("ann"), some_facts("ann", "t1", "one", "two"))
    await inflow.publish(subjects.facts("ann"), some_facts("ann", "t2", "three"))
    async with inflow.running("facts"):
        await inflow.emptied(subjects.FACTS)
    assert await inflow.ids("facts", "ann") == ["t1-0", "t1-1", "t2-0"]
    rows = [ExtractedFacts.model_validate_json(row.body) for row in await inflow.tables["facts"].rows("ann", 9)]
    assert [(row.turn_id, [fact.text for fact in row.facts]) for row in rows] == [
        ("t1", ["one"]),
        ("t1", ["two"]),
        ("t2", ["three"]),
    ]


async def test_a_message_that_is_published_twice_is_one_row(inflow: Inflow) -> None:
    async with inflow.running("turns", "facts"):
        for _ in range(2):
            await inflow.say("ann", "t1")
            await inflow.publish(subjects.facts("ann"), some_facts("ann", "t1", "one", "two"))
            await inflow.emptied(subjects.TURNS)
            await inflow.emptied(subjects.FACTS)
    assert await inflow.ids("turns", "ann") == ["t1"]
    assert await inflow.ids("facts", "ann") == ["t1-0", "t1-1"]


async def test_turns_without_a_user_are_not_kept(inflow: Inflow) -> None:
    """Also when a conversation has the name of a user."""
    await inflow.say(None, "t1", conversation="talk")
    await inflow.say(None, "t2", conversation="ann")
    async with inflow.running("turns"):
        await inflow.emptied(subjects.TURNS)
    assert await inflow.ids("turns", "talk") == await inflow.ids("turns", "ann") == []
    assert inflow.counts.seen["turn:anonymous"] == 2
    assert await inflow.stored(subjects.DEAD) == 0


async def test_unreadable_turns_and_those_of_another_user_become_dead_letters(inflow: Inflow) -> None:
    """They hold nobody up, and write into nobody's table: who may publish where is the server's to say."""
    bodies = (b"no JSON", b"{}", b"\xff\xfe", a_turn("ben", "t9"), a_turn(None, "t9", conversation="talk"))
    for body in bodies:
        await inflow.publish(subjects.turns("ann"), body)
    await inflow.say("ann", "t1")
    async with inflow.running("turns"):
        await inflow.emptied(subjects.TURNS)
    assert await inflow.ids("turns", "ann") == ["t1"]
    assert await inflow.ids("turns", "ben") == []
    letters = [(letter.reason, letter.subject) for letter in await inflow.letters()]
    assert letters == [("unreadable", subjects.turns("ann"))] * len(bodies)
    assert inflow.counts.seen["dead:unreadable"] == len(bodies)


async def test_a_store_that_is_away_delays_its_partition_and_loses_nothing(inflow: Inflow) -> None:
    inflow.tables["turns"].is_away_for = 2
    for number in range(3):
        await inflow.say("ann", f"a{number}")
    async with inflow.running("turns"):
        await inflow.emptied(subjects.TURNS)
    assert await inflow.ids("turns", "ann") == ["a0", "a1", "a2"]


async def test_without_an_eraser_messages_are_acknowledged(inflow: Inflow) -> None:
    inflow.eraser = None
    for number in range(20):
        await inflow.say("ann", f"a{number}")
    async with inflow.running("turns", readers=2):
        await inflow.emptied(subjects.TURNS)
    assert await inflow.ids("turns", "ann") == [f"a{number}" for number in range(20)]


async def test_turns_are_erased_from_the_servers_files(inflow: Inflow, own_servers: EmbeddedServers) -> None:
    await inflow.say("ann", "a0", "a secret word: xylophone")
    await inflow.say("ben", "b0", "something that stays in the same file")

    async def is_written(wanted: bool) -> bool:
        return holds(own_servers.nats.data_dir, b"xylophone") is wanted

    # The server writes down what it stored when it likes.
    await eventually(lambda: is_written(True))
    async with inflow.running("turns"):
        await inflow.emptied(subjects.TURNS)
    await eventually(lambda: is_written(False))


async def test_a_turn_that_cannot_be_erased_is_tried_again_and_then_acknowledged(inflow: Inflow) -> None:
    assert inflow.eraser is not None
    inflow.eraser.fails_for = MOST_ERASURES
    await inflow.say("ann", "a0")
    await inflow.say("ann", "a1")
    async with inflow.running("turns"):
        await inflow.emptied(subjects.TURNS)
    assert await inflow.ids("turns", "ann") == ["a0", "a1"]
    assert inflow.eraser.fails_for == 0


async def test_a_worker_that_dies_after_erasing_holds_nothing_up(inflow: Inflow) -> None:
    source = sources_of("turns", ACK_WAIT_S)[partition_of("ann")]
    await declare_consumer(inflow.link.client, source)
    await inflow.say("ann", "a0")
    await inflow.say("ann", "a1")
    pull = await inflow.link.client.jetstream().pull_subscribe_bind(consumer=source.durable, stream=source.stream)
    (message,) = await pull.fetch(1, timeout=60)
    await inflow.tables["turns"].append("ann", [("a0", message.data)])
    await Eraser(inflow.link.client).erase(subjects.TURNS, message.metadata.sequence.stream)
    async with inflow.running("turns"):
        await inflow.emptied(subjects.TURNS)
    assert await inflow.ids("turns", "ann") == ["a0", "a1"]


def test_every_partition_has_a_consumer_of_its_own_with_one_message_at_a_time() -> None:
    for queue, stream in (("turns", subjects.TURNS), ("facts", subjects.FACTS)):
        sources = sources_of(queue, 10.0)  # type: ignore[arg-type]  # both are queues
        assert [source.durable for source in sources] == [f"{queue}-{number}" for number in range(16)]
        assert {source.stream for source in sources} == {stream}
        assert {source.configuration()["max_ack_pending"] for source in sources} == {1}
        assert {source.filter_subject for source in sources} == {f"{queue}.{number}.>" for number in range(16)}
