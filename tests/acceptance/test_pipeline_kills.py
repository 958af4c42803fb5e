"""A few runs of nine phases with a worker or a supervisor killed under each; a hundred are `make pipeline-storm`."""

import time
from pathlib import Path

import pytest

from tests.acceptance.pipeline_storm import storm, work
from tests.acceptance.pipeline_storm.stage import stage
from tests.acceptance.pipeline_storm.strikes import Blow, Struck
from tests.acceptance.pipeline_storm.verdict import judge, look

#: As many as there are kinds of moments.
RUNS = 6


async def test_only_what_was_in_flight_runs_again_when_somebody_is_killed(
    tmp_path: Path,
) -> None:
    """At boundaries and inside phases; the result is that of an undisturbed run, and saved time is exact."""
    rows = await storm.run(RUNS, 1, tmp_path)

    assert [row for row in rows if not row.passed] == []


async def test_a_supervisor_that_was_frozen_changes_nothing_when_it_wakes(
    tmp_path: Path,
) -> None:
    """Another one drives its run by then, and both hear the report of the phase that was running."""
    session_id = "frozen"
    number = 3
    async with stage(tmp_path) as on:
        await on.begin()
        held = on.hold(session_id, "analysis")
        began = time.monotonic()
        await on.start(session_id, number)
        await on.started(session_id, "analysis")
        frozen = await on.driver(session_id)
        frozen.stop()

        async def is_taken_over() -> bool:
            return await on.driver(session_id) is not frozen

        await on.until(is_taken_over)
        frozen.resume()
        held.unlink()
        struck = Struck(
            session_id,
            number,
            blow=Blow(),
            outcome=await on.outcome(session_id),
            executions=on.executions(session_id),
            took_s=time.monotonic() - began,
        )
        verdict = judge(struck, await look(on, struck), work.expected(number))
        assert frozen.is_alive

    assert verdict.problems == ()


@pytest.mark.long
@pytest.mark.parametrize(
    ("deed", "broken"), [("forgetful", "ran as 2 tasks"), ("counting", "total_hits is")]
)
async def test_the_storm_finds_what_a_supervisor_does_wrong(
    tmp_path: Path, deed: str, broken: str
) -> None:
    [row] = await storm.run(12, 3, tmp_path, deed=deed)

    assert not row.passed
    assert broken in row.measured
