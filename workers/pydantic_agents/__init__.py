"""Agents of pydantic-ai as workers: each request to a model and each call of a tool is a journaled step.

Here belong the adapter to pydantic-ai and nothing that it has itself: messages, tools, structured answers, providers.
Importing this package imports pydantic-ai, the extra `agents`.
"""

try:
    import pydantic_ai as _pydantic_ai  # noqa: F401 - a missing extra is named here
except ModuleNotFoundError as _error:
    from tasklore.contracts.errors import ConfigurationError

    raise ConfigurationError(
        'agents with tools need pydantic-ai: pip install "tasklore[agents]"'
    ) from _error

from tasklore.workers.pydantic_agents.conversations import read_conversation
from tasklore.workers.pydantic_agents.durability import ASKS, READS, WRITES
from tasklore.workers.pydantic_agents.models import RoleModel
from tasklore.workers.pydantic_agents.runs import Prompt, run, serve
from tasklore.workers.pydantic_agents.tools import agent_tool, mcp_server, task_tool

__all__ = [
    "ASKS",
    "READS",
    "WRITES",
    "Prompt",
    "RoleModel",
    "agent_tool",
    "mcp_server",
    "read_conversation",
    "run",
    "serve",
    "task_tool",
]
