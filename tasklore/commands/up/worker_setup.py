"""The agents of `tasklore worker`: loaded by reference, one of them perhaps with a configuration file of its own."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog

from tasklore.contracts.errors import (
    ConfigurationError,
    InvalidInput,
    MemoryUnavailable,
)
from tasklore.memory.long_term import seed_file
from tasklore.memory.long_term.card_parameters import form_of
from tasklore.memory.long_term.memory_files import (
    ImportForm,
    import_file,
    refusal_of_task,
)
from tasklore.memory.long_term.owners import ImportLog
from tasklore.memory.long_term.store import LongTermMemory
from tasklore.runtime.servers import valkey
from tasklore.runtime.settings import Settings
from tasklore.workers.agent import Agent
from tasklore.workers.config import load_config
from tasklore.workers.loading import find_agent, load_agents
from tasklore.workers.task import Task

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Agents as they will be served; `old_memory` belongs to `configured` and is imported once."""

    agents: tuple[Agent, ...]
    remembers: bool = True
    supervisor_id: str | None = None
    configured: Agent | None = None
    old_memory: Path | None = None

    async def import_memory(self, settings: Settings) -> None:
        """Import the old memory, unless this very file was imported before."""
        if (
            self.configured is None
            or self.old_memory is None
            or not self.remembers
            or settings.redis_url is None
        ):
            return
        text = _read(self.old_memory)
        if text is None:
            log.info("no_memory_to_import", path=str(self.old_memory))
            return
        async with valkey.connect(settings.redis_url, name="tasklore-import") as client:
            await client.check()
            await _import_once(
                LongTermMemory(client, budget_s=1.0),
                ImportLog(client),
                self.configured,
                text,
            )


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
        configured=configured,
        old_memory=found.ltm_path,
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


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigurationError(
            f"the memory file {str(path)!r} cannot be read: {error.strerror or error}"
        ) from error


async def _import_once(
    memory: LongTermMemory, imports: ImportLog, agent: Agent, text: bytes
) -> None:
    forms = {task.name: _form_of_task(agent, task) for task in agent.tasks.values()}
    try:
        if await imports.knows(agent.agent_id, text):
            return
        file = seed_file.read(text, {name: one.form for name, one in forms.items()})
        done = await import_file(
            memory, agent.agent_id, file, forms, now_ms=time.time_ns() // 1_000_000
        )
        await imports.note(agent.agent_id, text)
    except InvalidInput as error:
        raise ConfigurationError(f"{agent.agent_id}: ltm_path: {error}") from error
    except MemoryUnavailable as error:
        log.warning("memory_not_imported", agent=agent.agent_id, error=str(error))
        return
    log.info(
        "memory_imported",
        agent=agent.agent_id,
        stored=done.stored,
        known=done.known,
        quarantined=len(done.quarantined),
        refused=len(done.refused),
    )


def _form_of_task(agent: Agent, task: Task) -> ImportForm:
    """Return what an import has to know of a task whose code is here."""
    return ImportForm(
        form=form_of(task.parameters.schema_for_cards()),
        parameters=task.parameters,
        version=agent.memory_version(task),
        keep=task.remember_for,
        refusal=refusal_of_task(task.remember),
    )
