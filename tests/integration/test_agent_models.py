"""Models by role against scripted servers: each provider's own form, accounting, errors, limits, cancellation."""

import asyncio
import itertools
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from decimal import Decimal
from typing import Any

import openai
import pydantic_ai
import pytest
from pydantic import BaseModel, SecretStr

from tasklore import Agent, Context
from tasklore.contracts.errors import (
    LlmCutOff,
    LlmError,
    LlmMalformed,
    LlmNotConfigured,
    LlmRateLimited,
    LlmRefused,
    LlmRejected,
    LlmTimeout,
    LlmUnavailable,
)
from tasklore.runtime.models.llm import Llm, LlmRole, LlmSettings, ModelPrice
from tasklore.runtime.models.settings import Provider, parse_roles
from tasklore.workers.pydantic_agents import Prompt, RoleModel, run
from tasklore.workers.testing import AgentKit
from tests.agent_script import CALLS, REQUESTS, next_answer, streaming
from tests.llm_double import (
    Asked,
    Canned,
    ScriptedLlm,
    dropped,
    fault,
    rate_limited,
    raw,
    saying,
    stalled,
)
from tests.llm_questions import Book
from tests.llm_servers import KINDS, Kind, ModelServer

KEY = "sk-test-0123456789abcdef"
PROVIDERS: dict[str, Provider] = {
    "chat": "openai",
    "responses": "openai-responses",
    "claude": "anthropic",
    "gemini": "google",
}
ROLES = {
    name: LlmRole(model="scripted", provider=one, temperature=None)
    for name, one in PROVIDERS.items()
}


def settings_of(model: ScriptedLlm, **more: Any) -> LlmSettings:
    """Return settings by which every provider is the scripted server."""
    root = model.base_url.removesuffix("/v1")
    given = {
        "base_url": model.base_url,
        "api_key": SecretStr(KEY),
        "anthropic_base_url": root,
        "anthropic_api_key": SecretStr(KEY),
        "google_base_url": root,
        "google_api_key": SecretStr(KEY),
        "roles": ROLES,
        "prices": {"scripted": ModelPrice(input=Decimal(1), output=Decimal(10))},
        "max_attempts": 1,
    }
    return LlmSettings(**{**given, **more})


def kit_of(
    agent: pydantic_ai.Agent[Any, Any], llm: Llm, *, streams: bool = False
) -> AgentKit:
    """Return a kit whose one task, `ask`, runs *agent* with the models of *llm*, and emits its text if it *streams*."""
    served = Agent("ClerkAgent")

    @served.task(uses=("llm",))
    async def ask(prompt: Prompt, context: Context) -> object:
        """Run the agent."""
        return (
            await run(
                agent, prompt.prompt, context, on_text=context.emit if streams else None
            )
        ).output

    kit = AgentKit(served)
    kit.services.llm = llm  # type: ignore[assignment] # the real one
    return kit


def add_tools(agent: pydantic_ai.Agent[Any, Any]) -> None:
    """Give *agent* the tools of the script."""

    @agent.tool_plain
    async def look(number: int) -> str:
        return f"saw {number}"

    @agent.tool_plain
    async def send(number: int) -> str:
        return f"sent {number}"


async def test_a_conversation_with_tools_is_held_and_accounted_for() -> None:
    """Six requests, six calls; 100 tokens in and 20 out each, at 1 and 10 dollars a million."""
    async with ScriptedLlm(next_answer) as model, Llm(settings_of(model)) as llm:
        agent = pydantic_ai.Agent(
            RoleModel("chat"), name="clerk", instructions="Be short."
        )
        add_tools(agent)
        report = await kit_of(agent, llm).run("ask", {"prompt": "go"})
    assert report.result == "saw 0 sent 1 saw 2 sent 3 saw 4 sent 5"
    usage = {
        "input_tokens": 600,
        "output_tokens": 120,
        "cost_usd": 0.0018,
        "models": ("scripted",),
    }
    assert report.usage.model_dump() == usage
    assert len(model.requests) == REQUESTS
    first = model.requests[0]
    assert (first.model, first.system, first.user) == ("scripted", "Be short.", "go")
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert first.body["max_completion_tokens"] == 2048
    assert {tool["function"]["name"] for tool in first.body["tools"]} == {
        "look",
        "send",
    }


