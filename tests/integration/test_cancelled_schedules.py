"""A cancelled task that waits: another run at once where it may keep places, else nothing is left of its schedule."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest
from nats.aio.client import Client

from tasklore.contracts import subjects
from tasklore.contracts.admission.waits import RunWait, WaitReason
from tasklore.contracts.identifiers import TaskName
from tasklore.contracts.messages import TaskAssignment, TaskCall
from tasklore.memory.budgets.waiting_tasks import WaitingTasks
from tasklore.memory.ledger.ledger import Ledger
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.jetstream import ask_jetstream
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import open_outbox
from tasklore.runtime.messaging.streams import StreamSizes, declare_streams
from tasklore.runtime.servers import valkey
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.cancellation import Canceller
from tests.servers import PATIENCE_S

AGENT = "HouseAgent"
#: Waits of a task that may keep places others wait for, by what it waits for and the model if any.
KEEPING = [("bound", ""), ("limit", "")]
OTHERS = [
    *((kind, "") for kind in get_args(WaitReason) if kind not in ("bound", "limit")),
    ("limit", "m-1"),
]


def an_assignment(task_id: str) -> bytes:
    """Return a task that is for `AGENT`."""
    assignment = TaskAssignment(
        task_id=task_id,
        agent_id=AGENT,
        supervisor_id="S",
        task=TaskCall(name="look"),
        created_at=datetime.now(UTC),
    )
    return assignment.model_dump_json().encode()


async def state_of(client: Client, stream: str) -> dict[str, Any]:
    """Return what the server says of *stream*."""
    return dict((await ask_jetstream(client, f"STREAM.INFO.{stream}"))["state"])


@pytest.mark.parametrize(
    ("waits", "runs"),
    [(KEEPING, len(KEEPING)), (OTHERS, 0)],
    ids=["may-keep-places", "keeps-none"],
)
async def test_only_a_task_that_may_keep_places_is_woken_by_its_cancellation(
    waits: list[tuple[WaitReason, str]], runs: int, own_servers: EmbeddedServers
) -> None:
    """A thousand that wait for a person would else be a backlog that starts workers of an agent that has none."""
    async with (
        connected(own_servers.nats_url, "cancelling") as client,
        valkey.connect(own_servers.redis_url) as redis,
    ):
        await declare_streams(client, StreamSizes())
        ledger = Ledger(redis)
        async with open_outbox(Link(client)) as outbox:
            canceller = Canceller(
                client, outbox, ledger, "S-2", waiting=WaitingTasks(redis)
            )
            now = datetime.now(UTC)
            later = now + timedelta(hours=1)
            for number, (kind, model) in enumerate(waits):
                task = TaskName(AGENT, f"waits-{number}")
                body = an_assignment(task)
                wait = RunWait(
                    kind=kind, name="n", model=model, text="it", since=now, until=later
                )
                await ledger.accept(task, 1, body)
                await ledger.note_wait(task, 1, wait)
                await outbox.put(
                    subjects.schedule(task, 1),
                    body,
                    f"{task}:due",
                    headers=subjects.schedule_headers(
                        later, subjects.due(AGENT, "look")
                    ),
                )
            for number in range(len(waits)):
                said = await canceller.cancel(f"waits-{number}", "changed my mind")
                assert said.outcome == "cancelled"

            async def is_settled() -> bool:
                left = (await state_of(client, subjects.LATER))["messages"]
                due = (await state_of(client, subjects.TASKS))["messages"]
                # A schedule that was due leaves a copy in LATER.
                return (left, due) == (runs, runs)

            async with asyncio.timeout(PATIENCE_S):
                while not await is_settled():  # noqa: ASYNC110 - a server is asked
                    await asyncio.sleep(0.05)
