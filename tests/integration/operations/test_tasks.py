"""The operations of tasks, called as a program of this process calls them."""

import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import NotPermitted
from tasklore.contracts.identifiers import user_token
from tasklore.contracts.messages import TaskAssignment
from tasklore.memory.ledger.task_index import TaskIndex
from tasklore.memory.ledger.task_list import OpenTaskCounts, TaskList
from tasklore.memory.ledger.task_rows import TaskRow
from tasklore.memory.ledger.waits import Waits
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import open_outbox
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.approvals.answers import Answers
from tasklore.supervisor.operations.refusals import Refused
from tasklore.supervisor.operations.sent_tasks import Sent, TaskServices
from tasklore.supervisor.operations.table import Unfinished
from tasklore.supervisor.operations.tasks import (
    Send,
    Signal,
    TaskQuery,
    cancel,
    count_tasks,
    list_tasks,
    send,
    show_task,
    signal_task,
    trace_task,
)
from tests.integration.http_stand import Stand, http_stand
from tests.servers import PATIENCE_S

SHOP = Caller(name="shop", roles=frozenset({"ask"}))
ANA = Caller(name="ana-key", roles=frozenset({"ask"}), user="ana")
BEN = Caller(name="ben-key", roles=frozenset({"ask"}), user="ben")
ACME = Caller(name="acme-key", roles=frozenset({"ask"}), tenant="acme")
OPERATOR = Caller(name="ops", roles=frozenset({"ask", "operate"}))


@pytest.fixture
async def stand(servers: EmbeddedServers, redis: Redis) -> AsyncIterator[Stand]:
    async with http_stand(servers, redis) as found:
        yield found


@pytest.fixture
def services(stand: Stand) -> TaskServices:
    return stand.parts.for_tasks


async def sent(
    services: TaskServices, caller: Caller, key: str | None = None, **said: Any
) -> Sent:
    """Send a task that nobody does, and return it as it waits."""
    new = Send.model_validate(
        {
            "agent_id": "EchoAgent",
            "task": "echo",
            "parameters": {"word": "hi"},
            "wait_seconds": 0,
            **said,
        }
    )
    found = await send(services, caller, new, idempotency_key=key)
    assert isinstance(found, Unfinished)
    assert found.location == f"/v1/tasks/{found.view.task_id}"
    return found.view


async def assignment_of(services: TaskServices, task_id: str) -> TaskAssignment:
    entry = await services.ledger.read(await services.ledger.name(task_id))
    assert entry is not None
    return TaskAssignment.model_validate_json(
        entry.generations[entry.newest].assignment or b""
    )


async def test_a_task_goes_with_its_caller_whole(services: TaskServices) -> None:
    """Its user and its tenant are those of the key; another one is refused before anything is kept."""
    one = await assignment_of(services, (await sent(services, ANA)).task_id)
    assert (one.user_id, one.caller) == ("ana", ANA)
    other = await assignment_of(services, (await sent(services, ACME)).task_id)
    assert (other.tenant, other.caller) == ("acme", ACME)
    with pytest.raises(NotPermitted, match="another user"):
        await sent(services, ANA, user="ben")
    with pytest.raises(NotPermitted, match="tenant"):
        await sent(services, ACME, tenant="other")
    with pytest.raises(NotPermitted, match="'ask'"):
        await sent(services, replace_roles(SHOP, "read"))


async def test_one_id_is_one_task(services: TaskServices) -> None:
    """The same again is the same, another body under it is refused, and two users have one each."""
    first = await sent(services, ANA, "once")
    assert await sent(services, ANA, "once") == first
    assert (await sent(services, BEN, "once")).task_id != first.task_id
    with pytest.raises(Refused, match="another body"):
        await sent(services, ANA, "once", parameters={"word": "ho"})


