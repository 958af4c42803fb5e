"""A soak: `python -m tests.acceptance.chaos.soak --minutes 30` works steadily and looks for whatever only grows.

The exit status is 1 when something did. A minute is enough to see that it runs, not to see what creeps.
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import Sequence

import uvloop

from tests.acceptance.chaos.soak_load import KNOWN, LOST_AFTER_S, Load, load
from tests.acceptance.chaos.soak_samples import CENSUSES, Looker, Sample
from tests.acceptance.chaos.stage import STEADY, stage
from tests.acceptance.chaos.table import Row, finish
from tests.acceptance.system import BUDGET, Served, System

#: Seconds between looks.
LOOK_S = 10.0
#: The part of the time after which everything is warm: ten minutes of thirty.
WARM = 1 / 3
#: Megabytes by which a process may be larger at the end than when it was warm.
GROWS_MB = 2.0
#: The part by which any other count may be larger, and how much of a small one.
GROWS_BY = 0.10
GROWS_AT_LEAST = 10.0
#: Restarts of NATS during a soak, evenly spread.
RESTARTS = 5
#: Looks that are put together at each end: one alone catches what is just under way.
_TOGETHER = 5
#: Kinds of keys that grow with what is asked, by contract: the ledger for 7 days, what is remembered for a month.
_BY_CONTRACT = ("task", "ltm")


async def soak(minutes: float) -> list[Row]:
    """Work for *minutes* minutes and return what grew."""
    async with stage() as system, load(system.servers.nats_url) as program:
        processes = {
            "supervisor": system.supervisor(),
            "worker 1": system.worker(STEADY, BUDGET, slots=32),
            "worker 2": system.worker(STEADY, BUDGET, slots=32),
        }
        for process in processes.values():
            await asyncio.to_thread(process.ready)
        looker = Looker(system, processes, program)
        busy = [
            asyncio.create_task(work)
            for work in (program.keep_sowing(), program.keep_asking())
        ]
        restarting = asyncio.create_task(
            _restart_now_and_then(system, 60 * minutes / (RESTARTS + 1))
        )
        samples: list[Sample] = []
        ends_at = time.monotonic() + 60 * minutes
        while time.monotonic() < ends_at:
            await asyncio.sleep(LOOK_S)
            samples.append(await looker.look())
            print(_line(samples[-1]), flush=True)  # noqa: T201 - how far it is
            failed = next((task for task in [*busy, restarting] if task.done()), None)
            if failed is not None:
                failed.result()
        restarting.cancel()
        for task in busy:
            task.cancel()
        await asyncio.gather(*busy, restarting, return_exceptions=True)
        await _settle(program)
        samples.append(await looker.look())
        return [
            *judged(samples),
            _kept_up(samples[-2], program),
            _answered(program),
            _quiet(processes),
        ]


async def _restart_now_and_then(system: System, every_s: float) -> None:
    """Kill NATS and start it again, so that every connection is made anew; not at the end, which would find it down."""
    for _ in range(RESTARTS):
        await asyncio.sleep(every_s)
        system.servers.nats.kill()
        await system.servers.nats.start()
    await asyncio.Event().wait()


async def _settle(program: Load) -> None:
    """Wait for the last reports, and for the queue to hear of them."""
    gives_up_at = time.monotonic() + LOST_AFTER_S
    while time.monotonic() < gives_up_at:
        waiting = (await program.api("STREAM.INFO.TASKS"))["state"]["messages"]
        if not program.open and not waiting:
            return
        await asyncio.sleep(0.2)


def judged(samples: list[Sample]) -> list[Row]:
    """Return what grew in *samples*, of which the last was taken when all work was done."""
    *during, after = samples
    first = max(0, min(int(len(during) * WARM), len(during) - _TOGETHER))
    warm = during[first : first + _TOGETHER]
    end = during[-_TOGETHER:]
    tasks = (
        sum(after.kinds.values())
        + sum(after.answers.values())
        + len(samples) * CENSUSES
    )
    remembered = KNOWN + after.kinds["miss"] + sum(after.answers.values())
    return [
        *(_grown(name, warm, end) for name in sorted(after.figures)),
        Row(
            "TASKS is empty in the end",
            f"{after.streams['TASKS']} messages",
            after.streams["TASKS"] == 0,
        ),
        Row(
            "LATER is empty in the end",
            f"{after.streams['LATER']} messages",
            after.streams["LATER"] == 0,
        ),
        _exactly(
            "DEAD holds what was given up and nothing else",
            after.streams["DEAD"],
            after.kinds["give_up"],
        ),
        _at_most(
            "REPORTS holds no more than a report a task",
            after.streams["REPORTS"],
            tasks,
        ),
        _exactly("the ledger has one key a task", after.keys["task"], tasks),
        _at_most(
            "the memory has no more than a key a question",
            after.keys["ltm"],
            remembered,
        ),
        _other_keys(warm[0], during[-1], after),
    ]


def _kept_up(last: Sample, program: Load) -> Row:
    tasks = sum(last.kinds.values())
    statuses = ", ".join(
        f"{number} {status}" for status, number in sorted(program.statuses.items())
    )
    measured = f"{tasks / last.at_s:.0f} tasks/s: {statuses}; {len(program.open)} without a report"
    return Row("every task is reported", measured, not program.open)


def _answered(program: Load) -> Row:
    said = ", ".join(
        f"{number} {kind}" for kind, number in sorted(program.answers.items())
    )
    return Row("every question is answered", said, set(program.answers) == {"answer"})


def _grown(name: str, warm: Sequence[Sample], end: Sequence[Sample]) -> Row:
    """Return whether a figure of a process has stayed what it was when warm.

    Megabytes are put together by their median; counts by the least, since what is under way only adds to them.
    """
    together = statistics.median if name.endswith("MB") else min
    before, after = (
        together([sample.figures[name] for sample in looks if name in sample.figures])
        for looks in (warm, end)
    )
    allowed = (
        GROWS_MB if name.endswith("MB") else max(GROWS_AT_LEAST, GROWS_BY * before)
    )
    minutes = (end[-1].at_s - warm[0].at_s) / 60
    asked = f"{name}: grows by at most {allowed:.0f} in the last {minutes:.1f} minutes"
    hasty = "" if warm[-1].at_s < end[0].at_s else ", too short to tell"
    return Row(
        asked,
        f"{before:.1f} -> {after:.1f}, {after - before:+.1f}{hasty}",
        after - before <= allowed,
    )


def _exactly(asked: str, found: int, known: int) -> Row:
    return Row(asked, f"{found} of {known}, {found - known:+d}", found == known)


def _at_most(asked: str, found: int, known: int) -> Row:
    return Row(asked, f"{found} of {known}, {found - known:+d}", found <= known)


def _other_keys(warm: Sample, end: Sample, after: Sample) -> Row:
    grown = {
        kind: end.keys[kind] - warm.keys[kind]
        for kind in end.keys
        if kind not in _BY_CONTRACT
    }
    more = sum(number for number in grown.values() if number > 0)
    allowed = max(GROWS_AT_LEAST, GROWS_BY * sum(warm.keys[kind] for kind in grown))
    kinds = ", ".join(f"{kind} {number}" for kind, number in sorted(after.keys.items()))
    return Row(
        "keys of every other kind do not grow",
        f"{more:+d} ({grown}); in the end {kinds}",
        more <= allowed,
    )


def _quiet(processes: dict[str, Served]) -> Row:
    tracebacks = {
        name: process.log().count("Traceback") for name, process in processes.items()
    }
    return Row(
        "nothing is logged with a traceback",
        str(tracebacks),
        not any(tracebacks.values()),
    )


def _line(sample: Sample) -> str:
    figures = ", ".join(
        f"{name} {value:.0f}" for name, value in sorted(sample.figures.items())
    )
    streams = ", ".join(f"{name} {number}" for name, number in sample.streams.items())
    tasks = sum(sample.kinds.values())
    keys = sum(sample.keys.values())
    return f"{sample.at_s:6.0f} s: {tasks} tasks; {figures}; {streams}; {keys} keys"


def main() -> None:
    """Soak, print, and say by the exit status whether nothing grew."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.acceptance.chaos.soak", description="Look for what grows."
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=30.0,
        help="how long; a minute or two to try it",
    )
    minutes = parser.parse_args().minutes
    rows = uvloop.run(soak(minutes))
    finish(rows, f"{minutes:.0f} minutes")


if __name__ == "__main__":
    main()
