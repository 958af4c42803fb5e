"""Analyses with a supervisor of 0.2 beside one of today, or before it, or after it: each agent is asked once."""

import asyncio
import contextlib
from collections.abc import Callable

import pytest

from tasklore.contracts.analysis.section_agents import SECTION_AGENTS
from tasklore.contracts.analysis.stories import SeatSettings
from tasklore.contracts.messages import AnalysisReply
from tests.acceptance.analyses import STORY, TELLERS, demand_each_once, editor
from tests.acceptance.system import Served, System
from tests.acceptance.test_beside_0_2 import PYTHON_OF_0_2

TEXT = "Mara set the lamp down."
#: How long others leave an analysis alone: the tests wait for it to lapse.
LEASE_S = 1
#: Responses that are asked for of both, and how often each is.
RESPONSES = 8
TIMES = 4
MOST_RESPONSES = 2 * RESPONSES


def today(system: System) -> Served:
    return system.supervisor(pipeline_lease_s=LEASE_S)


def of_0_2(system: System) -> Served:
    return system.installed(PYTHON_OF_0_2, "supervisor", pipeline_lease_s=LEASE_S)


@pytest.mark.parametrize(
    ("begins", "goes_on"),
    [
        pytest.param(of_0_2, today, id="upgraded"),
        pytest.param(today, of_0_2, id="gone back from"),
    ],
)
async def test_what_one_version_began_goes_on_with_the_other(
    begins: Callable[[System], Served],
    goes_on: Callable[[System], Served],
    own_system: System,
) -> None:
    """With the same tasks: agents that had ended are not asked again, those at work are waited for."""
    own_system.worker(TELLERS).ready()
    first = begins(own_system).ready()
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
        goes_on(own_system).ready()
        await demand_each_once(desk, await desk.ended(1))
        ran = {seat.section: desk.ran(seat.section)["1"] for seat in SECTION_AGENTS}
        served = await desk.ask(1, None)

    assert set(ran.values()) == {1}, ran
    assert (served.kind, served.served) == ("done", True)


async def test_both_versions_at_once_ask_each_agent_once(own_system: System) -> None:
    own_system.worker(TELLERS).ready()
    both = [of_0_2(own_system), today(own_system)]
    for supervisor in both:
        supervisor.ready().await_agents(10)
    async with editor(own_system) as desk:
        await desk.load({"contradiction": SeatSettings(enabled=True)})
        replies: list[AnalysisReply] = []
        took_part = [0.0, 0.0]
        number = 0
        # Whichever is first takes an analysis: it may be the same one for a while.
        while min(took_part) == 0 and number < MOST_RESPONSES:
            new = range(number + 1, number + RESPONSES + 1)
            replies += await asyncio.gather(
                *(desk.ask(one, f"{TEXT} {one}") for one in new for _ in range(TIMES))
            )
            for one in new:
                await desk.ended(one)
            number += RESPONSES
            took_part = [one.metric("tasklore_analyses_total") for one in both]
        standing = await desk.stories.standing(STORY, number + 1)
        ran = {seat.section: desk.ran(seat.section) for seat in SECTION_AGENTS}

    assert {reply.kind for reply in replies} == {"done"}
    assert standing.scores == {"Mara|Tom": 18 + 5 * number}
    assert len(standing.threads) == number
    assert {count for counts in ran.values() for count in counts.values()} == {1}, ran
    assert min(took_part) > 0
