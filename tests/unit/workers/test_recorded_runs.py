"""Whatever a run sees, does and hears is among its messages, in order; noted where all of it passes, not by agents."""

from collections.abc import Callable
from typing import Any

import pydantic_ai
import pytest
from pydantic import BaseModel
from pydantic_ai.messages import (
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from tasklore import Agent, Context, Parameters
from tasklore.contracts.errors import CallFailed, LlmCutOff, RetryLater
from tasklore.contracts.run_messages import RunMessage
from tasklore.workers.pydantic_agents import run
from tasklore.workers.testing import AgentKit
from tests.unit.workers.recorded import SECRET, Shelf

FOOD = {
    "resource_user_food_prefs": {"likes": [{"id": "a1", "name": "omelettes"}]},
}
agent = Agent("SeenAgent")


class Case(Parameters):
    """What the agent is told."""

    word: str = "hi"


class Verdict(BaseModel):
    """What a model answers."""

    reasoning: str
    text: str


def kit(shelf: Shelf, **given: Any) -> AgentKit:
    """Return a kit whose runs are recorded."""
    made = AgentKit(agent, **given)
    made.services.recording = shelf.recording
    return made


def kinds(shelf: Shelf) -> list[tuple[str, str]]:
    return [(one.kind, one.name) for one in shelf.messages]


def of_kind(shelf: Shelf, kind: str) -> list[RunMessage]:
    return [one for one in shelf.messages if one.kind == kind]


@agent.task(remember=False, uses=("llm",))
async def judge(case: Case, context: Context) -> str:
    """Judge, with all that there is."""
    block = await context.memory.block("omelettes")
    told = await context.call("ChildAgent", "look", at=case.word)
    said = await context.ask_person("Is {word} right?", word=case.word)
    answer = await context.llm.ask(
        "writer", Verdict, system="Judge.", user=f"{block} {told} {said.note}"
    )
    return answer.text


async def test_prompts_memory_children_and_persons_are_noted() -> None:
    """Each with what it was given and what came back."""
    shelf = Shelf()
    made = kit(
        shelf,
        documents=FOOD,
        calls={"ChildAgent.look": "seen"},
        answers=[{"approved": True, "note": f"the key is {SECRET}"}],
        llm=[Verdict(reasoning="r", text="yes")],
    )
    report = await made.run("judge", {"word": "hi"}, user_id="ann")
    assert (report.status, report.result) == ("completed", "yes")
    last = [one for one in shelf.messages if one.run == shelf.messages[-1].run]
    assert [one.kind for one in last] == [
        "parameters",
        "memory",
        "child",
        "person",
        "prompt",
        "answer",
        "result",
    ]
    memory, child, person, prompt, answer = last[1:6]
    assert memory.given == "omelettes"
    assert "omelettes" in memory.text
    items = memory.facts["items"]
    assert isinstance(items, list)
    assert str(items[0]).startswith("resource_user_food_prefs likes")
    assert (child.name, child.given) == ("ChildAgent.look", '{"at":"hi"}')
    assert (child.text, child.facts["status"]) == ('"seen"', "completed")
    assert person.given.startswith("Is hi right?")
    assert "the key is ***" in person.text
    assert prompt.text.startswith("[system]\nJudge.\n\n[user]\n")
    assert prompt.facts == {"role": "writer", "instead_of": "writer-model"}
    assert '"text":"yes"' in answer.text
    assert shelf.owners == {"YW5u"}


@agent.task(remember=False)
async def steps(case: Case, context: Context) -> str:
    """Take steps, one of them twice, and fail the first time."""

    async def inner() -> str:
        return f"{case.word} within"

    async def outer(word: str) -> str:
        return await context.step("inner", inner) + word

    async def fail() -> None:
        raise LookupError("no such page")

    found = await context.step("outer", outer, case.word)
    with pytest.raises(LookupError):
        await context.step("fail", fail)
    if context.attempt == 1:
        raise RetryLater("once more")
    return found


async def test_steps_are_noted_with_where_they_came_from() -> None:
    """A part of a step too, one that failed, and one that an earlier run took."""
    shelf = Shelf()
    report = await kit(shelf).run("steps", {"word": "hi"})
    assert report.result == "hi withinhi"
    first = [one for one in shelf.messages if one.run == 1]
    second = [one for one in shelf.messages if one.run == 2]
    assert [(one.kind, one.name) for one in first] == [
        ("parameters", "steps"),
        ("step", "inner"),
        ("step", "outer"),
        ("step", "fail"),
        ("error", ""),
    ]
    assert first[2].given == '"hi"'
    assert first[3].facts["error"] == "LookupError"
    assert first[4].facts["error"] == "RetryLater"
    assert [(one.kind, one.name) for one in second] == [
        ("parameters", "steps"),
        ("step", "outer"),
        ("step", "fail"),
        ("result", ""),
    ]
    assert second[1].facts == {"source": "journal"}
    assert second[1].text == '"hi withinhi"'


@agent.task(remember=False, uses=("llm",))
async def cut(_case: Case, context: Context) -> str:
    """Ask a model that is cut off, and another task that fails."""
    with pytest.raises(LlmCutOff):
        await context.llm.ask("writer", Verdict, system="s", user="u")
    with pytest.raises(CallFailed):
        await context.call("ChildAgent", "look", at="x")
    return "done"


async def test_an_answer_that_did_not_come_is_noted_by_its_error() -> None:
    """Of a model, and of a child."""
    shelf = Shelf()

    lost = CallFailed("ChildAgent.look failed: lost", "failed", "Lost")
    made = kit(shelf, llm=[LlmCutOff("it ended")], calls={"ChildAgent.look": lost})
    assert (await made.run("cut", {})).status == "completed"
    (child,) = of_kind(shelf, "child")
    assert (child.facts["status"], child.facts["error"]) == ("failed", "Lost")
    (error,) = of_kind(shelf, "error")
    assert (error.name, error.facts["error"]) == ("scripted", "LlmCutOff")


Answer = Callable[[list[ModelMessage], AgentInfo], ModelResponse]


def tools_then_text(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    """Think and call a tool, then answer."""
    if any(part.part_kind == "tool-return" for one in messages for part in one.parts):
        return ModelResponse([TextPart("seven")])
    return ModelResponse([ThinkingPart("hm"), ToolCallPart("look", {"at": "sea"})])


reader = pydantic_ai.Agent(
    FunctionModel(tools_then_text), name="reader", instructions="Read."
)


@reader.tool_plain
async def look(at: str) -> str:
    """Look."""
    return f"saw {at}"


@agent.task(remember=False, uses=("llm",))
async def read(case: Case, context: Context) -> str:
    """Read with tools, twice where it fails between."""
    history: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart("before")]),
        ModelResponse([TextPart("I said so")]),
    ]
    image = ImageUrl("https://example.com/sea.png")
    found = await run(reader, [case.word, image], context, history=history)
    if context.attempt == 1:
        raise RetryLater("once more")
    return found.output


