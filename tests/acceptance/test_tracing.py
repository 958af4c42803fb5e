"""Traces as they are shipped: real processes, a real collector, and one trace from a request to what is remembered."""

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.acceptance.collector import Collector, Kept
from tests.acceptance.system import (
    AGENTS,
    BUDGET,
    PROBE,
    Served,
    System,
    running_system,
)
from tests.agent_script import calling, number_of
from tests.http_client import ask
from tests.llm_double import Asked, Canned, ScriptedLlm, answer, saying

#: The context of a caller, which samples.
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = f"00-{TRACE}-00f067aa0ba902b7-01"
TEXT = "I like omelettes. My budget limit is 50k and I spent 42k: how is my budget?"
USER = "ann-of-the-traces"
CLERK = str(AGENTS / "clerk.py")


@dataclass(frozen=True)
class Traced:
    """A system whose processes send their spans to *collector*."""

    system: System
    collector: Collector
    worker: Served
    supervisor: Served


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traced]:
    """Run a supervisor, a worker and the agents that remember what people say, with tracing on."""
    with (
        Collector() as collector,
        pytest.MonkeyPatch.context() as patch,
        running_system(tmp_path_factory.mktemp("traced")) as system,
    ):
        for name, value in collector.environment.items():
            patch.setenv(name, value)
        worker = system.worker(BUDGET, PROBE, tracing="on")
        supervisor = system.supervisor(tracing="on")
        remembering = system.worker("switchboard", "memory", tracing="on")
        supervisor.ready()
        # A report that is found by its first look at the streams is published by it, and then follows no worker's span.
        supervisor.await_log("streams_first_seen")
        yield Traced(system, collector, worker.ready(), supervisor)
        remembering.ready()


def named(spans: list[Kept], name: str, trace: str) -> list[Kept]:
    """Return the spans of *trace* called *name*."""
    return [span for span in spans if (span.name, span.trace) == (name, trace)]


def path_to(spans: list[Kept], span: Kept) -> list[str]:
    """Return the names from the first span of the trace to *span*."""
    by_id = {one.id: one for one in spans}
    names = [span.name]
    while (parent := by_id.get(span.parent)) is not None:
        names.insert(0, parent.name)
        span = parent
    return names


async def test_one_trace_leads_from_a_request_to_its_report_and_to_what_is_remembered(
    traced: Traced,
) -> None:
    """Through the supervisor, a worker, and the agents that learn from the turn, each below what made it begin."""
    body = {"text": TEXT, "user": USER}
    answer = await ask(
        traced.supervisor.api, "POST", "/v1/requests", body, {"traceparent": CALLER}
    )
    assert (answer.status, answer.body["reply"]["kind"]) == (200, "answer")
    task = "tasks.BudgetTrackerAgent.analyze_budget"
    request = "POST /v1/requests"
    sent = f"send {task}"
    processed = f"process {task}"

    def is_whole(spans: list[Kept]) -> bool:
        # Each process sends its own when it likes, and a letter is sent only once it is stored.
        served = ("interpret", "recall", "run analyze_budget", "edit documents")
        letters = ("reports.SupervisorAgent", "turns", "facts")
        moved = (
            sent,
            processed,
            *(f"{deed} {letter}" for letter in letters for deed in ("send", "process")),
        )
        return all(named(spans, name, TRACE) for name in (request, *served, *moved))

    spans = [
        span
        for span in await asyncio.to_thread(
            traced.collector.await_spans, is_whole, traced.supervisor.log
        )
        if span.trace == TRACE
    ]
    (first,) = named(spans, request, TRACE)
    assert first.parent == CALLER[36:52]
    told = {span.name: path_to(spans, span) for span in spans}
    assert told["interpret"] == [request, "interpret"]
    assert told["recall"] == [request, sent, processed, "recall"]
    assert told["run analyze_budget"] == [
        request,
        sent,
        processed,
        "run analyze_budget",
    ]
    reported = [request, sent, processed, "send reports.SupervisorAgent"]
    assert told["process reports.SupervisorAgent"] == [
        *reported,
        "process reports.SupervisorAgent",
    ]
    learned = [request, "send turns", "process turns", "send facts", "process facts"]
    assert told["edit documents"] == [*learned, "edit documents"]
    (edited,) = named(spans, "edit documents", TRACE)
    assert edited.attributes["tasklore.operations"] == "insert"
    assert {span.service for span in spans} == {
        "tasklore-supervisor",
        "tasklore-worker",
    }


