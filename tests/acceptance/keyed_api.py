"""A system without a model whose API demands keys: a supervisor, a worker, and the agents that remember."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tasklore.contracts.callers import Role
from tasklore.supervisor.http.admission.key_file import make_key
from tests.acceptance.conversation import MEMORY, SWITCHBOARD
from tests.acceptance.system import BUDGET, NAPPER, running_system

#: What each caller may do, and the user that it acts for.
_CALLERS: dict[str, tuple[tuple[Role, ...], str | None]] = {
    "anybody": (("ask", "read"), None),
    "ana": (("ask", "read"), "ana"),
    "bob": (("ask", "read"), "bob"),
    "reader": (("read",), None),
}


class KeyedApi(NamedTuple):
    """The address of the API, and a key for each caller."""

    url: str
    keys: dict[str, str]


@contextmanager
def keyed_api(folder: Path) -> Iterator[KeyedApi]:
    """Run the system with its data below *folder*."""
    file = folder / "keys.json"
    keys = {
        name: make_key(file, name, roles, user)
        for name, (roles, user) in _CALLERS.items()
    }
    with running_system(folder) as system:
        worker = system.worker(
            BUDGET, NAPPER, SWITCHBOARD, MEMORY, llm_base_url="", llm_api_key=""
        )
        supervisor = system.supervisor(
            api_keys_file=file, llm_base_url="", llm_api_key=""
        )
        worker.ready()
        yield KeyedApi(supervisor.ready().api, keys)