@pytest.mark.parametrize(
    "spelled", [{"within_seconds": "2h"}, {"within_seconds": 7200}]
)
async def test_spans_and_numbers_are_read_as_they_are_typed(
    services: TaskServices, spelled: dict[str, Any]
) -> None:
    """A command sends words alone."""
    typed = {"max_attempts": "2", "wait_seconds": "0", **spelled}
    one = await assignment_of(services, (await sent(services, SHOP, **typed)).task_id)
    assert one.deadline is not None
    assert (one.deadline - one.created_at).total_seconds() == 7200
    for wrong in ({"max_attempts": "two"}, {"wait_seconds": "soon"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            await sent(services, SHOP, **wrong)


async def test_a_key_of_one_user_reaches_no_task_of_another(
    services: TaskServices,
) -> None:
    """By no operation, and it is not said that there is one."""
    task_id = (await sent(services, ANA)).task_id
    assert (await show_task(services, ANA, task_id)).state == "accepted"
    assert (await show_task(services, SHOP, task_id)).state == "accepted"
    for operation in (show_task, trace_task, cancel):
        with pytest.raises(Refused, match="there is no task"):
            await operation(services, BEN, task_id)
    with pytest.raises(Refused, match="there is no task"):
        await signal_task(services, BEN, task_id, "paid", Signal(value=True))
    assert not (await list_tasks(services, BEN, TaskQuery())).tasks
    assert (await trace_task(services, ANA, task_id)).root.task_id == task_id


async def test_a_cancelled_task_says_why(services: TaskServices) -> None:
    """In the words of who cancelled it, else by the name of their key."""
    for reason, told in (("asked twice", "asked twice"), ("", "cancelled by shop")):
        task_id = (await sent(services, SHOP)).task_id
        found = await cancel(services, SHOP, task_id, reason=reason)
        assert found.outcome == "cancelled"
        report = (await show_task(services, SHOP, task_id)).report
        assert report is not None
        assert report.error is not None
        assert report.error.message == told
        again = await cancel(services, SHOP, task_id)
        assert (again.outcome, again.status) == ("cancelled", "cancelled")


async def test_a_task_is_cancelled_ahead_by_who_operates(
    services: TaskServices,
) -> None:
    """It never starts when it comes; a key for one user cancels nothing that is not known to be theirs."""
    with pytest.raises(Refused, match="there is no task"):
        await cancel(services, OPERATOR, "to-come")
    with pytest.raises(NotPermitted, match="'operate'"):
        await cancel(services, SHOP, "to-come", ahead=True)
    for user in ("ana", None):
        bound = OPERATOR.model_copy(update={"user": user})
        if user is not None:
            with pytest.raises(Refused, match="there is no task"):
                await cancel(services, bound, "to-come", ahead=True)
            continue
        found = await cancel(services, bound, "to-come", ahead=True)
        assert (found.outcome, found.status) == ("noted", None)


async def test_tasks_are_counted_for_whoever_may_see_them(
    services: TaskServices, redis: Redis
) -> None:
    """Open ones by state and by what they wait for, and failures of the last hour; a bound key counts its own."""
    await sent(services, ANA)
    await sent(services, BEN, after="2h")
    now_ms = time.time_ns() // 1_000_000
    old = {"task": "echo", "state": "failed", "created_ms": now_ms - 2_000_000}
    ana = user_token("ana")
    await TaskIndex(redis, deadline_s=PATIENCE_S).write(
        [
            TaskRow("f1", "EchoAgent", ended_ms=now_ms - 4_000_000, user=ana, **old),
            TaskRow("f2", "EchoAgent", ended_ms=now_ms, user=ana, **old),
            TaskRow("f3", "EchoAgent", ended_ms=now_ms, tenant="acme", **old),
        ]
    )
    everybody = await count_tasks(services, SHOP)
    assert (everybody.open, everybody.states) == (2, {"accepted": 2})
    assert everybody.failed == 2
    assert {one.task_id for one in everybody.failures} == {"f2", "f3"}
    waits = {(one.kind, one.tasks) for one in everybody.waits}
    assert waits == {("time", 1), ("turn", 1)}
    assert everybody.oldest_ms == pytest.approx(now_ms, abs=60_000)
    for caller, opened, failed in ((ANA, 1, 1), (BEN, 1, 0), (ACME, 0, 1)):
        own = await count_tasks(services, caller)
        assert (own.open, own.failed) == (opened, failed), caller.name
    listed = await list_tasks(services, SHOP, TaskQuery(open=True))
    assert len(listed.tasks) == 2
    ended = await list_tasks(services, SHOP, TaskQuery(ended_after="1h"))
    assert {one.task_id for one in ended.tasks} == {"f2", "f3"}


async def test_a_count_of_failures_says_when_not_all_tasks_were_read(
    services: TaskServices, redis: Redis
) -> None:
    """However few failed among those that were read, there may be more behind them."""
    now_ms = time.time_ns() // 1_000_000
    ended = {"task": "echo", "ended_ms": now_ms}
    rows = [
        TaskRow(
            f"d{number}",
            "EchoAgent",
            created_ms=now_ms - 1_000 - number,
            state="completed" if 0 < number < 3_900 else "failed",
            **ended,
        )
        for number in range(4_000)
    ]
    index = TaskIndex(redis, deadline_s=PATIENCE_S)
    for first in range(0, len(rows), 500):
        await index.write(rows[first : first + 500])
    found = await count_tasks(services, SHOP)
    assert found.failed < 101
    assert found.is_cut


@pytest.mark.parametrize("protocol", [2, 3])
async def test_open_tasks_are_counted_over_both_protocols(
    services: TaskServices, servers: EmbeddedServers, protocol: int
) -> None:
    """The server answers each in another shape."""
    assert await TaskList(services.redis).count_open() == OpenTaskCounts(0, None)
    began_ms = time.time_ns() // 1_000_000
    await sent(services, ANA)
    await sent(services, BEN)
    client = Redis.from_url(servers.redis_url, protocol=protocol)
    try:
        found = await TaskList(client, deadline_s=PATIENCE_S).count_open()
    finally:
        await client.aclose()
    assert found.number == 2
    assert found.oldest_ms == pytest.approx(began_ms, abs=60_000)


async def test_an_unknown_trace_names_its_task(services: TaskServices) -> None:
    """A person mistypes an id."""
    with pytest.raises(Refused, match="'no-such'"):
        await trace_task(services, SHOP, "no-such")


async def test_a_signal_is_kept_once_with_who_sent_it(
    stand: Stand, redis: Redis
) -> None:
    """For a task that the sender may see."""
    async with open_outbox(Link(stand.parts.client)) as outbox:
        waits = Waits(redis, deadline_s=PATIENCE_S)
        answers = Answers(waits, outbox, stand.parts.schemas)
        services = replace(stand.parts.for_tasks, answers=answers)
        task_id = (await sent(services, ANA)).task_id
        paid = Signal(value={"sum": 5})
        heard = await signal_task(services, ANA, task_id, "paid", paid)
        assert (heard.value, heard.by, heard.door) == ({"sum": 5}, "user:ana", "http")
        with pytest.raises(Refused) as refused:
            await signal_task(services, ANA, task_id, "paid", Signal(value=1))
    assert refused.value.problem.status == 409


def replace_roles(caller: Caller, *roles: str) -> Caller:
    return caller.model_copy(update={"roles": frozenset(roles)})
