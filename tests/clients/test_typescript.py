"""Clients in TypeScript, generated from the document of a running system, by `make clients-check`.

Left out unless asked for by `-m clients`: it needs Node 20 and npm, which installs the generator.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasklore.contracts.messages import AgentCard, TaskCard
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.http.admission.key_file import make_key
from tasklore.supervisor.http.typed_document import TypedDocument
from tests.acceptance.system import BUDGET, Served, System, running_system
from tests.golden.document import make_document
from tests.http_client import ask
from tests.unit.supervisor.http.test_typed_document import HOSTILE, Trip

pytestmark = pytest.mark.clients

HERE = Path(__file__).parent
EXAMPLE = HERE.parents[1] / "examples" / "typescript"
#: Seconds for one program of Node's; npm asks its registry.
PATIENCE_S = 300
#: Texts that would end what they stand in, if they were taken for more than texts.
ESCAPES = ("*/ export {} /*", "`${1}`", "\"'\\", "a\nb", "</script>")


def run(folder: Path, *command: str, **environment: str) -> tuple[int, str]:
    """Return the exit status and the output of a program in *folder*."""
    program = shutil.which(command[0])
    assert program is not None, f"{command[0]} is not on the PATH; install Node 20"
    done = subprocess.run(
        [program, *command[1:]],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=os.environ | environment,
        timeout=PATIENCE_S,
    )
    return done.returncode, done.stdout + done.stderr


def demand(folder: Path, *command: str, **environment: str) -> str:
    """Return the output of a program that succeeds."""
    status, output = run(folder, *command, **environment)
    assert status == 0, output[-8000:]
    return output


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the example with its packages."""
    folder = tmp_path_factory.mktemp("typescript") / "project"
    shutil.copytree(EXAMPLE, folder)
    shutil.copy(HERE / "lint.js", folder)
    demand(folder, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
    return folder


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with running_system(tmp_path_factory.mktemp("clients")) as system:
        system.worker(BUDGET).ready()
        yield system


@pytest.fixture(scope="module")
def key(system: System) -> str:
    return make_key(system.folder / "keys.json", "typed", ("ask",), None)


@pytest.fixture(scope="module")
def served(system: System, key: str) -> Served:
    assert key
    return system.supervisor(api_keys_file=system.folder / "keys.json").ready()


@pytest.fixture
async def generated(project: Path, served: Served, key: str) -> Path:
    """Return the project with the types of the system that runs."""
    headers = {"Authorization": f"Bearer {key}"}
    described = await ask(served.api, "GET", "/v1/openapi.json", headers=headers)
    assert described.status == 200
    write_document(project, json.dumps(described.body))
    return project


def write_document(project: Path, document: str) -> None:
    (project / "openapi.json").write_text(document)
    demand(project, "npm", "run", "generate")


def test_a_typed_client_asks_runs_tasks_handles_problems_and_follows(
    generated: Path, served: Served, key: str
) -> None:
    """The example and the how-to compile under --strict, and what is printed came from the system."""
    page = (EXAMPLE.parents[1] / "docs" / "guide" / "typed-clients.md").read_text()
    (generated / "guide.ts").write_text(
        page.partition("```ts\n")[2].partition("```")[0]
    )
    demand(generated, "npm", "run", "build")
    said = demand(
        generated, "npm", "start", TASKLORE_API_URL=served.api, TASKLORE_API_KEY=key
    )
    for line in ("asked: answer", "remaining: 8000", "refused: there is no agent"):
        assert line in said, said
    assert "done: completed" in said, said
    said = demand(generated, "node", "build/guide.js", API=served.api, KEY=key)
    assert said == "8000\n"


def test_a_wrong_client_does_not_compile(generated: Path) -> None:
    """One error for each of its calls."""
    wrong = generated / "wrong.ts"
    shutil.copy(HERE / "wrong.ts", wrong)
    try:
        status, output = run(generated, "npx", "tsc", "--noEmit")
    finally:
        wrong.unlink()
    assert status != 0
    lines = (HERE / "wrong.ts").read_text().splitlines()
    found = {
        lines[int(line.partition("(")[2].partition(",")[0]) - 1]
        for line in output.splitlines()
        if line.startswith("wrong.ts(")
    }
    assert found == {line for line in lines if line.endswith("// wrong")}, output


def test_linters_find_nothing_in_either_document(generated: Path) -> None:
    """That without the paths of agents, and that with them."""
    plain = generated / "plain.json"
    plain.write_text(json.dumps(versioned()))
    assert demand(generated, "node", "lint.js", "openapi.json", "plain.json") == ""


def versioned() -> dict[str, object]:
    document = make_document()
    document["info"]["version"] = "1"
    return document


async def test_hostile_cards_leave_a_document_that_compiles(project: Path) -> None:
    """Whatever they say, its linter and its generator get through, and other agents stay typed."""
    schemas = {f"Evil{number}": one for number, one in enumerate(HOSTILE.values())}
    schemas["Escapes"] = {
        "type": "object",
        "description": "".join(ESCAPES),
        "properties": {
            text: {
                "enum": list(ESCAPES),
                "default": text,
                "description": text,
                "format": text,
                "examples": [text],
            }
            for text in ESCAPES
        },
    }
    cards = [
        AgentCard(
            agent_id=name,
            tasks=(TaskCard(name="plan", parameters=one, result=one),),
            digest=name,
        )
        for name, one in (schemas | {"TripAgent": Trip.model_json_schema()}).items()
    ]
    catalogue = Catalogue(cards)
    body, _ = await TypedDocument(versioned, lambda: catalogue).read()
    write_document(project, body.decode())
    assert demand(project, "node", "lint.js", "openapi.json") == ""
    demand(
        project,
        "npx",
        "tsc",
        "--noEmit",
        "--skipLibCheck",
        "false",
        "--strict",
        "tasklore.ts",
    )
    types = (project / "tasklore.ts").read_text()
    assert '"TripAgent.plan.Parameters"' in types
    assert '"Escapes.plan.Parameters"' in types
