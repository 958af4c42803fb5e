"""Tenants and priorities of one busy agent: who has to wait for whom, and that nothing is lost or doubled."""

import asyncio
import itertools
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from tasklore.contracts.admission.limits import Limit, Limits, Shares
from tasklore.contracts.messages import TaskAssignment, TaskCall
from tasklore.contracts.task_messages import Priority
from tasklore.memory.budgets.store import Budgets
from tasklore.memory.ledger.ledger import Ledger
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.jetstream import ask_jetstream
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import open_outbox
from tasklore.runtime.servers import valkey
from tasklore.supervisor.admission.gate import open_gate
from tasklore.supervisor.admission.room import Room
from tasklore.supervisor.dispatch import Dispatch
from tests.acceptance.external_program import outside
from tests.acceptance.system import AGENTS, Served, System

AGENT = str(AGENTS / "turns.py")
SLOTS = 32
#: A schedule that ticks every two seconds.
TICKS = ("-p", "label=tick", "-p", "ms=5", "--every", "2s", "--id", "ticks")
PRIORITIES: tuple[Priority, ...] = ("interactive", "normal", "batch")
#: Assignments under way at once.
_AT_ONCE = 200


@dataclass
class Sender:
    """A sender beside the supervisors, which sends through a gate as they do; `at` is when each label was stored."""

    dispatch: Dispatch
    numbers: "itertools.count[int]" = field(default_factory=itertools.count)
    at: dict[str, float] = field(default_factory=dict)

    async def send(
        self,
        tenant: str,
        number: int,
        *,
        ms: int = 50,
        priority: Priority | None = None,
        name: str = "",
        task: str = "work",
    ) -> list[str]:
        """Send *number* tasks of *tenant*, in order; return their labels, which begin with tenant and *name*."""
        labels = [f"{tenant}/{name}{next(self.numbers)}" for _ in range(number)]
        for some in (
            labels[begin : begin + _AT_ONCE] for begin in range(0, number, _AT_ONCE)
        ):
            await asyncio.gather(
                *(self._send(label, tenant, ms, priority, task) for label in some)
            )
        return labels

    async def _send(
        self, label: str, tenant: str, ms: int, priority: Priority | None, task: str
    ) -> None:
        now = datetime.now(UTC)
        await self.dispatch.assign(
            TaskAssignment(
                task_id=task_id_of(label),
                agent_id="TurnAgent",
                supervisor_id="sender",
                task=TaskCall(name=task, parameters={"label": label, "ms": ms}),
                created_at=now,
                tenant=tenant,
                priority=priority,
            )
        )
        self.at[label] = datetime.now(UTC).timestamp()


@asynccontextmanager
async def sending(system: System) -> AsyncIterator[Sender]:
    """Open a sender on the servers of *system*."""
    async with connected(system.servers.nats_url, "sender") as client:
        link = Link(client)
        async with (
            open_outbox(link) as outbox,
            valkey.connect(system.servers.redis_url, name="sender") as redis,
        ):
            gate = await open_gate(link, Room(client, Budgets(redis)))
            yield Sender(Dispatch(outbox, Ledger(redis), gate))


def starts(system: System) -> list[tuple[str, float]]:
    """Return label and time of every run, in order."""
    path = system.folder / "runs" / "starts"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(label, float(at)) for label, at in (line.split() for line in lines)]


async def until_begun(
    system: System, labels: Sequence[str], within_s: float = 120
) -> list[tuple[str, float]]:
    """Return every run so far once each of *labels* has begun."""
    async with asyncio.timeout(within_s):
        while missing := set(labels) - dict(found := starts(system)).keys():  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05 if len(missing) < 100 else 0.2)
    return found


async def set_limits(system: System, limits: Limits) -> None:
    """Let *limits* hold, and wait until the supervisors know."""
    async with valkey.connect(system.servers.redis_url, name="sender") as redis:
        await Budgets(redis).change(limits, "test")
    await asyncio.sleep(1.5)


