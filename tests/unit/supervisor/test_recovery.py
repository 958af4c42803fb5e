"""Recovery where it goes wrong: what is noted, and what is published again."""

import json
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from nats.aio.client import Client

from tasklore.contracts.errors import ConfigurationError, NotAccepted
from tasklore.memory.ledger.ledger import LedgerEntry
from tasklore.memory.ledger.open_tasks import OpenTask
from tasklore.runtime.messaging.outbox import Outbox
from tasklore.supervisor.stream_recovery import Recovery
from tests.understanding_cases import AT

#: What the fake ledger has: a task that waits for its third run, and a redrive that was never run.
OPEN = [("t1", 1, 2, True), ("t2", 3, 0, False)]


def assignment(task_id: str) -> bytes:
    fields = {
        "task_id": task_id,
        "agent_id": "A",
        "supervisor_id": "S",
        "created_at": AT.isoformat(),
    }
    return json.dumps(fields | {"task": {"name": "x", "parameters": {}}}).encode()


class Answer:
    """A message of the server."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.data = json.dumps(body).encode()


class FakeServer:
    """Stands for the connection: `created` says when each stream there is was made."""

    is_connected = True

    def __init__(self, created: dict[str, str]) -> None:
        self.created = created

    async def request(self, subject: str, payload: bytes, timeout: float) -> Answer:  # noqa: ASYNC109 - theirs
        name = subject.removeprefix("$JS.API.STREAM.INFO.")
        if name not in self.created:
            return Answer(
                {
                    "error": {
                        "code": 404,
                        "err_code": 10059,
                        "description": "stream not found",
                    }
                }
            )
        return Answer({"created": self.created[name]})


class FakeOutbox:
    """Stands for the outbox: keeps what is put, or refuses it, all or one message id."""

    def __init__(self) -> None:
        self.stored: list[tuple[str, bytes, str, dict[str, str]]] = []
        self.refuses = False
        self.refused_id = ""

    async def put(
        self,
        subject: str,
        body: bytes,
        message_id: str,
        *,
        headers: dict[str, str],
        **_: object,
    ) -> bool:
        if self.refuses or message_id == self.refused_id:
            raise NotAccepted("no stream takes this subject")
        if message_id in {stored[2] for stored in self.stored}:
            return False
        self.stored.append((subject, body, message_id, headers))
        return True


class Scene:
    """A recovery with everything around it."""

    def __init__(
        self, *, tasks: str | None = "yesterday", later: str | None = "long ago"
    ) -> None:
        self.server = FakeServer(
            {
                "TASKS": "today",
                "WAITING": "long ago",
                "LATER": "long ago",
                "REPORTS": "long ago",
            }
        )
        self.outbox = FakeOutbox()
        self.noted = {
            "TASKS": tasks,
            "WAITING": "long ago",
            "LATER": later,
            "REPORTS": "long ago",
        }
        self.bodies = [
            OpenTask(task, number, assignment(task), runs, waits)
            for task, number, runs, waits in OPEN
        ]
        self.untold = 0
        self.may_create = True
        self.lost = self.republished = 0
        self.recovery = Recovery(
            cast("Client", self.server),
            cast("Outbox", self.outbox),
            self,
            self,
            tell_ledger=self.tell,
            heal=self.heal,
            meter=self,
        )

    async def read(self) -> AsyncIterator[list[OpenTask]]:
        for task in self.bodies:
            yield [task]

    async def close_ended(self) -> int:
        return 0

    async def read_recent(self, _seconds: float) -> AsyncIterator[list[LedgerEntry]]:
        for entries in ():
            yield entries

    async def known(self, stream: str) -> str | None:
        return self.noted[stream]

    async def note(self, stream: str, created: str) -> None:
        self.noted[stream] = created

    async def tell(self) -> int:
        untold = self.untold
        self.untold = 0
        return untold

    async def heal(self) -> None:
        if self.may_create:
            self.server.created = {
                "TASKS": "healed",
                "WAITING": "healed",
                "LATER": "healed",
                "REPORTS": "healed",
            } | self.server.created

    def count_stream_lost(self) -> None:
        self.lost += 1

    def count_tasks_republished(self, number: int) -> None:
        self.republished += number


async def test_open_tasks_are_published_again_once_as_at_first() -> None:
    scene = Scene()
    assert await scene.recovery.look() == 2
    assert scene.outbox.stored == [
        (
            "tasks.A.x",
            assignment("t1"),
            "t1:1:a3",
            {"Tasklore-Generation": "1", "Tasklore-Attempt": "3"},
        ),
        (
            "tasks.A.x",
            assignment("t2"),
            "t2:3",
            {"Tasklore-Generation": "3", "Tasklore-Attempt": "1"},
        ),
    ]
    assert (scene.noted, scene.lost, scene.republished) == (scene.server.created, 1, 2)
    assert await scene.recovery.look() == 0
    assert len(scene.outbox.stored) == 2


async def test_a_stream_seen_for_the_first_time_is_no_loss() -> None:
    scene = Scene(tasks=None, later=None)
    assert await scene.recovery.look() == 2
    assert (scene.noted, scene.lost) == (scene.server.created, 0)


async def test_a_stream_is_noted_only_once_everything_is_stored() -> None:
    scene = Scene()
    scene.outbox.refuses = True
    with pytest.raises(NotAccepted):
        await scene.recovery.look()
    assert (scene.noted["TASKS"], scene.lost) == ("yesterday", 0)
    scene.outbox.refuses = False
    assert await scene.recovery.look() == 2
    assert (scene.noted["TASKS"], scene.lost) == ("today", 1)


async def test_what_an_incomplete_recovery_stored_is_counted_and_once() -> None:
    scene = Scene()
    scene.outbox.refused_id = "t2:3"
    with pytest.raises(NotAccepted):
        await scene.recovery.look()
    assert (scene.republished, scene.lost) == (1, 0)
    scene.outbox.refused_id = ""
    assert await scene.recovery.look() == 2
    assert (scene.republished, scene.lost) == (2, 1)


async def test_a_stream_replaced_during_recovery_is_recovered_again() -> None:
    scene = Scene()
    read = scene.read

    async def replacing() -> AsyncIterator[list[OpenTask]]:
        async for batch in read():
            scene.server.created = scene.server.created | {"TASKS": "tonight"}
            yield batch

    scene.read = replacing  # type: ignore[method-assign] # the stream changes under our hands
    await scene.recovery.look()
    assert scene.noted["TASKS"] == "today"
    scene.read = read  # type: ignore[method-assign]
    assert await scene.recovery.look() == 2
    assert scene.noted["TASKS"] == "tonight"


async def test_a_missing_stream_that_may_not_be_created_is_an_error() -> None:
    scene = Scene()
    del scene.server.created["TASKS"]
    scene.may_create = False
    with pytest.raises(ConfigurationError, match="TASKLORE_PROVISION"):
        await scene.recovery.look()
    assert scene.outbox.stored == []


async def test_a_task_told_to_the_ledger_late_is_published() -> None:
    scene = Scene(tasks="today")
    scene.untold = 1
    assert await scene.recovery.look() == 2
    assert scene.lost == 0


async def test_two_supervisors_that_note_different_streams_publish_once() -> None:
    scene = Scene()
    assert await scene.recovery.look() == 2
    scene.noted["TASKS"] = "elsewhere"
    assert [await scene.recovery.look() for _ in range(3)] == [0, 0, 0]


async def test_an_unreadable_assignment_holds_back_no_other() -> None:
    scene = Scene()
    scene.bodies.insert(0, OpenTask("t0", 1, b"not json", 1, is_waiting=False))
    scene.bodies.insert(
        0, OpenTask("a\r\nX: b", 1, assignment("t1"), 1, is_waiting=False)
    )
    assert await scene.recovery.look() == 2
    assert scene.noted["TASKS"] == "today"
