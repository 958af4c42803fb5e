"""Print the results of a memory file as lines that `tasklore results import` reads; what was not taken goes to stderr.

```console
$ python -m examples.migrate_results LTM/BudgetTrackerAgent/memory.json > results.jsonl
$ tasklore results import BudgetTrackerAgent results.jsonl
```
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from examples.migrate_results.memory_file import (
    Line,
    Refusal,
    lines_by_code,
    lines_of,
    read_document,
)
from tasklore.contracts.errors import ConfigurationError, InvalidInput
from tasklore.workers.agent import Agent
from tasklore.workers.config import load_config
from tasklore.workers.loading import find_agent, load_agents


def migrate(file: Path, agent: Agent | None) -> Iterator[Line | Refusal]:
    """Yield a line for each result in *file*; under the whole keys of *agent* where its code is given.

    Raises:
        InvalidInput: the file cannot be read, or is no memory file.
    """
    try:
        document = read_document(file.read_bytes())
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error}") from error
    except InvalidInput as error:
        raise InvalidInput(f"{file}: {error}") from error
    yield from lines_of(document) if agent is None else lines_by_code(document, agent)


def find_code(reference: str | None, config: Path | None) -> Agent | None:
    """Return the agent that *reference* names, with the settings in *config*; None where neither is given.

    Raises:
        ConfigurationError: there is no such agent, there are several, or the settings do not fit.
    """
    settings = None if config is None else load_config(config)
    if reference is None:
        return (
            None
            if settings is None
            else settings.applied_to(find_agent(settings.agent_id))
        )
    found = load_agents(reference)
    if settings is not None:
        found = tuple(one for one in found if one.agent_id == settings.agent_id)
    if len(found) != 1:
        names = ", ".join(one.agent_id for one in found) or "none that is configured"
        raise ConfigurationError(
            f"{reference!r} must name one agent, and has {names}; write MODULE:NAME"
        )
    return found[0] if settings is None else settings.applied_to(found[0])


def main() -> int:
    """Print the lines of the file that the command line names; 1 when a result was not taken."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("file", type=Path)
    reader.add_argument(
        "--agent",
        metavar="REF",
        help="the agent's code, as for `tasklore worker`: for types that no card tells",
    )
    reader.add_argument(
        "--config", type=Path, help="its settings, as for `tasklore worker`"
    )
    given = reader.parse_args()
    refused = 0
    try:
        for one in migrate(given.file, find_code(given.agent, given.config)):
            if isinstance(one, Refusal):
                sys.stderr.write(f"{one.key} is not taken over: {one.why}\n")
                refused = 1
            else:
                sys.stdout.write(f"{json.dumps(one)}\n")
    except (ConfigurationError, InvalidInput) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return refused


if __name__ == "__main__":
    sys.exit(main())
