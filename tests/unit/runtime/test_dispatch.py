"""Dispatch: first the stream, then the ledger, which catches up later when it was away."""

from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from tasklore.contracts.errors import MemoryUnavailable, QueueFull
from tasklore.contracts.messages import ChatTurn, TaskAssignment, TaskCall
from tasklore.contracts.traces import made_context
from tasklore.memory.ledger import unnoted_tasks
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.task_rows import TaskRow
from tasklore.runtime import tracing
from tasklore.runtime.messaging.outbox import Outbox
from tasklore.supervisor.dispatch import EARLY_MS, Dispatch
from tests.fakes.ledger import FakeLedger
from tests.understanding_cases import AT


def an_assignment(task_id: str) -> TaskAssignment:
    """Return a task of its own."""
    return TaskAssignment(
        task_id=task_id,
        agent_id="A",
        supervisor_id="S",
        task=TaskCall(name="x", parameters={}),
        created_at=AT,
    )


class FakeOutbox:
    """Stands for the outbox: stores message ids, or has no room."""

    def __init__(self) -> None:
        self.stored: list[str] = []
        self.is_full = False

    async def put(
        self, subject: str, body: bytes, message_id: str, **_: object
    ) -> None:
        """Store a letter."""
        if self.is_full:
            raise QueueFull("no room")
        self.stored.append(message_id)


class UnreliableLedger(FakeLedger):
    """A ledger that can be away."""

    is_away = False

    def __init__(self) -> None:
        super().__init__()
        self.traces: list[str] = []
        self.due: list[int | None] = []

    async def accept(
        self,
        task_id: str,
        generation: int,
        assignment: bytes,
        trace: str = "",
        due_at_ms: int | None = None,
        row: TaskRow | None = None,
    ) -> None:
        """Note an assignment, if anybody is there."""
        if self.is_away:
            raise MemoryUnavailable("away")
        await super().accept(task_id, generation, assignment, trace, row=row)
        self.traces.append(trace)
        self.due.append(due_at_ms)


class DispatchFixture:
    """A dispatch between a stream and a ledger."""

    def __init__(self) -> None:
        self.outbox = FakeOutbox()
        self.ledger = UnreliableLedger()
        self.dispatch = Dispatch(
            cast("Outbox", self.outbox), cast("Ledger", self.ledger)
        )

    async def known(self, *task_ids: str) -> list[str]:
        """Return which of *task_ids* the ledger knows."""
        return [
            task_id
            for task_id in task_ids
            if await self.ledger.read(task_id) is not None
        ]


async def test_what_is_stored_is_in_the_ledger_too() -> None:
    """And nothing is left to tell."""
    fixture = DispatchFixture()
    await fixture.dispatch.assign(an_assignment("t1"))
    assert (fixture.outbox.stored, await fixture.known("t1")) == (["t1:1"], ["t1"])
    assert await fixture.dispatch.tell_ledger() == 0


async def test_what_was_refused_is_not_in_the_ledger() -> None:
    """Otherwise it would be started after all when the stream is made anew."""
    fixture = DispatchFixture()
    fixture.outbox.is_full = True
    with pytest.raises(QueueFull):
        await fixture.dispatch.assign(an_assignment("t1"))
    assert await fixture.known("t1") == []
    assert await fixture.dispatch.tell_ledger() == 0


async def test_turns_of_two_people_are_two_though_they_chose_one_id() -> None:
    """And a repeat of one is swallowed, as its message id is the same."""
    fixture = DispatchFixture()
    for user in ("ann", "bob", "ann"):
        turn = ChatTurn(
            turn_id="t1",
            conversation_id="c",
            user_id=user,
            speaker="person",
            text="hello",
            at=datetime(2026, 1, 1, tzinfo=UTC),
        )
        await fixture.dispatch.hand_in(turn)
    ann, bob, again = fixture.outbox.stored
    assert ann == again != bob


async def test_a_later_task_may_begin_a_little_before_its_time() -> None:
    """The clock of the ledger and that of NATS, which offers it, are not the same."""
    fixture = DispatchFixture()
    at = AT.astimezone(UTC) + timedelta(hours=1)
    later = an_assignment("t1").model_copy(update={"not_before": at})
    await fixture.dispatch.assign(later)
    await fixture.dispatch.assign(an_assignment("t2"))
    assert fixture.ledger.due == [int(at.timestamp() * 1000) - EARLY_MS, None]


async def test_a_ledger_that_was_away_is_told_afterwards() -> None:
    """The task is accepted all the same; once, however often it is asked."""
    fixture = DispatchFixture()
    fixture.ledger.is_away = True
    for task_id in ("t1", "t2", "t1"):
        await fixture.dispatch.assign(an_assignment(task_id))
    with pytest.raises(MemoryUnavailable):
        await fixture.dispatch.tell_ledger()
    fixture.ledger.is_away = False
    assert await fixture.dispatch.tell_ledger() == 2
    assert await fixture.known("t1", "t2") == ["t1", "t2"]
    assert await fixture.dispatch.tell_ledger() == 0


async def test_what_is_kept_for_the_ledger_has_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The newest stay: the oldest are the likeliest to have been done meanwhile."""
    fixture = DispatchFixture()
    size = len(an_assignment("t1").model_dump_json(exclude_none=True))
    monkeypatch.setattr(unnoted_tasks, "_MOST_BYTES", 2 * size)
    fixture.ledger.is_away = True
    for task_id in ("t1", "t2", "t3"):
        await fixture.dispatch.assign(an_assignment(task_id))
    fixture.ledger.is_away = False
    assert await fixture.dispatch.tell_ledger() == 2
    assert await fixture.known("t1", "t2", "t3") == ["t2", "t3"]


async def test_the_ledger_is_told_what_a_task_belongs_to() -> None:
    """At once or later; nothing where there is no trace."""
    fixture = DispatchFixture()
    context = made_context(7, 8, 1)
    await fixture.dispatch.assign(an_assignment("t1"))
    with tracing.within(context):
        await fixture.dispatch.assign(an_assignment("t2"))
        fixture.ledger.is_away = True
        await fixture.dispatch.assign(an_assignment("t3"))
    fixture.ledger.is_away = False
    assert await fixture.dispatch.tell_ledger() == 1
    assert fixture.ledger.traces == ["", str(context), str(context)]
