"""A real MCP server of the official package as tools of agents, over stdio and over streamable HTTP."""

import asyncio
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pydantic_ai
import pytest
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import AbstractToolset

from tasklore import Agent, Context
from tasklore.contracts.errors import ConfigurationError, Unreachable
from tasklore.workers.pydantic_agents import Prompt, mcp_server, run
from tasklore.workers.testing import AgentKit

DOUBLE = str(Path(__file__).parents[1] / "mcp_double.py")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return the file in which the server notes each call."""
    path = tmp_path / "calls"
    path.touch()
    return path


@pytest.fixture(params=["stdio", "http"])
def toolset(
    request: pytest.FixtureRequest, log: Path
) -> Iterator[AbstractToolset[Any]]:
    """Return the tools of a server that is reached in either way."""
    if request.param == "stdio":
        yield mcp_server("double", command=[sys.executable, DOUBLE, str(log)])
        return
    yield mcp_server("double", url=request.getfixturevalue("http_server"))


@pytest.fixture
def http_server(log: Path) -> Iterator[str]:
    """Return the address of the server over HTTP."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen(
        [sys.executable, DOUBLE, str(log), str(port)], stderr=subprocess.DEVNULL
    ) as server:
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
        server.kill()


def calls_in(log: Path) -> list[str]:
    """Return the calls that the server noted."""
    return log.read_text().splitlines()


def make_agent(
    toolset: AbstractToolset[Any], *calls: tuple[str, dict[str, Any]], fails: int = 0
) -> Agent:
    """Return an agent whose model makes *calls* and answers with their results; its first *fails* runs fail then."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        assert {"count_words", "die_once", "hang", "refuse"} < {
            tool.name for tool in info.function_tools
        }
        number = sum(isinstance(message, ModelResponse) for message in messages)
        if number < len(calls):
            return ModelResponse([ToolCallPart(*calls[number])])
        parts = [part for message in messages for part in message.parts]
        return ModelResponse(
            [
                TextPart(
                    " ".join(
                        str(one.content)
                        for one in parts
                        if isinstance(one, ToolReturnPart)
                    )
                )
            ]
        )

    model: pydantic_ai.Agent[Any, str] = pydantic_ai.Agent(
        FunctionModel(answer), name="reader", toolsets=[toolset]
    )
    served = Agent("ReaderAgent")

    @served.task(uses=("llm",))
    async def read(prompt: Prompt, context: Context) -> str:
        """Run the agent."""
        result = await run(model, prompt.prompt, context)
        if context.attempt <= fails:
            raise ConnectionResetError("after the agent")
        return result.output

    return served


async def test_two_agents_use_one_server_and_repeat_no_call(
    toolset: AbstractToolset[Any], log: Path
) -> None:
    """Listing the tools and calling them are steps."""
    first = AgentKit(
        make_agent(
            toolset,
            ("count_words", {"text": "a b"}),
            ("count_words", {"text": "c"}),
            fails=2,
        )
    )
    second = AgentKit(make_agent(toolset, ("count_words", {"text": "d e f"})))
    reports = await asyncio.gather(
        *(kit.run("read", {"prompt": "count"}) for kit in (first, second))
    )
    assert [report.result for report in reports] == ["2 1", "3"]
    assert len(first.raised) == 2
    assert sorted(calls_in(log)) == [
        "count_words a b",
        "count_words c",
        "count_words d e f",
    ]


async def test_a_server_that_dies_is_a_retryable_error_and_started_again(
    log: Path,
) -> None:
    """What was done before stays done; over stdio the next run starts the server anew."""
    toolset = mcp_server("double", command=[sys.executable, DOUBLE, str(log)])
    kit = AgentKit(
        make_agent(toolset, ("count_words", {"text": "a b"}), ("die_once", {}))
    )
    report = await kit.run("read", {"prompt": "count"})
    assert report.result == "2 alive"
    assert [type(error) for error in kit.raised] == [Unreachable]
    assert "MCP server 'double' failed" in str(kit.raised[0])
    assert calls_in(log) == ["count_words a b", "die_once", "die_once"]


async def test_a_server_that_hung_is_ended_and_the_next_task_has_another(
    log: Path,
) -> None:
    """The next one neither waits nor fails."""
    toolset = mcp_server(
        "double", command=[sys.executable, DOUBLE, str(log)], timeout_s=12
    )
    kit = AgentKit(make_agent(toolset, ("hang_once", {})))
    failed = await kit.run("read", {"prompt": "count"}, max_attempts=1)
    assert failed.status == "failed"
    assert isinstance(kit.raised[0], Unreachable)
    assert "did not answer within 12 s" in str(kit.raised[0])
    [hung] = [int(line.split()[1]) for line in calls_in(log)]
    await asyncio.to_thread(wait_for_end, hung)
    report = await kit.run("read", {"prompt": "count again"}, max_attempts=1)
    assert report.result == "awake"


@pytest.mark.parametrize("megabytes", [300, 9])
async def test_a_server_that_sends_more_than_anybody_reads_is_ended(
    megabytes: int, log: Path
) -> None:
    """None of it reaches the worker, whose loop goes on; what fits is taken."""
    toolset = mcp_server("double", command=[sys.executable, DOUBLE, str(log)])
    kit = AgentKit(make_agent(toolset, ("flood", {"megabytes": megabytes})))
    before = peak_memory()
    report = await kit.run("read", {"prompt": "count"}, max_attempts=1)
    assert report.status == "failed"
    assert "for one request" in str(kit.raised[0])
    assert peak_memory() - before < 50 * 1024**2
    other = AgentKit(make_agent(toolset, ("flood", {"megabytes": 1})))
    report = await other.run("read", {"prompt": "count"}, max_attempts=1)
    assert report.status == "completed", other.raised
    assert len(report.result) == 1024**2


async def test_a_server_over_http_that_sends_more_than_anybody_reads_is_cut_off(
    log: Path, http_server: str
) -> None:
    """Its answers end at their bound; other calls are served."""
    toolset = mcp_server("double", url=http_server, timeout_s=20)
    kit = AgentKit(make_agent(toolset, ("flood", {"megabytes": 60})))
    before = peak_memory()
    report = await kit.run("read", {"prompt": "count"}, max_attempts=1)
    assert report.status == "failed"
    assert peak_memory() - before < 100 * 1024**2
    other = AgentKit(make_agent(toolset, ("count_words", {"text": "a b"})))
    report = await other.run("read", {"prompt": "count"}, max_attempts=1)
    assert report.result == "2"


@pytest.fixture
def sly(tmp_path: Path) -> AgentKit:
    """Return the kit of an agent that calls the tool of `SLY` once."""
    script = tmp_path / "server.py"
    script.write_text(SLY)
    toolset = mcp_server(
        "sly",
        command=[sys.executable, str(script), str(tmp_path / "child")],
        timeout_s=12,
    )
    model: pydantic_ai.Agent[Any, str] = pydantic_ai.Agent(
        FunctionModel(call_sly), name="reader", toolsets=[toolset]
    )
    served = Agent("SlyAgent")

    @served.task(uses=("llm",))
    async def read(prompt: Prompt, context: Context) -> str:
        """Run the agent."""
        return (await run(model, prompt.prompt, context)).output

    return AgentKit(served)


async def test_no_schema_of_a_server_is_applied(sly: AgentKit) -> None:
    """Its pattern would take for ever, and it has no say in what a result may be."""
    report = await sly.run("read", {"prompt": "pattern"}, max_attempts=1)
    assert report.result == "done"


@pytest.mark.parametrize("kind", ["lines", "questions", "values"])
async def test_a_server_that_sends_many_small_things_is_ended(
    kind: str, sly: AgentKit, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each line, question and value costs the worker a little, and nobody asked for them."""
    report = await sly.run("read", {"prompt": kind}, max_attempts=1)
    assert report.status == "failed"
    assert "10,000 lines, 20,000 values of JSON or 100 questions for one request" in (
        capfd.readouterr().err
    )


