"""Recovery, step by step: when it publishes again, when it does not, and what it notes."""

import json
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from nats.aio.client import Client

from contracts.errors import ConfigurationError, MemoryUnavailable, NotAccepted
from memory.ledger.ledger import LedgerEntry
from memory.ledger.open_tasks import OpenTask, open_generations
from runtime.messaging.outbox import Outbox
from supervisor.recovery import Recovery
from tests.understanding_cases import AT

#: What the fake ledger has: a task that waits for its third run, and a redrive that was never run.
OPEN = [("t1", 1, 2, True), ("t2", 3, 0, False)]


def assignment(task_id: str) -> bytes:
    """Return an assignment as the ledger keeps it."""
    fields = {"task_id": task_id, "agent_id": "A", "supervisor_id": "S", "created_at": AT.isoformat()}
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
        """Answer what is asked about a stream."""
        name = subject.removeprefix("$JS.API.STREAM.INFO.")
        if name not in self.created:
            return Answer({"error": {"code": 404, "err_code": 10059, "description": "stream not found"}})
        return Answer({"created": self.created[name]})


class FakeOutbox:
    """Stands for the outbox: keeps what is put, or refuses it."""

    def __init__(self) -> None:
        self.stored: list[tuple[str, bytes, str, dict[str, str]]] = []
        self.refuses = False

    async def put(self, subject: str, body: bytes, message_id: str, *, headers: dict[str, str], **_: object) -> None:
        """Store a letter."""
        if self.refuses:
            raise NotAccepted("no stream takes this subject")
        self.stored.append((subject, body, message_id, headers))


class Scene:
    """A recovery with everything around it."""

    def __init__(self, *, tasks: str | None = "yesterday", later: str | None = "long ago") -> None:
        self.server = FakeServer({"TASKS": "today", "LATER": "long ago", "REPORTS": "long ago"})
        self.outbox = FakeOutbox()
        self.noted = {"TASKS": tasks, "LATER": later, "REPORTS": "long ago"}
        self.bodies = [OpenTask(task, number, assignment(task), runs, waits) for task, number, runs, waits in OPEN]
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
        """Yield what is open, in batches of one."""
        for task in self.bodies:
            yield [task]

    async def read_recent(self, _seconds: float) -> AsyncIterator[list[LedgerEntry]]:
        """Yield no ended task: reports that come again are tested on real servers."""
        for entries in ():
            yield entries

    async def known(self, stream: str) -> str | None:
        """Return what was noted."""
        return self.noted[stream]

    async def note(self, stream: str, created: str) -> None:
        """Take a note."""
        self.noted[stream] = created

    async def tell(self) -> int:
        """Tell the ledger what it was not told."""
        untold, self.untold = self.untold, 0
        return untold

    async def heal(self) -> None:
        """Create what is missing."""
        if self.may_create:
            self.server.created = {"TASKS": "healed", "LATER": "healed", "REPORTS": "healed"} | self.server.created

    def count_stream_lost(self) -> None:
        """Count one."""
        self.lost += 1

    def count_tasks_republished(self, number: int) -> None:
        """Count *number*."""
        self.republished += number


async def test_the_stream_that_has_everything_is_left_alone() -> None:
    """However often somebody looks."""
    scene = Scene(tasks="today")
    assert [await scene.recovery.look() for _ in range(3)] == [0, 0, 0]
    assert (scene.outbox.stored, scene.lost) == ([], 0)


async def test_what_is_open_goes_into_another_stream_as_it_was_published_at_first() -> None:
    """Subject, generation and message id are those of the first time, or of the next run of what waits for that."""
    scene = Scene()
    assert await scene.recovery.look() == 2
    assert scene.outbox.stored == [
        ("tasks.A.x", assignment("t1"), "t1:1:a3", {"Tasklore-Generation": "1", "Tasklore-Attempt": "3"}),
        ("tasks.A.x", assignment("t2"), "t2:3", {"Tasklore-Generation": "3", "Tasklore-Attempt": "1"}),
    ]
    assert (scene.noted, scene.lost, scene.republished) == (scene.server.created, 1, 2)
    assert await scene.recovery.look() == 0
    assert len(scene.outbox.stored) == 2


