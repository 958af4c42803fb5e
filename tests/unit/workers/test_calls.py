"""Calling other tasks, without servers: what is asked, what comes back, and what is refused."""

import asyncio
from datetime import timedelta

import pytest
from pydantic import BaseModel

from tasklore import Agent, Context, Parameters
from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import CallFailed, InvalidInput
from tasklore.contracts.messages import TaskAssignment
from tasklore.workers.context.children import Callee, Children, find_callee
from tasklore.workers.testing import NOW, AgentKit, KitServices, ScriptedLlm, run_task
from tasklore.workers.testing.children import KitChildren

papers = Agent("PaperFinder")
readers = Agent("ReaderAgent")


class Topic(Parameters):
    topic: str


class Question(Parameters):
    topic: str
    copies: int = 1


class Paper(BaseModel):
    title: str


@papers.task
async def find(what: Topic) -> Paper:
    """Find a paper."""
    return Paper(title=what.topic)


@readers.task
async def read(what: Question, context: Context) -> dict[str, list[str]]:
    """Read a paper found by name, one found by its function, and several at once."""
    named = await context.call("PaperFinder", "find", topic=what.topic)
    typed = await context.call(find, Topic(topic=what.topic))
    mapped = await context.map(
        find, [Topic(topic=f"{what.topic} {number}") for number in range(what.copies)]
    )
    return {"titles": [named["title"], typed.title, *(paper.title for paper in mapped)]}


@readers.task
async def survive(what: Question, context: Context) -> str:
    """Return how a child failed."""
    try:
        await context.call(find, Topic(topic=what.topic))
    except CallFailed as failure:
        return f"{failure.status} {failure.error_type}"
    return "completed"


def find_title(parameters: dict[str, str]) -> Paper:
    return Paper(title=parameters["topic"].title())


async def test_calls_return_json_by_name_and_the_type_of_the_function_else() -> None:
    kit = AgentKit(readers, calls={"PaperFinder.find": find_title})
    report = await kit.run("read", {"topic": "bees", "copies": 3})
    assert report.result == {"titles": ["Bees", "Bees", "Bees 0", "Bees 1", "Bees 2"]}
    assert [call.parameters["topic"] for call in kit.called] == [
        "bees",
        "bees",
        "bees 0",
        "bees 1",
        "bees 2",
    ]


async def test_a_failed_child_can_be_caught_and_fails_its_parent_otherwise() -> None:
    failure = CallFailed("no paper", "rejected", "InvalidInput")
    report = await run_task(
        readers, "survive", {"topic": "bees"}, calls={"PaperFinder.find": failure}
    )
    assert report.result == "rejected InvalidInput"
    report = await run_task(
        readers, "read", {"topic": "bees"}, calls={"PaperFinder.find": failure}
    )
    assert (report.status, report.attempt) == ("failed", 1)
    assert report.error is not None
    assert "PaperFinder.find" in report.error.message


async def test_a_call_that_the_test_does_not_answer_says_how_to() -> None:
    report = await run_task(readers, "survive", {"topic": "bees"})
    assert report.error is not None
    assert "calls={'PaperFinder.find': its result}" in report.error.message


class Caught(KitChildren):
    """Children that keep their assignments."""

    def __init__(self) -> None:
        super().__init__({"PaperFinder.find": {"title": "x"}})
        self.assigned: list[TaskAssignment] = []

    async def ask(
        self, assignment: TaskAssignment, *arguments: object, **options: object
    ):  # type: ignore[no-untyped-def,override]
        self.assigned.append(assignment)
        return await super().ask(assignment, *arguments, **options)  # type: ignore[arg-type]


def parent(**fields: object) -> TaskAssignment:
    given = {
        "task_id": "p",
        "agent_id": "ReaderAgent",
        "supervisor_id": "s",
        "created_at": NOW,
        "user_id": "ann",
    }
    return TaskAssignment.model_validate(
        {**given, "task": {"name": "read", "parameters": {}}, **fields}
    )


def children_of(
    assignment: TaskAssignment, shown: TaskAssignment | None = None
) -> tuple[Children, Caught]:
    services = KitServices(ScriptedLlm(), NOW)
    caught = Caught()
    services.children = caught
    made = Children(
        assignment, shown or assignment, services, generation=1, run_number=1, lend=None
    )  # type: ignore[arg-type]
    return made, caught


CALLEE = find_callee("PaperFinder.find")


