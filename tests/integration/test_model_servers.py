"""Replies as compatible servers really send them, to `context.llm` and to agents with tools: one reader for both."""

import asyncio
import contextlib
import gzip
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pydantic_ai
import pytest
from pydantic import SecretStr

from tasklore.contracts.errors import (
    LlmError,
    LlmMalformed,
    LlmRateLimited,
    LlmRefused,
    LlmRejected,
    LlmTimeout,
    LlmUnavailable,
)
from tasklore.runtime.models.dialects import known_dialects
from tasklore.runtime.models.llm import Llm, LlmRole, LlmSettings
from tasklore.workers.pydantic_agents import RoleModel
from tests.agent_script import streaming
from tests.integration.test_agent_models import (
    ROLES,
    add_tools,
    hasty,
    kit_of,
    settings_of,
)
from tests.llm_double import Asked, Canned, ScriptedLlm, fault, raw, saying
from tests.llm_questions import GOOD, Colour

TEXT = json.dumps(GOOD)
USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
EVENTS = "text/event-stream"


def completion(
    message: Mapping[str, Any] | None = None, end: object = "stop", **more: Any
) -> dict[str, Any]:
    """Return a completion that says `TEXT`, with *message* over its message and *more* over its fields."""
    said = {"role": "assistant", "content": TEXT, **(message or {})}
    choice = {"index": 0, "finish_reason": end, "message": said}
    head = {"id": "x", "object": "chat.completion", "created": 0, "model": "scripted"}
    return {**head, "choices": [choice], "usage": USAGE, **more}


def sent(body: object, **options: Any) -> Canned:
    """Send *body* as JSON."""
    return raw(json.dumps(body).encode(), **options)


def events(*parts: object, between: str = "\n\n", end: str = "[DONE]") -> Canned:
    """Send *parts* as events, a text as it stands."""
    lines = [
        part if isinstance(part, str) else f"data: {json.dumps(part)}{between}"
        for part in parts
    ]
    last = f"data: {end}\n\n" if end else ""
    return raw(f"{''.join(lines)}{last}".encode(), content_type=EVENTS)


def part(delta: object, end: str | None = None, **more: Any) -> dict[str, Any]:
    """Return a part of a stream, without the head that some servers leave out."""
    return {"choices": [{"delta": delta, "finish_reason": end}], **more}


FIRST, LAST = TEXT[:10], TEXT[10:]
PARTS = (part({"content": FIRST}), part({"content": LAST}), part({}, "stop"))
COUNTED = {"choices": [], "usage": USAGE}
PLAIN = json.dumps(completion()).encode()
BARE = {"choices": [{"message": {"content": TEXT}}]}
THOUGHT = [{"type": "thinking", "thinking": "x"}, {"type": "text", "text": TEXT}]