async def kill_again_and_again(
    system: System, processes: list[Served], chance: random.Random
) -> None:
    """Kill one of *processes* that serves every two seconds, and start another in its place."""
    starting: dict[int, asyncio.Task[Served]] = {}
    while True:
        await asyncio.sleep(2)
        serving = [
            place
            for place in range(len(processes))
            if place not in starting or starting[place].done()
        ]
        if not serving:
            continue
        place = chance.choice(serving)
        processes[place].kill()
        with (system.folder / "runs" / "killed").open("a") as killed:
            killed.write(f"{place}\n")
        processes[place] = (
            system.supervisor() if place < 2 else system.worker(AGENT, slots=8)
        )
        starting[place] = asyncio.create_task(asyncio.to_thread(processes[place].ready))


async def reports_of(system: System, labels: Sequence[str]) -> dict[str, str]:
    """Return how each of *labels* ended, by the ledger, once all have."""
    ended: dict[str, str] = {}
    async with (
        asyncio.timeout(300),
        valkey.connect(system.servers.redis_url, name="sender") as redis,
    ):
        ledger = Ledger(redis)
        while missing := [label for label in labels if label not in ended]:
            for label in missing:
                entry = await ledger.read(task_id_of(label))
                if (
                    entry is not None
                    and (report := entry.generations[1].report) is not None
                ):
                    ended[label] = entry.generations[1].state
                    if ended[label] != "completed":
                        sys.stdout.write(f"{label}: {report.decode()}\n")
            await asyncio.sleep(0.5)
    return ended


def out_of_order(system: System) -> int:
    """Return how many places a task began behind a later one of its tenant and priority, at most."""
    begun: dict[str, list[int]] = defaultdict(list)
    for label in dict.fromkeys(
        label for label, _ in starts(system) if label.endswith(tuple("0123456789"))
    ):
        whose = label.rstrip("0123456789")
        begun[whose].append(int(label[len(whose) :]))
    worst = 0
    for numbers in begun.values():
        places = {number: place for place, number in enumerate(sorted(numbers))}
        worst = max(
            worst, *(place - places[number] for place, number in enumerate(numbers))
        )
    return worst


def task_id_of(label: str) -> str:
    """Return the id of the task of *label*."""
    return f"t-{label.replace('/', '-')}"


@pytest.fixture(params=[800, pytest.param(10_000, marks=pytest.mark.long)])
def backlog(request: pytest.FixtureRequest) -> int:
    """Return how many tasks of another tenant lie before."""
    return int(request.param)


@pytest.fixture
async def system(own_system: System) -> System:
    """Return a system with a supervisor, and no worker yet."""
    await asyncio.to_thread(own_system.supervisor().ready)
    return own_system


async def start_worker(system: System) -> None:
    """Start the one worker of *system*."""
    await asyncio.to_thread(system.worker(AGENT, slots=SLOTS).ready)


async def test_a_few_tasks_behind_thousands_of_another_tenant_wait_for_one_turn(
    system: System, backlog: int
) -> None:
    """No more than three turnovers of the slots begin before all of them have."""
    await start_worker(system)
    async with sending(system) as sender:
        sent = await sender.send("big", backlog)
        await until_begun(system, sent[:100])
        small = await sender.send("small", 10)
        found = await until_begun(system, small)
    begun = dict(found)
    waited = sorted(begun[label] - sender.at[label] for label in small)
    between = [
        label
        for label, at in found
        if sender.at[small[0]] < at < max(begun[label] for label in small)
    ]
    sys.stdout.write(
        f"10 behind {backlog}: waited {waited[5]:.3f} s, at most {waited[-1]:.3f} s; {len(between)} before them\n"
    )
    assert len(between) <= 3 * SLOTS


