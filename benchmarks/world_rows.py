"""A world run over NATS: how long a step takes, whether every text arrives once, and whether it goes the same again.

A step is timed from the first question to the last decision applied. Workers decide by rules; no model is configured.
The second run has another number of workers, and one of them is killed in the middle.
"""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from benchmarks.processes import NotMeasuredError, Worker, running
from benchmarks.profiles import FULL, Profile
from benchmarks.table import Row, missing, percentile
from examples.coin_world.agents import Agents, OverNats
from examples.coin_world.running import Runner
from examples.coin_world.world import Choice, World, names
from tasklore.contracts.conversations import said_id
from tasklore.contracts.errors import TaskloreError
from tasklore.memory.conversations.inbox import Inbox
from tasklore.runtime.servers import valkey
from tasklore.supervisor.program_client import Asker, asking

#: Milliseconds that 95 of 100 steps may take at most.
ALLOWED_MS = 250.0
#: Agents, steps, coins and edge of the world of the full profile, and of a quick look.
LARGE = (50, 200, 600, 60)
SMALL = (8, 15, 60, 12)
SEED = 7
#: Seconds until a worker that was killed is missed; 30 in a house that nobody measures.
ACK_WAIT_S = 2
#: Seconds that a worker may take until it decides.
_STARTS_WITHIN = timedelta(seconds=60)


async def measure(nats_url: str, redis_url: str, profile: Profile) -> list[Row]:
    """Return a row for the run that is timed, and one for the second, or one that says why there is no figure."""
    shape = LARGE if profile is FULL else SMALL
    what = f"step of a world, {shape[0]} agents x {shape[1]} steps"
    environment = {
        "TASKLORE_NATS_URL": nats_url,
        "TASKLORE_REDIS_URL": redis_url,
        "TASKLORE_ACK_WAIT_S": str(ACK_WAIT_S),
    }
    try:
        async with asking(
            "bench-world", nats_url=nats_url, redis_url=redis_url
        ) as asker:
            async with _workers(1, environment) as workers:
                cpu_s = workers[0].cpu_s()
                first = await run_world(asker, redis_url, "bench-one", shape)
                cpu_s = workers[0].cpu_s() - cpu_s
            async with _workers(2, environment) as workers:
                second = await run_world(
                    asker,
                    redis_url,
                    "bench-two",
                    shape,
                    halfway=lambda: _kill(workers[1]),
                )
    except (NotMeasuredError, TaskloreError, TimeoutError) as error:
        return [missing(what, str(error))]
    return [_timed(what, first, cpu_s), _again(first, second)]


@dataclass
class Run:
    """What came of a run: milliseconds of its steps, the worlds it went through, and how its texts arrived."""

    took_ms: list[float] = field(default_factory=list)
    worlds: list[str] = field(default_factory=list)
    #: Message id of each text, and to whom it went.
    texts: dict[str, str] = field(default_factory=dict)
    late: int = 0
    decisions: int = 0
    #: Texts that arrived never, more than once, or although nobody sent them.
    lost: int = 0
    twice: int = 0
    strange: int = 0

    def note(self, world: World, world_id: str, took_ms: float) -> None:
        """Take what the last step came to."""
        self.worlds.append(world.digest())
        self.took_ms.append(took_ms)
        for number, deed in enumerate(world.deeds.values()):
            self.decisions += 1
            self.late += deed.late
            if deed.choice.to is not None and not deed.late:
                self.texts[said_id(f"{world_id}-{world.step - 1}-{number}")] = (
                    deed.choice.to
                )


