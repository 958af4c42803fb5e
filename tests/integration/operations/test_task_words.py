"""The words that became a task: found for whom they are meant, as long as a conversation has them."""

import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts.callers import Caller
from tasklore.contracts.messages import (
    ChatTurn,
    CompletionReport,
    MemoryNote,
    TaskAssignment,
    TaskCall,
)
from tasklore.memory.conversations.conversation import Conversations
from tasklore.memory.ledger.task_index import TaskIndex
from tasklore.memory.ledger.task_rows import row_of
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.operations.refusals import Refused
from tasklore.supervisor.operations.sent_tasks import TaskServices
from tasklore.supervisor.operations.tasks import show_words
from tasklore.supervisor.requests.readings import FirstReading, PartRead, keep_reading
from tasklore.supervisor.requests.request import part_task_id
from tests.integration.http_stand import assigned, http_stand

READER = Caller(name="reader", roles=frozenset({"read"}))
ACME = Caller(name="acme", roles=frozenset({"read"}), tenant="acme")
RIVAL = Caller(name="rival", roles=frozenset({"read"}), tenant="rival")
BEN = Caller(name="ben", roles=frozenset({"read"}), user="ben")
WHOLE = "r-" + "4" * 32
TEXT = "echo twice nine, and then hi"


@pytest.fixture
async def services(
    servers: EmbeddedServers, redis: Redis
) -> AsyncIterator[TaskServices]:
    async with http_stand(servers, redis) as stand:
        yield stand.parts.for_tasks


async def say(redis: Redis, user: str | None = "ana") -> None:
    """Have a person say something that became two tasks, with a turn before and one behind it."""
    store = Conversations(redis)
    parts = (
        PartRead(
            kind="task",
            agent_id="EchoAgent",
            task=TaskCall(name="echo", parameters={"word": 18, "to": "Bo"}),
            remembered=("to",),
            computed={"word": "twice nine"},
            by="model",
        ),
        PartRead(
            kind="task",
            agent_id="EchoAgent",
            task=TaskCall(name="echo", parameters={"word": "hi"}),
        ),
    )
    for number, task_id in enumerate(("r-" + "1" * 32, WHOLE, "r-" + "2" * 32)):
        turn = ChatTurn(
            turn_id=f"turn-{number}",
            conversation_id="trip",
            user_id=user,
            speaker="person",
            text=TEXT if task_id == WHOLE else "something else",
            at=datetime(2026, 5, 1, tzinfo=UTC),
            request_id=f"q{number}",
            tenant="acme",
        )
        await keep_reading(
            store, turn, FirstReading(task_id=task_id, parts=parts), None
        )


async def send(services: TaskServices, task_id: str, **fields: Any) -> TaskAssignment:
    """Send a task of these words, and return its assignment."""
    more = {
        "created_at": datetime.now(UTC),
        "user_id": "ana",
        "tenant": "acme",
        "conversation_id": "trip",
        **fields,
    }
    assignment = assigned(task_id).model_copy(update=more)
    await services.dispatch.assign(assignment, room="counted")
    return assignment


async def test_an_open_task_has_the_words_that_it_was_made_of(
    services: TaskServices, redis: Redis
) -> None:
    """Of several tasks each is told by its place; nobody else's key hears a word."""
    await say(redis)
    first, second = part_task_id(WHOLE, 1), part_task_id(WHOLE, 2)
    for task_id in (first, second):
        await send(services, task_id)
    found = await show_words(services, READER, first)
    assert (found.text, found.user, found.by) == (TEXT, "ana", "model")
    assert found.parameters == {"word": 18, "to": "Bo"}
    assert (found.remembered, found.computed) == (("to",), {"word": "twice nine"})
    assert (found.place, found.of, found.request_id) == (1, 2, "q1")
    other = await show_words(services, ACME, second)
    assert (other.place, other.parameters, other.by) == (2, {"word": "hi"}, None)
    for caller in (RIVAL, BEN):
        with pytest.raises(Refused, match="there is no task"):
            await show_words(services, caller, first)


async def test_an_ended_task_has_them_where_its_user_is_known(
    services: TaskServices, redis: Redis
) -> None:
    """Nothing is kept for that: they are found among the last turns of the user's conversations."""
    await say(redis)
    await Conversations(redis).append("other", b"{}", "t", user_id="ana")
    task_id = part_task_id(WHOLE, 1)
    await end(services, redis, await send(services, task_id))
    found = await show_words(services, READER, task_id)
    assert (found.text, found.parameters["word"]) == (TEXT, 18)
    unknown = part_task_id(WHOLE, 2)
    await end(services, redis, await send(services, unknown, user_id=None))
    with pytest.raises(Refused, match="no words are stored"):
        await show_words(services, READER, unknown)


async def test_a_task_that_was_sent_by_its_name_has_none(
    services: TaskServices, redis: Redis
) -> None:
    await say(redis)
    await send(services, "t1")
    with pytest.raises(Refused, match="it was sent by its name"):
        await show_words(services, READER, "t1")


async def end(services: TaskServices, redis: Redis, assignment: TaskAssignment) -> None:
    """Have a task end as a worker ends it: its assignment is kept no longer."""
    report = CompletionReport(
        task_id=assignment.task_id,
        agent_id=assignment.agent_id,
        supervisor_id=assignment.supervisor_id,
        task_name=assignment.task.name,
        status="completed",
        memory=MemoryNote(outcome="off"),
        worker_id="w",
        finished_at=datetime.now(UTC),
    )
    body = report.model_dump_json().encode()
    await services.ledger.finish(assignment.named, 1, "completed", body)
    ended_ms = time.time_ns() // 1_000_000
    row = row_of(
        assignment, 1, assignment.agent_id, state="completed", ended_ms=ended_ms
    )
    await TaskIndex(redis).write([row])
    entry = await services.ledger.read(assignment.named)
    assert entry is not None
    assert entry.generations[1].assignment is None
