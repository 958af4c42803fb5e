"""The agents of `tasklore worker`: loaded by reference, one of them perhaps with a configuration file of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tasklore.contracts.errors import ConfigurationError
from tasklore.workers.agent import Agent
from tasklore.workers.config import load_config
from tasklore.workers.loading import find_agent, load_agents


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Agents as they will be served."""

    agents: tuple[Agent, ...]
    remembers: bool = True
    supervisor_id: str | None = None


def prepare(references: Sequence[str], config: Path | None) -> Prepared:
    """Return what to serve for *references*; with *config* alone, the installed agent that it names.

    Raises:
        ConfigurationError: nothing is named, an agent cannot be loaded, or the file does not fit.
    """
    if config is None:
        if not references:
            raise ConfigurationError(
                "no agent is named; give a module, a file or an installed agent, or --config FILE"
            )
        return Prepared(agents=_distinct(_load(references)))
    found = load_config(config)
    agents = _load(references) if references else (find_agent(found.agent_id),)
    fitting = [agent for agent in agents if agent.agent_id == found.agent_id]
    if not fitting:
        names = ", ".join(agent.agent_id for agent in agents)
        raise ConfigurationError(
            f"{str(config)!r} is for {found.agent_id!r}, which is not served here: {names}"
        )
    if len(agents) > 1 and not found.enable_ltm_cache:
        # The switch is the process's: it must not silence agents that it was not written for.
        raise ConfigurationError(
            f"{str(config)!r} disables the result cache, for every agent of this "
            f"process; serve {found.agent_id} alone"
        )
    configured = found.applied_to(fitting[0])
    return Prepared(
        agents=_distinct(
            tuple(configured if agent is fitting[0] else agent for agent in agents)
        ),
        remembers=found.enable_ltm_cache,
        supervisor_id=found.supervisor_id,
    )


def _load(references: Sequence[str]) -> tuple[Agent, ...]:
    return tuple(agent for reference in references for agent in load_agents(reference))


def _distinct(agents: tuple[Agent, ...]) -> tuple[Agent, ...]:
    """Return *agents*, each once.

    Raises:
        ConfigurationError: two different ones bear one id.
    """
    known: dict[str, Agent] = {}
    for agent in agents:
        if known.setdefault(agent.agent_id, agent) is not agent:
            raise ConfigurationError(
                f"two different agents are called {agent.agent_id!r}; rename one"
            )
    return tuple(known.values())