async def test_a_stream_that_nobody_noted_yet_is_no_loss() -> None:
    """A system that starts for the first time raises no alarm, and what its ledger has is published all the same."""
    scene = Scene(tasks=None, later=None)
    assert await scene.recovery.look() == 2
    assert (scene.noted, scene.lost) == (scene.server.created, 0)


async def test_with_later_is_lost_what_waits_for_its_next_run() -> None:
    """It goes into the queue, where the ledger lets it wait; what is in the queue is not put there twice."""
    scene = Scene(tasks="today", later="even longer ago")
    assert await scene.recovery.look() == 1
    assert [message_id for _, _, message_id, _ in scene.outbox.stored] == ["t1:1:a3"]
    assert (scene.noted, scene.lost) == (scene.server.created, 1)


async def test_what_could_not_all_be_stored_is_not_noted_and_comes_again() -> None:
    """Until everything is in the stream, it counts as lost."""
    scene = Scene()
    scene.outbox.refuses = True
    with pytest.raises(NotAccepted):
        await scene.recovery.look()
    assert (scene.noted["TASKS"], scene.lost) == ("yesterday", 0)
    scene.outbox.refuses = False
    assert await scene.recovery.look() == 2
    assert (scene.noted["TASKS"], scene.lost) == ("today", 1)


async def test_a_stream_replaced_meanwhile_is_looked_at_once_more() -> None:
    """What was noted is what was there before anything was published."""
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


async def test_a_missing_stream_is_made_and_filled() -> None:
    """Also when no worker runs that would."""
    scene = Scene()
    scene.server.created = {}
    assert await scene.recovery.look() == 2
    assert (set(scene.noted.values()), scene.lost) == ({"healed"}, 3)


async def test_who_may_not_make_a_stream_says_that_somebody_must() -> None:
    """With TASKLORE_PROVISION=never."""
    scene = Scene()
    del scene.server.created["TASKS"]
    scene.may_create = False
    with pytest.raises(ConfigurationError, match="TASKLORE_PROVISION"):
        await scene.recovery.look()
    assert scene.outbox.stored == []


async def test_what_the_ledger_learned_too_late_for_another_supervisor_is_published() -> None:
    """Who noted the new stream read the ledger before it knew of this task."""
    scene = Scene(tasks="today")
    scene.untold = 1
    assert await scene.recovery.look() == 2
    assert scene.lost == 0


async def test_two_that_see_different_streams_do_not_publish_in_turns() -> None:
    """One that was completed here stays so, whatever another one notes."""
    scene = Scene()
    assert await scene.recovery.look() == 2
    scene.noted["TASKS"] = "elsewhere"
    assert [await scene.recovery.look() for _ in range(3)] == [0, 0, 0]


async def test_without_the_ledger_nothing_is_noted() -> None:
    """It is asked again when it answers."""
    scene = Scene()

    async def away() -> int:
        raise MemoryUnavailable("away")

    scene.recovery._tell_ledger = away
    with pytest.raises(MemoryUnavailable):
        await scene.recovery.look()
    assert scene.noted["TASKS"] == "yesterday"


async def test_an_assignment_that_cannot_be_read_keeps_no_other_from_coming_back() -> None:
    """It is logged and passed over."""
    scene = Scene()
    scene.bodies.insert(0, OpenTask("t0", 1, b"not json", 1, is_waiting=False))
    scene.bodies.insert(0, OpenTask("a\r\nX: b", 1, assignment("t1"), 1, is_waiting=False))
    assert await scene.recovery.look() == 2
    assert scene.noted["TASKS"] == "today"


@pytest.mark.parametrize(
    ("fields", "generations"),
    [
        (["assignment:1", "state:1"], [1]),
        (["assignment:1", "report:1"], []),
        (["report:1", "assignment:2", "assignment:1", "state:2", "assignment:11"], [2, 11]),
        (["state:1", "attempts:1", "worker:1"], []),
        (["assignment:0", "assignment:x", "assignment:1:2", "once.assignment:3", "assignment"], []),
        ([], []),
    ],
)
def test_open_is_what_has_an_assignment_and_no_report(fields: list[str], generations: list[int]) -> None:
    """Told by the names of the fields alone, each generation by itself."""
    assert open_generations([field.encode() for field in fields]) == generations
