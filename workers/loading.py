"""Finding agents: by module path, by file path, or by the name of an entry point of group `tasklore.agents`."""

import importlib
import sys
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from tasklore.contracts.errors import ConfigurationError
from tasklore.contracts.faults import nearest
from tasklore.runtime.source_files import (
    execute,
    make_importable,
    name_of_its_own,
    place_in_package,
)
from tasklore.workers.agent import Agent
from tasklore.workers.user_code import origin_of, running_user_code

#: Under it a distribution declares its agents: `budget = "my_agents.budget:agent"`.
GROUP = "tasklore.agents"


def load_agents(reference: str) -> tuple[Agent, ...]:
    """Return the agents that *reference* names, in the order of their declaration.

    Args:
        reference: a module ("my_agents.greeter"), a file ("./greeter.py") or an entry point ("budget"); a module or
            file may be followed by the name of one agent in it ("my_agents.greeter:agent").

    Raises:
        ConfigurationError: nothing is found there, its code raises, or it declares no agent with a task or a listener;
            the message has the name that was looked for, the nearest names, and the user's own line that raised.
    """
    place, _, attribute = reference.partition(":")
    if not place:
        raise ConfigurationError(
            "no agent is named; give a module path, a file path or an entry point's name"
        )
    if place.endswith(".py") or "/" in place or "\\" in place:
        return _agents_in(_load_file(Path(place)), attribute, reference)
    point = _entry_point(place)
    if point is None and "." in place and Path(place).is_file():
        raise ConfigurationError(
            f"{place!r} is not a Python file; name the .py file of the agent, or its "
            "module"
        )
    if point is not None and not attribute:
        return _agents_at(point)
    return _agents_in(_load_module(place), attribute, reference)


def find_agent(agent_id: str) -> Agent:
    """Return the agent with *agent_id* among those that installed distributions declare.

    Raises:
        ConfigurationError: none has this id; the message names those that are there.
    """
    known: dict[str, Agent] = {}
    broken: list[str] = []
    for point in entry_points(group=GROUP):
        try:
            known |= {agent.agent_id: agent for agent in _agents_at(point)}
        except ConfigurationError as error:
            # Somebody else's broken agent must not stop this one.
            broken.append(str(error))
    if agent_id not in known:
        cure = f"name its module or file; installed are {', '.join(sorted(known)) or 'none'}"
        told = "".join(f"; {problem}" for problem in broken)
        raise ConfigurationError(
            f"no installed agent is called {agent_id!r}{nearest(agent_id, known)}; {cure}{told}"
        )
    return known[agent_id]


def _entry_point(name: str) -> EntryPoint | None:
    """Return the entry point called *name*; refuse a name that is also a module in the current folder."""
    point = next(iter(entry_points(group=GROUP, name=name)), None)
    if point is not None and Path(f"{name}.py").is_file():
        msg = f"{name!r} is an installed agent ({point.value}) and a file here; write './{name}.py' or '{point.value}'"
        raise ConfigurationError(msg)
    return point


def _agents_at(point: EntryPoint) -> tuple[Agent, ...]:
    return _agents_in(
        _load_module(point.module), point.attr or "", f"{point.name} ({point.value})"
    )


def _load_module(path: str) -> ModuleType:
    make_importable(Path.cwd())
    if not all(part.isidentifier() for part in path.split(".")):
        raise ConfigurationError(
            f"{path!r} is not a module path; write 'package.module', or './file.py' for "
            "a file"
        )
    try:
        with running_user_code(f"the module {path!r}", path):
            return importlib.import_module(path)
    except ModuleNotFoundError as error:
        # Only its own absence arrives here as such; what it misses itself has been told with its line.
        raise ConfigurationError(_absent_module(path, error.name or path)) from error


def _absent_module(path: str, missing: str) -> str:
    parent = missing.rpartition(".")[0]
    names = _neighbours(parent)
    cure = f"write './{path.replace('.', '/')}.py' for a file, or start where {path.partition('.')[0]!r} lies"
    where = (
        f"in {parent!r}" if parent else f"in {Path.cwd()} or among what is installed"
    )
    return f"there is no module {missing!r} {where}{nearest(missing, names)}; {cure}"


def _neighbours(parent: str) -> list[str]:
    """Return what could have been meant: modules beside the missing one, and entry points."""
    if parent:
        beside = getattr(sys.modules.get(parent), "__path__", ())
        return [f"{parent}.{module.name}" for module in iter_modules(beside)]
    here = [module.name for module in iter_modules([str(Path.cwd())])]
    return here + [point.name for point in entry_points(group=GROUP)]


def _load_file(path: Path) -> ModuleType:
    path = path.expanduser().resolve()
    if not path.is_file():
        beside = (
            [file.name for file in path.parent.glob("*.py")]
            if path.parent.is_dir()
            else []
        )
        raise ConfigurationError(
            f"there is no file {str(path)!r}{nearest(path.name, beside)}; give the path of one"
        )
    root, name = place_in_package(path)
    make_importable(root)
    if "." in name:
        return _load_module(name)
    loaded = sys.modules.get(name)
    if loaded is not None:
        if getattr(loaded, "__file__", None) == str(path):
            return loaded
        # Somebody else bears this name already (`json.py`): it must not be replaced under those who use it.
        name = name_of_its_own(path)
    return sys.modules.get(name) or _execute(name, path)


def _execute(name: str, path: Path) -> ModuleType:
    with running_user_code(f"the file {str(path)!r}"):
        return execute(name, path)


def _agents_in(module: ModuleType, attribute: str, reference: str) -> tuple[Agent, ...]:
    names = {
        name: value for name, value in vars(module).items() if isinstance(value, Agent)
    }
    if attribute:
        named: Any = vars(module).get(attribute)
        if not isinstance(named, Agent):
            what = (
                f"no agent {attribute!r}"
                if named is None
                else f"{attribute!r}, but it is a {type(named).__name__}"
            )
            cure = f"agents there are {', '.join(names) or 'none'}"
            raise ConfigurationError(
                f"{reference}: the module has {what}{nearest(attribute, names)}; {cure}"
            )
        names = {attribute: named}
    agents = tuple({id(agent): agent for agent in names.values()}.values())
    if not agents:
        cure = 'write `agent = Agent("MyAgent")` at its top level'
        raise ConfigurationError(
            f"{reference}: {origin_of(module)} declares no agent; {cure}"
        )
    _demand_servable(agents, reference)
    return agents


def _demand_servable(agents: tuple[Agent, ...], reference: str) -> None:
    seen: set[str] = set()
    for agent in agents:
        if not agent.tasks and not agent.listeners:
            msg = f"{reference}: {agent.agent_id} has no task; decorate a function with @agent.task or @agent.listen"
            raise ConfigurationError(msg)
        if agent.agent_id in seen:
            raise ConfigurationError(
                f"{reference}: two agents are called {agent.agent_id!r}; rename one"
            )
        seen.add(agent.agent_id)