async def test_the_official_client_holds_the_same_conversation() -> None:
    """The script is no special case of one client."""
    async with ScriptedLlm(next_answer) as model:
        client = openai.AsyncOpenAI(api_key=KEY, base_url=model.base_url, max_retries=0)
        messages: list[Any] = [{"role": "user", "content": "go"}]
        while True:
            said = (
                (
                    await client.chat.completions.create(
                        model="scripted", messages=messages
                    )
                )
                .choices[0]
                .message
            )
            messages.append(said.model_dump(exclude_none=True))
            if not said.tool_calls:
                break
            for call in said.tool_calls:
                number = json.loads(call.function.arguments)["number"]
                verb = {"look": "saw", "send": "sent"}[call.function.name]
                messages.append(
                    {
                        "role": "tool",
                        "tool_call_id": call.id,
                        "content": f"{verb} {number}",
                    }
                )
        await client.close()
    assert said.content == "saw 0 sent 1 saw 2 sent 3 saw 4 sent 5"
    assert sum(len(message.get("tool_calls", ())) for message in messages) == sum(
        map(len, CALLS)
    )


USAGE = {"input_tokens": 100, "output_tokens": 20}
#: By role: the path that is asked, the header with the key, and an answer in the provider's form.
FORMS: dict[str, tuple[str, str, Mapping[str, Any]]] = {
    "responses": (
        "/v1/responses",
        "authorization",
        {
            "id": "resp_1",
            "object": "response",
            "created_at": 0,
            "model": "scripted",
            "status": "completed",
            "output": [
                {
                    "id": "msg_1",
                    "type": "message",
                    "role": "assistant",
                    "status": "completed",
                    "content": [
                        {"type": "output_text", "text": "hello", "annotations": []}
                    ],
                }
            ],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": {
                **USAGE,
                "total_tokens": 120,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens_details": {"reasoning_tokens": 0},
            },
        },
    ),
    "claude": (
        "/v1/messages",
        "authorization",
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "scripted",
            "content": [{"type": "text", "text": "hello"}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": USAGE,
        },
    ),
    "gemini": (
        "/v1beta/models/scripted:generateContent",
        "x-goog-api-key",
        {
            "candidates": [
                {
                    "content": {"role": "model", "parts": [{"text": "hello"}]},
                    "finishReason": "STOP",
                }
            ],
            "usageMetadata": {
                "promptTokenCount": 100,
                "candidatesTokenCount": 20,
                "totalTokenCount": 120,
            },
            "modelVersion": "scripted",
        },
    ),
}
PACKAGES = {"claude": "anthropic", "gemini": "google.genai"}


@pytest.mark.parametrize("role", FORMS)
async def test_a_role_asks_its_provider_in_the_form_of_that(role: str) -> None:
    """Path, header of the key, and tokens; a provider whose package is missing says how to install it."""
    path, header, body = FORMS[role]
    agent = pydantic_ai.Agent(RoleModel(role), name="clerk")
    async with (
        ScriptedLlm(lambda _asked: raw(json.dumps(body).encode())) as model,
        Llm(settings_of(model)) as llm,
    ):
        kit = kit_of(agent, llm)
        report = await kit.run("ask", {"prompt": "hi"})
    if role in PACKAGES and not is_installed(PACKAGES[role]):
        assert "pydantic-ai-slim[" in str(kit.raised[0])
        return
    assert (report.result, report.error) == ("hello", None)
    assert (report.usage.input_tokens, report.usage.output_tokens) == (100, 20)
    assert [asked.path.partition("?")[0] for asked in model.requests] == [path]
    assert KEY in model.requests[0].headers[header]


def calling_tool(role: str, name: str, arguments: Mapping[str, Any]) -> Canned:
    """Answer with a call of a tool, in the form of the provider of *role*."""
    body = json.loads(json.dumps(FORMS[role][2]))
    if role == "claude":
        body |= {
            "content": [
                {"type": "tool_use", "id": "toolu_1", "name": name, "input": arguments}
            ]
        }
        body["stop_reason"] = "tool_use"
    else:
        body["candidates"][0]["content"]["parts"] = [
            {"functionCall": {"name": name, "args": arguments}}
        ]
    return raw(json.dumps(body).encode())