WHOLE: dict[str, Canned] = {
    "nothing but a message": sent(BARE),
    "a reasoning field": sent(completion({"reasoning_content": "Let me think."})),
    "parts": sent(completion({"content": [{"type": "text", "text": TEXT}]})),
    "parts with a thought": sent(completion({"content": THOUGHT})),
    "an object": sent(completion({"content": GOOD})),
    "an unknown end": sent(completion(end="EOS")),
    "no id": sent(completion(id=None, model=None, object=None, created="today")),
    "a date beyond dates": sent(completion(created=10**20)),
    "null counts": sent(completion(usage=dict.fromkeys(USAGE))),
    "no counts": sent(completion(usage={})),
    "counts that are none": sent(completion(usage={**USAGE, "prompt_tokens": -1})),
    "a list of counts": sent(completion(usage=[])),
    "counts as texts": sent(completion(usage={n: str(v) for n, v in USAGE.items()})),
    "odd details": sent(
        completion(usage={**USAGE, "completion_tokens_details": [], "x": {}})
    ),
    "blank lines": raw(b"\n\n\n" + PLAIN),
    "signs of life": raw(b": OPENROUTER PROCESSING\n\n" * 3 + PLAIN),
    "a byte order mark": raw(b"\xef\xbb\xbf" + PLAIN),
    "packed": Canned(
        body=gzip.compress(PLAIN),
        headers={"Content-Type": "application/json", "Content-Encoding": "gzip"},
    ),
    "another type": raw(PLAIN, content_type="text/plain"),
    "NaN": raw(PLAIN.replace(b'"created": 0', b'"created": NaN, "x": -Infinity')),
    "a big number": raw(PLAIN.replace(b'"created": 0', b'"created": ' + b"9" * 5000)),
    "half a pair": sent(completion({"note": "\ud800"})),
    "something behind it": raw(PLAIN + b"\n\ndata: [DONE]\n"),
    "another success": raw(PLAIN, status=202),
    "an empty error": sent(completion(error=None)),
    "a stream": events(*PARTS, COUNTED),
    "a whole reply as an event": events(completion()),
    "a stream of another type": raw(events(*PARTS, COUNTED).body),
}
STREAMS: dict[str, Canned] = {
    "no counts": events(*PARTS),
    "null counts": events(*PARTS, {"choices": [], "usage": None}),
    "comments": events(": OPENROUTER PROCESSING\n\n", *PARTS, ": x\n\n", COUNTED),
    "one line feed": events(*PARTS, COUNTED, between="\n"),
    "carriage returns": events(*PARTS, COUNTED, between="\r\n\r\n"),
    "no last event": events(*PARTS, COUNTED, end=""),
    "signs of life": events('event: ping\ndata: {"type": "ping"}\n\n', *PARTS),
    "an empty part": events(*PARTS[:2], part(None, "stop"), COUNTED),
    "parts of parts": events(part({"content": [{"text": FIRST}]}), *PARTS[1:]),
    "lines of JSON": raw(
        "\n".join(map(json.dumps, PARTS)).encode(), content_type="application/x-ndjson"
    ),
    "thoughts": events(part({"reasoning_content": "Hm."}), *PARTS, COUNTED),
    "packed": Canned(
        body=gzip.compress(events(*PARTS, COUNTED).body),
        headers={"Content-Type": EVENTS, "Content-Encoding": "gzip"},
    ),
}
SLOW = {"code": 429, "message": "Provider returned error"}
RAW = {**SLOW, "metadata": {"raw": '{"error": "busy upstream"}', "provider_name": "x"}}
BUSY = {"code": "server_error", "message": "Provider disconnected"}
FAULTS: dict[str, tuple[Canned, type[LlmError], str]] = {
    "OpenRouter": (sent({"error": RAW}), LlmRateLimited, "busy upstream"),
    "a choice": (
        sent({"choices": [{"error": BUSY, "message": {"content": "ha"}}]}),
        LlmUnavailable,
        "Provider disconnected",
    ),
    "Ollama": (
        sent({"error": "model 'x' not found"}, status=404),
        LlmRejected,
        "model 'x' not found; name a model",
    ),
    "Ollama with 200": (
        sent({"error": "model 'x' not found"}),
        LlmRejected,
        "model 'x' not found; name a model",
    ),
    "vLLM": (
        sent({"object": "error", "message": "no `x` here", "code": 404}),
        LlmRejected,
        "no `x` here",
    ),
    "LM Studio": (
        sent({"error": "Unexpected endpoint or method. (POST /chat/completions)"}),
        LlmRejected,
        "up to and with /v1",
    ),
    "Azure": (
        sent({"error": {"code": "content_filter", "message": "no"}}, status=400),
        LlmRefused,
        "no",
    ),
    "a list": (
        sent([{"error": {"code": 429, "message": "exhausted"}}]),
        LlmRateLimited,
        "exhausted",
    ),
    "details": (
        sent({"detail": [{"loc": ["body", "x"], "msg": "extra"}]}, status=400),
        LlmRejected,
        "body.x: extra",
    ),
    "words alone": (sent({"detail": "overloaded"}), LlmUnavailable, "overloaded"),
    "a page": (
        raw(b"<html>busy</html>", content_type="text/html"),
        LlmUnavailable,
        "<html>busy</html>",
    ),
    "nothing": (raw(b""), LlmUnavailable, "0 bytes"),
    "no choice": (sent(completion(choices=[])), LlmUnavailable, '"choices": []'),
    "an abort": (sent(completion(end="abort")), LlmUnavailable, "within its answer"),
    "safety": (sent(completion(end="SAFETY")), LlmRefused, "filter"),
}
BROKEN: dict[str, tuple[Canned, type[LlmError], str, str]] = {
    "a limit": (
        events({"error": {**RAW, "code": "rate_limit_exceeded"}}),
        LlmRateLimited,
        "busy upstream",
        "rate_limit_exceeded",
    ),
    "an outage": (events({"error": BUSY}), LlmUnavailable, "Provider dis", "server_"),
    "a missing model": (events({"error": "x not found"}), LlmRejected, "not found", ""),
    "too long": (
        events({"error": {"code": "context_length_exceeded", "message": "4096"}}),
        LlmRejected,
        "4096",
        "context_length_exceeded",
    ),
    "a page": (
        raw(b"<html>busy</html>", content_type=EVENTS),
        LlmUnavailable,
        "<html>busy",
        "",
    ),
    "half an event": (events('data: {"choi\n\n'), LlmUnavailable, "choi", ""),
    "no answer": (events(), LlmUnavailable, "without an answer", ""),
    "a thought alone": (
        events(part({"reasoning": "Hm."}), part({}, "stop")),
        LlmMalformed,
        "no answer",
        "",
    ),
}


