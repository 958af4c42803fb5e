"""One system of real processes for the golden files: servers, a supervisor with keys, and a worker without a model."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tasklore.supervisor.http.admission.key_file import Role, make_key
from tests.acceptance.conversation import MEMORY, SWITCHBOARD
from tests.acceptance.system import AGENTS, BUDGET, NAPPER, System, running_system

PAYER = str(AGENTS / "payer.py")
DOUBLER = str(AGENTS / "doubler.py")
STORY_AGENTS = "tasklore.workers.agents.story"

#: The agents of the system in which commands are given, and of the one that is called.
COMMANDED = (BUDGET, NAPPER, PAYER, DOUBLER, SWITCHBOARD, MEMORY, STORY_AGENTS)
CALLED = (BUDGET, NAPPER, PAYER, MEMORY)

#: What each key may do, the user that it is for, and its tenant.
CALLERS: dict[str, tuple[tuple[Role, ...], str | None, str | None]] = {
    "admin": (("admin",), None, None),
    "asker": (("ask",), None, None),
    "reader": (("read",), None, None),
    "approver": (("approve",), None, None),
    "maker": (("admin",), None, "acme"),
    "alice": (("admin",), "alice", None),
    "rival": (("admin",), None, "rival"),
}


@dataclass(frozen=True)
class Seeded:
    """The servers and processes, both addresses of the API, and a key for each of `CALLERS`."""

    processes: System
    api: str
    operations: str
    keys: dict[str, str]


@contextlib.contextmanager
def seeded_system(folder: Path, *agents: str) -> Iterator[Seeded]:
    """Run the system with its data below *folder*, and a worker for *agents*, within the block."""
    file = folder / "keys.json"
    keys = {
        name: make_key(file, name, roles, user, tenant=tenant)
        for name, (roles, user, tenant) in CALLERS.items()
    }
    # Whoever gives commands answers questions, too.
    keys["commander"] = make_key(
        file, "commander", ("admin",), None, approves=("finance",)
    )
    settings = {
        "llm_base_url": "",
        "llm_api_key": "",
        "ack_wait_s": 30,
        "evidence_dir": folder / "evidence",
    }
    with running_system(folder) as system:
        worker = system.worker(*agents, **settings, listen_idle_s=0)
        door = {
            "api_keys_file": file,
            "api_rate": 100_000,
            "api_burst": 100_000,
            "api_unknown_rate": 100_000,
            "approval_secret": "0123456789abcdef0123456789abcdef",
        }
        supervisor = system.supervisor(**settings, **door)
        operations = system.operations(**settings, **door)
        worker.ready()
        api = supervisor.ready().api
        supervisor.await_agents(len(agents))
        yield Seeded(system, api, operations.ready().api, keys)
