"""The storm: thousands of short tasks while workers, servers and wires fail, and what the history proves afterwards."""

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from redis.asyncio import Redis

from tasklore.memory.ledger.tally import Tally
from tests.acceptance.chaos.agent import agent
from tests.acceptance.chaos.checker import check
from tests.acceptance.chaos.findings import Findings
from tests.acceptance.chaos.ground import Ground, stand
from tests.acceptance.chaos.history import read_history
from tests.acceptance.chaos.promises import rows_of
from tests.acceptance.chaos.smith import Smith
from tests.acceptance.chaos.struck_ground import StruckGround
from tests.acceptance.chaos.submitter import Assignment, digest_of
from tests.acceptance.chaos.table import Row
from tests.acceptance.chaos.weather import Climate, plan
from tests.acceptance.faults.plan import play
from tests.acceptance.ledger_counts import ended, mislisted, reports_in

#: What workers of a storm serve.
AGENT = "tests.acceptance.chaos.agent"

SEEDS = 20

#: Seconds without a new report after which what is missing counts as lost; a task waits for a dead worker's lease,
#: at most, for a retry, and for its turn.
QUIET_S = 60.0
#: Seconds after the last blow in which both stores have to agree.
AGREED_WITHIN_S = 60.0
#: Seconds between looks at whether it is over.
_LOOK_S = 0.05


async def run(options: argparse.Namespace) -> list[Row]:
    """Run one storm a seed and return what all of them together show.

    The history of a storm that broke a promise is kept, and its folder printed.
    """
    climate = Climate(ledger=options.ledger)
    if options.tasks:
        climate = climate.lasting(options.tasks)
    folder = Path(tempfile.mkdtemp(prefix="tasklore-chaos-"))
    found: list[Findings] = []
    async with Smith([AGENT], folder / "workers") as smith:
        for seed in range(
            options.first_seed, options.first_seed + (options.seeds or SEEDS)
        ):
            started = time.monotonic()
            findings = await storm(smith, folder / f"seed-{seed}", climate, seed)
            found.append(findings)
            _tell(seed, findings, time.monotonic() - started, folder)
            if not findings.violations:
                shutil.rmtree(folder / f"seed-{seed}")
    if not any(findings.violations for findings in found):
        shutil.rmtree(folder)
    return rows_of(found, climate)


async def storm(
    smith: Smith,
    folder: Path,
    climate: Climate,
    seed: int,
    *,
    deed: str = "",
    quiet_s: float = QUIET_S,
) -> Findings:
    """Let it storm once and return what the history in *folder* shows; *deed* is every worker's, see `sabotage`."""
    async with stand(
        smith,
        folder,
        seats=climate.workers,
        supervisors=climate.supervisors,
        durability=climate.durability,
        deed=deed,
        layout="2" if climate.ledger == "2" else "1",
        slots=climate.slots,
        ack_wait_s=climate.ack_wait_s,
    ) as ground:
        stage = StruckGround(
            ground,
            assignments=_assignments(climate),
            silence_s=climate.silence_s,
            drain=partial(until_reported, ground, quiet_s),
            look=partial(_settle, ground),
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(ground.program.follow())
            await play(plan(climate, seed), stage)
            ground.program.is_over = True
        await ground.program.read_all()
    return check(read_history(folder / "history"))


async def _settle(ground: Ground) -> None:
    """Note what both stores hold, and have every process leave."""
    await _until_taken(ground)
    await compare_stores(ground)
    await _compare_counts(ground)
    await compare_list(ground)
    await ground.leave()


def _assignments(climate: Climate) -> Iterator[Assignment]:
    """Yield the tasks, of every kind in turn, each a question of its own."""
    for number in range(climate.tasks):
        task, owes = (
            ("work", "effect"),
            ("careful", "effect fence"),
            ("recalled", ""),
        )[number % 3]
        yield Assignment(task, {"number": number, "ms": climate.task_ms}, owes)


async def until_reported(ground: Ground, quiet_s: float) -> None:
    """Return once every accepted task has a stored report, or *quiet_s* have passed without a new one."""
    program = ground.program
    known = len(program.reported)
    changed_at = time.monotonic()
    while (
        not program.accepted <= program.reported
        and time.monotonic() - changed_at < quiet_s
    ):
        await asyncio.sleep(_LOOK_S)
        if len(program.reported) != known:
            known = len(program.reported)
            changed_at = time.monotonic()


async def _until_taken(ground: Ground) -> None:
    """Return once no task is left in the stream: what is offered again after its report may only repeat that."""

    async def empty() -> bool:
        return not await ground.program.wire.counts(
            "TASKS", f"tasks.{agent.agent_id}.>"
        )

    try:
        await ground.program.wire.eventually(empty)
    except TimeoutError:
        left = await ground.program.wire.counts("TASKS", f"tasks.{agent.agent_id}.>")
        for subject, number in left.items():
            ground.history.note("left", about=f"{number} on {subject}")


async def compare_stores(ground: Ground, within_s: float = AGREED_WITHIN_S) -> None:
    """Note what the ledger holds, as soon as that is what the stream holds, or after *within_s* seconds."""
    gives_up_at = time.monotonic() + within_s
    async with Redis.from_url(ground.servers.redis_url) as redis:
        while True:
            held = await reports_in(redis)
            digests = {name: digest_of(report) for name, (_, report) in held.items()}
            if digests == ground.program.digests or time.monotonic() > gives_up_at:
                break
            await asyncio.sleep(1.0)
    for (task, generation), (state, _) in held.items():
        ground.history.note(
            "ledger",
            task=task,
            generation=generation,
            about=state,
            digest=digests[task, generation],
        )


async def _compare_counts(ground: Ground) -> None:
    """Note where the counts that a supervisor exports are not what the ledger holds, after all that was done."""
    async with Redis.from_url(ground.servers.redis_url) as redis:
        counted = await Tally(redis).read()
        held = await ended(redis)
    if counted != held or not held:
        ground.history.note("miscounted", about=f"counted {counted}, held {held}")


async def compare_list(ground: Ground, within_s: float = AGREED_WITHIN_S) -> None:
    """Note which tasks are not listed as the ledger has them, after *within_s* seconds at most."""
    gives_up_at = time.monotonic() + within_s
    async with Redis.from_url(ground.servers.redis_url) as redis:
        while True:
            found = await mislisted(redis, ground.agent_id)
            if not found or time.monotonic() > gives_up_at:
                break
            await asyncio.sleep(1.0)
    for task, about in found.items():
        ground.history.note("mislisted", task=task, about=about)


def _tell(seed: int, findings: Findings, seconds: float, folder: Path) -> None:
    """Say how one storm went."""
    recomputed = sum(findings.recomputed.values()) + len(
        findings.recomputed_unexplained
    )
    done = f"{findings.accepted} tasks, {findings.hits} kills in a run, {recomputed} runs again"
    if findings.moved:
        done += f", {findings.moved} entries moved"
    sys.stdout.write(f"seed {seed}: {done}, {seconds:.0f} s\n")
    for promise, tasks in findings.violations.items():
        sys.stdout.write(
            f"  {promise}: {len(tasks)}, as {', '.join(tasks[:3])}; see {folder / f'seed-{seed}'}\n"
        )
    sys.stdout.flush()