async def answer_of(canned: Canned) -> str:
    """Return what `context.llm` reads of *canned*."""
    async with ScriptedLlm(lambda _asked: canned) as model, hasty(own(model)) as llm:
        reply = await llm.ask("default", Colour, system="Name it.", user="grass")
        assert reply.usage.input_tokens > 0
        assert reply.usage.output_tokens > 0
        assert len(model.requests) == 1
        return reply.value.colour


async def result_of(canned: Canned, *, streams: bool) -> object:
    """Return what an agent makes of *canned*, or the error that it made in its task."""
    agent = pydantic_ai.Agent(RoleModel("chat"), name="clerk")
    async with ScriptedLlm() as model, hasty(settings_of(model)) as llm:
        model.queue(canned, streaming("again") if streams else saying("again"))
        kit = kit_of(agent, llm, streams=streams)
        report = await kit.run("ask", {"prompt": "hi"}, max_attempts=1)
        if kit.raised:
            return kit.raised[0]
        assert len(model.requests) == 1
        assert report.usage.input_tokens > 0
        assert report.usage.output_tokens > 0
        return report.result


def own(model: ScriptedLlm) -> LlmSettings:
    """Return settings by which *model* answers each role."""
    return settings_of(model, roles={"default": LlmRole(model="own", temperature=0.2)})


@pytest.mark.parametrize("name", WHOLE)
async def test_a_whole_reply_is_read_however_a_server_spells_it(name: str) -> None:
    """As a question of the worker's own, by an agent, and by one that wanted a stream."""
    assert await answer_of(WHOLE[name]) == "green"
    for streams in (False, True):
        result = await result_of(WHOLE[name], streams=streams)
        assert json.loads(str(result)) == GOOD


async def test_a_stream_that_nobody_asked_for_may_end_without_a_reason() -> None:
    """By its last event; one that just ends has broken off."""
    ended = events(*PARTS[:2], COUNTED)
    assert await answer_of(ended) == "green"
    assert json.loads(str(await result_of(ended, streams=False))) == GOOD
    for broken in (events(*PARTS[:2], end=""), events(COUNTED)):
        with pytest.raises(LlmUnavailable):
            await answer_of(broken)


@pytest.mark.parametrize("name", STREAMS)
async def test_a_stream_is_read_however_a_server_spells_it(name: str) -> None:
    """Also where a whole reply was wanted."""
    assert await answer_of(STREAMS[name]) == "green"
    for streams in (False, True):
        result = await result_of(STREAMS[name], streams=streams)
        assert json.loads(str(result)) == GOOD


@pytest.mark.parametrize("name", FAULTS)
async def test_a_fault_has_its_kind_and_its_providers_words(name: str) -> None:
    canned, kind, words = FAULTS[name]
    with pytest.raises(kind) as caught:
        await answer_of(canned)
    whole = await result_of(canned, streams=False)
    streamed = await result_of(canned, streams=True)
    for error in (caught.value, whole, streamed):
        assert type(error) is kind
        assert words in str(error)


@pytest.mark.parametrize("name", BROKEN)
async def test_an_error_within_a_stream_has_its_kind_code_and_words(name: str) -> None:
    """It is judged as if it were the status of the reply: retried, counted by the breaker, handed on."""
    canned, kind, words, code = BROKEN[name]
    error = await result_of(canned, streams=True)
    assert type(error) is kind
    assert isinstance(error, LlmError)
    assert words in str(error)
    assert code in error.code