async def test_ids_follow_from_parent_parameters_and_count_alone() -> None:
    first, seen = children_of(parent())
    second, again = children_of(parent())
    for children in (first, second):
        await children.call(CALLEE, {"topic": "a", "year": 1}, None)
        await children.call(CALLEE, {"year": 1, "topic": "a"}, None)
        await children.call(CALLEE, {"topic": "b"}, None)
    ids = [one.task_id for one in seen.assigned]
    assert ids == [one.task_id for one in again.assigned]
    assert len(set(ids)) == 3
    other, caught = children_of(parent(task_id="q"))
    await other.call(CALLEE, {"topic": "a", "year": 1}, None)
    assert caught.assigned[0].task_id not in ids


async def test_a_child_is_of_who_asked_for_its_parent() -> None:
    """Also of the tenant alone, where a worker of 0.2 or a program said no more."""
    acme = Caller(name="shop", roles=frozenset({"ask"}), tenant="acme")
    for given, whose in (
        ({"caller": acme}, acme),
        ({"tenant": "acme"}, Caller(tenant="acme", named=True)),
        ({}, None),
    ):
        children, caught = children_of(parent(**given))
        await children.call(CALLEE, {"topic": "a"}, None)
        [child] = caught.assigned
        assert (child.caller, child.tenant) == (whose, whose and whose.tenant)


async def test_a_child_inherits_tree_deadline_user_and_memory() -> None:
    above = parent(
        root_id="top",
        deadline=NOW + timedelta(seconds=60),
        memory="bypass",
        ancestors=("A.b:1",),
    )
    children, caught = children_of(above)
    await children.call(CALLEE, {"topic": "a"}, None)
    await children.call(CALLEE, {"topic": "a"}, timedelta(seconds=5))
    await children.call(CALLEE, {"topic": "a"}, timedelta(hours=5))
    one = caught.assigned[0]
    assert (one.parent_id, one.root_id, one.memory, one.user_id) == (
        "p",
        "top",
        "bypass",
        "ann",
    )
    assert [part.partition(":")[0] for part in one.ancestors or ()] == [
        "A.b",
        "ReaderAgent.read",
    ]
    assert [
        (one.deadline - NOW).total_seconds() for one in caught.assigned if one.deadline
    ] == [60, 5, 60]


async def test_a_parent_whose_answers_are_shared_tells_no_user() -> None:
    children, caught = children_of(parent(), parent(user_id=None))
    await children.call(CALLEE, {"topic": "a"}, None)
    assert caught.assigned[0].user_id is None
    assert caught.assigned[0].root_id == "p"


@pytest.mark.parametrize(
    ("what", "word"),
    [
        ("PaperFinder", "'Agent.task'"),
        (".find", "'Agent.task'"),
        (asyncio.sleep, "@agent.task"),
    ],
)
def test_what_is_no_task_is_refused(what: object, word: str) -> None:
    with pytest.raises(InvalidInput, match=word):
        find_callee(what)  # type: ignore[arg-type]


async def test_circles_depth_and_parameters_that_are_no_json_are_refused() -> None:
    itself = Callee("ReaderAgent", "read", CALLEE.result)
    with pytest.raises(InvalidInput, match="wait for itself"):
        await children_of(parent())[0].call(itself, {}, None)
    deep = parent(ancestors=tuple(f"A.b:{number}" for number in range(32)))
    with pytest.raises(InvalidInput, match="number 34"):
        await children_of(deep)[0].call(CALLEE, {}, None)
    with pytest.raises(InvalidInput, match="not JSON"):
        await children_of(parent())[0].call(CALLEE, {"topic": object()}, None)
    with pytest.raises(InvalidInput, match="at least one"):
        await children_of(parent())[0].map(
            CALLEE, [{}], at_once=0, within=None, keep_failures=False
        )
    with pytest.raises(InvalidInput, match="10,000"):
        await children_of(parent())[0].map(
            CALLEE, [{}] * 10_001, at_once=1, within=None, keep_failures=False
        )


async def test_map_calls_no_more_after_a_failure() -> None:
    children, caught = children_of(parent())
    caught._answers = {"PaperFinder.find": CallFailed("no", "failed")}
    with pytest.raises(CallFailed):
        await children.map(
            CALLEE,
            [{"n": n} for n in range(50)],
            at_once=2,
            within=None,
            keep_failures=False,
        )
    assert len(caught.assigned) <= 4
