"""The testing kit and the context that it hands to tasks."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from tasklore import Agent, Context, Parameters
from tasklore.workers.context.services import Services
from tasklore.workers.testing import NOW, AgentKit, KitServices, ScriptedLlm, run_task


class Question(Parameters):
    """What is asked in these tests."""

    text: str = "?"


class Opinion(BaseModel):
    """What a model says in these tests."""

    reasoning: str
    word: str


def curious(
    uses: tuple[Literal["llm", "clock"], ...] = (),
    remember: Any = "shared",
    attempts: int = 5,
) -> Agent:
    """Return an agent whose tasks touch everything there is."""
    agent = Agent("Curious")
    lifetime: Any = {"remember_for": timedelta(hours=1)} if uses and remember else {}
    task = agent.task(uses=uses, remember=remember, max_attempts=attempts, **lifetime)

    @task
    async def judge(question: Question, context: Context) -> dict[str, Any]:
        """Ask the model."""
        opinion = await context.llm.ask(
            "judge", Opinion, system="Judge.", user=question.text
        )
        return {"word": opinion.word, "attempts": context.usage.input_tokens}

    @task
    async def tell_time(question: Question, context: Context) -> str:
        """Read the clock."""
        return context.now().isoformat()

    @task
    async def recall_talk(question: Question, context: Context) -> list[str]:
        """Read the conversation."""
        return [
            f"{turn.speaker}: {turn.text}"
            for turn in await context.conversation.recent(2)
        ]

    @task
    async def name_user(question: Question, context: Context) -> list[str | None]:
        """Read who asks, both ways."""
        return [
            context.user_id,
            context.assignment.user_id,
            context.assignment.conversation_id,
        ]

    @task
    async def show_user(question: Question, context: Context) -> list[str | None]:
        """Read who asks from the assignment."""
        return [
            context.assignment.user_id,
            context.assignment.conversation_id,
            context.assignment.task.name,
        ]

    return agent


async def test_the_memory_of_a_kit_obeys_the_assignment() -> None:
    """Refresh computes and overwrites, bypass neither reads nor writes, and the switch turns all of it off."""
    runs: list[int] = []
    agent = Agent("Counter")

    @agent.task(remember="shared")
    async def count(question: Question) -> int:
        """Count runs."""
        runs.append(1)
        return len(runs)

    kit = AgentKit(agent)
    seen = [
        await kit.run("count", {}, memory=mode)
        for mode in ("use", "use", "bypass", "use", "refresh", "use")
    ]
    assert [report.memory.outcome for report in seen] == [
        "miss",
        "hit",
        "bypassed",
        "hit",
        "refreshed",
        "hit",
    ]
    assert [report.result for report in seen] == [1, 1, 2, 1, 3, 3]
    off = AgentKit(agent, remembers=False)
    assert [(await off.run("count", {})).memory.outcome for _ in range(2)] == [
        "off",
        "off",
    ]


async def test_a_model_answers_from_the_script() -> None:
    kit = AgentKit(
        curious(uses=("llm",)), llm=[Opinion(reasoning="short", word="fine")]
    )
    report = await kit.run("judge", {"text": "How is it?"})
    assert report.result["word"] == "fine"
    (asked,) = kit.asked
    assert (asked.role, asked.answer, asked.system, asked.user) == (
        "judge",
        Opinion,
        "Judge.",
        "How is it?",
    )


async def test_a_script_that_does_not_fit_fails_the_test_and_not_the_task() -> None:
    """Too short, or of another class."""
    with pytest.raises(AssertionError, match="no answer left"):
        await run_task(curious(uses=("llm",)), "judge", {})
    with pytest.raises(AssertionError, match="asks 'judge' for a Opinion"):
        await run_task(curious(uses=("llm",)), "judge", {}, llm=[Question()])


@pytest.mark.parametrize(
    ("task_name", "cure"),
    [
        ("judge", "uses=('llm',)"),
        ("tell_time", "uses=('clock',)"),
        ("recall_talk", '@agent.task(remember="user") or remember=False'),
        ("name_user", '@agent.task(remember="user") or remember=False'),
    ],
)
async def test_undeclared_access_is_refused_with_the_cure(
    task_name: str, cure: str
) -> None:
    """A shared answer must depend on nothing but its parameters."""
    report = await run_task(
        curious(attempts=1), task_name, {}, user_id="ann", conversation=["Hello"]
    )
    assert report.status == "failed"
    assert report.error is not None
    assert report.error.type == "UndeclaredAccess"
    assert cure in report.error.message


async def test_a_shared_task_does_not_see_who_asks_in_its_assignment() -> None:
    """The assignment is there, without the fields that tell a person."""
    report = await run_task(
        curious(), "show_user", {}, user_id="ann", conversation=["Hello"]
    )
    assert report.result == [None, None, "show_user"]


@pytest.mark.parametrize("remember", ["user", False])
async def test_declared_access_gives_what_was_declared(remember: Any) -> None:
    """Conversation, user and clock, for a task that says so."""
    agent = curious(uses=("clock",), remember=remember)
    said = ["one", "two", "three"]
    talk = await run_task(agent, "recall_talk", {}, user_id="ann", conversation=said)
    assert talk.result == ["person: two", "person: three"]
    assert (await run_task(agent, "name_user", {}, user_id="ann")).result == [
        "ann",
        "ann",
        None,
    ]
    moment = datetime(2030, 5, 1, tzinfo=UTC)
    assert (
        await run_task(agent, "tell_time", {}, user_id="ann", now=moment)
    ).result == moment.isoformat()
    assert (await run_task(agent, "recall_talk", {}, user_id="ann")).result == []


def reader(remember: Any) -> Agent:
    """Return an agent whose task reads what is remembered of whoever asks."""
    agent = Agent("Reader")

    @agent.task(remember=remember)
    async def read(question: Question, context: Context) -> str:
        """Show the documents as a prompt would hold them."""
        return await context.documents.rendered(
            "resource_user_food_prefs", budget_tokens=200
        )

    return agent


FOOD: Any = {
    "resource_user_food_prefs": {
        "food": {"likes": [{"item": "eggs", "display": "Eggs"}]}
    }
}


async def test_a_task_may_read_the_documents_of_who_asks() -> None:
    kit = AgentKit(reader("user"), documents=FOOD)
    report = await kit.run("read", {}, user_id="ann")
    assert '"Eggs"' in report.result
    assert await kit.services.documents.reads("ann") == {
        ("resource_user_food_prefs", "food.likes.eggs"): NOW
    }
    assert (await run_task(reader(False), "read", {}, user_id="ann")).result == ""


async def test_progress_is_recorded_and_cut_to_its_range() -> None:
    """Neither a fraction out of range fails a task, nor a text that the server would end the connection over."""
    agent = Agent("Slow")

    @agent.task
    async def work(question: Question, context: Context) -> None:
        """Tell progress."""
        await context.progress(0.5, "half")
        await context.progress(1.0000001)
        await context.progress(-1)
        await context.progress(float("nan"))
        await context.progress(None, "who knows")
        await context.progress(1.0, "\u00e4" * 2_000_000)

    kit = AgentKit(agent)
    report = await kit.run("work", {})
    assert (report.status, report.result) == ("completed", None)
    assert [told.fraction for told in kit.progress] == [0.5, 1.0, 0.0, None, None, 1.0]
    assert (kit.progress[0].text, kit.progress[0].task_id, kit.progress[0].at) == (
        "half",
        report.task_id,
        NOW,
    )
    assert kit.progress[-1].text == "\u00e4" * 4_000


async def test_a_wish_to_stop_reaches_a_plain_function_in_its_thread() -> None:
    """It looks at `cancelled` now and then and returns."""
    agent = Agent("Loop")
    started = asyncio.Event()
    loop = asyncio.get_running_loop()

    @agent.task
    def spin(question: Question, context: Context) -> bool:
        """Run until somebody wishes otherwise."""
        loop.call_soon_threadsafe(started.set)
        while not context.cancelled:
            pass
        return True

    task = agent.tasks["spin"]
    kit = AgentKit(agent)
    order = kit._read("spin", {}, None, "use", 1)
    context = Context(task, order.assignment, kit.services)  # type: ignore[arg-type]  # a readable order has one
    running = asyncio.create_task(task.run(Question(), context))
    async with asyncio.timeout(30):
        await started.wait()
        context.request_stop()
        assert await running == b"true"


async def test_the_deadline_of_a_task_bounds_its_questions_to_a_model() -> None:
    left: list[float | None] = []

    class Watching(ScriptedLlm):
        async def ask(self, role: str, answer: Any, **said: Any) -> Any:
            left.append(said["deadline_s"])
            return await super().ask(role, answer, **said)

    agent = curious(uses=("llm",))
    task = agent.tasks["judge"]
    fine = Opinion(reasoning="short", word="fine")
    services: Services = KitServices(Watching([fine, fine, fine]), NOW)
    order = AgentKit(agent)._read("judge", {}, None, "use", 1)
    for deadline in (
        None,
        NOW + timedelta(seconds=9),
        (NOW + timedelta(seconds=9)).replace(tzinfo=None),
    ):
        assignment = order.assignment.model_copy(update={"deadline": deadline})  # type: ignore[union-attr]  # it has
        await task.run(Question(), Context(task, assignment, services))
    assert left == [None, 9.0, 9.0]


def phases() -> Agent:
    """Return an agent whose tasks are phases: one by its parameters alone, one on its session."""
    agent = Agent("Phases")

    @agent.task(remember="shared")
    async def measure(question: Question) -> dict[str, int]:
        """Measure a text."""
        return {"letters": len(question.text), "words": len(question.text.split())}

    @agent.task(remember=False)
    async def compare(question: Question, context: Context) -> bool:
        """Compare a text with what was measured."""
        measured = await context.session.get("measure:letters", default=0)
        await context.session.set("compare:seen", measured)
        if context.attempt == 1:
            raise ConnectionError("once more")
        return isinstance(measured, int) and measured < len(question.text)

    return agent


async def test_a_task_may_be_tested_as_a_phase() -> None:
    kit = AgentKit(
        phases(), session={"measure:letters": 3}, phase="compare", writes=["results"]
    )
    assert (await kit.run("compare", {"text": "four"})).status == "completed"
    assert await kit.entries() == {
        "compare:results": True,
        "compare:seen": 3,
        "measure:letters": 3,
    }
    # It ran twice, and used the entry once.
    hits = {
        entry.key: entry.hits
        for entry in await kit.services.sessions.entries("session-1")
    }
    assert (hits["measure:letters"], kit.services.session_hits) == (1, 2)


@pytest.mark.parametrize(
    ("remember", "user", "error"),
    [("shared", "ann", "UndeclaredAccess"), (False, None, "InvalidInput")],
)
async def test_documents_are_somebodys(
    remember: Any, user: str | None, error: str
) -> None:
    """A shared answer must not depend on them, and without a name there are none to read."""
    report = await run_task(reader(remember), "read", {}, user_id=user, documents=FOOD)
    assert report.error is not None
    assert report.error.type == error
