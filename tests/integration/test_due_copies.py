"""The copy of a due task in LATER is deleted once it is delivered, and nothing else ever is."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tasklore.contracts import subjects
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.jetstream import ask_jetstream
from tasklore.runtime.messaging.link import Arrival, Link, read_headers
from tasklore.runtime.messaging.pull import Delivery
from tasklore.runtime.messaging.streams import StreamSizes, declare_streams
from tasklore.runtime.servers.embedded import NatsServer
from tasklore.workers.execution.due_copies import DueCopies, open_due_copies

PATIENCE_S = 60.0
DUE = subjects.due("A", "t")
SCHEDULES = subjects.SCHEDULES_ALL


@dataclass
class Scene:
    """A server of its own with LATER and TASKS, and what clears LATER."""

    link: Link
    copies: DueCopies

    async def schedule(self, name: str, *, in_s: float = 0.0, attempt: int = 2) -> int:
        """Schedule the next run of task *name*; return where that lies in LATER."""
        due_at = (
            (datetime.now(UTC) + timedelta(seconds=in_s))
            .isoformat()
            .replace("+00:00", "Z")
        )
        headers = {
            subjects.ATTEMPT_HEADER: str(attempt),
            subjects.SCHEDULE_HEADER: f"@at {due_at}",
            subjects.SCHEDULE_TARGET_HEADER: DUE,
            subjects.SCHEDULE_TTL_HEADER: "24h",
        }
        subject = subjects.schedule(name, 1)
        body = name.encode()
        answer = await self.link.client.request(
            subject, body, timeout=PATIENCE_S, headers=headers
        )
        return int(json.loads(answer.data)["seq"])

    async def delivered(self, name: str) -> Delivery:
        """Return what TASKS hands out for *name*, once it has taken it from LATER."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                for sequence in range(
                    1, (await self.state(subjects.TASKS))["last_seq"] + 1
                ):
                    arrival = await self.read(subjects.TASKS, sequence)
                    if arrival.body == name.encode():
                        return Delivery(
                            subject="tasks.A.t",
                            body=arrival.body,
                            headers=read_headers(arrival.headers),
                            reply="",
                            deliveries=1,
                            sequence=sequence,
                            arrived_at=0.0,
                        )
                await asyncio.sleep(0.05)

    async def read(self, stream: str, sequence: int) -> Arrival:
        answers: asyncio.Queue[Arrival] = asyncio.Queue()
        inbox = self.link.new_inbox()
        listening = await self.link.listen(inbox, answers.put_nowait)
        self.link.send(f"$JS.API.DIRECT.GET.{stream}", b'{"seq": %d}' % sequence, inbox)
        async with asyncio.timeout(PATIENCE_S):
            arrival = await answers.get()
        await listening.unsubscribe()
        return arrival

    async def state(self, stream: str) -> dict[str, Any]:
        found = await ask_jetstream(
            self.link.client, f"STREAM.INFO.{stream}", {"subjects_filter": ">"}
        )
        return dict(found["state"])

    async def in_later(self) -> dict[str, int]:
        return dict((await self.state(subjects.LATER))["subjects"] or {})

    async def has_due(self, number: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while (await self.in_later()).get(DUE, 0) != number:  # noqa: ASYNC110 - no event
                await asyncio.sleep(0.05)

    async def cleared(self) -> None:
        """Return once everything is done that was asked before: what is asked now, by the same way, comes after it."""
        number = (await self.in_later()).get(DUE, 0)
        await self.schedule("marker")
        await self.has_due(number + 1)
        last = (await self.state(subjects.LATER))["last_seq"]
        arrival = await self.read(subjects.LATER, last)
        headers = (read_headers(arrival.headers) or {}) | {
            subjects.SOURCE_HEADER: f"{subjects.LATER} {last}"
        }
        self.copies.clear(
            Delivery(
                subject="tasks.A.t",
                body=arrival.body,
                headers=headers,
                reply="",
                deliveries=1,
                sequence=1,
                arrived_at=0.0,
            )
        )
        await self.has_due(number)

    async def make_later_anew(self) -> None:
        await ask_jetstream(self.link.client, f"STREAM.DELETE.{subjects.LATER}")
        await declare_streams(self.link.client, StreamSizes())


@pytest.fixture
async def scene(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    server = NatsServer(tmp_path_factory.mktemp("nats"))
    await server.start()
    try:
        async with connected(server.url, "test-due-copies") as client:
            link = Link(client)
            await declare_streams(client, StreamSizes())
            async with open_due_copies(link) as copies:
                yield Scene(link, copies)
    finally:
        await server.stop()


async def test_the_copy_of_a_delivered_task_is_deleted_and_no_other(
    scene: Scene,
) -> None:
    for name in ("one", "two", "three"):
        await scene.schedule(name)
    await scene.schedule("waits", in_s=3600)
    taken = await scene.delivered("two")
    await scene.has_due(3)
    scene.copies.clear(taken)
    await scene.has_due(2)
    left = [
        (await scene.read(subjects.LATER, sequence)).body for sequence in range(1, 8)
    ]
    assert sorted(body for body in left if body) == [b"one", b"three", b"waits"]


async def test_a_number_from_a_lost_stream_deletes_nothing_from_the_new_one(
    scene: Scene,
) -> None:
    for number in range(3):
        await scene.schedule(f"old-{number}")
    stale = [await scene.delivered(f"old-{number}") for number in range(3)]
    places = sorted(
        int((taken.headers or {})[subjects.SOURCE_HEADER].split(" ")[1])
        for taken in stale
    )
    await scene.make_later_anew()
    for number in range(places[0] - 2):
        await scene.schedule(f"filler-{number}", in_s=3600)
    await scene.schedule("due", in_s=0)
    await scene.has_due(1)
    for number in range(places[0], places[-1]):
        await scene.schedule(f"waits-{number}", in_s=3600)
    before = await scene.in_later()
    occupied = {(await scene.read(subjects.LATER, place)).body for place in places}
    for taken in stale:
        scene.copies.clear(taken)
    await scene.cleared()
    assert {b"due", f"waits-{places[-1] - 1}".encode()} <= occupied
    assert await scene.in_later() == before


async def test_a_later_run_of_the_same_task_is_not_taken_for_the_delivered_one(
    scene: Scene,
) -> None:
    await scene.schedule("first", in_s=3600)
    await scene.schedule("again", attempt=2)
    taken = await scene.delivered("again")
    place = int((taken.headers or {})[subjects.SOURCE_HEADER].split(" ")[1])
    await scene.make_later_anew()
    await scene.schedule("first", in_s=3600)
    await scene.schedule("again", attempt=3)
    await scene.has_due(1)
    assert (await scene.read(subjects.LATER, place)).body == b"again"
    scene.copies.clear(taken)
    await scene.cleared()
    assert (await scene.read(subjects.LATER, place)).body == b"again"
