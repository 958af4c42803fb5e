"""Agents of pydantic-ai in the kit: steps, declared tools, limits, hostile models, conversations."""

import asyncio
import time
from collections.abc import Awaitable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pydantic_ai
import pytest
from pydantic import BaseModel
from pydantic_ai import ModelMessage, UsageLimits
from pydantic_ai.messages import (
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from tasklore import Agent, Context, Parameters
from tasklore.contracts.errors import CallFailed
from tasklore.contracts.messages import ChatTurn
from tasklore.workers.pydantic_agents import (
    ASKS,
    WRITES,
    Prompt,
    agent_tool,
    read_conversation,
    run,
    serve,
    task_tool,
)
from tasklore.workers.testing import AgentKit

Call = tuple[str, dict[str, Any]]


class Model:
    """A model that calls tools in rounds and then says "done"; `asked` has the messages of each request."""

    def __init__(self, *rounds: Sequence[Call], says: str = "done") -> None:
        self.rounds = rounds
        self.says = says
        self.asked: list[list[ModelMessage]] = []

    def answer(self, messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        """Return the calls of the next round."""
        self.asked.append(list(messages))
        number = sum(isinstance(message, ModelResponse) for message in messages)
        if number < len(self.rounds):
            return ModelResponse(
                [
                    ToolCallPart(name, arguments)
                    for name, arguments in self.rounds[number]
                ]
            )
        return ModelResponse([TextPart(self.says)])

    def agent(self, **more: Any) -> pydantic_ai.Agent[Any, Any]:
        """Return an agent with this model."""
        return pydantic_ai.Agent(FunctionModel(self.answer), name="clerk", **more)

    @property
    def shown(self) -> list[str]:
        """The results of tools that the last request showed."""
        parts = [part for message in self.asked[-1] for part in message.parts]
        return [
            str(part.content)
            for part in parts
            if isinstance(part, ToolReturnPart | RetryPromptPart)
        ]


async def ask(
    agent: pydantic_ai.Agent[Any, Any],
    *,
    fails: int = 0,
    answers: Sequence[bool] = (),
    remember: Any = False,
    **options: Any,
) -> tuple[Any, AgentKit]:
    """Return the report of a task that runs *agent*, and fails in its first *fails* runs after the agent is done."""
    served = Agent("ClerkAgent")

    @served.task(
        uses=("llm",),
        remember=remember,
        **({"remember_for": timedelta(1)} if remember else {}),
    )
    async def work(prompt: Prompt, context: Context) -> Any:
        """Run the agent."""
        result = await run(agent, prompt.prompt, context, **options)
        if context.attempt <= fails:
            raise ConnectionResetError("after the agent")
        return result.output

    kit = AgentKit(served, answers=answers)
    return await kit.run("work", {"prompt": "go"}), kit


async def test_a_later_run_asks_no_model_and_calls_no_tool_again() -> None:
    """It reads all from the journal, its usage is nothing, and the answer is the same."""
    calls: list[int] = []
    model = Model(
        [("look", {"number": 1}), ("look", {"number": 2})], [("look", {"number": 3})]
    )
    agent = model.agent()

    @agent.tool_plain
    async def look(number: int) -> str:
        calls.append(number)
        return f"saw {number}"

    report, kit = await ask(agent, fails=2)
    assert (report.status, report.result) == ("completed", "done")
    assert (calls, len(model.asked), len(kit.raised)) == ([1, 2, 3], 3, 2)
    assert model.shown == ["saw 1", "saw 2", "saw 3"]
    assert report.usage.input_tokens == 0


async def test_tokens_of_requests_that_were_sent_are_on_the_report() -> None:
    """Of all of a run, and none for what the journal had."""
    model = Model([("look", {})])
    agent = model.agent(tools=[look])
    report, _ = await ask(agent)
    assert report.usage.input_tokens > 50
    assert report.usage.output_tokens > 0


async def look() -> str:
    """Look."""
    return "saw"


async def test_a_changed_prompt_begins_anew_where_it_differs() -> None:
    """The request is another step, so that it and all later ones are taken again."""
    model = Model([("look", {})])
    agent = model.agent(tools=[look])
    seen: list[int] = []

    @agent.instructions
    def instruct() -> str:
        seen.append(1)
        return "old" if len(model.asked) < 2 else "new"

    report, _ = await ask(agent, fails=1)
    assert report.status == "completed"
    assert len(model.asked) == 4


async def test_a_tool_that_writes_is_called_once_for_the_same_arguments() -> None:
    """A model that repeats a call gets the first result, in the same round and in later ones."""
    calls: list[str] = []
    model = Model(
        [("send", {"to": "ana"}), ("send", {"to": "ana"}), ("send", {"to": "bo"})],
        [("send", {"to": "ana"})],
    )
    agent = model.agent()

    @agent.tool_plain(metadata=WRITES)
    async def send(to: str) -> str:
        calls.append(to)
        await asyncio.sleep(0)
        return f"sent {to} {calls.count(to)}"

    report, _ = await ask(agent, fails=1)
    assert report.status == "completed"
    assert sorted(calls) == ["ana", "bo"]
    assert model.shown == ["sent ana 1", "sent ana 1", "sent bo 1", "sent ana 1"]


async def test_two_runs_of_an_agent_in_one_task_share_what_was_written() -> None:
    """The second one gets the result of the first; another agent with a tool of that name has its own."""
    calls: list[str] = []

    def make(name: str) -> pydantic_ai.Agent[Any, Any]:
        agent: pydantic_ai.Agent[Any, Any] = pydantic_ai.Agent(
            FunctionModel(Model([("send", {})]).answer), name=name
        )

        @agent.tool_plain(metadata=WRITES)
        async def send() -> str:
            calls.append(name)
            return "sent"

        return agent

    first = make("first")
    second = make("second")
    served = Agent("ClerkAgent")

    @served.task(uses=("llm",))
    async def work(prompt: Prompt, context: Context) -> list[str]:
        """Run two agents, one of them twice."""
        said = [
            (await run(agent, prompt.prompt, context)).output
            for agent in (first, first, second)
        ]
        if context.attempt == 1:
            raise ConnectionResetError("once")
        return said

    report = await AgentKit(served).run("work", {"prompt": "go"})
    assert report.result == ["done"] * 3
    assert calls == ["first", "second"]


@pytest.mark.parametrize("found", [None, "sent before", "nothing to look it up"])
async def test_a_writing_call_that_failed_in_its_middle_is_looked_up(
    found: str | None,
) -> None:
    """Found: that is the result. Not made: it is made now. Nothing to look it up: the model is told that."""
    calls: list[str] = []
    model = Model([("send", {"to": "ana"})])
    agent = model.agent()

    @agent.tool_plain
    async def send(to: str) -> str:
        calls.append(to)
        if len(calls) == 1:
            raise ConnectionResetError("between effect and result")
        return "sent now"

    async def find(to: str) -> str | None:
        return found

    writes: Any = ("send",) if found == "nothing to look it up" else {"send": find}
    report, kit = await ask(agent, writes=writes, fails=3)
    assert report.status == "completed"
    assert len(kit.raised) == 3
    if found == "nothing to look it up":
        assert "it is not known whether its effect was made" in model.shown[0]
        assert len(calls) == 1
    else:
        assert model.shown == [found or "sent now"]
        assert len(calls) == (2 if found is None else 1)


async def test_a_tool_that_asks_is_called_with_consent_alone() -> None:
    """Without somebody to ask, and after a no, the model is told so; the answer of the person is a step."""
    calls: list[str] = []
    questions: list[str] = []
    model = Model([("erase", {"name": "a"}), ("erase", {"name": "b"})])
    agent = model.agent()

    @agent.tool_plain(metadata=ASKS)
    async def erase(name: str) -> str:
        calls.append(name)
        return f"erased {name}"

    async def approve(tool: str, arguments: dict[str, Any]) -> bool:
        questions.append(f"{tool} {arguments['name']}")
        return arguments["name"] == "a"

    await ask(agent, remember="shared")
    assert calls == []
    assert all("asks a person first" in shown for shown in model.shown)
    await ask(agent, approve=approve, fails=1)
    assert (calls, questions) == (["a"], ["erase a", "erase b"])
    assert "a person refused" in model.shown[1]


async def test_a_task_waits_for_the_person_that_a_tool_asks() -> None:
    """Each call is a question of its own; a tool with effects beside it is not cut off and called once."""
    calls: list[str] = []
    model = Model(
        [("note", {"text": "x"}), ("erase", {"name": "a"})], [("erase", {"name": "b"})]
    )
    agent = model.agent()

    @agent.tool_plain
    async def erase(name: str) -> str:
        calls.append(name)
        return f"erased {name}"

    @agent.tool_plain(metadata=WRITES)
    async def note(text: str) -> str:
        await asyncio.sleep(0.05)
        calls.append(text)
        return "noted"

    report, kit = await ask(
        agent, asks={"erase": "role:finance"}, answers=[True, False]
    )
    assert report.result == "done"
    assert sorted(calls) == ["a", "x"]
    assert kit.questions == [
        f'clerk wants to call erase\narguments: {{"name":"{name}"}}' for name in "ab"
    ]
    assert "a person refused" in model.shown[-1]
    assert len(model.asked) == 3


async def test_tools_that_a_model_calls_at_once_ask_at_once() -> None:
    """The run ends once, with both questions; the model is not asked again for them."""
    calls: list[str] = []
    model = Model([("erase", {"name": "a"}), ("erase", {"name": "b"})])
    agent = model.agent()

    @agent.tool_plain
    async def erase(name: str) -> str:
        calls.append(name)
        return f"erased {name}"

    report, kit = await ask(
        agent, asks={"erase": "role:finance"}, answers=[True, False]
    )
    assert (report.result, report.attempt, calls) == ("done", 2, ["a"])
    assert len(kit.questions) == len(model.asked) == 2


async def test_an_endless_loop_of_tools_ends_at_the_limit() -> None:
    """50 requests unless the limits say otherwise; the task fails at once, as another run would read the same."""
    model = Model(*[[("look", {})]] * 100)
    report, kit = await ask(model.agent(tools=[look]))
    assert (report.status, report.error.type, len(model.asked)) == (
        "failed",
        "GiveUp",
        50,
    )
    assert "ended by its limits" in str(kit.raised[0])
    model = Model(*[[("look", {})]] * 100)
    report, _ = await ask(
        model.agent(tools=[look]), limits=UsageLimits(request_limit=3)
    )
    assert (report.error.type, len(model.asked)) == ("GiveUp", 3)


async def test_a_model_that_calls_unknown_tools_is_told_and_then_given_up() -> None:
    """It gets the names of the tools that there are."""
    model = Model(*[[("fly", {})]] * 9)
    report, kit = await ask(model.agent(tools=[look]))
    assert (report.status, report.error.type) == ("failed", "GiveUp")
    assert "came to no answer" in str(kit.raised[0])
    assert "look" in model.shown[0]


class Verdict(BaseModel):
    """An answer with a shape."""

    score: int


async def test_a_structured_answer_that_does_not_fit_is_sent_back_with_its_fault() -> (
    None
):
    """The second answer fits; a run after a crash reads both from the journal."""
    asked = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked.append(messages)
        score = "much" if len(messages) == 1 else 7
        return ModelResponse(
            [ToolCallPart(info.output_tools[0].name, {"score": score})]
        )

    agent = pydantic_ai.Agent(FunctionModel(answer), name="judge", output_type=Verdict)
    report, _ = await ask(agent, fails=1)
    assert report.result == {"score": 7}
    assert len(asked) == 2


async def test_a_result_of_nine_megabytes_is_refused_with_its_size() -> None:
    """A request would not take it either; the message names the tool and the limit."""
    model = Model([("read", {})])
    agent = model.agent()

    @agent.tool_plain
    async def read() -> str:
        return "x" * 9_000_000

    report, kit = await ask(agent)
    assert report.status == "rejected"
    assert "tool clerk.read" in str(kit.raised[0])
    assert "9,000,0" in str(kit.raised[0])


async def test_a_tool_that_raises_lets_the_task_run_again_from_there() -> None:
    """What was done before is not done again."""
    calls: list[str] = []
    model = Model([("look", {})], [("break_once", {})])
    agent = model.agent()

    @agent.tool_plain
    async def look() -> str:
        calls.append("look")
        return "saw"

    @agent.tool_plain
    async def break_once() -> str:
        calls.append("break")
        if calls.count("break") == 1:
            raise OSError("disk")
        return "fine"

    report, kit = await ask(agent)
    assert (report.status, calls) == ("completed", ["look", "break", "break"])
    assert (len(model.asked), len(kit.raised)) == (3, 1)


async def test_an_agent_is_served_in_five_lines() -> None:
    """The task `ask` takes a prompt and images by their address; any model of pydantic-ai may stand in for its own."""
    clerk = pydantic_ai.Agent(name="clerk", description="Writes letters.")
    agent = serve(clerk, "ClerkAgent")
    assert agent.tasks["ask"].description == "Writes letters."
    seen: list[Any] = []

    def answer(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        seen.extend(messages[0].parts[0].content)  # type: ignore[union-attr, arg-type]
        return ModelResponse([TextPart("a cat")])

    with clerk.override(model=FunctionModel(answer)):
        parameters = {
            "prompt": "what is it?",
            "images": ["https://example.org/cat.png"],
        }
        report = await AgentKit(agent).run("ask", parameters)
    assert report.result == "a cat"
    assert [getattr(part, "url", part) for part in seen] == [
        "what is it?",
        "https://example.org/cat.png",
    ]
    with clerk.override(model=TestModel(custom_output_text="hello")):
        assert (await AgentKit(agent).run("ask", {"prompt": "hi"})).result == "hello"


async def test_an_agent_as_a_tool_has_steps_of_its_own() -> None:
    """So that a tool of its that writes is still called once."""
    calls: list[str] = []
    inner_model = Model([("send", {})], says="inner done")
    outer_model = Model([("ask_inner", {"message": "do it"})])
    inner: pydantic_ai.Agent[Any, Any] = pydantic_ai.Agent(
        FunctionModel(inner_model.answer), name="inner"
    )

    @inner.tool_plain(metadata=WRITES)
    async def send() -> str:
        calls.append("send")
        return "sent"

    served = Agent("OuterAgent")
    tool = agent_tool(inner, context_of=lambda ctx: ctx.deps)
    outer: pydantic_ai.Agent[Any, Any] = outer_model.agent(
        tools=[tool], deps_type=Context
    )

    @served.task(uses=("llm",))
    async def work(prompt: Prompt, context: Context) -> Any:
        """Run the outer agent."""
        result = await run(outer, prompt.prompt, context, deps=context)
        if context.attempt == 1:
            raise ConnectionResetError("once")
        return result.output

    report = await AgentKit(served).run("work", {"prompt": "go"})
    assert report.result == "done"
    assert (calls, len(inner_model.asked), len(outer_model.asked)) == (
        ["send"],
        1 + 1,
        2,
    )
    assert outer_model.shown == ["inner done"]


async def test_the_task_of_another_agent_is_a_tool() -> None:
    """Its parameters are the schema; a fault in them goes back to the model, and so does the child's failure."""

    def count(parameters: Any) -> int:
        if parameters["text"] == "":
            raise CallFailed("nothing to count", "failed")
        return len(parameters["text"].split())

    model = Model(
        [("count", {"words": 1})], [("count", {"text": "a b"}), ("count", {"text": ""})]
    )
    tool = task_tool(
        "Counter.count",
        Text,
        context_of=lambda ctx: ctx.deps,
        description="Count words.",
    )
    agent = model.agent(tools=[tool], deps_type=Context)
    served = Agent("OuterAgent")

    @served.task(uses=("llm",))
    async def work(prompt: Prompt, context: Context) -> Any:
        """Run the agent."""
        result = await run(agent, prompt.prompt, context, deps=context)
        if context.attempt == 1:
            raise ConnectionResetError("once")
        return result.output

    kit = AgentKit(served, calls={"Counter.count": count})
    report = await kit.run("work", {"prompt": "go"})
    assert report.result == "done"
    assert "text is needed" in model.shown[0]
    assert model.shown[1] == "2"
    assert "nothing to count" in model.shown[2]


class Text(Parameters):
    """A text."""

    text: str


async def test_turns_of_a_conversation_become_messages() -> None:
    """Oldest first, by speaker."""
    model = Model(says="both")
    agent = model.agent()
    served = Agent("TalkAgent")

    @served.task(uses=("llm",))
    async def talk(prompt: Prompt, context: Context) -> str:
        """Answer in a conversation."""
        return str(
            (
                await run(
                    agent,
                    prompt.prompt,
                    context,
                    history=await read_conversation(context),
                )
            ).output
        )

    at = datetime(2026, 1, 1, tzinfo=UTC)
    reply = ChatTurn(
        turn_id="t2",
        conversation_id="conversation-1",
        speaker="assistant",
        text="tea",
        at=at,
    )
    report = await AgentKit(served, conversation=["tea or coffee?", reply]).run(
        "talk", {"prompt": "and?"}
    )
    assert report.result == "both"
    kinds = [
        (type(message).__name__, message.parts[0].content) for message in model.asked[0]
    ]  # type: ignore[union-attr]
    assert kinds == [
        ("ModelRequest", "tea or coffee?"),
        ("ModelResponse", "tea"),
        ("ModelRequest", "and?"),
    ]


async def test_the_text_of_an_answer_is_streamed() -> None:
    """A later run, whose output begins anew, has the text from the journal in one piece."""
    pieces: list[str] = []

    async def stream(_messages: list[ModelMessage], _info: AgentInfo) -> Any:
        for word in ("a ", "long ", "answer"):
            yield word

    async def keep(text: str) -> None:
        pieces.append(text)

    agent: pydantic_ai.Agent[Any, Any] = pydantic_ai.Agent(
        FunctionModel(stream_function=stream), name="writer"
    )
    report, _ = await ask(agent, on_text=keep, fails=1)
    assert report.result == "a long answer"
    assert pieces == ["a ", "long ", "answer", "a long answer"]


async def test_a_timeout_of_whoever_hears_the_text_is_not_the_models() -> None:
    """A run that shows its text has no limit for the whole answer, which could have passed."""

    async def stream(_messages: list[ModelMessage], _info: AgentInfo) -> Any:
        yield "a word"

    async def lose(_text: str) -> None:
        raise TimeoutError("the page does not read")

    agent: pydantic_ai.Agent[Any, Any] = pydantic_ai.Agent(
        FunctionModel(stream_function=stream), name="writer"
    )
    _, kit = await ask(agent, on_text=lose)
    assert {f"{type(one).__name__}: {one}" for one in kit.raised} == {
        "TimeoutError: the page does not read"
    }


async def test_a_step_of_an_agent_costs_little_beside_its_work() -> None:
    """Seconds of CPU beside those of the same agent that journals nothing; the journal is in memory."""
    model = Model(*[[("look", {})]] * 10)
    agent = model.agent(tools=[look])

    async def cpu_s(running: Awaitable[Any]) -> float:
        began = time.process_time()
        await running
        return time.process_time() - began

    await ask(agent)
    bare, journaled = [], []
    for _ in range(5):
        bare.append(await cpu_s(agent.run("go")))
        journaled.append(await cpu_s(ask(agent)))
    assert min(journaled) < 4 * min(bare)
