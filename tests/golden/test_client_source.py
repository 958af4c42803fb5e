"""The Python client is what the document makes of it, and a program outside that uses it is typed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.client_source import (
    CLIENT,
    FIRST_LINE,
    format_source,
    write_models,
    write_nouns,
)
from tests.golden.document import make_document

PROGRAM = """
from tasklore.client import AsyncClient, Client, TaskFailed, models


def look(client: Client) -> list[str]:
    page = client.schedules.list(user="ann", limit=5)
    for schedule in client.schedules.each():
        page.schedules[0].missed_ticks + schedule.missed_ticks
    done: models.Sent = client.run("A", "b", {"c": 1})
    for event in client.tasks.follow(done.task_id):
        if isinstance(event, models.TextEvent):
            print(event.data)
    try:
        client.call("A.b", {})
    except TaskFailed as error:
        return [error.kind]
    return [one.question for one in client.approvals.list().approvals]


async def look_async(client: AsyncClient) -> str | None:
    async for event in client.tasks.follow("t"):
        print(event.event)
    return (await client.schedules.show("nightly")).user
"""


@pytest.mark.parametrize(
    ("name", "make"), [("models.py", write_models), ("nouns.py", write_nouns)]
)
def test_generated_files_are_as_the_document_makes_them(
    name: str, make: object
) -> None:
    """Write them anew with `python -m deploy.client_source tests/golden/openapi.json`."""
    assert callable(make)
    # As it is read from its file: the order of what is written is that of the file.
    document = json.loads(json.dumps(make_document(), sort_keys=True))
    source = (CLIENT / name).read_text(encoding="utf-8")
    assert source.startswith(FIRST_LINE)
    assert source == format_source(make(document))


def check(folder: Path, source: str) -> subprocess.CompletedProcess[str]:
    """Check a program outside of the project by mypy, strictly."""
    program = folder / "program.py"
    program.write_text(source, encoding="utf-8")
    mypy = str(Path(sys.executable).with_name("mypy"))
    return subprocess.run(
        [
            mypy,
            "--strict",
            "--config-file=",
            "--cache-dir",
            str(folder / "cache"),
            str(program),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        timeout=110,
    )


def test_a_program_outside_is_typed(tmp_path: Path) -> None:
    """A right one passes, and each wrong use is told."""
    right = check(tmp_path, PROGRAM)
    assert right.returncode == 0, right.stdout
    wrong = check(
        tmp_path,
        PROGRAM
        + """

def slip(client: Client) -> int:
    client.schedules.list(limit="many")
    client.schedules.add(misssed="all")
    client.tasks.list(state="lost")
    return client.schedules.show("nightly").id
""",
    )
    assert wrong.stdout.count("error:") == 4, wrong.stdout