async def test_a_server_that_logs_without_end_is_cut_short(
    sly: AgentKit, capfd: pytest.CaptureFixture[str]
) -> None:
    """What it may log is seen, that there is more too, and its answer is taken."""
    report = await sly.run("read", {"prompt": "loud"}, max_attempts=1)
    assert report.result == "done"
    logged = capfd.readouterr().err
    assert "logs more, which is left out" in logged
    assert 60_000 < len(logged) < 1_000_000


@pytest.mark.parametrize("kind", ["child alone", "child"])
async def test_what_a_server_started_ends_with_it(
    kind: str, sly: AgentKit, tmp_path: Path
) -> None:
    """Also where it has left before, and the child holds its streams open."""
    report = await sly.run("read", {"prompt": kind}, max_attempts=1)
    assert report.status == "failed"
    pid = int((tmp_path / "child").read_text())
    await asyncio.to_thread(wait_for_end, pid)


SLY = """
import json, os, pathlib, subprocess, sys, time
SCHEMA = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    if "lines" in line:
        for _ in range(300_000):
            print('{"jsonrpc": "2.0", "method": "notifications/nothing"}')
    if "questions" in line:
        for number in range(5_000):
            print(json.dumps({"jsonrpc": "2.0", "id": f"s{number}", "method": "ping"}))
    if "values" in line:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {"content": [{}] * 30_000}}))
    if "loud" in line:
        for _ in range(300):
            sys.stderr.write("e" * 9_999 + chr(10))
    if "child" in line:
        child = subprocess.Popen(["sleep", "600"])
        pathlib.Path(sys.argv[1]).write_text(str(child.pid))
        if "alone" in line:
            os._exit(0)
        time.sleep(600)
    result = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "sly", "version": "1"}},
        "tools/list": {"tools": [{"name": "sly", "inputSchema": {"type": "object"}, "outputSchema": SCHEMA}]},
        "tools/call": {"content": [{"type": "text", "text": "x"}],
                       "structuredContent": {"a": "a" * 60 + "!"}},
    }.get(asked["method"])
    answer = {"result": result} if result else {"error": {"code": -32601, "message": "no such method"}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""


def call_sly(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    """Call the tool once."""
    if any(isinstance(message, ModelResponse) for message in messages):
        return ModelResponse([TextPart("done")])
    [asked] = [
        one.content
        for message in messages
        for one in message.parts
        if isinstance(one, UserPromptPart)
    ]
    return ModelResponse([ToolCallPart("sly", {"how": asked})])


def wait_for_end(pid: int) -> None:
    """Return when the process is gone."""
    until = time.monotonic() + 60
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < until
        time.sleep(0.05)


def peak_memory() -> int:
    """Return the most bytes of memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


async def test_an_error_of_a_tool_is_shown_to_the_model(
    toolset: AbstractToolset[Any], log: Path
) -> None:
    """It may call another one; here it gives up, as it repeats itself."""
    kit = AgentKit(make_agent(toolset, *[("refuse", {})] * 5))
    report = await kit.run("read", {"prompt": "count"})
    assert report.error.type == "GiveUp"
    assert "refuse" in str(kit.raised[0])


def test_a_server_is_a_command_or_an_address() -> None:
    """Both or neither is a slip."""
    for wrong in ({}, {"command": ["x"], "url": "http://x"}):
        with pytest.raises(ConfigurationError, match="either a command or a url"):
            mcp_server("double", **wrong)
