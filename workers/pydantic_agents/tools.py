"""Tools of an agent that are more than functions: other agents, and MCP servers."""

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pydantic_ai
from pydantic import ValidationError
from pydantic_ai import ModelRetry, RunContext, Tool, ToolFailed
from pydantic_ai.toolsets import AbstractToolset

from tasklore.contracts.errors import CallFailed, ConfigurationError
from tasklore.contracts.faults import complaint_of
from tasklore.contracts.parameters.model import Parameters
from tasklore.runtime.bounded_http import bound_responses
from tasklore.workers.context.context import Context
from tasklore.workers.pydantic_agents import mcp_relay

#: Seconds that the relay of a command is given beyond the time for an answer, so that its words are the ones heard.
_LATE_S = 5.0
#: Bytes of what an MCP server sends for one request: pictures are a few megabytes.
_MOST_BYTES = 8 * 1024**2
#: Codes of JSON-RPC by which a server refuses a call that a model may mend: the request, its method, its parameters.
_REFUSALS = (-32600, -32601, -32602)


def agent_tool(
    agent: pydantic_ai.Agent[Any, Any],
    *,
    context_of: Callable[[RunContext[Any]], Context],
    description: str = "",
    **options: Any,
) -> Tool[Any]:
    """Return a tool that runs *agent* within the same task: its requests and calls are steps of their own.

    Such tools of one agent run one after another, so that each run of the task takes its steps in the same order. An
    agent that another worker serves is called by `task_tool`, side by side with others.

    Args:
        agent: runs on the message that the model writes.
        context_of: finds the task's context in the run's dependencies.
        description: when the model is to use it; the agent's own by default.
        options: as for `run`: `deps`, `writes`, `limits` and so on.
    """
    from tasklore.workers.pydantic_agents.runs import run

    async def ask(ctx: RunContext[Any], message: str) -> object:
        return (await run(agent, message, context_of(ctx), **options)).output

    name = f"ask_{agent.name}"
    shown = description or str(agent.description or f"Ask {agent.name}.")
    return Tool(
        ask, name=name, description=shown, sequential=True, metadata={"tasklore": False}
    )


def task_tool(
    task: str | Callable[..., Any],
    parameters: type[Parameters],
    *,
    context_of: Callable[[RunContext[Any]], Context],
    description: str,
    name: str = "",
    within: timedelta | None = None,
) -> Tool[Any]:
    """Return a tool that calls another task, from whichever worker serves it, as `context.call` does.

    Such calls go side by side, and a later run finds their reports. The model is shown the failure of a child. A task
    that names who must agree, as `confirm="role:finance"`, asks them first.

    Args:
        task: a function with `@agent.task` on it, or "Agent.task".
        parameters: its class of parameters, whose schema the model fills.
        context_of: finds the task's context in the run's dependencies.
        description: when the model is to use it.
        name: of the tool; that of the task by default.
        within: how long the child may take, no longer than this task.
    """

    async def call(ctx: RunContext[Any], **given: Any) -> object:
        try:
            words = ctx.prompt if isinstance(ctx.prompt, str) else ""
            filled = parameters.model_validate(given)
            return await context_of(ctx).call_in_words(
                task, filled, words=words, within=within
            )
        except ValidationError as error:
            faults = [
                f"{'.'.join(map(str, fault['loc']))} {complaint_of(fault)}"
                for fault in error.errors()
            ]
            raise ModelRetry("; ".join(faults)) from error
        except CallFailed as error:
            raise ToolFailed(str(error)) from error

    named = name or (
        task.rpartition(".")[2] if isinstance(task, str) else task.__name__
    )
    tool: Tool[Any] = Tool.from_schema(
        call, named, description, parameters.model_json_schema(), takes_ctx=True
    )
    tool.metadata = {"tasklore": False}
    return tool


