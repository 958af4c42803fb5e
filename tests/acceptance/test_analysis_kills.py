"""Analyses whose supervisor or workers are killed under them: what was asked is found once, whoever goes on."""

import asyncio
import contextlib

from tasklore.contracts.analysis.stories import SeatSettings
from tests.acceptance.analyses import STORY, TELLERS, demand_each_once, editor
from tests.acceptance.system import System

TEXT = "Mara set the lamp down."
#: How long others leave an analysis alone: the tests wait for it to lapse.
LEASE_S = 1


async def test_another_supervisor_finishes_what_a_killed_one_began(
    own_system: System,
) -> None:
    """Started only after the death; agents that had ended are not asked again."""
    own_system.worker(TELLERS).ready()
    first = own_system.supervisor(pipeline_lease_s=LEASE_S).ready()
    gate = own_system.folder / "gate"
    async with editor(own_system) as desk:
        await desk.load({"contradiction": SeatSettings(enabled=True)}, patience_s=60)
        asking = asyncio.ensure_future(
            desk.ask(1, f"{TEXT}\n@plot_threads wait {gate}\n@relationship wait {gate}")
        )
        await desk.begun("plot_threads", 1)
        await desk.begun("relationship", 1)
        await desk.begun("fact_extract", 1)
        first.kill()
        asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asking
        gate.touch()
        own_system.supervisor(pipeline_lease_s=LEASE_S).ready()
        document = await desk.ended(1)
        await demand_each_once(desk, document)
        ran = {
            section: desk.ran(section)["1"]
            for section in ("plot_threads", "knowledge", "entity_analysis")
        }

    assert ran == {"plot_threads": 1, "knowledge": 1, "entity_analysis": 1}


async def test_killed_at_any_moment_it_is_finished_by_the_next(
    own_system: System,
) -> None:
    """Five responses, each with a supervisor killed a little later in it, and a new one started."""
    own_system.worker(TELLERS).ready()
    async with editor(own_system) as desk:
        await desk.load({"contradiction": SeatSettings(enabled=True)})
        for number, moment in enumerate(
            (
                "resp_analyzer",
                "memory_create",
                "knowledge",
                "fact_extract",
                "thread_extract",
            ),
            1,
        ):
            supervisor = own_system.supervisor(pipeline_lease_s=LEASE_S).ready()
            asking = asyncio.ensure_future(desk.ask(number, f"{TEXT} {number}"))
            await desk.begun(moment, number)
            supervisor.kill()
            asking.cancel()
        own_system.supervisor(pipeline_lease_s=LEASE_S).ready()
        documents = [await desk.ended(number) for number in range(1, 6)]
        standing = await desk.stories.standing(STORY, 6)
        changes = await desk.changes()

    assert [document["meta"]["agents_ok"] for document in documents] == [10] * 5, (
        documents
    )
    assert standing.scores == {"Mara|Tom": 18 + 5 * 5}
    assert len({state.thread.id for state in standing.threads}) == 5
    assert {len(by) for by in changes.values()} == {5}


async def test_the_tasks_of_a_killed_worker_come_again(own_system: System) -> None:
    """To another worker, within their deadlines; what it had finished does not."""
    worker = own_system.worker(TELLERS).ready()
    own_system.supervisor(pipeline_lease_s=LEASE_S).ready()
    gate = own_system.folder / "gate"
    async with editor(own_system) as desk:
        await desk.load({"contradiction": SeatSettings(enabled=True)}, patience_s=60)
        asking = asyncio.ensure_future(
            desk.ask(1, f"{TEXT}\n@plot_threads wait {gate}")
        )
        await desk.begun("plot_threads", 1)
        await desk.begun("fact_extract", 1)
        worker.kill()
        gate.touch()
        own_system.worker(TELLERS).ready()
        reply = await asking
        await demand_each_once(desk, await desk.ended(1))
        ran = {
            section: desk.ran(section)["1"]
            for section in ("plot_threads", "entity_analysis")
        }

    assert reply.kind == "done"
    assert ran == {"plot_threads": 2, "entity_analysis": 1}


async def test_a_supervisor_that_was_frozen_changes_nothing_when_it_wakes(
    own_system: System,
) -> None:
    own_system.worker(TELLERS).ready()
    frozen = own_system.supervisor(pipeline_lease_s=LEASE_S).ready()
    gate = own_system.folder / "gate"
    async with editor(own_system) as desk:
        await desk.load({"contradiction": SeatSettings(enabled=True)})
        asking = asyncio.ensure_future(
            desk.ask(1, f"{TEXT}\n@relationship wait {gate}")
        )
        await desk.begun("relationship", 1)
        frozen.stop()
        own_system.supervisor(pipeline_lease_s=LEASE_S).ready()
        gate.touch()
        document = await desk.ended(1)
        frozen.go_on()
        reply = await asking
        await demand_each_once(desk, document)
        assert await desk.ended(1) == document

    assert reply.kind == "done"
    assert reply.document == document
