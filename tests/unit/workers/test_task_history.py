"""A task's conversation: its limits, and how the kit prepares one for tests."""

from typing import Any

import pytest

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.messages import CompletionReport
from tasklore.contracts.parameters.model import Parameters
from tasklore.workers.agent import Agent
from tasklore.workers.context.context import Context
from tasklore.workers.testing import AgentKit, KitHistory, run_task
from tests.integration.inboxes import ids, said, seen


class Nothing(Parameters):
    """A task that needs only what was said."""


def listener(remember: Any = False, *, dies: list[str] | None = None) -> Agent:
    """Return an agent whose task tells what it was shown, says that, and dies at the seams in *dies*, once each."""
    agent = Agent("Listener")
    left = dies if dies is not None else []

    def seam(name: str) -> None:
        if name in left:
            left.remove(name)
            raise MemoryUnavailable(name)

    @agent.task(remember=remember)
    async def listen(parameters: Nothing, context: Context) -> dict[str, Any]:
        """Tell what is new."""
        history = context.history
        seam("before")
        taken = await history.take([said("a1")], observations=2)
        seam("between")
        await history.settle(said("x", "Me"), seen(9))
        await history.post("elsewhere", said(history.said_id, "Me"))
        seam("after")
        return {
            "new": ids(taken.history.current),
            "past": ids(taken.history.past),
            "observed": len(taken.observations),
            "settled": taken.is_settled,
            "whole": ids((await history.page()).messages),
            "last": (await history.observations(1))[0].time,
        }

    return agent


def told(report: CompletionReport) -> dict[str, Any]:
    """Return the result of a task that ended well."""
    assert report.status == "completed", report.error
    assert isinstance(report.result, dict)
    return report.result


async def test_a_task_is_shown_past_and_new_and_what_it_observed() -> None:
    """As the kit was given them."""
    history = KitHistory(
        past=(said("p1"), said("p2")),
        waiting=(said("w1"),),
        observations=(seen(1), seen(2), seen(3)),
    )
    assert told(await run_task(listener(), "listen", {}, history=history)) == {
        "new": ["a1", "w1"],
        "past": ["p1", "p2"],
        "observed": 2,
        "settled": False,
        "whole": ["p1", "p2", "a1", "w1", "task-1:said"],
        "last": 9,
    }


@pytest.mark.parametrize(
    ("seam", "is_settled"), [("before", False), ("between", False), ("after", True)]
)
async def test_a_run_that_dies_is_repeated_with_the_same_messages(
    seam: str, is_settled: bool
) -> None:
    kit = AgentKit(listener(dies=[seam]), history=KitHistory(waiting=(said("w1"),)))
    shown = told(await kit.run("listen", {}))
    assert len(kit.raised) == 1
    assert (shown["new"], shown["settled"]) == (["a1", "w1"], is_settled)
    assert shown["whole"] == ["a1", "w1", "task-1:said"]
    assert ids((await kit.services.inbox.take("elsewhere", "t")).history.current) == [
        "task-1:said"
    ]


async def test_a_task_without_a_conversation_is_told_what_is_missing() -> None:
    report = await run_task(listener(), "listen", {})
    assert report.status == "rejected"
    assert report.error is not None
    assert "conversation_id is missing" in report.error.message


@pytest.mark.parametrize("remember", ["shared", "user"])
async def test_a_remembered_task_may_not_touch_its_conversation(remember: str) -> None:
    """A remembered answer would be served however much was said since, and settle nothing."""
    report = await run_task(
        listener(remember), "listen", {}, history=KitHistory(), user_id="ann"
    )
    assert report.status == "failed"
    assert report.error is not None
    assert "remember=False" in report.error.message
