"""OpenAI's own client and that of pydantic-ai hold the same conversation with our door, streamed or whole."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import openai
import pydantic_ai
import pytest
from pydantic import BaseModel
from pydantic_ai.exceptions import ContentFilterError, ModelAPIError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    UserPromptPart,
)
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from tests.acceptance.system import AGENTS, BUDGET, running_system

BUDGETED = "Check my budget: limit 50000, spent 42000, history [5000, 7000, 8000, 6000]"
INCOMPLETE = "Check my budget: limit 50000, history [5000, 7000]"
SYSTEM = "You are a helpful assistant."


class Anomaly(BaseModel):
    """An unusual period."""

    value: float
    index: int


class State(BaseModel):
    """The result of the budget agent, as a client declares it."""

    remaining: float
    spending_rate: float
    overshoot_risk: bool
    predicted_spending: float
    anomalies: list[Anomaly]
    recommendations: list[str]


class Mood(BaseModel):
    """A result that no agent has."""

    mood: str


class Refusal(Exception):
    """The door refused the request; the argument is the code of the error."""


#: Asks the last of some texts, of which every second one was an answer; the result fits the class, if there is one.
Say = Callable[..., Awaitable[Any]]


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a system for all tests here, and return the address of the door."""
    with running_system(tmp_path_factory.mktemp("chat_clients")) as system:
        worker = system.worker(
            BUDGET, str(AGENTS / "teller.py"), llm_base_url="", llm_api_key=""
        )
        supervisor = system.supervisor(llm_base_url="", llm_api_key="")
        worker.ready()
        yield f"{supervisor.ready().api}/v1"


def messages_of(texts: tuple[str, ...]) -> list[Any]:
    """Return *texts* as OpenAI's messages, after a system prompt."""
    said = [
        {"role": ("user", "assistant")[place % 2], "content": text}
        for place, text in enumerate(texts)
    ]
    return [{"role": "system", "content": SYSTEM}, *said]


@asynccontextmanager
async def official(door: str, *, is_streamed: bool) -> AsyncIterator[Say]:
    """Yield how OpenAI's client asks."""
    client = openai.AsyncOpenAI(base_url=door, api_key="none", max_retries=0)

    async def say(*texts: str, form: type[BaseModel] | None = None) -> Any:
        asked: dict[str, Any] = {"model": "tasklore", "messages": messages_of(texts)}
        if form is not None:
            asked["response_format"] = form
        try:
            if is_streamed:
                async with client.chat.completions.stream(**asked) as stream:
                    whole: Any = await stream.get_final_completion()
            else:
                whole = await client.chat.completions.parse(**asked)
        except openai.APIError as error:
            raise Refusal(error.code) from error
        message = whole.choices[0].message
        return message.refusal or (message.content if form is None else message.parsed)

    yield say
    await client.close()


@asynccontextmanager
async def of_pydantic_ai(door: str, *, is_streamed: bool) -> AsyncIterator[Say]:
    """Yield how pydantic-ai's client asks."""
    client = openai.AsyncOpenAI(base_url=door, api_key="none", max_retries=0)
    model = OpenAIChatModel("tasklore", provider=OpenAIProvider(openai_client=client))

    async def say(*texts: str, form: type[BaseModel] | None = None) -> Any:
        output: Any = str if form is None else pydantic_ai.NativeOutput(form)
        agent = pydantic_ai.Agent(model, instructions=SYSTEM, output_type=output)
        history: list[ModelMessage] = [
            ModelResponse([TextPart(text)])
            if place % 2
            else ModelRequest([UserPromptPart(text)])
            for place, text in enumerate(texts[:-1])
        ]
        try:
            if is_streamed:
                async with agent.run_stream(
                    texts[-1], message_history=history
                ) as stream:
                    return await stream.get_output()
            return (await agent.run(texts[-1], message_history=history)).output
        except ModelAPIError as error:
            raise Refusal(error.provider_error_code) from error
        except ContentFilterError as error:
            return str(error)

    yield say
    await client.close()


@pytest.mark.parametrize("client", [official, of_pydantic_ai])
@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
async def test_one_conversation_is_held_by_each_client(
    door: str, client: Any, *, is_streamed: bool
) -> None:
    """A system prompt, words, history, a tool that is called, JSON by a schema, a question back, and a misfit."""
    async with client(door, is_streamed=is_streamed) as say:
        words = await say(BUDGETED)
        assert "Remaining: 8,000" in words
        assert "spent 45,000" in await say(BUDGETED, words, "the same with 45k spent")
        assert "1:4é" in await say("tell me a tale, words 5")
        state = await say(BUDGETED, form=State)
        assert (state.remaining, state.spending_rate) == (8_000, 6_500)
        again = await say(
            BUDGETED, state.model_dump_json(), "the same with 45k spent", form=State
        )
        assert again.remaining == 5_000
        question = "What is the spent amount (what has been spent so far)?"
        assert question in await say(INCOMPLETE, form=State)
        filled = await say(INCOMPLETE, question, "42000", form=State)
        assert filled.remaining == 8_000
        with pytest.raises(Refusal, match="result_does_not_fit"):
            await say(BUDGETED, form=Mood)


async def test_what_is_not_read_is_named_in_a_header_or_refused(door: str) -> None:
    """Also of a stream; a conversation of people has no such header, and is served where handling is to be strict."""
    strict = {"Prefer": "respond-async, handling=strict"}
    async with httpx2.AsyncClient(base_url=door, timeout=30) as http:
        for more in ({}, {"stream": True}):
            asked = {"model": "tasklore", "messages": messages_of((BUDGETED,)), **more}
            assert (await http.post("/chat/completions", json=asked)).headers[
                "X-Tasklore-Unread"
            ] == "system"
            refused = await http.post("/chat/completions", json=asked, headers=strict)
            error = refused.json()["error"]
            assert (refused.status_code, error["code"], error["param"]) == (
                400,
                "unsupported_content",
                "messages",
            )
            assert "system are not read" in error["message"]
            asked["messages"] = asked["messages"][1:]
            served = await http.post("/chat/completions", json=asked, headers=strict)
            assert (served.status_code, served.headers.get("X-Tasklore-Unread")) == (
                200,
                None,
            )


async def test_an_object_and_the_answers_of_several_tasks_are_json(door: str) -> None:
    """Of one task its result, of several a list, which is no object."""
    async with httpx2.AsyncClient(base_url=door, timeout=30) as http:

        async def answer(text: str, form: dict[str, Any]) -> httpx2.Response:
            asked = {
                "model": "tasklore",
                "messages": [{"role": "user", "content": text}],
                "response_format": form,
            }
            return await http.post("/chat/completions", json=asked)

        two = "limit 900, spent 350 and then limit 1000, spent 400"
        one = await answer(BUDGETED, {"type": "json_object"})
        assert (
            json.loads(one.json()["choices"][0]["message"]["content"])["remaining"]
            == 8_000
        )
        refused = (await answer(two, {"type": "json_object"})).json()["error"]
        assert (refused["code"], refused["param"]) == (
            "result_does_not_fit",
            "response_format",
        )
        listed = {
            "type": "json_schema",
            "json_schema": {"name": "all", "schema": {"type": "array"}},
        }
        several = json.loads(
            (await answer(two, listed)).json()["choices"][0]["message"]["content"]
        )
        assert [one["remaining"] for one in several] == [550, 600]
