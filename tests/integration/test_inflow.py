"""From TURNS and FACTS into the tables: every message once, in order, and off the disk."""

import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tasklore.contracts import subjects
from tasklore.contracts.errors import TaskloreError
from tasklore.contracts.identifiers import partition_of
from tasklore.contracts.messages import ChatTurn, DeadLetter, ExtractedFacts, Fact
from tasklore.memory.queues.queue import PersonalQueue
from tasklore.runtime.messaging import partitions
from tasklore.runtime.messaging.erasure import Eraser
from tasklore.runtime.messaging.outbox import open_outbox
from tasklore.runtime.messaging.partitions import MOST_ERASURES, Owner
from tasklore.runtime.messaging.streams import declare_consumer
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.workers.listening.declaration import Queue
from tasklore.workers.listening.inflow import InflowHandler
from tasklore.workers.listening.wiring import sources_of
from tests.integration.listening import eventually
from tests.integration.partitions import ACK_WAIT_S, Partitions, partitions_on


class Tired(Eraser):
    fails_for = 0

    async def erase(self, stream: str, sequence: int) -> bool:
        if self.fails_for:
            self.fails_for -= 1
            raise TaskloreError("may not delete")
        return await super().erase(stream, sequence)


class Inflow:
    """Turns and facts as a worker takes them in, and programs that publish them."""

    def __init__(self, partitions: Partitions) -> None:
        self.partitions = partitions
        self.link = partitions.link
        self.counts = partitions.counts
        self.tables: dict[Queue, PersonalQueue] = {
            "turns": PersonalQueue(partitions.redis, "turns"),
            "facts": PersonalQueue(partitions.redis, "facts"),
        }
        self.eraser = Tired(self.link.client)
        self.appended = 0

    def _note(self) -> None:
        self.appended += 1

    @contextlib.asynccontextmanager
    async def running(self, queue: Queue, readers: int = 1) -> AsyncIterator[None]:
        """Take in the stream of *queue* until it is empty."""
        stream = subjects.TURNS if queue == "turns" else subjects.FACTS
        async with open_outbox(self.link) as outbox:
            desk = InflowHandler(
                stream,
                Owner("worker-1", "Ear"),
                queue=self.tables[queue],
                eraser=self.eraser,
                outbox=outbox,
                meter=self.counts,
                appended=self._note,
            )
            async with self.partitions.taken_in(
                desk, sources_of(queue, ACK_WAIT_S), readers
            ):
                yield
                await self.partitions.until_empty(stream)

    async def say(
        self,
        user: str | None,
        turn_id: str,
        text: str = "hello",
        conversation: str = "c",
    ) -> None:
        turn = a_turn(user, turn_id, text, conversation)
        await self.partitions.publish(subjects.turns(user or conversation), turn)

    async def learn(self, turn_id: str, *texts: str) -> None:
        await self.partitions.publish(
            subjects.facts("ann"), some_facts("ann", turn_id, *texts)
        )

    async def ids(self, queue: Queue, user: str) -> list[str]:
        return [row.row_id for row in await self.tables[queue].rows(user, 10_000)]


def a_turn(
    user: str | None, turn_id: str, text: str = "hello", conversation: str = "c"
) -> bytes:
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
    facts = tuple(
        Fact(fact_id=f"{turn_id}-{number}", text=text)
        for number, text in enumerate(texts)
    )
    extracted = ExtractedFacts(
        turn_id=turn_id,
        conversation_id="c",
        user_id=user,
        facts=facts,
        at=datetime.now(UTC),
    )
    return extracted.model_dump_json(exclude_none=True).encode()


def holds(folder: Path, word: bytes) -> bool:
    return any(
        word in file.read_bytes() for file in folder.rglob("*") if file.is_file()
    )


@pytest.fixture
async def inflow(own_servers: EmbeddedServers) -> AsyncIterator[Inflow]:
    async with partitions_on(own_servers) as partitions:
        yield Inflow(partitions)


async def test_turns_are_moved_into_their_users_table_in_order_by_several_workers(
    inflow: Inflow,
) -> None:
    for number in range(20):
        await inflow.say("ann", f"a{number}", f"text {number}")
        await inflow.say("ben", f"b{number}")
    async with inflow.running("turns", readers=3):
        pass
    assert await inflow.ids("turns", "ann") == [f"a{number}" for number in range(20)]
    assert await inflow.ids("turns", "ben") == [f"b{number}" for number in range(20)]
    bodies = [row.body for row in await inflow.tables["turns"].rows("ann", 100)]
    assert [ChatTurn.model_validate_json(body).text for body in bodies] == [
        f"text {number}" for number in range(20)
    ]
    assert inflow.appended == 40


