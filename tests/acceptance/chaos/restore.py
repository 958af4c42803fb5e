"""The drill of docs/guide/back-up-and-restore.md, under load: `python -m tests.acceptance.chaos.restore [--tasks N]`.

NATS is copied first, then Valkey, each as a snapshot of its volume would: in one moment, while everything works. Some
seconds later both servers are killed, their data is lost, and the copies take its place. The checker then says whether
what was accepted before the copy of NATS is reported once, and what ran before the copy of Valkey was not run again.
"""

import argparse
import asyncio
import shutil
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import uvloop

from tasklore.runtime.servers.child import ServerProcess
from tests.acceptance.chaos.checker import check
from tests.acceptance.chaos.ground import Ground, stand
from tests.acceptance.chaos.history import Event, read_history
from tests.acceptance.chaos.smith import Smith
from tests.acceptance.chaos.storm import AGENT, until_reported
from tests.acceptance.chaos.submitter import Assignment
from tests.acceptance.chaos.table import Row, finish

#: Seconds between the copies, and between the second one and the loss: enough for hundreds of tasks to end.
_BETWEEN_S = 2.0
#: Seconds without a new report after which what is missing counts as lost.
_QUIET_S = 30.0
#: Milliseconds of one task.
_TASK_MS = 40


async def drill(folder: Path, tasks: int) -> list[Row]:
    """Copy, lose and restore both servers of a system at work in *folder*; return a row for each promise."""
    async with (
        Smith([AGENT], folder / "workers") as smith,
        stand(smith, folder, seats=2, slots=8) as ground,
    ):
        submitting = asyncio.create_task(ground.program.submit_all(_assignments(tasks)))
        await _until_accepted(ground, tasks // 3)
        before = set(ground.program.accepted)
        nats_at = _copy(ground.servers.nats, folder / "copies" / "nats")
        await asyncio.sleep(_BETWEEN_S)
        valkey_at = _copy(ground.servers.valkey, folder / "copies" / "valkey")
        await asyncio.sleep(_BETWEEN_S)
        for server in (ground.servers.nats, ground.servers.valkey):
            server.kill()
        # What a program has not heard acknowledged by now it sends again, as to any server that was away.
        lost = set(ground.program.accepted) - before
        for server in (ground.servers.nats, ground.servers.valkey):
            shutil.rmtree(server.data_dir)
            shutil.copytree(folder / "copies" / server.data_dir.name, server.data_dir)
            await server.start()
        await submitting
        ground.program.accepted -= lost
        following = asyncio.create_task(ground.program.follow())
        await until_reported(ground, _QUIET_S)
        ground.program.is_over = True
        await following
        await ground.leave()
        await ground.program.read_all()
    return _rows(read_history(folder / "history"), lost, nats_at, valkey_at)


def _assignments(tasks: int) -> Iterable[Assignment]:
    for number in range(tasks):
        task, owes = (("work", "effect"), ("careful", "effect fence"))[number % 2]
        yield Assignment(task, {"number": number, "ms": _TASK_MS}, owes)


async def _until_accepted(ground: Ground, number: int) -> None:
    async def are_accepted() -> bool:
        return len(ground.program.accepted) >= number

    await ground.program.wire.eventually(are_accepted)


def _copy(server: ServerProcess, place: Path) -> float:
    """Copy the files of *server* as they are in one moment, and return when that was."""
    server.pause()
    try:
        shutil.copytree(server.data_dir, place)
        return time.time()
    finally:
        server.resume()


def _rows(
    events: Sequence[Event], lost: set[str], nats_at: float, valkey_at: float
) -> list[Row]:
    """Return what *events* show of the tasks that the copies hold; *lost* were accepted after that of NATS."""
    findings = check([event for event in events if event.task not in lost])
    first_effect = {
        event.task: event.at for event in reversed(events) if event.kind == "effect"
    }
    repeated = [
        task for task in findings.effects_twice if first_effect[task] < valkey_at
    ]
    held = findings.accepted
    rows = [
        Row(
            "tasks accepted before the copy of NATS and never reported: 0",
            f"{len(findings.lost)} of {held}",
            True,
        ),
        Row(
            "of these with two stored reports: 0", f"{len(findings.stored_twice)}", True
        ),
        Row("reports other than completed: 0", f"{len(findings.not_completed)}", True),
        Row(
            "effects made before the copy of Valkey and made again: 0",
            f"{len(repeated)}",
            True,
        ),
    ]
    broken = (findings.lost, findings.stored_twice, findings.not_completed, repeated)
    judged = [
        Row(row.asked, row.measured, not found)
        for row, found in zip(rows, broken, strict=True)
    ]
    again = len(findings.effects_twice) - len(repeated)
    told = (
        Row(
            "tasks accepted after the copy of NATS, lost as the page says",
            f"{len(lost)}",
            bool(lost),
        ),
        Row(
            "effects made after the copy of Valkey and made again, as the page says",
            f"{again}",
            True,
        ),
        Row("seconds between the copies", f"{valkey_at - nats_at:.1f}", True),
    )
    return [*judged, *told]


def main() -> None:
    """Run the drill, print the table, and exit with 1 when a promise was broken."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.acceptance.chaos.restore", description=__doc__
    )
    parser.add_argument("--tasks", type=int, default=1500)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tasklore-restore-") as folder:
        rows = uvloop.run(drill(Path(folder), options.tasks))
    finish(rows, "restore drill")


if __name__ == "__main__":
    main()
