"""The harness finds what it is there to find: with a promise switched off, one blow at the right moment breaks it."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.acceptance.chaos.checker import check
from tests.acceptance.chaos.findings import Findings
from tests.acceptance.chaos.forged import PATIENCE_S
from tests.acceptance.chaos.ground import Ground, Seat, stand
from tests.acceptance.chaos.history import Follower, Kind, read_history
from tests.acceptance.chaos.smith import Smith
from tests.acceptance.chaos.storm import (
    AGENT,
    compare_list,
    compare_stores,
    until_reported,
)
from tests.acceptance.chaos.submitter import Assignment

#: Milliseconds of a task: the blow falls in the middle of it, however busy the machine is.
TASK_MS = 1000
#: Seconds without news after which a task counts as lost: several times what a dead worker's tasks wait for another
#: one, since systems run side by side here and may starve each other; and where none is lost, as long as it takes.
QUIET_S = 8.0
CALM_S = 60.0
#: Longer than a lease and a run, so that another worker has done the tasks of one that is frozen before that goes on.
FROZEN_S = 5.0

TASKS = 4

Blow = Callable[[Ground, Path], Awaitable[None]]


async def _kill_after_an_effect(ground: Ground, folder: Path) -> None:
    """Let the next run make its effect again."""
    (await _seat_of_first(ground, folder, "effect")).worker.kill()


async def _freeze_a_run(ground: Ground, folder: Path) -> None:
    """Let somebody else run and report what this worker will report as well."""
    await ground.stop_worker(
        await _seat_of_first(ground, folder, "run-start"), FROZEN_S
    )


async def _kill_after_an_acknowledgement(ground: Ground, folder: Path) -> None:
    """Kill everybody when a task has left the queue: the report of one who keeps his word is there by then."""

    async def taken() -> bool:
        return sum((await ground.program.wire.counts("TASKS")).values()) < TASKS

    await ground.program.wire.eventually(taken)
    for seat in ground.seats:
        seat.worker.kill()


async def _stall_the_ledger(ground: Ground, folder: Path) -> None:
    """Cut one worker off from Valkey in the middle of a run: it reports unfenced, and what it had said comes later."""
    await ground.cut_off(
        await _seat_of_first(ground, folder, "run-start"), "valkey", "stall", FROZEN_S
    )


#: For each deed: the blow, and what the checker has to find after it.
CASES: dict[str, tuple[Blow, set[str]]] = {
    "once": (_kill_after_an_effect, {"effect twice"}),
    "fence": (_freeze_a_run, {"different reports, unexplained"}),
    "hasty": (_kill_after_an_acknowledgement, {"lost"}),
    # What was said through a wire that stalls may arrive when it heals, or not.
    "apart": (_stall_the_ledger, {"another report in the ledger", "not in the ledger"}),
    "unlisted": (_kill_after_an_effect, {"listed otherwise than in the ledger"}),
}


async def test_a_promise_that_is_switched_off_is_found_out(tmp_path: Path) -> None:
    """No `once`, no ledger, an acknowledgement too early, nobody who compares, ends not listed: each is found."""
    async with Smith([AGENT], tmp_path / "workers") as smith:
        struck = (
            _struck(smith, tmp_path / deed, deed, blow)
            for deed, (blow, _) in CASES.items()
        )
        found = await asyncio.gather(*struck)
    for (_, promises), findings in zip(CASES.values(), found, strict=True):
        assert promises & findings.violations.keys()


@pytest.mark.long
async def test_the_same_blows_break_nothing_where_every_promise_is_kept(
    tmp_path: Path,
) -> None:
    """One after the other: a worker that is starved for longer than a lease has its task run elsewhere, rightly."""
    async with Smith([AGENT], tmp_path / "workers") as smith:
        found = [
            await _struck(smith, tmp_path / deed, "", blow)
            for deed, (blow, _) in CASES.items()
        ]
    assert [findings.violations for findings in found] == [{}] * len(CASES)


async def _struck(smith: Smith, folder: Path, deed: str, blow: Blow) -> Findings:
    """Let *blow* fall on workers that commit *deed*, and return what the history shows in the end."""
    supervisors = int(blow is _stall_the_ledger)
    # Without the ledger a task that makes an effect would wait for it, and not report.
    task, owes = ("recalled", "") if supervisors else ("work", "effect")
    async with stand(
        smith,
        folder,
        seats=2,
        supervisors=supervisors,
        durability="standard",
        deed=deed,
        slots=2,
    ) as ground:
        async with asyncio.TaskGroup() as group:
            group.create_task(ground.program.follow())
            await ground.program.submit_all(
                Assignment(task, {"number": n, "ms": TASK_MS}, owes)
                for n in range(TASKS)
            )
            await blow(ground, folder)
            await until_reported(ground, QUIET_S if deed else CALM_S)
            if supervisors:
                await compare_stores(ground, QUIET_S if deed else CALM_S)
            await compare_list(ground, QUIET_S if deed else CALM_S)
            await ground.leave()
            ground.program.is_over = True
        await ground.program.read_all()
    return check(read_history(folder / "history"))


async def _seat_of_first(ground: Ground, folder: Path, moment: Kind) -> Seat:
    """Return the seat of the worker that first writes *moment* down."""
    follower = Follower(folder / "history")
    async with asyncio.timeout(PATIENCE_S):
        while True:
            pids = [event.pid for event in follower.news() if event.kind == moment]
            if pids:
                return next(seat for seat in ground.seats if seat.worker.pid == pids[0])
            await asyncio.sleep(0.01)
