"""A program outside that uses the Python client is typed."""

import subprocess
import sys
from pathlib import Path

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