async def test_each_fact_of_a_message_is_one_row_however_often_it_is_published(
    inflow: Inflow,
) -> None:
    """Also long after the stream has forgotten the first; each row is still the message, with that one fact."""
    for _ in range(2):
        await inflow.learn("t1", "one", "two")
        await inflow.learn("t2", "three")
        await inflow.say("ann", "t1")
        async with inflow.running("facts"), inflow.running("turns"):
            pass
    assert await inflow.ids("turns", "ann") == ["t1"]
    assert await inflow.ids("facts", "ann") == ["t1-0", "t1-1", "t2-0"]
    rows = [
        ExtractedFacts.model_validate_json(row.body)
        for row in await inflow.tables["facts"].rows("ann", 9)
    ]
    assert [(row.turn_id, [fact.text for fact in row.facts]) for row in rows] == [
        ("t1", ["one"]),
        ("t1", ["two"]),
        ("t2", ["three"]),
    ]


async def test_turns_without_a_user_are_not_kept(inflow: Inflow) -> None:
    """Also when a conversation has the name of a user."""
    await inflow.say(None, "t1", conversation="talk")
    await inflow.say(None, "t2", conversation="ann")
    async with inflow.running("turns"):
        pass
    assert await inflow.ids("turns", "talk") == await inflow.ids("turns", "ann") == []
    assert inflow.counts.seen["turn:anonymous"] == 2
    assert await inflow.partitions.stored(subjects.DEAD) == 0


async def test_unreadable_turns_and_those_of_another_user_become_dead_letters(
    inflow: Inflow,
) -> None:
    """They hold nobody up, and write into nobody's table: who may publish where is the server's to say."""
    bodies = (
        b"no JSON",
        b"{}",
        b"\xff\xfe",
        a_turn("ben", "t9"),
        a_turn(None, "t9", conversation="talk"),
    )
    for body in bodies:
        await inflow.partitions.publish(subjects.turns("ann"), body)
    await inflow.say("ann", "t1")
    async with inflow.running("turns"):
        pass
    assert await inflow.ids("turns", "ann") == ["t1"]
    assert await inflow.ids("turns", "ben") == []
    letters = [
        DeadLetter.model_validate_json(one.data or b"")
        for one in await inflow.partitions.dead_letters()
    ]
    assert [(letter.reason, letter.subject) for letter in letters] == [
        ("unreadable", subjects.turns("ann"))
    ] * 5
    assert inflow.counts.seen["dead:unreadable"] == len(bodies)


async def test_turns_are_erased_from_the_servers_files(
    inflow: Inflow, own_servers: EmbeddedServers
) -> None:
    await inflow.say("ann", "a0", "a secret word: xylophone")
    await inflow.say("ben", "b0", "something that stays in the same file")

    async def is_written(wanted: bool) -> bool:
        return holds(own_servers.nats.data_dir, b"xylophone") is wanted

    # The server writes down what it stored when it likes.
    await eventually(lambda: is_written(True))
    async with inflow.running("turns"):
        pass
    await eventually(lambda: is_written(False))


async def test_a_turn_that_cannot_be_erased_is_tried_again_and_then_acknowledged(
    inflow: Inflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row is there; a server that forbids it must not stop all that is said."""
    monkeypatch.setattr(partitions, "RETURN_S", 0.1)
    inflow.eraser.fails_for = MOST_ERASURES
    await inflow.say("ann", "a0")
    await inflow.say("ann", "a1")
    async with inflow.running("turns"):
        pass
    assert await inflow.ids("turns", "ann") == ["a0", "a1"]
    assert inflow.eraser.fails_for == 0


async def test_a_worker_that_dies_after_erasing_holds_nothing_up(
    inflow: Inflow,
) -> None:
    source = sources_of("turns", ACK_WAIT_S)[partition_of("ann")]
    await declare_consumer(inflow.link.client, source)
    await inflow.say("ann", "a0")
    await inflow.say("ann", "a1")
    pull = await inflow.link.client.jetstream().pull_subscribe_bind(
        consumer=source.durable, stream=source.stream
    )
    (message,) = await pull.fetch(1, timeout=60)
    await inflow.tables["turns"].append("ann", [("a0", message.data)])
    await Eraser(inflow.link.client).erase(
        subjects.TURNS, message.metadata.sequence.stream
    )
    async with inflow.running("turns"):
        pass
    assert await inflow.ids("turns", "ann") == ["a0", "a1"]


def test_every_partition_has_a_consumer_of_its_own_with_one_message_at_a_time() -> None:
    for queue, stream in (("turns", subjects.TURNS), ("facts", subjects.FACTS)):
        sources = sources_of(queue, 10.0)  # type: ignore[arg-type]  # both are queues
        assert [source.durable for source in sources] == [
            f"{queue}-{number}" for number in range(16)
        ]
        assert {source.stream for source in sources} == {stream}
        assert {source.configuration()["max_ack_pending"] for source in sources} == {1}
        assert {source.filter_subject for source in sources} == {
            f"{queue}.{number}.>" for number in range(16)
        }