@pytest.mark.parametrize("streams", [False, True])
async def test_an_answer_without_a_word_is_not_kept(streams: bool) -> None:
    """A thought alone is none; the next run of the task asks again, and an agent may have nothing to say."""
    empty = sent(completion({"content": " \n", "reasoning_content": "Hm."}))
    assert type(await result_of(empty, streams=streams)) is LlmMalformed
    agent = pydantic_ai.Agent(RoleModel("chat"), name="clerk", output_type=[str, None])
    none = sent(completion({"content": None}))
    async with ScriptedLlm(lambda _asked: none) as model, hasty(own(model)) as llm:
        kit = kit_of(agent, llm, streams=streams)
        report = await kit.run("ask", {"prompt": "hi"}, max_attempts=1)
    assert (report.status, report.result, kit.raised) == ("completed", None, [])


def call(given: object, name: str = "look", **more: Any) -> dict[str, Any]:
    """Return a call of a tool as servers spell it."""
    return {"function": {"name": name, "arguments": given}, **more}


def calls(*parts: Mapping[str, Any]) -> Canned:
    """Stream *parts* of calls."""
    return events(*(part({"tool_calls": [one]}) for one in parts), part({}, "stop"))


NUMBER = '{"number": 3}'
CALLS: dict[str, tuple[Canned, list[str]]] = {
    "an object": (sent(completion({"tool_calls": [call({"number": 3})]})), ["saw 3"]),
    "a fence": (
        sent(completion({"tool_calls": [call(f"```json\n{NUMBER}\n```", id="a")]})),
        ["saw 3"],
    ),
    "no name of its own": (
        sent(completion({"tool_calls": [{"name": "look", "arguments": NUMBER}]})),
        ["saw 3"],
    ),
    "the old form": (
        sent(
            completion(
                {"function_call": call(NUMBER)["function"], "content": None},
                end="function_call",
            )
        ),
        ["saw 3"],
    ),
    "two without ids": (
        sent(completion({"tool_calls": [call(NUMBER), call(NUMBER, "send")]})),
        ["saw 3", "sent 3"],
    ),
    "a stream of an object": (calls(call({"number": 3}, id="a")), ["saw 3"]),
    "a stream in pieces": (
        calls(
            call("", id="a", index=0),
            {"index": 0, "function": {"arguments": NUMBER[:5], "name": None}},
            {"index": 0, "function": {"arguments": NUMBER[5:], "name": "look"}},
        ),
        ["saw 3"],
    ),
    "a stream whose name comes late": (
        calls(
            {"index": 0, "id": "a", "function": {"arguments": NUMBER[:5]}},
            {"index": 0, "function": {"arguments": NUMBER[5:], "name": "look"}},
        ),
        ["saw 3"],
    ),
    "two at one index": (
        calls(
            call(NUMBER, id="a", index=0),
            call(NUMBER, "send", id="b", index=0),
        ),
        ["saw 3", "sent 3"],
    ),
    "two at one index without ids": (
        calls(call(NUMBER, index=0), call(NUMBER, "send", index=0)),
        ["saw 3", "sent 3"],
    ),
}


@pytest.mark.parametrize("name", CALLS)
async def test_a_call_of_a_tool_is_read_however_a_server_spells_it(name: str) -> None:
    canned, results = CALLS[name]
    agent = pydantic_ai.Agent(RoleModel("chat"), name="clerk")
    add_tools(agent)
    streams = canned.headers["Content-Type"] == EVENTS
    async with ScriptedLlm() as model, hasty(settings_of(model)) as llm:
        model.queue(canned, streaming("ok") if streams else saying("ok"))
        kit = kit_of(agent, llm, streams=streams)
        report = await kit.run("ask", {"prompt": "hi"}, max_attempts=1)
        last = model.requests[-1].body["messages"]
    assert (report.result, kit.raised) == ("ok", [])
    said = [one for one in last if one["role"] == "tool"]
    assert [one["content"] for one in said] == results
    assert len({one["tool_call_id"] for one in said}) == len(results)