@pytest.mark.parametrize("backlog", [550, pytest.param(3_400, marks=pytest.mark.long)])
async def test_weights_are_kept_and_interactive_tasks_go_first(
    system: System, backlog: int
) -> None:
    """Turns are within 5 % of 1:2:4; interactive tasks begin within few turnovers above a batch."""
    await set_limits(
        system, Limits(shares=Shares(weights={"one": 1, "two": 2, "four": 4}))
    )
    async with sending(system) as sender:
        await sender.send("first", 200, priority="batch")
        await asyncio.gather(
            *(
                sender.send(tenant, backlog, ms=100, priority="batch")
                for tenant in ("one", "two", "four")
            )
        )
        await start_worker(system)
        async with asyncio.timeout(60):
            while len(found := starts(system)) < 900:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.05)
        turns = Counter(
            label.split("/")[0]
            for label, _ in found[200:900]
            if not label.startswith("first")
        )
        urgent = await sender.send("one", 5, priority="interactive")
        found = await until_begun(system, urgent)
    begun = dict(found)
    between = [
        label
        for label, at in found
        if sender.at[urgent[0]] < at < max(begun[label] for label in urgent)
    ]
    sys.stdout.write(
        f"turns {dict(turns)}; {len(between)} began before the last of 5 interactive ones\n"
    )
    parts = {tenant: number / turns.total() for tenant, number in turns.items()}
    assert parts == pytest.approx({"one": 1 / 7, "two": 2 / 7, "four": 4 / 7}, rel=0.05)
    assert len(between) <= 3 * SLOTS


async def test_tenants_take_turns_at_an_agent_that_runs_few_tasks_at_once(
    system: System,
) -> None:
    """A few tasks of one do not wait behind the hundreds of another that no place is left for."""
    await set_limits(
        system, Limits(limits=(Limit(name="few", agent="TurnAgent", at_most=4),))
    )
    await start_worker(system)
    async with sending(system) as sender:
        sent = await sender.send("big", 300)
        await until_begun(system, sent[:8])
        small = await sender.send("small", 5)
        found = await until_begun(system, small)
    between = [
        label
        for label, at in found
        if at > sender.at[small[0]] and not label.startswith("small")
    ]
    sys.stdout.write(f"{len(between)} of 300 began before the last of 5\n")
    assert len(between) <= 40


async def test_a_program_that_sends_more_than_workers_do_shuts_nobody_out(
    system: System,
) -> None:
    """It publishes to `tasks.>` itself, which no desk sees: TASKS is never short while it goes on."""
    await asyncio.to_thread(system.worker(AGENT, slots=2).ready)
    async with outside(system.servers.nats_url) as program, sending(system) as sender:

        async def flow() -> None:
            for number in itertools.count():
                await program.assign(
                    "TurnAgent", "work", {"label": f"outside/{number}", "ms": 50}
                )
                await asyncio.sleep(0 if number < 100 else 1 / 60)

        flowing = asyncio.create_task(flow())
        await until_begun(system, ["outside/20"])
        small = await sender.send("small", 10)
        begun = dict(await until_begun(system, small))
        assert not flowing.done()
        flowing.cancel()
        await asyncio.gather(flowing, return_exceptions=True)
    waited_s = max(begun[label] - sender.at[label] for label in small)
    sys.stdout.write(
        f"10 waited {waited_s:.1f} s at most behind a program that sends half as many again\n"
    )


async def test_a_batch_task_gets_a_turn_although_interactive_ones_never_end(
    system: System,
) -> None:
    await set_limits(system, Limits(shares=Shares(longest_wait_s={"batch": 2})))
    async with sending(system) as sender:
        await start_worker(system)
        await sender.send("busy", 400, priority="interactive")
        [patient] = await sender.send("patient", 1, priority="batch")
        busy = await sender.send("busy", 1_500, priority="interactive")
        begun = dict(await until_begun(system, [patient]))
        assert busy[-1] not in begun, "it waited for all others"
        waited_s = begun[patient] - sender.at[patient]
        sys.stdout.write(
            f"waited {waited_s:.2f} s of at most 2; {len(begun)} had begun by then\n"
        )


