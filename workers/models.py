"""The language models of a worker, those among them that its agents' own files name, under the limits that hold."""

from collections.abc import Sequence
from contextlib import AsyncExitStack

from redis.asyncio import Redis

from tasklore.contracts.admission.limits import Limits
from tasklore.contracts.errors import ConfigurationError, InvalidInput
from tasklore.memory.budgets.governor import ModelBudget
from tasklore.memory.budgets.store import read_limits_file
from tasklore.runtime.metrics import Metrics
from tasklore.runtime.models.llm import Llm
from tasklore.runtime.settings import Settings
from tasklore.workers.agent import Agent
from tasklore.workers.agent_files import files_of, llm_settings_of
from tasklore.workers.summary import role_files


async def open_models(
    stack: AsyncExitStack,
    agents: Sequence[Agent],
    settings: Settings,
    redis: Redis,
    metrics: Metrics,
) -> tuple[Llm, ModelBudget]:
    """Open the models of *agents*, and the governor that holds their calls to the limits.

    Raises:
        ConfigurationError: the file of limits cannot be read; the message names its field.
    """
    deadline_s = settings.ledger_deadline_ms / 1000
    unchecked = metrics.count_unchecked
    governor = ModelBudget(
        redis, declared=_declared(settings), unchecked=unchecked, deadline_s=deadline_s
    )
    await stack.enter_async_context(governor.running())
    files = [file for agent in agents for file in files_of(agent, settings.agent_files)]
    files.append(role_files(settings.agent_files))
    opening = Llm(llm_settings_of(settings, files), meter=metrics, governor=governor)
    llm = await stack.enter_async_context(opening)
    if any(agent.listeners or asks_model(agent) for agent in agents):
        await llm.warm_up()
    return llm, governor


def asks_model(agent: Agent) -> bool:
    """Return whether a task of *agent* says that it uses a model: to compute it again costs tokens, and seconds."""
    return any("llm" in task.uses for task in agent.tasks.values())


def _declared(settings: Settings) -> Limits | None:
    if settings.limits_file is None:
        return None
    try:
        return read_limits_file(settings.limits_file)
    except InvalidInput as error:
        raise ConfigurationError(f"TASKLORE_LIMITS_FILE: {error}") from error