async def run_world(
    asker: Asker,
    redis_url: str,
    world_id: str,
    shape: tuple[int, int, int, int],
    *,
    halfway: Callable[[], None] = lambda: None,
) -> Run:
    """Run a world of *shape* as *world_id*, do something *halfway* in a step, and look where every text arrived."""
    count, steps, coins, size = shape
    run = Run()
    agents = Agents(OverNats(asker), world_id)

    def note(world: World, _choices: Mapping[str, Choice | None]) -> None:
        run.note(world, world_id, runner.took_ms)
        if world.step == steps // 2:
            # Not between two steps, but while the next one is being decided.
            asyncio.get_running_loop().call_later(runner.took_ms / 2000, halfway)

    runner = Runner(
        World.new(SEED, names(count), size, coins),
        agents.decide,
        notes=[note],
        steps=steps,
    )
    await runner.run()
    arrived = await texts_in(
        redis_url,
        {name: agents.conversation_of(name) for name in runner.world.plan.names},
    )
    run.lost = sum(arrived[text, to] == 0 for text, to in run.texts.items())
    run.twice = sum(times > 1 for times in arrived.values())
    run.strange = sum(run.texts.get(text) != to for text, to in arrived)
    return run


async def texts_in(
    redis_url: str, conversations: Mapping[str, str]
) -> Counter[tuple[str, str]]:
    """Return how often each text stands in the conversation of its receiver, by message id and name."""
    found: Counter[tuple[str, str]] = Counter()
    async with valkey.connect(redis_url, name="bench-world") as redis:
        inbox = Inbox(redis)
        for name, conversation in conversations.items():
            # What still waits comes in as well.
            await inbox.take(conversation, "counting")
            before: int | None = None
            while True:
                page = await inbox.page(conversation, before, 1_000)
                found.update(
                    (one.message_id, name)
                    for one in page.messages
                    if one.speaker != name
                )
                if (before := page.before) is None:
                    break
    return found


@contextlib.asynccontextmanager
async def _workers(
    count: int, environment: Mapping[str, str]
) -> AsyncIterator[list[Worker]]:
    """Run *count* workers, all of them ready."""
    command = [
        sys.executable,
        "-m",
        "tasklore",
        "worker",
        "tasklore.workers.agents.decision",
    ]
    async with contextlib.AsyncExitStack() as stack:
        workers = [
            await stack.enter_async_context(running(command, environment))
            for _ in range(count)
        ]
        gives_up_at = time.monotonic() + _STARTS_WITHIN.total_seconds()
        for worker in workers:
            while b"ready http=" not in await asyncio.to_thread(worker.log.read_bytes):
                worker.ensure_running()
                if time.monotonic() > gives_up_at:
                    raise NotMeasuredError("a worker does not get ready")
                await asyncio.sleep(0.05)
        yield workers


def _kill(worker: Worker) -> None:
    os.kill(worker.process.pid, signal.SIGKILL)


def _timed(what: str, run: Run, cpu_s: float) -> Row:
    return Row(
        what,
        tasks_per_s=run.decisions / (sum(run.took_ms) / 1000),
        cpu_us=cpu_s / run.decisions * 1e6,
        p50_ms=percentile(run.took_ms, 0.5),
        p99_ms=percentile(run.took_ms, 0.99),
        seconds=sum(run.took_ms) / 1000,
        compared=f"p95 {percentile(run.took_ms, 0.95):.0f} ms, allowed {ALLOWED_MS:g} ms",
        how=f"one worker, by rules; {_delivery(run)}",
    )


def _again(first: Run, second: Run) -> Row:
    same = sum(
        one == other for one, other in zip(first.worlds, second.worlds, strict=True)
    )
    return Row(
        "the same seed again, two workers, one killed",
        p50_ms=percentile(second.took_ms, 0.5),
        p99_ms=percentile(second.took_ms, 0.99),
        seconds=sum(second.took_ms) / 1000,
        compared=f"{same} of {len(first.worlds)} worlds the same",
        how=f"killed in the middle, missed after {ACK_WAIT_S} s; {_delivery(second)}",
    )


def _delivery(run: Run) -> str:
    return (
        f"{len(run.texts):,} texts: {run.lost} lost, {run.twice} twice, {run.strange} nobody's; "
        f"{run.late} of {run.decisions:,} decisions late"
    )
