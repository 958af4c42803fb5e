"""Edits by hand and their undo: under the id of their task, once, for the user who asks."""

from typing import Any

import pytest

from tasklore import Agent, Context, Parameters
from tasklore.contracts.errors import UndeclaredAccess
from tasklore.contracts.messages import TaskAssignment, TaskCall
from tasklore.memory.documents.review import PROTECTED
from tasklore.workers.agents.memory_worker import agent
from tasklore.workers.agents.memory_worker.tasks import ItemChange, change_item
from tasklore.workers.testing import NOW, AgentKit
from tests.integration.documents import FOOD, HEALTH, USER, commit, like, liked, plan


async def test_a_task_takes_an_edit_back_and_says_what_did() -> None:
    """With the revision that it led to."""
    kit = AgentKit(agent)
    await commit(kit.services.edits, plan("p1", like("Eggs")))
    report = await kit.run("undo", {"plan_id": "p1"}, user_id=USER)
    assert (report.status, report.result["undoes"], report.result["revisions"]) == (
        "completed",
        "p1",
        {FOOD: 2},
    )
    assert await liked(kit.services.edits) == []


async def test_what_is_taken_back_already_is_refused() -> None:
    kit = AgentKit(agent)
    await commit(kit.services.edits, plan("p1", like("Eggs")))
    await kit.services.edits.undo(USER, "p1", at=NOW)
    report = await kit.run("undo", {"plan_id": "p1"}, user_id=USER)
    assert report.error is not None
    assert (report.status, report.error.type) == ("rejected", "UndoRefused")


async def test_a_second_run_finds_what_the_first_did() -> None:
    """A worker that died between the edit and its report has done it all the same."""
    kit = AgentKit(agent)
    await commit(kit.services.edits, plan("p1", like("Eggs")))
    first = await kit.services.edits.undo(USER, "p1", at=NOW)
    context = Context(agent.tasks["undo"], _assigned("undo"), kit.services, attempt=2)
    assert (await context.edits.undo("p1")).plan_id == first.plan_id


async def test_nobody_takes_back_edits_without_saying_that_it_may() -> None:
    """An agent that only reads documents cannot change them by a slip."""
    reader = Agent("Reader")

    class Nothing(Parameters):
        """No parameters."""

    @reader.task(remember=False)
    async def look(_nothing: Nothing, context: Context) -> str:
        """Look."""
        return (await context.edits.undo("p1")).plan_id

    kit = AgentKit(reader)
    assert (await kit.run("look", {}, user_id=USER)).status == "failed"
    assert isinstance(kit.raised[0], UndeclaredAccess)


async def test_edits_of_nobody_are_refused() -> None:
    """The user is the one who asked, and there has to be one."""
    report = await AgentKit(agent).run("undo", {"plan_id": "p1"})
    assert report.error is not None
    assert "user_id is missing" in report.error.message


def _assigned(task: str) -> TaskAssignment:
    call = TaskCall(name=task, parameters={})
    return TaskAssignment(
        task_id="task-1",
        agent_id="MemoryAgent",
        supervisor_id="S",
        task=call,
        created_at=NOW,
        user_id=USER,
    )


EGGS = f"{FOOD}:food.likes.eggs"


async def _change(kit: AgentKit, **asked: Any) -> Any:
    report = await kit.run("change_item", asked, user_id=USER)
    assert report.status == "completed", report.error
    return report


async def test_an_item_is_added_changed_and_deleted_under_the_id_of_its_task() -> None:
    """Each is a plan that the history has, with who did it."""
    kit = AgentKit(agent)
    store = kit.services.edits
    added = await _change(
        kit, operation="add", category="food.likes", value="eggs", since="2025-12-01"
    )
    assert added.result == {"plan_id": added.task_id, "revisions": {FOOD: 1}}
    assert await liked(store) == ["Eggs"]

    await _change(kit, operation="change", reference=EGGS, value="Boiled eggs")
    assert await liked(store) == ["Boiled eggs"]

    await _change(kit, operation="delete", reference=f"{FOOD}:food.likes.boiled_eggs")
    assert await liked(store) == []
    assert [record.origin.by for record in await store.history(USER)] == ["person"] * 3


async def test_a_run_after_a_crash_finds_what_the_first_did() -> None:
    """A deleted item is not looked for again."""
    kit = AgentKit(agent)
    await commit(kit.services.edits, plan("p1", like("Eggs")))
    asked = ItemChange(operation="delete", reference=EGGS)
    first, again = [
        await change_item(
            asked,
            Context(
                agent.tasks["change_item"],
                _assigned("change_item"),
                kit.services,
                attempt=attempt,
            ),
        )
        for attempt in (1, 2)
    ]
    assert first == again
    assert len(await kit.services.edits.history(USER)) == 2


async def test_what_is_protected_is_flagged_when_somebody_deletes_it_by_hand() -> None:
    """The audit lists it for a while."""
    kit = AgentKit(agent)
    await _change(kit, operation="add", category="health.allergies", value="peanuts")
    await _change(
        kit, operation="delete", reference=f"{HEALTH}:health.allergies.peanuts"
    )
    assert (await kit.services.edits.history(USER))[0].origin.reasoning.startswith(
        PROTECTED
    )


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"operation": "add", "category": "food.likes"}, "value is missing"),
        (
            {"operation": "add", "category": "food.loves", "value": "eggs"},
            "it is one of food.likes",
        ),
        ({"operation": "delete"}, "reference is missing"),
        ({"operation": "delete", "reference": f"{FOOD}:food.likes.ham"}, "no item has"),
        (
            {
                "operation": "change",
                "reference": f"{FOOD}:food.likes.twins",
                "value": "x",
            },
            "2 items have",
        ),
    ],
)
async def test_what_cannot_be_done_is_refused_with_the_field_and_the_cure(
    asked: dict[str, str], words: str
) -> None:
    """And nothing is changed."""
    kit = AgentKit(agent)
    twins = [like("Twins"), like("Twins", note="another")]
    await commit(kit.services.edits, plan("p1", *twins))
    report = await kit.run("change_item", asked, user_id=USER)
    assert (report.status, report.error is not None) == ("rejected", True)
    assert report.error is not None
    assert words in report.error.message
    assert len(await liked(kit.services.edits)) == 2
