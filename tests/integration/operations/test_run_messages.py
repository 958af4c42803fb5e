"""What models saw, and where an answer came from, as an operator's process shows it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts.callers import ROLES, Caller
from tasklore.contracts.errors import NotPermitted
from tasklore.contracts.identifiers import TaskName
from tasklore.contracts.messages import CompletionReport, MemoryNote
from tasklore.contracts.run_messages import RunMessage
from tasklore.memory.ledger.runs import RunName
from tasklore.memory.run_messages.store import RunMessages
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.operations.refusals import Refused
from tasklore.supervisor.operations.run_messages import show_messages
from tasklore.supervisor.operations.sent_tasks import TaskServices
from tests.integration.http_stand import assigned, http_stand
from tests.servers import PATIENCE_S

AUTHOR = Caller(name="author", roles=frozenset({"messages"}))
TASK = "0199-seen"


@pytest.fixture
async def services(
    servers: EmbeddedServers, redis: Redis
) -> AsyncIterator[TaskServices]:
    async with http_stand(servers, redis) as stand:
        yield stand.parts.for_tasks


async def begin(services: TaskServices, task_id: str = TASK) -> RunName:
    """Let a task run."""
    sent = assigned(task_id, "hi")
    named = TaskName(sent.agent_id, task_id)
    body = sent.model_dump_json().encode()
    await services.ledger.accept(named, 1, body)
    await services.ledger.begin(named, 1, "w1", 1000, 30_000)
    return RunName(named, 1, "w1")


async def note(redis: Redis, run: RunName, *messages: dict[str, Any]) -> None:
    """Keep *messages* of *run*."""
    spelled = [
        RunMessage.model_validate({"at_ms": 1, **one}).model_dump_json().encode()
        for one in messages
    ]
    store = RunMessages(redis, deadline_s=PATIENCE_S)
    assert await store.append(run, "EchoAgent", "=", spelled)


async def end(services: TaskServices, run: RunName, memory: MemoryNote) -> None:
    """Report the end of *run*."""
    report = CompletionReport.model_validate(
        {
            "task_id": run.task_id,
            "agent_id": "EchoAgent",
            "supervisor_id": "S",
            "task_name": "echo",
            "status": "completed",
            "result": "hi",
            "memory": memory,
            "worker_id": "w1",
            "finished_at": "2026-11-30T12:00:00Z",
        }
    )
    body = report.model_dump_json().encode()
    await services.ledger.finish(run.task_id, 1, "completed", body)


async def test_an_open_run_is_seen_while_it_goes_on(
    services: TaskServices, redis: Redis
) -> None:
    """And what its answer comes from so far, of its last run alone."""
    run = await begin(services)
    await note(
        redis,
        run,
        {"kind": "step", "name": "lost", "text": "1", "run": 1},
        {"kind": "step", "name": "kept", "text": "2", "run": 2},
        {"kind": "memory", "text": "x", "run": 2, "facts": {"items": ["food likes"]}},
        {
            "kind": "person",
            "name": "",
            "text": "1",
            "run": 2,
            "facts": {"door": "time"},
        },
        {"kind": "answer", "name": "m", "text": "a\nb", "run": 2},
    )
    found = await show_messages(services, AUTHOR, TASK)
    assert (found.agent_id, found.status) == ("EchoAgent", "running")
    assert len(found.messages) == 5
    assert [(one.kind, one.name, one.message) for one in found.sources] == [
        ("step", "kept", 2),
        ("item", "food likes", 3),
        ("person", "nobody, by time", 4),
        ("model", "m", 5),
    ]
    assert found.sources[-1].said == "a b"


@pytest.mark.parametrize(
    ("outcome", "kind"), [("hit", "cache"), ("joined", "cache"), ("near", "near")]
)
async def test_an_answer_from_memory_names_its_entry(
    services: TaskServices, outcome: Any, kind: str
) -> None:
    """Where no model was asked there are no messages, and that is said."""
    run = await begin(services)
    await end(services, run, MemoryNote(outcome=outcome, key="echo:hi", age_ms=2000))
    found = await show_messages(services, AUTHOR, TASK)
    assert found.messages == ()
    assert [(one.kind, one.name) for one in found.sources] == [(kind, "echo:hi")]


async def test_where_nothing_is_kept_the_cure_is_named(services: TaskServices) -> None:
    """And an unknown task is one."""
    await end(services, await begin(services), MemoryNote(outcome="off"))
    with pytest.raises(Refused, match="TASKLORE_RUN_MESSAGES_HOURS=24"):
        await show_messages(services, AUTHOR, TASK)
    with pytest.raises(Refused, match="there is no task"):
        await show_messages(services, AUTHOR, "0199-unknown")


@pytest.mark.parametrize(
    "role", [one for one in ROLES if one not in ("messages", "admin")]
)
async def test_no_other_role_sees_messages(services: TaskServices, role: Any) -> None:
    caller = Caller(name="other", roles=frozenset({role}))
    with pytest.raises(NotPermitted, match="'messages'"):
        await show_messages(services, caller, TASK)
