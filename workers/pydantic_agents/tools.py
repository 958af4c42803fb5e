"""Tools of an agent that are more than functions: other agents, and MCP servers."""

from collections.abc import Callable
from typing import Any

import pydantic_ai
from pydantic_ai import RunContext, Tool

from workers.context.context import Context


def agent_tool(
    agent: pydantic_ai.Agent[Any, Any], *, context_of: Callable[[RunContext[Any]], Context], description: str = ""
) -> Tool[Any]:
    """Return a tool that runs *agent* within the same task: its requests and calls are steps of their own.

    Such tools of one agent run one after another, so that each run of the task takes its steps in the same order. An
    agent that another worker serves is called by `context.call` in a function tool, side by side with others.

    Args:
        agent: runs on the message that the model writes.
        context_of: finds the task's context in the run's dependencies.
        description: tells the model when to use it; the agent's own by default.
    """
    from workers.pydantic_agents.runs import run

    async def ask(ctx: RunContext[Any], message: str) -> object:
        return (await run(agent, message, context_of(ctx))).output

    name = f"ask_{agent.name}"
    shown = description or str(agent.description or f"Ask {agent.name}.")
    return Tool(ask, name=name, description=shown, sequential=True, metadata={"tasklore": False})