REFUSALS: dict[str, tuple[str, Canned, int, str]] = {
    "json_schema, 500": (
        "json_schema",
        fault(500, "failed to compile grammar for json_schema"),
        1,
        "json_object",
    ),
    "json_schema, 404": ("json_schema", fault(404, "no response_format"), 1, "json_ob"),
    "json_schema, silently": ("json_schema", fault(400, "Bad Request"), 1, "json_obj"),
    "json_schema, 501": (
        "json_schema",
        raw(b"", status=501),
        1,
        "json_object",
    ),
    "max_completion_tokens, 404": (
        "max_completion_tokens",
        fault(404, "what is max_completion_tokens?"),
        1,
        "max_tokens",
    ),
    "max_completion_tokens, without a name": (
        "max_completion_tokens",
        fault(422, "Extra inputs are not permitted"),
        3,
        "max_tokens",
    ),
    "temperature, 500": (
        "temperature",
        fault(500, "`temperature` is deprecated for this model"),
        1,
        "without temperature",
    ),
    "whole replies": (
        "no stream",
        fault(400, "This model only support stream mode, please enable the stream"),
        1,
        "by streams alone",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
async def test_what_is_refused_in_odd_words_is_said_in_another_way(name: str) -> None:
    """And remembered: the second question is asked once."""
    what, refusal, refused, dialect = REFUSALS[name]

    def respond(asked: Asked) -> Canned:
        wanted = asked.body.get("response_format", {}).get("type")
        is_refused = what in asked.body or what == wanted
        if what == "no stream":
            is_refused = not asked.body.get("stream")
        if is_refused:
            return refusal
        return events(*PARTS) if asked.body.get("stream") else saying(TEXT)

    async with ScriptedLlm(respond) as model, Llm(own(model)) as llm:
        for asked in (refused + 1, refused + 2):
            reply = await llm.ask("default", Colour, system="Name it.", user="grass")
            assert (reply.value.colour, len(model.requests)) == ("green", asked)
        address = model.base_url.removesuffix("/v1")
    [known] = [one for one in known_dialects() if address in one]
    assert dialect in known


@pytest.mark.parametrize("name", ["seed", "stream_options", "user"])
async def test_an_agent_leaves_out_what_its_server_refuses(name: str) -> None:
    def respond(asked: Asked) -> Canned:
        if name in asked.body:
            return fault(422, f"Unrecognized request argument supplied: '{name}'")
        return streaming("ok")

    settings: Any = {"seed": 7, "openai_user": "ann"}
    agent = pydantic_ai.Agent(RoleModel("chat"), name="clerk", model_settings=settings)
    async with ScriptedLlm(respond) as model, Llm(settings_of(model)) as llm:
        kit = kit_of(agent, llm, streams=True)
        report = await kit.run("ask", {"prompt": "hi"})
    assert (report.result, len(model.requests)) == ("ok", 2)


@pytest.mark.parametrize(
    "words",
    [
        "stream is not supported by this deployment",
        "This model does not support streaming",
        "Streaming isn't supported here",
        "stream: unsupported",
        "streams aren't available",
    ],
)
async def test_a_server_without_streams_answers_an_agent_that_shows_its_text(
    words: str,
) -> None:
    def respond(asked: Asked) -> Canned:
        if asked.body.get("stream"):
            return fault(400, words)
        return saying("ok")

    agent = pydantic_ai.Agent(RoleModel("chat"), name="clerk")
    async with ScriptedLlm(respond) as model, Llm(settings_of(model)) as llm:
        kit = kit_of(agent, llm, streams=True)
        report = await kit.run("ask", {"prompt": "hi"})
    assert (report.result, [str(one.event) for one in kit.emitted]) == ("ok", ["ok"])


async def test_a_model_without_tools_is_an_error_that_says_what_helps() -> None:
    agent = pydantic_ai.Agent(RoleModel("chat"), name="clerk")
    add_tools(agent)
    words = "registry.ollama.ai/library/gemma:2b does not support tools"
    async with (
        ScriptedLlm(lambda _asked: fault(400, words)) as model,
        Llm(settings_of(model)) as llm,
    ):
        kit = kit_of(agent, llm)
        await kit.run("ask", {"prompt": "hi"}, max_attempts=1)
    assert type(kit.raised[0]) is LlmRejected
    assert words in str(kit.raised[0])
    assert "NativeOutput" in str(kit.raised[0])


async def test_azures_older_address_is_asked_with_its_version_and_key() -> None:
    """A path with the deployment, a query, and the key in a header of its own."""
    async with ScriptedLlm(lambda _asked: saying(TEXT)) as model:
        root = model.base_url.removesuffix("/v1")
        path = "/openai/deployments/own"
        address = f"{root}{path}/chat/completions?api-version=2024-10-21"
        settings = LlmSettings(base_url=address, api_key=SecretStr("sk-azure"))
        async with Llm(settings) as llm:
            await llm.ask("default", Colour, system="Name it.", user="grass")
        [asked] = model.requests
    assert asked.path == f"{path}/chat/completions?api-version=2024-10-21"
    assert asked.headers["api-key"] == "sk-azure"


def brief(model: ScriptedLlm | str) -> LlmSettings:
    """Return settings by which each provider is *model*, or an address, with a short time for an attempt."""
    roles = {
        name: role.model_copy(update={"attempt_deadline_s": 0.5})
        for name, role in ROLES.items()
    }
    if isinstance(model, ScriptedLlm):
        return settings_of(model, roles=roles)
    key = SecretStr("sk-test-0123456789")
    return LlmSettings(
        base_url=f"{model}/v1",
        api_key=key,
        anthropic_base_url=model,
        anthropic_api_key=key,
        google_base_url=model,
        google_api_key=key,
        roles=roles,
        max_attempts=1,
    )


@pytest.mark.parametrize("role", ROLES)
async def test_no_more_is_read_than_a_bound_whoever_the_provider_is(role: str) -> None:
    agent = pydantic_ai.Agent(RoleModel(role), name="clerk")
    async with ScriptedLlm() as model, hasty(settings_of(model)) as llm:
        model.queue(raw(b" " * (17 * 1024**2)), *[fault(401)] * 2)
        kit = kit_of(agent, llm)
        await kit.run("ask", {"prompt": "hi"}, max_attempts=1)
    chain: list[BaseException | None] = [kit.raised[0]]
    while chain[-1] is not None:
        chain.append(chain[-1].__cause__ or chain[-1].__context__)
    assert isinstance(kit.raised[0], LlmError)
    assert "more than 16,777,216 bytes" in " ".join(map(str, chain))


@asynccontextmanager
async def alive(head: str, sign: str) -> AsyncIterator[str]:
    """Serve *sign* for ever to the first request, and a refusal to others; give the address."""
    asked = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        with contextlib.suppress(ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            if asked > 1:
                writer.write(b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n")
                await writer.drain()
                return
            writer.write(f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode())
            while not writer.is_closing():
                writer.write(sign.encode())
                await writer.drain()
                await asyncio.sleep(0.01)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


SILENT = [(role, False) for role in ROLES] + [("chat", True)]


@pytest.mark.parametrize(("role", "streams"), SILENT)
async def test_signs_of_life_are_no_answer(role: str, streams: bool) -> None:
    """A server that sends them for ever is given up at the end of an attempt."""
    kind = EVENTS if streams else "application/json"
    agent = pydantic_ai.Agent(RoleModel(role), name="clerk")
    async with (
        alive(f"Content-Type: {kind}", ": alive\n\n" if streams else "\n") as address,
        hasty(brief(address)) as llm,
    ):
        kit = kit_of(agent, llm, streams=streams)
        await kit.run("ask", {"prompt": "hi"}, max_attempts=1)
    assert type(kit.raised[0]) is LlmTimeout


@pytest.mark.parametrize("streams", [False, True])
async def test_tokens_that_nobody_counted_are_marked_as_estimated(
    streams: bool,
) -> None:
    """In the report, in the journal, and for the meter; what a server counts is not."""
    agent = pydantic_ai.Agent(RoleModel("chat"), name="clerk")
    found = []
    for reply in (completion(), completion(usage=None)):
        canned = sent(reply)
        async with ScriptedLlm() as model:
            model.queue(canned, canned)
            async with Llm(settings_of(model)) as llm:
                kit = kit_of(agent, llm, streams=streams)
                report = await kit.run("ask", {"prompt": "hi"})
            async with Llm(own(model)) as llm:
                asked = await llm.ask("default", Colour, system="It.", user="grass")
        usage = report.usage
        found.append((usage.estimated_tokens, asked.usage.estimated_tokens))
    guessed = usage.input_tokens + usage.output_tokens
    whole = asked.usage.input_tokens + asked.usage.output_tokens
    assert found == [(0, 0), (guessed, whole)]
    assert min(guessed, whole) > 0


async def test_a_bound_that_a_server_passes_over_is_said_in_its_old_name() -> None:
    """It refuses nothing: an answer with more tokens than it may have is what tells."""
    async with ScriptedLlm() as model, Llm(own(model)) as llm:
        model.queue(
            saying(TEXT, output_tokens=2_048),
            saying(TEXT, output_tokens=2_049),
            saying(TEXT, output_tokens=9_000),
        )
        for _ in range(3):
            await llm.ask("default", Colour, system="Name it.", user="grass")
        bounds = [asked.body.keys() & {"max_tokens"} for asked in model.requests]
        address = model.base_url.removesuffix("/v1")
    assert bounds == [set(), set(), {"max_tokens"}]
    [known] = [one for one in known_dialects() if address in one]
    assert "asked with max_tokens" in known
    assert "passed over" in known