def mcp_server(
    name: str,
    *,
    command: Sequence[str] = (),
    url: str = "",
    env: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    timeout_s: float = 60.0,
) -> AbstractToolset[Any]:
    """Return the tools of an MCP server, for `Agent(toolsets=[...])`: of a *command* over stdio, or at a *url*.

    A command is started when a run first needs it, and serves the runs of a worker until that ends or it does. It is
    ended, with what it started in its group, when it leaves a request unanswered for *timeout_s*, or sends more than
    8 MiB, 10,000 lines, 20,000 values of JSON or 100 questions for one, and started anew by the next run; of what it
    logs 64 KiB a request are handed on. At a *url* no response may have more than 8 MiB or 20,000 values, or take
    longer than *timeout_s*, whatever signs of life come with it. Schemas of
    results are not applied: they are the server's, and may cost whatever it likes.

    Args:
        name: names its steps; the same while tasks are under way.
        command: the program and its arguments.
        url: the address of a server that speaks streamable HTTP.
        env: variables of the command's environment, beside PATH, HOME and the like.
        headers: sent with each request to *url*.
        timeout_s: seconds for the start and for each answer; the task's deadline shortens it.

    Raises:
        ConfigurationError: not one of *command* and *url* is given, or the packages for MCP are not installed.
    """
    if bool(command) == bool(url):
        raise ConfigurationError(
            f"MCP server {name!r} is either a command or a url; give one of the two"
        )
    try:
        from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
        from fastmcp.exceptions import ToolError
        from mcp import ClientSession
        from mcp.shared.exceptions import MCPError
        from pydantic_ai.mcp import MCPToolset
    except ImportError as error:
        raise ConfigurationError(
            'an MCP server as a tool needs: pip install "tasklore[agents]"'
        ) from error

    async def call(
        _ctx: RunContext[Any],
        call_tool: Callable[..., Any],
        tool: str,
        given: dict[str, Any],
    ) -> object:
        # An error of the tool is for the model to see; that of a server which is gone is for another run of the task.
        session = toolset.client.session
        session._tool_output_schemas = _NoSchemas()  # noqa: SLF001 - nothing public leaves them out
        try:
            return await call_tool(tool, given)
        except ToolError as error:
            raise ModelRetry(str(error)) from error
        except MCPError as error:
            if error.code not in _REFUSALS:
                spent.set()
                raise
            raise ModelRetry(str(error)) from error

    # The relay has ended the server, and is about to end itself: the next run needs another one.
    spent = asyncio.Event()

    class RenewedTransport(StdioTransport):
        async def connect(self, **options: Any) -> ClientSession | None:
            if spent.is_set():
                spent.clear()
                await self.disconnect()  # type: ignore[no-untyped-call]
            return await super().connect(**options)

    options: dict[str, Any] = {
        "id": name,
        "init_timeout": timeout_s + (0 if url else _LATE_S),
        "read_timeout": timeout_s + (0 if url else _LATE_S),
    }
    options |= {"tool_error_behavior": "error", "process_tool_call": call}
    transport: StdioTransport | StreamableHttpTransport
    if url:
        transport = StreamableHttpTransport(
            url,
            headers=dict(headers) if headers else None,
            httpx_client_factory=partial(_make_client, most_s=timeout_s),
        )
    else:
        relay = [str(Path(mcp_relay.__file__)), str(timeout_s), str(_MOST_BYTES)]
        arguments = ["-I", *relay, *command]
        transport = RenewedTransport(
            sys.executable, arguments, env=dict(env) if env else None
        )
    toolset = MCPToolset(transport, **options)
    return toolset


class _NoSchemas(dict[str, Any]):
    """Keeps which tools a server lists, and no schema of their results."""

    def __setitem__(self, tool: str, _schema: object) -> None:
        super().__setitem__(tool, None)

    def get(self, _tool: str, _default: object = None) -> None:
        return None


def _make_client(*, most_s: float, **options: Any) -> Any:
    """Return a client of HTTP as the library makes it, whose responses are bounded, in time by *most_s* seconds."""
    from mcp.shared._httpx_utils import create_mcp_http_client

    options.pop("follow_redirects", None)
    client = create_mcp_http_client(**options)
    bound_responses(
        client,
        _MOST_BYTES,
        values=mcp_relay.MOST_VALUES,
        most_s=most_s,
        has_news=True,
    )
    return client