def streaming_text(role: str, *words: str) -> Canned:
    """Answer with *words* as events, in the form of the provider of *role*."""
    body = json.loads(json.dumps(FORMS[role][2]))
    events: list[dict[str, Any]]
    if role == "claude":
        block = {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "text", "text": ""},
        }
        deltas = [{"type": "text_delta", "text": word} for word in words]
        ended = {"stop_reason": "end_turn", "stop_sequence": None}
        events = [
            {
                "type": "message_start",
                "message": body | {"content": [], "stop_reason": None},
            },
            block,
            *(
                {"type": "content_block_delta", "index": 0, "delta": delta}
                for delta in deltas
            ),
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": ended, "usage": USAGE},
            {"type": "message_stop"},
        ]
    else:
        candidates = [
            {"content": {"role": "model", "parts": [{"text": word}]}} for word in words
        ]
        events = [body | {"candidates": [one]} for one in candidates]
        events[-1]["candidates"][0]["finishReason"] = "STOP"
    lines = (
        (f"event: {event['type']}\n" if "type" in event else "")
        + f"data: {json.dumps(event)}\n\n"
        for event in events
    )
    return raw("".join(lines).encode(), content_type="text/event-stream")


@pytest.mark.parametrize("role", PACKAGES)
async def test_each_provider_calls_tools_and_answers_by_a_schema(role: str) -> None:
    """Through its own client: the call, its result in the next request, and the answer as a call that fits."""
    pytest.importorskip(PACKAGES[role])
    agent = pydantic_ai.Agent(RoleModel(role), name="judge", output_type=Verdict)
    add_tools(agent)
    async with ScriptedLlm() as model, Llm(settings_of(model)) as llm:
        model.queue(
            calling_tool(role, "look", {"number": 3}),
            calling_tool(role, "final_result", {"score": 7}),
        )
        report = await kit_of(agent, llm).run("ask", {"prompt": "judge"})
    assert (report.result, report.error) == ({"score": 7}, None)
    assert (report.usage.input_tokens, report.usage.output_tokens) == (200, 40)
    assert "saw 3" in json.dumps(model.requests[1].body)


@pytest.mark.parametrize("role", PACKAGES)
async def test_each_provider_streams_its_text(role: str) -> None:
    pytest.importorskip(PACKAGES[role])
    agent = pydantic_ai.Agent(RoleModel(role), name="writer")
    book = Book()
    async with ScriptedLlm() as model, Llm(settings_of(model), meter=book) as llm:
        model.queue(streaming_text(role, "An ", "ode"))
        kit = kit_of(agent, llm, streams=True)
        report = await kit.run("ask", {"prompt": "an ode"})
    assert (report.result, "".join(str(one.event) for one in kit.emitted)) == (
        "An ode",
        "An ode",
    )
    assert (report.usage.input_tokens, report.usage.output_tokens) == (100, 20)
    assert len(book.first_chunks) == 1


@pytest.mark.parametrize("role", PACKAGES)
async def test_each_provider_that_is_away_is_waited_for(role: str) -> None:
    """Its client repeats nothing by itself."""
    pytest.importorskip(PACKAGES[role])
    agent = pydantic_ai.Agent(RoleModel(role), name="clerk")
    ok = raw(json.dumps(FORMS[role][2]).encode())
    async with (
        ScriptedLlm(lambda _asked: ok) as model,
        hasty(settings_of(model)) as llm,
    ):
        model.queue(fault(503))
        kit = kit_of(agent, llm)
        report = await kit.run("ask", {"prompt": "hi"}, max_attempts=1)
    assert (report.result, len(model.requests)) == ("hello", 2)
    assert [type(error) for error in kit.raised[:1]] == [LlmUnavailable]


def is_installed(package: str) -> bool:
    """Return whether *package* can be imported."""
    try:
        __import__(package)
    except ImportError:
        return False
    return True


