"""The storm: runs, each with one blow, and what all of them together show."""

import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.acceptance.chaos.table import Row
from tests.acceptance.faults.plan import play
from tests.acceptance.pipeline_storm.moments import StruckRun, plan
from tests.acceptance.pipeline_storm.stage import Stage, stage
from tests.acceptance.pipeline_storm.strikes import RunOnStage, undisturbed
from tests.acceptance.pipeline_storm.verdict import Verdict, judge, look

#: What supervisors may do wrong, see `sabotage`: the verdict has to find it.
DEEDS = ("counting", "forgetful")


async def run(
    runs: int, seed: int, folder: Path, *, deed: str = "", tells: bool = False
) -> list[Row]:
    """Strike *runs* runs, the moments after *seed*, and return what was promised beside what was measured.

    *deed* is what every supervisor commits, one of `DEEDS`; with *tells* each run is told of on stderr.
    """
    began = time.monotonic()
    planned = plan(runs, seed)
    found: list[tuple[StruckRun, Verdict]] = []
    async with stage(folder) as on:
        await on.begin(deed)
        results, took_s = await _undisturbed(on, {one.number for one in planned})
        for index, one in enumerate(planned):
            session_id = f"struck-{seed}-{index}"
            run_on_stage = RunOnStage(on, session_id, one.number, took_s=took_s)
            struck = await play(one.plan(index), run_on_stage)
            verdict = judge(struck, await look(on, struck), results[one.number])
            found.append((one, verdict))
            if tells:
                _tell(index, one, verdict, struck.took_s)
    return _rows(found, time.monotonic() - began)


async def _undisturbed(on: Stage, numbers: set[int]) -> tuple[dict[int, Any], float]:
    """Return the result of a run for each of *numbers* that nobody strikes, and seconds that the last one took.

    Raises:
        RuntimeError: one of them is not as it should be; then nothing is to be learnt from blows.
    """
    results = dict[int, Any]()
    took_s = 0.0
    for number in sorted(numbers):
        passed = await undisturbed(on, f"undisturbed-{number}", number)
        results[number] = passed.outcome.get("result")
        took_s = passed.took_s
        if problems := judge(passed, await look(on, passed), results[number]).problems:
            raise RuntimeError(f"undisturbed, for {number}: {'; '.join(problems)}")
    return results, took_s


def _tell(index: int, run: StruckRun, verdict: Verdict, took_s: float) -> None:
    again = f"again: {', '.join(verdict.again)}" if verdict.again else "nothing again"
    words = "; ".join(verdict.problems) or f"as promised, {again}"
    sys.stderr.write(f"{index}: {run}: {words} ({took_s:.1f} s)\n")


def _rows(found: list[tuple[StruckRun, Verdict]], took_s: float) -> list[Row]:
    struck = Counter(f"{one.victim} {one.moment.place}" for one, _ in found)
    broken = [
        f"{one}: {problem}" for one, verdict in found for problem in verdict.problems
    ]
    again = Counter(len(verdict.again) for _, verdict in found)
    measured = (
        f"{len(broken)} broken promises; {', '.join(f'{count} {kind}' for kind, count in sorted(struck.items()))}; "
        f"nothing ran again in {again[0]} runs, one phase in {again[1]}, two side by side in {again[2]}; "
        f"{sum(verdict.saved_ms for _, verdict in found):,} ms saved, {took_s:.0f} s"
    )
    return [
        Row(
            f"{len(found)} runs of nine phases, worker or supervisor killed at every boundary and inside every phase: "
            "only what was in flight runs again, the result is that of an undisturbed run, saved time is exact",
            "\n".join([measured, *broken[:20]]),
            not broken and bool(found),
        )
    ]