async def test_a_stream_made_anew_and_messages_of_no_task_hold_nothing_up(
    own_system: System,
) -> None:
    """What is no task of an agent stays where it lies; after a loss of the stream turns go on."""
    supervisor = own_system.supervisor()
    await asyncio.to_thread(supervisor.ready)
    async with connected(own_system.servers.nats_url, "sender") as client:
        for subject in (
            "waiting.~filler.x",
            "waiting.Turn!.normal.YQ.work",
            "waiting.TurnAgent.odd.YQ.work",
        ):
            await client.jetstream().publish(subject, b"{}")
        odd = await ask_jetstream(client, "STREAM.INFO.WAITING")
        await asyncio.to_thread(supervisor.await_log, "streams_first_seen")
        await ask_jetstream(client, "STREAM.DELETE.WAITING")
        await asyncio.to_thread(supervisor.await_log, "stream_lost")
        await client.jetstream().publish("waiting.Turn!.normal.YQ.work", b"{}")
        async with sending(own_system) as sender:
            # With no worker, the first ones lie in TASKS.
            labels = await sender.send("late", 200, ms=5)
            worker = own_system.worker(AGENT, slots=SLOTS)
            await asyncio.to_thread(worker.ready)
            await until_begun(own_system, labels)
        kept = await ask_jetstream(client, "STREAM.INFO.WAITING")
    assert (odd["state"]["messages"], kept["state"]["messages"]) == (3, 1)


@pytest.mark.long
async def test_a_hundred_tenants_have_equal_parts_of_a_minute(system: System) -> None:
    tenants = [f"tenant{number}" for number in range(100)]
    await start_worker(system)
    async with sending(system) as sender:
        for _ in range(4):
            # So that none has all of its tasks before another has any.
            await asyncio.gather(*(sender.send(tenant, 100) for tenant in tenants))
        begun_at = time.time()
        await asyncio.sleep(60)
        found = [
            label for label, at in starts(system) if begun_at <= at < begun_at + 60
        ]
    turns = Counter(label.split("/")[0] for label in found)
    jain = turns.total() ** 2 / (
        len(tenants) * sum(number**2 for number in turns.values())
    )
    sys.stdout.write(
        f"{turns.total()} turns, {min(turns.values())} to {max(turns.values())} each: Jain {jain:.4f}\n"
    )
    assert jain >= 0.98


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 6))]
)
async def test_killed_supervisors_and_workers_lose_and_double_nothing(
    own_system: System, seed: int
) -> None:
    """Tasks of many tenants and priorities, some that wait for a time, and a schedule."""
    number = 3_000 if seed else 400
    chance = random.Random(seed)
    system = own_system
    processes = [
        *(system.supervisor() for _ in range(2)),
        *(system.worker(AGENT, slots=8) for _ in range(3)),
    ]
    for process in processes:
        await asyncio.to_thread(process.ready)
    storm = asyncio.create_task(kill_again_and_again(system, processes, chance))
    async with sending(system) as sender:
        labels = []
        assert (
            system.command(
                "schedules", "add", "TurnAgent", "work", *TICKS, "--yes"
            ).returncode
            == 0
        )
        for _ in range(number // 20):
            tenant = f"t{chance.randrange(8)}"
            priority = chance.choice(PRIORITIES)
            labels += await sender.send(
                tenant, 19, ms=chance.choice((20, 50)), priority=priority, name=priority
            )
            labels += await sender.send(tenant, 1, name="pause", task="pause")
        ended = await reports_of(system, labels)
        assert not storm.done(), storm.exception()
        storm.cancel()
        await asyncio.gather(storm, return_exceptions=True)
    runs = Counter(label for label, _ in starts(system))
    ticks = runs.pop("tick")
    killed = (system.folder / "runs" / "killed").read_text().split()
    sys.stdout.write(
        f"{ticks} ticks, {len(killed)} kills, {sum(runs.values()) - len(runs)} runs again, "
        f"{out_of_order(system)} places out of order\n"
    )
    assert Counter(ended.values()) == {"completed": len(labels)}
    assert sum(runs.values()) - len(labels) <= 8 * len(killed), (
        "more ran again than had been at work"
    )