FAULTS: list[tuple[Canned, type[LlmError]]] = [
    (rate_limited(7), LlmRateLimited),
    (fault(503), LlmUnavailable),
    (fault(400, "no such model"), LlmRejected),
    (fault(401, f"bad key {KEY}"), LlmRejected),
    (dropped(), LlmUnavailable),
]


def hasty(settings: LlmSettings) -> Llm:
    """Return models whose clock makes a second each time that it is read, so that nothing waits."""
    seconds = itertools.count()
    return Llm(settings, monotonic=lambda: float(next(seconds)))


@pytest.mark.parametrize(
    ("canned", "kind"), FAULTS, ids=lambda value: getattr(value, "__name__", "")
)
async def test_an_error_of_the_provider_is_one_of_ours(
    canned: Canned, kind: type[LlmError]
) -> None:
    """While it is away the task comes back without losing an attempt; a key is quoted nowhere."""
    agent = pydantic_ai.Agent(RoleModel("chat"), name="clerk")
    async with (
        ScriptedLlm(lambda _asked: saying("hello")) as model,
        hasty(settings_of(model)) as llm,
    ):
        model.queue(canned)
        kit = kit_of(agent, llm)
        report = await kit.run("ask", {"prompt": "hi"}, max_attempts=1)
    assert report.status == ("failed" if kind is LlmRejected else "completed")
    assert len(model.requests) == (1 if kind is LlmRejected else 2)
    first = kit.raised[0]
    assert type(first) is kind
    assert KEY not in str(first)
    assert isinstance(first, LlmError)
    assert (first.away_s is None) is (kind is LlmRejected)
    if isinstance(first, LlmRateLimited):
        assert first.retry_after_s == 7


async def test_a_provider_that_says_nothing_ends_with_the_time_of_an_attempt() -> None:
    roles = {"chat": LlmRole(model="scripted", attempt_deadline_s=0.3)}
    agent = pydantic_ai.Agent(RoleModel("chat"), name="clerk")
    async with (
        ScriptedLlm(lambda _asked: saying("hello")) as model,
        hasty(settings_of(model, roles=roles)) as llm,
    ):
        model.queue(stalled())
        kit = kit_of(agent, llm)
        await kit.run("ask", {"prompt": "hi"}, max_attempts=1)
    assert type(kit.raised[0]) is LlmTimeout


async def test_a_failed_request_is_sent_again_until_the_provider_counts_as_away() -> (
    None
):
    """As often as a question of `context.llm.ask`; one that was shown in part is not."""
    agent = pydantic_ai.Agent(RoleModel("chat"), name="writer")
    async with (
        ScriptedLlm(lambda _asked: saying("hello")) as model,
        hasty(settings_of(model, max_attempts=3, backoff_base_s=0.001)) as llm,
    ):
        model.queue(fault(503), dropped())
        kit = kit_of(agent, llm)
        assert (
            await kit.run("ask", {"prompt": "hi"}, max_attempts=1)
        ).result == "hello"
        assert (len(model.requests), kit.raised) == (3, [])
        model.queue(*[fault(503)] * 3)
        assert (
            await kit.run("ask", {"prompt": "hi"}, max_attempts=1)
        ).result == "hello"
        assert len(model.requests) == 7
        assert {type(error) for error in kit.raised} == {LlmUnavailable}
        model.queue(replace(streaming("An ", "ode"), ending="truncate"))
        kit = kit_of(agent, llm, streams=True)
        await kit.run("ask", {"prompt": "hi"}, max_attempts=1)
        assert len(model.requests) == 8
        assert type(kit.raised[0]) is LlmUnavailable


ODD_ENDS: list[tuple[Canned, type[LlmError]]] = [
    (saying("Half of it", finish_reason="length"), LlmCutOff),
    (saying("Half of it", finish_reason="content_filter"), LlmRefused),
    (saying(None, refusal="I would rather not."), LlmRefused),
    (saying("Half of it", finish_reason="error"), LlmUnavailable),
    (saying("Half of it", finish_reason="guardrail_intervened"), LlmMalformed),
    (raw(b'{"error": {"code": 429, "message": "slow"}}'), LlmRateLimited),
    (raw(b'{"error": {"code": "503", "message": "busy"}}'), LlmUnavailable),
    (raw(b'{"choices": null}'), LlmUnavailable),
    (raw(b"<html>away</html>", content_type="text/html"), LlmUnavailable),
    (raw(b"null"), LlmUnavailable),
]


