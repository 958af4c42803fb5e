"""The walls between the rooms stand: each contract of .importlinter is broken once, in a copy, to see it fail."""

import configparser
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = (
    "contracts",
    "memory",
    "runtime",
    "supervisor",
    "workers",
    "tasklore",
    "examples",
)

_PREFIX = "importlinter:contract:"

#: Contract, file that breaks it (made when missing), and the import that does.
BREACHES = [
    ("down", "memory/ledger/ledger.py", "import tasklore.workers.agent"),
    ("down", "supervisor/catalogue.py", "import tasklore.workers.agent"),
    ("down", "memory/ledger/ledger.py", "import tasklore.runtime.settings"),
    ("down", "contracts/messages.py", "import tasklore.memory.keys"),
    ("contracts-are-pure", "contracts/subjects.py", "import redis.asyncio"),
    ("contracts-are-pure", "contracts/subjects.py", "import asyncio"),
    (
        "quantities-stand-alone",
        "contracts/quantities/amounts/amount.py",
        "import tasklore.contracts.errors",
    ),
    ("quantities-stand-alone", "contracts/quantities/units/unit.py", "import asyncio"),
    ("memory-is-mechanical", "memory/long_term/store.py", "import openai"),
    (
        "memory-is-mechanical",
        "memory/conversations/conversation.py",
        "from nats.aio.client import Client",
    ),
    ("pydantic-ai-in-one-place", "workers/task.py", "import pydantic_ai"),
    (
        "pydantic-ai-in-one-place",
        "workers/agents/budget.py",
        "from tasklore.workers.pydantic_agents import run",
    ),
    (
        "agents-use-only-context",
        "workers/agents/budget.py",
        "from redis.asyncio import Redis",
    ),
    (
        "agents-use-only-context",
        "workers/agents/budget.py",
        "from tasklore.runtime.models.llm import Llm",
    ),
    (
        "agents-use-only-context",
        "workers/agents/budget.py",
        "from tasklore.memory.documents.storage.store import DocumentStore",
    ),
    (
        "documents-are-edited-by-workers",
        "supervisor/service.py",
        "from tasklore.memory.documents.storage.store import DocumentStore",
    ),
    (
        "documents-are-pure",
        "memory/documents/edits.py",
        "from tasklore.memory.command_batch import CommandBatch",
    ),
    (
        "agents-use-only-context",
        "workers/agents/budget.py",
        "from tasklore.memory.sessions.session import SessionCache",
    ),
    (
        "pipelines-are-decided-purely",
        "supervisor/pipelines/planning.py",
        "from tasklore.memory.sessions.session import SessionCache",
    ),
    (
        "runs-are-driven-by-supervisors",
        "workers/host.py",
        "from tasklore.memory.sessions.pipeline_runs import PipelineRuns",
    ),
    (
        "stories-are-changed-by-supervisors",
        "workers/host.py",
        "from tasklore.memory.stories.analyses import AnalysisStore",
    ),
    (
        "stories-are-changed-by-supervisors",
        "runtime/health.py",
        "from tasklore.memory.stories.analyses import AnalysisStore",
    ),
    (
        "stories-are-pure",
        "memory/stories/settlement.py",
        "from tasklore.memory.stories.store import StoryStore",
    ),
    (
        "operations-know-no-door",
        "supervisor/operations/schedules.py",
        "import fastapi",
    ),
    (
        "operations-know-no-door",
        "supervisor/operations/table.py",
        "from tasklore.supervisor.http.dependencies import ApiDependencies",
    ),
    (
        "pages-are-views-of-operations",
        "supervisor/http/console/overview.py",
        "from tasklore.memory.ledger.ledger import Ledger",
    ),
    ("stories-are-pure", "supervisor/pipelines/analysis/reducer.py", "import asyncio"),
    (
        "agents-use-only-context",
        "workers/agents/budget.py",
        "from tasklore.memory.stories.store import StoryStore",
    ),
    (
        "agents-are-independent",
        "workers/agents/second.py",
        "from tasklore.workers.agents.budget import Budget",
    ),
    (
        "hosting-knows-no-agent",
        "workers/host.py",
        "import tasklore.workers.agents.budget",
    ),
    (
        "long-term-memory-belongs-to-workers",
        "supervisor/service.py",
        "from tasklore.memory.long_term.store import LongTermMemory",
    ),
    (
        "long-term-memory-belongs-to-workers",
        "tasklore/commands/ask/ask.py",
        "from tasklore.memory.long_term.store import LongTermMemory",
    ),
    (
        "broker-in-wiring",
        "workers/execution/consumer.py",
        "from faststream.nats import NatsBroker",
    ),
    ("broker-in-wiring", "workers/wiring.py", "from faststream.nats import NatsBroker"),
    (
        "frames-in-wiring",
        "supervisor/service.py",
        "from tasklore.runtime.process import Process",
    ),
    ("models-in-one-place", "supervisor/understanding/model.py", "import openai"),
    ("examples-are-users", "examples/trip.py", "from tasklore.memory import keys"),
    (
        "examples-are-users",
        "examples/coin_world/agents.py",
        "from tasklore.supervisor.dispatch import Dispatch",
    ),
    (
        "examples-are-users",
        "examples/coin_world/running.py",
        "from tasklore.runtime.servers.endpoints import find_endpoints",
    ),
]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy what the contracts are about."""
    place = tmp_path_factory.mktemp("copy")
    for room in ROOMS:
        shutil.copytree(
            ROOT / room,
            place / room,
            symlinks=True,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    shutil.copy(ROOT / ".importlinter", place)
    return place


#: Runs the linter where an editable install of ours is not found: `examples` is a folder that both would be part of.
_LINT = (
    "import sys; root = sys.argv.pop(1); sys.path[:] = [entry for entry in sys.path if entry != root]; "
    "from importlinter.cli import lint_imports_command; lint_imports_command()"
)


def _lint(place: Path, *contracts: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-c", _LINT, str(ROOT), "--no-logo"]
    chosen = [word for contract in contracts for word in ("--contract", contract)]
    environ = {**os.environ, "PYTHONPATH": str(place)}
    return subprocess.run(
        [*command, *chosen],
        cwd=place,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )


def _contracts() -> dict[str, str]:
    """Return the name of each contract by its identifier."""
    written = configparser.ConfigParser()
    written.read(ROOT / ".importlinter")
    return {
        part.removeprefix(_PREFIX): written[part]["name"]
        for part in written.sections()
        if part.startswith(_PREFIX)
    }


def test_every_wall_stands(copy: Path) -> None:
    """Nothing in the house breaks a contract; run before the copy is spoiled and with it as it is."""
    done = _lint(copy)

    assert done.returncode == 0, done.stdout
    assert f"Contracts: {len(_contracts())} kept, 0 broken." in done.stdout


@pytest.mark.parametrize(("contract", "file", "bad_import"), BREACHES)
def test_a_breach_is_seen(
    copy: Path, contract: str, file: str, bad_import: str
) -> None:
    """The contract that is broken is named, with the module that breaks it."""
    path = copy / file
    sound = path.read_text() if path.exists() else None
    path.write_text(f"{sound or ''}\n{bad_import}\n")
    try:
        done = _lint(copy, contract)
    finally:
        path.write_text(sound) if sound is not None else path.unlink()

    assert done.returncode == 1, done.stdout + done.stderr
    assert f"{_contracts()[contract]} BROKEN" in " ".join(done.stdout.split())
    assert file.removesuffix(".py").replace("/", ".") in done.stdout


def test_no_contract_is_left_untried() -> None:
    """A contract that cannot fail is worth nothing."""
    assert {contract for contract, _, _ in BREACHES} == set(_contracts())


def test_contracts_bring_nothing_along_at_run_time() -> None:
    """Beside what pydantic itself loads, importing every module of `contracts` loads none of the forbidden ones."""
    modules = sorted(
        f"tasklore.contracts.{file.stem}"
        for file in (ROOT / "contracts").glob("*.py")
        if file.stem != "__init__"
    )
    forbidden = (
        "nats",
        "redis",
        "openai",
        "faststream",
        "prometheus_client",
        "structlog",
        "memory",
        "runtime",
    )
    code = (
        "import importlib, sys, pydantic\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        f"print([name for name in {forbidden!r} if name in sys.modules])"
    )
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.strip() == "[]"