async def test_no_span_tells_what_was_said_or_by_whom(traced: Traced) -> None:
    """Neither in a name nor in an attribute, also of the routes in whose paths a user stands."""
    await ask(
        traced.supervisor.api,
        "GET",
        f"/v1/memory/{USER}/documents/resource_user_food_prefs",
    )

    def is_whole(spans: list[Kept]) -> bool:
        return any(
            span.name == "GET /v1/memory/{user}/documents/{resource}" for span in spans
        )

    spans = await asyncio.to_thread(traced.collector.await_spans, is_whole)
    told = " ".join(f"{span.name} {span.attributes}" for span in spans).lower()
    assert "analyze_budget" in told
    for secret in (USER, "omelette", "50000", "42000", "50k"):
        assert secret not in told


async def test_a_task_whose_worker_died_goes_on_in_its_trace(
    own_system: System, traced: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second delivery is below the same letter, and linked to the first, of which nobody could tell."""
    for name, value in traced.collector.environment.items():
        monkeypatch.setenv(name, value)
    trace = "a" * 32
    supervisor = own_system.supervisor(tracing="on")
    doomed = own_system.worker(PROBE, tracing="on")
    supervisor.ready(), doomed.ready()
    order = {
        "agent_id": "ProbeAgent",
        "task": "fresh",
        "parameters": {"label": "trace", "ms": 4000},
    }
    headers = {"traceparent": f"00-{trace}-{'b' * 16}-01"}
    asked = asyncio.create_task(
        ask(supervisor.api, "POST", "/v1/tasks", order, headers)
    )
    await asyncio.to_thread(_await_run, own_system, "trace")
    doomed.kill()
    own_system.worker(PROBE, tracing="on").ready()
    assert (await asked).status == 200

    name = "process tasks.ProbeAgent.fresh"
    sent = "send tasks.ProbeAgent.fresh"

    def is_whole(spans: list[Kept]) -> bool:
        return all(named(spans, one, trace) for one in (name, sent))

    spans = await asyncio.to_thread(traced.collector.await_spans, is_whole)
    (again,) = named(spans, name, trace)
    (letter,) = named(spans, sent, trace)
    assert again.parent == letter.id
    assert again.attributes["tasklore.delivery"] == 2
    assert len(again.links) == 1
    assert again.links[0] not in {again.id, letter.id}


async def test_what_the_caller_does_not_sample_is_not_sent(traced: Traced) -> None:
    """But goes on under its trace: whoever is next may not sample it either."""
    unsampled = "c" * 32
    sampled = "d" * 32
    body = {"text": "limit 60k, spent 1k: how is my budget?", "user": "bob"}
    for trace, flags in ((unsampled, "00"), (sampled, "01")):
        headers = {"traceparent": f"00-{trace}-{'1' * 16}-{flags}"}
        assert (
            await ask(traced.supervisor.api, "POST", "/v1/requests", body, headers)
        ).status == 200
    name = "process reports.SupervisorAgent"
    spans = await asyncio.to_thread(
        traced.collector.await_spans, lambda all_: bool(named(all_, name, sampled))
    )
    assert unsampled not in {span.trace for span in spans}


async def test_a_model_is_asked_in_the_trace_of_the_task(
    own_system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its name and its tokens, and not a word of what it was told; that it fails is told by the class."""
    said = {"reasoning": "none", "kind": "none"}
    with (
        Collector() as collector,
        ScriptedLlm(lambda _asked: answer(said, input_tokens=7)) as model,
    ):
        for name, value in collector.environment.items():
            monkeypatch.setenv(name, value)
        supervisor = own_system.supervisor(
            tracing="on", llm_base_url=model.base_url, llm_max_attempts=1
        )
        worker = own_system.worker(tracing="on")
        supervisor.ready(), worker.ready()
        body = {"text": "is my purse in order, roughly spoken?", "user": "ann"}
        await ask(supervisor.api, "POST", "/v1/requests", body, {"traceparent": CALLER})

        def is_whole(spans: list[Kept]) -> bool:
            return bool(
                named(spans, "POST /v1/requests", TRACE)
                and named(spans, "chat gpt-6.1-terra", TRACE)
            )

        spans = await asyncio.to_thread(collector.await_spans, is_whole)
    chat = named(spans, "chat gpt-6.1-terra", TRACE)[0]
    assert chat.kind == "client"
    assert path_to(spans, chat) == [
        "POST /v1/requests",
        "interpret",
        "chat gpt-6.1-terra",
    ]
    told = chat.attributes
    assert (told["gen_ai.request.model"], told["gen_ai.usage.input_tokens"]) == (
        "gpt-6.1-terra",
        7,
    )
    assert "roughly" not in str(spans)


async def test_a_tree_of_agents_with_tools_is_one_trace(
    own_system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run of the agent, its requests and calls, and the task of another worker that a tool called, each below."""
    calls = (
        (("look", {"number": 0}), ("read", {"number": 1, "label": "t"})),
        (("send", {"number": 2}),),
    )

    def respond(asked: Asked) -> Canned:
        number = number_of(asked)
        return (
            calling(*calls[number])
            if number < len(calls)
            else saying("done", input_tokens=7)
        )

    with Collector() as collector, ScriptedLlm(respond) as model:
        for name, value in collector.environment.items():
            monkeypatch.setenv(name, value)
        supervisor = own_system.supervisor(tracing="on")
        own_system.worker(
            CLERK, tracing="on", llm_base_url=model.base_url, llm_model="scripted"
        ).ready()
        await asyncio.to_thread(supervisor.ready().await_agents, 1)
        body = {"agent_id": "ClerkAgent", "task": "work", "parameters": {"label": "t"}}
        assert (
            await ask(
                supervisor.api, "POST", "/v1/tasks", body, {"traceparent": CALLER}
            )
        ).status == 200

        def is_whole(spans: list[Kept]) -> bool:
            return bool(
                named(spans, "POST /v1/tasks", TRACE)
                and named(spans, "process tasks.ClerkAgent.work", TRACE)
            )

        spans = [
            span
            for span in await asyncio.to_thread(collector.await_spans, is_whole)
            if span.trace == TRACE
        ]
    paths = ["/".join(path_to(spans, span)) for span in spans]
    ways = [
        path.partition("invoke_agent clerk")[2]
        for path in paths
        if "invoke_agent clerk" in path
    ]
    assert ways.count("/step chat scripted/chat scripted") == 3
    assert {
        "/step tool clerk.look/execute_tool look",
        "/step tool clerk.send/execute_tool send",
    } <= set(ways)
    assert any(way.endswith("process tasks.ClerkAgent.read/run read") for way in ways)
    told = [span.attributes for span in named(spans, "chat scripted", TRACE)]
    assert {
        (one["gen_ai.operation.name"], one["gen_ai.provider.name"]) for one in told
    } == {("chat", "openai")}
    assert 7 in {one["gen_ai.usage.input_tokens"] for one in told}


@pytest.mark.parametrize("tracing", ["on", "content"])
async def test_prompts_leave_with_spans_where_that_is_asked_for_alone(
    own_system: System, monkeypatch: pytest.MonkeyPatch, tracing: str
) -> None:
    """Masked, as events of the requests to models; nothing of them where messages are kept and spans are on."""
    secret = "correct-horse-battery"
    with (
        Collector() as collector,
        ScriptedLlm(lambda _asked: saying("It is done.")) as model,
    ):
        for name, value in collector.environment.items():
            monkeypatch.setenv(name, value)
        supervisor = own_system.supervisor(tracing=tracing)
        own_system.worker(
            CLERK,
            tracing=tracing,
            run_messages_hours=1,
            llm_base_url=model.base_url,
            llm_model="scripted",
            llm_api_key=secret,
        ).ready()
        await asyncio.to_thread(supervisor.ready().await_agents, 1)
        body = {
            "agent_id": "ClerkAgent",
            "task": "work",
            "parameters": {"label": f"with-{secret}"},
        }
        path = "/v1/tasks"
        sent = await ask(supervisor.api, "POST", path, body, {"traceparent": CALLER})
        assert sent.status == 200
        spans = await asyncio.to_thread(
            collector.await_spans,
            lambda all_: bool(named(all_, "chat scripted", TRACE)),
        )
    (chat,) = named(spans, "chat scripted", TRACE)
    assert secret not in str(spans)
    if tracing == "on":
        assert [span for span in spans if span.events] == []
        return
    names, attributes = zip(*chat.events, strict=True)
    assert set(names) == {"gen_ai.client.inference.operation.details"}
    shown = json.loads(attributes[0]["gen_ai.input.messages"])
    assert shown[0]["role"] == "user"
    assert "[user]\nwith-***" in shown[0]["parts"][0]["content"]
    said = json.loads(attributes[1]["gen_ai.output.messages"])
    assert said == [
        {"role": "assistant", "parts": [{"type": "text", "content": "It is done."}]}
    ]


async def test_a_collector_that_is_away_holds_nobody_up(
    own_system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks are done as ever, and the process leaves within the seconds that its last spans are given."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    worker = own_system.worker(tracing="on").ready()
    supervisor = own_system.supervisor(tracing="on").ready()
    body = {"text": "limit 50k, spent 42k: how is my budget?", "user": "ann"}
    assert (await ask(supervisor.api, "POST", "/v1/requests", body)).status == 200
    for process in (worker, supervisor):
        process.terminate()
    assert [worker.wait(), supervisor.wait()] == [0, 0]
    assert "last_spans_not_sent" in worker.log()
    assert worker.log().count("Transient error") == 1


def _await_run(system: System, label: str) -> None:
    gives_up_at = time.monotonic() + 60
    while not system.runs(label):
        assert time.monotonic() < gives_up_at, "the task did not begin"
        time.sleep(0.02)