@pytest.mark.parametrize(("canned", "error"), ODD_ENDS)
async def test_what_is_no_whole_answer_is_an_error_and_not_kept(
    canned: Canned, error: type[LlmError]
) -> None:
    """Its tokens are paid for; another run of the task asks again, and has the whole answer."""
    agent = pydantic_ai.Agent(RoleModel("chat"), name="clerk")
    book = Book()
    async with ScriptedLlm() as model, Llm(settings_of(model), meter=book) as llm:
        model.queue(canned, saying("All of it"))
        kit = kit_of(agent, llm)
        report = await kit.run("ask", {"prompt": "hi"}, max_attempts=1)
        if error not in (LlmUnavailable, LlmRateLimited):
            assert report.status == "failed"
            report = await kit.run("ask", {"prompt": "hi"}, max_attempts=1)
    # A provider that counts as away is not asked again before its rest.
    assert {type(one) for one in kit.raised} <= {error, LlmUnavailable}
    assert type(kit.raised[0]) is error
    assert (report.result, len(model.requests)) == ("All of it", 2)
    assert book.lines[0][3] == error.__name__
    assert (book.lines[0][2].input_tokens > 0) == (b"usage" in canned.body)


@pytest.mark.parametrize(
    ("finish_reason", "error"),
    [
        (None, LlmUnavailable),
        ("length", LlmCutOff),
        ("content_filter", LlmRefused),
        ("error", LlmUnavailable),
        ("odd", LlmMalformed),
    ],
)
async def test_a_stream_that_does_not_end_well_is_an_error(
    finish_reason: str | None, error: type[LlmError]
) -> None:
    agent = pydantic_ai.Agent(RoleModel("chat"), name="clerk")
    async with ScriptedLlm() as model, Llm(settings_of(model)) as llm:
        model.queue(streaming("Half ", "of", finish_reason=finish_reason))
        kit = kit_of(agent, llm, streams=True)
        report = await kit.run("ask", {"prompt": "hi"}, max_attempts=1)
    assert (report.status, type(kit.raised[0])) == ("failed", error)


@pytest.mark.parametrize("finish_reason", ["stop", "eos", "COMPLETE"])
async def test_an_end_in_another_servers_words_is_an_end(finish_reason: str) -> None:
    agent = pydantic_ai.Agent(RoleModel("chat"), name="clerk")
    async with ScriptedLlm() as model, Llm(settings_of(model)) as llm:
        model.queue(saying("All of it", finish_reason=finish_reason))
        report = await kit_of(agent, llm).run("ask", {"prompt": "hi"})
    assert report.result == "All of it"


async def test_agents_speak_to_a_server_as_it_understands() -> None:
    """Parameters that it refuses are left out, in streams too."""

    def respond(asked: Asked) -> Canned:
        for name in ("max_completion_tokens", "temperature", "stream_options"):
            if name in asked.body:
                return fault(400, f"unknown parameter: {name!r}")
        return streaming("An ", "ode") if asked.body.get("stream") else saying("ode")

    agent = pydantic_ai.Agent(RoleModel("chat"), name="clerk")
    roles = {"chat": LlmRole(model="scripted", temperature=0.2)}
    async with (
        ScriptedLlm(respond) as model,
        Llm(settings_of(model, roles=roles)) as llm,
    ):
        plain = await kit_of(agent, llm).run("ask", {"prompt": "hi"})
        before = len(model.requests)
        streamed = await kit_of(agent, llm, streams=True).run("ask", {"prompt": "hi"})
        last = model.requests[-1].body
    assert (plain.result, streamed.result) == ("ode", "An ode")
    assert (before, len(model.requests)) == (3, 5)
    assert last["max_tokens"] == 2048