async def test_a_request_to_a_model_has_what_is_new_to_it() -> None:
    """The instructions and tools once, the history before it, results of tools; no image, and no answer twice."""
    shelf = Shelf()
    assert (await kit(shelf).run("read", {"word": "go"})).result == "seven"
    first = [one for one in shelf.messages if one.run == 1]
    assert [one.kind for one in first] == [
        "parameters",
        "prompt",
        "answer",
        "tool",
        "prompt",
        "answer",
        "error",
    ]
    assert first[1].text == (
        "[user]\nbefore\n\n[answer]\nI said so\n\n[instructions]\nRead.\n\n[user]\ngo\n"
        "<ImageUrl https://example.com/sea.png>\n\n"
        "[tools]\nlook"
    )
    assert first[2].text == '[thought]\nhm\n\n[calls look]\n{"at":"sea"}'
    assert (first[3].given, first[3].name) == ('{"at":"sea"}', "tool reader.look")
    assert first[4].text == "[tool look]\nsaw sea"
    assert first[5].text == "seven"
    second = [one for one in shelf.messages if one.run == 2]
    assert [one.kind for one in second[1:-1]] == [one.kind for one in first[1:-1]]
    assert {one.facts.get("source") for one in second[1:-1]} == {"journal"}
    assert [one.text for one in second[1:-2]] == [one.text for one in first[1:-2]]


async def test_without_a_recording_nothing_is_noted() -> None:
    """There is no recorder to ask."""
    made = AgentKit(agent)
    assert made.services.recording is None
    assert (await made.run("steps", {"word": "hi"})).result == "hi withinhi"
