"""Runs of pipelines without a server: what a state is, and leases over virtual time."""

import pytest

from contracts.pipelines import Phase, Pipeline
from memory.sessions.pipeline_records import NewRun, PhaseState, PhaseStatus, phase_in
from tests.fakes.pipeline_runs import FakePipelineRuns

NEW = NewRun("run-1", Pipeline(name="p", phases=(Phase(name="only", agent="A", task="t"),)), "main")


@pytest.mark.parametrize(
    ("status", "is_over"), [("pending", False), ("running", False), ("done", True), ("failed", True), ("skipped", True)]
)
def test_a_phase_is_over_once_it_ended_in_any_way(status: PhaseStatus, is_over: bool) -> None:
    """Only a reset lets it begin again."""
    assert PhaseState(status).is_over is is_over


def test_what_a_newer_writer_adds_to_a_phase_is_passed_over() -> None:
    """And what an older one did not know has its default."""
    assert phase_in(b'{"status":"done","run":2,"novelty":[1]}') == PhaseState("done", 2)


async def test_a_lease_ends_by_the_clock() -> None:
    """At its end, not before; renewing counts from now."""
    now = 1000.0
    runs = FakePipelineRuns(clock=lambda: now)
    await runs.create(NEW)
    fence = await runs.claim("run-1", "s1", 10_000)
    assert fence is not None
    now += 9
    assert await runs.renew("run-1", "s1", fence, 10_000)
    now += 9.999
    assert await runs.claim("run-1", "s2", 10_000) is None
    assert await runs.due("main") == []
    now += 0.001
    assert await runs.due("main") == ["run-1"]
    assert not await runs.renew("run-1", "s1", fence, 10_000)
    assert await runs.claim("run-1", "s2", 10_000)


async def test_a_fake_tells_who_may_write() -> None:
    """Nobody once the phase has failed."""
    runs = FakePipelineRuns()
    await runs.create(NEW)
    fence = await runs.claim("run-1", "s1", 10_000)
    assert fence is not None
    assert runs.writer_of("run-1", "only") is None
    await runs.begin_phase("run-1", fence, "only", "p-1", 1)
    assert runs.writer_of("run-1", "only") == "p-1"
    await runs.settle_phase("run-1", fence, "only", PhaseState("failed", 1, "p-1"))
    assert runs.writer_of("run-1", "only") == ""
