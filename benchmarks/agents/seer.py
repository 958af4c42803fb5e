"""An agent whose model is a function: two requests, a tool with a result of 4 KiB, and no network."""

import pydantic_ai
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from tasklore import Agent, Context, Parameters
from tasklore.workers.pydantic_agents import run

#: Characters of the prompt and of the tool's result: a page each.
PROMPT = "Say how far the sea is from here. " * 120
RESULT = "The harbour is 7 km away, and the tide is out. " * 90

agent = Agent("SeerAgent")


class Number(Parameters):
    """Any number."""

    number: int


def answer(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    """Call the tool, then say what it found."""
    is_first = not any(isinstance(one, ModelResponse) for one in messages)
    part = ToolCallPart("look", {"place": "sea"}) if is_first else TextPart("7 km")
    return ModelResponse([part])


seer = pydantic_ai.Agent(FunctionModel(answer), name="seer")


@seer.tool_plain
async def look(place: str) -> str:
    """Look at a place."""
    return f"{place}: {RESULT}"


@agent.task(remember=False, uses=("llm",))
async def see(number: Number, context: Context) -> str:
    """Run the agent."""
    return (await run(seer, f"{number.number} {PROMPT}", context)).output