async def test_cancelling_the_task_closes_the_request() -> None:
    """The server sees that its client hung up, and the slot is free again."""
    agent = pydantic_ai.Agent(RoleModel("chat"), name="clerk")
    async with (
        ScriptedLlm(lambda _asked: stalled()) as model,
        Llm(settings_of(model, max_concurrency=1)) as llm,
    ):
        running = asyncio.create_task(kit_of(agent, llm).run("ask", {"prompt": "hi"}))
        await model.wait_for_requests(1, in_flight=True)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        model.respond = lambda _asked: saying("hello")
        assert (await kit_of(agent, llm).run("ask", {"prompt": "hi"})).result == "hello"


class Verdict(BaseModel):
    """An answer with a shape."""

    score: int


async def test_a_structured_answer_is_repaired_over_the_wire() -> None:
    """The second request shows the fault."""
    agent = pydantic_ai.Agent(
        RoleModel("chat"), name="judge", output_type=pydantic_ai.NativeOutput(Verdict)
    )
    async with ScriptedLlm() as model, Llm(settings_of(model)) as llm:
        model.queue(saying('{"score": "much"}'), saying('{"score": 7}'))
        report = await kit_of(agent, llm).run("ask", {"prompt": "judge"})
    assert report.result == {"score": 7}
    assert "score" in json.dumps(model.requests[1].body["messages"][-1])


@pytest.mark.parametrize("kind", KINDS)
async def test_a_structured_answer_is_read_from_a_server_of_each_kind(
    kind: Kind,
) -> None:
    """Fence, thought and prose around it cost no second request."""
    agent = pydantic_ai.Agent(
        RoleModel("chat"), name="judge", output_type=pydantic_ai.NativeOutput(Verdict)
    )
    server = ModelServer(kind, ("scripted",), answers=lambda _asked: {"score": 7})
    async with ScriptedLlm(server) as model, Llm(settings_of(model)) as llm:
        report = await kit_of(agent, llm).run("ask", {"prompt": "judge"})
    assert report.result == {"score": 7}
    assert len(model.requests) == len(server.refused) + 1


async def test_text_is_streamed_as_server_sent_events() -> None:
    """Each delta is a piece; tokens come with the last event, and the time of the first one is counted."""
    writer = pydantic_ai.Agent(RoleModel("chat"), name="writer")
    book = Book()
    async with ScriptedLlm() as model, Llm(settings_of(model), meter=book) as llm:
        model.queue(streaming("An ", "ode", output_tokens=2))
        kit = kit_of(writer, llm, streams=True)
        report = await kit.run("ask", {"prompt": "an ode"})
        pieces = [str(one.event) for one in kit.emitted]
    assert (report.result, "".join(pieces)) == ("An ode", "An ode")
    assert report.usage.output_tokens == 2
    assert model.requests[0].body["stream"] is True
    assert len(book.first_chunks) == 1


async def test_an_unset_provider_and_a_role_of_another_kind_say_so() -> None:
    """`context.llm.ask` asks OpenAI-compatible servers alone."""
    async with AsyncExitStack() as stack:
        llm = await stack.enter_async_context(Llm(LlmSettings(roles=ROLES)))
        kit = kit_of(pydantic_ai.Agent(RoleModel("claude"), name="clerk"), llm)
        await kit.run("ask", {"prompt": "hi"}, max_attempts=1)
        assert type(kit.raised[0]) is LlmNotConfigured
        assert "TASKLORE_LLM_ANTHROPIC_API_KEY" in str(kit.raised[0])
        asked = Llm(LlmSettings(roles=ROLES, api_key=SecretStr(KEY)))
        with pytest.raises(LlmNotConfigured, match="served by 'anthropic'"):
            await asked.ask("claude", Reasoned, system="", user="")


class Reasoned(BaseModel):
    """An answer in the form of `ask`."""

    reasoning: str


def test_roles_are_read_with_their_provider() -> None:
    """A provider that is unknown is named with those that there are."""
    assert parse_roles(
        " writer=anthropic:claude-opus-5, reader=google:models/x:y "
    ) == {
        "writer": ("anthropic", "claude-opus-5"),
        "reader": ("google", "models/x:y"),
    }
    with pytest.raises(ValueError, match="openai-responses, anthropic, google"):
        parse_roles("writer=mistral:x")
