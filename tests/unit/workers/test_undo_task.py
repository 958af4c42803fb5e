"""The task that takes an edit of documents back, for programs that are not on the machine of the documents."""

from contracts.errors import UndeclaredAccess
from contracts.messages import TaskAssignment, TaskCall
from tests.integration.documents import FOOD, USER, commit, like, liked, plan
from workers import Agent, Context, Parameters
from workers.agents.memory_worker import agent
from workers.testing import NOW, AgentKit


async def test_a_task_takes_an_edit_back_and_says_what_did() -> None:
    """With the revision that it led to."""
    kit = AgentKit(agent)
    await commit(kit.services.edits, plan("p1", like("Eggs")))
    report = await kit.run("undo", {"plan_id": "p1"}, user_id=USER)
    assert (report.status, report.result["undoes"], report.result["revisions"]) == ("completed", "p1", {FOOD: 2})
    assert await liked(kit.services.edits) == []


async def test_what_is_taken_back_already_is_refused() -> None:
    """Two people who wish the same are told apart from one whose worker died."""
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
    context = Context(agent.tasks["undo"], _assigned(), kit.services, attempt=2)
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


def _assigned() -> TaskAssignment:
    return TaskAssignment(
        task_id="task-1",
        agent_id="MemoryAgent",
        supervisor_id="main",
        task=TaskCall(name="undo", parameters={"plan_id": "p1"}),
        created_at=NOW,
        user_id=USER,
    )
