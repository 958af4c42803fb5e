"""Tenants and priorities of one busy agent: who has to wait for whom, and that nothing is lost or doubled."""

import asyncio
import itertools
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from contracts.messages import TaskAssignment, TaskCall
from contracts.task_messages import Priority
from memory.ledger.ledger import Ledger
from runtime.messaging.connection import connected
from runtime.messaging.link import Link
from runtime.messaging.outbox import open_outbox
from runtime.servers import valkey
from supervisor.admission.gate import Gate
from supervisor.admission.room import Room
from supervisor.dispatch import Dispatch
from tests.acceptance.house import AGENTS, House

AGENT = str(AGENTS / "turns.py")
SLOTS = 32
#: Assignments under way at once.
_AT_ONCE = 200


@dataclass
class Sender:
    """A sender beside the supervisors, which sends through a gate as they do; `at` is when each label was stored."""

    dispatch: Dispatch
    numbers: "itertools.count[int]" = field(default_factory=itertools.count)
    at: dict[str, float] = field(default_factory=dict)

    async def send(self, tenant: str, number: int, *, ms: int = 50, priority: Priority | None = None) -> list[str]:
        """Send *number* tasks of *tenant*, in order; return their labels."""
        labels = [f"{tenant}/{next(self.numbers)}" for _ in range(number)]
        for some in (labels[begin : begin + _AT_ONCE] for begin in range(0, number, _AT_ONCE)):
            await asyncio.gather(*(self._send(label, tenant, ms, priority) for label in some))
        return labels

    async def _send(self, label: str, tenant: str, ms: int, priority: Priority | None) -> None:
        now = datetime.now(UTC)
        await self.dispatch.assign(
            TaskAssignment(
                task_id=f"t-{label.replace('/', '-')}",
                agent_id="TurnAgent",
                supervisor_id="sender",
                task=TaskCall(name="work", parameters={"label": label, "ms": ms}),
                created_at=now,
                tenant=tenant,
                priority=priority,
            )
        )
        self.at[label] = datetime.now(UTC).timestamp()


@asynccontextmanager
async def sending(house: House) -> AsyncIterator[Sender]:
    """Open a sender on the servers of *house*."""
    async with connected(house.servers.nats_url, "sender") as client:
        link = Link(client)
        gate = Gate(link, Room(client))
        await gate.listen()
        async with open_outbox(link) as outbox, valkey.connect(house.servers.redis_url, name="sender") as redis:
            yield Sender(Dispatch(outbox, Ledger(redis), gate))


def starts(house: House) -> list[tuple[str, float]]:
    """Return label and time of every run, in order."""
    path = house.folder / "runs" / "starts"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(label, float(at)) for label, at in (line.split() for line in lines)]


async def until_begun(house: House, labels: Sequence[str], within_s: float = 120) -> list[tuple[str, float]]:
    """Return every run so far once each of *labels* has begun."""
    async with asyncio.timeout(within_s):
        while missing := set(labels) - dict(found := starts(house)).keys():
            await asyncio.sleep(0.05 if len(missing) < 100 else 0.2)
    return found


@pytest.fixture
async def house(own_house: House) -> House:
    """Return a house with a supervisor and one worker."""
    supervisor, worker = own_house.supervisor(), own_house.worker(AGENT, slots=SLOTS)
    await asyncio.to_thread(supervisor.ready)
    await asyncio.to_thread(worker.ready)
    return own_house


async def test_ten_tasks_behind_ten_thousand_of_another_tenant_wait_for_one_turn(house: House) -> None:
    async with sending(house) as sender:
        sent = await sender.send("big", 10_000)
        await until_begun(house, sent[:100])
        small = await sender.send("small", 10)
        begun = dict(await until_begun(house, small))
    waited = sorted(begun[label] - sender.at[label] for label in small)
    print(f"small waited {waited[len(waited) // 2]:.3f} s, at most {waited[-1]:.3f} s")  # noqa: T201 - figures
