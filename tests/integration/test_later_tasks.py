"""A task that begins later waits in LATER, holds nothing, and can be cancelled until then."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from nats.aio.client import Client
from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.contracts.admission.waits import RunWait
from tasklore.contracts.identifiers import new_id
from tasklore.contracts.messages import CompletionReport, TaskAssignment, TaskCall
from tasklore.memory.budgets.overview import read_accounts
from tasklore.memory.budgets.store import Budgets
from tasklore.memory.budgets.waiting_tasks import WaitingTasks
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.open_tasks import OpenTasks
from tasklore.memory.ledger.runs import NotDue, RunPermission
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.jetstream import ask_jetstream
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import open_outbox
from tasklore.runtime.messaging.streams import StreamSizes, declare_streams
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.cancellation import Canceller
from tasklore.supervisor.dispatch import Dispatch
from tasklore.supervisor.stream_recovery import letter_of
from tests.http_client import ask
from tests.integration.http_stand import CARD, http_stand
from tests.integration.test_waiting_tasks import asks, declare
from tests.servers import PATIENCE_S

#: As closely as times are told.
SPELLED = timedelta(milliseconds=1)


@dataclass
class Fixture:
    client: Client
    dispatch: Dispatch
    canceller: Canceller
    ledger: Ledger
    redis: Redis

    async def count(self, stream: str, subject: str) -> int:
        found = await ask_jetstream(
            self.client, f"STREAM.INFO.{stream}", {"subjects_filter": subject}
        )
        return sum((found["state"].get("subjects") or {}).values())


@pytest.fixture
async def later(servers: EmbeddedServers, redis: Redis) -> AsyncIterator[Fixture]:
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(connected(servers.nats_url, "later"))
        await declare_streams(client, StreamSizes())
        outbox = await stack.enter_async_context(open_outbox(Link(client)))
        ledger = Ledger(redis, deadline_s=PATIENCE_S)
        yield Fixture(
            client,
            Dispatch(outbox, ledger),
            Canceller(client, outbox, ledger, "later", waiting=WaitingTasks(redis)),
            ledger,
            redis,
        )


def a_task(in_s: float) -> TaskAssignment:
    now = datetime.now(UTC)
    return TaskAssignment(
        task_id=new_id(int(now.timestamp() * 1000)),
        agent_id=f"Later{new_id(0)[-8:]}",
        supervisor_id="S",
        task=TaskCall(name="t"),
        created_at=now,
        not_before=now + timedelta(seconds=in_s),
    )


async def test_a_task_waits_in_later_until_it_is_due(later: Fixture) -> None:
    """It comes at its time, never before; the ledger begins no run until then."""
    far = a_task(600)
    await later.dispatch.assign(far)
    assert (
        await later.count(subjects.TASKS, subjects.tasks_of(far.agent_id)),
        await later.count(subjects.LATER, subjects.schedule(far.task_id, 1)),
    ) == (0, 1)
    begun = await later.ledger.begin(far.task_id, 1, "w", 0, 1000)
    assert isinstance(begun, NotDue)
    assert 600_000 - 1000 * PATIENCE_S < begun.wait_ms <= 600_000
    near = a_task(0.5)
    await later.dispatch.assign(near)
    due = subjects.tasks_of(near.agent_id)
    async with asyncio.timeout(PATIENCE_S):
        while not await later.count(subjects.TASKS, due):  # noqa: ASYNC110 - a server is asked
            await asyncio.sleep(0.005)
    late_s = time.time() - near.waits_from.timestamp()
    assert late_s >= -0.01
    assert isinstance(
        await later.ledger.begin(near.task_id, 1, "w", 0, 1000), RunPermission
    )


async def test_a_task_that_was_cancelled_before_it_was_due_never_comes(
    later: Fixture,
) -> None:
    """It is taken out of LATER and reported."""
    task = a_task(600)
    await later.dispatch.assign(task)
    assert (
        await later.canceller.cancel(task.task_id, "not needed")
    ).outcome == "cancelled"
    assert await later.count(subjects.LATER, subjects.schedule(task.task_id, 1)) == 0
    entry = await later.ledger.read(task.task_id)
    assert entry is not None
    assert entry.generations[1].state == "cancelled"


async def test_one_that_waited_for_a_place_is_woken_to_leave_those_it_kept(
    later: Fixture,
) -> None:
    """A worker finds its report, and gives up what others wait for."""
    task = a_task(600)
    await later.dispatch.assign(task)
    now = datetime.now(UTC)
    wait = RunWait(kind="limit", name="x", text="a place", since=now, until=now)
    await later.ledger.note_wait(task.task_id, 1, wait)
    await later.canceller.cancel(task.task_id, "not needed")
    due = subjects.tasks_of(task.agent_id)
    async with asyncio.timeout(PATIENCE_S):
        while not await later.count(subjects.TASKS, due):  # noqa: ASYNC110 - a server is asked
            await asyncio.sleep(0.005)
    begun = await later.ledger.begin(task.task_id, 1, "w", 0, 1000)
    assert isinstance(begun, bytes)
    assert CompletionReport.model_validate_json(begun).status == "cancelled"


async def test_one_that_waited_for_much_room_holds_up_nobody_behind_it(
    later: Fixture,
) -> None:
    """The next one that there is room for is woken by the next look."""
    tokens = {"name": "day", "tokens": 1000, "every": "day"}
    declared = await declare(later.redis, tokens)
    first = await asks(later.redis, "first", most=700)
    assert first is not None
    task = a_task(600)
    await later.dispatch.assign(task)
    assert await asks(later.redis, task.task_id, most=700) is None
    assert await asks(later.redis, "behind", most=10) is None
    waiting = WaitingTasks(later.redis)
    assert await waiting.wake(9) == []
    await later.canceller.cancel(task.task_id, "not needed")
    assert await waiting.wake(9) == ["behind:1"]
    accounts = await read_accounts(Budgets(later.redis), declared, datetime.now(UTC))
    assert [one.waiting for one in accounts] == [1]


async def test_a_lost_stream_is_given_back_what_is_not_due_yet(later: Fixture) -> None:
    """As a schedule with its time, not as a task that may run at once."""
    task = a_task(600)
    await later.dispatch.assign(task)
    found = [
        one
        async for batch in OpenTasks(later.redis).read()
        for one in batch
        if one.task_id == task.task_id
    ]
    letter = letter_of(found[0])
    assert letter is not None
    assert letter.subject == subjects.schedule(task.task_id, 1)
    assert letter.headers[subjects.SCHEDULE_HEADER].startswith("@at ")


async def test_the_ledger_keeps_a_task_until_it_is_due_and_a_week_longer(
    later: Fixture,
) -> None:
    """However far ahead it is due."""
    task = a_task(20 * 86_400)
    await later.dispatch.assign(task)
    assert await later.redis.pttl(f"tl:task:{{{task.task_id}}}") > 26 * 86_400_000


@pytest.mark.parametrize(
    ("when", "field", "cure"),
    [
        ({"at": "2020-01-01T00:00:00Z"}, "at", "leave it out"),
        ({"at": "2099-01-01T00:00:00"}, "at", "must have its zone"),
        ({"at": "soon"}, "at", ""),
        ({"after": -1}, "after", ""),
        ({"after": 1e300}, "after", "less than or equal"),
        ({"after": 86_400 * 40}, "at", "/v1/schedules"),
        ({"after": 1, "at": "2099-01-01T00:00:00Z"}, "after", "not both"),
    ],
)
async def test_a_time_that_cannot_be_kept_is_refused_with_its_cure(
    servers: EmbeddedServers,
    redis: Redis,
    when: dict[str, object],
    field: str,
    cure: str,
) -> None:
    """Nothing is started."""
    async with http_stand(servers, redis) as stand:
        body = {
            "agent_id": CARD.agent_id,
            "task": "echo",
            "parameters": {"word": "hi"},
            "wait_seconds": 0,
            **when,
        }
        answer = await ask(stand.url, "POST", "/v1/tasks", body)
        assert answer.status == 422
        assert [one["where"] for one in answer.body["problems"]] == [field]
        assert cure in answer.body["problems"][0]["message"]


@pytest.mark.parametrize(
    "when", [{"after": 600}, {"at": "LATER"}, {"not_before": "LATER"}]
)
async def test_a_task_over_http_that_is_due_later_is_accepted_at_once(
    servers: EmbeddedServers, redis: Redis, when: dict[str, object]
) -> None:
    """Although its sender would wait for half a minute; looking at it tells when it is due."""
    due = datetime.now(UTC) + timedelta(seconds=600)
    spelled = {
        name: due.isoformat() if value == "LATER" else value
        for name, value in when.items()
    }
    async with http_stand(servers, redis) as stand:
        body = {
            "agent_id": CARD.agent_id,
            "task": "echo",
            "parameters": {"word": "hi"},
            **spelled,
        }
        answer = await ask(stand.url, "POST", "/v1/tasks", body)
        assert (answer.status, answer.body["state"]) == (202, "accepted")
        seen = (await ask(stand.url, "GET", f"/v1/tasks/{answer.body['task_id']}")).body
        latest = datetime.now(UTC) + timedelta(seconds=600) if "after" in when else due
        found = datetime.fromisoformat(seen["due"])
        assert due - SPELLED <= found <= latest + SPELLED
